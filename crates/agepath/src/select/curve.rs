//! The score as a function of the age, explored until no age can be much better than the best one seen.
//!
//! Between two neighbouring ages a prediction stays between its values at both (paths are smooth between critical points;
//! the first ages include both sides of the largest jumps). So no age in between can score better than predictions that
//! are, row by row, the better end of that range, or the target itself where it lies inside. Intervals where this bound
//! beats the best score are bisected, most promising first: branch and bound over exact solutions.

use super::{Candidate, Judge, Metric};
use crate::error::{Error, Result};
use crate::loss::TargetKind;
use crate::path::Point;
use crate::problem::Problem;
use rayon::prelude::*;
use std::rc::Rc;

/// Ages that are tried first, evenly spaced in their logarithm.
const SPACED: usize = 49;

/// The largest jumps of all paths whose two sides are tried first as well.
const JUMPS: usize = 32;

/// How far from a jump its two sides are tried, relatively.
const BESIDE: f64 = 1e-7;

/// Intervals narrower than this, relatively, are not divided further: their ends are the two sides of a jump.
const NARROW: f64 = 1e-6;

/// An unseen age may be better than the best by this share of its standard error.
const TOLERANCE: f64 = 0.1;

/// At most this many ages are tried by bisection.
const MAX_BISECTIONS: usize = 160;

/// How often the neighbourhood of the best age is halved where no bound leads the search.
const REFINEMENTS: usize = 8;

/// The age of the 1-SE rule is located to this relative accuracy.
const CROSSING: f64 = 1e-3;

/// Groups of the jackknife that gives the standard error of a score on one set of rows.
const GROUPS: usize = 20;

/// What is known of the score at every age.
#[derive(Debug, Clone)]
pub(super) struct Curve<'a> {
    judges: &'a [Judge<'a>],
    metric: &'static Metric,
    /// Ages and their scores, smallest age first once explored.
    pub candidates: Vec<Candidate>,
    /// Ages where no solution was found.
    pub unsolved: Vec<f64>,
    /// Ages whose solution teaches nothing.
    pub degenerate: Vec<f64>,
    /// By how much an unseen age may be better than the best.
    pub gap: f64,
}

/// The predictions at one age, for each judge, and their score.
struct Scored {
    candidate: Candidate,
    z: Vec<Vec<f64>>,
}

/// Two neighbouring ages, and by how much an age between them may be better than the best.
struct Interval {
    ends: [Rc<Scored>; 2],
    promise: f64,
}

