//! Pacings whose weight drops from 1 to 0: the path is a staircase.
//!
//! Weights are 0 or 1 and do not depend on the age, so the solution stays where it is until the age meets a loss: the largest of
//! the rows that count on the way down, the smallest of the others on the way up. All rows that lie there change sides together,
//! and ACS (weights by the losses, fit by the weights) finds the next step; it never goes up and ends after finitely many fits.
//!
//! For squared loss a fit is a solve with sums over the rows that count, kept up to date row by row, and only rows that can change
//! sides while θ stays within a tube are looked at.

use super::curve::{Curve, Halt};
use super::patch::{Patch, euclidean};
use super::trace::{RawEvent, RawKnot};
use super::types::{Cause, Kind};
use super::window::Context;
use crate::error::Breakdown;
use crate::linalg::{axpy, dot, symmetric_times};
use crate::loss::TargetKind;
use crate::solver::Quadratic;

/// Losses within this of the age, relatively, lie on it ...
const TIED: f64 = 1e-12;
/// ... and a row that has changed sides goes back only if its loss is clearly on the other side: fits are not exact.
const CLEARLY: f64 = 1e-9;
/// ACS steps at one age before giving up. Each lowers the objective, but an avalanche among 10⁵ rows takes hundreds.
const MAX_FITS: usize = 10_000;
/// The rows looked at are about this share of all ...
const NEAR_SHARE: usize = 16;
/// ... and at least so many.
const NEAR_ROWS: usize = 64;
/// The first tube: how far θ may move, relative to its size, and the age, in log age.
const FIRST_TUBE: f64 = 1e-2;
/// Sums are made anew when the weight they stand for has fallen by this factor, or a row takes this share of one away.
const FADED: f64 = 0.5;
const DOMINANT: f64 = 0.9;
/// Sums whose solution leaves a larger relative residual over the rows are made anew.
const DRIFTED: f64 = 1e-12;

/// Follows `patch` from where it stands to `stop`.
pub(super) fn follow(patch: &mut Patch, stop: f64, ctx: &mut Context) -> Result<(), Halt> {
    let mut stairs = Stairs::new(patch, stop)?;
    loop {
        match stairs.next() {
            None if stairs.at_the_end() => {
                let (t, x) = (stairs.stop, stairs.x.clone());
                patch.membership.zone.clone_from(&stairs.zones);
                patch.set_coords(&x);
                patch.evaluate(t, &x);
                ctx.trace.push_knot(RawKnot { t, x });
                return Ok(());
            }
            None => {
                stairs.look_further(patch)?;
                if !ctx.watch.ask(patch.at.t, ctx.trace) {
                    return Err(Halt::Stopped);
                }
            }
            Some(age) => {
                let t = patch.chart.time(age);
                stairs.climb(patch, age, t, ctx)?;
                if !ctx.watch.ask(t, ctx.trace) {
                    patch.membership.zone.clone_from(&stairs.zones);
                    patch.set_coords(&stairs.x);
                    patch.evaluate(t, &stairs.x);
                    return Err(Halt::Stopped);
                }
            }
        }
    }
}

/// Sums over the rows that count: ½θᵀAθ − cᵀθ + const.
struct Normal {
    a: Vec<f64>,
    c: Vec<f64>,
    /// Σ s y²
    constant: f64,
    /// Σ s of the rows that count, now and when the sums were made.
    weight: f64,
    fresh_weight: f64,
}

struct Stairs {
    /// 0: counts, 1: does not.
    zones: Vec<u8>,
    /// Σ s over all rows.
    total: f64,
    x: Vec<f64>,
    age: f64,
    stop: f64,
    last_age: f64,
    down: bool,
    normal: Option<Normal>,
    /// The rows looked at and their losses at x.
    near: Vec<usize>,
    losses: Vec<f64>,
    /// They suffice within `radius` of `centre` and up to the age `until`.
    centre: Vec<f64>,
    radius: f64,
    until: f64,
    /// What to try next.
    reach: f64,
    tube: f64,
}

