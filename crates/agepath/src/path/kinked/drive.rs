//! One loop for everything that moves: the age (a path), or a pull r → 0 at a fixed age (a fit, the end of a landing).
//!
//! Between events the point moves along a smooth curve: a tangent predicts, Newton corrects, and the first *guard* that would
//! turn negative is the next event: a row reaches a kink or a threshold, or the ψ of a pinned row an end of its interval.
//! Every round moves, or makes an event. Ties are made one after another, in place:
//!
//! - a row that comes to its kink is independent of those that are pinned, or they would hold it: it is pinned, its ψ at the end
//!   it comes with;
//! - a pinned row whose ψ reaches an end opens one direction d. If a row that lies at its kink would be sent across it by d, that
//!   row takes over: the span of the pinned rows is the same, nothing moves, and its ψ has room. Else the row goes; if d
//!   then has no positive curvature, the point is no minimiser any more: a jump;
//! - a row that crosses a threshold changes the curvature along one direction: a turn or a jump likewise.

use super::basis::Shape;
use super::engine::{DEPENDENT, Engine, Law, Place, TIED};
use crate::linalg::dot;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A guard below this is an event, in units of its own size ...
const TIE: f64 = 1e-12;
/// ... and no step may leave one below so many times that.
const OVERSHOT: f64 = 10.0;
/// Rates below this share of what cancels in them are 0.
const NO_RATE: f64 = 1e-10;
/// ... those of ψ, of the largest.
const NO_SLOPE: f64 = 1e-12;
/// Longest step of the path's clock.
const LONGEST: f64 = 0.1;
/// Shortest step: below it there is a fold.
const SHORTEST: f64 = 1e-14;
/// Steps this short in a row, without an event between them, lead into a fold.
const SHORT: f64 = 1e-10;
const MAX_SHORT: usize = 40;
/// Trials of one step.
const MAX_TRIALS: usize = 60;
/// ... of which the first so many by the secant.
const SECANTS: usize = 12;
/// How often the same places may come back without a move, each time with other choices.
const MAX_RETURNS: usize = 300;

/// What moves.
#[derive(Debug, Clone)]
pub(super) enum Drive {
    /// The clock, to this time.
    Age(f64),
    /// The pull `left`·r₀, to 0.
    Pull(Vec<f64>),
}

/// A change of place: row of the engine, and what it left and entered.
pub(super) type Change = (usize, &'static str, &'static str);

/// Why the branch ends: who changed, and a direction that leads away; without a change, a fold.
#[derive(Debug, Clone)]
pub(super) struct Exit {
    pub change: Option<Change>,
    pub direction: Option<Vec<f64>>,
}

/// How a drive ends.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    Arrived,
    Jump(Exit),
    /// Ties that come back whatever is chosen, or a step that cannot be made.
    Stuck,
    /// Nothing holds the intercept.
    Unbounded,
    /// The observer said so.
    Stopped,
}

