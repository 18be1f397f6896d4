//! Following a curve event by event: predict → correct → locate the first event → turn or jump → record.

use super::curve::{Crossing, Curve, Halt, Landing, Stability, Verdict};
use super::types::Cause;
use crate::error::Breakdown;
use crate::linalg::axpy;

/// Newton stops at this relative residual: a few hundred roundings of the terms that cancel.
const CONVERGED: f64 = 1e-13;
/// A residual that no longer falls is accepted below this.
const STAGNATED: f64 = 1e-11;
/// Newton iterations before giving up.
const MAX_NEWTON: usize = 12;
/// A chord iteration that gains less than this is followed by a fresh factor.
const SLOW: f64 = 0.02;
/// A slope is corrected by less than this share of it: more is not the slope's error.
const SECANT: f64 = 0.5;
/// The corrector may move the point by at most this share of what the predictor did: else the step was too long to be
/// sure of the branch.
const PREDICTOR_SHARE: f64 = 0.5;
/// When it moved by more than this share, the tangents at both ends must explain the displacement ...
const STRAIGHT: f64 = 0.03;
/// ... up to this share of it. A jump inside the step is a displacement that no tangent explains.
const UNEXPLAINED: f64 = 0.05;
/// Displacements below this are rounding, whatever the share.
const TINY_MOVE: f64 = 1e-7;
/// A point that moves by less than this from one step to the next stands still: its curve has no folds but rounding's.
const AT_REST: f64 = 1e-14;
/// A hop goes so far at first, relative to 1 + |t| ...
pub(super) const HAIR: f64 = 1e-9;
/// ... and so many times further where nothing can be certified there, or where the last hop was no more than so many of its
/// widths ago.
const HOP_GROWTH: f64 = 10.0;
const HOPS_APART: f64 = 1e3;
/// A minimiser that has moved by less than so many times the square root of a hop's width is the same one: next to a fold a
/// point moves like that.
const CONTINUOUS: f64 = 3.0;
/// A hop ends at a point with at most this residual: half of what a certificate may have.
const HOP_CERTIFIED: f64 = 5e-10;
/// Where a hop has come to this share of what is left, the ordinary fit is as good a start as where the path is.
const FAR: f64 = 1e-3;
/// Halvings, in its logarithm, of a hop that ended far away.
const NEARER: usize = 6;
/// Just behind where a branch ended: a share of a hair ...
const BEHIND: f64 = 0.5;
/// ... and further, so many times in all, where it has not ended yet.
const FOLD_LOOKS: usize = 4;
/// Times that differ by less, relatively, are the same.
pub(super) const SAME_TIME: f64 = 4.0 * f64::EPSILON;
/// A step of this length, relative to 1 + |t|, that fails means that the curve ends here: a fold.
const LEAST_STEP: f64 = 1e-9;
/// Share of the way to a fold that is left after one step ...
const FOLD_LEFT: f64 = 0.1;
/// ... but less, in proportion, when two estimates of its place agree better than that ...
const FOLD_AGREEMENT: f64 = 0.3;
/// ... and at least this share, which the predictor can still reach.
const FOLD_LEAST_LEFT: f64 = 1e-3;
/// After a failure, a step may be this many times as long as the last, measured along the curve.
const STRIDE: f64 = 2.0;
/// A prediction through the last two points may reach this many times their distance.
const FORESIGHT: f64 = 3.0;
/// How often a better first event may be found before the step is shortened.
const MAX_RETARGET: usize = 30;
/// So many steps in a row without an event that together lead no further than this, relative to 1 + |t|, lead nowhere.
const MAX_IDLE: usize = 200;
const IDLE: f64 = 1e-6;
/// Zero-length steps in a row before the curve is declared stuck.
const MAX_IN_PLACE: usize = 10_000;

