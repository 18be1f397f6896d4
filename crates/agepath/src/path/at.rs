//! The exact solution at any age: interpolate the knots, then Newton over all rows.

use super::chart::Chart;
use super::curve::Curve;
use super::dual;
use super::kinked;
use super::options::Direction;
use super::patch::Patch;
use super::trace::{Trace, Watch};
use super::types::{Knot, Path, Point, Work};
use super::window::{self, Context};
use crate::error::{Breakdown, Error, Result};
use crate::linalg::{Definiteness, axpy};
use crate::problem::Problem;
use crate::solver;
use crate::space::Products;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Newton iterations from an interpolated start.
const MAX_NEWTON: usize = 15;
const CONVERGED: f64 = 1e-13;
/// A residual that no longer falls is accepted below this.
const STAGNATED: f64 = 1e-11;
/// Newton may end at most this share of the distance between the two knots away from the line that joins them: a smooth
/// piece bends, even towards a fold, by no more than a quarter.
const NEWTON_REACH: f64 = 0.5;

/// How far a search for one solution may go.
#[derive(Clone, Copy)]
enum Patience {
    /// Newton's method, nothing more; in other spaces as much as a moment allows.
    Newton,
    /// The path is followed again from a knot where that fails, until a deadline.
    Until(Option<Instant>),
}

/// What is no more than a glance takes less.
const MOMENT: Duration = Duration::from_millis(250);

impl Patience {
    fn deadline(self) -> Option<Instant> {
        match self {
            Patience::Newton => Some(Instant::now() + MOMENT),
            Patience::Until(deadline) => deadline,
        }
    }
}

impl Path {
    /// The solution at `age`, re-solved to rounding accuracy over the rows of `problem`, which must be the one the path
    /// was computed for. At a jump's own age this is the side the path arrives on; at infinite age, the ordinary fit.
    pub fn at(&self, problem: &Problem, age: f64) -> Result<Point> {
        if age == f64::INFINITY {
            return Ok(Point::ordinary(problem, age, &solver::fit(problem, None)?.theta));
        }
        self.find(problem, age, Patience::Until(None))
    }

    /// The same, if it is found before the deadline.
    pub(super) fn at_before(&self, problem: &Problem, age: f64, deadline: Option<Instant>) -> Result<Point> {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Error::NoSolution { age, reason: Breakdown::OutOfTime });
        }
        self.find(problem, age, Patience::Until(deadline))
    }

    /// The same where it costs little: in linear space only what Newton finds from the line between two knots.
    pub(crate) fn at_a_glance(&self, problem: &Problem, age: f64) -> Result<Point> {
        self.find(problem, age, Patience::Newton)
    }

    fn find(&self, problem: &Problem, age: f64, patience: Patience) -> Result<Point> {
        let (low, high) = self.ages;
        if !(low..=high).contains(&age) {
            return Err(Error::AgeOutside { age, low, high });
        }
        if let Some(products) = &problem.products {
            let knot = &self.knots[self.last_not_after(age)];
            let theta = match products {
                Products::Rows(rows) if problem.loss.is_kinked() => {
                    kinked::at(problem, rows, high, knot, (age, patience.deadline()))?
                }
                _ => dual::at(problem, products, high, knot, (age, patience.deadline()))?,
            };
            return Ok(point(problem, age, &theta, problem.losses(&theta)));
        }
        if !problem.pacing.is_continuous() {
            // A staircase: nothing moves between two knots.
            let knot = &self.knots[self.last_not_after(age)];
            let mut theta = knot.coef.clone();
            theta.extend(problem.has_intercept().then_some(knot.intercept));
            return Ok(point(problem, age, &theta, problem.losses(&theta)));
        }
        let chart = Chart::new(high);
        let t = chart.time(age);
        let mut patch = Patch::whole(problem, chart);
        let right = self.first_not_before(age).max(usize::from(self.knots.len() > 1));
        let left = right.saturating_sub(1);
        let (guess, reach) = self.interpolate(&patch, chart, t, left, right);
        let theta = match (polish(&mut patch, t, guess, reach), patience) {
            (Some(theta), _) => theta,
            (None, Patience::Newton) => return Err(Error::NoSolution { age, reason: Breakdown::Stalled }),
            (None, Patience::Until(deadline)) => {
                let from = self.theta(&patch, left);
                retrace(&mut patch, &from, self.knots[left].age, t, deadline)
                    .map_err(|reason| Error::NoSolution { age, reason })?
            }
        };
        let losses = patch.at.loss.value.clone();
        Ok(point(problem, age, &theta, losses))
    }

    /// Index of the first knot at or beyond `age`, the way the path runs.
    fn first_not_before(&self, age: f64) -> usize {
        let before = |k: &Knot| {
            if self.direction == Direction::Down { k.age > age } else { k.age < age }
        };
        self.knots.partition_point(before).min(self.knots.len() - 1)
    }

    /// Index of the last knot that is not beyond `age`, the way the path runs: at a jump's own age, where it arrives.
    fn last_not_after(&self, age: f64) -> usize {
        let reached = |k: &Knot| {
            if self.direction == Direction::Down { k.age >= age } else { k.age <= age }
        };
        self.knots.partition_point(reached).max(1) - 1
    }

    fn theta(&self, patch: &Patch, k: usize) -> Vec<f64> {
        let mut theta = self.knots[k].coef.clone();
        theta.resize(patch.cols(), self.knots[k].intercept);
        theta
    }

    /// The line between two knots at time t, and how far off it may be.
    fn interpolate(&self, patch: &Patch, chart: Chart, t: f64, left: usize, right: usize) -> (Vec<f64>, f64) {
        let (a, b) = (self.theta(patch, left), self.theta(patch, right));
        let (ta, tb) = (chart.time(self.knots[left].age), chart.time(self.knots[right].age));
        let share = if ta == tb { 0.0 } else { (t - ta) / (tb - ta) };
        let guess = a.iter().zip(&b).map(|(a, b)| a + share * (b - a)).collect();
        (guess, NEWTON_REACH * patch.distance(&a, &b) + 1e-8)
    }
}

