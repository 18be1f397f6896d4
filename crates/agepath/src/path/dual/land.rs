//! From a point that is no local minimiser down to the next one: ACS chooses the way, lengthened where it crawls, and
//! Newton on the active set finishes.

use super::super::curve::{Curve, GoOn, Halt, Landing, Stability};
use super::fit::FINE;
use super::system::Need;
use super::{Dual, State};
use crate::error::Breakdown;
use crate::linalg::axpy;
use std::iter::successors;

/// An ACS fit is right to this share of the step before it, in units of z ...
const COARSE_SHARE: f64 = 1e-3;
/// ... and to this at least, but to no more than `FINE`.
const COARSE: f64 = 1e-5;
/// ACS steps before giving up.
const MAX_STEPS: usize = 2000;
/// Newton tries to finish once an ACS step is this share of the distance gone ...
const CRAWL: f64 = 0.1;
/// ... or this small, in units of z: SMO's own accuracy, where ACS has nowhere left to go.
const SETTLED: f64 = 1e-5;
/// After a failure, only when the steps have shrunk by this factor.
const AGAIN: f64 = 0.3;
/// ... or so many steps have been made.
const RETRY: usize = 6;
/// Newton may end at most this share of the distance gone away from where ACS was ...
const BASIN: f64 = 0.5;
/// ... or this far, in units of z: where pinned samples hold all predictors, nothing moves but for rounding.
const IN_PLACE: f64 = 1e-9;
/// ... or, once a step is this share of the distance gone, as far as ACS is right: its steps come to rest where SMO lets them.
const AT_REST: f64 = 1e-3;
/// Close to where the path ended a lengthened step may go this many times the distance gone, further out this many.
const MICROSCOPIC: f64 = 0.01;
const LEAP: f64 = 2.0;
const STRIDE: f64 = 0.1;
/// Newton steps on changing active sets.
const MAX_NEWTON: usize = 40;
/// ... of which no more than so many in a row may bring no residual smaller than any before, unless it is that of a saddle or
/// less: there the active set has the last word.
const MAX_ASTRAY: usize = 3;
/// An unstable point with less residual than this is a saddle: Newton has nothing to find there.
const SADDLE: f64 = 1e-6;
/// Finished at this residual.
const CONVERGED: f64 = 1e-12;
/// A residual that no longer falls is accepted below this.
const STAGNATED: f64 = 1e-10;
/// Predictors this near to a kink, in units of z, are at it when Newton takes over from SMO.
const NEAR_KINK: f64 = 1e-5;
/// Differences of the objective below this share of it are rounding.
const NOISE: f64 = 1e-13;
/// Predictors this near to a kink, in units of z, are held there by a fit.
const AT_KINK: f64 = 1e-9;
/// A relative change of age that brings samples on a threshold inside.
const HAIR: f64 = 1e-4;
/// First trial length along an exit, and how often it is doubled.
const FIRST_EXIT: f64 = 1e-7;
const MAX_EXITS: usize = 40;

