//! Evidence that what was computed is a solution, and gaps where there is none.

use super::options::PathOptions;
use super::trace::GRACE;
use super::types::{Certificate, End, Gap, Knot, Path, WIDEST_GAP};
use crate::error::{Breakdown, Error, Result};
use crate::problem::Problem;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use std::time::Instant;

/// Random ages at which the path is checked unless told otherwise ...
const CHECKS: usize = 200;
/// ... or as many as this many products with the rows allow, about two seconds' worth, of which each age takes so many passes; a
/// residual takes one.
const CHECK_PRODUCTS: usize = 4_000_000_000;
const PASSES: usize = 20;
/// However many rows there are, so many ages and knots are checked.
const LEAST_CHECKS: usize = 50;
/// A larger relative residual certifies nothing.
const PROMISED: f64 = 1e-9;
/// Ages checked between two looks at the clock.
const AT_ONCE: usize = 16;

/// KKT residuals at the knots and at random ages in between. What cannot be certified becomes a gap. Where rows and knots are so
/// many that checking them all would take longer than the path, knots are checked at even distances; the certificate says how many.
pub(super) fn certify(
    problem: &Problem,
    options: &PathOptions,
    path: &mut Path,
    deadline: Option<Instant>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<()> {
    let affordable = CHECK_PRODUCTS / (problem.rows() * problem.parameters()).max(1);
    let every = path.knots.len().div_ceil(affordable.max(LEAST_CHECKS));
    let last = path.knots.len() - 1;
    let is_checked = |k: usize| k.is_multiple_of(every) || k == last;
    // A knot that is not looked at says nothing against itself.
    let check = |(k, knot): (usize, &Knot)| if is_checked(k) { residual(problem, knot) } else { 0.0 };
    let residuals: Vec<f64> = path.knots.par_iter().enumerate().map(check).collect();
    let checked = (0..residuals.len()).filter(|&k| is_checked(k) && is_small(residuals[k])).count();
    keep_certified(path, &residuals)?;
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(options.seed);
    let (low, high) = path.ages;
    let checks = options.certify.unwrap_or((affordable / PASSES).clamp(LEAST_CHECKS, CHECKS));
    let ages: Vec<f64> = (0..checks)
        .map(|_| (low.ln() + rng.random::<f64>() * (high / low).ln()).exp().clamp(low, high))
        .filter(|&age| path.gap_at(age).is_none())
        .collect();
    let mut between = Vec::with_capacity(ages.len());
    for some in ages.chunks(AT_ONCE) {
        if !go_on() {
            break;
        }
        // An age that cannot be solved has no residual to show: it counts as the worst possible, unless time ran out.
        let each = some.par_iter().filter_map(|&age| match path.at_before(problem, age, deadline) {
            Ok(point) => Some((age, point.kkt)),
            Err(Error::NoSolution { reason: Breakdown::OutOfTime, .. }) => None,
            Err(_) => Some((age, f64::INFINITY)),
        });
        between.extend(each.collect::<Vec<(f64, f64)>>());
    }
    for &(age, residual) in between.iter().filter(|(_, residual)| !is_small(*residual)) {
        path.open_gap(age, residual);
    }
    let kept = |residuals: &mut dyn Iterator<Item = f64>| residuals.filter(|r| is_small(*r)).fold(0.0, f64::max);
    let at_knots = kept(&mut residuals.iter().copied());
    path.certificate = Certificate {
        max_kkt: at_knots.max(kept(&mut between.iter().map(|(_, residual)| *residual))),
        knots_checked: checked,
        between_checked: between.len(),
    };
    settle(problem, path);
    Ok(())
}

/// The same for a path whose random ages are among its knots. Where there is no time to check all of them, it ends at the last that was.
pub(super) fn certify_knots(
    problem: &Problem,
    path: &mut Path,
    between_checked: usize,
    deadline: Option<Instant>,
) -> Result<()> {
    let deadline = deadline.map(|deadline| deadline.max(Instant::now() + GRACE));
    let late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let mut residuals = vec![residual(problem, &path.knots[0])];
    for some in path.knots[1..].chunks(AT_ONCE) {
        let each = some.par_iter().map(|knot| (!late()).then(|| residual(problem, knot)));
        let each: Vec<Option<f64>> = each.collect();
        residuals.extend(each.iter().copied().map_while(|residual| residual));
        if each.contains(&None) {
            break;
        }
    }
    path.stop_at_knot(residuals.len());
    keep_certified(path, &residuals)?;
    path.certificate = Certificate {
        max_kkt: residuals.into_iter().filter(|r| is_small(*r)).fold(0.0, f64::max),
        knots_checked: path.knots.len().saturating_sub(between_checked),
        between_checked: between_checked.min(path.knots.len()),
    };
    settle(problem, path);
    Ok(())
}

fn is_small(residual: f64) -> bool {
    residual <= PROMISED
}

fn theta(problem: &Problem, knot: &Knot) -> Vec<f64> {
    let mut theta = knot.coef.clone();
    theta.extend(problem.has_intercept().then_some(knot.intercept));
    theta
}

fn residual(problem: &Problem, knot: &Knot) -> f64 {
    problem.kkt(&theta(problem, knot), 1.0 / knot.age)
}

/// Takes knots out that are no solutions, and leaves a gap where they were.
fn keep_certified(path: &mut Path, residuals: &[f64]) -> Result<()> {
    let doubtful: Vec<(f64, f64)> = (path.knots.iter().zip(residuals))
        .filter(|(_, residual)| !is_small(**residual))
        .map(|(knot, residual)| (knot.age, *residual))
        .collect();
    if doubtful.len() == path.knots.len() {
        let (age, residual) = doubtful[0];
        return Err(Error::NoSolution { age, reason: Breakdown::Newton { residual } });
    }
    let mut small = residuals.iter().map(|r| is_small(*r));
    path.knots.retain(|_| small.next() == Some(true));
    for (age, residual) in doubtful {
        path.open_gap(age, residual);
    }
    let (first, last) = (path.knots[0].age, path.knots[path.knots.len() - 1].age);
    path.ages = (first.min(last), first.max(last));
    Ok(())
}

/// Says what the gaps are worth, and whether the path is complete with them.
fn settle(problem: &Problem, path: &mut Path) {
    for gap in &mut path.gaps {
        if let (true, Some(knot)) = (gap.residual == 0.0, path.knots.iter().find(|k| k.age == gap.to)) {
            gap.residual = residual(problem, knot);
        }
        if !gap.residual.is_finite() {
            gap.residual = UNKNOWN;
        }
    }
    if path.end == End::Complete && path.gaps.iter().any(|gap| gap.width() > WIDEST_GAP) {
        path.end = End::Gaps;
    }
}

/// What stands for a residual that is no number.
const UNKNOWN: f64 = 1.0;

impl Path {
    /// Keeps the first so many knots and what lies between them, if there are more.
    fn stop_at_knot(&mut self, count: usize) {
        if count >= self.knots.len() {
            return;
        }
        self.knots.truncate(count);
        let (first, last) = (self.knots[0].age, self.knots[count - 1].age);
        self.ages = (first.min(last), first.max(last));
        let ages = self.ages.0..=self.ages.1;
        let within = |age: f64| ages.contains(&age);
        self.events.retain(|event| within(event.age));
        self.gaps.retain(|gap| within(gap.from) && within(gap.to));
        self.end = End::TimeLimit;
    }

    /// The gap that an age lies in.
    pub fn gap_at(&self, age: f64) -> Option<&Gap> {
        self.gaps.iter().find(|gap| age > gap.from.min(gap.to) && age < gap.from.max(gap.to))
    }

    /// Makes a gap between the certified knots next to `age`.
    fn open_gap(&mut self, age: f64, residual: f64) {
        let towards = |a: f64, b: f64| if self.direction == super::Direction::Down { a > b } else { a < b };
        let before = self.knots.iter().rev().find(|k| towards(k.age, age)).map_or(age, |k| k.age);
        let after = self.knots.iter().find(|k| towards(age, k.age)).map_or(age, |k| k.age);
        let residual = if residual.is_finite() { residual } else { UNKNOWN };
        match self.gaps.iter_mut().find(|gap| gap.from == before && gap.to == after) {
            Some(gap) => gap.residual = gap.residual.max(residual),
            None => self.gaps.push(Gap { from: before, to: after, residual }),
        }
    }
}
