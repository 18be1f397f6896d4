//! Squared hinge loss: with margin m = yz, ℓ = C max(0, 1 − m)², ℓ' = −2C y max(0, 1 − m), ℓ'' = 2C below the margin and 0
//! beyond. Two pieces that meet smoothly at z = y: ℓ' does not jump there, so no sample is ever pinned.

use super::{Kinks, Loss, LossAt, TargetKind};

/// ℓ = C max(0, 1 − yz)².
#[derive(Debug, Clone, Copy)]
pub struct SquaredHinge {
    /// The factor C.
    pub c: f64,
}

impl Loss for SquaredHinge {
    fn name(&self) -> &'static str {
        "squared-hinge"
    }

    fn kinks(&self, y: f64) -> Kinks {
        Kinks::new(&[y])
    }

    fn at_piece(&self, piece: u8, z: f64, y: f64) -> LossAt {
        if (piece == 0) == (y > 0.0) {
            let short = 1.0 - y * z;
            LossAt { value: self.c * short * short, slope: -2.0 * self.c * y * short, curvature: 2.0 * self.c }
        } else {
            LossAt::default()
        }
    }

    fn target(&self) -> TargetKind {
        TargetKind::Sign
    }

    fn slope_unit(&self) -> f64 {
        2.0 * self.c
    }

    fn c(&self) -> Option<f64> {
        Some(self.c)
    }
}
