//! The linear system: M⁻¹ kept by updates, its drift made up for by iteration.

use super::super::curve::Stability;
use super::factor::Active;
use super::{Dual, State};
use crate::linalg::Refused;

/// The inertia is known from the kept factor as long as M₀⁻¹Δ is smaller than this: an eigenvalue of M passes zero at 1.
const FAR: f64 = 0.6;
/// Newton steps are right to this: a step gains as many digits ...
const STEP_SOLVED: f64 = 1e-5;
/// ... unless fewer lead to a residual below this ...
const ENOUGH: f64 = 3e-14;
/// ... and to this at least.
const LOOSE: f64 = 1e-3;
/// Tangents are right to this: they predict, and steps correct.
const TANGENT_SOLVED: f64 = 1e-4;
/// A β nearer to an end than this share of its interval has no room to move.
const CRAMPED: f64 = 1e-6;
/// Updates before the inverse is made anew: rounding adds up.
const MAX_UPDATES: usize = 400;

/// What a factor is for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Need {
    /// To solve with: one that has drifted will do.
    Solve,
    /// To know the inertia for certain, and to solve with.
    Certainty,
    /// To know the inertia for certain; to solve with only if it is that of a local minimiser.
    Verdict,
}

impl Dual<'_> {
    /// Factors M here. Pinned samples that the others determine already are held. With `only_stable`, there is nothing to solve
    /// with unless this is a local minimiser.
    fn factorize(&mut self, only_stable: bool) {
        self.counters.factorizations += 1;
        self.updates_since_fresh = 0;
        self.drifted = 0.0;
        self.fresh = true;
        self.stale = false;
        self.largest = self.largest.max(self.members.active.len());
        match self.factor.invert(self.rows(), only_stable) {
            Ok(()) => return,
            Err(Refused::Unwanted) => {
                self.stale = true;
                return;
            }
            Err(Refused::Singular) => {}
        }
        // Singular: first the samples that vary, then the pinned ones as far as they are independent.
        let pinned = |i: &usize| matches!(self.members.state[*i], State::Pinned { .. });
        let (mut waiting, keep): (Vec<usize>, Vec<usize>) = self.members.active.iter().partition(|i| pinned(i));
        self.members.active = keep;
        self.sort_by_room(&mut waiting);
        // A border needs one pinned sample to lean on.
        let first = if self.border() == 1 && !waiting.is_empty() { Some(waiting.remove(0)) } else { None };
        self.members.active.extend(first);
        self.members.place = vec![None; self.n()];
        for (k, &i) in self.members.active.iter().enumerate() {
            self.members.place[i] = Some(k);
        }
        // Whether this is regular shows when the others are added.
        let _ = self.factor.invert(self.rows(), false);
        let cramped = waiting.iter().position(|&i| self.room(i) < CRAMPED).unwrap_or(waiting.len());
        let last = waiting.split_off(cramped);
        for group in [waiting, last] {
            let (pinned, dependent) = self.factor.pin_independent(group);
            for i in pinned {
                self.members.place[i] = Some(self.members.active.len());
                self.members.active.push(i);
            }
            dependent.into_iter().for_each(|i| self.hold(i));
        }
    }

    /// How far the β of a sample at a kink is from its ends, as a share of their distance.
    fn room(&self, i: usize) -> f64 {
        match self.members.state[i] {
            State::Pinned { kink } | State::Held { kink } => {
                let [(low, _), (high, _)] = self.ends(i, kink);
                (self.at.x[i] - low).min(high - self.at.x[i]) / (high - low)
            }
            State::Smooth { .. } => 0.0,
        }
    }

    /// Where more samples are at a kink than are needed to hold the others there, those are to move that can: at its end, a β
    /// might have to leave as soon as it may move.
    pub(super) fn sort_by_room(&self, samples: &mut [usize]) {
        samples.sort_by(|&a, &b| self.room(b).total_cmp(&self.room(a)));
    }

    /// The active samples as the factor knows them.
    fn rows(&self) -> Vec<Active> {
        self.members.active.iter().map(|&i| self.active(i)).collect()
    }

    /// Holds a sample at the kink where others pin it.
    pub(super) fn hold(&mut self, i: usize) {
        if let State::Pinned { kink } = self.members.state[i] {
            self.members.state[i] = State::Held { kink };
            self.look(i);
        }
    }

    /// Whether M has the inertia of a local minimiser.
    pub(super) fn stability(&self) -> Stability {
        if self.factor.is_stable() { Stability::Stable } else { Stability::Unstable }
    }

    /// ‖F‖ over the active samples and Σβ; not a number if any part of it is none.
    pub(super) fn imbalance(&self) -> f64 {
        let n = self.n();
        let parts = self.members.active.iter().map(|&i| match self.members.state[i] {
            State::Pinned { kink } => (self.at.x[n + 1 + i] - self.kink(i, kink)).abs() / self.problem.predictor_scale,
            _ => (self.at.x[i] + self.at.psi[i]).abs() / self.unit,
        });
        let worst = parts.fold(0.0, |a: f64, b: f64| if b > a || b.is_nan() { b } else { a });
        if self.border() == 0 || self.members.active.is_empty() || worst.is_nan() {
            return worst;
        }
        worst.max(self.at.x[..n].iter().sum::<f64>().abs() / self.unit)
    }

    /// A fresh factor unless the kept one still serves.
    pub(super) fn refresh_factor(&mut self, need: Need) -> Stability {
        let doubtful = || self.drifted > FAR || (!self.fresh && self.stability() == Stability::Unstable);
        if self.stale || self.updates_since_fresh > MAX_UPDATES || (need != Need::Solve && doubtful()) {
            self.factorize(need == Need::Verdict);
        }
        self.stability()
    }

    /// M⁻¹ rhs at the last evaluated point, to a relative residual of `tolerance`.
    fn solve(&mut self, rhs: &[f64], tolerance: f64) -> Vec<f64> {
        self.refresh_factor(Need::Solve);
        let now: Vec<Option<f64>> = self.members.active.iter().map(|&i| self.active(i).h).collect();
        let solved = self.factor.solve(rhs, &now, tolerance);
        if solved.radius > 0.0 {
            self.drifted = solved.radius;
        }
        if solved.residual <= tolerance {
            return solved.x;
        }
        self.factorize(false);
        // Whom the new factor holds has no equation any more: no step, and the next one is right.
        if rhs.len() == self.factor.len() { self.factor.times(rhs) } else { vec![0.0; self.factor.len()] }
    }

    /// A step of the active β and b (as solved) over all of (β, b, z).
    pub(super) fn spread(&self, solved: &[f64]) -> Vec<f64> {
        let (n, p) = (self.n(), self.border());
        let mut dx = vec![0.0; 2 * n + 1];
        let db = if p == 1 { solved[0] } else { 0.0 };
        for (&i, d) in self.members.active.iter().zip(&solved[p..]) {
            dx[i] = *d;
        }
        dx[n] = db;
        let dz = &mut dx[n + 1..];
        dz.fill(db);
        self.products.accumulate(&self.members.active, &solved[p..], dz);
        dx
    }

    /// The Newton step.
    pub(super) fn newton(&mut self) -> Vec<f64> {
        self.refresh_factor(Need::Solve);
        let n = self.n();
        let mut rhs = Vec::with_capacity(self.members.active.len() + 1);
        if self.border() == 1 {
            let sum: f64 = if self.members.active.is_empty() { 0.0 } else { self.at.x[..n].iter().sum() };
            rhs.push(-sum);
        }
        rhs.extend(self.members.active.iter().map(|&i| match self.members.state[i] {
            State::Pinned { kink } => self.kink(i, kink) - self.at.x[n + 1 + i],
            _ => -(self.at.x[i] + self.at.psi[i]) / self.curvature(i),
        }));
        let tolerance = (ENOUGH / self.imbalance()).clamp(STEP_SOLVED, LOOSE);
        let solved = self.solve(&rhs, tolerance);
        self.spread(&solved)
    }

    /// d(β, b, z)/dt.
    pub(super) fn motion(&mut self) -> Vec<f64> {
        self.refresh_factor(Need::Solve);
        let mut rhs = vec![0.0; self.border()];
        rhs.extend(self.members.active.iter().map(|&i| match self.members.state[i] {
            State::Pinned { .. } => 0.0,
            _ => -self.at.q[i] * self.at.speed / self.curvature(i),
        }));
        let solved = self.solve(&rhs, TANGENT_SOLVED);
        self.spread(&solved)
    }
}
