//! `model.json`: the chosen model in the user's own units.

use super::Restored;
use crate::decide::Choice;
use crate::path::Point;
use crate::prepare::Prepared;
use crate::space::Kernel;
use serde::{Deserialize, Serialize};

/// The first field of the file.
pub(super) const MODEL_FORMAT: &str = "agepath.model/1";

/// prediction = intercept + Σ coef_j x_j, in the user's units; with classes, its sign chooses between them. With a kernel,
/// see [`KernelModel`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFile {
    /// "agepath.model/1"
    pub format: String,
    /// Registry name of the model.
    pub model: String,
    /// The chosen age.
    pub age: f64,
    /// Whether it is the ordinary fit, which trusts every row; the age is then the largest of the path and stands for infinity.
    #[serde(default)]
    pub ordinary: bool,
    /// Name of the target.
    pub target: String,
    /// The class names in the order −1, +1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<[String; 2]>,
    /// Names of the features.
    pub features: Vec<String>,
    /// One per feature; none with a kernel.
    pub coef: Vec<f64>,
    /// The intercept; centred columns give one even to a model without.
    pub intercept: f64,
    /// The kernel and the rows it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelModel>,
    /// Relative KKT residual of the solution.
    pub kkt: f64,
    /// The metric the age was chosen by, if it was chosen.
    pub metric: Option<String>,
    /// Its value on the rows that chose the age.
    pub score: Option<f64>,
}

impl ModelFile {
    /// The model of a run at a point of its path.
    pub fn new(prepared: &Prepared, point: &Point, choice: Option<&Choice>) -> ModelFile {
        let kernel = KernelModel::new(prepared, point);
        let (coef, intercept) = match &kernel {
            Some(_) => (Vec::new(), prepared.scaling.predict(point.intercept)),
            None => prepared.scaling.undo(&point.coef, point.intercept),
        };
        ModelFile {
            format: MODEL_FORMAT.into(),
            model: prepared.model.name.into(),
            age: point.age,
            ordinary: choice.is_some_and(|c| c.reasons.ordinary),
            target: prepared.train.target_name().into(),
            classes: prepared.train.classes().cloned(),
            features: prepared.train.features().to_vec(),
            coef,
            intercept,
            kernel,
            kkt: point.kkt,
            metric: choice.map(|c| c.selection.metric.clone()),
            score: choice.map(|c| c.selection.score),
        }
    }

    /// Whether this is the solution of a run at a point of its path.
    pub(super) fn is_at(&self, run: &Restored, point: &Point) -> bool {
        let dual: Vec<f64> = super::sparse(&point.coef).iter().map(|(_, beta)| beta * run.scaling.y_scale).collect();
        let (ours, (theirs, intercept)) = match &self.kernel {
            Some(kernel) => (&kernel.dual, (dual, run.scaling.predict(point.intercept))),
            None => (&self.coef, run.scaling.undo(&point.coef, point.intercept)),
        };
        let size = theirs.iter().chain(ours).fold(0.0f64, |m, v| m.max(v.abs()));
        let each = ours.iter().zip(&theirs).all(|(a, b)| (a - b).abs() <= SAME * size);
        let unit = intercept.abs() + run.scaling.y_scale;
        ours.len() == theirs.len() && each && (self.intercept - intercept).abs() <= SAME * unit
    }
}

/// Two computations of one solution agree to this: solutions are exact to 1e-9, and bad conditioning costs digits.
const SAME: f64 = 1e-5;

/// prediction = intercept + Σ dual_k k(support_k, x̃), where x̃ is x − x_mean over x_scale, column by column. Only rows whose
/// dual coefficient is not 0 are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelModel {
    /// The kernel, γ as a number.
    pub kernel: Kernel,
    /// What is subtracted from each column.
    pub x_mean: Option<Vec<f64>>,
    /// What each column is divided by.
    pub x_scale: Option<Vec<f64>>,
    /// Rows in the units of x̃; for a precomputed kernel, their numbers among the training rows.
    pub support: Vec<Vec<f64>>,
    /// One per row of `support`, in the user's units of the target.
    pub dual: Vec<f64>,
}

impl KernelModel {
    fn new(prepared: &Prepared, point: &Point) -> Option<KernelModel> {
        let (problem, scaling) = (&prepared.problem, &prepared.scaling);
        let kernel = problem.kernel()?;
        let (rows, dual): (Vec<usize>, Vec<f64>) = super::sparse(&point.coef).into_iter().unzip();
        let columns: Vec<usize> = (0..problem.features()).collect();
        let row = |&i: &usize| {
            if kernel == Kernel::Precomputed {
                return vec![i as f64];
            }
            let mut out = vec![0.0; columns.len()];
            problem.design().copy_row(i, &columns, &mut out);
            out
        };
        Some(KernelModel {
            kernel,
            x_mean: scaling.x_mean.clone(),
            x_scale: scaling.x_scale.clone(),
            support: rows.iter().map(row).collect(),
            dual: dual.into_iter().map(|beta| beta * scaling.y_scale).collect(),
        })
    }
}
