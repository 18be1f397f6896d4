//! The whole path: start, follow, certify.

use super::chart::Chart;
use super::curve::{Curve, Halt};
use super::dual;
use super::kinked;
use super::options::{Direction, PathOptions, Progress, Start};
use super::patch::Patch;
use super::trace::{RawGap, RawKnot, Trace, Watch};
use super::types::{Certificate, End, Event, Gap, Knot, Path, Work, worse};
use super::window::{self, Context};
use crate::error::{Breakdown, Error, Result};
use crate::problem::Problem;
use crate::space::Products;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::time::Instant;

/// Computes the age-path of a problem.
///
/// `watch` is called now and then with the progress made; when it answers [`ControlFlow::Break`], the path so far is
/// returned with [`End::Interrupted`]. Budgets end a path in the same way. An error means that there is no path at all.
pub fn age_path(
    problem: &Problem,
    options: &PathOptions,
    watch: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Path> {
    options.validate()?;
    match &problem.products {
        Some(products @ Products::Rows(_)) if problem.loss.is_kinked() => {
            let path = kinked::kinked_path(problem, options, watch)?;
            if !matches!(path.end, End::Gaps | End::Degenerate { .. }) {
                return Ok(path);
            }
            // Constant models, where all rows of a class lie at their kink: the dual coefficients may do better.
            let other = dual::dual_path(problem, products, options, watch);
            return Ok(other.ok().filter(|other| other.end == End::Complete).unwrap_or(path));
        }
        Some(products) => return dual::dual_path(problem, products, options, watch),
        None => {}
    }
    let begun = Instant::now();
    let (low, high) = options.ages;
    let chart = Chart::new(high);
    let (t_low, t_high) = (chart.time(low), chart.time(high));
    let down = options.direction == Direction::Down;
    let (begin, first, last) = if down { (0.0, t_high, t_low) } else { (t_low, t_low, t_high) };
    let mut patch = Patch::whole(problem, chart);
    start(&mut patch, begin, options).map_err(|reason| Error::NoSolution { age: chart.age(begin), reason })?;

    let mut trace = Trace::default();
    let mut work = Work::default();
    let mut watch = Watch {
        callback: watch,
        chart,
        start: begin,
        stop: last,
        deadline: options.time_limit.map(|limit| begun + limit),
        max_events: None,
        end: None,
    };
    let mut ctx = Context { trace: &mut trace, watch: &mut watch, work: &mut work, levels: Vec::new() };
    let mut end = Ok(());
    if begin != first {
        end = window::follow(&mut patch, first, &mut ctx, 0);
        ctx.trace.rewind((0, 0));
    }
    // Ages above the interval are followed, not reported: their events do not count.
    ctx.watch.max_events = options.max_events;
    if end.is_ok() {
        ctx.trace.knots.push(RawKnot { t: first, x: patch.at.x.clone() });
        end = window::follow(&mut patch, last, &mut ctx, 0);
    }
    let reached = patch.at.t;
    if end.is_err() && !trace.knots.is_empty() {
        // Where it stopped belongs to the path if it is a solution: a landing that failed leaves the patch anywhere.
        let mut x = patch.at.x.clone();
        patch.snap(&mut x);
        let back = HAIR * (1.0 + reached.abs()) * (first - last).signum();
        if let Some(t) = [reached, reached + back].into_iter().find(|&t| is_solution(&mut patch, t, &x)) {
            trace.push_knot(RawKnot { t, x });
        }
    }
    let end = match end {
        Ok(()) => End::Complete,
        Err(Halt::Broken(reason)) => End::Degenerate { age: chart.age(reached), reason },
        Err(Halt::Stopped) => watch.end.unwrap_or(End::Interrupted),
        Err(Halt::Escaped) => End::Degenerate { age: chart.age(reached), reason: Breakdown::Stalled },
    };
    if trace.knots.is_empty() {
        if let End::Degenerate { age, reason } = end {
            return Err(Error::NoSolution { age, reason });
        }
        // Stopped before the interval was reached: its first point, solved from where we are.
        let x = patch.at.x.clone();
        patch.evaluate_by_value(first, &x);
        let landing = patch
            .descend(None, &mut || true)
            .map_err(|_| Error::NoSolution { age: high, reason: Breakdown::Stalled })?;
        trace.knots.push(RawKnot { t: first, x: landing.x });
    }
    work.factorizations += patch.counters.factorizations;
    work.updates += patch.counters.updates;
    work.acs_fits += patch.counters.acs_fits;
    work.newton = patch.counters.evaluations;
    let mut path = assemble(problem, options, chart, trace, end);
    work.seconds = begun.elapsed().as_secs_f64();
    path.work = work;
    path.certificate = certify(problem, options, &path);
    Ok(path)
}

/// A point with a smaller residual is a solution that may end a path ...
const STILL_ON_THE_PATH: f64 = 1e-11;
/// ... on whichever side of its threshold rounding puts a loss ...
const ROUNDING: f64 = 1e-12;
/// ... and if it is none where the path stopped, it may be one so far before.
const HAIR: f64 = 1e-9;

fn is_solution(patch: &mut Patch, t: f64, x: &[f64]) -> bool {
    [0.0, -ROUNDING, ROUNDING].iter().all(|side| {
        patch.evaluate_by_value(t + side * (1.0 + t.abs()), x);
        patch.set_coords(x);
        patch.violation_of_kkt() <= STILL_ON_THE_PATH
    })
}

/// ACS steps from a start of one's own choice ...
const MAX_START_STEPS: usize = 2000;
/// ... until they are this small, relative to the point: then the basin is chosen and Newton may finish.
const CLOSE: f64 = 1e-4;

/// Brings the patch to a solution at time t.
fn start(patch: &mut Patch, t: f64, options: &PathOptions) -> std::result::Result<(), Breakdown> {
    let (n, zero) = (patch.rows(), vec![0.0; patch.cols()]);
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(options.seed);
    let choice = if options.direction == Direction::Down { Start::Full } else { options.start };
    let x = match choice {
        Start::Full => patch.fit_weighted(0.0, &zero, &vec![1.0; n])?.0,
        Start::Zero => zero,
        Start::Random => {
            let weights: Vec<f64> = (0..n).map(|_| rng.random()).collect();
            patch.fit_weighted(0.0, &zero, &weights)?.0
        }
    };
    let mut x = x;
    if options.direction == Direction::Up {
        for _ in 0..MAX_START_STEPS {
            patch.evaluate_by_value(t, &x);
            let next = patch.acs_step()?;
            let moved = patch.distance(&next, &x);
            x = next;
            if moved <= CLOSE * (1.0 + patch.norm(&x)) {
                break;
            }
        }
    }
    patch.evaluate_by_value(t, &x);
    match patch.descend(None, &mut || true) {
        Ok(_) => Ok(()),
        Err(Halt::Broken(reason)) => Err(reason),
        Err(Halt::Escaped | Halt::Stopped) => Err(Breakdown::Stalled),
    }
}

/// From the tracker's clock to ages.
pub(super) fn assemble(problem: &Problem, options: &PathOptions, chart: Chart, trace: Trace, end: End) -> Path {
    let down = options.direction == Direction::Down;
    let reached = trace.knots.last().map_or(0.0, |k| k.t);
    let age = |t: f64| {
        let age = chart.age(t);
        // The ends are the user's numbers, not their round trip through the clock.
        if (age / options.ages.0 - 1.0).abs() < 1e-12 {
            options.ages.0
        } else if (age / options.ages.1 - 1.0).abs() < 1e-12 {
            options.ages.1
        } else {
            age
        }
    };
    let features = problem.coefficients();
    let mut knots: Vec<Knot> = (trace.knots.into_iter())
        .map(|k| Knot {
            age: age(k.t),
            intercept: if problem.has_intercept() { k.x[features] } else { 0.0 },
            coef: k.x[..features].to_vec(),
        })
        .collect();
    // Times that differ in their last digit are one age.
    knots.dedup();
    let events = (trace.events.iter())
        .filter(|e| if down { e.t <= reached } else { e.t >= reached })
        .map(|e| Event { age: age(e.t), kind: e.kind, cause: e.cause, size: e.size, drop: e.drop })
        .collect();
    let gap = |g: &RawGap| Gap { from: age(g.from), to: age(g.to), residual: g.residual };
    let gaps = trace.gaps.iter().map(gap).collect();
    let (first, last) = (knots[0].age, knots[knots.len() - 1].age);
    Path {
        ages: (first.min(last), first.max(last)),
        direction: options.direction,
        knots,
        events,
        gaps,
        certificate: Certificate::default(),
        work: Work::default(),
        end,
    }
}

/// Random ages at which the path is checked unless told otherwise.
const CHECKS: usize = 1000;

/// KKT residuals at every knot and at random ages in between.
fn certify(problem: &Problem, options: &PathOptions, path: &Path) -> Certificate {
    let at_knots = path.knots.par_iter().map(|k| {
        let mut theta = k.coef.clone();
        theta.extend(problem.has_intercept().then_some(k.intercept));
        problem.kkt(&theta, 1.0 / k.age)
    });
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(options.seed);
    let (low, high) = path.ages;
    let ages: Vec<f64> = (0..options.certify.unwrap_or(CHECKS))
        .map(|_| (low.ln() + rng.random::<f64>() * (high / low).ln()).exp().clamp(low, high))
        .collect();
    // An age that cannot be solved has no residual to show: it counts as the worst possible.
    let between = ages.par_iter().map(|&age| path.at(problem, age).map_or(f64::INFINITY, |p| p.kkt));
    Certificate {
        max_kkt: at_knots.chain(between).reduce(|| 0.0, worse),
        knots_checked: path.knots.len(),
        between_checked: ages.len(),
    }
}
