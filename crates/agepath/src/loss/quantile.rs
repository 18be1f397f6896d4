//! Quantile (pinball) loss: ℓ = C τ (y − z) below the target and C (1 − τ)(z − y) above it, ℓ'' = 0. One kink, at z = y.
//! τ = ½ is half the absolute loss: median regression.

use super::{Kinks, Loss, LossAt, TargetKind};
use crate::registry::{Parameter, Range};

/// The quantile.
pub(super) const QUANTILE: Parameter = Parameter {
    name: "quantile",
    option: "quantile",
    default: 0.5,
    range: Range::Between(0.0, 1.0),
    help: "The quantile of `quantile`",
};

/// ℓ = C max(τ (y − z), (1 − τ)(z − y)).
#[derive(Debug, Clone, Copy)]
pub struct Quantile {
    /// The factor C.
    pub c: f64,
    /// The quantile τ, above 0 and below 1.
    pub tau: f64,
}

impl Loss for Quantile {
    fn name(&self) -> &'static str {
        "quantile"
    }

    fn kinks(&self, y: f64) -> Kinks {
        Kinks::new(&[y])
    }

    fn at_piece(&self, piece: u8, z: f64, y: f64) -> LossAt {
        let slope = if piece == 0 { -self.c * self.tau } else { self.c * (1.0 - self.tau) };
        LossAt { value: slope * (z - y), slope, curvature: 0.0 }
    }

    fn target(&self) -> TargetKind {
        TargetKind::Real
    }

    fn slope_unit(&self) -> f64 {
        self.c
    }

    fn c(&self) -> Option<f64> {
        Some(self.c)
    }
}
