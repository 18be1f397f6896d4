//! The whole path: start, follow, certify; and the solution at any age.

use super::super::certify::certify_knots;
use super::super::chart::Chart;
use super::super::curve::{Curve, GoOn, Halt};
use super::super::follow::{Follower, Record, Step};
use super::super::options::{Direction, PathOptions, Progress, Start};
use super::super::trace::{GRACE, RawEvent, RawKnot, Trace, Watch};
use super::super::twins::Twins;
use super::super::types::{Cause, End, Kind, Knot, Path, Work};
use super::Dual;
use super::fit::FINE;
use crate::error::{Breakdown, Error, Result};
use crate::problem::Problem;
use crate::space::Products;
use rand::{RngExt, SeedableRng};
use std::ops::ControlFlow;
use std::time::Instant;

/// Besides those at jumps, a knot is kept at the first event or step in each of so many parts of the path: any age is then
/// followed from a near one.
const PARTS: usize = 128;
/// Random ages at which the path is checked unless told otherwise: each is a stop on the way.
const CHECKS: usize = 64;
/// At the start, wherever ACS settles is the basin that was asked for: Newton may move by this much, in units of z.
const ANY_BASIN: f64 = 0.1;

/// Computes the path; see [`age_path`](super::super::age_path).
pub(in super::super) fn dual_path(
    problem: &Problem,
    products: &Products,
    options: &PathOptions,
    watch: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Path> {
    let begun = Instant::now();
    let (low, high) = options.ages;
    let chart = Chart::new(high);
    let (t_low, t_high) = (chart.time(low), chart.time(high));
    let down = options.direction == Direction::Down;
    let (mut begin, first, last) = if down { (0.0, t_high, t_low) } else { (t_low, t_low, t_high) };
    let mut dual = Dual::new(problem, products, chart);
    let deadline = options.time_limit.map(|limit| begun + limit);
    let mut watch =
        Watch { callback: watch, chart, start: begin, stop: last, deadline, max_events: None, end: None, asked: begun };
    let mut start_at =
        |t: f64| start(&mut dual, t, options, &mut || watch.ask(t, &Trace::default()) || begun.elapsed() < GRACE);
    let mut x = start_at(begin);
    if begin != first && x.as_ref().is_err_and(|reason| *reason != Breakdown::OutOfTime) {
        // Where all rows count fully, nothing may determine the intercept; at any age, the weights do.
        begin = first;
        x = start_at(begin);
    }
    let x = x.map_err(|reason| Error::NoSolution { age: chart.age(begin), reason })?;
    let part = (last - first) / PARTS as f64;
    let twins = dual.twins.clone();
    let mut log = Log { trace: Trace::default(), watch, problem, products, twins, part };
    let mut follower = Follower::new(&mut dual, begin, x);
    let mut outcome = follower.advance(first, &mut log);
    // Ages above the interval are followed, not reported: their events do not count.
    log.trace.rewind((0, 0));
    log.watch.max_events = options.max_events;
    let stops = stops(options, t_low, t_high, down);
    let mut passed = 0;
    if outcome.is_ok() {
        log.knot(first, &follower.x);
        follower.goal = Some(last);
        for &stop in &stops {
            // A hop may have led past it.
            if (stop - follower.t) * (last - first) <= 0.0 && stop != last {
                continue;
            }
            outcome = follower.advance(stop, &mut log);
            if outcome.is_err() {
                break;
            }
            if follower.t != stop {
                continue;
            }
            log.knot(stop, &follower.x);
            passed += 1;
            if !log.watch.go_on(stop, &log.trace) {
                outcome = Err(Halt::Stopped);
                break;
            }
        }
    }
    let (t, x) = (follower.t, follower.x);
    let end = match outcome {
        Ok(()) => End::Complete,
        Err(Halt::Stopped) => log.watch.end.unwrap_or(End::Interrupted),
        Err(halt) => End::Degenerate { age: chart.age(t), reason: halt.reason() },
    };
    if log.trace.knots.is_empty() {
        if let End::Degenerate { age, reason } = end {
            return Err(Error::NoSolution { age, reason });
        }
        // Stopped before the interval was reached: its first point, solved from where we are, if that is quick.
        let stopped = Instant::now();
        let end = dual
            .walk(first, x.clone(), &x, (ANY_BASIN, FINE), &mut || stopped.elapsed() < GRACE)
            .map_err(|_| Error::NoSolution { age: high, reason: Breakdown::OutOfTime })?;
        log.knot(first, &end);
    } else if end != End::Complete {
        log.knot(t, &x);
    }
    let work = Work {
        newton: dual.counters.evaluations,
        factorizations: dual.counters.factorizations,
        updates: dual.counters.updates,
        acs_fits: dual.counters.acs_fits,
        active: dual.largest,
        seconds: begun.elapsed().as_secs_f64(),
        ..Work::default()
    };
    let mut path = super::super::tracker::assemble(problem, options, chart, log.trace, end);
    path.work = work;
    // The last stop is the end of the path, not a random age.
    certify_knots(problem, &mut path, passed.min(stops.len() - 1), deadline)?;
    Ok(path)
}

/// Where the path stops, in its order: at random ages to check, and at the end.
fn stops(options: &PathOptions, t_low: f64, t_high: f64, down: bool) -> Vec<f64> {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(options.seed);
    let mut shares: Vec<f64> = (0..options.certify.unwrap_or(CHECKS)).map(|_| rng.random::<f64>()).collect();
    shares.push(1.0);
    shares.sort_unstable_by(f64::total_cmp);
    shares.dedup();
    let (from, to) = if down { (t_high, t_low) } else { (t_low, t_high) };
    let at = |share: f64| if share == 1.0 { to } else { from + share * (to - from) };
    shares.into_iter().filter(|s| *s > 0.0).map(at).collect()
}

/// θ of a knot.
fn theta(problem: &Problem, knot: &Knot) -> Vec<f64> {
    let mut theta = knot.coef.clone();
    theta.extend(problem.has_intercept().then_some(knot.intercept));
    theta
}

/// Brings the curve to a solution at time t.
fn start(dual: &mut Dual, t: f64, options: &PathOptions, go_on: GoOn<'_>) -> std::result::Result<Vec<f64>, Breakdown> {
    let n = dual.n();
    let zero = vec![0.0; 2 * n + 1];
    let choice = if options.direction == Direction::Down { Start::Full } else { options.start };
    let x = match choice {
        Start::Full => dual.fit_weighted(&vec![1.0; n], go_on)?,
        Start::Zero => zero,
        Start::Random => {
            let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(options.seed);
            let weights: Vec<f64> = (0..n).map(|_| rng.random()).collect();
            dual.fit_weighted(&weights, go_on)?
        }
    };
    let here = x.clone();
    dual.walk(t, x, &here, (ANY_BASIN, FINE), go_on).map_err(Halt::reason)
}

/// Events and the knots around jumps.
struct Log<'w> {
    trace: Trace,
    watch: Watch<'w>,
    problem: &'w Problem,
    products: &'w Products,
    twins: Twins,
    /// The length of a part of the path, with its sign.
    part: f64,
}