/// Is told what happens, and says whether to go on.
pub(super) trait Observer {
    fn go_on(&mut self, t: f64) -> bool;
    fn moved(&mut self, _engine: &Engine) {}
    fn turned(&mut self, _engine: &Engine, _change: Change) {}
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Side {
    Below,
    Above,
}

/// What a guard watches.
#[derive(Debug, Clone, Copy)]
enum What {
    Kink,
    Threshold,
    End,
}

#[derive(Debug, Clone, Copy)]
struct Guard {
    row: usize,
    what: What,
    side: Side,
    /// Not below 0.
    value: f64,
    rate: f64,
    tie: f64,
    /// How well the event can be told from a tie.
    pivot: f64,
}

impl Guard {
    /// When it reaches zero.
    fn time(&self) -> f64 {
        if self.rate < 0.0 { self.value.max(0.0) / -self.rate } else { f64::INFINITY }
    }
}

/// The tangent.
struct Motion {
    theta: Vec<f64>,
    pinned: Vec<f64>,
    z: Vec<f64>,
    /// du/ds
    u: f64,
}

enum Step {
    Moved(f64),
    Lost,
}

impl Engine<'_, '_> {
    /// See the module.
    pub fn drive(&mut self, drive: &Drive, observer: &mut dyn Observer) -> Outcome {
        let (mut seen, mut returns, mut short) = (HashSet::new(), 0, 0);
        let mut direction = None;
        let mut guards = Vec::new();
        loop {
            if !observer.go_on(self.t) {
                return Outcome::Stopped;
            }
            if self.remaining(drive) == 0.0 {
                return if self.correct(drive.pull()) { Outcome::Arrived } else { Outcome::Stuck };
            }
            self.evaluate();
            match (self.refresh(false), drive) {
                (Shape::Unstable, _) => return Outcome::Jump(Exit { change: None, direction }),
                (Shape::Flat, Drive::Pull(r0)) if self.must_slide(r0) => match self.slide(r0) {
                    Some(outcome) => return outcome,
                    None => continue,
                },
                _ => {}
            }
            let motion = self.motion(drive);
            self.guards(Some(&motion), &mut guards);
            let first = self.first(&guards);
            if let Some(guard) = first.filter(|g| g.value <= g.tie) {
                if !seen.insert(self.hash()) {
                    returns += 1;
                    self.salt += 1;
                }
                if returns > MAX_RETURNS {
                    return Outcome::Stuck;
                }
                match self.cross(guard) {
                    Ok(changes) => changes.into_iter().for_each(|change| observer.turned(self, change)),
                    Err(outcome) => return outcome,
                }
                short = 0;
                continue;
            }
            let horizon = first.map_or(f64::INFINITY, |g| g.time());
            match self.step(drive, &motion, &guards, horizon) {
                Step::Moved(h) => {
                    short = if h < SHORT { short + 1 } else { 0 };
                    seen.clear();
                    (returns, self.salt) = (0, 0);
                    observer.moved(self);
                }
                Step::Lost => return Outcome::Jump(Exit { change: None, direction: Some(motion.theta) }),
            }
            if short > MAX_SHORT {
                return Outcome::Jump(Exit { change: None, direction: Some(motion.theta) });
            }
            direction = Some(motion.theta);
        }
    }

    /// How far there is to go.
    fn remaining(&self, drive: &Drive) -> f64 {
        match drive {
            Drive::Age(to) => (to - self.t).abs(),
            Drive::Pull(_) => self.left,
        }
    }

    fn motion(&self, drive: &Drive) -> Motion {
        let space = self.space;
        let mut f = vec![0.0; space.p];
        let mut u = 0.0;
        match drive {
            Drive::Age(to) => {
                u = (to - self.t).signum() * self.chart.speed(self.t);
                if self.at.q.iter().any(|q| *q != 0.0) {
                    space.design.accumulate(&self.at.q, &mut f);
                    f.iter_mut().for_each(|f| *f *= -u);
                }
            }
            Drive::Pull(r0) => f.iter_mut().zip(r0).for_each(|(f, r)| *f = -r),
        }
        if self.shape == Shape::Flat {
            f[space.penalised()..].fill(0.0);
        }
        let (theta, pinned) = self.hessian.solve(&self.basis, &f, &vec![0.0; self.basis.len()]);
        let mut z = vec![0.0; space.n()];
        space.design.predict(&theta, &mut z);
        Motion { theta, pinned, z, u }
    }

    /// dθ/ds from the present point; none if it is no minimiser.
    pub fn tangent(&mut self, drive: &Drive) -> Option<Vec<f64>> {
        self.evaluate();
        (self.refresh(true) != Shape::Unstable).then(|| self.motion(drive).theta)
    }

