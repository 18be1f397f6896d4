//! Polynomial pacing: f = λ(v^t/t − v) with t = 1 + 1/p.
//!
//! Zones: E (ℓ ≤ λ) with v = (1 − uℓ)^p, D with v = 0. In E: ∂v/∂ℓ = −p u (1 − uℓ)^{p−1}, ∂v/∂u = −p ℓ (1 − uℓ)^{p−1}; beyond its
//! end E continues as an odd power, falling on. F = (1 − (1 − uℓ)^{p+1}) / (u (p + 1)) in E.
//! p = 1 is linear pacing; p = 2 with the squared loss is Tukey's biweight.

use super::{Cut, Cuts, Pacing, PacingSpec, WeightAt};
use crate::registry::{Parameter, Range};

/// The power.
pub(super) const P: Parameter = Parameter {
    name: "p",
    option: "pacing-p",
    default: 2.0,
    range: Range::AtLeast(1.0),
    help: "Power of the polynomial pacing",
};

/// v = max(0, 1 − ℓ/λ)^p.
#[derive(Debug, Clone, Copy)]
pub struct Polynomial {
    /// p ≥ 1.
    pub p: f64,
}

impl Pacing for Polynomial {
    fn spec(&self) -> PacingSpec {
        PacingSpec::new("polynomial", &[("p", self.p)])
    }

    fn zones(&self) -> &'static [&'static str] {
        &["E", "D"]
    }

    fn cuts(&self, u: f64) -> Cuts {
        Cuts::new(&[Cut { value: u, slope: 1.0 }])
    }

    fn at(&self, zone: u8, loss: f64, u: f64) -> WeightAt {
        if zone != 0 {
            return WeightAt::default();
        }
        let left = 1.0 - u * loss;
        let falling = left.abs().powf(self.p - 1.0);
        WeightAt { value: left * falling, by_loss: -self.p * u * falling, by_inverse_age: -self.p * loss * falling }
    }

    fn primitive(&self, loss: f64, u: f64) -> f64 {
        // As a multiple of ℓ that neither cancels for small uℓ nor divides by u = 0.
        let (x, power) = ((u * loss).min(1.0), self.p + 1.0);
        if x == 0.0 {
            return loss;
        }
        -(power * (-x).ln_1p()).exp_m1() / (power * u)
    }

    fn regularizer(&self, v: f64, age: f64) -> f64 {
        let t = 1.0 + 1.0 / self.p;
        age * (v.powf(t) / t - v)
    }
}
