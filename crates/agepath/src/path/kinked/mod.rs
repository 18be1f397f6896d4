//! The path of losses with pieces in linear space: a parametric active set.
//!
//! `space.rs` has the rows, `basis.rs` those that are pinned at a kink and the factor of the equations, `engine.rs` the point and its
//! equations, `drive.rs` the loop that moves it, `land.rs` fits and landings, `take_up.rs` a point from outside; here is the path: start, follow,
//! jump, and a hop over what cannot be followed.

mod basis;
mod drive;
mod engine;
mod land;
mod space;
mod take_up;

pub(crate) use take_up::{acs, fit};
pub(super) use take_up::{at, slope};

use super::certify::certify_knots;
use super::chart::Chart;
use super::options::{Direction, PathOptions, Progress, Start};
use super::trace::{RawEvent, RawKnot, Trace, Watch};
use super::types::{Cause, End, Kind, Knot, Path, Work};
use crate::error::{Breakdown, Error, Result};
use crate::problem::Problem;
use drive::{Change, Drive, Exit, Observer, Outcome};
use engine::{Engine, Point};
use land::Halt;
use rand::{RngExt, SeedableRng};
use space::Space;
use std::ops::ControlFlow;
use std::time::Instant;

/// Besides those at jumps, a knot is kept at the first event or step in each of so many parts of the path: any age is then
/// followed from a near one.
const PARTS: usize = 128;
/// Random ages at which the path is checked unless told otherwise: each is a stop on the way.
const CHECKS: usize = 64;
/// A landing nearer than this, in units of z, is where the path was: a turn.
const NO_JUMP: f64 = 1e-9;
/// So many landings in place, at the same time, lead nowhere.
const MAX_IN_PLACE: usize = 20;
/// The first hop, on the path's clock, and the longest.
const HOP: f64 = 1e-9;
const LONGEST_HOP: f64 = 0.1;
/// A hop is over where the residual is this small.
const CERTIFIED: f64 = 1e-10;

/// Computes the path; see [`age_path`](super::age_path).
pub(super) fn kinked_path(
    problem: &Problem,
    options: &PathOptions,
    callback: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Path> {
    let begun = Instant::now();
    let chart = Chart::new(options.ages.1);
    let (t_low, t_high) = (chart.time(options.ages.0), chart.time(options.ages.1));
    let down = options.direction == Direction::Down;
    let (begin, first, last) = if down { (0.0, t_high, t_low) } else { (t_low, t_low, t_high) };
    let deadline = options.time_limit.map(|limit| begun + limit);
    let watch =
        Watch { callback, chart, start: begin, stop: last, deadline, max_events: None, end: None, asked: begun };
    let space = Space::new(problem);
    let log = Log { space: &space, trace: Trace::default(), watch, part: (last - first) / PARTS as f64 };
    let mut tracker = Tracker { engine: Engine::new(&space, chart), log };
    let mut outcome = match tracker.start(begin, options) {
        // No minimiser was found at the very beginning: a little further on there is one.
        Err(Halt::Stuck) => tracker.hop(if down { first } else { last }),
        other => other,
    };
    outcome = outcome.and_then(|()| tracker.follow(first));
    // Ages above the interval are followed, not reported: their events do not count.
    tracker.log.trace.rewind((0, 0));
    tracker.log.watch.max_events = options.max_events;
    let stops = stops(options, first, last);
    let mut passed = 0;
    for &stop in &stops {
        if outcome.is_ok() && passed == 0 {
            tracker.log.knot(&tracker.engine);
        }
        outcome = outcome.and_then(|()| tracker.follow(stop));
        if outcome.is_err() {
            break;
        }
        tracker.log.knot(&tracker.engine);
        passed += 1;
    }
    let end = tracker.end(outcome);
    if tracker.log.trace.knots.is_empty() {
        if let End::Degenerate { age, reason } = end {
            return Err(Error::NoSolution { age, reason });
        }
        // Stopped before the interval was reached: its first point, solved from where we are.
        let engine = &mut tracker.engine;
        engine.set_time(first);
        engine.repace();
        let landed = engine.descend(None, &mut Alone);
        landed.map_err(|_| Error::NoSolution { age: chart.age(first), reason: Breakdown::Stalled })?;
        tracker.log.knot(&tracker.engine);
    } else if end.is_a_limit() {
        tracker.log.knot_where_it_stopped(&tracker.engine);
    }
    let engine = tracker.engine;
    let work = Work {
        newton: engine.counters.evaluations,
        factorizations: engine.counters.factorizations,
        updates: engine.counters.updates,
        acs_fits: engine.counters.acs_fits,
        active: engine.largest,
        seconds: begun.elapsed().as_secs_f64(),
        ..Work::default()
    };
    let mut path = super::tracker::assemble(problem, options, chart, tracker.log.trace, end);
    path.work = work;
    certify_knots(problem, &mut path, passed.min(stops.len() - 1), deadline)?;
    Ok(path)
}

/// Where the path stops, in its order: at random ages to check, and at the end.
fn stops(options: &PathOptions, first: f64, last: f64) -> Vec<f64> {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(options.seed);
    let mut shares: Vec<f64> = (0..options.certify.unwrap_or(CHECKS)).map(|_| rng.random::<f64>()).collect();
    shares.sort_unstable_by(f64::total_cmp);
    shares.dedup();
    let between = shares.into_iter().filter(|s| *s > 0.0 && *s < 1.0).map(|share| first + share * (last - first));
    between.chain([last]).collect()
}

/// θ of a knot.
fn theta(problem: &Problem, knot: &Knot) -> Vec<f64> {
    let mut theta = knot.coef.clone();
    theta.extend(problem.has_intercept().then_some(knot.intercept));
    theta
}

/// Writes down what happens, and asks the caller.
struct Log<'s, 'p, 'w> {
    space: &'s Space<'p>,
    trace: Trace,
    watch: Watch<'w>,
    /// The length of a part of the path, with its sign.
    part: f64,
}

