//! Model names: presets over loss, penalty and sample scale.

use crate::error::{Error, Result};
use crate::loss::{self, LossParameters, TargetKind};
use crate::penalty::Penalty;
use crate::space::{Gamma, Kernel};
use serde::{Deserialize, Serialize};
use std::sync::{PoisonError, RwLock};

/// How a sample weight ω_i becomes the scale s_i in front of its loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SampleScale {
    /// s_i = ω_i / (2 Σ ω): the Lasso's (1/2n) Σ v r².
    HalfMean,
    /// s_i = ω_i / Σ ω: the mean of generalised linear models.
    Mean,
    /// s_i = ω_i: the plain sum of SVM and logistic regression.
    Sum,
}

/// Strength parameters of a model; each model reads its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Strength {
    /// Penalty strength of the regressions. Default 0.005; 0 or more.
    pub alpha: f64,
    /// Share of L1 in the elastic net's penalty. Default 1; from 0 to 1.
    pub l1_ratio: f64,
    /// Numbers of the loss: the factor C of the classifiers, and what other losses take.
    pub loss: LossParameters,
}

impl Default for Strength {
    fn default() -> Self {
        Strength { alpha: 0.005, l1_ratio: 1.0, loss: LossParameters::default() }
    }
}

/// One row of the registry.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// The name users type.
    pub name: &'static str,
    /// One line for `--help` and the documentation.
    pub summary: &'static str,
    /// Registry name of its loss.
    pub loss: &'static str,
    /// How samples are scaled.
    pub scale: SampleScale,
    /// Its penalty for given strengths.
    pub penalty: fn(&Strength) -> Penalty,
    /// Its kernel unless told otherwise; none: linear space.
    pub kernel: Option<Kernel>,
}

/// The kernel of models that are mostly used with one.
const RBF: Option<Kernel> = Some(Kernel::Rbf { gamma: Gamma::SCALE });

/// Every model.
pub const REGISTRY: &[Model] = &[
    Model {
        name: "lasso",
        summary: "(1/2n) sum v r^2 + alpha |w|_1",
        loss: "squared",
        scale: SampleScale::HalfMean,
        penalty: |s| Penalty::L1 { alpha: s.alpha },
        kernel: None,
    },
    Model {
        name: "elastic-net",
        summary: "(1/2n) sum v r^2 + alpha (ratio |w|_1 + (1 - ratio)/2 |w|^2)",
        loss: "squared",
        scale: SampleScale::HalfMean,
        penalty: |s| Penalty::ElasticNet { alpha: s.alpha, l1_ratio: s.l1_ratio },
        kernel: None,
    },
    Model {
        name: "ridge",
        summary: "(1/2n) sum v r^2 + alpha/2 |w|^2",
        loss: "squared",
        scale: SampleScale::HalfMean,
        penalty: |s| Penalty::L2 { alpha: s.alpha },
        kernel: None,
    },
    Model {
        name: "least-squares",
        summary: "(1/2n) sum v r^2",
        loss: "squared",
        scale: SampleScale::HalfMean,
        penalty: |_| Penalty::None,
        kernel: None,
    },
    Model {
        name: "logistic",
        summary: "|w|^2/2 + C sum v ln(1 + exp(-yz))",
        loss: "logistic",
        scale: SampleScale::Sum,
        penalty: |_| Penalty::L2 { alpha: 1.0 },
        kernel: None,
    },
    Model {
        name: "svm",
        summary: "|w|^2/2 + C sum v max(0, 1 - yz)",
        loss: "hinge",
        scale: SampleScale::Sum,
        penalty: |_| Penalty::L2 { alpha: 1.0 },
        kernel: RBF,
    },
    Model {
        name: "squared-svm",
        summary: "|w|^2/2 + C sum v max(0, 1 - yz)^2",
        loss: "squared-hinge",
        scale: SampleScale::Sum,
        penalty: |_| Penalty::L2 { alpha: 1.0 },
        kernel: RBF,
    },
    Model {
        name: "svr",
        summary: "|w|^2/2 + C sum v max(0, |z - y| - epsilon)",
        loss: "epsilon-insensitive",
        scale: SampleScale::Sum,
        penalty: |_| Penalty::L2 { alpha: 1.0 },
        kernel: RBF,
    },
    Model {
        name: "quantile",
        summary: "|w|^2/2 + C sum v max(q (y - z), (1 - q)(z - y))",
        loss: "quantile",
        scale: SampleScale::Sum,
        penalty: |_| Penalty::L2 { alpha: 1.0 },
        kernel: RBF,
    },
    Model {
        name: "expectile",
        summary: "|w|^2/2 + C sum v (q or 1 - q)(z - y)^2",
        loss: "expectile",
        scale: SampleScale::Sum,
        penalty: |_| Penalty::L2 { alpha: 1.0 },
        kernel: RBF,
    },
    Model {
        name: "poisson",
        summary: "(1/n) sum v (exp(z) - yz + y ln y - y) + alpha/2 |w|^2, counts",
        loss: "poisson",
        scale: SampleScale::Mean,
        penalty: |s| Penalty::L2 { alpha: s.alpha },
        kernel: None,
    },
];

