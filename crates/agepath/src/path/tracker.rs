//! The whole path: start, follow, certify.

use super::certify::certify;
use super::chart::Chart;
use super::curve::{Curve, GoOn, Halt};
use super::dual;
use super::kinked;
use super::options::{Direction, PathOptions, Progress, Start};
use super::patch::Patch;
use super::steps;
use super::trace::{GRACE, RawKnot, Trace, Watch};
use super::types::{Certificate, End, Event, Gap, Knot, Path, Work};
use super::window::{self, Context};
use crate::error::{Breakdown, Error, Result};
use crate::loss::TargetKind;
use crate::problem::Problem;
use crate::space::Products;
use rand::{RngExt, SeedableRng};
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
    options.check_from(problem)?;
    match &problem.products {
        Some(products @ Products::Rows(_)) if problem.loss.is_kinked() => {
            let begun = Instant::now();
            let path = kinked::kinked_path(problem, options, watch);
            let poor = match &path {
                Ok(path) => matches!(path.end, End::Gaps | End::Degenerate { .. }),
                Err(error) => matches!(error, Error::NoSolution { reason, .. } if *reason != Breakdown::OutOfTime),
            };
            if !poor {
                return path;
            }
            // Constant models, where all rows of a class lie at their kink: the dual coefficients may do better.
            let left = options.time_limit.map(|limit| limit.saturating_sub(begun.elapsed()));
            let options = PathOptions { time_limit: left, ..options.clone() };
            let other = dual::dual_path(problem, products, &options, watch);
            return match (path, other) {
                (_, Ok(other)) if other.end == End::Complete => Ok(other),
                (Err(_), Ok(other)) => Ok(other),
                (path, _) => path,
            };
        }
        Some(products) => return dual::dual_path(problem, products, options, watch),
        None => {}
    }
    let begun = Instant::now();
    let (low, high) = options.ages;
    let chart = Chart::new(high);
    let (t_low, t_high) = (chart.time(low), chart.time(high));
    let down = options.direction == Direction::Down;
    let (first, last) = if down { (t_high, t_low) } else { (t_low, t_high) };
    let begin = if down && options.from.is_none() { 0.0 } else { first };
    let mut watch = Watch {
        callback: watch,
        chart,
        start: begin,
        stop: last,
        deadline: options.time_limit.map(|limit| begun + limit),
        max_events: None,
        end: None,
        asked: begun,
    };
    let mut patch = Patch::whole(problem, chart);
    patch.deadline = watch.deadline.map(|deadline| deadline.max(begun + GRACE));
    let mut run =
        Run { patch, trace: Trace::default(), work: Work::default(), watch: &mut watch, options, notes: Vec::new() };
    let end = run.follow(begin, first, last)?;
    let Run { patch, trace, mut work, notes, .. } = run;
    work.factorizations += patch.counters.factorizations;
    work.updates += patch.counters.updates;
    work.acs_fits += patch.counters.acs_fits;
    work.newton = patch.counters.evaluations;
    let mut path = assemble(problem, options, chart, trace, end);
    path.notes.splice(0..0, notes);
    work.seconds = begun.elapsed().as_secs_f64();
    path.work = work;
    let deadline = watch.deadline;
    certify(problem, options, &mut path, deadline, &mut || watch.go_on_silently())?;
    Ok(path)
}

/// A point with a smaller residual is a solution that may end a path ...
const STILL_ON_THE_PATH: f64 = 1e-11;
/// ... on whichever side of its threshold rounding puts a loss ...
const ROUNDING: f64 = 1e-12;
/// ... and if it is none where the path stopped, it may be one so far before.
const HAIR: f64 = 1e-9;
/// ACS steps from a start of one's own choice at most ...
const MAX_START_STEPS: usize = 50;
/// ... or until they are this small, relative to the point: then the basin is chosen and the descent may finish.
const CLOSE: f64 = 1e-4;
/// Bisections for the lowest age that has a minimiser to start from.
const SEARCHES: usize = 12;

/// A path in the making.
struct Run<'p, 'w, 'c> {
    patch: Patch<'p>,
    trace: Trace,
    work: Work,
    watch: &'c mut Watch<'w>,
    options: &'c PathOptions,
    notes: Vec<String>,
}