impl Stairs {
    fn new(patch: &mut Patch, stop: f64) -> Result<Stairs, Halt> {
        let (t, x) = (patch.at.t, patch.at.x.clone());
        let (age, last_age) = (patch.chart.age(t), patch.chart.age(stop));
        let squared = patch.problem.loss.is_squared_residual();
        let zones = patch.membership.zone.clone();
        let mut stairs = Stairs {
            normal: squared.then(|| Normal::of(patch, &zones)),
            zones,
            total: patch.scale.iter().sum(),
            centre: x.clone(),
            x,
            age,
            stop,
            last_age,
            down: stop > t,
            near: Vec::new(),
            losses: Vec::new(),
            radius: 0.0,
            until: age,
            reach: FIRST_TUBE,
            tube: FIRST_TUBE,
        };
        stairs.look_around(patch)?;
        Ok(stairs)
    }

    /// Whether the first age lies beyond the second, the way the path runs.
    fn beyond(&self, a: f64, b: f64) -> bool {
        if self.down { a < b } else { a > b }
    }

    fn at_the_end(&self) -> bool {
        !self.beyond(self.last_age, self.until)
    }

    /// The age of the next step, if it lies before the end and within what is looked at.
    fn next(&self) -> Option<f64> {
        let side = u8::from(!self.down);
        let losses = self.near.iter().zip(&self.losses).filter(|(i, _)| self.zones[**i] == side).map(|(_, l)| *l);
        let first = if self.down { losses.fold(0.0, f64::max) } else { losses.fold(f64::INFINITY, f64::min) };
        // A row beyond the age already, by rounding, lies on it.
        let first = if self.beyond(self.age, first) { self.age } else { first };
        let inside = !self.beyond(first, self.until) && !self.beyond(first, self.last_age);
        (inside && first > 0.0).then_some(first)
    }

    /// Where a loss of a row in `zone` belongs just beyond `age`.
    fn zone(&self, zone: u8, loss: f64, age: f64) -> u8 {
        let counts = match (self.down, zone) {
            (true, 0) => loss < age * (1.0 - TIED),
            (true, _) => loss < age * (1.0 - CLEARLY),
            (false, 0) => loss <= age * (1.0 + CLEARLY),
            (false, _) => loss <= age * (1.0 + TIED),
        };
        u8::from(!counts)
    }

    /// All rows that lie on `age` change sides; then ACS.
    fn climb(&mut self, patch: &mut Patch, age: f64, t: f64, ctx: &mut Context) -> Result<(), Halt> {
        self.age = age;
        let from = self.x.clone();
        let before = self.value(patch, &from, t);
        let mut told = None;
        for _ in 0..MAX_FITS {
            let flips: Vec<usize> = (self.near.iter().zip(&self.losses))
                .filter(|&(&i, &loss)| self.zone(self.zones[i], loss, age) != self.zones[i])
                .map(|(&i, _)| i)
                .collect();
            if flips.is_empty() {
                self.record(patch, t, &from, before, told.unwrap_or_default(), ctx);
                return Ok(());
            }
            self.flip(patch, &flips);
            told.get_or_insert(flips);
            self.x = self.fit(patch, t)?;
            self.refresh(patch)?;
            if !ctx.watch.ask(t, ctx.trace) {
                return Err(Halt::Stopped);
            }
        }
        Err(Halt::Broken(Breakdown::Stalled))
    }

    fn flip(&mut self, patch: &Patch, rows: &[usize]) {
        for &i in rows {
            self.zones[i] = 1 - self.zones[i];
        }
        if let Some(normal) = &mut self.normal
            && !rows.iter().all(|&i| normal.add(patch, i, if self.zones[i] == 0 { 1.0 } else { -1.0 }))
        {
            *normal = Normal::of(patch, &self.zones);
        }
    }

    /// The fit of the rows that count.
    fn fit(&mut self, patch: &mut Patch, t: f64) -> Result<Vec<f64>, Halt> {
        patch.counters.acs_fits += 1;
        match &self.normal {
            Some(normal) => Ok(normal.minimise(patch, &self.x)),
            None => {
                if self.is_one_class(patch) {
                    return Err(Halt::Broken(Breakdown::Unbounded));
                }
                let weights: Vec<f64> = self.zones.iter().map(|&z| f64::from(1 - z)).collect();
                let (x, ..) = patch.fit_weighted(t, &self.x, &weights).map_err(Halt::Broken)?;
                patch.membership.zone.clone_from(&self.zones);
                Ok(patch.polish_fit(t, x))
            }
        }
    }

