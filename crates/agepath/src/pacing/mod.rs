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

pub use hard::Hard;
pub use huber::Huber;
pub use linear::Linear;
pub use log::Log;
pub use mixture::Mixture;

use crate::error::{Error, Result};
use crate::linalg::wide_loop;
use serde::{Deserialize, Serialize};

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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PacingSpec {
    /// [`Hard`]
    Hard,
    /// [`Linear`]
    Linear,
    /// [`Mixture`]
    Mixture {
        /// γ > 0
        gamma: f64,
    },
    /// [`Log`]
    Log {
        /// a > 0
        a: f64,
    },
    /// [`Huber`]
    Huber,
}

/// Parameters a pacing may take; each pacing reads its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacingParameters {
    /// γ of the mixture pacing. Default 0.5; above 0.
    pub gamma: f64,
    /// a of the LOG pacing. Default 1; above 0.
    pub a: f64,
}

impl Default for PacingParameters {
    fn default() -> Self {
        PacingParameters { gamma: 0.5, a: 1.0 }
    }
}

/// One row of the registry.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `--help` and the documentation.
    pub summary: &'static str,
    /// The specification for given parameters.
    pub spec: fn(&PacingParameters) -> PacingSpec,
}

/// Every pacing.
pub const REGISTRY: &[Entry] = &[
    Entry { name: "hard", summary: "v = 1 while the loss is below the age, else 0", spec: |_| PacingSpec::Hard },
    Entry { name: "linear", summary: "v = max(0, 1 - loss/age)", spec: |_| PacingSpec::Linear },
    Entry {
        name: "mixture",
        summary: "1 for small losses, 0 for large ones, gamma (1/sqrt(loss) - 1/age) between",
        spec: |p| PacingSpec::Mixture { gamma: p.gamma },
    },
    Entry {
        name: "log",
        summary: "1 while the loss is below the age, else (1 + a age)/(1 + a loss)",
        spec: |p| PacingSpec::Log { a: p.a },
    },
    Entry {
        name: "huber",
        summary: "1 while the root of the loss is below the age, else age/sqrt(loss)",
        spec: |_| PacingSpec::Huber,
    },
];

impl PacingSpec {
    /// By registry name.
    pub fn by_name(name: &str, parameters: &PacingParameters) -> Result<PacingSpec> {
        match REGISTRY.iter().find(|e| e.name == name) {
            Some(entry) => Ok((entry.spec)(parameters)),
            None => Err(Error::UnknownName {
                what: "pacing",
                name: name.into(),
                choices: REGISTRY.iter().map(|e| e.name).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Checks the parameters and builds the pacing.
    pub fn build(self) -> Result<Box<dyn Pacing>> {
        let positive = |name: &'static str, x: f64| {
            if x > 0.0 && x.is_finite() {
                Ok(x)
            } else {
                Err(Error::Option { name, value: x.to_string(), expected: "a finite number above 0".into() })
            }
        };
        Ok(match self {
            PacingSpec::Hard => Box::new(Hard),
            PacingSpec::Linear => Box::new(Linear),
            PacingSpec::Mixture { gamma } => Box::new(Mixture { gamma: positive("pacing-gamma", gamma)? }),
            PacingSpec::Log { a } => Box::new(Log { a: positive("pacing-a", a)? }),
            PacingSpec::Huber => Box::new(Huber),
        })
    }
}