/// Something that happened on the way.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    /// A membership changed, the point did not.
    Turn { t: f64, x: &'a [f64], cause: Cause },
    /// The point changed.
    Leap { t: f64, cause: Cause, from: &'a [f64], to: &'a [f64], size: f64, drop: f64 },
    /// The path moved on with nothing to report.
    Move { t: f64, x: &'a [f64] },
    /// What lies between was not followed. `jump`: size and drop, if the point changed.
    /// `ran_away`: the branch has no minimiser there.
    Hop {
        t: f64,
        from: &'a [f64],
        to: (f64, &'a [f64]),
        changes: &'a [Cause],
        jump: Option<(f64, f64)>,
        ran_away: bool,
    },
    /// No further yet: a step is tried again, or a descent is on its way.
    Descent { t: f64 },
}

/// Receives the steps; answers whether to go on.
pub(crate) trait Record {
    fn record(&mut self, step: Step<'_>) -> bool;
}

/// A point being moved along a curve.
#[derive(Debug)]
pub(crate) struct Follower<'c, C: Curve> {
    pub curve: &'c mut C,
    pub t: f64,
    pub x: Vec<f64>,
    /// Longest step to try, in |t|.
    reach: f64,
    /// The point before this one.
    last: Option<Waypoint>,
    /// The curve through the last point and this one, if it is smooth between them.
    bend: Option<Bend>,
    /// Where a fold is, by the bend, and how far the estimate before was from that.
    fold_at: Option<f64>,
    fold_doubt: f64,
    /// A step has failed lately: keep the factor fresh.
    careful: bool,
    /// How far the last correction moved the point.
    corrected: f64,
    /// Return after the first jump.
    pub stop_after_jump: bool,
    /// Begin with a hop: jumps from here only lead back to here.
    pub circling: bool,
    /// Return after this many events.
    pub event_budget: usize,
    /// How far a hop may lead; none: as far as the stop.
    pub goal: Option<f64>,
    /// What has changed at this time, give or take a hair.
    changed: (f64, Vec<Cause>),
    /// The sign of the way the time runs.
    direction: f64,
    /// Where the last hop ended, and how wide it was.
    hopped: (f64, f64),
    /// The last correction needed no step, so nothing has tested the kept factor.
    untested: bool,
}

/// A point that was passed.
#[derive(Debug)]
struct Waypoint {
    t: f64,
    x: Vec<f64>,
    tangent: Vec<f64>,
    /// Whether nothing has changed since: the curve from here to the present point is smooth.
    same_segment: bool,
}

/// Where in Newton's loop a step is adjusted.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    /// Before the first evaluation; there is no step yet.
    First,
    /// The factor is an older one.
    Chord,
    /// The factor belongs to this point.
    Fresh,
}

/// How an attempted step ended.
enum Attempt {
    Moved,
    Event(usize),
    Lost,
    /// The step ends outside the curve's trust; the point has not moved.
    Escaped,
}

impl<'c, C: Curve> Follower<'c, C> {
    /// Starts at a point that solves F(t, x) = 0 under the curve's membership.
    pub fn new(curve: &'c mut C, t: f64, x: Vec<f64>) -> Self {
        Follower {
            curve,
            t,
            x,
            reach: f64::INFINITY,
            last: None,
            bend: None,
            fold_at: None,
            fold_doubt: f64::INFINITY,
            careful: false,
            corrected: 0.0,
            stop_after_jump: false,
            circling: false,
            event_budget: usize::MAX,
            goal: None,
            changed: (t, Vec::new()),
            direction: 1.0,
            hopped: (f64::NAN, 0.0),
            untested: false,
        }
    }

    /// Moves to `stop`, reporting what happens: event by event, and over what cannot be followed by a hop, which may lead beyond
    /// `stop` as far as `goal`.
    pub fn advance(&mut self, stop: f64, record: &mut dyn Record) -> Result<(), Halt> {
        let direction = (stop - self.t).signum();
        let goal = self.goal.unwrap_or(stop);
        while (stop - self.t) * direction > 0.0 {
            let followed = match std::mem::take(&mut self.circling) {
                true => Err(Halt::Broken(Breakdown::Stalled)),
                false => self.follow(stop, record),
            };
            match followed {
                Err(Halt::Broken(reason)) if self.curve.is_whole() && self.may_hop(reason, direction) => {
                    if self.hop(goal, reason, record)? && self.stop_after_jump {
                        return Ok(());
                    }
                }
                other => return other,
            }
        }
        Ok(())
    }

    /// A branch that runs away to infinity has no continuation. Coming up, the ordinary fit has one all the same.
    fn may_hop(&self, reason: Breakdown, direction: f64) -> bool {
        reason != Breakdown::Unbounded || direction < 0.0
    }

    fn follow(&mut self, stop: f64, record: &mut dyn Record) -> Result<(), Halt> {
        let mut in_place = 0;
        let mut idle = (self.t, 0);
        self.anchor()?;
        while self.t != stop {
            if (stop - self.t).abs() <= SAME_TIME * (1.0 + self.t.abs()) {
                // An event at the stop itself, placed before it by rounding: there is no step left to take.
                self.t = stop;
                return self.anchor();
            }
            let direction = (stop - self.t).signum();
            self.direction = direction;
            let tangent = self.curve.tangent();
            let here = self.waypoint(&tangent);
            self.watch_for_fold(&here);
            let least = LEAST_STEP * (1.0 + self.t.abs());
            let mut horizon = (stop - self.t).abs().min(self.reach);
            if let Some(bend) = self.bend.as_ref().filter(|_| self.careful) {
                let sight = value(&bend.time, STRIDE) - self.t;
                if sight * bend.now > 0.0 {
                    horizon = horizon.min(sight.abs().max(least));
                }
            }
            if let Some(fold) = self.fold_ahead() {
                let left = (FOLD_AGREEMENT * self.fold_doubt).clamp(FOLD_LEAST_LEFT * fold, FOLD_LEFT * fold);
                horizon = horizon.min((fold - left).max(least));
            }
            let first = self.curve.crossing(&tangent, direction, horizon);
            let before = self.t;
            match self.attempt(first, &tangent, direction, horizon, stop) {
                Attempt::Moved => {
                    self.last = Some(here);
                    if self.careful && self.curve.point() != self.x {
                        self.anchor()?;
                    }
                    if !record.record(Step::Move { t: self.t, x: &self.x }) {
                        return Err(Halt::Stopped);
                    }
                }
                Attempt::Event(guard) => {
                    idle = (self.t, 0);
                    self.last = Some(Waypoint { same_segment: false, ..here });
                    self.careful = false;
                    if self.turn_or_jump(guard, record)? && self.stop_after_jump {
                        return Ok(());
                    }
                    self.event_budget -= 1;
                    if self.event_budget == 0 {
                        return Ok(());
                    }
                }
                Attempt::Escaped => {
                    self.anchor()?;
                    return Err(Halt::Escaped);
                }
                Attempt::Lost => {
                    self.careful = true;
                    self.anchor()?;
                    if !record.record(Step::Descent { t: self.t }) {
                        return Err(Halt::Stopped);
                    }
                    let tried = first.map_or(horizon, |c| c.after.min(horizon));
                    if tried > least {
                        self.reach = self.shorter(tried).max(least);
                        continue;
                    }
                    // The curve ends here: at an event that cannot be told from this point, or at a fold.
                    self.last = None;
                    let jumped = match first {
                        Some(c) => self.turn_or_jump(c.guard, record)?,
                        None => self.fold(&tangent, direction, record)?,
                    };
                    if jumped && self.stop_after_jump {
                        return Ok(());
                    }
                }
            }
            in_place = if self.t == before { in_place + 1 } else { 0 };
            idle =
                if (self.t - idle.0).abs() > IDLE * (1.0 + self.t.abs()) { (self.t, 0) } else { (idle.0, idle.1 + 1) };
            if in_place > MAX_IN_PLACE || idle.1 > MAX_IDLE {
                return Err(Halt::Broken(Breakdown::Stalled));
            }
            self.reach = self.reach.max(2.5 * (self.t - before).abs());
        }
        Ok(())
    }

    /// Evaluates and factors at the current point.
    fn anchor(&mut self) -> Result<(), Halt> {
        self.curve.evaluate(self.t, &self.x);
        match self.curve.refactor() {
            Stability::Stable => Ok(()),
            Stability::Unstable => Err(Halt::Broken(Breakdown::Stalled)),
        }
    }

    /// Tries to reach the first event, or the horizon if there is none before it. On success the point has moved.
    fn attempt(
        &mut self,
        first: Option<Crossing>,
        tangent: &[f64],
        direction: f64,
        horizon: f64,
        stop: f64,
    ) -> Attempt {
        let mut target = first;
        for _ in 0..MAX_RETARGET {
            let end = if horizon >= (stop - self.t).abs() { stop } else { self.t + direction * horizon };
            let reached = match target {
                None => self.correct(end, tangent).map(|x| (end, x)),
                Some(c) => self.locate(c, tangent, direction),
            };
            let Some((t, x)) = reached else {
                return Attempt::Lost;
            };
            let step = direction * (t - self.t);
            if target.is_some() && step > horizon {
                // The event is beyond the horizon after all; a violation found there brings us back.
                target = None;
                continue;
            }
            match self.curve.violation(step, target.map(|c| c.guard)) {
                Some(earlier) => target = Some(earlier),
                None => {
                    if !self.curve.within_trust() {
                        return Attempt::Escaped;
                    }
                    if !self.explained(&x, step * direction, tangent) {
                        return Attempt::Lost;
                    }
                    // An event may be placed behind us by rounding only.
                    self.t = if step < 0.0 { self.t } else { t };
                    self.x = x;
                    self.curve.snap(&mut self.x);
                    return target.map_or(Attempt::Moved, |c| Attempt::Event(c.guard));
                }
            }
        }
        Attempt::Lost
    }

    /// Whether the tangents here and there explain how far the point went: h(T₀ + T₁)/2 is right to third order. After a
    /// failure steps are short, and it is enough that the point is stable.
    fn explained(&mut self, x: &[f64], step: f64, tangent: &[f64]) -> bool {
        let predicted = step.abs() * self.curve.norm(tangent);
        let straight = self.corrected <= STRAIGHT * predicted + TINY_MOVE;
        if straight && !self.careful && !self.untested {
            return true;
        }
        if self.curve.refactor() == Stability::Unstable {
            return false;
        }
        if self.careful || straight {
            return true;
        }
        let there = self.curve.tangent();
        let gone: Vec<f64> = x.iter().zip(&self.x).map(|(a, b)| a - b).collect();
        let rest: Vec<f64> =
            gone.iter().zip(tangent.iter().zip(&there)).map(|(g, (a, b))| g - 0.5 * step * (a + b)).collect();
        self.curve.norm(&rest) <= UNEXPLAINED * self.curve.norm(&gone) + TINY_MOVE
    }

    /// Where the point will be after `step`, and its slope there: by the tangent, bent as the curve has been since the last
    /// point. Every coordinate is combined alike, so linear relations between coordinates are kept.
    fn predict(&self, step: f64, tangent: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let along = || (self.x.iter().zip(tangent).map(|(x, v)| x + step * v).collect(), tangent.to_vec());
        let Some(last) = &self.last else {
            return along();
        };
        let back = self.t - last.t;
        let each = self.x.iter().zip(tangent).zip(last.x.iter().zip(&last.tangent));
        let unchecked = self.curve.has_unchecked_coordinates();
        if let Some((bend, r)) = self.bend.as_ref().and_then(|bend| Some((bend, bend.parameter_at(self.t + step)?))) {
            let pace = slope(&bend.time, r);
            let cubic = |((x, v), (x0, v0)): ((&f64, &f64), (&f64, &f64))| {
                let (now, before) = (bend.now * v, bend.before * v0);
                // What no corrector checks must not be extrapolated: its rounding would grow from step to step.
                let c = if unchecked { [*x, now, 0.5 * (now - before), 0.0] } else { hermite(*x0, before, *x, now) };
                (value(&c, r), slope(&c, r) / pace)
            };
            return each.map(cubic).unzip();
        }
        if last.same_segment || unchecked || step.abs() > FORESIGHT * back.abs() {
            return along();
        }
        // The last segment's second derivative is the best guess for this one's, unless something has come to rest.
        let bent = |((x, v), (x0, v0)): ((&f64, &f64), (&f64, &f64))| (*x, *v, x - x0 - back * v0);
        if each.clone().map(bent).any(|(_, v, bend)| v == 0.0 && bend != 0.0) {
            return along();
        }
        let share = step / back;
        let parabola = |(x, v, bend)| (x + step * v + share * share * bend, v + 2.0 * share / back * bend);
        each.map(bent).map(parabola).unzip()
    }

    /// Newton at fixed t from the tangent's prediction.
    fn correct(&mut self, t: f64, tangent: &[f64]) -> Option<Vec<f64>> {
        let step = t - self.t;
        let (mut x, _) = self.predict(step, tangent);
        self.newton(&mut x, step, tangent, |_, _, _| t)?;
        Some(x)
    }

    /// Newton on (F, guard) = 0 for (x, t) together.
    fn locate(&mut self, c: Crossing, tangent: &[f64], direction: f64) -> Option<(f64, Vec<f64>)> {
        let step = direction * c.after;
        let (mut x, mut slope) = self.predict(step, tangent);
        let mut t = self.t + step;
        // What Newton still finds after a move in t is what the slope was wrong by, times the move. After the first one, from
        // where the slope was right, it is half of that: the curve bends on the way.
        let (mut moved, mut share) = (step, 2.0);
        self.newton(&mut x, step, tangent, |curve, dx, stage| {
            if stage == Stage::Fresh {
                slope = curve.tangent();
            } else if stage == Stage::Chord && share * curve.norm(dx) < SECANT * moved.abs() * curve.norm(&slope) {
                axpy(share / moved, dx, &mut slope);
            }
            if stage != Stage::First {
                // dx + dt·(dx/dt) keeps F = 0 to first order; choose dt so that the guard vanishes too.
                let rate = curve.guard_rate(c.guard, 1.0, &slope);
                let dt = -(curve.guard(c.guard) + curve.guard_rate(c.guard, 0.0, dx)) / rate;
                t += dt;
                axpy(dt, &slope, dx);
                (moved, share) = (dt, 1.0);
            }
            t
        })?;
        let behind = direction * (t - self.t);
        (behind > -1e-9 * (1.0 + t.abs())).then_some((t, x))
    }

    /// The shared Newton loop. `adjust` may change a step (it is called once before the first with an empty step) and
    /// answers the time to evaluate at.
    fn newton(
        &mut self,
        x: &mut [f64],
        step: f64,
        tangent: &[f64],
        mut adjust: impl FnMut(&mut C, &mut [f64], Stage) -> f64,
    ) -> Option<()> {
        let allowed = PREDICTOR_SHARE * step.abs() * self.curve.norm(tangent) + TINY_MOVE;
        let mut t = adjust(self.curve, &mut [], Stage::First);
        let mut last = f64::INFINITY;
        let mut moved = 0.0;
        let mut fresh = false;
        self.corrected = 0.0;
        self.untested = true;
        for _ in 0..MAX_NEWTON {
            if !t.is_finite() {
                return None;
            }
            self.curve.evaluate(t, x);
            let residual = self.curve.residual();
            if !residual.is_finite() {
                return None;
            }
            let old_t = t;
            if residual > SLOW * last && residual > CONVERGED {
                if fresh && residual > 0.5 * last {
                    return (residual <= STAGNATED).then_some(());
                }
                if fresh {
                    self.curve.distrust();
                }
                if self.curve.refactor() == Stability::Unstable {
                    return None;
                }
                fresh = true;
            } else {
                fresh = false;
            }
            let solved = residual <= CONVERGED;
            self.untested &= solved && !fresh;
            let mut dx = if solved { vec![0.0; x.len()] } else { self.curve.newton_step() };
            t = adjust(self.curve, &mut dx, if fresh { Stage::Fresh } else { Stage::Chord });
            if solved && (t - old_t).abs() <= CONVERGED * (1.0 + t.abs()) {
                return Some(());
            }
            moved += self.curve.norm(&dx);
            self.corrected = moved;
            if moved > allowed + (t - old_t).abs() * self.curve.norm(tangent) * 2.0 {
                return None;
            }
            for (x, d) in x.iter_mut().zip(&dx) {
                *x += d;
            }
            last = residual;
        }
        None
    }

    /// Flips a membership and goes on, continuously or not. Answers whether it was a jump.
    fn turn_or_jump(&mut self, guard: usize, record: &mut dyn Record) -> Result<bool, Halt> {
        self.curve.mark();
        let flip = self.curve.flip(guard);
        self.x.copy_from_slice(self.curve.point());
        let go_on = match flip.verdict {
            Verdict::Turning if self.changes_again(flip.cause) => {
                return Err(self.give_up(Halt::Broken(Breakdown::Stalled)));
            }
            Verdict::Turning => record.record(Step::Turn { t: self.t, x: &self.x, cause: flip.cause }),
            Verdict::Jump { exit } => return self.leap(flip.cause, exit.as_deref(), Some(guard), record),
        };
        if go_on { Ok(false) } else { Err(Halt::Stopped) }
    }

    /// Lands after the minimiser has ceased to exist. Answers whether the point changed: where it turns out that it need
    /// not (all coefficients held at zero, say), the flip of `guard` was a turning point after all.
    fn leap(
        &mut self,
        cause: Cause,
        exit: Option<&[f64]>,
        guard: Option<usize>,
        record: &mut dyn Record,
    ) -> Result<bool, Halt> {
        let landing = match self.land_behind(exit, guard.is_none(), record) {
            Ok(landing) if landing.size == 0.0 && guard.is_none() => {
                return Err(self.give_up(Halt::Broken(Breakdown::Stalled)));
            }
            Ok(landing) => landing,
            Err(Halt::Stopped) => return Err(Halt::Stopped),
            Err(halt) => return Err(self.give_up(halt)),
        };
        self.last = None;
        self.reach = f64::INFINITY;
        if let (true, Some(guard)) = (landing.size == 0.0, guard) {
            self.curve.undo();
            self.curve.evaluate(self.t, &self.x);
            self.curve.flip(guard);
            self.anchor()?;
            let go_on = record.record(Step::Turn { t: self.t, x: &self.x, cause });
            return if go_on { Ok(false) } else { Err(Halt::Stopped) };
        }
        let from = std::mem::replace(&mut self.x, landing.x);
        let (size, drop) = (landing.size, landing.drop);
        let go_on = record.record(Step::Leap { t: self.t, cause, from: &from, to: &self.x, size, drop });
        self.anchor()?;
        if go_on { Ok(true) } else { Err(Halt::Stopped) }
    }

    /// Where a descent just behind this time leads. A fold lies a little further than where it was seen: there the old branch
    /// may still be found, and the descent has to begin later.
    fn land_behind(&mut self, exit: Option<&[f64]>, fold: bool, record: &mut dyn Record) -> Result<Landing, Halt> {
        let t = self.t;
        let mut behind = self.direction * BEHIND * HAIR * (1.0 + t.abs());
        for _ in 0..FOLD_LOOKS {
            let landing = self.curve.land(t + behind, exit, &mut || record.record(Step::Descent { t }))?;
            if !fold || landing.size > 0.0 {
                return Ok(landing);
            }
            self.curve.undo();
            self.curve.evaluate(t, &self.x);
            behind *= HOP_GROWTH;
        }
        Ok(Landing { x: self.x.clone(), size: 0.0, drop: 0.0 })
    }

    /// Nothing has happened: whoever follows a truer curve may try again from here.
    fn give_up(&mut self, halt: Halt) -> Halt {
        self.curve.undo();
        self.anchor().err().unwrap_or(halt)
    }

    /// Whether the same has happened before at this time: then events tie, and go round in circles.
    fn changes_again(&mut self, cause: Cause) -> bool {
        if (self.t - self.changed.0).abs() > 0.1 * HAIR * (1.0 + self.t.abs()) {
            self.changed = (self.t, Vec::new());
        }
        let again = self.changed.1.contains(&cause);
        self.changed.1.push(cause);
        again
    }

    /// Descends to a minimiser a hair later, whatever lies between, and ever later where none can be certified: from where the
    /// path is or, where it runs away or the hop gets long, from the ordinary fit. Answers whether the point changed by more than it
    /// moves along a branch.
    fn hop(&mut self, goal: f64, mut reason: Breakdown, record: &mut dyn Record) -> Result<bool, Halt> {
        let (t, from) = (self.t, self.x.clone());
        let (direction, room) = ((goal - t).signum(), (goal - t).abs());
        let near = (t - self.hopped.0).abs() <= HOPS_APART * self.hopped.1;
        let mut width = if near { HOP_GROWTH * self.hopped.1 } else { HAIR * (1.0 + t.abs()) };
        self.curve.mark();
        let mut ordinary: Option<Vec<f64>> = None;
        let landing = loop {
            let there = if width < room { t + direction * width } else { goal };
            let mut landed = Err(Halt::Broken(reason));
            if reason != Breakdown::Unbounded {
                landed = self.hop_from(&from, there, record);
            }
            let again = matches!(landed, Err(Halt::Broken(reason)) if self.may_hop(reason, direction));
            if again && (width >= FAR * room || reason == Breakdown::Unbounded) {
                let ask = &mut || record.record(Step::Descent { t });
                if ordinary.is_none() {
                    ordinary = self.curve.ordinary(ask);
                }
                if let Some(x) = &ordinary {
                    landed = self.hop_from(x, there, record);
                }
            }
            match landed {
                Ok(landing) if ordinary.is_some() => {
                    let reached = (landing, width.min(room));
                    let (landing, nearest) = self.bring_nearer(reached, width / HOP_GROWTH, direction, record);
                    width = nearest;
                    break landing;
                }
                Ok(landing) => break landing,
                Err(Halt::Broken(broken)) if width < room && self.may_hop(broken, direction) => {
                    if broken == Breakdown::Unbounded {
                        reason = broken;
                    }
                    width *= HOP_GROWTH;
                }
                Err(halt) => return Err(self.stay(halt)),
            }
        };
        let there = if width < room { t + direction * width } else { goal };
        (self.t, self.x) = (there, landing.x.clone());
        let ran_away = reason == Breakdown::Unbounded;
        // Where the last hop was drawn back for nothing, this one stays where it is.
        if (t - self.hopped.0).abs() > HOP_GROWTH * HAIR * (1.0 + t.abs()) || self.hopped.0.is_nan() {
            width = self.draw_back(t, width, direction);
        }
        self.hopped = (self.t, width);
        (self.last, self.bend, self.fold_at, self.reach) = (None, None, None, f64::INFINITY);
        (self.fold_doubt, self.careful) = (f64::INFINITY, false);
        let gone: Vec<f64> = self.x.iter().zip(&from).map(|(a, b)| a - b).collect();
        let jumped = self.curve.norm(&gone) > CONTINUOUS * width.sqrt() * (1.0 + self.curve.norm(&from));
        let changes = self.curve.changes();
        let jump = jumped.then(|| self.curve.measure(self.t, &from, &self.x));
        let to = (self.t, self.x.as_slice());
        let go_on = record.record(Step::Hop { t, from: &from, to, changes: &changes, jump, ran_away });
        if go_on { Ok(jumped) } else { Err(Halt::Stopped) }
    }

    /// Behind a hop of more than a hair: back to a hair from `t` on the branch that was found, if it begins that early. Answers how
    /// wide the hop is.
    fn draw_back(&mut self, t: f64, width: f64, direction: f64) -> f64 {
        let hair = HAIR * (1.0 + t.abs());
        let (there, near) = (self.t, t + direction * hair);
        if width <= hair {
            return width;
        }
        (self.last, self.bend) = (None, None);
        let tangent = self.curve.tangent();
        // Only for what it leaves behind: the guards that `violation` judges by are those of the last crossing asked for.
        self.curve.crossing(&tangent, -direction, f64::INFINITY);
        let found = self.correct(near, &tangent).filter(|_| {
            self.curve.violation((there - near).abs(), None).is_none() && self.curve.refactor() == Stability::Stable
        });
        match found {
            Some(x) => {
                (self.t, self.x) = (near, x);
                hair
            }
            None => {
                self.curve.evaluate(there, &self.x);
                self.curve.refactor();
                width
            }
        }
    }

    /// Nothing was found: back to where we are.
    fn stay(&mut self, halt: Halt) -> Halt {
        self.curve.undo();
        self.curve.evaluate(self.t, &self.x);
        halt
    }

    /// A long hop made shorter: from what was reached at its end, as near to its beginning as landings succeed. Answers the landing
    /// and how wide the hop is; sets the curve to it.
    fn bring_nearer(
        &mut self,
        (mut landing, mut width): (Landing, f64),
        mut failed: f64,
        direction: f64,
        record: &mut dyn Record,
    ) -> (Landing, f64) {
        for _ in 0..NEARER {
            let middle = (failed * width).sqrt();
            match self.hop_from(&landing.x, self.t + direction * middle, record) {
                Ok(nearer) => (landing, width) = (nearer, middle),
                Err(_) => failed = middle,
            }
        }
        let there = self.t + direction * width;
        // Sets membership and factor again after trials that failed.
        (self.hop_from(&landing.x, there, record).unwrap_or(landing), width)
    }

    /// A landing from `x` that is a solution, and stable.
    fn hop_from(&mut self, x: &[f64], there: f64, record: &mut dyn Record) -> Result<Landing, Halt> {
        let t = self.t;
        let landing = self.curve.land_at(there, x, &mut || record.record(Step::Descent { t }))?;
        if self.is_certified(there, &landing) { Ok(landing) } else { Err(Halt::Broken(Breakdown::Stalled)) }
    }

    /// Whether a landing is a solution, and stable.
    fn is_certified(&mut self, t: f64, landing: &Landing) -> bool {
        self.curve.evaluate(t, &landing.x);
        let stable = self.curve.refactor() == Stability::Stable;
        stable && landing.size.is_finite() && self.curve.residual() <= HOP_CERTIFIED
    }

    /// The curve turns back here: leave it in the direction it was moving.
    fn fold(&mut self, tangent: &[f64], direction: f64, record: &mut dyn Record) -> Result<bool, Halt> {
        self.curve.mark();
        let exit: Vec<f64> = tangent.iter().map(|v| v * direction).collect();
        self.leap(Cause::Fold, Some(&exit), None, record)
    }

    /// How far ahead a fold is, if one is in sight.
    fn fold_ahead(&self) -> Option<f64> {
        self.fold_at.map(|at| (at - self.t).abs())
    }

    /// After a failure: a shorter reach, by the distance to the fold if one is in sight.
    fn shorter(&self, tried: f64) -> f64 {
        match self.fold_ahead() {
            Some(fold) if tried < fold && fold - tried < FOLD_LEFT * fold => {
                (fold - 10.0 * (fold - tried)).max(0.25 * tried)
            }
            _ => 0.25 * tried,
        }
    }

    fn waypoint(&self, tangent: &[f64]) -> Waypoint {
        Waypoint { t: self.t, x: self.x.clone(), tangent: tangent.to_vec(), same_segment: true }
    }

    /// Looks for a fold on the curve through the last point and this one.
    fn watch_for_fold(&mut self, here: &Waypoint) {
        let smooth = self.last.as_ref().filter(|last| last.same_segment);
        let moving = |last: &&Waypoint| (here.t - last.t).abs() * self.curve.norm(&here.tangent) > AT_REST;
        self.bend = smooth.filter(moving).and_then(|last| Bend::between(last, here));
        let Some(at) = self.bend.as_ref().and_then(Bend::fold) else {
            (self.fold_at, self.fold_doubt) = (None, f64::INFINITY);
            return;
        };
        if self.fold_at != Some(at) {
            self.fold_doubt = self.fold_at.map_or(f64::INFINITY, |before| (at - before).abs());
        }
        self.fold_at = Some(at);
    }
}

/// The curve through two points as Hermite's cubics in a parameter r: −1 at the last point, 0 at this one, proportional
/// to the distance along this point's tangent. Unlike t, such a parameter goes on smoothly through a fold.
#[derive(Debug)]
struct Bend {
    /// t(r), by powers of r.
    time: [f64; 4],
    /// dt/dr at both points.
    before: f64,
    now: f64,
}

impl Bend {
    fn between(last: &Waypoint, here: &Waypoint) -> Option<Bend> {
        let along = |v: &[f64]| -> f64 { v.iter().zip(&here.tangent).map(|(a, b)| a * b).sum() };
        let gone: Vec<f64> = here.x.iter().zip(&last.x).map(|(a, b)| a - b).collect();
        let width = along(&gone);
        let (before, now) = (width / along(&last.tangent), width / along(&here.tangent));
        let forward = |dt: f64| dt.is_finite() && dt * (here.t - last.t) > 0.0;
        (forward(before) && forward(now)).then(|| Bend { time: hermite(last.t, before, here.t, now), before, now })
    }

    /// Where t turns back, if that is in sight.
    fn fold(&self) -> Option<f64> {
        self.fold_parameter().map(|r| value(&self.time, r))
    }

    /// The first zero of dt/dr ahead.
    fn fold_parameter(&self) -> Option<f64> {
        let [_, a, b, c] = self.time;
        // a + 2br + 3cr² = 0, solved for 1/r: the largest is the first.
        let root = (b * b - 3.0 * a * c).sqrt();
        let first = f64::max((-b + root) / a, (-b - root) / a);
        (first * FORESIGHT > 1.0).then(|| 1.0 / first)
    }

    /// The r at which t is reached, if that is before a fold and in sight.
    fn parameter_at(&self, t: f64) -> Option<f64> {
        let (mut low, mut high) = (0.0, self.fold_parameter().unwrap_or(FORESIGHT));
        let beyond = |r: f64| (value(&self.time, r) - t) * self.now >= 0.0;
        if !beyond(high) || beyond(low) {
            return None;
        }
        // Enough to make out a distance of 1e-9 from a fold, where r is its square root.
        for _ in 0..50 {
            let middle = 0.5 * (low + high);
            if beyond(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

/// Powers of r for the cubic with value x0 and slope v0 at r = −1, x and v at r = 0.
fn hermite(x0: f64, v0: f64, x: f64, v: f64) -> [f64; 4] {
    let (p, q) = (v - (x - x0), v - v0);
    [x, v, 3.0 * p - q, 2.0 * p - q]
}

fn value(c: &[f64; 4], r: f64) -> f64 {
    c[0] + r * (c[1] + r * (c[2] + r * c[3]))
}

fn slope(c: &[f64; 4], r: f64) -> f64 {
    c[1] + r * (2.0 * c[2] + r * 3.0 * c[3])
}

#[cfg(test)]
mod tests {
    use super::super::curve::{Flip, GoOn};
    use super::*;

    /// One smooth piece of a scalar equation g(x) = t: g, g' and ∫g.
    type Piece = fn(f64) -> (f64, f64, f64);

    /// g(x) = t with one piece on each side of a kink; a minimiser of ∫g − tx where g' > 0.
    #[derive(Debug)]
    struct Toy {
        pieces: [Piece; 2],
        kink: f64,
        /// The piece we are on: 0 below the kink, 1 above.
        side: usize,
        marked: usize,
        t: f64,
        x: f64,
        factor: f64,
        /// The guard and its rate where `crossing` was asked.
        watched: (f64, f64),
    }

    impl Toy {
        fn new(pieces: [Piece; 2], kink: f64) -> Self {
            Toy { pieces, kink, side: 0, marked: 0, t: 0.0, x: 0.0, factor: 1.0, watched: (f64::INFINITY, 0.0) }
        }

        fn here(&self) -> (f64, f64, f64) {
            self.pieces[self.side](self.x)
        }

        /// +1 below the kink, where x may not grow beyond it.
        fn outward(&self) -> f64 {
            if self.side == 0 { 1.0 } else { -1.0 }
        }

        fn by_value(&self, x: f64) -> (f64, f64, f64) {
            self.pieces[usize::from(x > self.kink)](x)
        }

        /// ∫g − tx, the two pieces' primitives joined at the kink.
        fn energy(&self, x: f64) -> f64 {
            let joint = if x > self.kink { self.pieces[0](self.kink).2 - self.pieces[1](self.kink).2 } else { 0.0 };
            self.by_value(x).2 + joint - self.t * x
        }
    }

    impl Curve for Toy {
        fn evaluate(&mut self, t: f64, x: &[f64]) {
            (self.t, self.x) = (t, x[0]);
        }

        fn point(&self) -> &[f64] {
            std::slice::from_ref(&self.x)
        }

        fn residual(&self) -> f64 {
            (self.here().0 - self.t).abs() / (1.0 + self.t.abs())
        }

        fn refactor(&mut self) -> Stability {
            self.factor = self.here().1;
            if self.factor > 0.0 { Stability::Stable } else { Stability::Unstable }
        }

        fn newton_step(&mut self) -> Vec<f64> {
            vec![-(self.here().0 - self.t) / self.factor]
        }

        fn tangent(&mut self) -> Vec<f64> {
            vec![1.0 / self.factor]
        }

        fn crossing(&mut self, tangent: &[f64], direction: f64, horizon: f64) -> Option<Crossing> {
            self.watched = (self.guard(0), self.guard_rate(0, direction, &[direction * tangent[0]]));
            let after = self.watched.0.max(0.0) / -self.watched.1;
            (self.watched.1 < 0.0 && after <= horizon).then_some(Crossing { guard: 0, after })
        }

        fn violation(&mut self, step: f64, except: Option<usize>) -> Option<Crossing> {
            let (before, now) = (self.watched.0, self.guard(0));
            (now < -1e-11 && except.is_none()).then(|| Crossing { guard: 0, after: step * before / (before - now) })
        }

        fn guard(&self, _: usize) -> f64 {
            self.outward() * (self.kink - self.x)
        }

        fn guard_rate(&self, _: usize, _: f64, dx: &[f64]) -> f64 {
            -self.outward() * dx[0]
        }

        fn flip(&mut self, _: usize) -> Flip {
            let exit = self.outward();
            self.side = 1 - self.side;
            let cause = Cause::Sample { index: 0, from: "E", to: "D" };
            let verdict = match self.refactor() {
                Stability::Stable => Verdict::Turning,
                Stability::Unstable => Verdict::Jump { exit: Some(vec![exit]) },
            };
            Flip { cause, verdict }
        }

        fn snap(&self, _: &mut [f64]) {}

        fn mark(&mut self) {
            self.marked = self.side;
        }

        fn undo(&mut self) {
            self.side = self.marked;
        }

        fn land_at(&mut self, _: f64, _: &[f64], _: GoOn<'_>) -> Result<Landing, Halt> {
            Err(Halt::Broken(Breakdown::Stalled))
        }

        fn measure(&self, _: f64, from: &[f64], to: &[f64]) -> (f64, f64) {
            ((from[0] - to[0]).abs(), self.energy(from[0]) - self.energy(to[0]))
        }

        fn ordinary(&mut self, _: GoOn<'_>) -> Option<Vec<f64>> {
            None
        }

        fn changes(&self) -> Vec<Cause> {
            Vec::new()
        }

        /// Bisection between the first sign change of F beyond the point and the point before it.
        fn land(&mut self, _: f64, exit: Option<&[f64]>, _: GoOn<'_>) -> Result<Landing, Halt> {
            let from = self.x;
            let way = exit.expect("a toy always leaves in a direction")[0].signum();
            let uphill = |x: f64| way * (self.by_value(x).0 - self.t) > 0.0;
            let mut high = from + 1e-3 * way;
            while uphill(high) {
                high += 1e-3 * way; // the rim of the basin that ended
            }
            while !uphill(high) {
                high += 0.1 * way;
            }
            let mut low = high - 0.1 * way;
            for _ in 0..100 {
                let middle = 0.5 * (low + high);
                if uphill(middle) { high = middle } else { low = middle }
            }
            let drop = self.energy(from) - self.energy(high);
            self.side = usize::from(high > self.kink);
            self.x = high;
            Ok(Landing { x: vec![high], size: (high - from).abs(), drop })
        }

        fn norm(&self, dx: &[f64]) -> f64 {
            dx[0].abs()
        }

        fn within_trust(&self) -> bool {
            true
        }
    }

    /// What was recorded, moves left out.
    #[derive(Debug, Default)]
    struct Log {
        turns: Vec<(f64, Cause)>,
        leaps: Vec<(f64, Cause, [f64; 4])>,
        moves: Vec<(f64, f64)>,
    }

    impl Record for Log {
        fn record(&mut self, step: Step<'_>) -> bool {
            match step {
                Step::Turn { t, cause, .. } => self.turns.push((t, cause)),
                Step::Leap { t, cause, from, to, size, drop } => {
                    self.leaps.push((t, cause, [from[0], to[0], size, drop]));
                }
                Step::Move { t, x } => self.moves.push((t, x[0])),
                Step::Descent { .. } | Step::Hop { .. } => {}
            }
            true
        }
    }

    fn run(toy: &mut Toy, start: (f64, f64), stop: f64) -> (f64, Log) {
        let mut log = Log::default();
        let mut follower = Follower::new(toy, start.0, vec![start.1]);
        follower.advance(stop, &mut log).unwrap();
        assert_eq!(follower.t, stop);
        (follower.x[0], log)
    }

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    /// x³ + x
    fn cubic(x: f64) -> (f64, f64, f64) {
        (x * x * x + x, 3.0 * x * x + 1.0, 0.25 * x.powi(4) + 0.5 * x * x)
    }

    /// x³/3 − x: folds at x = ±1, where t = ∓2/3.
    fn wave(x: f64) -> (f64, f64, f64) {
        (x * x * x / 3.0 - x, x * x - 1.0, x.powi(4) / 12.0 - 0.5 * x * x)
    }

    #[test]
    fn a_smooth_curve_is_followed_both_ways() {
        for (start, stop, end) in [((0.0, 0.0), 10.0, 2.0), ((10.0, 2.0), -10.0, -2.0)] {
            let (x, log) = run(&mut Toy::new([cubic, cubic], f64::INFINITY), start, stop);
            close(x, end, 1e-12);
            assert!(log.turns.is_empty() && log.leaps.is_empty());
            for (t, x) in log.moves {
                close(cubic(x).0, t, 1e-11);
            }
        }
    }

    #[test]
    fn a_kink_is_located_and_passed_both_ways() {
        // Beyond x = 1 (t = 2) the curve goes on at slope 8: at t = 10 it is back at x = 2.
        let line: Piece = |x| (2.0 + 8.0 * (x - 1.0), 8.0, 2.0 * x + 4.0 * (x - 1.0) * (x - 1.0));
        let (x, log) = run(&mut Toy::new([cubic, line], 1.0), (0.0, 0.0), 10.0);
        close(x, 2.0, 1e-12);
        assert_eq!((log.turns.len(), log.leaps.len()), (1, 0));
        close(log.turns[0].0, 2.0, 1e-8);
        assert_eq!(log.turns[0].1, Cause::Sample { index: 0, from: "E", to: "D" });
        let mut back = Toy { side: 1, ..Toy::new([cubic, line], 1.0) };
        let (x, log) = run(&mut back, (10.0, 2.0), -10.0);
        close(x, -2.0, 1e-12);
        assert_eq!((log.turns.len(), log.leaps.len()), (1, 0));
        close(log.turns[0].0, 2.0, 1e-8);
    }

    #[test]
    fn a_kink_with_nothing_stable_behind_it_is_a_jump() {
        // Beyond x = 1 (t = 2) g falls to its minimum at x = 1.5 and is back at 2 when x = 2.
        let dip: Piece = |x| {
            let s = x - 1.0;
            (2.0 - s + s * s, -1.0 + 2.0 * s, 2.0 * s - 0.5 * s * s + s * s * s / 3.0)
        };
        let (x, log) = run(&mut Toy::new([cubic, dip], 1.0), (0.0, 0.0), 8.0);
        close(x, 4.0, 1e-12);
        assert_eq!((log.turns.len(), log.leaps.len()), (0, 1));
        let (t, cause, [from, to, size, drop]) = log.leaps[0];
        close(t, 2.0, 1e-8);
        assert_eq!(cause, Cause::Sample { index: 0, from: "E", to: "D" });
        close(from, 1.0, 1e-8);
        close(to, 2.0, 1e-8);
        close(size, 1.0, 1e-8);
        close(drop, 1.0 / 6.0, 1e-8);
    }

    #[test]
    fn a_fold_is_found_where_it_is() {
        // Up the lower branch to the fold at (2/3, −1), over to x = 2, and on to x = 3 at t = 6; then the same
        // mirrored, from (2/3, 2) down the upper branch.
        let upward = ((-6.0, -3.0), 6.0, 1.0);
        let downward = ((6.0, 3.0), -6.0, -1.0);
        for (start, stop, sign) in [upward, downward] {
            let (x, log) = run(&mut Toy::new([wave, wave], f64::INFINITY), start, stop);
            close(x, 3.0 * sign, 1e-12);
            assert_eq!((log.turns.len(), log.leaps.len()), (0, 1));
            let (t, cause, [from, to, size, drop]) = log.leaps[0];
            assert_eq!(cause, Cause::Fold);
            close(t, sign * 2.0 / 3.0, 1e-8);
            // x is off by the square root of what t is off.
            close(from, -sign, 1e-4);
            close(to, 2.0 * sign, 1e-8);
            close(size, 3.0, 1e-4);
            close(drop, 2.25, 1e-8);
        }
    }
}
