//! What the age-path is compared with, each behind one interface: a [`Baseline`] fits the training rows of a [`Task`] and
//! predicts its test rows. Baselines that have ages choose theirs on the task's validation rows, like the age-path itself.

mod compare;
mod linear;
mod lssvm;
mod mospl;
mod robust_svm;

pub use compare::{CompareOptions, Comparison, Row, compare};
pub use linear::{Acs, AgePath, HuberLasso, Original, huber_fit};
pub use lssvm::{LsSvm, RLsSvm, ReLsSvm};
pub use mospl::{FrontPoint, Mospl, MosplOptions, front};
pub use robust_svm::{RobustSvm, robust_svm};

use crate::dataset::Dataset;
use crate::error::Result;
use crate::loss::TargetKind;
use crate::prepare::Prepared;
use crate::select::{Holdout, Metric};

/// Rows to learn from and rows to predict.
#[derive(Debug)]
pub struct Task {
    /// All rows to learn from, for baselines without an age.
    pub all: Prepared,
    /// The same rows, a part of which validates, for those with one.
    pub divided: Prepared,
    /// Rows to predict, in the user's units.
    pub test: Dataset,
    /// What is measured on the test rows, and what ages are chosen by.
    pub metric: &'static Metric,
    /// Seed of whatever a baseline draws.
    pub seed: u64,
}

/// What a baseline made of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The score on the test rows, in the user's units.
    pub score: f64,
    /// The chosen age, where there is one.
    pub age: Option<f64>,
    /// The best score on the test rows over all ages: the protocol of papers that choose by the test rows. Not to be
    /// compared with the other figures.
    pub test_selected: Option<f64>,
}

impl Outcome {
    fn plain(score: f64) -> Outcome {
        Outcome { score, age: None, test_selected: None }
    }
}

/// A way of learning.
pub trait Baseline: std::fmt::Debug + Sync {
    /// The name users type.
    fn name(&self) -> &'static str;

    /// One line for `--help` and the documentation.
    fn summary(&self) -> &'static str;

    /// The targets it can learn; none: both.
    fn kind(&self) -> Option<TargetKind> {
        None
    }

    /// Learns and predicts.
    fn run(&self, task: &Task) -> Result<Outcome>;
}

/// Every baseline with its usual settings, the age-path first.
pub fn registry() -> Vec<Box<dyn Baseline>> {
    vec![
        Box::new(AgePath),
        Box::new(Original),
        Box::new(Acs::default()),
        Box::new(Mospl::default()),
        Box::new(HuberLasso),
        Box::new(LsSvm::default()),
        Box::new(RLsSvm::default()),
        Box::new(ReLsSvm::default()),
        Box::new(RobustSvm::default()),
    ]
}

impl Task {
    /// The test rows in the units of `prepared`.
    fn test_rows(&self, prepared: &Prepared) -> Result<Holdout> {
        Holdout::new(&prepared.problem, &self.test, &prepared.scaling, self.metric)
    }

    /// The validation rows, which a divided task has.
    fn validation_rows(&self) -> Result<Holdout> {
        let prepared = &self.divided;
        let rows = prepared.validation.as_ref().unwrap_or(&prepared.train);
        Holdout::new(&prepared.problem, rows, &prepared.scaling, self.metric)
    }

    /// The solution (an age if it has one, and parameters) that the validation rows like best, scored on the test rows.
    fn choose(&self, solutions: &[(Option<f64>, Vec<f64>)]) -> Result<Outcome> {
        let (validation, test) = (self.validation_rows()?, self.test_rows(&self.divided)?);
        let score = |rows: &Holdout, theta: &[f64]| rows.score(&rows.predict(theta));
        let better = |a: f64, b: f64| self.metric.advantage(a, b) > 0.0;
        let mut best: Option<(f64, usize)> = None;
        let mut test_selected: Option<f64> = None;
        for (k, (_, theta)) in solutions.iter().enumerate() {
            let (held, tested) = (score(&validation, theta), score(&test, theta));
            if best.is_none_or(|(s, _)| better(held, s)) {
                best = Some((held, k));
            }
            if test_selected.is_none_or(|s| better(tested, s)) {
                test_selected = Some(tested);
            }
        }
        let (_, k) = best.unwrap_or((f64::NAN, 0));
        let chosen = solutions.get(k).map_or(f64::NAN, |(_, theta)| score(&test, theta));
        Ok(Outcome { score: chosen, age: solutions.get(k).and_then(|s| s.0), test_selected })
    }
}
