//! Welsch pacing with a floor under the age: f = μ(v ln v − v) with μ = λ + a, so that 1/μ = u/(1 + au).
//!
//! One zone: v = e^{−ℓ/μ}, never 0; ∂v/∂ℓ = −v/μ, ∂v/∂u = −ℓ v/(1 + au)², F = μ(1 − e^{−ℓ/μ}). No thresholds, so no events of rows.

use agepath::pacing::{Cuts, Pacing, PacingSpec, WeightAt};
use agepath::registry::{Parameter, Range};

/// The floor.
pub const FLOOR: Parameter = Parameter {
    name: "floor",
    option: "pacing-floor",
    default: 0.1,
    range: Range::AtLeast(0.0),
    help: "What is added to the age",
};

/// v = exp(−ℓ/(λ + a)).
#[derive(Debug, Clone, Copy)]
pub struct OwnWelsch {
    /// a ≥ 0
    pub floor: f64,
}

impl OwnWelsch {
    /// 1/μ
    fn rate(&self, u: f64) -> f64 {
        u / (1.0 + self.floor * u)
    }
}

impl Pacing for OwnWelsch {
    fn spec(&self) -> PacingSpec {
        PacingSpec::new("own-welsch", &[("floor", self.floor)])
    }

    fn zones(&self) -> &'static [&'static str] {
        &["E"]
    }

    fn cuts(&self, _u: f64) -> Cuts {
        Cuts::default()
    }

    fn at(&self, _zone: u8, loss: f64, u: f64) -> WeightAt {
        let rate = self.rate(u);
        let value = (-rate * loss).exp();
        WeightAt { value, by_loss: -rate * value, by_inverse_age: -loss * value / (1.0 + self.floor * u).powi(2) }
    }

    fn primitive(&self, loss: f64, u: f64) -> f64 {
        let rate = self.rate(u);
        if rate * loss == 0.0 { loss } else { -(-rate * loss).exp_m1() / rate }
    }

    fn regularizer(&self, v: f64, age: f64) -> f64 {
        if v > 0.0 { (age + self.floor) * (v * v.ln() - v) } else { 0.0 }
    }

    fn left_out(&self) -> f64 {
        0.5
    }
}