    /// All guards; without a motion, without rates.
    fn guards(&self, motion: Option<&Motion>, out: &mut Vec<Guard>) {
        out.clear();
        let speed = motion.map_or(0.0, |m| dot(&m.theta, &m.theta).sqrt());
        let size = dot(&self.theta, &self.theta).sqrt();
        for i in (0..self.space.n()).filter(|&i| self.counts(i)) {
            if let Place::Piece { piece, zone } = self.place[i] {
                let dz = motion.map_or(0.0, |m| m.z[i]);
                let dz = if dz.abs() <= NO_RATE * self.space.norms[i] * speed { 0.0 } else { dz };
                let pivot = dz.abs() / (self.space.norms[i] * speed).max(f64::MIN_POSITIVE);
                self.kink_guards(i, piece, (dz, size, pivot), out);
                if matches!(self.law, Law::Paced) && self.at.slope[i] != 0.0 {
                    self.threshold_guards(i, zone, (dz, motion.map_or(0.0, |m| m.u), pivot), out);
                }
            }
        }
        let largest = motion.map_or(0.0, |m| m.pinned.iter().fold(0.0f64, |a, d| a.max(d.abs())));
        for (k, &i) in self.basis.rows().iter().enumerate() {
            let rate = motion.map_or(0.0, |m| if m.pinned[k].abs() <= NO_SLOPE * largest { 0.0 } else { m.pinned[k] });
            self.end_guards(i, self.pinned[k], (rate, motion.map_or(0.0, |m| m.u), largest), out);
        }
    }

    fn kink_guards(&self, row: usize, piece: u8, (dz, size, pivot): (f64, f64, f64), out: &mut Vec<Guard>) {
        let (z, unit) = (self.at.z[row], self.space.problem.predictor_scale);
        let tie = TIE * (1.0 + z.abs() / unit) + f64::EPSILON * self.space.norms[row] * size / unit;
        let kinks = self.space.kinks[row].as_slice();
        let mut push = |side, value: f64, rate: f64| {
            out.push(Guard { row, what: What::Kink, side, value: value / unit, rate: rate / unit, tie, pivot })
        };
        if let Some(kink) = kinks.get(usize::from(piece)) {
            push(Side::Above, kink - z, -dz);
        }
        if piece > 0 {
            push(Side::Below, z - kinks[usize::from(piece) - 1], dz);
        }
    }

    fn threshold_guards(&self, row: usize, zone: u8, (dz, du, pivot): (f64, f64, f64), out: &mut Vec<Guard>) {
        let (loss, slope) = (self.at.loss[row], self.at.slope[row]);
        let (zone, cuts) = (usize::from(zone), self.at.cuts.as_slice());
        let size = slope.abs() * (self.at.z[row].abs() + self.space.target[row].abs());
        let mut push = |side, sign: f64, k: usize| {
            let cut = cuts[k];
            let value = sign * (loss * cut.value - 1.0);
            let rate = sign * (slope * dz * cut.value + loss * cut.slope * du);
            let tie = TIE + 4.0 * f64::EPSILON * size * cut.value;
            out.push(Guard { row, what: What::Threshold, side, value, rate, tie, pivot });
        };
        if zone < cuts.len() {
            push(Side::Above, -1.0, zone);
        }
        if zone > 0 {
            push(Side::Below, 1.0, zone - 1);
        }
    }

    fn end_guards(&self, row: usize, psi: f64, (rate, du, largest): (f64, f64, f64), out: &mut Vec<Guard>) {
        let Place::Kink { kink } = self.place[row] else { return };
        let [low, high] = self.ends(row, kink);
        let width = high.0 - low.0;
        let pivot = rate.abs() / largest.max(f64::MIN_POSITIVE);
        let guard = |side, value: f64, rate: f64| Guard {
            row,
            what: What::End,
            side,
            value: value / width,
            rate: rate / width,
            tie: TIE,
            pivot,
        };
        out.push(guard(Side::Below, psi - low.0, rate - low.1 * du));
        out.push(guard(Side::Above, high.0 - psi, high.1 * du - rate));
    }

