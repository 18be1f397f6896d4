//! Welsch pacing: f = λ(v ln v − v).
//!
//! v = e^{−uℓ}, never 0; ∂v/∂ℓ = −u v, ∂v/∂u = −ℓ v, F = (1 − e^{−uℓ})/u. Zones: E (1/τ = u/ln 2) where v is above ½, D where it
//! is not and a row counts as left out. Both have the same formula, so passing from one to the other is smooth.
//! With the squared loss this is Welsch's (Leclerc's) M-estimator.

use super::{Cut, Cuts, Pacing, PacingSpec, WeightAt};
use std::f64::consts::LN_2;

/// v = exp(−ℓ/λ).
#[derive(Debug, Clone, Copy)]
pub struct Welsch;

impl Pacing for Welsch {
    fn spec(&self) -> PacingSpec {
        PacingSpec::new("welsch", &[])
    }

    fn zones(&self) -> &'static [&'static str] {
        &["E", "D"]
    }

    fn cuts(&self, u: f64) -> Cuts {
        Cuts::new(&[Cut { value: u / LN_2, slope: 1.0 / LN_2 }])
    }

    fn at(&self, _zone: u8, loss: f64, u: f64) -> WeightAt {
        let value = (-u * loss).exp();
        WeightAt { value, by_loss: -u * value, by_inverse_age: -loss * value }
    }

    fn primitive(&self, loss: f64, u: f64) -> f64 {
        if u * loss == 0.0 { loss } else { -(-u * loss).exp_m1() / u }
    }

    fn regularizer(&self, v: f64, age: f64) -> f64 {
        if v > 0.0 { age * (v * v.ln() - v) } else { 0.0 }
    }

    fn left_out(&self) -> f64 {
        0.5
    }
}
