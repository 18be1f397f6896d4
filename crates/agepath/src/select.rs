//! Chooses an age on rows the path was not computed from.
//!
//! Every candidate is an exact solution: the path's own knots, and a log-spaced set of ages between its ends. Candidates
//! that teach nothing are skipped: every weight 0, or the same class for every row.

use crate::dataset::{Dataset, Scaling};
use crate::error::{Error, Result};
use crate::loss::{Logistic, Loss, TargetKind};
use crate::path::Path;
use crate::problem::{NewRows, Problem};
use serde::{Deserialize, Serialize};

/// How many log-spaced ages are tried besides the knots: steps of a few per cent over the usual two or three decades.
const SPACED: usize = 64;

/// More knots than this are thinned out: neighbouring knots score alike, and each costs a pass over the rows.
const MAX_KNOTS: usize = 1024;

/// How well predictions fit.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name users type.
    pub name: &'static str,
    /// One line for `--help` and the documentation.
    pub summary: &'static str,
    /// The targets it is for.
    pub kind: TargetKind,
    /// Whether more is better.
    pub higher_is_better: bool,
    /// Of predictors z and targets y.
    score: fn(&[f64], &[f64]) -> f64,
}

/// Every metric; the first of a kind of target is its default.
pub const METRICS: &[Metric] = &[
    Metric {
        name: "mae",
        summary: "mean absolute error",
        kind: TargetKind::Real,
        higher_is_better: false,
        score: |z, y| mean(errors(z, y).into_iter()),
    },
    Metric {
        name: "rmse",
        summary: "root mean square error",
        kind: TargetKind::Real,
        higher_is_better: false,
        score: |z, y| mean(errors(z, y).into_iter().map(|e| e * e)).sqrt(),
    },
    Metric {
        name: "median-ae",
        summary: "median absolute error",
        kind: TargetKind::Real,
        higher_is_better: false,
        score: |z, y| crate::dataset::median(errors(z, y)),
    },
    Metric {
        name: "accuracy",
        summary: "share of rows whose class is predicted",
        kind: TargetKind::Sign,
        higher_is_better: true,
        score: |z, y| mean(z.iter().zip(y).map(|(&z, &y)| f64::from((z > 0.0) == (y > 0.0)))),
    },
    Metric {
        name: "log-loss",
        summary: "mean of ln(1 + exp(-yz))",
        kind: TargetKind::Sign,
        higher_is_better: false,
        score: |z, y| mean(z.iter().zip(y).map(|(&z, &y)| Logistic { c: 1.0 }.at(z, y).value)),
    },
];

fn errors(z: &[f64], y: &[f64]) -> Vec<f64> {
    z.iter().zip(y).map(|(z, y)| (z - y).abs()).collect()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len().max(1) as f64;
    values.sum::<f64>() / n
}

impl Metric {
    /// By name, or the default for the kind of target.
    pub fn choose(name: Option<&str>, kind: TargetKind) -> Result<&'static Metric> {
        let fits = |m: &&Metric| m.kind == kind && name.is_none_or(|name| m.name == name);
        METRICS.iter().find(fits).ok_or_else(|| {
            let choices = METRICS.iter().filter(|m| m.kind == kind).map(|m| m.name);
            Error::UnknownName {
                what: "metric for this target",
                name: name.unwrap_or_default().into(),
                choices: choices.collect::<Vec<_>>().join(", "),
            }
        })
    }

    /// Whether score `a` is better than score `b`.
    fn better(&self, a: f64, b: f64) -> bool {
        if self.higher_is_better { a > b } else { a < b }
    }
}

/// Rows that were held out, in the solver's units, and a metric.
#[derive(Debug)]
pub struct Holdout {
    rows: NewRows,
    target: Vec<f64>,
    /// One solver unit of the target in the user's units.
    unit: f64,
    metric: &'static Metric,
}

