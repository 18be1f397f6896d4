//! Squared loss: ℓ = (z − y)², ℓ' = 2(z − y), ℓ'' = 2. No kinks.
//!
//! The Lasso's ½ and 1/n live in the sample scale s, not here, so an age is a squared residual: √λ is a cut-off in
//! units of the target.

use super::{Loss, LossAt, TargetKind};

/// ℓ = (z − y)².
#[derive(Debug, Clone, Copy)]
pub struct Squared;

impl Loss for Squared {
    fn name(&self) -> &'static str {
        "squared"
    }

    #[inline(always)]
    fn at(&self, z: f64, y: f64) -> LossAt {
        self.at_piece(0, z, y)
    }

    #[inline(always)]
    fn at_piece(&self, _piece: u8, z: f64, y: f64) -> LossAt {
        let r = z - y;
        LossAt { value: r * r, slope: 2.0 * r, curvature: 2.0 }
    }

    fn slope_unit(&self) -> f64 {
        2.0
    }

    fn target(&self) -> TargetKind {
        TargetKind::Real
    }

    fn is_squared_residual(&self) -> bool {
        true
    }
}