impl Log<'_, '_, '_> {
    fn knot(&mut self, engine: &Engine) {
        self.knot_at(engine.t, &engine.theta);
    }

    fn knot_at(&mut self, t: f64, theta: &[f64]) {
        self.trace.push_knot(RawKnot { t, x: self.space.outside(theta) });
    }

    /// The first point of a part of the path.
    fn knot_by_the_way(&mut self, engine: &Engine) {
        if self.trace.knots.last().is_some_and(|last| (engine.t - last.t) / self.part >= 1.0) {
            self.knot(engine);
        }
    }

    /// Where somebody said stop, the point may be in the middle of a landing: then the last knot ends the path.
    fn knot_where_it_stopped(&mut self, engine: &Engine) {
        let theta = self.space.outside(&engine.theta);
        let ahead = self.trace.knots.last().is_some_and(|last| (engine.t - last.t) * self.part > 0.0);
        if ahead && self.space.problem.kkt(&theta, engine.chart.inverse_age(engine.t)) <= CERTIFIED {
            self.knot(engine);
        }
    }

    fn event(&mut self, t: f64, kind: Kind, change: Option<Change>, (size, drop): (f64, f64)) {
        let cause = match change {
            Some((i, from, to)) => Cause::Sample { index: self.space.ids[i], from, to },
            None => Cause::Fold,
        };
        match kind {
            Kind::Turning => {
                for cause in self.space.twins.each(cause) {
                    self.trace.push_event(RawEvent { t, kind, cause, size, drop });
                }
            }
            Kind::Jump => self.trace.push_event(RawEvent { t, kind, cause, size, drop }),
        }
    }
}

impl Observer for Log<'_, '_, '_> {
    fn go_on(&mut self, t: f64) -> bool {
        self.watch.ask(t, &self.trace)
    }

    fn moved(&mut self, engine: &Engine) {
        self.knot_by_the_way(engine);
    }

    fn turned(&mut self, engine: &Engine, change: Change) {
        if change.1 != change.2 {
            self.event(engine.t, Kind::Turning, Some(change), (0.0, 0.0));
        }
    }
}

/// Asks nobody.
struct Alone;

impl Observer for Alone {
    fn go_on(&mut self, _: f64) -> bool {
        true
    }
}

/// The engine and what it reports to.
struct Tracker<'s, 'p, 'w> {
    engine: Engine<'s, 'p>,
    log: Log<'s, 'p, 'w>,
}

