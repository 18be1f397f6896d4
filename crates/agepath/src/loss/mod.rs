//! Losses: what one sample costs, ℓ(z, y), as a function of its linear predictor z.
//!
//! A loss is convex in z and smooth on the *pieces* between its *kinks*. Where ℓ' jumps upward at a kink, a sample can be
//! *pinned* to it; ℓ = 0 there. To add a loss: a file with the formula, its derivatives and its kinks, and one row in
//! [`REGISTRY`]. The command line, the file format and the law tests read the registry.

mod epsilon_insensitive;
mod expectile;
mod hinge;
mod logistic;
mod poisson;
mod quantile;
mod squared;
mod squared_hinge;

pub use epsilon_insensitive::EpsilonInsensitive;
pub use expectile::Expectile;
pub use hinge::Hinge;
pub use logistic::Logistic;
pub use poisson::Poisson;
pub use quantile::Quantile;
pub use squared::Squared;
pub use squared_hinge::SquaredHinge;

use crate::error::{Error, Result};
use crate::linalg::wide_loop;
use crate::registry::{Parameter, Range, Registry, Row, Values};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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

/// [`LossAt`] of many samples, one array per quantity.
#[derive(Debug, Clone, Default)]
pub struct Losses {
    /// ℓ
    pub value: Vec<f64>,
    /// ℓ'
    pub slope: Vec<f64>,
    /// ℓ''
    pub curvature: Vec<f64>,
}

impl Losses {
    /// Sample `i`.
    #[inline]
    pub fn get(&self, i: usize) -> LossAt {
        LossAt { value: self.value[i], slope: self.slope[i], curvature: self.curvature[i] }
    }
}

/// What a target value has to look like for a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// Any finite number.
    Real,
    /// −1 or +1.
    Sign,
}

/// At most this many kinks.
pub const MAX_KINKS: usize = 2;

/// The kinks of one sample's loss as positions of z, smallest first.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Kinks {
    at: [f64; MAX_KINKS],
    len: usize,
}

impl Kinks {
    /// From at most [`MAX_KINKS`] positions, smallest first.
    pub fn new(list: &[f64]) -> Self {
        let mut at = [0.0; MAX_KINKS];
        at[..list.len()].copy_from_slice(list);
        Kinks { at, len: list.len() }
    }

    /// The positions, smallest first.
    pub fn as_slice(&self) -> &[f64] {
        &self.at[..self.len]
    }

    /// The piece that `z` lies on: how many kinks it exceeds.
    #[inline]
    pub fn piece(&self, z: f64) -> u8 {
        self.as_slice().iter().filter(|kink| z > **kink).count() as u8
    }
}

/// One sample's loss.
pub trait Loss: std::fmt::Debug + Send + Sync {
    /// The registry name.
    fn name(&self) -> &'static str;

    /// Where one piece ends and the next begins; none for a loss that is smooth everywhere.
    fn kinks(&self, _y: f64) -> Kinks {
        Kinks::default()
    }

    /// ℓ, ℓ' and ℓ'' by the formula of `piece` (0 below the first kink), continued smoothly beyond the piece's ends.
    fn at_piece(&self, piece: u8, z: f64, y: f64) -> LossAt;

    /// ℓ, ℓ' and ℓ'' at predictor `z` and target `y`; at a kink, those of the piece below it.
    fn at(&self, z: f64, y: f64) -> LossAt {
        // Next to a kink rounding may say less than 0, which no loss is and no root is taken of.
        let l = self.at_piece(self.kinks(y).piece(z), z, y);
        LossAt { value: l.value.max(0.0), ..l }
    }

    /// Whether there is more than one piece.
    fn has_pieces(&self) -> bool {
        !self.kinks(1.0).as_slice().is_empty()
    }

    /// Whether ℓ' jumps at a kink.
    fn is_kinked(&self) -> bool {
        let y = 1.0;
        let jumps = |(k, &z): (usize, &f64)| {
            let (below, above) = (self.at_piece(k as u8, z, y), self.at_piece(k as u8 + 1, z, y));
            above.slope > below.slope
        };
        self.kinks(y).as_slice().iter().enumerate().any(jumps)
    }

    /// The size of ℓ' for a predictor that is wrong by one unit: what violations of the optimality conditions are
    /// measured against.
    fn slope_unit(&self) -> f64;

    /// [`Loss::at`] for many samples (one virtual call for the lot).
    fn fill(&self, z: &[f64], y: &[f64], out: &mut Losses) {
        fill_losses(self, z, y, out);
    }

    /// Which targets make sense.
    fn target(&self) -> TargetKind;

    /// What a target would have to be, where `y` is none for this loss.
    fn needs(&self, _y: f64) -> Option<&'static str> {
        None
    }

    /// What is predicted at predictor z, in the units of the target that the loss sees: z itself, unless there is a link.
    fn response(&self, z: f64) -> f64 {
        z
    }

    /// By how much a target is off, signed: y − z, or what is comparable between rows where there is a link.
    fn residual(&self, z: f64, y: f64) -> f64 {
        y - z
    }

    /// Whether a predictor is a target, so that targets may be shifted and scaled. Not so where there is a link.
    fn is_in_units_of_the_target(&self) -> bool {
        true
    }

    /// Whether ℓ = (z − y)²: then far rows may be summed up exactly, as moments.
    fn is_squared_residual(&self) -> bool {
        false
    }

    /// Predictors beyond this size, in a fit that gets no further, mean that nothing bounds the solution: the loss is
    /// flat there, to rounding.
    fn flat_beyond(&self) -> f64 {
        f64::INFINITY
    }

    /// The probability of the class +1 at predictor z, where the loss is that of a probability model.
    fn probability(&self, _z: f64) -> Option<f64> {
        None
    }

    /// The factor C inside ℓ, where the loss has one.
    fn c(&self) -> Option<f64> {
        None
    }
}