impl Log<'_> {
    fn knot(&mut self, t: f64, x: &[f64]) {
        let n = self.products.len();
        let mut beta = x[..n].to_vec();
        self.twins.divide(&mut beta, &self.problem.scale);
        self.trace.push_knot(RawKnot { t, x: self.problem.theta_of(self.products, &beta, x[n]) });
    }

    /// The first point of a part of the path.
    fn knot_by_the_way(&mut self, t: f64, x: &[f64]) {
        if self.trace.knots.last().is_some_and(|last| (t - last.t) / self.part >= 1.0) {
            self.knot(t, x);
        }
    }

    fn event(&mut self, event: RawEvent) -> bool {
        self.trace.push_event(event);
        self.watch.ask(event.t, &self.trace)
    }
}

impl Record for Log<'_> {
    fn record(&mut self, step: Step<'_>) -> bool {
        match step {
            Step::Turn { t, x, cause } => {
                self.knot_by_the_way(t, x);
                let turning = |cause| RawEvent { t, kind: Kind::Turning, cause, size: 0.0, drop: 0.0 };
                self.twins.each(cause).into_iter().all(|cause| self.event(turning(cause)))
            }
            Step::Leap { t, cause, from, to, size, drop } => {
                self.knot(t, from);
                self.knot(t, to);
                self.event(RawEvent { t, kind: Kind::Jump, cause, size, drop })
            }
            Step::Move { t, x } => {
                self.knot_by_the_way(t, x);
                self.watch.ask(t, &self.trace)
            }
            Step::Hop { t, from, to, changes, jump, ran_away } => {
                self.knot(t, from);
                self.knot(to.0, to.1);
                let each: Vec<Cause> = changes.iter().flat_map(|&cause| self.twins.each(cause)).collect();
                self.trace.push_hop((t, to.0), &each, jump, ran_away);
                self.watch.go_on(t, &self.trace)
            }
            Step::Descent { t } => self.watch.ask(t, &self.trace),
        }
    }
}