impl Tracker<'_, '_, '_> {
    /// Brings the engine to a solution at time t.
    fn start(&mut self, t: f64, options: &PathOptions) -> std::result::Result<(), Halt> {
        let engine = &mut self.engine;
        engine.set_time(t);
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(options.seed);
        let choice = if options.direction == Direction::Down { Start::Full } else { options.start };
        let scale = engine.space.scale.clone();
        match choice {
            Start::Full => engine.fit(scale, &mut self.log)?,
            Start::Zero => {}
            Start::Random => {
                let draws: Vec<f64> = (0..engine.space.problem.rows()).map(|_| rng.random()).collect();
                let weights = engine.space.ids.iter().zip(&scale).map(|(&i, s)| s * draws[i]).collect();
                engine.fit(weights, &mut self.log)?;
            }
        }
        engine.repace();
        let here = engine.point();
        let landed = engine.descend(None, &mut self.log).map(|_| ());
        if landed == Err(Halt::Stuck) {
            engine.load(&here);
        }
        landed
    }

    /// Follows the branch to time `to`, over its jumps.
    fn follow(&mut self, to: f64) -> std::result::Result<(), Halt> {
        let (mut in_place, mut landed_at) = (0, f64::NAN);
        // Where weights drop, rows that tie go one by one.
        let tied = if self.engine.space.problem.pacing.is_continuous() { 0 } else { self.engine.space.n() };
        loop {
            match self.engine.drive(&Drive::Age(to), &mut self.log) {
                Outcome::Arrived => return Ok(()),
                Outcome::Stopped => return Err(Halt::Stopped),
                Outcome::Unbounded => return Err(Halt::Unbounded),
                Outcome::Stuck => self.hop(to)?,
                Outcome::Jump(exit) => {
                    in_place = if landed_at == self.engine.t { in_place + 1 } else { 0 };
                    landed_at = self.engine.t;
                    let before = self.engine.point();
                    match if in_place > MAX_IN_PLACE + tied { Err(Halt::Stuck) } else { self.jump(&exit) } {
                        Err(Halt::Stuck) => {
                            self.engine.load(&before);
                            self.hop(to)?;
                        }
                        other => other?,
                    }
                }
            }
        }
    }

    fn jump(&mut self, exit: &Exit) -> std::result::Result<(), Halt> {
        let (t, before) = (self.engine.t, self.engine.theta.clone());
        let drop = self.engine.descend(Some(exit), &mut self.log)?;
        let size = self.engine.distance(&self.engine.theta, &before);
        if size <= NO_JUMP {
            exit.change.into_iter().for_each(|change| self.log.turned(&self.engine, change));
            return Ok(());
        }
        self.log.knot_at(t, &before);
        self.log.knot(&self.engine);
        self.log.event(t, Kind::Jump, exit.change, (self.length(&before), drop));
        Ok(())
    }

    /// ‖Δθ‖ since `before`.
    fn length(&self, before: &[f64]) -> f64 {
        self.engine.theta.iter().zip(before).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }

    /// A landing at time t from where the engine is; the residual there.
    fn land_at(&mut self, t: f64) -> std::result::Result<f64, Halt> {
        self.engine.set_time(t);
        self.engine.repace();
        self.engine.descend(None, &mut self.log)?;
        let theta = self.engine.space.outside(&self.engine.theta);
        Ok(self.engine.space.problem.kkt(&theta, self.engine.at.u))
    }

    /// Lands a little further on, ten times further if that cannot be certified: a gap.
    fn hop(&mut self, to: f64) -> std::result::Result<(), Halt> {
        let (from, before) = (self.engine.t, self.engine.point());
        let mut width = HOP;
        let mut best: Option<(f64, f64, Point)> = None;
        while width <= LONGEST_HOP {
            let t = from + (to - from).signum() * width.min((to - from).abs());
            self.engine.load(&before);
            match self.land_at(t) {
                Ok(residual) => {
                    if best.as_ref().is_none_or(|(least, ..)| residual < *least) {
                        best = Some((residual, t, self.engine.point()));
                    }
                    if residual <= CERTIFIED {
                        break;
                    }
                }
                Err(Halt::Stuck) => {}
                Err(halt) => return Err(halt),
            }
            if t == to {
                break;
            }
            width *= 10.0;
        }
        let Some((_, t, point)) = best else {
            // Nothing was found within reach: the branch goes on from where it was, further on.
            self.engine.load(&before);
            let t = from + (to - from).signum() * LONGEST_HOP.min((to - from).abs());
            self.log.trace.hops.push((from, t));
            self.engine.set_time(t);
            self.engine.repace();
            return Ok(());
        };
        self.engine.set_time(t);
        self.engine.load(&point);
        self.engine.evaluate();
        self.log.trace.hops.push((from, t));
        let size = self.engine.distance(&self.engine.theta, &before.theta);
        if size > NO_JUMP.max(10.0 * (t - from).abs()) {
            let drop = self.engine.merit(&before.theta) - self.engine.merit(&self.engine.theta);
            self.log.knot_at(from, &before.theta);
            self.log.knot(&self.engine);
            let drop = drop * self.engine.space.problem.ridge;
            self.log.event(t, Kind::Jump, None, (self.length(&before.theta), drop));
        } else {
            self.log.knot(&self.engine);
        }
        Ok(())
    }

    fn end(&self, outcome: std::result::Result<(), Halt>) -> End {
        let age = self.engine.chart.age(self.engine.t);
        match outcome {
            Ok(()) => End::Complete,
            Err(Halt::Stopped) => self.log.watch.end.unwrap_or(End::Interrupted),
            Err(Halt::Unbounded) => End::Degenerate { age, reason: Breakdown::Unbounded },
            Err(Halt::Stuck) => End::Degenerate { age, reason: Breakdown::Stalled },
        }
    }
}
