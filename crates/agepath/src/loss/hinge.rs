//! Hinge loss (SVM): with margin m = yz, ℓ = C max(0, 1 − m), ℓ' = −C y below the margin and 0 beyond, ℓ'' = 0.
//! One kink, at m = 1, that is z = y.

use super::{Kinks, Loss, LossAt, TargetKind};

/// ℓ = C max(0, 1 − yz).
#[derive(Debug, Clone, Copy)]
pub struct Hinge {
    /// The factor C.
    pub c: f64,
}

impl Loss for Hinge {
    fn name(&self) -> &'static str {
        "hinge"
    }

    fn kinks(&self, y: f64) -> Kinks {
        Kinks::new(&[y])
    }

    fn at_piece(&self, piece: u8, z: f64, y: f64) -> LossAt {
        // Below z = y lies the loss of y = +1, above it that of y = −1.
        if (piece == 0) == (y > 0.0) {
            LossAt { value: self.c * (1.0 - y * z), slope: -self.c * y, curvature: 0.0 }
        } else {
            LossAt::default()
        }
    }

    fn target(&self) -> TargetKind {
        TargetKind::Sign
    }

    fn slope_unit(&self) -> f64 {
        self.c
    }

    fn c(&self) -> Option<f64> {
        Some(self.c)
    }
}
