//! Pacings: how much a sample of loss ℓ counts at age λ.
//!
//! A pacing (self-paced regularizer) is f(v, λ); its best weight v*(ℓ, λ) = argmin over v ∈ [0, 1] of vℓ + f(v, λ) is
//! piecewise smooth in ℓ. The pieces are *zones*, separated by thresholds τ_k(λ).
//!
//! Ages enter as the inverse age u = 1/λ, so that λ = ∞ is the ordinary number u = 0: there the problem is convex and
//! every path that comes down starts. Thresholds are given as 1/τ, which is finite at u = 0 for the same reason. The
//! derivative in the age itself is ∂v/∂λ = −u² ∂v/∂u.
//!
//! To add one: a file with f, v*, its zones and derivatives, and one row in [`REGISTRY`].

mod hard;
mod huber;
mod linear;
mod log;
mod mixture;
mod polynomial;
mod welsch;

pub use hard::Hard;
pub use huber::Huber;
pub use linear::Linear;
pub use log::Log;
pub use mixture::Mixture;
pub use polynomial::Polynomial;
pub use welsch::Welsch;

use crate::error::Result;
use crate::linalg::wide_loop;
use crate::registry::{Registry, Row, Values};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A weight and its derivatives.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WeightAt {
    /// v
    pub value: f64,
    /// ∂v/∂ℓ
    pub by_loss: f64,
    /// ∂v/∂u with u = 1/λ
    pub by_inverse_age: f64,
}

/// [`WeightAt`] of many samples, one array per quantity.
#[derive(Debug, Clone, Default)]
pub struct Weights {
    /// v
    pub value: Vec<f64>,
    /// ∂v/∂ℓ
    pub by_loss: Vec<f64>,
    /// ∂v/∂u
    pub by_inverse_age: Vec<f64>,
}

/// An inverse threshold 1/τ(u) between two zones, and its derivative.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cut {
    /// 1/τ
    pub value: f64,
    /// ∂(1/τ)/∂u
    pub slope: f64,
}

/// At most this many thresholds.
pub const MAX_CUTS: usize = 2;

/// The thresholds at one age, smallest loss first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cuts {
    cuts: [Cut; MAX_CUTS],
    len: usize,
}

impl Cuts {
    /// From a slice of at most [`MAX_CUTS`] cuts, smallest loss first.
    pub fn new(list: &[Cut]) -> Self {
        let mut cuts = [Cut::default(); MAX_CUTS];
        cuts[..list.len()].copy_from_slice(list);
        Cuts { cuts, len: list.len() }
    }

    /// The cuts, smallest loss first.
    pub fn as_slice(&self) -> &[Cut] {
        &self.cuts[..self.len]
    }

    /// The zone of a loss: how many thresholds it exceeds.
    #[inline]
    pub fn zone(&self, loss: f64) -> u8 {
        self.as_slice().iter().filter(|cut| loss * cut.value > 1.0).count() as u8
    }
}

/// F = root·√ℓ + linear·ℓ + square·ℓ² + const, each coefficient affine in the inverse age: `c[0] + c[1]·u`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ZonePolynomial {
    /// Coefficient of √ℓ.
    pub root: [f64; 2],
    /// Coefficient of ℓ.
    pub linear: [f64; 2],
    /// Coefficient of ℓ².
    pub square: [f64; 2],
}

/// A self-paced regularizer.
pub trait Pacing: std::fmt::Debug + Send + Sync {
    /// Name and parameters, as they are written to files.
    fn spec(&self) -> PacingSpec;

    /// Names of the zones, smallest loss first; one more than there are thresholds.
    fn zones(&self) -> &'static [&'static str];

    /// The thresholds at inverse age `u`.
    fn cuts(&self, u: f64) -> Cuts;

    /// v* and its derivatives by the formula of `zone`, continued smoothly beyond the zone's ends.
    fn at(&self, zone: u8, loss: f64, u: f64) -> WeightAt;

    /// [`Pacing::at`] for many samples (one virtual call for the lot).
    fn fill(&self, zones: &[u8], losses: &[f64], u: f64, out: &mut Weights) {
        fill_weights(self, zones, losses, u, out);
    }

    /// F(ℓ) = ∫₀^ℓ v*(τ) dτ: what is minimised once v is eliminated.
    fn primitive(&self, loss: f64, u: f64) -> f64;

    /// s·F(ℓ) for many samples (one virtual call for the lot).
    fn fill_primitives(&self, scales: &[f64], losses: &[f64], u: f64, out: &mut Vec<f64>) {
        fill_paced(self, scales, losses, u, out);
    }

    /// F in `zone` as a polynomial in √ℓ, where it is one.
    fn polynomial(&self, _zone: u8) -> Option<ZonePolynomial> {
        None
    }

    /// f(v, λ).
    fn regularizer(&self, v: f64, age: f64) -> f64;

    /// Whether v* is continuous across the thresholds. Where it is not, touching one is always a jump.
    fn is_continuous(&self) -> bool {
        true
    }

    /// Rows of at most this weight are left out: 0, or ½ where no weight is ever 0.
    fn left_out(&self) -> f64 {
        0.0
    }

    /// v* at the zone that `loss` lies in.
    fn weight(&self, loss: f64, u: f64) -> f64 {
        self.at(self.cuts(u).zone(loss), loss, u).value
    }
}