impl Holdout {
    /// `rows` scaled as the training rows of `problem` were.
    pub fn new(problem: &Problem, rows: &Dataset, scaling: &Scaling, metric: &'static Metric) -> Result<Holdout> {
        let design = scaling.design(rows, problem.has_intercept())?;
        Ok(Holdout { rows: problem.new_rows(design)?, target: scaling.y(rows), unit: scaling.y_scale, metric })
    }

    /// The score of parameters θ, in the user's units; none if the same class is predicted for every row.
    pub fn score(&self, theta: &[f64]) -> Option<f64> {
        let z = self.rows.predict(theta);
        let score = (self.metric.score)(&z, &self.target);
        match self.metric.kind {
            TargetKind::Real => Some(self.unit * score),
            TargetKind::Sign => {
                let constant = z.iter().all(|&v| (v > 0.0) == (z[0] > 0.0));
                (!constant || z.len() == 1).then_some(score)
            }
        }
    }
}

/// One candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its age.
    pub age: f64,
    /// Its score on the held-out rows.
    pub score: f64,
}

/// The chosen age and how the others scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// The age with the best score; of equals the largest, which trusts the most rows.
    pub age: f64,
    /// Its score.
    pub score: f64,
    /// Name of the metric.
    pub metric: String,
    /// Every candidate, smallest age first.
    pub curve: Vec<Candidate>,
    /// Ages that were to be tried but where no solution was found.
    pub unsolved: Vec<f64>,
}

/// The best age of a path on held-out rows; none if every candidate is degenerate.
pub fn choose(problem: &Problem, path: &Path, holdout: &Holdout) -> Result<Option<Selection>> {
    let (candidates, unsolved) = candidates(problem, path)?;
    let mut curve = Vec::with_capacity(candidates.len());
    for (age, theta) in candidates {
        if is_empty(problem, &theta, age) {
            continue;
        }
        if let Some(score) = holdout.score(&theta) {
            curve.push(Candidate { age, score });
        }
    }
    curve.sort_unstable_by(|a, b| a.age.total_cmp(&b.age));
    let mut best: Option<Candidate> = None;
    for candidate in curve.iter().rev() {
        if best.is_none_or(|b| holdout.metric.better(candidate.score, b.score)) {
            best = Some(*candidate);
        }
    }
    Ok(best.map(|best| Selection {
        age: best.age,
        score: best.score,
        metric: holdout.metric.name.into(),
        curve,
        unsolved,
    }))
}

/// Parameters θ of a coefficient vector and an intercept.
pub(crate) fn theta(problem: &Problem, coef: &[f64], intercept: f64) -> Vec<f64> {
    let mut theta = coef.to_vec();
    theta.extend(problem.has_intercept().then_some(intercept));
    theta
}

/// An age and the parameters there.
type Solution = (f64, Vec<f64>);

/// Solutions to try, and ages where none was found.
fn candidates(problem: &Problem, path: &Path) -> Result<(Vec<Solution>, Vec<f64>)> {
    let (mut list, mut unsolved) = (knots(problem, path), Vec::new());
    if path.knots.is_empty() {
        return Ok((list, unsolved));
    }
    for age in log_spaced(path.ages, SPACED) {
        match path.at(problem, age) {
            Ok(point) => list.push((age, theta(problem, &point.coef, point.intercept))),
            Err(Error::NoSolution { .. }) => unsolved.push(age),
            Err(other) => return Err(other),
        }
    }
    Ok((list, unsolved))
}

/// The knots, thinned out, without those at jumps: a jump's own age has two solutions and would not say which is meant.
fn knots(problem: &Problem, path: &Path) -> Vec<Solution> {
    let step = path.knots.len().div_ceil(MAX_KNOTS).max(1);
    let single = |k: &usize| {
        let around = k.saturating_sub(1)..(k + 2).min(path.knots.len());
        let age = path.knots[*k].age;
        path.knots[around].iter().filter(|o| o.age == age).count() == 1
    };
    let chosen = (0..path.knots.len()).step_by(step).filter(single);
    chosen.map(|k| &path.knots[k]).map(|knot| (knot.age, theta(problem, &knot.coef, knot.intercept))).collect()
}

