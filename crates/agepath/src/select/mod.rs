//! Chooses an age on rows the path was not computed from: validation rows, or the held-out folds of a cross-validation.
//!
//! Every candidate is an exact solution ([`Path::at`]). Candidates that teach nothing are skipped: hardly any row, no
//! more rows than parameters, or rows of one class only carry them.

mod curve;
mod cv;
mod metric;

pub use cv::{CrossValidation, Fold, cross_validate};
pub use metric::{METRICS, Metric, ScoreOf, Scorer};

use crate::dataset::{Dataset, Scaling};
use crate::error::{Error, Result};
use crate::loss::TargetKind;
use crate::path::Path;
use crate::problem::{NewRows, Problem};
use curve::Curve;
pub(crate) use curve::is_degenerate;
use serde::{Deserialize, Serialize};

/// Which age is chosen from the curve of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Rule {
    /// The best score; of equals the largest age.
    #[default]
    #[serde(rename = "min")]
    Min,
    /// The simplest model whose score is within one standard error of the best. Simpler means closer to the ordinary
    /// fit, which doubts no row: the largest such age.
    #[serde(rename = "1se")]
    OneSe,
}

/// Every rule: the name users type, and one line about it.
pub const RULES: &[(&str, Rule, &str)] = &[
    ("min", Rule::Min, "the best score; of equals the largest age"),
    ("1se", Rule::OneSe, "the largest age within one standard error of the best: fewer rows are doubted"),
];

impl Rule {
    /// By name.
    pub fn by_name(name: &str) -> Result<Rule> {
        let known = RULES.iter().find(|(n, ..)| *n == name);
        known.map(|(_, rule, _)| *rule).ok_or_else(|| Error::UnknownName {
            what: "rule",
            name: name.into(),
            choices: RULES.iter().map(|(n, ..)| *n).collect::<Vec<_>>().join(", "),
        })
    }
}

/// Rows that were held out, in the solver's units, and a metric.
#[derive(Debug)]
pub struct Holdout {
    rows: NewRows,
    target: Vec<f64>,
    /// Sample weights; none: all 1.
    weights: Option<Vec<f64>>,
    /// One solver unit of the target in the user's units.
    unit: f64,
    metric: &'static Metric,
    own: Option<Own>,
}

/// A score of the caller's own, and what it is told.
#[derive(Debug)]
struct Own {
    scorer: Scorer,
    rows: Vec<usize>,
    scaling: Scaling,
}

impl Holdout {
    /// `rows` scaled as the training rows of `problem` were.
    pub fn new(problem: &Problem, rows: &Dataset, scaling: &Scaling, metric: &'static Metric) -> Result<Holdout> {
        let target = scaling.y(rows);
        metric.check(&target, rows.weights())?;
        let design = scaling.design(rows.matrix(), problem.has_intercept())?;
        let weights = rows.weights().map(<[f64]>::to_vec);
        Ok(Holdout { rows: problem.new_rows(design)?, target, weights, unit: scaling.y_scale, metric, own: None })
    }

    /// The same rows, judged by a score of the caller's own.
    pub fn with_own(problem: &Problem, rows: &Dataset, scaling: &Scaling, scorer: &Scorer) -> Result<Holdout> {
        // Any metric of the kind: it is never asked.
        let judged = Holdout::new(problem, rows, scaling, Metric::choose(None, rows.kind())?)?;
        let own = Own { scorer: scorer.clone(), rows: rows.rows().to_vec(), scaling: scaling.clone() };
        Ok(Holdout { metric: Metric::own(rows.kind()), own: Some(own), ..judged })
    }

    /// The predictions of parameters θ, in the solver's units of the target.
    pub fn predict(&self, theta: &[f64]) -> Vec<f64> {
        self.rows.respond(theta)
    }

    /// The predictors of parameters θ, which a link may make predictions of.
    pub fn predictors(&self, theta: &[f64]) -> Vec<f64> {
        self.rows.predict(theta)
    }

    /// The score of predictions z, in the user's units.
    pub fn score(&self, z: &[f64]) -> f64 {
        if let Some(Own { scorer, rows, scaling }) = &self.own {
            let predictors: Vec<f64> = z.iter().map(|&z| scaling.predict(z)).collect();
            return (scorer.0)(rows, &predictors).unwrap_or(f64::NAN);
        }
        self.metric.score(z, &self.target, self.weights.as_deref(), self.unit)
    }

    /// The score without every row whose number is `group` modulo `groups`.
    fn score_without(&self, z: &[f64], group: usize, groups: usize) -> f64 {
        let rest = |v: &[f64]| -> Vec<f64> {
            v.iter().enumerate().filter(|(i, _)| i % groups != group).map(|(_, v)| *v).collect()
        };
        let weights = self.weights.as_deref().map(rest);
        self.metric.score(&rest(z), &rest(&self.target), weights.as_deref(), self.unit)
    }
}

