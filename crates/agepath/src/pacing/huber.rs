//! Huber pacing: f = λ²/v.
//!
//! Zones: E (1/τ = u²) with v = 1, D with v = λ/√ℓ, never 0. In D: ∂v/∂ℓ = −½ λ ℓ^−3/2, ∂v/∂u = −λ²/√ℓ.
//! F = 2λ√ℓ − λ² in D: with the squared loss this is Huber's regression, the age being its threshold. That is convex, so
//! its path has no jumps; towards age 0 it becomes the regression of least absolute deviations.

use super::{Cut, Cuts, Pacing, PacingSpec, WeightAt};

/// v = 1 while √ℓ ≤ λ, else λ/√ℓ.
#[derive(Debug, Clone, Copy)]
pub struct Huber;

impl Pacing for Huber {
    fn spec(&self) -> PacingSpec {
        PacingSpec::new("huber", &[])
    }

    fn zones(&self) -> &'static [&'static str] {
        &["E", "D"]
    }

    fn cuts(&self, u: f64) -> Cuts {
        Cuts::new(&[Cut { value: u * u, slope: 2.0 * u }])
    }

    #[inline(always)]
    fn at(&self, zone: u8, loss: f64, u: f64) -> WeightAt {
        if zone == 0 {
            return WeightAt { value: 1.0, by_loss: 0.0, by_inverse_age: 0.0 };
        }
        let value = 1.0 / (u * loss.sqrt());
        WeightAt { value, by_loss: -0.5 * value / loss, by_inverse_age: -value / u }
    }

    #[inline(always)]
    fn primitive(&self, loss: f64, u: f64) -> f64 {
        if u * u * loss <= 1.0 {
            return loss;
        }
        (2.0 * loss.sqrt() - 1.0 / u) / u
    }

    fn regularizer(&self, v: f64, age: f64) -> f64 {
        age * age / v
    }

    fn left_out(&self) -> f64 {
        0.5
    }
}