impl Point {
    /// A fit that trusts every row, kept under the name of `age`.
    pub(crate) fn ordinary(problem: &Problem, age: f64, theta: &[f64]) -> Point {
        let losses = problem.losses(theta);
        let (weights, zones) = (vec![1.0; losses.len()], vec![0; losses.len()]);
        Point { kkt: problem.kkt(theta, 0.0), weights, zones, ..point(problem, age, theta, losses) }
    }
}

fn point(problem: &Problem, age: f64, theta: &[f64], losses: Vec<f64>) -> Point {
    let coefficients = problem.coefficients();
    let u = 1.0 / age;
    Point {
        age,
        coef: theta[..coefficients].to_vec(),
        intercept: theta.get(coefficients).copied().unwrap_or(0.0),
        kkt: problem.kkt(theta, u),
        weights: losses.iter().map(|&l| problem.pacing().weight(l, u)).collect(),
        zones: losses.iter().map(|&l| problem.pacing().cuts(u).zone(l)).collect(),
        losses,
    }
}

/// Newton by value from `x`; None if it strays, stalls or ends at an unstable point.
pub(super) fn polish(patch: &mut Patch, t: f64, mut x: Vec<f64>, reach: f64) -> Option<Vec<f64>> {
    let guess = x.clone();
    patch.set_coords(&x);
    let mut last = f64::INFINITY;
    let mut fresh = false;
    for _ in 0..MAX_NEWTON {
        patch.evaluate_by_value(t, &x);
        patch.release_coords();
        let residual = patch.violation_of_kkt();
        if !residual.is_finite() {
            return None;
        }
        let stuck = fresh && residual > 0.5 * last;
        if residual <= CONVERGED || (stuck && residual <= STAGNATED) {
            return (patch.factorize() != Definiteness::Indefinite).then_some(x);
        }
        fresh = residual > 0.01 * last || patch.factor_size() != patch.membership.active.len();
        if (fresh || last.is_infinite()) && patch.factorize() == Definiteness::Indefinite {
            return None;
        }
        axpy(1.0, &patch.newton_step(), &mut x);
        patch.bind_coords(&mut x);
        if patch.distance(&x, &guess) > reach {
            return None;
        }
        last = residual;
    }
    None
}

/// Follows the path again from a knot: slower, and always on the right branch.
fn retrace(
    patch: &mut Patch,
    from: &[f64],
    age: f64,
    t: f64,
    deadline: Option<Instant>,
) -> std::result::Result<Vec<f64>, Breakdown> {
    let chart = patch.chart;
    let begin = chart.time(age);
    patch.evaluate_by_value(begin, from);
    patch.set_coords(from);
    patch.factorize();
    let mut callback = |_: &super::Progress| ControlFlow::Continue(());
    let mut watch = Watch {
        callback: &mut callback,
        chart,
        start: begin,
        stop: t,
        deadline,
        max_events: None,
        end: None,
        asked: Instant::now(),
    };
    let (mut trace, mut work) = (Trace::default(), Work::default());
    let mut ctx = Context { trace: &mut trace, watch: &mut watch, work: &mut work, goal: t, levels: Vec::new() };
    match window::follow(patch, t, &mut ctx, 0) {
        Ok(()) => Ok(patch.at.x.clone()),
        Err(halt) => Err(halt.reason()),
    }
}