impl Run<'_, '_, '_> {
    /// From `begin` to `last`; what lies before `first` is followed, not reported.
    fn follow(&mut self, begin: f64, first: f64, last: f64) -> Result<End> {
        let chart = self.patch.chart;
        let (begin, first) = match self.start(begin, first, last) {
            Ok(begun) => begun,
            Err(Halt::Stopped) => return self.first_point(first, self.watch.end.unwrap_or(End::Interrupted)),
            Err(halt) => return Err(Error::NoSolution { age: chart.age(begin), reason: halt.reason() }),
        };
        let mut end = Ok(());
        if begin != first {
            end = self.drive(first);
            self.trace.rewind((0, 0));
        }
        // Ages above the interval are followed, not reported: their events do not count.
        self.watch.max_events = self.options.max_events;
        if end.is_ok() {
            self.trace.knots.push(RawKnot { t: first, x: self.patch.at.x.clone() });
            end = self.drive(last);
        }
        self.close(end, first, last)
    }

    /// Follows to `stop`.
    fn drive(&mut self, stop: f64) -> std::result::Result<(), Halt> {
        let (trace, work) = (&mut self.trace, &mut self.work);
        let mut ctx = Context { trace, watch: self.watch, work, goal: stop, levels: Vec::new() };
        match self.patch.problem.pacing.is_continuous() {
            true => window::follow(&mut self.patch, stop, &mut ctx, 0),
            false => steps::follow(&mut self.patch, stop, &mut ctx),
        }
    }

    /// Stops where the path has come to, and says why.
    fn close(&mut self, end: std::result::Result<(), Halt>, first: f64, last: f64) -> Result<End> {
        let (reached, chart) = (self.patch.at.t, self.patch.chart);
        if end.is_err() && !self.trace.knots.is_empty() {
            // Where it stopped belongs to the path if it is a solution: a landing that failed leaves the patch anywhere.
            let mut x = self.patch.at.x.clone();
            self.patch.snap(&mut x);
            let back = HAIR * (1.0 + reached.abs()) * (first - last).signum();
            let patch = &mut self.patch;
            if let Some(t) = [reached, reached + back].into_iter().find(|&t| is_solution(patch, t, &x)) {
                self.trace.push_knot(RawKnot { t, x });
            }
        }
        let end = match end {
            Ok(()) => return Ok(End::Complete),
            Err(Halt::Stopped) => self.watch.end.unwrap_or(End::Interrupted),
            Err(halt) => End::Degenerate { age: chart.age(reached), reason: halt.reason() },
        };
        match (self.trace.knots.is_empty(), end) {
            (false, _) => Ok(end),
            (true, End::Degenerate { age, reason }) => Err(Error::NoSolution { age, reason }),
            (true, _) => self.first_point(first, end),
        }
    }

    /// Stopped before the interval was reached: its first point, solved from where we are, if that is quick.
    fn first_point(&mut self, first: f64, end: End) -> Result<End> {
        let begun = Instant::now();
        self.patch.deadline = Some(begun + GRACE);
        let mut x = self.patch.at.x.clone();
        x.resize(self.patch.cols(), 0.0);
        self.patch.evaluate_by_value(first, &x);
        let landing = self.patch.descend(&mut || begun.elapsed() < GRACE);
        let age = self.patch.chart.age(first);
        let landing = landing.map_err(|_| Error::NoSolution { age, reason: Breakdown::OutOfTime })?;
        self.trace.knots.push(RawKnot { t: first, x: landing.x });
        Ok(end)
    }

    /// Brings the patch to a solution at `begin`, or as soon after it as there is one to begin with. Answers where it begins
    /// and from where on it is reported.
    fn start(&mut self, begin: f64, first: f64, last: f64) -> std::result::Result<(f64, f64), Halt> {
        let x = self.first_guess()?;
        if self.options.direction == Direction::Down && self.options.from.is_none() {
            let watch = &mut *self.watch;
            let trace = &self.trace;
            self.patch.evaluate_by_value(begin, &x);
            self.patch.descend(&mut || watch.ask(begin, trace))?;
            return Ok((begin, first));
        }
        let t = self.begin_from(&x, begin, last)?;
        if t != begin {
            self.say_later(t, "no bounded minimiser below keeps rows of every class");
        }
        Ok((t, t))
    }

    fn say_later(&mut self, t: f64, why: &str) {
        self.notes.push(format!("the path begins at age {}: {why}", self.patch.chart.age(t)));
    }

    /// Where the descent begins: the ordinary fit, zero, or a fit with random weights.
    fn first_guess(&mut self) -> std::result::Result<Vec<f64>, Halt> {
        if let Some(given) = &self.options.from {
            return Ok(given.clone());
        }
        let (n, zero) = (self.patch.rows(), vec![0.0; self.patch.cols()]);
        let choice = if self.options.direction == Direction::Down { Start::Full } else { self.options.start };
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(self.options.seed);
        let weights: Vec<f64> = match choice {
            Start::Full => vec![1.0; n],
            Start::Zero => return Ok(zero),
            Start::Random => (0..n).map(|_| rng.random()).collect(),
        };
        Ok(self.patch.fit_weighted(0.0, &zero, &weights).map_err(Halt::Broken)?.0)
    }

    /// The patch at a bounded minimiser that keeps rows, reached from x: at `from` or, where there is none, at the time nearest to it
    /// on the way to `to`, by bisection.
    fn begin_from(&mut self, x: &[f64], from: f64, to: f64) -> std::result::Result<f64, Halt> {
        let first = self.begins_at(x, from)?;
        if first == Found::Rows {
            return Ok(from);
        }
        if self.begins_at(x, to)? != Found::Rows {
            // No age in reach keeps rows: a solution that counts none is one all the same.
            return match first == Found::NoRows && self.begins_at(x, from)? == first {
                true => Ok(from),
                false => Err(Halt::Broken(Breakdown::Unbounded)),
            };
        }
        let (mut none, mut some) = (from, to);
        for _ in 0..SEARCHES {
            let middle = 0.5 * (none + some);
            if self.begins_at(x, middle)? == Found::Rows { some = middle } else { none = middle }
        }
        self.begins_at(x, some)?;
        Ok(some)
    }

    /// Descends from x at time t, ACS first: it chooses the basin.
    fn begins_at(&mut self, x: &[f64], t: f64) -> std::result::Result<Found, Halt> {
        let watch = &mut *self.watch;
        let trace = &self.trace;
        let mut go_on = || watch.ask(t, trace);
        match settle_from(&mut self.patch, x, t, &mut go_on) {
            // A start of one's own choice may count no row.
            Ok(()) if self.options.start != Start::Full || keeps_rows(&self.patch) => Ok(Found::Rows),
            Ok(()) => Ok(Found::NoRows),
            Err(Halt::Stopped) => Err(Halt::Stopped),
            Err(_) => Ok(Found::Nothing),
        }
    }
}

