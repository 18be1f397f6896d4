//! Linear pacing: f = λ(v²/2 − v).
//!
//! Zones: E (ℓ ≤ λ) with v = 1 − uℓ, D with v = 0. In E: ∂v/∂ℓ = −u, ∂v/∂u = −ℓ.
//! F = ℓ − uℓ²/2 in E and λ/2 beyond.

use super::{Cut, Cuts, Pacing, PacingSpec, WeightAt, ZonePolynomial};

/// v = max(0, 1 − ℓ/λ).
#[derive(Debug, Clone, Copy)]
pub struct Linear;

impl Pacing for Linear {
    fn spec(&self) -> PacingSpec {
        PacingSpec::new("linear", &[])
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
            WeightAt { value: 1.0 - u * loss, by_loss: -u, by_inverse_age: -loss }
        } else {
            WeightAt::default()
        }
    }

    #[inline(always)]
    fn primitive(&self, loss: f64, u: f64) -> f64 {
        if u * loss <= 1.0 { loss * (1.0 - 0.5 * u * loss) } else { 0.5 / u }
    }

    fn polynomial(&self, zone: u8) -> Option<ZonePolynomial> {
        Some(match zone {
            0 => ZonePolynomial { linear: [1.0, 0.0], square: [0.0, -0.5], ..Default::default() },
            _ => ZonePolynomial::default(),
        })
    }

    fn regularizer(&self, v: f64, age: f64) -> f64 {
        age * (0.5 * v * v - v)
    }
}
