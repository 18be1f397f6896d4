//! Baselines over the same linear problem: the convex model itself, ACS on a grid of ages, Huber's Lasso; and the age-path.

use super::{Baseline, Outcome, Task};
use crate::dataset::median;
use crate::decide::{DecideOptions, decide};
use crate::error::{Error, Result};
use crate::loss::TargetKind;
use crate::path::{PathOptions, age_path};
use crate::prepare::default_ages;
use crate::problem::Problem;
use crate::select::theta;
use crate::solver;
use std::ops::ControlFlow;

/// The age-path, its age chosen on the validation rows.
#[derive(Debug, Clone, Copy)]
pub struct AgePath;

impl Baseline for AgePath {
    fn name(&self) -> &'static str {
        "agepath"
    }

    fn summary(&self) -> &'static str {
        "the exact path, its age chosen on validation rows"
    }

    fn run(&self, task: &Task) -> Result<Outcome> {
        let prepared = &task.divided;
        let problem = &prepared.problem;
        let ages = default_ages(problem)?;
        let options = PathOptions { ages, certify: Some(0), seed: task.seed, ..PathOptions::default() };
        let path = age_path(problem, &options, &mut |_| ControlFlow::Continue(()))?;
        let by = DecideOptions { metric: Some(task.metric.name.into()), ..DecideOptions::default() };
        let c = decide(prepared, &path, &options, &by, &|_| ControlFlow::Continue(()))?;
        let test = task.test_rows(prepared)?;
        let score = |coef: &[f64], b: f64| test.score(&test.predict(&theta(problem, coef, b)));
        let best = path.knots.iter().map(|k| score(&k.coef, k.intercept));
        let best = best.reduce(|a, b| if task.metric.advantage(a, b) > 0.0 { a } else { b });
        let age = (!c.reasons.ordinary).then_some(c.selection.age);
        Ok(Outcome { score: score(&c.point.coef, c.point.intercept), age, test_selected: best })
    }
}

/// The convex model: every weight is 1.
#[derive(Debug, Clone, Copy)]
pub struct Original;

impl Baseline for Original {
    fn name(&self) -> &'static str {
        "original"
    }

    fn summary(&self) -> &'static str {
        "the convex model, every row counts"
    }

    fn run(&self, task: &Task) -> Result<Outcome> {
        let fit = solver::fit(&task.all.problem, None)?;
        let test = task.test_rows(&task.all)?;
        Ok(Outcome::plain(test.score(&test.predict(&fit.theta))))
    }
}

/// Alternate convex search at ages a step apart, each started from the last, upwards from the smallest.
#[derive(Debug, Clone, Copy)]
pub struct Acs {
    /// Between two ages. Default 0.5, as in the paper's comparison.
    pub step: f64,
}

impl Default for Acs {
    fn default() -> Self {
        Acs { step: 0.5 }
    }
}

impl Acs {
    /// The ages and the parameters found there.
    pub fn sweep(&self, problem: &Problem, (low, high): (f64, f64)) -> Result<Vec<(f64, Vec<f64>)>> {
        let mut theta = solver::fit(problem, None)?.theta;
        let mut found = Vec::new();
        let count = ((high - low) / self.step).ceil() as usize;
        for k in 0..=count {
            let age = (low + self.step * k as f64).min(high);
            match solver::acs(problem, age, &theta, &solver::AcsOptions::default()) {
                Ok(acs) => theta = acs.theta,
                Err(Error::NoSolution { .. }) => continue,
                Err(other) => return Err(other),
            }
            found.push((age, theta.clone()));
        }
        Ok(found)
    }
}

impl Baseline for Acs {
    fn name(&self) -> &'static str {
        "acs"
    }

    fn summary(&self) -> &'static str {
        "alternate convex search at ages 0.5 apart"
    }

    fn run(&self, task: &Task) -> Result<Outcome> {
        let problem = &task.divided.problem;
        let solutions = self.sweep(problem, default_ages(problem)?)?;
        let solutions: Vec<_> = solutions.into_iter().map(|(age, theta)| (Some(age), theta)).collect();
        task.choose(&solutions)
    }
}

/// The Lasso with Huber's loss, its threshold 1.345 robust standard deviations of the residuals.
#[derive(Debug, Clone, Copy)]
pub struct HuberLasso;

/// 95 % efficient for normal errors.
const HUBER: f64 = 1.345;

/// MAD · this estimates a normal distribution's standard deviation.
const MAD_TO_SIGMA: f64 = 1.4826;

/// Rounds that settle the scale of the residuals.
const SCALE_ROUNDS: usize = 20;

const SETTLED: f64 = 1e-10;
const MAX_FITS: usize = 1000;

impl Baseline for HuberLasso {
    fn name(&self) -> &'static str {
        "huber-lasso"
    }

    fn summary(&self) -> &'static str {
        "the penalised regression with Huber's loss"
    }

    fn kind(&self) -> Option<TargetKind> {
        Some(TargetKind::Real)
    }

    fn run(&self, task: &Task) -> Result<Outcome> {
        let problem = &task.all.problem;
        let mut theta = solver::fit(problem, None)?.theta;
        for _ in 0..SCALE_ROUNDS {
            let residual: Vec<f64> =
                problem.predict(&theta).iter().zip(problem.target()).map(|(z, y)| (z - y).abs()).collect();
            let sigma = MAD_TO_SIGMA * median(residual);
            if sigma == 0.0 {
                break;
            }
            let next = huber_fit(problem, HUBER * sigma)?;
            let moved = next.iter().zip(&theta).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            theta = next;
            if moved < 1e-8 {
                break;
            }
        }
        let test = task.test_rows(&task.all)?;
        Ok(Outcome::plain(test.score(&test.predict(&theta))))
    }
}

/// Minimises R(θ) + Σ s h(r), h(r) = r² up to `threshold` and 2·threshold·|r| − threshold² beyond: weighted fits with the
/// weights min(1, threshold/|r|), which majorise and so never go up.
pub fn huber_fit(problem: &Problem, threshold: f64) -> Result<Vec<f64>> {
    let mut theta = solver::fit(problem, None)?.theta;
    for _ in 0..MAX_FITS {
        let weights: Vec<f64> = (problem.predict(&theta).iter().zip(problem.target()))
            .map(|(z, y)| (threshold / f64::max((z - y).abs(), f64::MIN_POSITIVE)).min(1.0))
            .collect();
        let next = solver::fit(problem, Some(&weights))?.theta;
        let moved = next.iter().zip(&theta).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        theta = next;
        if moved < SETTLED {
            break;
        }
    }
    Ok(theta)
}