/// Ignores everything but the time.
struct Silent(Option<Instant>);

impl Record for Silent {
    fn record(&mut self, _: Step<'_>) -> bool {
        self.0.is_none_or(|deadline| Instant::now() < deadline)
    }
}

/// θ at `age`, followed from `knot`.
pub(in super::super) fn at(
    problem: &Problem,
    products: &Products,
    high: f64,
    knot: &Knot,
    (age, deadline): (f64, Option<Instant>),
) -> Result<Vec<f64>> {
    let chart = Chart::new(high);
    let mut dual = Dual::new(problem, products, chart);
    let x = follow_to(&mut dual, knot, age, deadline)?;
    Ok(dual.theta(&x))
}

fn follow_to(dual: &mut Dual, knot: &Knot, age: f64, deadline: Option<Instant>) -> Result<Vec<f64>> {
    let (begin, t) = (dual.chart.time(knot.age), dual.chart.time(age));
    let x = dual.point_at(&theta(dual.problem, knot), 1.0 / knot.age);
    dual.place_tied(begin, &x);
    let x = dual.polish(begin, x.clone()).unwrap_or(x);
    follow_on(dual, begin, x, t, deadline).map_err(|halt| Error::NoSolution { age, reason: halt.reason() })
}

fn follow_on(
    dual: &mut Dual,
    begin: f64,
    x: Vec<f64>,
    t: f64,
    deadline: Option<Instant>,
) -> std::result::Result<Vec<f64>, Halt> {
    let mut follower = Follower::new(dual, begin, x);
    follower.advance(t, &mut Silent(deadline))?;
    Ok(follower.x)
}

/// dθ/dλ at the solution `point` at its age.
pub(in super::super) fn slope(problem: &Problem, products: &Products, high: f64, point: &Knot) -> Result<Vec<f64>> {
    let chart = Chart::new(high);
    let mut dual = Dual::new(problem, products, chart);
    let t = chart.time(point.age);
    let x = dual.point_at(&theta(problem, point), 1.0 / point.age);
    dual.place_tied(t, &x);
    let stalled = Error::NoSolution { age: point.age, reason: Breakdown::Stalled };
    let x = dual.polish(t, x).ok_or(stalled)?;
    dual.evaluate(t, &x);
    // λ = 1/u, so dλ/dt = −λ² du/dt.
    let clock = -point.age * point.age * chart.speed(t);
    let motion = dual.tangent();
    Ok(dual.theta(&motion).into_iter().map(|by_time| by_time / clock).collect())
}

/// SMO's tolerance where the fit itself is wanted, in units of z.
const FIT_TOLERANCE: f64 = 1e-9;

/// θ of the weighted convex fit.
pub(crate) fn fit(problem: &Problem, products: &Products, weights: &[f64]) -> std::result::Result<Vec<f64>, Breakdown> {
    let mut dual = Dual::new(problem, products, Chart::new(1.0));
    let zero = vec![0.0; 2 * dual.n() + 1];
    let each: Vec<f64> = problem.scale.iter().zip(weights).map(|(s, v)| s * v / problem.ridge).collect();
    let mut c = each.clone();
    dual.twins.merge(&mut c);
    let x = dual.fit_to(&zero, &c, FIT_TOLERANCE, &mut || true)?;
    Ok(dual.theta_shared(&x, &each))
}

/// One step of plain ACS: θ of the fit with the weights of the losses at `theta`.
pub(crate) fn acs(
    problem: &Problem,
    products: &Products,
    age: f64,
    theta: &[f64],
) -> std::result::Result<Vec<f64>, Breakdown> {
    let mut dual = Dual::new(problem, products, Chart::new(age));
    let x = dual.point_at(theta, 1.0 / age);
    let weight = |l: f64| problem.pacing.weight(l, 1.0 / age);
    let weights: Vec<f64> = problem.losses(theta).into_iter().map(weight).collect();
    let x = dual.fit_to(&x, &dual.scaled(&weights), FIT_TOLERANCE, &mut || true)?;
    Ok(dual.theta(&x))
}
