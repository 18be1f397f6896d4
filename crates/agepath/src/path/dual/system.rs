//! The linear system: M⁻¹ kept by updates, its drift made up for by iteration.

use super::super::curve::Stability;
use super::{Dual, State};
use crate::linalg::solve_near_identity;

/// Solutions of linear systems are right to this: a Newton step then gains as many digits.
const SOLVED: f64 = 1e-5;
/// Rounds of correction for a diagonal that has moved since the factor was made.
const MAX_ROUNDS: usize = 20;
/// The inertia is known from the kept factor as long as M₀⁻¹Δ is smaller than this: an eigenvalue of M passes zero at 1.
const FAR: f64 = 0.6;
/// Updates before the inverse is made anew: rounding adds up.
const MAX_UPDATES: usize = 400;

impl Dual<'_> {
    /// M over the active samples, lower triangle.
    fn matrix(&self) -> Vec<f64> {
        let (p, active) = (self.border(), &self.members.active);
        let m = active.len() + p;
        let mut a = vec![0.0; m * m];
        for (k, &i) in active.iter().enumerate() {
            let row = &mut a[(k + p) * m..(k + p) * m + k + p + 1];
            if p == 1 {
                row[0] = 1.0;
            }
            let kernel = self.gram.column(i);
            for (out, &j) in row[p..].iter_mut().zip(&active[..=k]) {
                *out = kernel[j];
            }
            row[k + p] += self.kept[k + p];
        }
        if p == 1 && active.is_empty() {
            // Nothing tells where b is: it stays.
            a[0] = -1.0;
        }
        a
    }

    /// Factors M here. Pinned samples that the others determine already are held.
    pub(super) fn factorize(&mut self) {
        self.counters.factorizations += 1;
        self.updates_since_fresh = 0;
        self.drifted = 0.0;
        self.fresh = true;
        self.stale = false;
        let p = self.border();
        self.kept = self.diagonals();
        self.largest = self.largest.max(self.members.active.len());
        if self.inverse.invert(&self.matrix(), self.members.active.len() + p) {
            return;
        }
        // Singular: first the samples that vary, then the pinned ones as far as they are independent.
        let pinned = |i: &usize| matches!(self.members.state[*i], State::Pinned { .. });
        let (hold, keep): (Vec<usize>, Vec<usize>) = self.members.active.iter().partition(|i| pinned(i));
        let mut waiting = hold;
        self.members.active = keep;
        // A border needs one pinned sample to lean on.
        let first = if p == 1 { waiting.pop() } else { None };
        self.members.active.extend(first);
        self.kept = self.diagonals();
        self.members.place = vec![None; self.n()];
        for (k, &i) in self.members.active.iter().enumerate() {
            self.members.place[i] = Some(k);
        }
        self.inverse.invert(&self.matrix(), self.members.active.len() + p);
        for i in waiting {
            let column = self.column_of(i);
            if self.inverse.insert_unless_dependent(&column, self.gram.entry(i, i)) {
                self.kept.push(0.0);
                self.members.place[i] = Some(self.members.active.len());
                self.members.active.push(i);
            } else {
                self.hold(i);
            }
        }
    }

    /// D of all rows of M.
    fn diagonals(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.border()];
        out.extend(self.members.active.iter().map(|&i| self.diagonal(i)));
        out
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
        let pinned = |i: &usize| matches!(self.members.state[*i], State::Pinned { .. });
        let rows = self.members.active.iter().zip(&self.kept[self.border()..]);
        let positive = rows.filter(|(i, d)| pinned(i) || **d > 0.0).count();
        let negative = self.members.active.len() + self.border() - positive;
        if self.inverse.inertia() == (positive, negative) { Stability::Stable } else { Stability::Unstable }
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
    pub(super) fn refresh_factor(&mut self, demanded: bool) -> Stability {
        let doubtful = || self.drifted > FAR || (!self.fresh && self.stability() == Stability::Unstable);
        if self.stale || self.updates_since_fresh > MAX_UPDATES || (demanded && doubtful()) {
            self.factorize();
        }
        self.stability()
    }

    /// M⁻¹ rhs at the last evaluated point: M has drifted by Δ on the diagonal from the kept M₀, so that
    /// (I + M₀⁻¹Δ)x = M₀⁻¹ rhs.
    pub(super) fn solve(&mut self, rhs: &[f64]) -> Vec<f64> {
        self.refresh_factor(false);
        let drift = self.drift();
        let x = self.inverse.times(rhs);
        if drift.iter().all(|d| *d == 0.0) {
            return x;
        }
        let inverse = &self.inverse;
        let product = |v: &[f64]| inverse.times(&v.iter().zip(&drift).map(|(v, d)| v * d).collect::<Vec<_>>());
        let solved = solve_near_identity(x, product, SOLVED, MAX_ROUNDS);
        self.drifted = solved.radius;
        if solved.residual <= SOLVED {
            return solved.x;
        }
        self.factorize();
        let rhs = if rhs.len() == self.inverse.len() { rhs } else { return vec![0.0; self.inverse.len()] };
        self.inverse.times(rhs)
    }

    /// How far D has moved since the factor was made.
    fn drift(&self) -> Vec<f64> {
        self.diagonals().iter().zip(&self.kept).map(|(now, kept)| now - kept).collect()
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
        self.gram.accumulate(&self.members.active, &solved[p..], dz);
        dx
    }

    /// The Newton step.
    pub(super) fn newton(&mut self) -> Vec<f64> {
        self.refresh_factor(false);
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
        let solved = self.solve(&rhs);
        self.spread(&solved)
    }

    /// d(β, b, z)/dt.
    pub(super) fn motion(&mut self) -> Vec<f64> {
        self.refresh_factor(false);
        let mut rhs = vec![0.0; self.border()];
        rhs.extend(self.members.active.iter().map(|&i| match self.members.state[i] {
            State::Pinned { .. } => 0.0,
            _ => -self.at.q[i] * self.at.speed / self.curvature(i),
        }));
        let solved = self.solve(&rhs);
        self.spread(&solved)
    }
}
