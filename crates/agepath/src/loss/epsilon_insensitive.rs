//! ε-insensitive loss (support vector regression): with r = z − y, ℓ = C max(0, |r| − ε), ℓ' = ±C outside the tube and 0
//! inside, ℓ'' = 0. Two kinks, at the edges of the tube: z = y ± ε.

use super::{Kinks, Loss, LossAt, TargetKind};
use crate::registry::{Parameter, Range};

/// Half the width of the tube.
pub(super) const EPSILON: Parameter = Parameter {
    name: "epsilon",
    option: "epsilon",
    default: 0.1,
    range: Range::AtLeast(0.0),
    help: "Half the width of the tube of `svr`",
};

/// ℓ = C max(0, |z − y| − ε).
#[derive(Debug, Clone, Copy)]
pub struct EpsilonInsensitive {
    /// The factor C.
    pub c: f64,
    /// Half the width of the tube.
    pub epsilon: f64,
}

impl Loss for EpsilonInsensitive {
    fn name(&self) -> &'static str {
        "epsilon-insensitive"
    }

    fn kinks(&self, y: f64) -> Kinks {
        Kinks::new(&[y - self.epsilon, y + self.epsilon])
    }

    fn at_piece(&self, piece: u8, z: f64, y: f64) -> LossAt {
        let beyond = |side: f64| LossAt {
            value: self.c * (side * (z - y) - self.epsilon),
            slope: side * self.c,
            curvature: 0.0,
        };
        match piece {
            0 => beyond(-1.0),
            1 => LossAt::default(),
            _ => beyond(1.0),
        }
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
