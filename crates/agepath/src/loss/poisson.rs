//! Poisson loss (half the deviance), for counts y ≥ 0 with mean e^z: ℓ = e^z − yz + (y ln y − y), ℓ' = e^z − y, ℓ'' = e^z.
//! No kinks. With d = z − ln y it is y (e^d − 1 − d): 0 at the best z, and nothing cancels.

use super::{Loss, LossAt, TargetKind};

/// ℓ = e^z − yz + (y ln y − y).
#[derive(Debug, Clone, Copy)]
pub struct Poisson;

/// Beyond this predictor the mean continues as its Taylor polynomial of second order, so that squares of slopes are finite; no
/// count is anywhere near e^300.
const STEEPEST: f64 = 300.0;
/// Below this |d|, e^d − 1 − d is taken from its series, to rounding.
const SMALL: f64 = 1e-2;

/// e^z and its continuation: value, slope, curvature.
fn mean(z: f64) -> (f64, f64, f64) {
    let top = z.min(STEEPEST).exp();
    let more = (z - STEEPEST).max(0.0);
    (top * (1.0 + more * (1.0 + 0.5 * more)), top * (1.0 + more), top)
}

/// e^d − 1 − d.
fn excess(d: f64) -> f64 {
    if d.abs() >= SMALL {
        return d.exp_m1() - d;
    }
    // d²/2 (1 + d/3 (1 + d/4 (…))): six terms leave less than a rounding.
    (3..=8).rev().fold(1.0, |sum, k| 1.0 + d / f64::from(k) * sum) * 0.5 * d * d
}

impl Loss for Poisson {
    fn name(&self) -> &'static str {
        "poisson"
    }

    fn at(&self, z: f64, y: f64) -> LossAt {
        self.at_piece(0, z, y)
    }

    fn at_piece(&self, _piece: u8, z: f64, y: f64) -> LossAt {
        let (mean, slope, curvature) = mean(z);
        if y == 0.0 {
            return LossAt { value: mean, slope, curvature };
        }
        let d = z - y.ln();
        if z > STEEPEST {
            return LossAt { value: mean - y - y * d, slope: slope - y, curvature };
        }
        LossAt { value: y * excess(d), slope: y * d.exp_m1(), curvature }
    }

    fn slope_unit(&self) -> f64 {
        1.0
    }

    fn target(&self) -> TargetKind {
        TargetKind::Real
    }

    fn needs(&self, y: f64) -> Option<&'static str> {
        (y < 0.0).then_some("a count, 0 or more, for the poisson loss")
    }

    fn response(&self, z: f64) -> f64 {
        z.exp()
    }

    /// The deviance residual.
    fn residual(&self, z: f64, y: f64) -> f64 {
        (2.0 * self.at(z, y).value).sqrt().copysign(y - self.response(z))
    }

    fn is_in_units_of_the_target(&self) -> bool {
        false
    }

    fn flat_beyond(&self) -> f64 {
        // A mean of e^{−30} is none, to rounding.
        30.0
    }
}
