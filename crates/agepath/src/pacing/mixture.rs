//! Mixture pacing: f = γ²/(v + γ/λ).
//!
//! Zones: E (1/τ = (1/γ + u)²) with v = 1, M (1/τ = u²) with v = γ(ℓ^−½ − u), D with v = 0.
//! In M: ∂v/∂ℓ = −½γ ℓ^−3/2, ∂v/∂u = −γ. At u = 0 and squared loss this is Huber's regression with threshold γ.
//! F grows by 2γ(√ℓ − √τ_E) − γu(ℓ − τ_E) across M.

use super::{Cut, Cuts, Pacing, PacingSpec, WeightAt, ZonePolynomial};
use crate::registry::{Parameter, Range};

/// The width of the middle zone.
pub(super) const GAMMA: Parameter = Parameter {
    name: "gamma",
    option: "pacing-gamma",
    default: 0.5,
    range: Range::Above(0.0),
    help: "Gamma of the mixture pacing",
};

/// v = 1, then γ(1/√ℓ − 1/λ), then 0.
#[derive(Debug, Clone, Copy)]
pub struct Mixture {
    /// γ > 0: the width of the middle zone.
    pub gamma: f64,
}

impl Pacing for Mixture {
    fn spec(&self) -> PacingSpec {
        PacingSpec::new("mixture", &[("gamma", self.gamma)])
    }

    fn zones(&self) -> &'static [&'static str] {
        &["E", "M", "D"]
    }

    fn cuts(&self, u: f64) -> Cuts {
        let root = 1.0 / self.gamma + u;
        Cuts::new(&[Cut { value: root * root, slope: 2.0 * root }, Cut { value: u * u, slope: 2.0 * u }])
    }

    #[inline(always)]
    fn at(&self, zone: u8, loss: f64, u: f64) -> WeightAt {
        match zone {
            0 => WeightAt { value: 1.0, by_loss: 0.0, by_inverse_age: 0.0 },
            1 => {
                let root = loss.sqrt();
                WeightAt {
                    value: self.gamma * (1.0 / root - u),
                    by_loss: -0.5 * self.gamma / (loss * root),
                    by_inverse_age: -self.gamma,
                }
            }
            _ => WeightAt::default(),
        }
    }

    #[inline(always)]
    fn primitive(&self, loss: f64, u: f64) -> f64 {
        let low = 1.0 / (1.0 / self.gamma + u);
        let root = loss.sqrt();
        if root <= low {
            return loss;
        }
        // Beyond D's threshold the integral no longer grows.
        let root = if u * root > 1.0 { 1.0 / u } else { root };
        low * low + self.gamma * (2.0 * (root - low) - u * (root * root - low * low))
    }

    fn polynomial(&self, zone: u8) -> Option<ZonePolynomial> {
        Some(match zone {
            0 => ZonePolynomial { linear: [1.0, 0.0], ..Default::default() },
            1 => ZonePolynomial { root: [2.0 * self.gamma, 0.0], linear: [0.0, -self.gamma], ..Default::default() },
            _ => ZonePolynomial::default(),
        })
    }

    fn regularizer(&self, v: f64, age: f64) -> f64 {
        self.gamma * self.gamma / (v + self.gamma / age)
    }
}