/// `count` ages strictly between the ends, evenly spaced in their logarithm.
fn log_spaced((low, high): (f64, f64), count: usize) -> impl Iterator<Item = f64> {
    let ratio = (high / low).ln();
    let inside = low < high;
    (1..=count)
        .filter(move |_| inside)
        .map(move |k| (low * (ratio * k as f64 / (count + 1) as f64).exp()).clamp(low, high))
}

/// Whether every training row has weight 0.
fn is_empty(problem: &Problem, theta: &[f64], age: f64) -> bool {
    let pacing = problem.pacing();
    let losses = problem.losses(theta);
    losses.iter().all(|&l| pacing.weight(l, 1.0 / age) == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_by_hand() {
        let score = |name: &str, z: &[f64], y: &[f64]| (METRICS.iter().find(|m| m.name == name).unwrap().score)(z, y);
        let (z, y) = ([1.0, 2.0, 3.0], [1.0, 4.0, 0.0]);
        assert_eq!(score("mae", &z, &y), 5.0 / 3.0);
        assert_eq!(score("rmse", &z, &y), (13.0f64 / 3.0).sqrt());
        assert_eq!(score("median-ae", &z, &y), 2.0);
        assert_eq!(score("accuracy", &[0.5, -2.0], &[1.0, 1.0]), 0.5);
        assert_eq!(score("log-loss", &[0.0, 0.0], &[1.0, -1.0]), 2f64.ln());
    }

    #[test]
    fn metrics_belong_to_a_kind_of_target() {
        assert_eq!(Metric::choose(None, TargetKind::Real).unwrap().name, "mae");
        assert_eq!(Metric::choose(None, TargetKind::Sign).unwrap().name, "accuracy");
        let error = Metric::choose(Some("accuracy"), TargetKind::Real).unwrap_err();
        assert!(error.to_string().contains("mae, rmse, median-ae"));
    }

    #[test]
    fn log_spaced_ages_stay_inside() {
        let ages: Vec<f64> = log_spaced((0.1, 10.0), 3).collect();
        assert_eq!(ages.len(), 3);
        assert!((ages[1] - 1.0).abs() < 1e-12);
        assert_eq!(log_spaced((1.0, 1.0), 3).count(), 0);
    }

    #[test]
    fn the_best_candidate_is_chosen_and_beats_the_ordinary_fit_on_noisy_data() {
        use crate::dataset::{ReadOptions, builtin};
        use crate::path::{PathOptions, age_path};
        use crate::prepare::{PrepareOptions, prepare};
        use std::ops::ControlFlow;

        let table = builtin("diabetes", &ReadOptions::default()).unwrap();
        let options = PrepareOptions { noise: Some("outliers:0.3".parse().unwrap()), ..PrepareOptions::default() };
        let prepared = prepare(&table, &options).unwrap();
        let problem = &prepared.problem;
        let options = PathOptions { ages: (1.0, 20.0), ..PathOptions::default() };
        let path = age_path(problem, &options, &mut |_| ControlFlow::Continue(())).unwrap();
        let metric = Metric::choose(None, TargetKind::Real).unwrap();
        let rows = prepared.validation.as_ref().unwrap();
        let holdout = Holdout::new(problem, rows, &prepared.scaling, metric).unwrap();
        let chosen = choose(problem, &path, &holdout).unwrap().unwrap();
        assert!(chosen.curve.is_sorted_by(|a, b| a.age <= b.age));
        assert!(chosen.curve.iter().all(|c| c.score >= chosen.score));
        assert!(chosen.age >= 1.0 && chosen.age <= 20.0);
        let ordinary = crate::solver::fit(problem, None).unwrap();
        assert!(chosen.score < holdout.score(&ordinary.theta).unwrap());
    }
}
