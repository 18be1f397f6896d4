//! The strength of the penalty, chosen by held-out rows whose errors bad rows cannot buy.
//!
//! Each strength of a short grid is tried with the ordinary fit and with fits settled at a few ages, on folds; its best score counts. Numbers
//! are scored by capped absolute errors on folds of neighbours, classes by the share of wrong labels: both are bounded, so no row
//! has more than one vote. The default strength is kept unless another one is better by half a standard error.

use super::choose::{CAP, Score};
use super::deputies::Deputies;
use super::distance::Distances;
use super::fit::Fitter;
use super::groups::grouped_folds;
use super::search::{Ages, scale_of};
use crate::dataset::{DEFAULT_FOLDS, Dataset, Folds, max_folds};
use crate::error::Result;
use crate::loss::TargetKind;
use crate::penalty::Penalty;
use crate::prepare::{Prepared, build};
use crate::problem::{Problem, Spec};
use rayon::prelude::*;

/// Strengths that are tried, as factors of the one that was given: α from a tenth to ten times, C over four decades.
const FACTORS: [f64; 5] = [0.1, 0.3, 1.0, 3.0, 10.0];
const CLASS_FACTORS: [f64; 6] = [0.003, 0.03, 0.3, 1.0, 3.0, 30.0];
/// Cut-offs of the ages that are tried: scales of the residuals; for classes, losses in units of that of a coin toss.
const CUTS: [f64; 2] = [2.822, 5.0];
const CLASS_CUTS: [f64; 2] = [1.5, 4.0];
/// ACS steps at each age: the score need not know more.
const STEPS: usize = 8;
/// Another strength must be better by so many standard errors.
const MARGIN: f64 = 0.5;

/// The same rows with the strength that held-out rows like best: α of a penalised regression, C of classes. Problems in kernel space, and
/// those without a strength, are handed back as they are.
pub fn tuned(prepared: Prepared, seed: u64) -> Result<Prepared> {
    let specs = specs(&prepared);
    if specs.len() < 2 {
        return Ok(prepared);
    }
    // C counts rows, so that fewer of them would be another problem; α does not.
    let numbers = prepared.problem.loss().target() == TargetKind::Real;
    let deputies = if numbers { Deputies::of(&prepared, seed)? } else { None };
    let (train, jury) = match &deputies {
        Some(some) => (&some.train, &some.problem),
        None => (&prepared.train, &prepared.problem),
    };
    let Some(fold) = folds(jury, train, seed)? else { return Ok(prepared) };
    let intercept = prepared.problem.has_intercept();
    let problems = specs.iter().map(|spec| build(train, &prepared.scaling, intercept, spec));
    let problems = problems.collect::<Result<Vec<Problem>>>()?;
    let cap = CAP * unit(jury);
    let scores: Vec<Option<Score>> = problems.par_iter().map(|problem| best(problem, &fold, cap)).collect();
    let counts = &jury.counts;
    let given = specs.iter().position(|spec| *spec == prepared.spec);
    let judged = scores.iter().enumerate().filter_map(|(k, s)| s.as_ref().map(|s| (k, s)));
    let Some((found, score)) = judged.reduce(|a, b| if b.1.mean < a.1.mean { b } else { a }) else {
        return Ok(prepared);
    };
    let kept = given.and_then(|k| scores[k].as_ref()).is_some_and(|plain| {
        let (gap, error) = score.advantage_over(plain, counts);
        gap <= MARGIN * error
    });
    if kept {
        return Ok(prepared);
    }
    let problem = build(&prepared.train, &prepared.scaling, intercept, &specs[found])?;
    Ok(Prepared { problem, spec: specs[found].clone(), ..prepared })
}

/// The given specification with every strength; none where there is nothing to tune.
fn specs(prepared: &Prepared) -> Vec<Spec> {
    let spec = &prepared.spec;
    let problem = &prepared.problem;
    // Ages to try are made of residuals in units of the target.
    if problem.products.is_some() || !problem.loss().is_in_units_of_the_target() {
        return Vec::new();
    }
    if problem.loss().target() == TargetKind::Sign {
        let with = |f: f64| {
            let loss_parameters = spec.loss_parameters.clone();
            let c = f * loss_parameters.c();
            Spec { loss_parameters: loss_parameters.with_factor(c), ..spec.clone() }
        };
        return CLASS_FACTORS.map(with).to_vec();
    }
    let with = |f: f64| Some(Spec { penalty: scaled(spec.penalty, f)?, ..spec.clone() });
    FACTORS.iter().filter_map(|&f| with(f)).collect()
}