    /// The first to reach zero; of those that cannot be told apart, the one that can best be told from a tie.
    fn first(&self, guards: &[Guard]) -> Option<Guard> {
        let late = |g: &Guard| (g.value.max(0.0) + g.tie) / -g.rate;
        let falling = || guards.iter().filter(|g| g.rate < 0.0);
        let bound = falling().map(late).fold(f64::INFINITY, f64::min);
        let weight = |g: &Guard| match self.salt {
            0 => g.pivot,
            salt => mixed(g.row as u64, salt),
        };
        falling().filter(|g| g.time() <= bound).copied().max_by(|a, b| weight(a).total_cmp(&weight(b)))
    }

    /// Moves as far as no guard turns negative, and no further than `horizon`.
    fn step(&mut self, drive: &Drive, motion: &Motion, before: &[Guard], horizon: f64) -> Step {
        let base = (self.t, self.left, self.theta.clone(), self.pinned.clone());
        let remaining = self.remaining(drive);
        let longest = if matches!(drive, Drive::Age(_)) { LONGEST } else { 1.0 };
        let mut h = horizon.min(remaining).min(longest);
        let mut guards = Vec::with_capacity(before.len());
        for trial in 0..MAX_TRIALS {
            if h < SHORTEST * (1.0 + base.0.abs()) && h < remaining {
                break;
            }
            match drive {
                Drive::Age(to) if h == remaining => self.t = *to,
                Drive::Age(to) => self.t = base.0 + h * (to - base.0).signum(),
                Drive::Pull(_) => self.left = base.1 - h,
            }
            self.theta = base.2.iter().zip(&motion.theta).map(|(x, d)| x + h * d).collect();
            self.pinned = base.3.iter().zip(&motion.pinned).map(|(x, d)| x + h * d).collect();
            if !self.correct(drive.pull()) {
                h *= 0.25;
                continue;
            }
            self.guards(None, &mut guards);
            let root = |(a, b): (&Guard, &Guard)| {
                let from = a.value.max(0.0);
                (b.value < a.value.min(0.0) - OVERSHOT * b.tie).then(|| h * from / (from - b.value))
            };
            let roots = before.iter().zip(&guards).filter_map(root);
            match roots.reduce(f64::min) {
                None => return Step::Moved(h),
                Some(root) => h = if trial < SECANTS && root < h { root } else { 0.5 * h },
            }
        }
        (self.t, self.left, self.theta, self.pinned) = base;
        Step::Lost
    }

    /// Makes an event: the changes of place, or why the branch ends here.
    fn cross(&mut self, guard: Guard) -> Result<Vec<Change>, Outcome> {
        let i = guard.row;
        match (guard.what, self.place[i]) {
            (What::Kink, Place::Piece { piece, .. }) => self.come_to_kink(i, piece, guard.side),
            (What::Threshold, Place::Piece { piece, zone }) => {
                let zone = if guard.side == Side::Above { zone + 1 } else { zone - 1 };
                let way = self.at.slope[i].signum() * if guard.side == Side::Above { 1.0 } else { -1.0 };
                self.change(i, Place::Piece { piece, zone }, way)
            }
            (_, Place::Kink { kink }) => self.release(i, kink, guard.side),
            // Ends are those of pinned rows.
            (What::End, Place::Piece { .. }) => Err(Outcome::Stuck),
        }
    }

    fn come_to_kink(&mut self, i: usize, piece: u8, side: Side) -> Result<Vec<Change>, Outcome> {
        let (kink, beyond, way) = match side {
            Side::Above => (piece, piece + 1, 1.0),
            Side::Below => (piece - 1, piece - 1, -1.0),
        };
        let [(low, _), (high, _)] = self.ends(i, kink);
        if high <= low {
            return self.change(i, Place::Piece { piece: beyond, zone: self.at.cuts.zone(0.0) }, way);
        }
        let free = self.basis.len() < self.space.p
            && self.basis.free_part(self.space.row(i)) > DEPENDENT * NO_RATE * self.space.norms[i];
        if !free {
            return Err(Outcome::Stuck);
        }
        let from = self.name(i, self.place[i]);
        self.pin(i, kink, if side == Side::Above { low } else { high });
        Ok(vec![(i, from, self.name(i, self.place[i]))])
    }

