//! Logistic loss: with margin m = yz and p = 1/(1 + e^m),
//! ℓ = C ln(1 + e^{−m}), ℓ' = −C y p, ℓ'' = C p (1 − p). No kinks.

use super::{Loss, LossAt, TargetKind};

/// ℓ = C ln(1 + e^{−yz}).
#[derive(Debug, Clone, Copy)]
pub struct Logistic {
    /// The factor C.
    pub c: f64,
}

impl Loss for Logistic {
    fn name(&self) -> &'static str {
        "logistic"
    }

    fn at_piece(&self, _piece: u8, z: f64, y: f64) -> LossAt {
        let m = y * z;
        // e^{−|m|} never overflows; both signs of m are written with it.
        let e = (-m.abs()).exp();
        let p = if m > 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) };
        LossAt {
            value: self.c * (e.ln_1p() + (-m).max(0.0)),
            slope: -self.c * y * p,
            curvature: self.c * e / ((1.0 + e) * (1.0 + e)),
        }
    }

    fn slope_unit(&self) -> f64 {
        self.c
    }

    fn target(&self) -> TargetKind {
        TargetKind::Sign
    }

    fn flat_beyond(&self) -> f64 {
        // e^{−30} is close to a rounding of 1.
        30.0
    }

    fn probability(&self, z: f64) -> Option<f64> {
        Some(1.0 / (1.0 + (-z).exp()))
    }

    fn c(&self) -> Option<f64> {
        Some(self.c)
    }
}
