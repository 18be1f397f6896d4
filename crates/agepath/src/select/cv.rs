//! K-fold cross-validation along exact paths: one path per fold, from the rows outside the fold.
//!
//! The folds share the units of all training rows, so an age, a penalty strength and a loss mean the same in each of
//! them, and the same age is compared with itself.

use super::{Holdout, Judge, JudgeBy, Rule, Selection, select};
use crate::dataset::{Dataset, Folds};
use crate::error::{Error, Result};
use crate::path::{Path, PathOptions, Progress, age_path};
use crate::prepare::{Prepared, build};
use crate::problem::Problem;
use crate::solver;
use rayon::prelude::*;
use std::ops::ControlFlow;

/// A path computed from the rows outside a fold.
#[derive(Debug)]
pub struct Fold {
    /// The problem of the rows outside.
    pub problem: Problem,
    /// Its path.
    pub path: Path,
    /// The rows of the fold.
    pub holdout: Holdout,
    /// Which of the training rows they are.
    pub held: Vec<usize>,
}

/// The paths of all folds; every training row is held out exactly once.
#[derive(Debug)]
pub struct CrossValidation {
    /// One per fold.
    pub folds: Vec<Fold>,
    rows: usize,
}

/// Follows the path of each fold of the training rows, the ages being those of `options`. `callback` is called by
/// several threads and may stop them.
pub fn cross_validate(
    prepared: &Prepared,
    judge: JudgeBy<'_>,
    options: &PathOptions,
    folds: &Folds,
    callback: &(dyn Fn(&Progress) -> ControlFlow<()> + Sync),
) -> Result<CrossValidation> {
    // The certificate belongs to the path that is reported.
    let options = PathOptions { certify: Some(0), ..options.clone() };
    let train = &prepared.train;
    let groups = folds.rows(train, options.seed)?;
    let follow = |held: Vec<usize>| fold(prepared, judge, &options, held, callback);
    let folds = groups.into_par_iter().map(follow).collect::<Result<_>>()?;
    Ok(CrossValidation { folds, rows: train.len() })
}

fn fold(
    prepared: &Prepared,
    judge: JudgeBy<'_>,
    options: &PathOptions,
    held: Vec<usize>,
    callback: &(dyn Fn(&Progress) -> ControlFlow<()> + Sync),
) -> Result<Fold> {
    let (train, scaling) = (&prepared.train, &prepared.scaling);
    let rest: Vec<usize> = (0..train.len()).filter(|i| held.binary_search(i).is_err()).collect();
    let outside: Dataset = train.subset(&rest);
    outside.check_target()?;
    let problem = build(&outside, scaling, prepared.problem.has_intercept(), &prepared.spec)?;
    let path = age_path(&problem, options, &mut |progress| callback(progress))?;
    let holdout = judge.holdout(&problem, &train.subset(&held), scaling)?;
    Ok(Fold { problem, path, holdout, held })
}

impl CrossValidation {
    /// The age of `path`, the path of all training rows, chosen by the mean score over the folds; none if every
    /// candidate is degenerate.
    pub fn choose(&self, problem: &Problem, path: &Path, rule: Rule) -> Result<Option<Selection>> {
        let judges = self.folds.iter().map(|f| Judge { problem: &f.problem, path: &f.path, holdout: &f.holdout });
        let judges: Vec<Judge> = judges.collect();
        select(problem, path, &judges, rule)
    }

    /// For each training row the predictor of the ordinary fit that did not see it, and the mean score of these fits; none where a fold
    /// has no ordinary fit.
    pub fn ordinary(&self) -> Result<Option<(Vec<f64>, f64)>> {
        let (mut z, mut total) = (vec![0.0; self.rows], 0.0);
        for fold in &self.folds {
            let theta = match solver::fit(&fold.problem, None) {
                Ok(fit) => fit.theta,
                Err(Error::NoSolution { .. }) => return Ok(None),
                Err(other) => return Err(other),
            };
            let held = fold.holdout.predictors(&theta);
            total += fold.holdout.score(&fold.holdout.predict(&theta));
            fold.held.iter().zip(held).for_each(|(&i, value)| z[i] = value);
        }
        Ok(Some((z, total / self.folds.len() as f64)))
    }

    /// For each training row the predictor at `age` of the path that did not see it.
    pub fn predict(&self, age: f64) -> Result<Vec<f64>> {
        let mut z = vec![0.0; self.rows];
        for fold in &self.folds {
            let point = fold.path.at(&fold.problem, age)?;
            let theta = super::theta(&fold.problem, &point.coef, point.intercept);
            for (&i, value) in fold.held.iter().zip(fold.holdout.predictors(&theta)) {
                z[i] = value;
            }
        }
        Ok(z)
    }
}
