//! Hard pacing: f = −λv.
//!
//! Zones: E (ℓ ≤ λ) with v = 1, D with v = 0. v drops at the threshold, so ψ = s v ℓ' jumps towards zero there
//! (a concave kink of the objective): no local minimiser can sit on it. F = min(ℓ, λ).

use super::{Cut, Cuts, Pacing, PacingSpec, WeightAt, ZonePolynomial};

/// v = 1 while ℓ ≤ λ, else 0.
#[derive(Debug, Clone, Copy)]
pub struct Hard;

impl Pacing for Hard {
    fn spec(&self) -> PacingSpec {
        PacingSpec::new("hard", &[])
    }

    fn zones(&self) -> &'static [&'static str] {
        &["E", "D"]
    }

    fn cuts(&self, u: f64) -> Cuts {
        Cuts::new(&[Cut { value: u, slope: 1.0 }])
    }

    #[inline(always)]
    fn at(&self, zone: u8, _loss: f64, _u: f64) -> WeightAt {
        WeightAt { value: if zone == 0 { 1.0 } else { 0.0 }, by_loss: 0.0, by_inverse_age: 0.0 }
    }

    #[inline(always)]
    fn primitive(&self, loss: f64, u: f64) -> f64 {
        loss.min(1.0 / u)
    }

    fn polynomial(&self, zone: u8) -> Option<ZonePolynomial> {
        let linear = if zone == 0 { [1.0, 0.0] } else { [0.0; 2] };
        Some(ZonePolynomial { linear, ..Default::default() })
    }

    fn regularizer(&self, v: f64, age: f64) -> f64 {
        -age * v
    }

    fn is_continuous(&self) -> bool {
        false
    }
}
