//! From a point that is no local minimiser down to the next one, without ACS's thousands of fits.
//!
//! Near a fold the objective is almost flat along one direction and steep across it: ACS crawls along the floor of a
//! valley. So: leave along the direction of negative curvature, just far enough to be going down. Then let ACS choose the
//! way; where it crawls, go further in its direction, or along a Newton step that stays on the valley's floor, by a share
//! of the distance gone so far. Once ACS crawls in a convex basin, trust-region Newton steps finish: each must lower the
//! objective about as its quadratic model says. The objective never goes up.

use crate::error::Breakdown;
use crate::linalg::{Definiteness, axpy, sum_of_sizes};
use crate::path::curve::{Curve, GoOn, Halt, Landing};
use crate::path::patch::{Coord, Patch};

/// Steps before giving up.
const MAX_STEPS: usize = 500;
/// Close to where the path ended, relative to the size of the point, a step may go this many times the distance gone ...
const MICROSCOPIC: f64 = 0.01;
const LEAP: f64 = 2.0;
/// ... and further out, where the way matters, this many times.
const STRIDE: f64 = 0.05;
/// ACS has nowhere left to go when a step is this small, relative to the point.
const SETTLED: f64 = 1e-12;
/// Finished at this relative residual.
const CONVERGED: f64 = 1e-12;
/// A residual that no longer falls is accepted below this.
const STAGNATED: f64 = 1e-10;
/// The trust radius is this many times the distance gone ...
const RADIUS: f64 = 0.5;
/// ... and, when nothing is near a fold, at least this, relative to the size of the point.
const FREE_RADIUS: f64 = 0.05;
/// A Newton step's fall must be the predicted one within this factor.
const SUFFICIENT: f64 = 0.6;
/// Differences of the objective below this share of it are rounding.
const NOISE: f64 = 1e-14;
/// Instead of an ACS step, ever shorter steps ahead are tried down to this share ...
const LEAST_SHARE: f64 = 0.05;
/// ... and, where the objective cannot even tell the ACS step from none, while they are this many times as long as that.
const WORTHWHILE: f64 = 4.0;
/// Beyond the end of a flat stretch, relative to the size of the point.
const HAIR: f64 = 1e-9;
/// First trial length along an exit, and by what and how often it is multiplied.
const FIRST_EXIT: f64 = 1e-6;
const EXIT_GROWTH: f64 = 2.0;
const MAX_EXITS: usize = 37;
/// The damping of a step that is too long: first, relative to the flattest column; growth; bisections afterwards.
const FIRST_DAMPING: f64 = 1e-8;
const DAMPING_GROWTH: f64 = 10.0;
const DAMPING_BISECTIONS: usize = 3;