    /// Whether the rows that count are all of one class, which a free intercept follows to infinity.
    fn is_one_class(&self, patch: &Patch) -> bool {
        let counted = || (0..patch.rows()).filter(|&i| self.zones[i] == 0 && patch.scale[i] > 0.0);
        let first = counted().next().map(|i| patch.target[i]);
        let classes = patch.problem.loss.target() == TargetKind::Sign && patch.problem.has_intercept();
        classes && first.is_some_and(|first| counted().all(|i| patch.target[i] == first))
    }

    /// The losses at x of the rows looked at; of all rows, where x has left the tube.
    fn refresh(&mut self, patch: &mut Patch) -> Result<(), Halt> {
        if self.normal.is_none() || patch.distance(&self.x, &self.centre) > self.radius {
            self.tube = (2.0 * self.tube).min(1.0);
            return self.look_around(patch);
        }
        let mut z = vec![0.0; self.near.len()];
        patch.design.predict_rows(&self.x, &self.near, &mut z);
        for (k, &i) in self.near.iter().enumerate() {
            self.losses[k] = patch.problem.loss.at(z[k], patch.target[i]).value;
        }
        Ok(())
    }

    /// Nothing happens as far as we look: on from there.
    fn look_further(&mut self, patch: &mut Patch) -> Result<(), Halt> {
        self.age = self.until;
        self.reach = (2.0 * self.reach).min(1.0);
        self.tube *= 0.8;
        self.look_around(patch)
    }

    /// Chooses the rows to look at from here on.
    fn look_around(&mut self, patch: &mut Patch) -> Result<(), Halt> {
        patch.membership.zone.clone_from(&self.zones);
        patch.set_coords(&self.x);
        let t = patch.chart.time(self.age);
        patch.evaluate(t, &self.x);
        if let Some(normal) = &mut self.normal
            && patch.violation_of_kkt() > DRIFTED
        {
            *normal = Normal::of(patch, &self.zones);
            self.x = normal.minimise(patch, &self.x);
            patch.set_coords(&self.x);
            patch.evaluate(t, &self.x);
        }
        self.centre.clone_from(&self.x);
        let n = patch.rows();
        let aim = NEAR_ROWS.max(n / NEAR_SHARE);
        loop {
            self.until = patch.chart.age(if self.down { t + self.reach } else { (t - self.reach).max(0.0) });
            self.radius = self.tube * (1.0 + patch.norm(&self.x));
            let counted = |i: &usize| patch.scale[*i] > 0.0;
            self.near = match self.normal.is_some() {
                true => self.may_change(patch).into_iter().filter(counted).collect(),
                false => (0..n).filter(counted).collect(),
            };
            if self.normal.is_none() || self.near.len() <= 4 * aim || self.reach < 1e-6 {
                break;
            }
            self.reach *= 0.5;
            self.tube *= 0.5;
        }
        self.losses = self.near.iter().map(|&i| patch.at.loss.value[i]).collect();
        Ok(())
    }

    /// Rows that may change sides while θ stays in the tube and the age within reach.
    fn may_change(&self, patch: &Patch) -> Vec<usize> {
        let (low, high) = (self.age.min(self.until) * (1.0 - TIED), self.age.max(self.until) * (1.0 + TIED));
        let reach = self.radius * patch.problem.predictor_scale;
        let near = |&i: &usize| {
            let (r, w) = ((patch.at.z[i] - patch.target[i]).abs(), reach * patch.row_norms[i]);
            match self.zones[i] {
                0 => (r + w).powi(2) >= low,
                _ => (r - w).max(0.0).powi(2) <= high,
            }
        };
        (0..patch.rows()).filter(near).collect()
    }