impl<'a> Curve<'a> {
    /// Explores the ages that all judges' paths have.
    pub fn explore(judges: &'a [Judge<'a>]) -> Result<Curve<'a>> {
        let metric = judges[0].holdout.metric;
        let mut curve =
            Curve { judges, metric, candidates: Vec::new(), unsolved: Vec::new(), degenerate: Vec::new(), gap: 0.0 };
        let mut scored = Vec::new();
        for age in curve.first_ages() {
            scored.push(curve.score(age)?.map(Rc::new));
        }
        match judges.iter().any(|judge| judge.holdout.own.is_some()) {
            true => curve.refine()?,
            false => curve.bisect(scored)?,
        }
        curve.candidates.sort_unstable_by(|a, b| a.age.total_cmp(&b.age));
        Ok(curve)
    }

    /// The best candidate; of equals the one with the largest age.
    pub fn best(&self) -> Option<Candidate> {
        let better = |a: &Candidate, b: &Candidate| match self.metric.advantage(a.score, b.score) {
            gain if gain != 0.0 => gain > 0.0,
            _ => a.age > b.age,
        };
        self.candidates.iter().copied().reduce(|a, b| if better(&b, &a) { b } else { a })
    }

    /// The largest age whose score is within one standard error of the best, located between the ages tried.
    pub fn one_se(&mut self) -> Result<Option<Candidate>> {
        let Some(best) = self.best() else { return Ok(None) };
        let metric = self.metric;
        let within = |c: &Candidate| metric.advantage(best.score, c.score) <= best.standard_error;
        let Some(k) = self.candidates.iter().rposition(within) else { return Ok(Some(best)) };
        let (mut inside, beyond) = (self.candidates[k], self.candidates.get(k + 1).map(|c| c.age));
        if let Some(mut outside) = beyond {
            while outside / inside.age > 1.0 + CROSSING {
                match self.score((outside * inside.age).sqrt())? {
                    Some(scored) if within(&scored.candidate) => inside = scored.candidate,
                    Some(scored) => outside = scored.candidate.age,
                    None => break,
                }
            }
            self.candidates.sort_unstable_by(|a, b| a.age.total_cmp(&b.age));
        }
        Ok(Some(inside))
    }

    /// Leaves out an age that turned out to be unusable.
    pub fn discard(&mut self, age: f64) {
        self.candidates.retain(|c| c.age != age);
    }

    /// Evenly spaced ages, both ends, and both sides of the largest jumps.
    fn first_ages(&self) -> Vec<f64> {
        let low = self.judges.iter().map(|j| j.path.ages.0).fold(0.0, f64::max);
        let high = self.judges.iter().map(|j| j.path.ages.1).fold(f64::INFINITY, f64::min);
        if self.judges.iter().any(|j| j.path.knots.is_empty()) || low > high {
            return Vec::new();
        }
        let step = (high / low).ln() / (SPACED - 1) as f64;
        let mut ages: Vec<f64> = (1..SPACED - 1).map(|k| low * (step * k as f64).exp()).collect();
        ages.extend([low, high]);
        let mut jumps: Vec<_> = self.judges.iter().flat_map(|j| j.path.jumps()).collect();
        jumps.sort_by(|a, b| b.size.total_cmp(&a.size));
        for jump in jumps.iter().take(JUMPS) {
            ages.extend([jump.age * (1.0 - BESIDE), jump.age * (1.0 + BESIDE)]);
        }
        ages.retain(|age| (low..=high).contains(age));
        ages.sort_unstable_by(f64::total_cmp);
        ages.dedup();
        ages
    }

    /// The score at `age`; none if there is no solution or it teaches nothing, which is noted.
    fn score(&mut self, age: f64) -> Result<Option<Scored>> {
        let solutions: Vec<Result<Option<Vec<f64>>>> = self.judges.par_iter().map(|j| j.predict(age)).collect();
        let mut z = Vec::with_capacity(solutions.len());
        for solution in solutions {
            match solution {
                Ok(Some(predictions)) => z.push(predictions),
                Ok(None) => {
                    self.degenerate.push(age);
                    return Ok(None);
                }
                Err(Error::NoSolution { .. }) => {
                    self.unsolved.push(age);
                    return Ok(None);
                }
                Err(other) => return Err(other),
            }
        }
        let (score, standard_error) = self.summarise(&z);
        if !score.is_finite() {
            self.degenerate.push(age);
            return Ok(None);
        }
        let candidate = Candidate { age, score, standard_error };
        self.candidates.push(candidate);
        Ok(Some(Scored { candidate, z }))
    }

    /// The mean score over the judges, and its standard error: from the spread between judges, or for one judge from a
    /// jackknife over groups of its rows.
    fn summarise(&self, z: &[Vec<f64>]) -> (f64, f64) {
        let scores: Vec<f64> = self.judges.iter().zip(z).map(|(j, z)| j.holdout.score(z)).collect();
        let k = scores.len() as f64;
        let mean = scores.iter().sum::<f64>() / k;
        let squares = |values: &[f64]| {
            let middle = values.iter().sum::<f64>() / values.len() as f64;
            values.iter().map(|v| (v - middle) * (v - middle)).sum::<f64>()
        };
        if scores.len() > 1 {
            return (mean, (squares(&scores) / (k * (k - 1.0))).sqrt());
        }
        let holdout = self.judges[0].holdout;
        if holdout.own.is_some() {
            return (mean, 0.0);
        }
        let groups = GROUPS.min(holdout.target.len());
        let without: Vec<f64> = (0..groups).map(|g| holdout.score_without(&z[0], g, groups)).collect();
        let error = (squares(&without) * (groups as f64 - 1.0) / groups as f64).sqrt();
        (mean, if error.is_finite() { error } else { 0.0 })
    }

    /// The best that any age between two others could score.
    fn bound(&self, a: &Scored, b: &Scored) -> f64 {
        let each = self.judges.iter().zip(a.z.iter().zip(&b.z));
        let scores = each.map(|(judge, (a, b))| {
            let rows = a.iter().zip(b).zip(&judge.holdout.target);
            let ideal: Vec<f64> = rows
                .map(|((a, b), y)| match self.metric.kind {
                    TargetKind::Real => y.clamp(a.min(*b), a.max(*b)),
                    TargetKind::Sign => y * f64::max(y * a, y * b),
                })
                .collect();
            judge.holdout.score(&ideal)
        });
        scores.sum::<f64>() / self.judges.len() as f64
    }

    /// By how much an age between two others could be better than the best so far, less what is tolerated.
    fn interval(&self, a: &Rc<Scored>, b: &Rc<Scored>) -> Option<Interval> {
        let best = self.best()?;
        let promise = self.metric.advantage(self.bound(a, b), best.score);
        let narrow = b.candidate.age <= a.candidate.age * (1.0 + NARROW);
        (!narrow && promise > TOLERANCE * best.standard_error)
            .then(|| Interval { ends: [a.clone(), b.clone()], promise })
    }

    /// Nothing bounds a score of the caller's own between two ages: the neighbourhood of the best is tried, no more.
    fn refine(&mut self) -> Result<()> {
        for _ in 0..REFINEMENTS {
            self.candidates.sort_unstable_by(|a, b| a.age.total_cmp(&b.age));
            let Some(best) = self.best() else { break };
            let Some(k) = self.candidates.iter().position(|c| c.age == best.age) else { break };
            let beside = [k.checked_sub(1), Some(k + 1)].into_iter().flatten();
            let beside: Vec<f64> = beside.filter_map(|k| self.candidates.get(k).map(|c| c.age)).collect();
            for age in beside {
                self.score((age * best.age).sqrt())?;
            }
        }
        self.gap = f64::INFINITY;
        Ok(())
    }

    fn bisect(&mut self, scored: Vec<Option<Rc<Scored>>>) -> Result<()> {
        let pairs = scored.windows(2).filter_map(|pair| Some((pair[0].as_ref()?, pair[1].as_ref()?)));
        let mut open: Vec<Interval> = pairs.filter_map(|(a, b)| self.interval(a, b)).collect();
        drop(scored);
        for _ in 0..MAX_BISECTIONS {
            let widest = (0..open.len()).max_by(|&a, &b| open[a].promise.total_cmp(&open[b].promise));
            let Some(k) = widest else { break };
            let Interval { ends: [a, b], .. } = open.swap_remove(k);
            let before = self.best();
            let middle = self.score((a.candidate.age * b.candidate.age).sqrt())?.map(Rc::new);
            if let Some(middle) = &middle {
                open.extend(self.interval(&a, middle));
                open.extend(self.interval(middle, &b));
            }
            if self.best() != before {
                open = open.iter().filter_map(|i| self.interval(&i.ends[0], &i.ends[1])).collect();
            }
        }
        let tolerated = self.best().map_or(0.0, |best| TOLERANCE * best.standard_error);
        self.gap = open.iter().map(|i| i.promise).fold(tolerated, f64::max);
        Ok(())
    }
}

/// A solution that less than this share of the rows carries is what is left when everything is excluded.
const MIN_SHARE: f64 = 0.05;

/// Whether a solution teaches nothing: hardly any row carries it, no more rows than it has parameters, or rows of one
/// class only.
pub(crate) fn is_degenerate(problem: &Problem, point: &Point) -> bool {
    // In kernel space every row has a coefficient, and the penalty is what bounds them.
    let free = if problem.kernel().is_some() { &[] } else { &point.coef[..] };
    let parameters = free.iter().filter(|&&w| w != 0.0).count() + usize::from(problem.has_intercept());
    let carried = |i: usize| problem.counts[i] * point.weights[i];
    let weight: f64 = (0..problem.rows()).map(carried).sum();
    // As many rows as parameters are met exactly, whatever they say.
    if weight < (parameters + 1) as f64 || weight < MIN_SHARE * problem.counts.iter().sum::<f64>() {
        return true;
    }
    if problem.loss().target() == TargetKind::Real {
        return false;
    }
    let of_class = |sign: f64| -> f64 {
        let rows = (0..problem.rows()).filter(|&i| problem.target()[i] == sign);
        rows.map(carried).sum()
    };
    of_class(1.0) < 1.0 || of_class(-1.0) < 1.0
}
