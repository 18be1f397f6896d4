//! Who is where: states by value, and changes of state with the factor kept up to date.

use super::factor::Active;
use super::{Dual, State};
use crate::pacing::Cuts;

/// A fresh factor costs about as much as an update for every so many active samples.
const UPDATES_PER_FACTOR: usize = 5;
/// β nearer to an end of its interval than this share of it is at the end.
const AT_END: f64 = 1e-9;
/// A loss nearer to a threshold than this, relatively, is on it.
const TIED: f64 = 1e-10;

impl Dual<'_> {
    /// The state that z says, with β deciding at kinks. `reach` is how near counts as being at one.
    fn state_by_value(&self, i: usize, x: &[f64], reach: f64) -> State {
        let (z, beta, y) = (self.z(x)[i], x[i], self.problem.target[i]);
        let near = reach * self.problem.predictor_scale;
        let mut piece = self.kinks[i].piece(z);
        for (k, &kink) in self.kinks[i].as_slice().iter().enumerate() {
            if (z - kink).abs() > near || self.scale[i] == 0.0 {
                continue;
            }
            let [(low, _), (high, _)] = self.ends(i, k as u8);
            let margin = AT_END * (high - low);
            let inside = high > low && beta > low + margin && beta < high - margin;
            if inside && (z - kink).abs() / self.problem.predictor_scale <= self.off_piece(i, piece, x) / (high - low) {
                return State::Pinned { kink: k as u8 };
            }
            if high > low && !inside {
                piece = if beta >= high - margin { k as u8 } else { k as u8 + 1 };
            }
        }
        let loss = self.problem.loss.at_piece(piece, z, y).value;
        if let State::Smooth { piece: before, zone } = self.members.state[i]
            && before == piece
            && !self.problem.pacing.is_continuous()
            && is_tied(&self.at.cuts, loss, zone)
        {
            return State::Smooth { piece, zone };
        }
        State::Smooth { piece, zone: self.at.cuts.zone(loss) }
    }

    /// How far β is from what its piece says at z: a sample next to a kink has a weight next to 1, and a β next to an end.
    fn off_piece(&self, i: usize, piece: u8, x: &[f64]) -> f64 {
        let l = self.problem.loss.at_piece(piece, self.z(x)[i], self.problem.target[i]);
        (x[i] + self.scale[i] * self.problem.pacing.weight(l.value, self.at.u) * l.slope).abs()
    }

    /// At a point that comes from outside: samples on a threshold where the weight drops are in the zone that β says.
    pub(super) fn place_tied(&mut self, t: f64, x: &[f64]) {
        self.set_time(t);
        for i in (0..self.n()).filter(|_| !self.problem.pacing.is_continuous()) {
            let (z, y) = (self.z(x)[i], self.problem.target[i]);
            let piece = self.kinks[i].piece(z);
            let l = self.problem.loss.at_piece(piece, z, y);
            let off = |zone: u8| {
                let weight = self.problem.pacing.at(zone, l.value, self.at.u).value;
                (x[i] + self.scale[i] * weight * l.slope).abs()
            };
            let tied = (0..=self.at.cuts.as_slice().len() as u8).filter(|&zone| is_tied(&self.at.cuts, l.value, zone));
            if let Some(zone) = tied.min_by(|&a, &b| off(a).total_cmp(&off(b))) {
                self.members.state[i] = State::Smooth { piece, zone };
            }
        }
    }

    /// Sets every state by value at (t, x) and evaluates there.
    pub(super) fn evaluate_by_value(&mut self, t: f64, x: &[f64], reach: f64) {
        self.set_time(t);
        let changes: Vec<(usize, State)> = (0..self.n())
            .map(|i| (i, self.state_by_value(i, x, reach)))
            .filter(|&(i, state)| match (self.members.state[i], state) {
                (State::Held { kink: a }, State::Pinned { kink: b }) => a != b,
                (before, after) => before != after,
            })
            .collect();
        self.evaluate_at(t, x);
        self.change_states(&changes);
    }

    /// Moves samples to other states, the factor following where that is cheaper than a fresh one.
    pub(super) fn change_states(&mut self, changes: &[(usize, State)]) {
        let bound = |state: &State| matches!(state, State::Pinned { .. } | State::Held { .. });
        let holding = self.members.state.iter().any(|s| matches!(s, State::Held { .. }));
        let few = changes.len() * UPDATES_PER_FACTOR <= self.members.active.len();
        if few && !self.stale && !(holding && changes.iter().any(|(i, _)| bound(&self.members.state[*i]))) {
            for &(i, to) in changes {
                self.set_state(i, to);
                if self.members.place[i].is_none() && bound(&to) {
                    // It depends on those that are pinned already, or cannot be told from here: a factor decides.
                    self.relist();
                }
            }
        } else if !changes.is_empty() || self.stale {
            for &(i, to) in changes {
                self.members.state[i] = to;
                self.look(i);
            }
            self.relist();
        }
    }

    /// Whether a sample's β can move.
    fn moves(&self, i: usize) -> bool {
        match self.members.state[i] {
            State::Pinned { .. } => true,
            State::Held { .. } => false,
            State::Smooth { .. } => self.at.h[i] != 0.0 || self.at.q[i] != 0.0,
        }
    }

    /// Lists the active samples anew; who has to be held is for the next factor to say.
    pub(super) fn relist(&mut self) {
        for state in &mut self.members.state {
            if let State::Held { kink } = *state {
                *state = State::Pinned { kink };
            }
        }
        self.members.active = (0..self.n()).filter(|&i| self.moves(i)).collect();
        self.members.place = vec![None; self.n()];
        for (k, &i) in self.members.active.iter().enumerate() {
            self.members.place[i] = Some(k);
        }
        self.stale = true;
    }

    /// Sets the β of samples that cannot move to what their piece says, and z with it.
    pub(super) fn settle(&self, x: &mut [f64]) {
        let fixed =
            |i: &usize| self.members.place[*i].is_none() && !matches!(self.members.state[*i], State::Held { .. });
        let index: Vec<usize> = (0..self.n()).filter(fixed).filter(|&i| x[i] != -self.at.psi[i]).collect();
        let change: Vec<f64> = index.iter().map(|&i| -self.at.psi[i] - x[i]).collect();
        for &i in &index {
            x[i] = -self.at.psi[i];
        }
        let z = self.n() + 1;
        self.products.accumulate(&index, &change, &mut x[z..]);
    }

    /// What the factor knows of a sample.
    pub(super) fn active(&self, i: usize) -> Active {
        let pinned = matches!(self.members.state[i], State::Pinned { .. });
        Active { sample: i, h: (!pinned).then(|| self.curvature(i)) }
    }

    /// h, kept away from 0: there a sample does not answer to z at all, and a tiny answer stands for none.
    pub(super) fn curvature(&self, i: usize) -> f64 {
        let h = self.at.h[i];
        let least = LEAST_CURVATURE * self.unit;
        if h.abs() >= least { h } else { -least }
    }

    /// Moves sample `i` to another state at the last evaluated point, the factor following if it can.
    pub(super) fn set_state(&mut self, i: usize, to: State) {
        self.members.state[i] = to;
        self.fresh = false;
        self.look(i);
        let (before, after) = (self.members.place[i], self.moves(i));
        // Without active samples M is only a stand-in.
        self.stale |= self.members.active.is_empty() && after;
        let done = !self.stale && self.update(i, before, after);
        if done {
            self.counters.updates += 1;
            self.updates_since_fresh += 1;
        } else if !self.stale && before.is_none() && matches!(to, State::Pinned { .. }) {
            // It depends on those that are pinned already.
            return;
        } else {
            self.stale = true;
        }
        match (before, after) {
            (None, true) => {
                self.members.place[i] = Some(self.members.active.len());
                self.members.active.push(i);
                self.largest = self.largest.max(self.members.active.len());
            }
            (Some(k), false) => {
                self.members.active.swap_remove(k);
                self.members.place[i] = None;
                if let Some(&moved) = self.members.active.get(k) {
                    self.members.place[moved] = Some(k);
                }
            }
            _ => {}
        }
    }

    /// The same change in the factor; false if it cannot be made.
    fn update(&mut self, i: usize, before: Option<usize>, after: bool) -> bool {
        let to = self.active(i);
        match (before, after) {
            (None, false) => true,
            (Some(row), true) => self.factor.change(row, to.h),
            (None, true) => self.factor.insert(to),
            (Some(row), false) => self.factor.swap_remove(row),
        }
    }
}

/// Whether a loss is on a threshold of `zone`: where the weight drops there, rounding must not decide.
pub(super) fn is_tied(cuts: &Cuts, loss: f64, zone: u8) -> bool {
    let zone = usize::from(zone);
    let on = |k: usize| cuts.as_slice().get(k).is_some_and(|cut| (loss * cut.value - 1.0).abs() <= TIED);
    on(zone) || (zone > 0 && on(zone - 1))
}

/// In units of slope per unit of z.
const LEAST_CURVATURE: f64 = 1e-9;