    /// The objective at x with the present weights.
    fn value(&self, patch: &Patch, x: &[f64], t: f64) -> f64 {
        let Some(normal) = &self.normal else { return patch.merit(t, x) };
        normal.value(patch, x) + (self.total - normal.weight) * self.age
    }

    fn record(&mut self, patch: &Patch, t: f64, from: &[f64], before: f64, flips: Vec<usize>, ctx: &mut Context) {
        let names = patch.problem.pacing.zones();
        let (out, into) = if self.down { (names[0], names[1]) } else { (names[1], names[0]) };
        let cause = |&i: &usize| Cause::Sample { index: patch.row_ids[i], from: out, to: into };
        let moved = patch.distance(&self.x, from) > 0.0;
        if moved {
            ctx.trace.push_knot(RawKnot { t, x: from.to_vec() });
            ctx.trace.push_knot(RawKnot { t, x: self.x.clone() });
        }
        for (k, i) in flips.iter().enumerate() {
            let jump = moved && k == 0;
            let drop = if jump { (before - self.value(patch, &self.x, t)).max(0.0) } else { 0.0 };
            let size = if jump { euclidean(&self.x, from) } else { 0.0 };
            let kind = if jump { Kind::Jump } else { Kind::Turning };
            ctx.trace.push_event(RawEvent { t, kind, cause: cause(i), size, drop });
        }
    }
}

impl Normal {
    fn of(patch: &Patch, zones: &[u8]) -> Normal {
        let m = patch.cols();
        let counts: Vec<f64> = zones.iter().zip(&*patch.scale).map(|(&z, s)| f64::from(1 - z) * s).collect();
        let twice: Vec<f64> = counts.iter().map(|s| 2.0 * s).collect();
        let mut a = vec![0.0; m * m];
        patch.design.gram(&twice, &(0..m).collect::<Vec<_>>(), &mut a);
        (0..m).for_each(|j| a[j * m + j] += patch.l2[j]);
        let mut c = vec![0.0; m];
        let pull: Vec<f64> = twice.iter().zip(&*patch.target).map(|(s, y)| s * y).collect();
        patch.design.accumulate(&pull, &mut c);
        let constant = counts.iter().zip(&*patch.target).map(|(s, y)| s * y * y).sum();
        let weight = counts.iter().sum();
        Normal { a, c, constant, weight, fresh_weight: weight }
    }

    /// Adds a row or takes it out; false where too little would be left of the sums to be right.
    fn add(&mut self, patch: &Patch, i: usize, sign: f64) -> bool {
        let m = self.c.len();
        let mut row = vec![0.0; m];
        patch.design.add_row(i, 1.0, &mut row);
        let (s, y) = (sign * patch.scale[i], patch.target[i]);
        let mut right = true;
        for p in 0..m {
            let own = 2.0 * s * row[p] * row[p];
            right &= own > -DOMINANT * self.a[p * m + p];
            axpy(2.0 * s * row[p], &row[..=p], &mut self.a[p * m..p * m + p + 1]);
        }
        axpy(2.0 * s * y, &row, &mut self.c);
        self.constant += s * y * y;
        self.weight += s;
        right && self.weight > FADED * self.fresh_weight
    }

    fn minimise(&self, patch: &Patch, x: &[f64]) -> Vec<f64> {
        let m = x.len();
        let mut g = vec![0.0; m];
        symmetric_times(&self.a, x, &mut g);
        axpy(-1.0, &self.c, &mut g);
        let magnitude: Vec<f64> = (0..m).map(|j| self.a[j * m + j]).collect();
        let mut y = x.to_vec();
        Quadratic { a: &self.a, magnitude: &magnitude, g: &g, l1: &patch.l1 }.minimise(x, &mut y);
        y
    }

    fn value(&self, patch: &Patch, x: &[f64]) -> f64 {
        let mut ax = vec![0.0; x.len()];
        symmetric_times(&self.a, x, &mut ax);
        let bounds: f64 = x.iter().zip(&patch.l1).map(|(x, l1)| l1 * x.abs()).sum();
        0.5 * dot(&ax, x) - dot(&self.c, x) + self.constant + bounds
    }
}
