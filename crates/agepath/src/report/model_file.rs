//! `model.json`: the chosen model in the user's own units.

use super::Choice;
use crate::prepare::Prepared;
use serde::{Deserialize, Serialize};

/// prediction = intercept + Σ coef_j x_j, in the user's units; with classes, its sign chooses between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFile {
    /// "agepath.model/1"
    pub format: String,
    /// Registry name of the model.
    pub model: String,
    /// The chosen age.
    pub age: f64,
    /// Name of the target.
    pub target: String,
    /// The class names in the order −1, +1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<[String; 2]>,
    /// Names of the features.
    pub features: Vec<String>,
    /// One per feature.
    pub coef: Vec<f64>,
    /// The intercept; centred columns give one even to a model without.
    pub intercept: f64,
    /// Relative KKT residual of the solution.
    pub kkt: f64,
    /// The metric the age was chosen by.
    pub metric: String,
    /// Its value on the validation rows.
    pub score: f64,
}

impl ModelFile {
    /// The chosen model of a run.
    pub fn new(prepared: &Prepared, choice: &Choice) -> ModelFile {
        let point = &choice.point;
        let (coef, intercept) = prepared.scaling.undo(&point.coef, point.intercept);
        ModelFile {
            format: "agepath.model/1".into(),
            model: prepared.model.name.into(),
            age: point.age,
            target: prepared.train.target_name().into(),
            classes: prepared.train.classes().cloned(),
            features: prepared.train.features().to_vec(),
            coef,
            intercept,
            kkt: point.kkt,
            metric: choice.selection.metric.clone(),
            score: choice.selection.score,
        }
    }
}