/// What held-out rows are judged by.
#[derive(Debug, Clone, Copy)]
pub enum JudgeBy<'a> {
    /// A metric of the registry.
    Metric(&'static Metric),
    /// A score of the caller's own.
    Own(&'a Scorer),
}

impl JudgeBy<'_> {
    /// The rows, ready to judge.
    pub fn holdout(self, problem: &Problem, rows: &Dataset, scaling: &Scaling) -> Result<Holdout> {
        match self {
            JudgeBy::Metric(metric) => Holdout::new(problem, rows, scaling, metric),
            JudgeBy::Own(scorer) => Holdout::with_own(problem, rows, scaling, scorer),
        }
    }
}

/// A path and rows it was not computed from.
#[derive(Debug, Clone, Copy)]
struct Judge<'a> {
    problem: &'a Problem,
    path: &'a Path,
    holdout: &'a Holdout,
}

impl Judge<'_> {
    /// The predictors of the held-out rows at `age`; none if the solution teaches nothing.
    fn predict(&self, age: f64) -> Result<Option<Vec<f64>>> {
        let point = self.path.at(self.problem, age)?;
        if is_degenerate(self.problem, &point) {
            return Ok(None);
        }
        let z = self.holdout.predict(&theta(self.problem, &point.coef, point.intercept));
        let one_class =
            self.holdout.metric.kind == TargetKind::Sign && z.len() > 1 && z.iter().all(|&v| (v > 0.0) == (z[0] > 0.0));
        Ok((!one_class).then_some(z))
    }
}

/// One candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its age.
    pub age: f64,
    /// Its score on the held-out rows; with folds, the mean over them.
    pub score: f64,
    /// The standard error of the score.
    pub standard_error: f64,
}

/// The chosen age and how the others scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// The chosen age.
    pub age: f64,
    /// Its score.
    pub score: f64,
    /// The standard error of its score.
    pub standard_error: f64,
    /// How it was chosen.
    pub rule: Rule,
    /// Name of the metric.
    pub metric: String,
    /// Whether a larger score is better.
    pub higher_is_better: bool,
    /// Folds of the cross-validation; none: validation rows.
    pub folds: Option<usize>,
    /// What [`Rule::Min`] chooses.
    pub min: Candidate,
    /// What [`Rule::OneSe`] chooses.
    pub one_se: Candidate,
    /// An age that was not tried can be better than the best by at most this, as long as every prediction between two
    /// neighbouring ages of the curve lies between its values there.
    pub gap: f64,
    /// Every candidate, smallest age first.
    pub curve: Vec<Candidate>,
    /// Ages that were tried but where no solution was found.
    pub unsolved: Vec<f64>,
    /// Ages that were tried but whose solution teaches nothing.
    pub degenerate: Vec<f64>,
    /// The score of the ordinary fit, which trusts every row, on the same rows.
    #[serde(default)]
    pub ordinary: Option<f64>,
}

impl Selection {
    /// Whether the ordinary fit scores at least as well as what was chosen.
    pub fn prefers_ordinary(&self) -> bool {
        let gain = |ordinary: f64| if self.higher_is_better { ordinary - self.score } else { self.score - ordinary };
        self.ordinary.is_some_and(|ordinary| gain(ordinary) >= 0.0)
    }
}

/// The age of a path chosen on held-out rows; none if every candidate is degenerate.
pub fn choose(problem: &Problem, path: &Path, holdout: &Holdout, rule: Rule) -> Result<Option<Selection>> {
    select(problem, path, &[Judge { problem, path, holdout }], rule)
}

/// The age of a path chosen by judges, none of which need have seen the path itself.
fn select(problem: &Problem, path: &Path, judges: &[Judge], rule: Rule) -> Result<Option<Selection>> {
    let mut curve = Curve::explore(judges)?;
    loop {
        let (Some(min), Some(one_se)) = (curve.best(), curve.one_se()?) else { return Ok(None) };
        let chosen = if rule == Rule::Min { min } else { one_se };
        if !is_usable(problem, path, chosen.age)? {
            curve.discard(chosen.age);
            continue;
        }
        let metric = judges[0].holdout.metric;
        return Ok(Some(Selection {
            age: chosen.age,
            score: chosen.score,
            standard_error: chosen.standard_error,
            rule,
            metric: metric.name.into(),
            higher_is_better: metric.higher_is_better,
            folds: (judges.len() > 1).then_some(judges.len()),
            min,
            one_se,
            gap: curve.gap,
            curve: curve.candidates,
            unsolved: curve.unsolved,
            degenerate: curve.degenerate,
            ordinary: None,
        }));
    }
}

/// Whether the path itself has a solution there that teaches something.
fn is_usable(problem: &Problem, path: &Path, age: f64) -> Result<bool> {
    match path.at(problem, age) {
        Ok(point) => Ok(!is_degenerate(problem, &point)),
        Err(Error::NoSolution { .. } | Error::AgeOutside { .. }) => Ok(false),
        Err(other) => Err(other),
    }
}

/// Parameters θ of a coefficient vector and an intercept.
pub(crate) fn theta(problem: &Problem, coef: &[f64], intercept: f64) -> Vec<f64> {
    let mut theta = coef.to_vec();
    theta.extend(problem.has_intercept().then_some(intercept));
    theta
}
