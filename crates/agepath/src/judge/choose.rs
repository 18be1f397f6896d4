//! The choice among exact solutions: branches, ages, and the ordinary fit.
//!
//! Many rows: folds of neighbours, each candidate settled on the rest from where it is (so it stays on its branch), and the mean
//! absolute error on held-out rows, no row counting for more than [`CAP`] scales: bad rows cannot buy a candidate. The ordinary fit is
//! kept unless the best candidate is better by more than chance makes it. Few rows: the scale of the central rows says which branch,
//! the cut-off which age.

use super::fit::Fitter;
use super::groups::FOLDS;
use super::search::{Ages, scale_of};
use crate::path::Point;
use crate::problem::Problem;
use rayon::prelude::*;

/// No held-out row counts for more than so many scales. From 10 on, bad rows that are not far off buy large ages; below 4, a heavy tail
/// of good rows is given up.
pub(crate) const CAP: f64 = 6.0;
/// ACS steps on the rows outside a fold: the candidate is near already.
const FOLD_STEPS: usize = 12;

/// A solution that may be chosen.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// Which branch it is on; none: the ordinary fit.
    pub branch: Option<usize>,
    /// The solution there.
    pub point: Point,
    /// Its parameters.
    pub theta: Vec<f64>,
}

/// What held-out rows say about a candidate.
#[derive(Debug, Clone)]
pub(crate) struct Score {
    /// Capped absolute errors, row by row.
    pub errors: Vec<f64>,
    /// Their mean over what the rows count.
    pub mean: f64,
}

impl Score {
    /// By how much another score is larger, and the standard error of that.
    pub fn advantage_over(&self, other: &Score, counts: &[f64]) -> (f64, f64) {
        let total: f64 = counts.iter().sum();
        let gap = other.mean - self.mean;
        let rows = self.errors.iter().zip(&other.errors).zip(counts);
        let square: f64 = rows.map(|((a, b), n)| n * (b - a - gap) * (b - a - gap)).sum();
        (gap, square.sqrt() / total)
    }

    /// The standard error of the mean.
    pub fn standard_error(&self, counts: &[f64]) -> f64 {
        let total: f64 = counts.iter().sum();
        let square: f64 = self.errors.iter().zip(counts).map(|(e, n)| n * (e - self.mean) * (e - self.mean)).sum();
        square.sqrt() / total
    }
}

/// Judges candidates by folds; none for those that some fold has no solution for.
pub(crate) fn judge_by_folds(problem: &Problem, candidates: &[Candidate], fold: &[usize]) -> Vec<Option<Score>> {
    let fitter = Fitter::new(problem);
    let (ages, ones) = (Ages(problem), vec![1.0; problem.rows()]);
    let scales = candidates.iter().map(|c| scale_of(&fitter, problem, &c.theta, &ones));
    let cap = CAP * ages.scale(scales.fold(f64::INFINITY, f64::min));
    let held_out = |candidate: &Candidate| {
        let mut fitter = Fitter::new(problem);
        let mut errors = vec![0.0; problem.rows()];
        for k in 0..FOLDS {
            let rest: Vec<f64> = fold.iter().map(|&f| if f == k { 0.0 } else { 1.0 }).collect();
            let theta = match candidate.branch {
                None => fitter.weighted(&candidate.theta, &rest)?,
                Some(_) => fitter.settle(candidate.theta.clone(), candidate.point.age, &rest, FOLD_STEPS)?,
            };
            let residuals = fitter.residuals(&theta);
            let held = fold.iter().enumerate().filter(|(_, f)| **f == k);
            held.for_each(|(i, _)| errors[i] = residuals[i].abs().min(cap));
        }
        let total: f64 = problem.counts.iter().sum();
        let mean = errors.iter().zip(&problem.counts).map(|(e, n)| n * e).sum::<f64>() / total;
        Some(Score { errors, mean })
    };
    candidates.par_iter().map(held_out).collect()
}
