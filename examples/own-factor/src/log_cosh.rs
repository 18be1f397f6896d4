//! Log-cosh loss: with r = (z − y)/s, ℓ = s² ln cosh r, ℓ' = s tanh r, ℓ'' = 1/cosh² r. No kinks: half a square where |r| is small,
//! an absolute value where it is large.

use agepath::loss::{Loss, LossAt, TargetKind};
use agepath::registry::{Parameter, Range};

/// Where squares become absolute values.
pub const WIDTH: Parameter = Parameter {
    name: "width",
    option: "width",
    default: 0.5,
    range: Range::Above(0.0),
    help: "Residual of the log-cosh loss at which squares become absolute values",
};

/// ℓ = s² ln cosh((z − y)/s).
#[derive(Debug, Clone, Copy)]
pub struct LogCosh {
    /// s > 0
    pub width: f64,
}

impl Loss for LogCosh {
    fn name(&self) -> &'static str {
        "log-cosh"
    }

    fn at_piece(&self, _piece: u8, z: f64, y: f64) -> LossAt {
        let r = (z - y) / self.width;
        // ln cosh r = |r| + ln(1 + e^{−2|r|}) − ln 2 cancels for small r; there it is ½ ln(1 + sinh² r).
        let value = match r.abs() < 1.0 {
            true => 0.5 * r.sinh().powi(2).ln_1p(),
            false => r.abs() + (-2.0 * r.abs()).exp().ln_1p() - std::f64::consts::LN_2,
        };
        let tanh = r.tanh();
        LossAt { value: self.width * self.width * value, slope: self.width * tanh, curvature: 1.0 - tanh * tanh }
    }

    fn slope_unit(&self) -> f64 {
        1.0
    }

    fn target(&self) -> TargetKind {
        TargetKind::Real
    }
}
