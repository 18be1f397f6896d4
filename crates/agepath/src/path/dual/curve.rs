//! Guards, flips and the rest of what the follower asks.
//!
//! Guards are numbered four to a sample: lower and upper threshold, kink below and kink above; a pinned sample has its two
//! ends of β in the first two places.

use super::super::curve::{Crossing, Curve, Flip, GoOn, Halt, Landing, Stability, Verdict};
use super::super::types::{Cause, NO_LOSS, PINNED};
use super::fit::{FINE, FINEST};
use super::system::Need;
use super::{Dual, State};
use crate::pacing::Cut;

/// A guard below this is violated; guards are relative or in units of z.
const VIOLATED: f64 = 1e-11;
/// z is summed up from scratch after so many events: steps add rounding to it.
const REFRESH_EVERY: usize = 64;
/// Value and rate of a guard that is not there.
const UNGUARDED: (f64, f64) = (f64::INFINITY, 0.0);

/// What a guard is about.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Lower,
    Upper,
    KinkBelow,
    KinkAbove,
}

const SIDES: [Side; 4] = [Side::Lower, Side::Upper, Side::KinkBelow, Side::KinkAbove];

impl Dual<'_> {
    /// A guard's value and its rate when t, β_i and z_i move by these.
    fn guard_of(&self, i: usize, side: Side, dt: f64, dbeta: f64, dz: f64) -> (f64, f64) {
        if self.scale[i] == 0.0 {
            return UNGUARDED;
        }
        match self.members.state[i] {
            State::Held { .. } => UNGUARDED,
            State::Pinned { kink } => {
                let [(low, low_rate), (high, high_rate)] = self.ends(i, kink);
                let (beta, width, du) = (self.at.x[i], high - low, self.at.speed * dt);
                match side {
                    Side::Lower => ((beta - low) / width, (dbeta - low_rate * du) / width),
                    Side::Upper => ((high - beta) / width, (high_rate * du - dbeta) / width),
                    _ => UNGUARDED,
                }
            }
            State::Smooth { piece, zone } => {
                let (l, kinks, unit) = (&self.at.loss[i], self.kinks[i].as_slice(), self.problem.predictor_scale);
                let z = self.at.x[self.n() + 1 + i];
                let (piece, zone) = (usize::from(piece), usize::from(zone));
                let cuts = self.at.cuts.as_slice();
                let rate = |cut: &Cut| l.slope * dz * cut.value + l.value * cut.slope * self.at.speed * dt;
                let before = |k: usize| k.checked_sub(1);
                match side {
                    // A piece without slope has no loss: its zone is the first one whatever z is.
                    Side::Lower | Side::Upper if l.slope == 0.0 && l.curvature == 0.0 => UNGUARDED,
                    Side::Lower => before(zone)
                        .and_then(|k| cuts.get(k))
                        .map_or(UNGUARDED, |cut| (l.value * cut.value - 1.0, rate(cut))),
                    Side::Upper => cuts.get(zone).map_or(UNGUARDED, |cut| (1.0 - l.value * cut.value, -rate(cut))),
                    Side::KinkBelow => before(piece)
                        .and_then(|k| kinks.get(k))
                        .map_or(UNGUARDED, |kink| ((z - kink) / unit, dz / unit)),
                    Side::KinkAbove => kinks.get(piece).map_or(UNGUARDED, |kink| ((kink - z) / unit, -dz / unit)),
                }
            }
        }
    }

    /// Where a sample goes when a guard vanishes.
    fn next_state(&self, i: usize, side: Side) -> State {
        match (self.members.state[i], side) {
            (State::Smooth { piece, zone }, Side::Lower) => State::Smooth { piece, zone: zone - 1 },
            (State::Smooth { piece, zone }, Side::Upper) => State::Smooth { piece, zone: zone + 1 },
            (State::Smooth { piece, zone }, Side::KinkBelow) => self.at_kink(i, piece - 1, piece - 1, zone),
            (State::Smooth { piece, zone }, Side::KinkAbove) => self.at_kink(i, piece, piece + 1, zone),
            // The smaller end of β belongs to the larger slope, above the kink.
            (State::Pinned { kink }, Side::Lower) => State::Smooth { piece: kink + 1, zone: self.at.cuts.zone(0.0) },
            (State::Pinned { kink }, _) => State::Smooth { piece: kink, zone: self.at.cuts.zone(0.0) },
            (held, _) => held,
        }
    }

    /// Pinned where ℓ' jumps, else over to the other piece.
    pub(super) fn at_kink(&self, i: usize, kink: u8, beyond: u8, zone: u8) -> State {
        let [(low, _), (high, _)] = self.ends(i, kink);
        if high > low { State::Pinned { kink } } else { State::Smooth { piece: beyond, zone } }
    }

    /// What the state of a sample is called in events: its zone, N on a piece without slope, Z at a kink.
    fn name(&self, i: usize) -> &'static str {
        self.name_of(i, self.members.state[i])
    }

    fn name_of(&self, i: usize, state: State) -> &'static str {
        match state {
            State::Pinned { .. } | State::Held { .. } => PINNED,
            State::Smooth { piece, zone } => {
                let l = self.problem.loss.at_piece(piece, self.z(&self.at.x)[i], self.problem.target[i]);
                let flat = l.slope == 0.0 && l.curvature == 0.0;
                if flat { NO_LOSS } else { self.problem.pacing.zones()[usize::from(zone)] }
            }
        }
    }

    /// How the others answer when sample `i`, which is in M, is pushed so that z_i moves by `way`.
    fn exit(&mut self, i: usize, way: f64) -> Option<Vec<f64>> {
        let mut push = vec![0.0; self.factor.len()];
        *push.get_mut(self.members.place[i]? + self.border())? = 1.0;
        let mut exit = self.spread(&self.factor.times(&push));
        let dz = exit[self.n() + 1 + i];
        let sign = if dz * way < 0.0 { -1.0 } else { 1.0 };
        exit.iter_mut().for_each(|e| *e *= sign);
        Some(exit)
    }

    /// Pins a sample, or holds it where the pinned ones determine it already.
    fn pin(&mut self, i: usize, kink: u8) {
        self.set_state(i, State::Pinned { kink });
        if self.members.place[i].is_none() {
            self.hold(i);
        }
    }

    /// Samples that were held may move again once a pinned one has gone.
    fn release(&mut self) {
        let held = |i: &usize| matches!(self.members.state[*i], State::Held { .. });
        let mut waiting: Vec<usize> = (0..self.n()).filter(held).collect();
        self.sort_by_room(&mut waiting);
        for i in waiting {
            if let State::Held { kink } = self.members.state[i] {
                self.pin(i, kink);
            }
        }
    }

    /// Changes a sample's state and judges the new side.
    fn turn(&mut self, i: usize, side: Side) -> Flip {
        let from = (self.members.state[i], self.name(i));
        let to = self.next_state(i, side);
        let drops = !self.problem.pacing.is_continuous()
            && matches!((from.0, to), (State::Smooth { zone: a, .. }, State::Smooth { zone: b, .. }) if a != b);
        // Which way z_i goes on: with its loss through a threshold, or off its kink.
        let way = match (from.0, side) {
            (State::Pinned { .. }, Side::Lower) => 1.0,
            (State::Pinned { .. }, _) => -1.0,
            (_, Side::KinkAbove) => 1.0,
            (_, Side::KinkBelow) => -1.0,
            (_, Side::Upper) => self.at.loss[i].slope.signum(),
            (_, Side::Lower) => -self.at.loss[i].slope.signum(),
        };
        let exit = if drops { None } else { self.exit(i, way) };
        match to {
            State::Pinned { kink } => self.pin(i, kink),
            _ => self.set_state(i, to),
        }
        let name = self.name(i);
        if matches!(from.0, State::Pinned { .. }) {
            self.release();
        }
        let cause = Cause::Sample { index: i, from: from.1, to: name };
        if drops {
            return Flip { cause, verdict: Verdict::Jump { exit: None } };
        }
        let verdict = match self.refresh_factor(Need::Certainty) {
            Stability::Stable => Verdict::Turning,
            Stability::Unstable => Verdict::Jump { exit: exit.or_else(|| self.exit(i, way)) },
        };
        Flip { cause, verdict }
    }
}

