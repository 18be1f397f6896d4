//! From a point that is no local minimiser to the one that ACS would find, without ACS's thousands of fits.
//!
//! Near a fold the objective is almost flat and ACS crawls. So: first leave along the direction of negative curvature;
//! then ACS steps, each stretched while the objective keeps falling, choose the basin; as soon as the reduced Hessian
//! is stable, Newton finishes. The objective never goes up.

use crate::error::Breakdown;
use crate::linalg::{Definiteness, axpy};
use crate::path::curve::{Curve, Halt, Landing};
use crate::path::patch::{Coord, Patch};

/// ACS steps before giving up.
const MAX_STEPS: usize = 2000;
/// Newton iterations to finish.
const MAX_NEWTON: usize = 40;
/// Finished at this relative residual.
const CONVERGED: f64 = 1e-12;
/// A residual that no longer falls is accepted below this.
const STAGNATED: f64 = 1e-10;
/// An ACS step may be stretched by up to this factor.
const MAX_STRETCH: f64 = 4096.0;
/// Newton may take over when it moves no further than we have come, or this many times the last ACS step.
const NEWTON_REACH: f64 = 30.0;
/// Differences of the objective below this share of it are rounding.
const NOISE: f64 = 1e-14;
/// First trial length along an exit, in units of z, and how often it is doubled.
const FIRST_EXIT: f64 = 1e-9;
const MAX_DOUBLINGS: usize = 60;

impl Patch<'_> {
    /// Descends from the last evaluated point at its t. Sets membership, evaluation and factor at the end.
    pub(crate) fn descend(&mut self, exit: Option<&[f64]>) -> Result<Landing, Halt> {
        let t = self.at.t;
        let start = self.at.x.clone();
        let from = self.merit(t, &start);
        let mut x = start.clone();
        // Without an exit the membership has just been flipped and its weights are not what the losses say:
        // the first fit uses them as they are.
        let mut forced = exit.is_none();
        if let Some(exit) = exit {
            x = self.leave(t, &start, from, exit).ok_or(Halt::Broken(Breakdown::Stalled))?;
        }
        let mut value = self.merit(t, &x);
        for _ in 0..MAX_STEPS {
            if forced {
                self.evaluate(t, &x);
                forced = false;
            } else {
                self.evaluate_by_value(t, &x);
            }
            let weights: Vec<f64> = self.at.weight.iter().map(|v| v.value.clamp(0.0, 1.0)).collect();
            self.counters.acs_fits += 1;
            let (fit, _, _) = self.fit_weighted(t, &x, &weights).map_err(Halt::Broken)?;
            let step: Vec<f64> = fit.iter().zip(&x).map(|(f, x)| f - x).collect();
            let gone: Vec<f64> = x.iter().zip(&start).map(|(a, b)| a - b).collect();
            let reach = NEWTON_REACH * self.norm(&step) + self.norm(&gone);
            (x, value) = self.stretch(t, &x, &fit, &step, value);
            if let Some(end) = self.finish(t, &x, value, reach) {
                let size = self.norm(&end.iter().zip(&start).map(|(a, b)| a - b).collect::<Vec<_>>());
                let drop = from - self.merit(t, &end);
                if !self.within_trust() {
                    return Err(Halt::Escaped);
                }
                return Ok(Landing { x: end, size, drop });
            }
        }
        Err(Halt::Broken(Breakdown::Stalled))
    }

    /// Goes along `exit` for as long as the objective falls.
    fn leave(&self, t: f64, start: &[f64], from: f64, exit: &[f64]) -> Option<Vec<f64>> {
        let noise = NOISE * from.abs();
        let unit = FIRST_EXIT / self.norm(exit);
        let at = |length: f64| {
            let mut x = start.to_vec();
            axpy(length, exit, &mut x);
            x
        };
        let mut best: Option<(f64, f64)> = None;
        let mut length = unit;
        for _ in 0..MAX_DOUBLINGS {
            let value = self.merit(t, &at(length));
            match best {
                None if value < from - noise => best = Some((length, value)),
                Some((_, lowest)) if value < lowest => best = Some((length, value)),
                Some(_) => break,
                None => {}
            }
            length *= 2.0;
        }
        best.map(|(length, _)| at(length))
    }

    /// The ACS point, or one further along the same line if the objective keeps falling there.
    fn stretch(&self, t: f64, x: &[f64], fit: &[f64], step: &[f64], value: f64) -> (Vec<f64>, f64) {
        let first = self.merit(t, fit);
        let (mut best, mut lowest) = (fit.to_vec(), first.min(value));
        let mut factor = 2.0;
        while factor <= MAX_STRETCH {
            // Coefficients that the fit set to zero, or that would change sign, stay at zero.
            let mut trial = x.to_vec();
            axpy(factor, step, &mut trial);
            for j in 0..x.len() {
                if self.l1[j] > 0.0 && (fit[j] == 0.0 || trial[j] * fit[j] < 0.0) {
                    trial[j] = 0.0;
                }
            }
            let there = self.merit(t, &trial);
            if there >= lowest - NOISE * lowest.abs() {
                break;
            }
            (best, lowest) = (trial, there);
            factor *= 2.0;
        }
        (best, lowest)
    }

    /// Newton from x within `reach`; None if it does not go down to a stable point nearby.
    fn finish(&mut self, t: f64, start: &[f64], value: f64, reach: f64) -> Option<Vec<f64>> {
        let mut x = start.to_vec();
        self.set_coords(&x);
        let mut last = f64::INFINITY;
        let mut moved = 0.0;
        for _ in 0..MAX_NEWTON {
            self.evaluate_by_value(t, &x);
            self.release_coords();
            if self.factorize() == Definiteness::Indefinite {
                return None;
            }
            let residual = self.violation_of_kkt();
            if residual <= CONVERGED || (residual <= STAGNATED && residual > 0.5 * last) {
                let down = self.merit(t, &x) <= value + NOISE * 100.0 * value.abs();
                return down.then_some(x);
            }
            let step = self.newton_step();
            moved += self.norm(&step);
            if moved > reach {
                return None;
            }
            axpy(1.0, &step, &mut x);
            self.bind_coords(&mut x);
            last = residual;
        }
        None
    }

    /// Signs of the coefficients from their values.
    pub(crate) fn set_coords(&mut self, x: &[f64]) {
        for j in 0..x.len() {
            self.membership.coord[j] = match (self.l1[j] > 0.0, x[j]) {
                (false, _) => Coord::Free,
                (true, w) if w > 0.0 => Coord::Plus,
                (true, w) if w < 0.0 => Coord::Minus,
                _ => Coord::Zero,
            };
        }
        self.membership.relist();
    }

    /// Lets coefficients go whose bound is exceeded.
    pub(crate) fn release_coords(&mut self) {
        for j in 0..self.cols() {
            let g = self.at.gradient[j];
            if self.membership.coord[j] == Coord::Zero && g.abs() > self.l1[j] * (1.0 + 1e-13) {
                self.membership.coord[j] = if g > 0.0 { Coord::Minus } else { Coord::Plus };
            }
        }
        self.membership.relist();
    }

    /// Sets coefficients to zero that have crossed it.
    pub(crate) fn bind_coords(&mut self, x: &mut [f64]) {
        for j in 0..x.len() {
            if self.membership.coord[j].sign() * x[j] < 0.0 {
                x[j] = 0.0;
                self.membership.coord[j] = Coord::Zero;
            }
        }
        self.membership.relist();
    }
}