/// What a descent at the start came to.
#[derive(Clone, Copy, PartialEq)]
enum Found {
    /// A bounded minimiser that keeps rows of every class.
    Rows,
    /// One that does not.
    NoRows,
    /// None.
    Nothing,
}

/// Whether every class keeps rows; for numbers, whether any row counts.
fn keeps_rows(patch: &Patch) -> bool {
    let counts = |side: f64| {
        let rows = patch.target.iter().zip(&*patch.scale).zip(&patch.at.weight.value);
        rows.into_iter().any(|((y, s), v)| s * v > 0.0 && y * side > 0.0)
    };
    match patch.problem.loss.target() {
        TargetKind::Sign => counts(1.0) && counts(-1.0),
        TargetKind::Real => patch.scale.iter().zip(&patch.at.weight.value).any(|(s, v)| s * v > 0.0),
    }
}

/// ACS from x at time t until it crawls, then a descent.
fn settle_from(patch: &mut Patch, x: &[f64], t: f64, go_on: GoOn<'_>) -> std::result::Result<(), Halt> {
    let mut x = x.to_vec();
    for _ in 0..MAX_START_STEPS {
        if !go_on() {
            return Err(Halt::Stopped);
        }
        patch.evaluate_by_value(t, &x);
        let next = patch.acs_step().map_err(Halt::Broken)?;
        let moved = patch.distance(&next, &x);
        x = next;
        if moved <= CLOSE * (1.0 + patch.norm(&x)) {
            break;
        }
    }
    patch.evaluate_by_value(t, &x);
    patch.descend(go_on).map(|_| ())
}

fn is_solution(patch: &mut Patch, t: f64, x: &[f64]) -> bool {
    [0.0, -ROUNDING, ROUNDING].iter().all(|side| {
        patch.evaluate_by_value(t + side * (1.0 + t.abs()), x);
        patch.set_coords(x);
        patch.violation_of_kkt() <= STILL_ON_THE_PATH
    })
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
    let gaps: Vec<Gap> = (trace.hops.iter())
        .filter(|hop| if down { hop.1 <= reached } else { hop.1 >= reached })
        .map(|hop| Gap { from: age(hop.0), to: age(hop.1), residual: 0.0 })
        .collect();
    let escape = |&(from, to): &(f64, f64)| {
        let (from, to) = (age(from), age(to));
        format!(
            "at age {from} the branch runs away to infinity; the path goes on from age {to}, reached from the ordinary fit"
        )
    };
    let notes = trace.escapes.iter().map(escape).collect();
    let (first, last) = (knots[0].age, knots[knots.len() - 1].age);
    Path {
        ages: (first.min(last), first.max(last)),
        direction: options.direction,
        knots,
        events,
        gaps,
        notes,
        certificate: Certificate::default(),
        work: Work::default(),
        end,
    }
}