impl Curve for Dual<'_> {
    fn evaluate(&mut self, t: f64, x: &[f64]) {
        self.evaluate_at(t, x);
    }

    fn point(&self) -> &[f64] {
        &self.at.x
    }

    fn residual(&self) -> f64 {
        // Beyond a fold Newton finds the other branch: that is no solution.
        if self.fresh && self.stability() == Stability::Unstable { f64::INFINITY } else { self.imbalance() }
    }

    fn refactor(&mut self) -> Stability {
        self.refresh_factor(Need::Certainty)
    }

    fn distrust(&mut self) {
        // Updates add rounding to the inverse; where M is badly conditioned, soon too much.
        self.stale |= self.updates_since_fresh > 0;
    }

    fn newton_step(&mut self) -> Vec<f64> {
        self.newton()
    }

    fn tangent(&mut self) -> Vec<f64> {
        self.motion()
    }

    fn crossing(&mut self, tangent: &[f64], direction: f64, horizon: f64) -> Option<Crossing> {
        let n = self.n();
        let mut guards = std::mem::take(&mut self.guards);
        guards.clear();
        let mut first: Option<Crossing> = None;
        for i in 0..n {
            let (dbeta, dz) = (direction * tangent[i], direction * tangent[n + 1 + i]);
            for (k, side) in SIDES.into_iter().enumerate() {
                let (value, rate) = self.guard_of(i, side, direction, dbeta, dz);
                guards.push((value, rate));
                if rate < 0.0 {
                    let after = value.max(0.0) / -rate;
                    if after <= horizon && first.is_none_or(|f| after < f.after) {
                        first = Some(Crossing { guard: 4 * i + k, after });
                    }
                }
            }
        }
        self.guards = guards;
        first
    }

    fn violation(&mut self, step: f64, except: Option<usize>) -> Option<Crossing> {
        let mut first: Option<Crossing> = None;
        for i in 0..self.n() {
            for (k, side) in SIDES.into_iter().enumerate() {
                let guard = 4 * i + k;
                let now = self.guard_of(i, side, 0.0, 0.0, 0.0).0;
                if now >= -VIOLATED || Some(guard) == except {
                    continue;
                }
                let after = super::super::curve::first_zero(self.guards[guard], now, step);
                if first.is_none_or(|f| after < f.after) {
                    first = Some(Crossing { guard, after });
                }
            }
        }
        first
    }

    fn guard(&self, guard: usize) -> f64 {
        self.guard_of(guard / 4, SIDES[guard % 4], 0.0, 0.0, 0.0).0
    }

    fn guard_rate(&self, guard: usize, dt: f64, dx: &[f64]) -> f64 {
        let i = guard / 4;
        self.guard_of(i, SIDES[guard % 4], dt, dx[i], dx[self.n() + 1 + i]).1
    }

    fn flip(&mut self, guard: usize) -> Flip {
        self.events_since_refresh.set(self.events_since_refresh.get() + 1);
        self.turn(guard / 4, SIDES[guard % 4])
    }

    fn has_unchecked_coordinates(&self) -> bool {
        true
    }

    fn snap(&self, x: &mut [f64]) {
        if self.events_since_refresh.get() >= REFRESH_EVERY {
            self.events_since_refresh.set(0);
            self.settle(x);
            self.refresh(x);
        }
    }

    fn mark(&mut self) {
        self.marked.clone_from(&self.members);
        self.marked_at = self.at.t;
    }

    fn undo(&mut self) {
        self.members.clone_from(&self.marked);
        self.stale = true;
    }

    fn land(&mut self, _: f64, exit: Option<&[f64]>, go_on: GoOn<'_>) -> Result<Landing, Halt> {
        self.descend(exit, go_on)
    }

    fn land_at(&mut self, t: f64, x: &[f64], go_on: GoOn<'_>) -> Result<Landing, Halt> {
        let from = self.merit(t, x);
        // Shortly after a tie everything is still close together.
        let finest = (FINE * (t - self.marked_at).abs()).clamp(FINEST, FINE);
        let end = self.walk(t, x.to_vec(), x, (0.0, finest), go_on)?;
        let drop = self.problem.ridge * (from - self.merit(t, &end));
        Ok(Landing { size: self.distance(&end, x), x: end, drop })
    }

    fn measure(&self, t: f64, from: &[f64], to: &[f64]) -> (f64, f64) {
        (self.distance(from, to), self.problem.ridge * (self.merit(t, from) - self.merit(t, to)))
    }

    fn ordinary(&mut self, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        self.fit_weighted(&vec![1.0; self.n()], go_on).ok()
    }

    fn changes(&self) -> Vec<Cause> {
        let each = self.marked.state.iter().zip(&self.members.state).enumerate();
        let named = each.map(|(index, (&from, &to))| (index, self.name_of(index, from), self.name_of(index, to)));
        named.filter(|(_, from, to)| from != to).map(|(index, from, to)| Cause::Sample { index, from, to }).collect()
    }

    fn norm(&self, dx: &[f64]) -> f64 {
        let dz = self.z(dx);
        let squares: f64 = dz.iter().map(|d| d * d).sum();
        (squares / dz.len().max(1) as f64).sqrt() / self.problem.predictor_scale
    }

    fn within_trust(&self) -> bool {
        true
    }
}