impl Dual<'_> {
    /// Descends from the last evaluated point at its t; without an exit, with the weights of the current states.
    pub(super) fn descend(&mut self, exit: Option<&[f64]>, go_on: GoOn<'_>) -> Result<Landing, Halt> {
        let (t, start) = (self.at.t, self.at.x.clone());
        let from = self.merit(t, &start);
        let first = match exit {
            Some(exit) => match self.leave(t, &start, from, exit) {
                Some(x) => x,
                None => self.leave_with_tied(t, &start, from, go_on)?,
            },
            None => {
                let weights = self.weights();
                self.acs(&start, &weights, FINE, go_on)?
            }
        };
        let end = self.walk(t, first, &start, (0.0, FINE), go_on)?;
        let drop = self.problem.ridge * (from - self.merit(t, &end));
        // Where pinned samples hold all predictors, β alone may jump: no distance, but not the same point either.
        let size = if end == start { 0.0 } else { self.distance(&end, &start).max(f64::EPSILON) };
        Ok(Landing { x: end, size, drop })
    }

    /// Where many samples lie on the same threshold, all of them have to move: in the direction of ACS at an age that is
    /// larger by a hair.
    fn leave_with_tied(&mut self, t: f64, start: &[f64], from: f64, go_on: GoOn<'_>) -> Result<Vec<f64>, Halt> {
        let weights = self.weights_at(self.at.u * (1.0 - HAIR), start);
        let fit = self.acs(start, &weights, FINE, go_on)?;
        let exit: Vec<f64> = fit.iter().zip(start).map(|(f, s)| f - s).collect();
        self.leave(t, start, from, &exit).ok_or(Halt::Broken(Breakdown::Stalled))
    }

    fn acs(&mut self, x: &[f64], weights: &[f64], tolerance: f64, go_on: GoOn<'_>) -> Result<Vec<f64>, Halt> {
        self.counters.acs_fits += 1;
        self.fit_to(x, &self.scaled(weights), tolerance, go_on).map_err(|reason| match reason {
            Breakdown::OutOfTime => Halt::Stopped,
            other => Halt::Broken(other),
        })
    }

    pub(super) fn distance(&self, a: &[f64], b: &[f64]) -> f64 {
        self.norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
    }

    /// Goes along `exit` until the objective has begun to fall and, while close to the start, as far as it falls ever
    /// faster; or to the lowest point seen.
    fn leave(&self, t: f64, start: &[f64], from: f64, exit: &[f64]) -> Option<Vec<f64>> {
        let unit = self.norm(exit);
        let mut length = FIRST_EXIT / unit;
        let mut lowest: Option<(f64, Vec<f64>)> = None;
        for _ in 0..MAX_EXITS {
            let mut x = start.to_vec();
            axpy(length, exit, &mut x);
            let rise = self.merit(t, &x) - from;
            let low = lowest.as_ref().map_or(0.0, |(low, _)| *low);
            let fallen = low < -10.0 * NOISE * from.abs();
            if fallen && (rise > 2.0 * low || length * unit > MICROSCOPIC) {
                break;
            }
            if rise < low {
                lowest = Some((rise, x));
            }
            length *= 2.0;
        }
        lowest.map(|(_, x)| x)
    }

    /// ACS from x, right to `finest` in the end, until Newton can finish, not further away than a share of the distance gone from
    /// `start`, or of `at_least`. Sets members, evaluation and factor at the end.
    pub(super) fn walk(
        &mut self,
        t: f64,
        mut x: Vec<f64>,
        start: &[f64],
        (at_least, finest): (f64, f64),
        go_on: GoOn<'_>,
    ) -> Result<Vec<f64>, Halt> {
        let continuous = self.problem.pacing.is_continuous();
        let (mut tried, mut since, mut tolerance) = (f64::INFINITY, 0, finest);
        for _ in 0..MAX_STEPS {
            if !go_on() {
                return Err(Halt::Stopped);
            }
            let weights = self.weights_at(self.chart.inverse_age(t), &x);
            let fit = self.acs(&x, &weights, tolerance, go_on)?;
            let (gone, pace) = (self.distance(&x, start), self.distance(&fit, &x));
            tolerance = (COARSE_SHARE * pace).clamp(finest, COARSE);
            let settled = pace <= SETTLED;
            if (settled || (continuous && pace <= CRAWL * gone)) && (pace <= AGAIN * tried || since >= RETRY) {
                (tried, since) = (pace, 0);
                let accuracy = if pace <= AT_REST * gone { FINE } else { IN_PLACE };
                if let Some(end) = self.finish(t, &fit, accuracy.max(BASIN * gone.max(pace).max(at_least))) {
                    return Ok(end);
                }
                if pace == 0.0 {
                    return Err(Halt::Broken(Breakdown::Stalled));
                }
            }
            since += 1;
            x = if continuous { self.lengthen(t, &x, fit, start, gone, pace) } else { fit };
        }
        Err(Halt::Broken(Breakdown::Stalled))
    }

    /// Newton from an ACS step, if it ends in the same basin.
    fn finish(&mut self, t: f64, fit: &[f64], within: f64) -> Option<Vec<f64>> {
        let end = self.polish(t, fit.to_vec())?;
        let (low, high) = (self.merit(t, &end), self.merit(t, fit));
        let moved = self.distance(&end, fit);
        // Hardly moved: whatever the values say is rounding.
        (moved <= within && (moved <= IN_PLACE || low <= high + 10.0 * NOISE * high.abs())).then_some(end)
    }

    /// The ACS step, or further along it as long as the objective falls; close to the start, where one direction leads out,
    /// further along the way gone. In a narrow pass the objective falls by less than the rounding of its value from one step to
    /// the next: its slope tells, its value only vouches.
    fn lengthen(&self, t: f64, x: &[f64], fit: Vec<f64>, start: &[f64], gone: f64, pace: f64) -> Vec<f64> {
        let close = gone < MICROSCOPIC;
        let longest = gone * if close { LEAP } else { STRIDE };
        if pace > 0.5 * longest || pace == 0.0 {
            return fit;
        }
        let highest = (1.0 + 10.0 * NOISE) * self.merit(t, &fit);
        let further = |from: &[f64], origin: &[f64]| {
            let way: Vec<f64> = fit.iter().zip(origin).map(|(f, o)| f - o).collect();
            let length = longest / self.norm(&way);
            let trial = |share: f64| from.iter().zip(&way).map(|(x, w)| x + share * length * w).collect::<Vec<f64>>();
            let falls = |x: &Vec<f64>| self.slope_along(t, x, &way) < 0.0 && self.merit(t, x) <= highest;
            let shares = successors(Some(1.0), |share| Some(0.25 * share));
            shares.take_while(|share| share * longest > 2.0 * pace).map(trial).find(falls)
        };
        let outward = if close { further(&fit, start) } else { None };
        outward.or_else(|| further(x, x)).unwrap_or(fit)
    }

    /// The derivative of G/α at (t, x) along a step; samples at a kink are taken to stay there.
    fn slope_along(&self, t: f64, x: &[f64], step: &[f64]) -> f64 {
        let (n, u, near) = (self.n(), self.chart.inverse_age(t), AT_KINK * self.problem.predictor_scale);
        let (beta, z, dz) = (self.beta(x), self.z(x), self.z(step));
        let each = (0..n).filter(|&i| self.kinks[i].as_slice().iter().all(|kink| (z[i] - kink).abs() > near));
        let pull = |i: usize| {
            let l = self.problem.loss.at(z[i], self.problem.target[i]);
            (beta[i] + self.scale[i] * self.problem.pacing.weight(l.value, u) * l.slope) * dz[i]
        };
        each.map(pull).sum::<f64>() - step[n] * beta.iter().sum::<f64>()
    }

    /// Newton with the active set following by value; None if it begins or ends where there is no minimiser near.
    pub(super) fn polish(&mut self, t: f64, mut x: Vec<f64>) -> Option<Vec<f64>> {
        self.evaluate_by_value(t, &x, NEAR_KINK);
        if self.refresh_factor(Need::Verdict) == Stability::Unstable {
            return None;
        }
        self.settle(&mut x);
        let mut last = f64::INFINITY;
        let (mut least, mut astray) = (f64::INFINITY, 0);
        for _ in 0..MAX_NEWTON {
            self.evaluate_at(t, &x);
            let moved = self.follow_values()?;
            if moved {
                self.settle(&mut x);
                self.evaluate_at(t, &x);
            }
            let residual = self.imbalance();
            if !residual.is_finite() {
                return None;
            }
            let stable = self.refresh_factor(Need::Certainty) == Stability::Stable;
            if !moved && (residual <= CONVERGED || (residual <= STAGNATED && residual > 0.5 * last)) {
                if !stable {
                    return None;
                }
                self.refresh(&mut x);
                self.evaluate_at(t, &x);
                return Some(x);
            }
            astray = if residual < least || residual <= SADDLE { 0 } else { astray + 1 };
            least = least.min(residual);
            if astray > MAX_ASTRAY || (!stable && residual <= SADDLE) {
                return None;
            }
            last = residual;
            let step = self.newton();
            axpy(1.0, &step, &mut x);
        }
        None
    }

    /// Moves samples to the states their values say; None where a weight would drop. Answers whether any did.
    fn follow_values(&mut self) -> Option<bool> {
        let n = self.n();
        let mut changes: Vec<(usize, State)> = Vec::new();
        for i in (0..n).filter(|&i| self.scale[i] > 0.0) {
            let (z, beta) = (self.at.x[n + 1 + i], self.at.x[i]);
            let state = self.members.state[i];
            let next = match state {
                State::Held { .. } => state,
                State::Pinned { kink } => {
                    let [(low, _), (high, _)] = self.ends(i, kink);
                    let zone = self.at.cuts.zone(0.0);
                    // Rounding may put it a hair beyond its end, from where it would only come back.
                    let slack = 1e-12 * (high - low);
                    if beta < low - slack {
                        State::Smooth { piece: kink + 1, zone }
                    } else if beta > high + slack {
                        State::Smooth { piece: kink, zone }
                    } else {
                        state
                    }
                }
                State::Smooth { piece, zone } => self.smooth_by_value(i, piece, zone, z),
            };
            if next != state {
                changes.push((i, next));
            }
        }
        let zone_of = |s: &State| match s {
            State::Smooth { piece, zone } => Some((*piece, *zone)),
            _ => None,
        };
        if !self.problem.pacing.is_continuous() {
            let drops = |(i, to): &(usize, State)| match (zone_of(&self.members.state[*i]), zone_of(to)) {
                (Some((_, a)), Some((_, b))) => a != b,
                _ => false,
            };
            if changes.iter().any(drops) {
                return None;
            }
        }
        self.change_states(&changes);
        Some(!changes.is_empty())
    }

    fn smooth_by_value(&self, i: usize, piece: u8, zone: u8, z: f64) -> State {
        let kinks = self.kinks[i].as_slice();
        let slack = 1e-12 * self.problem.predictor_scale;
        if let Some(&above) = kinks.get(usize::from(piece))
            && z > above + slack
        {
            return self.at_kink(i, piece, piece + 1, zone);
        }
        if piece > 0 && z < kinks[usize::from(piece) - 1] - slack {
            return self.at_kink(i, piece - 1, piece - 1, zone);
        }
        let value = self.at.loss[i].value;
        let cuts = self.at.cuts.as_slice();
        let beyond = |k: usize, slack: f64| cuts.get(k).is_some_and(|cut| value * cut.value > 1.0 + slack);
        let zone_now = usize::from(zone);
        if beyond(zone_now, 1e-12) || (zone_now > 0 && !beyond(zone_now - 1, -1e-12)) {
            return State::Smooth { piece, zone: self.at.cuts.zone(value) };
        }
        State::Smooth { piece, zone }
    }
}
