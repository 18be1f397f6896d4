//! Losses: what one sample costs, ℓ(z, y), as a function of its linear predictor z.
//!
//! A loss is convex in z and smooth except at its *kinks*, where ℓ' jumps upward. To add one: a file with the
//! formula, its derivatives and its kinks, and one row in [`REGISTRY`]. The command line, the file format and the law
//! tests read the registry.

mod logistic;
mod squared;

pub use logistic::Logistic;
pub use squared::Squared;

use crate::error::{Error, Result};

/// A loss and its first two derivatives in z.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LossAt {
    /// ℓ
    pub value: f64,
    /// ℓ' = ∂ℓ/∂z
    pub slope: f64,
    /// ℓ'' = ∂²ℓ/∂z²
    pub curvature: f64,
}

/// What a target value has to look like for a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// Any finite number.
    Real,
    /// −1 or +1.
    Sign,
}

/// One sample's loss.
pub trait Loss: std::fmt::Debug + Send + Sync {
    /// The registry name.
    fn name(&self) -> &'static str;

    /// ℓ, ℓ' and ℓ'' at predictor `z` and target `y`.
    fn at(&self, z: f64, y: f64) -> LossAt;

    /// [`Loss::at`] for many samples (one virtual call for the lot).
    fn fill(&self, z: &[f64], y: &[f64], out: &mut [LossAt]) {
        for ((&z, &y), out) in z.iter().zip(y).zip(out) {
            *out = self.at(z, y);
        }
    }

    /// Which targets make sense.
    fn target(&self) -> TargetKind;

    /// Whether ℓ = (z − y)²: then far rows may be summed up exactly, as moments.
    fn is_squared_residual(&self) -> bool {
        false
    }

    /// Predictors beyond this size, in a fit that gets no further, mean that nothing bounds the solution: the loss is
    /// flat there, to rounding.
    fn flat_beyond(&self) -> f64 {
        f64::INFINITY
    }

    /// The factor C inside ℓ, where the loss has one.
    fn c(&self) -> Option<f64> {
        None
    }
}

/// One row of the registry.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `--help` and the documentation.
    pub summary: &'static str,
    /// Builds the loss for a factor C (losses without one ignore it).
    pub build: fn(c: f64) -> Box<dyn Loss>,
}

/// Every loss.
pub const REGISTRY: &[Entry] = &[
    Entry { name: "squared", summary: "(z - y)^2, regression", build: |_| Box::new(Squared) },
    Entry { name: "logistic", summary: "C ln(1 + exp(-yz)), two classes", build: |c| Box::new(Logistic { c }) },
];

/// Builds a loss by name; `c` must be positive.
pub fn by_name(name: &str, c: f64) -> Result<Box<dyn Loss>> {
    if !(c > 0.0 && c.is_finite()) {
        return Err(Error::Option { name: "c", value: c.to_string(), expected: "a finite number above 0".into() });
    }
    match REGISTRY.iter().find(|e| e.name == name) {
        Some(entry) => Ok((entry.build)(c)),
        None => Err(Error::UnknownName {
            what: "loss",
            name: name.into(),
            choices: REGISTRY.iter().map(|e| e.name).collect::<Vec<_>>().join(", "),
        }),
    }
}
