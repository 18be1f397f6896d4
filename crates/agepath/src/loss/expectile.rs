//! Expectile loss: ℓ = C τ (z − y)² below the target and C (1 − τ)(z − y)² above it; ℓ' = 2C τ (z − y) or 2C (1 − τ)(z − y),
//! ℓ'' = 2C τ or 2C (1 − τ). Two pieces that meet at z = y with ℓ' = 0, so no sample is ever pinned.
//! τ = ½ is half the squared loss; other τ are to the mean what quantiles are to the median.

use super::{Kinks, Loss, LossAt, TargetKind};
use crate::registry::{Parameter, Range};

/// The expectile.
pub(super) const EXPECTILE: Parameter = Parameter {
    name: "expectile",
    option: "expectile",
    default: 0.5,
    range: Range::Between(0.0, 1.0),
    help: "The expectile of `expectile`",
};

/// ℓ = C (τ or 1 − τ)(z − y)².
#[derive(Debug, Clone, Copy)]
pub struct Expectile {
    /// The factor C.
    pub c: f64,
    /// The expectile τ, above 0 and below 1.
    pub tau: f64,
}

impl Loss for Expectile {
    fn name(&self) -> &'static str {
        "expectile"
    }

    fn kinks(&self, y: f64) -> Kinks {
        Kinks::new(&[y])
    }

    fn at_piece(&self, piece: u8, z: f64, y: f64) -> LossAt {
        let factor = self.c * if piece == 0 { self.tau } else { 1.0 - self.tau };
        let r = z - y;
        LossAt { value: factor * r * r, slope: 2.0 * factor * r, curvature: 2.0 * factor }
    }

    fn target(&self) -> TargetKind {
        TargetKind::Real
    }

    fn slope_unit(&self) -> f64 {
        2.0 * self.c
    }

    fn c(&self) -> Option<f64> {
        Some(self.c)
    }
}