impl Patch<'_> {
    /// Descends from the last evaluated point at its t. Sets membership, evaluation and factor at the end.
    pub(crate) fn descend(&mut self, exit: Option<&[f64]>, go_on: GoOn<'_>) -> Result<Landing, Halt> {
        let t = self.at.t;
        let start = self.at.x.clone();
        let from = self.merit(t, &start);
        let mut flat = None;
        let first = match exit {
            Some(exit) => match self.leave(t, &start, from, exit) {
                Some(x) => x,
                None => {
                    flat = Some(exit);
                    self.cross_flat(t, &start, from, exit).ok_or(Halt::Broken(Breakdown::Stalled))?
                }
            },
            // Without an exit the membership has just been changed and its weights are not what the losses say: the
            // first ACS step takes them as they are.
            None => self.acs_step().map_err(Halt::Broken)?,
        };
        let at_least = if exit.is_some() { 0.0 } else { FREE_RADIUS * (1.0 + self.norm(&start)) };
        let near = self.walk(t, first, &start, go_on)?;
        let end = self.roll(t, near, &start, at_least)?;
        if !self.within_trust() {
            return Err(Halt::Escaped);
        }
        if let Some(exit) = flat {
            self.bend_beyond(t, &end, exit)?;
        }
        let drop = from - self.value();
        let size = end.iter().zip(&start).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        Ok(Landing { x: end, size, drop })
    }

    pub(crate) fn distance(&self, a: &[f64], b: &[f64]) -> f64 {
        self.norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
    }

    /// Points ever further along `exit`.
    fn along<'a>(&self, start: &'a [f64], exit: &'a [f64]) -> impl Iterator<Item = Vec<f64>> + use<'a> {
        let point = |length: &mut f64, _| {
            let mut x = start.to_vec();
            axpy(*length, exit, &mut x);
            *length *= EXIT_GROWTH;
            Some(x)
        };
        (0..MAX_EXITS).scan(FIRST_EXIT / self.norm(exit), point)
    }

    /// Goes along `exit` until the objective has begun to fall. The smallest jumps fall by little more than rounding:
    /// then the lowest point seen has to do.
    fn leave(&self, t: f64, start: &[f64], from: f64, exit: &[f64]) -> Option<Vec<f64>> {
        let mut lowest: Option<(f64, Vec<f64>)> = None;
        for x in self.along(start, exit) {
            let rise = self.merit(t, &x) - from;
            if rise < -10.0 * NOISE * from.abs() {
                return Some(x);
            }
            if rise < lowest.as_ref().map_or(0.0, |(low, _)| *low) {
                lowest = Some((rise, x));
            }
        }
        lowest.filter(|_| !self.factor.any_held()).map(|(_, x)| x)
    }

    /// Where nothing bends along `exit` the objective stays the same up to the next threshold: to a point beyond it.
    fn cross_flat(&self, t: f64, start: &[f64], from: f64, exit: &[f64]) -> Option<Vec<f64>> {
        if !self.factor.any_held() {
            return None;
        }
        self.along(start, exit).find(|x| self.merit(t, x) - from > 10.0 * NOISE * from.abs())
    }

    /// Takes the zones a hair beyond the end of a flat stretch, where it must bend, for those at its end.
    fn bend_beyond(&mut self, t: f64, end: &[f64], exit: &[f64]) -> Result<(), Halt> {
        let mut beyond = end.to_vec();
        axpy(HAIR * (1.0 + self.norm(end)) / self.norm(exit), exit, &mut beyond);
        self.evaluate_by_value(t, &beyond);
        self.evaluate(t, end);
        match self.factorize() {
            Definiteness::Positive => Ok(()),
            _ => Err(Halt::Broken(Breakdown::Stalled)),
        }
    }

    /// ACS from x, lengthened where it crawls outside any basin. Ends where it crawls inside one.
    fn walk(&mut self, t: f64, mut x: Vec<f64>, start: &[f64], go_on: GoOn<'_>) -> Result<Vec<f64>, Halt> {
        let mut damping = 0.0;
        for _ in 0..MAX_STEPS {
            if !go_on() {
                return Err(Halt::Stopped);
            }
            self.evaluate_by_value(t, &x);
            if !self.within_trust() {
                return Err(Halt::Escaped);
            }
            let fit = self.acs_step().map_err(Halt::Broken)?;
            let (gone, pace) = (self.distance(&x, start), self.distance(&fit, &x));
            let longest = gone * if gone < MICROSCOPIC * (1.0 + self.norm(start)) { LEAP } else { STRIDE };
            if pace == 0.0 {
                return Ok(x);
            }
            if self.far.is_some() && gone > MICROSCOPIC * (1.0 + self.norm(start)) {
                // The far rows follow Newton's rules here, not those of ACS: all rows must choose the way.
                return Err(Halt::Escaped);
            }
            // Where weights drop from 1 to 0 there is no slope to go by: nothing but ACS itself.
            if pace > 0.5 * longest || !self.problem.pacing.is_continuous() {
                let settled = pace <= SETTLED * (1.0 + self.norm(&fit));
                x = fit;
                if settled {
                    return Ok(x);
                }
                continue;
            }
            self.set_coords(&x);
            self.release_coords();
            let (a, magnitude) = self.face_hessian();
            if self.stable_step(&a, &magnitude, longest).is_some() {
                return Ok(x);
            }
            let ahead: Vec<f64> = fit.iter().zip(&x).map(|(f, x)| (f - x) * longest / pace).collect();
            let lowest = self.merit(t, &fit);
            let further = self.lower_by(t, &x, &ahead, &fit, lowest).or_else(|| {
                let newton = self.damped_step(&a, &magnitude, longest, &mut damping);
                self.lower_by(t, &x, &newton, &fit, lowest)
            });
            x = further.unwrap_or(fit);
        }
        Err(Halt::Broken(Breakdown::Stalled))
    }

    /// x + step, or a shorter step in the same direction, if that is lower than the ACS step `fit`, whose value is `than`.
    fn lower_by(&mut self, t: f64, x: &[f64], step: &[f64], fit: &[f64], than: f64) -> Option<Vec<f64>> {
        let rounding = NOISE * than.abs();
        let told_apart = (self.value() - than).abs() > rounding;
        let least = if told_apart { LEAST_SHARE } else { WORTHWHILE * self.distance(fit, x) / self.norm(step) };
        let shares = std::iter::successors(Some(1.0), |share| Some(0.25 * share));
        shares.take_while(|&share| share > least).find_map(|share| {
            let mut trial = x.to_vec();
            axpy(share, step, &mut trial);
            // Coefficients that ACS sets to zero, or that would change sign, stay at zero.
            for j in 0..x.len() {
                if self.l1[j] > 0.0 && (fit[j] == 0.0 || trial[j] * fit[j] < 0.0) {
                    trial[j] = 0.0;
                }
            }
            let rise = self.merit(t, &trial) - than;
            let lower = if rise.abs() > rounding { rise < 0.0 } else { self.falls_on(t, x, &trial) };
            lower.then_some(trial)
        })
    }

    /// Whether the objective still falls at `trial`, seen from x: where its values differ by rounding only, its slope
    /// is what tells. The patch stays evaluated at x.
    fn falls_on(&mut self, t: f64, x: &[f64], trial: &[f64]) -> bool {
        self.evaluate_by_value(t, trial);
        let slope = |j: usize| self.at.gradient[j] + self.l1[j] * if trial[j] == 0.0 { 0.0 } else { trial[j].signum() };
        let along: f64 = (0..x.len()).map(|j| (trial[j] - x[j]) * slope(j)).sum();
        self.evaluate_by_value(t, x);
        along < 0.0
    }

    /// Trust-region Newton from x to a stable stationary point.
    fn roll(&mut self, t: f64, mut x: Vec<f64>, start: &[f64], at_least: f64) -> Result<Vec<f64>, Halt> {
        self.set_coords(&x);
        self.evaluate_by_value(t, &x);
        let mut value = self.value();
        let (mut shrink, mut damping) = (1.0, 0.0);
        let mut last = f64::INFINITY;
        for _ in 0..MAX_STEPS {
            self.release_coords();
            let radius = shrink * (RADIUS * self.distance(&x, start)).max(at_least);
            let residual = self.violation_of_kkt();
            let (a, magnitude) = self.face_hessian();
            let newton = self.stable_step(&a, &magnitude, radius);
            if newton.is_some() && (residual <= CONVERGED || (residual <= STAGNATED && residual > 0.5 * last)) {
                return Ok(x);
            }
            let step = newton.unwrap_or_else(|| self.damped_step(&a, &magnitude, radius, &mut damping));
            let mut next = x.clone();
            axpy(1.0, &step, &mut next);
            let promised = -self.model_change(&step);
            self.bind_coords(&mut next);
            self.evaluate_by_value(t, &next);
            let there = self.value();
            let noise = 100.0 * NOISE * value.abs();
            let fall = value - there;
            if fall >= SUFFICIENT * promised - noise && fall <= promised / SUFFICIENT + noise {
                (x, value, last) = (next, there, residual);
                shrink = (2.0 * shrink).min(1.0);
            } else {
                shrink *= 0.25;
                if shrink < 1e-12 {
                    break;
                }
                self.set_coords(&x);
                self.evaluate_by_value(t, &x);
            }
        }
        let largest = self.at.z.iter().fold(0.0f64, |a, z| a.max(z.abs()));
        Err(Halt::Broken(match self.breakdown(last, largest) {
            Breakdown::Newton { .. } => Breakdown::Stalled,
            other => other,
        }))
    }

    fn face_hessian(&mut self) -> (Vec<f64>, Vec<f64>) {
        self.counters.factorizations += 1;
        self.hessian(&self.membership.active)
    }

    /// Newton's step on the face, if the Hessian is positive there and the step no longer than `radius`.
    fn stable_step(&mut self, a: &[f64], magnitude: &[f64], radius: f64) -> Option<Vec<f64>> {
        if self.factor.factor(a, magnitude) == Definiteness::Indefinite {
            return None;
        }
        // A column without curvature that is pulled all the same has to move by gradient.
        let pulled = |p: usize, j: usize, patch: &Self| {
            let slope = patch.at.gradient[j] + patch.l1[j] * patch.membership.coord[j].sign();
            patch.factor.is_held(p) && patch.relative(j, slope.abs()) > STAGNATED
        };
        if self.membership.active.iter().enumerate().any(|(p, &j)| pulled(p, j, self)) {
            return None;
        }
        Some(self.newton_step()).filter(|step| self.norm(step) <= radius)
    }

    /// (H + μD²)⁻¹ times the downhill gradient on the face, with about the smallest μ > 0 that makes H + μD² positive and
    /// the step no longer than `radius`. `damping` is where the search begins, and what it found.
    fn damped_step(&mut self, a: &[f64], magnitude: &[f64], radius: f64, damping: &mut f64) -> Vec<f64> {
        let active = self.membership.active.clone();
        let k = active.len();
        let scaled: Vec<f64> = active.iter().map(|&j| self.column_scales[j].powi(2)).collect();
        // By the curvatures themselves, not by what cancels in them: the way down depends on it.
        let cancelled = self.at.bending - sum_of_sizes(&self.at.h);
        let sizes = (0..k).map(|p| magnitude[p] / scaled[p] - cancelled);
        let (smallest, largest) = sizes.fold((f64::INFINITY, 0.0f64), |(low, high), s| (low.min(s), high.max(s)));
        let mut try_damping = |damping: f64| {
            let (mut damped, mut grown) = (a.to_vec(), magnitude.to_vec());
            for p in 0..k {
                damped[p * k + p] += damping * scaled[p];
                grown[p] += damping * scaled[p];
            }
            let positive = self.factor.factor(&damped, &grown) == Definiteness::Positive;
            positive.then(|| self.newton_step()).filter(|step| self.norm(step) <= radius)
        };
        // Enough, then not much more than enough.
        let least = (FIRST_DAMPING * smallest).max(f64::EPSILON * largest).max(f64::MIN_POSITIVE);
        let (mut low, mut high) = (0.0, least.max(*damping / DAMPING_GROWTH));
        let mut step = loop {
            match try_damping(high) {
                Some(step) => break step,
                None => (low, high) = (high, high * DAMPING_GROWTH),
            }
        };
        for _ in 0..DAMPING_BISECTIONS {
            let middle = if low == 0.0 { 0.5 * high } else { (low * high).sqrt() };
            match try_damping(middle) {
                Some(longer) => (step, high) = (longer, middle),
                None => low = middle,
            }
        }
        *damping = high;
        step
    }

    /// What the quadratic model says a step changes: gᵀs + ½ sᵀHs on the face.
    fn model_change(&self, step: &[f64]) -> f64 {
        let mut dz = vec![0.0; self.rows()];
        self.design.predict(step, &mut dz);
        let rows: f64 = dz.iter().zip(&self.at.h).map(|(d, h)| h * d * d).sum();
        let far = self.far.as_ref().map_or(0.0, |far| {
            let mut out = vec![0.0; step.len()];
            crate::linalg::symmetric_times(&far.hessian(&self.at.far), step, &mut out);
            crate::linalg::dot(&out, step)
        });
        let each = step.iter().enumerate().map(|(j, s)| {
            let slope = self.at.gradient[j] + self.l1[j] * self.membership.coord[j].sign();
            s * slope + 0.5 * self.l2[j] * s * s
        });
        0.5 * (rows + far) + each.sum::<f64>()
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
