//! LOG pacing: f = KL(1 + aλ, v)/a with KL(p, q) = p ln(p/q) − p + q.
//!
//! Zones: E (ℓ ≤ λ) with v = 1, D with v = (1 + aλ)/(1 + aℓ), Cauchy-like and never 0.
//! In D: ∂v/∂ℓ = −a(1 + aλ)/(1 + aℓ)², ∂v/∂u = −λ² a/(1 + aℓ). F grows by (1 + aλ)/a · ln((1 + aℓ)/(1 + aλ)) in D.

use super::{Cut, Cuts, Pacing, PacingSpec, WeightAt};
use crate::registry::{Parameter, Range};

/// How fast the weight falls.
pub(super) const A: Parameter =
    Parameter { name: "a", option: "pacing-a", default: 1.0, range: Range::Above(0.0), help: "a of the LOG pacing" };

/// v = 1 while ℓ ≤ λ, else (1 + aλ)/(1 + aℓ).
#[derive(Debug, Clone, Copy)]
pub struct Log {
    /// a > 0: how fast the weight falls beyond the age.
    pub a: f64,
}

impl Pacing for Log {
    fn spec(&self) -> PacingSpec {
        PacingSpec::new("log", &[("a", self.a)])
    }

    fn zones(&self) -> &'static [&'static str] {
        &["E", "D"]
    }

    fn cuts(&self, u: f64) -> Cuts {
        Cuts::new(&[Cut { value: u, slope: 1.0 }])
    }

    #[inline(always)]
    fn at(&self, zone: u8, loss: f64, u: f64) -> WeightAt {
        if zone == 0 {
            return WeightAt { value: 1.0, by_loss: 0.0, by_inverse_age: 0.0 };
        }
        let below = 1.0 + self.a * loss;
        let value = (1.0 + self.a / u) / below;
        WeightAt { value, by_loss: -self.a * value / below, by_inverse_age: -self.a / (u * u * below) }
    }

    #[inline(always)]
    fn primitive(&self, loss: f64, u: f64) -> f64 {
        if u * loss <= 1.0 {
            return loss;
        }
        let age = 1.0 / u;
        let top = 1.0 + self.a * age;
        age + top / self.a * (self.a * (loss - age) / top).ln_1p()
    }

    fn regularizer(&self, v: f64, age: f64) -> f64 {
        let p = 1.0 + self.a * age;
        (p * (p / v).ln() - p + v) / self.a
    }

    fn left_out(&self) -> f64 {
        0.5
    }
}