wide_loop! {
    fn fill_losses<L: Loss>(loss: &L, z: &[f64], y: &[f64], out: &mut Losses) {
        let n = z.len();
        let y = &y[..n];
        for array in [&mut out.value, &mut out.slope, &mut out.curvature] {
            array.resize(n, 0.0);
        }
        let (value, slope, curvature) = (&mut out.value[..n], &mut out.slope[..n], &mut out.curvature[..n]);
        for i in 0..n {
            let at = loss.at(z[i], y[i]);
            (value[i], slope[i], curvature[i]) = (at.value, at.slope, at.curvature);
        }
    }
}

/// The factor C.
const C: Parameter = Parameter {
    name: "c",
    option: "c",
    default: 1.0,
    range: Range::Above(0.0),
    help: "Loss factor of the classifiers and of the support vector regressions",
};

/// Numbers a loss may take; each loss reads its own. In files: `{"c": 1.0, "epsilon": 0.1, "quantile": 0.5}`, with every
/// parameter of any loss.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LossParameters(Values);

impl LossParameters {
    /// The defaults with another C.
    pub fn with_c(c: f64) -> Self {
        Self::default().with_factor(c)
    }

    /// With another C.
    pub fn with_factor(self, c: f64) -> Self {
        self.with(&C, c)
    }

    /// With another value of a parameter.
    pub fn with(mut self, parameter: &Parameter, value: f64) -> Self {
        // Only what differs is kept: equal parameters are equal however they were given.
        let others = self.0.iter().filter(|(name, _)| *name != parameter.name).collect::<Vec<_>>();
        self.0 = Values::of(&others);
        if value != parameter.default {
            self.0.set(parameter.name, value);
        }
        self
    }

    /// With another value of the parameter of this name; names that no loss has are refused.
    pub fn set(self, name: &str, value: f64) -> Result<Self> {
        let parameters = REGISTRY.parameters();
        match parameters.iter().find(|p| p.name == name) {
            Some(parameter) => Ok(self.with(parameter, value)),
            None => Err(Error::UnknownName {
                what: "parameter of a loss",
                name: name.into(),
                choices: parameters.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// The factor C.
    pub fn c(&self) -> f64 {
        self.0.get(&C)
    }

    /// The value of a parameter.
    pub fn get(&self, parameter: &Parameter) -> f64 {
        self.0.get(parameter)
    }

    /// The values that are not defaults.
    pub fn values(&self) -> &Values {
        &self.0
    }

    /// Refuses values that no loss could make sense of.
    pub fn validate(&self) -> Result<()> {
        REGISTRY.parameters().iter().try_for_each(|p| p.check(self.get(p)).map(drop))
    }
}

impl Serialize for LossParameters {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(REGISTRY.parameters().iter().map(|p| (p.name, self.get(p))))
    }
}

impl<'de> Deserialize<'de> for LossParameters {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let words = BTreeMap::<String, f64>::deserialize(deserializer)?;
        // The file has the parameters of every loss that its writer knew; those of the others are no business of this one.
        let known = |out: Self, p: &Parameter| words.get(p.name).map(|&v| out.clone().with(p, v)).unwrap_or(out);
        Ok(REGISTRY.parameters().iter().fold(Self::default(), known))
    }
}

/// Every loss. Others are added by [`Registry::register`].
pub static REGISTRY: Registry<dyn Loss> = Registry::new(
    "loss",
    &[
        Row { name: "squared", summary: "(z - y)^2, regression", parameters: &[], build: &|_| Box::new(Squared) },
        Row {
            name: "logistic",
            summary: "C ln(1 + exp(-yz)), two classes",
            parameters: &[C],
            build: &|p| Box::new(Logistic { c: p.get(&C) }),
        },
        Row {
            name: "hinge",
            summary: "C max(0, 1 - yz), two classes",
            parameters: &[C],
            build: &|p| Box::new(Hinge { c: p.get(&C) }),
        },
        Row {
            name: "squared-hinge",
            summary: "C max(0, 1 - yz)^2, two classes",
            parameters: &[C],
            build: &|p| Box::new(SquaredHinge { c: p.get(&C) }),
        },
        Row {
            name: "epsilon-insensitive",
            summary: "C max(0, |z - y| - epsilon), regression",
            parameters: &[C, epsilon_insensitive::EPSILON],
            build: &|p| Box::new(EpsilonInsensitive { c: p.get(&C), epsilon: p.get(&epsilon_insensitive::EPSILON) }),
        },
        Row {
            name: "quantile",
            summary: "C max(q (y - z), (1 - q)(z - y)), regression",
            parameters: &[C, quantile::QUANTILE],
            build: &|p| Box::new(Quantile { c: p.get(&C), tau: p.get(&quantile::QUANTILE) }),
        },
        Row {
            name: "expectile",
            summary: "C q (z - y)^2 below y, C (1 - q)(z - y)^2 above, regression",
            parameters: &[C, expectile::EXPECTILE],
            build: &|p| Box::new(Expectile { c: p.get(&C), tau: p.get(&expectile::EXPECTILE) }),
        },
        Row {
            name: "poisson",
            summary: "exp(z) - yz + y ln y - y, counts",
            parameters: &[],
            build: &|_| Box::new(Poisson),
        },
    ],
);

/// Builds a loss by name.
pub fn by_name(name: &str, parameters: &LossParameters) -> Result<Box<dyn Loss>> {
    parameters.validate()?;
    REGISTRY.row(name)?.build(parameters.values())
}
