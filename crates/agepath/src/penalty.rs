//! Penalties: R(w) = Σ_j [ l1 |w_j| + ½ l2 w_j² ]. The intercept is never penalised.
//!
//! | name | l1 | l2 |
//! |---|---|---|
//! | none | 0 | 0 |
//! | l2 | 0 | α |
//! | l1 | α | 0 |
//! | elastic-net | α ρ | α (1 − ρ) |

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// A penalty by name, as it is written to files: `{"kind": "l1", "alpha": 0.005}`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Penalty {
    /// R = 0
    None,
    /// R = ½ α ‖w‖²
    L2 {
        /// α ≥ 0
        alpha: f64,
    },
    /// R = α ‖w‖₁
    L1 {
        /// α ≥ 0
        alpha: f64,
    },
    /// R = α ρ ‖w‖₁ + ½ α (1 − ρ) ‖w‖²
    ElasticNet {
        /// α ≥ 0
        alpha: f64,
        /// ρ in [0, 1]
        l1_ratio: f64,
    },
}

impl Penalty {
    /// Its name in files.
    pub fn kind(&self) -> &'static str {
        match self {
            Penalty::None => "none",
            Penalty::L2 { .. } => "l2",
            Penalty::L1 { .. } => "l1",
            Penalty::ElasticNet { .. } => "elastic-net",
        }
    }

    /// So many times as strong.
    pub fn times(self, factor: f64) -> Penalty {
        match self {
            Penalty::None => Penalty::None,
            Penalty::L2 { alpha } => Penalty::L2 { alpha: factor * alpha },
            Penalty::L1 { alpha } => Penalty::L1 { alpha: factor * alpha },
            Penalty::ElasticNet { alpha, l1_ratio } => Penalty::ElasticNet { alpha: factor * alpha, l1_ratio },
        }
    }

    /// The bound of the L1 part, per coefficient.
    pub fn l1(&self) -> f64 {
        match *self {
            Penalty::L1 { alpha } => alpha,
            Penalty::ElasticNet { alpha, l1_ratio } => alpha * l1_ratio,
            Penalty::None | Penalty::L2 { .. } => 0.0,
        }
    }

    /// The curvature of the L2 part, per coefficient.
    pub fn l2(&self) -> f64 {
        match *self {
            Penalty::L2 { alpha } => alpha,
            Penalty::ElasticNet { alpha, l1_ratio } => alpha * (1.0 - l1_ratio),
            Penalty::None | Penalty::L1 { .. } => 0.0,
        }
    }

    /// Refuses negative and non-finite strengths.
    pub fn validate(&self) -> Result<()> {
        let (alpha, ratio) = match *self {
            Penalty::None => (0.0, 1.0),
            Penalty::L1 { alpha } | Penalty::L2 { alpha } => (alpha, 1.0),
            Penalty::ElasticNet { alpha, l1_ratio } => (alpha, l1_ratio),
        };
        if !(alpha >= 0.0 && alpha.is_finite()) {
            return Err(Error::Option {
                name: "alpha",
                value: alpha.to_string(),
                expected: "a finite number, 0 or more".into(),
            });
        }
        if !(0.0..=1.0).contains(&ratio) {
            return Err(Error::Option {
                name: "l1-ratio",
                value: ratio.to_string(),
                expected: "a number from 0 to 1".into(),
            });
        }
        Ok(())
    }
}