    /// Moves row `i` to another piece or zone, z going `way`.
    fn change(&mut self, i: usize, to: Place, way: f64) -> Result<Vec<Change>, Outcome> {
        let from = self.name(i, self.place[i]);
        let direction = self.away(i, way);
        self.place[i] = to;
        self.look(i);
        let change = (i, from, self.name(i, to));
        let drops = matches!(self.law, Law::Paced) && !self.space.problem.pacing.is_continuous();
        if drops {
            return Err(Outcome::Jump(Exit { change: Some(change), direction: None }));
        }
        match self.refresh(true) {
            Shape::Unstable => Err(Outcome::Jump(Exit { change: Some(change), direction: Some(direction) })),
            _ => Ok(vec![change]),
        }
    }

    /// The direction along which row `i` can go `way` most easily.
    fn away(&self, i: usize, way: f64) -> Vec<f64> {
        let mut f: Vec<f64> = self.space.row(i).iter().map(|x| way * x).collect();
        if self.shape == Shape::Flat {
            f[..self.space.penalised()].fill(0.0);
            return f;
        }
        self.hessian.solve(&self.basis, &f, &vec![0.0; self.basis.len()]).0
    }

    /// The ψ of pinned row `i` has reached an end.
    fn release(&mut self, i: usize, kink: u8, side: Side) -> Result<Vec<Change>, Outcome> {
        // It was found among the pinned rows.
        let Some(k) = self.basis.rows().iter().position(|&row| row == i) else { return Err(Outcome::Stuck) };
        let way = if side == Side::Above { 1.0 } else { -1.0 };
        let mut g = vec![0.0; self.basis.len()];
        g[k] = way;
        let (direction, _) = self.hessian.solve(&self.basis, &vec![0.0; self.space.p], &g);
        let blocker = self.blocker(&direction);
        let piece = if side == Side::Above { kink + 1 } else { kink };
        let to = Place::Piece { piece, zone: self.at.cuts.zone(0.0) };
        let change = (i, self.name(i, self.place[i]), self.name(i, to));
        self.unpin(k, to);
        self.look(i);
        if let Some((j, kink, psi)) = blocker {
            let from = self.name(j, self.place[j]);
            self.pin(j, kink, psi);
            self.look(j);
            return Ok(vec![change, (j, from, self.name(j, self.place[j]))]);
        }
        match self.refresh(true) {
            Shape::Unstable => Err(Outcome::Jump(Exit { change: Some(change), direction: Some(direction) })),
            _ => Ok(vec![change]),
        }
    }

    /// A row that lies at its kink and that `direction` would send across, with the kink and the ψ it comes with.
    fn blocker(&self, direction: &[f64]) -> Option<(usize, u8, f64)> {
        let speed = dot(direction, direction).sqrt();
        let unit = self.space.problem.predictor_scale;
        let mut best: Option<(f64, (usize, u8, f64))> = None;
        for i in (0..self.space.n()).filter(|&i| self.counts(i)) {
            let Place::Piece { piece, .. } = self.place[i] else { continue };
            let z = self.at.z[i];
            let kinks = self.space.kinks[i].as_slice();
            let near = TIED * (unit + z.abs());
            let above = kinks.get(usize::from(piece)).filter(|kink| (*kink - z).abs() <= near).map(|_| piece);
            let below = piece.checked_sub(1).filter(|&k| (z - kinks[usize::from(k)]).abs() <= near);
            if above.is_none() && below.is_none() {
                continue;
            }
            let dz = dot(self.space.row(i), direction) / (self.space.norms[i] * speed);
            let Some(kink) = (if dz > DEPENDENT {
                above
            } else if dz < -DEPENDENT {
                below
            } else {
                None
            }) else {
                continue;
            };
            let [(low, _), (high, _)] = self.ends(i, kink);
            let weight = if self.salt == 0 { dz.abs() } else { mixed(i as u64, self.salt) };
            if high > low && best.is_none_or(|(w, _)| weight > w) {
                best = Some((weight, (i, kink, if dz > 0.0 { low } else { high })));
            }
        }
        best.map(|(_, found)| found)
    }