/// Models that the process has added.
static ADDED: RwLock<Vec<&'static Model>> = RwLock::new(Vec::new());

/// Every model: those of this crate, then what was registered.
pub fn all() -> Vec<&'static Model> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    REGISTRY.iter().chain(added.iter().copied()).collect()
}

/// Adds a model for the rest of the process, so that its name works in options and in files. Its loss must be known, and its
/// name must not.
pub fn register(model: Model) -> Result<&'static Model> {
    loss::REGISTRY.row(model.loss)?;
    if all().iter().any(|known| known.name == model.name) {
        let expected = "a name that is not taken".into();
        return Err(Error::Option { name: "model", value: model.name.into(), expected });
    }
    let model: &'static Model = Box::leak(Box::new(model));
    ADDED.write().unwrap_or_else(PoisonError::into_inner).push(model);
    Ok(model)
}

impl Model {
    /// The model for a target when none is named: the first in the registry whose loss takes such targets.
    pub fn default_for(kind: TargetKind) -> &'static Model {
        let fits = |model: &&Model| {
            loss::by_name(model.loss, &LossParameters::default()).is_ok_and(|loss| loss.target() == kind)
        };
        // Both kinds of target have a model in the registry: a test asks for each.
        REGISTRY.iter().find(fits).unwrap_or(&REGISTRY[0])
    }

    /// The kind of its penalty.
    pub fn penalty_kind(&self) -> &'static str {
        (self.penalty)(&Strength::default()).kind()
    }

    /// By the registry name of its loss and the kind of its penalty (none: the first model with that loss).
    pub fn by_factors(loss: &str, penalty: Option<&str>) -> Result<&'static Model> {
        let fits = |m: &&Model| m.loss == loss && penalty.is_none_or(|kind| m.penalty_kind() == kind);
        all().into_iter().find(fits).ok_or_else(|| Error::UnknownName {
            what: "combination of loss and penalty",
            name: format!("{loss} + {}", penalty.unwrap_or("any")),
            choices: all().iter().map(|m| format!("{} + {}", m.loss, m.penalty_kind())).collect::<Vec<_>>().join(", "),
        })
    }

    /// By registry name.
    pub fn by_name(name: &str) -> Result<&'static Model> {
        all().into_iter().find(|m| m.name == name).ok_or_else(|| Error::UnknownName {
            what: "model",
            name: name.into(),
            choices: all().iter().map(|m| m.name).collect::<Vec<_>>().join(", "),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_target_has_its_default() {
        assert_eq!(Model::default_for(TargetKind::Real).name, "lasso");
        assert_eq!(Model::default_for(TargetKind::Sign).name, "logistic");
    }

    #[test]
    fn factors_name_a_model() {
        assert_eq!(Model::by_factors("squared", Some("l2")).unwrap().name, "ridge");
        assert_eq!(Model::by_factors("logistic", None).unwrap().name, "logistic");
        let error = Model::by_factors("squared", Some("l7")).unwrap_err().to_string();
        assert!(error.contains("squared + elastic-net"), "{error}");
    }
}