wide_loop! {
    fn fill_weights<P: Pacing>(pacing: &P, zones: &[u8], losses: &[f64], u: f64, out: &mut Weights) {
        let n = losses.len();
        let zones = &zones[..n];
        for array in [&mut out.value, &mut out.by_loss, &mut out.by_inverse_age] {
            array.resize(n, 0.0);
        }
        let (value, by_loss, by_age) = (&mut out.value[..n], &mut out.by_loss[..n], &mut out.by_inverse_age[..n]);
        for i in 0..n {
            let at = pacing.at(zones[i], losses[i], u);
            (value[i], by_loss[i], by_age[i]) = (at.value, at.by_loss, at.by_inverse_age);
        }
    }
}

wide_loop! {
    fn fill_paced<P: Pacing>(pacing: &P, scales: &[f64], losses: &[f64], u: f64, out: &mut Vec<f64>) {
        let n = losses.len();
        let scales = &scales[..n];
        out.resize(n, 0.0);
        let out = &mut out[..n];
        for i in 0..n {
            out[i] = scales[i] * pacing.primitive(losses[i], u);
        }
    }
}

/// A pacing's name and parameters: `{"kind": "mixture", "gamma": 0.5}`.
#[derive(Debug, Clone, PartialEq)]
pub struct PacingSpec {
    /// The name.
    pub kind: &'static str,
    /// A value for each of its parameters.
    pub values: Values,
}

impl PacingSpec {
    /// For [`Pacing::spec`]: the name and a value for each parameter.
    pub fn new(kind: &'static str, values: &[(&'static str, f64)]) -> PacingSpec {
        PacingSpec { kind, values: Values::of(values) }
    }

    /// By registry name; the values may be of other pacings' parameters, too.
    pub fn by_name(name: &str, values: &Values) -> Result<PacingSpec> {
        let row = REGISTRY.row(name)?;
        Ok(PacingSpec { kind: row.name, values: values.over(row.parameters) })
    }

    /// Checks the parameters and builds the pacing.
    pub fn build(&self) -> Result<Box<dyn Pacing>> {
        REGISTRY.row(self.kind)?.build(&self.values)
    }
}

impl Serialize for PacingSpec {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind)?;
        for (name, value) in self.values.iter() {
            map.serialize_entry(name, &value)?;
        }
        map.end()
    }
}

/// The words of a file: a name, and numbers.
#[derive(Deserialize)]
struct Words {
    kind: String,
    #[serde(flatten)]
    values: BTreeMap<String, f64>,
}

impl<'de> Deserialize<'de> for PacingSpec {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let Words { kind, values } = Words::deserialize(deserializer)?;
        let row = REGISTRY.row(&kind).map_err(serde::de::Error::custom)?;
        let mut known = Values::default();
        for (name, value) in values {
            let parameter = row.parameters.iter().find(|p| p.name == name);
            let parameter = parameter
                .ok_or_else(|| serde::de::Error::custom(format!("the pacing {kind} has no parameter \"{name}\"")))?;
            known.set(parameter.name, value);
        }
        Ok(PacingSpec { kind: row.name, values: known.over(row.parameters) })
    }
}

/// Every pacing. Others are added by [`Registry::register`].
pub static REGISTRY: Registry<dyn Pacing> = Registry::new(
    "pacing",
    &[
        Row {
            name: "hard",
            summary: "v = 1 while the loss is below the age, else 0",
            parameters: &[],
            build: &|_| Box::new(Hard),
        },
        Row { name: "linear", summary: "v = max(0, 1 - loss/age)", parameters: &[], build: &|_| Box::new(Linear) },
        Row {
            name: "mixture",
            summary: "1 for small losses, 0 for large ones, gamma (1/sqrt(loss) - 1/age) between",
            parameters: &[mixture::GAMMA],
            build: &|p| Box::new(Mixture { gamma: p.get(&mixture::GAMMA) }),
        },
        Row {
            name: "log",
            summary: "1 while the loss is below the age, else (1 + a age)/(1 + a loss)",
            parameters: &[log::A],
            build: &|p| Box::new(Log { a: p.get(&log::A) }),
        },
        Row {
            name: "huber",
            summary: "1 while the root of the loss is below the age, else age/sqrt(loss)",
            parameters: &[],
            build: &|_| Box::new(Huber),
        },
        Row {
            name: "polynomial",
            summary: "v = max(0, 1 - loss/age)^p; p = 2 with the squared loss is Tukey's biweight",
            parameters: &[polynomial::P],
            build: &|p| Box::new(Polynomial { p: p.get(&polynomial::P) }),
        },
        Row { name: "welsch", summary: "v = exp(-loss/age)", parameters: &[], build: &|_| Box::new(Welsch) },
    ],
);