    /// Whether a pull is left that only the intercept could follow. With no kink on its way and no ψ to balance there is
    /// nothing to follow it to: the minimiser is an interval, and any point of it will do.
    fn must_slide(&self, r0: &[f64]) -> bool {
        let b = self.space.penalised();
        let (sum, total) = self.at.psi.iter().fold((0.0, 0.0), |(sum, total), psi| (sum + psi, total + psi.abs()));
        let pulled = self.left * r0[b].abs() > f64::EPSILON * total;
        pulled && (sum.abs() > TIE * total || self.ahead(-r0[b].signum()).is_some())
    }

    /// The first kink that the intercept meets on its way and that would hold it: how far, which row, which kink.
    fn ahead(&self, way: f64) -> Option<(f64, usize, u8)> {
        let mut first: Option<(f64, usize, u8)> = None;
        for i in (0..self.space.n()).filter(|&i| self.counts(i)) {
            let Place::Piece { piece, .. } = self.place[i] else { continue };
            let kink = if way > 0.0 { Some(piece) } else { piece.checked_sub(1) };
            let Some(kink) = kink.filter(|k| usize::from(*k) < self.space.kinks[i].as_slice().len()) else { continue };
            let far = way * (self.kink(i, kink) - self.at.z[i]);
            if self.holds(i, kink, way) && first.is_none_or(|(least, ..)| far < least) {
                first = Some((far, i, kink));
            }
        }
        first
    }

    /// Nothing holds the intercept: it goes where it is pulled, to the first kink that holds it.
    fn slide(&mut self, r0: &[f64]) -> Option<Outcome> {
        if matches!(self.law, Law::Paced) {
            // A threshold may come first: that is for a fit to find out.
            return Some(Outcome::Stuck);
        }
        let b = self.space.penalised();
        let way = -r0[b].signum();
        let Some((far, i, kink)) = self.ahead(way) else { return Some(Outcome::Unbounded) };
        self.theta[b] += way * far.max(0.0);
        let [(low, _), (high, _)] = self.ends(i, kink);
        if high > low {
            self.pin(i, kink, if way > 0.0 { low } else { high });
        } else {
            self.place[i] = Place::Piece { piece: if way > 0.0 { kink + 1 } else { kink }, zone: 0 };
        }
        None
    }

    /// Whether ψ of row `i` changes at a kink that it passes `way`, or beyond it.
    fn holds(&self, i: usize, kink: u8, way: f64) -> bool {
        let [(low, _), (high, _)] = self.ends(i, kink);
        let beyond = if way > 0.0 { kink + 1 } else { kink };
        let loss = &self.space.problem.loss;
        high > low || loss.at_piece(beyond, self.kink(i, kink), self.space.target[i]).curvature > 0.0
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.place.hash(&mut hasher);
        hasher.finish()
    }
}

impl Drive {
    fn pull(&self) -> Option<&[f64]> {
        match self {
            Drive::Age(_) => None,
            Drive::Pull(r0) => Some(r0),
        }
    }
}

/// A number between 0 and 1 that says nothing of its row.
pub(super) fn mixed(row: u64, salt: u64) -> f64 {
    let mut hasher = DefaultHasher::new();
    (row, salt).hash(&mut hasher);
    (hasher.finish() >> 11) as f64 / (1u64 << 53) as f64
}