fn scaled(penalty: Penalty, factor: f64) -> Option<Penalty> {
    match penalty {
        Penalty::None => None,
        other => Some(other.times(factor)),
    }
}

/// The fold of each row; none for too few rows.
fn folds(problem: &Problem, train: &Dataset, seed: u64) -> Result<Option<Vec<usize>>> {
    if problem.loss().target() == TargetKind::Real {
        let enough = train.len() >= super::FEW_ROWS;
        return Ok(enough.then(|| grouped_folds(&Distances::new(train), train.len())));
    }
    let count = DEFAULT_FOLDS.min(max_folds(train));
    if count < 2 {
        return Ok(None);
    }
    let mut fold = vec![0; train.len()];
    for (k, rows) in Folds::Count(count).rows(train, seed)?.into_iter().enumerate() {
        rows.into_iter().for_each(|i| fold[i] = k);
    }
    Ok(Some(fold))
}

/// The scale of the residuals of the ordinary fit; 1 where there is none.
fn unit(problem: &Problem) -> f64 {
    let mut fitter = Fitter::new(problem);
    let (zero, ones) = (vec![0.0; problem.parameters()], vec![1.0; problem.rows()]);
    let theta = fitter.weighted(&zero, &ones);
    theta.map_or(1.0, |theta| Ages(problem).scale(scale_of(&fitter, problem, &theta, &ones)))
}

/// The best score over the ordinary fit and a few ages.
fn best(problem: &Problem, fold: &[usize], cap: f64) -> Option<Score> {
    let mut fitter = Fitter::new(problem);
    let (zero, ones) = (vec![0.0; problem.parameters()], vec![1.0; problem.rows()]);
    let ordinary = fitter.weighted(&zero, &ones)?;
    let ages = Ages(problem);
    let classes = problem.loss().target() == TargetKind::Sign;
    let mut tried = vec![None];
    if classes {
        let toss = problem.loss().at(0.0, 1.0).value;
        tried.extend(CLASS_CUTS.map(|c| Some(crate::prepare::age_of_threshold(problem, c * toss))));
    } else {
        let sigma = ages.scale(scale_of(&fitter, problem, &ordinary, &ones));
        tried.extend(CUTS.map(|c| Some(ages.at(c, sigma))));
    }
    let mut out: Vec<Score> = Vec::new();
    for age in tried {
        out.extend(score(&mut fitter, problem, (&ordinary, age), fold, (classes, cap)));
    }
    out.into_iter().reduce(|a, b| if b.mean < a.mean { b } else { a })
}

fn score(
    fitter: &mut Fitter,
    problem: &Problem,
    (start, age): (&[f64], Option<f64>),
    fold: &[usize],
    (classes, cap): (bool, f64),
) -> Option<Score> {
    let count = fold.iter().max().map_or(0, |k| k + 1);
    let mut errors = vec![0.0; problem.rows()];
    for k in 0..count {
        let rest: Vec<f64> = fold.iter().map(|&f| if f == k { 0.0 } else { 1.0 }).collect();
        let mut theta = fitter.weighted(start, &rest)?;
        if let Some(age) = age {
            theta = fitter.settle(theta, age, &rest, STEPS)?;
        }
        let z = problem.predict(&theta);
        for i in (0..fold.len()).filter(|&i| fold[i] == k) {
            let y = problem.target()[i];
            errors[i] = if classes { f64::from(u8::from(z[i] * y <= 0.0)) } else { (y - z[i]).abs().min(cap) };
        }
    }
    let total: f64 = problem.counts.iter().sum();
    let mean = errors.iter().zip(&problem.counts).map(|(e, n)| n * e).sum::<f64>() / total;
    Some(Score { errors, mean })
}
