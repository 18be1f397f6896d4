//! Guards of a patch: numbers that are positive while a membership is right. A sample has one for each threshold next to its
//! zone, |ℓ/τ − 1|; a coefficient has one for its bound.
//!
//! There are as many guards as rows, and they are asked for at every step: the loops over rows are branch-free and
//! look for the smallest number first, and for its place only when something happens.

use super::curve::{Crossing, first_zero};
use super::patch::{Coord, Patch};
use crate::linalg::{axpy, dot, smallest, symmetric_times, wide_loop};
use crate::pacing::{Cut, Cuts};

/// A guard below this is violated; guards are relative or in units of z.
const VIOLATED: f64 = 1e-11;

/// What a guard protects. Guards are numbered: one per cut for the first row, for the second, and so on; then the columns.
#[derive(Debug, Clone, Copy)]
pub(super) enum Guarded {
    Sample { row: usize, cut: usize },
    Coord(usize),
}

/// What is remembered of the point where the first crossing was asked for.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    cuts: Cuts,
    /// du along the step, per unit of time
    clock: f64,
    loss: Vec<f64>,
    slope: Vec<f64>,
    dz: Vec<f64>,
    /// Guards of the columns and their rates.
    coords: Vec<(f64, f64)>,
    /// Room for one number per row.
    room: Vec<f64>,
}

/// +1 where a loss must stay above the threshold `cut`, −1 where it must stay below, 0 where it is not next to it.
#[inline(always)]
fn side(zone: u8, cut: usize) -> f64 {
    let (zone, cut) = (i32::from(zone), cut as i32);
    f64::from(i32::from(zone == cut + 1) - i32::from(zone == cut))
}

/// The same for a row of this scale: one of weight 0 moves nothing, its zone is nobody's business.
#[inline(always)]
fn side_of(zone: u8, cut: usize, scale: f64) -> f64 {
    if scale > 0.0 { side(zone, cut) } else { 0.0 }
}

/// ℓ/τ − 1
#[inline(always)]
fn excess(loss: f64, cut: Cut) -> f64 {
    loss * cut.value - 1.0
}

/// How the excess changes when the predictor moves by `dz` and u = 1/λ by `du`.
#[inline(always)]
fn excess_rate(loss: f64, slope: f64, cut: Cut, dz: f64, du: f64) -> f64 {
    slope * dz * cut.value + loss * cut.slope * du
}

impl Patch<'_> {
    fn cut_count(&self) -> usize {
        self.at.cuts.as_slice().len()
    }

    fn sample_number(&self, row: usize, cut: usize) -> usize {
        row * self.cut_count() + cut
    }

    fn coord_number(&self, j: usize) -> usize {
        self.rows() * self.cut_count() + j
    }

    pub(super) fn guarded(&self, guard: usize) -> Guarded {
        match guard.checked_sub(self.coord_number(0)) {
            Some(j) => Guarded::Coord(j),
            None => Guarded::Sample { row: guard / self.cut_count(), cut: guard % self.cut_count() },
        }
    }

    pub(super) fn sample_guard(&self, i: usize, cut: usize) -> f64 {
        side(self.membership.zone[i], cut) * excess(self.at.loss.value[i], self.at.cuts.as_slice()[cut])
    }

    pub(super) fn sample_rate(&self, i: usize, cut: usize, dt: f64, dx: &[f64]) -> f64 {
        let mut row = vec![0.0; self.cols()];
        self.design.add_row(i, 1.0, &mut row);
        let (l, du) = (self.at.loss.get(i), self.at.speed * dt);
        let rate = excess_rate(l.value, l.slope, self.at.cuts.as_slice()[cut], dot(&row, dx), du);
        side(self.membership.zone[i], cut) * rate
    }

    pub(super) fn coord_guard(&self, j: usize) -> f64 {
        match self.membership.coord[j] {
            Coord::Free => f64::INFINITY,
            Coord::Zero => 1.0 - self.at.gradient[j].abs() / self.l1[j],
            c => c.sign() * self.at.x[j] * self.column_scales[j],
        }
    }

    fn coord_rate(&self, j: usize, dx: &[f64], dg: f64) -> f64 {
        match self.membership.coord[j] {
            Coord::Free => 0.0,
            Coord::Zero => -self.at.gradient[j].signum() * dg / self.l1[j],
            c => c.sign() * dx[j] * self.column_scales[j],
        }
    }

    pub(super) fn coord_rate_along(&self, j: usize, dt: f64, dx: &[f64]) -> f64 {
        if self.membership.coord[j] != Coord::Zero {
            return self.coord_rate(j, dx, 0.0);
        }
        let mut dz = vec![0.0; self.rows()];
        self.design.predict(dx, &mut dz);
        self.coord_rate(j, dx, self.gradient_rate(dt, dx, &dz)[j])
    }

    /// How the smooth gradient changes along (dt, dx).
    fn gradient_rate(&self, dt: f64, dx: &[f64], dz: &[f64]) -> Vec<f64> {
        let (at, m) = (&self.at, self.cols());
        let mut out = vec![0.0; m];
        if self.far.is_some() {
            symmetric_times(&at.far.hessian, dx, &mut out);
            axpy(dt, &at.far.by_time, &mut out);
        }
        for j in 0..m {
            out[j] += self.l2[j] * dx[j];
        }
        let rates: Vec<f64> = (0..self.rows()).map(|i| at.h[i] * dz[i] + self.psi_by_time(i) * dt).collect();
        self.design.accumulate(&rates, &mut out);
        out
    }

    /// See [`super::curve::Curve::crossing`].
    pub(super) fn first_crossing(&mut self, tangent: &[f64], direction: f64, horizon: f64) -> Option<Crossing> {
        let n = self.rows();
        let mut watched = std::mem::take(&mut self.watched);
        let step: Vec<f64> = tangent.iter().map(|v| v * direction).collect();
        watched.cuts = self.at.cuts;
        watched.clock = self.at.speed * direction;
        watched.loss.clone_from(&self.at.loss.value);
        watched.slope.clone_from(&self.at.loss.slope);
        watched.dz.resize(n, 0.0);
        watched.room.resize(n, 0.0);
        self.design.predict(&step, &mut watched.dz);
        let dg = match self.membership.coord.contains(&Coord::Zero) {
            true => self.gradient_rate(direction, &step, &watched.dz),
            false => vec![0.0; self.cols()],
        };
        watched.coords.clear();
        watched.coords.extend((0..self.cols()).map(|j| (self.coord_guard(j), self.coord_rate(j, &step, dg[j]))));
        let mut first: Option<Crossing> = None;
        let mut consider = |guard: usize, after: f64| {
            let sooner = |f: Crossing| after < f.after || (after == f.after && guard < f.guard);
            if after <= horizon && first.is_none_or(sooner) {
                first = Some(Crossing { guard, after });
            }
        };
        for cut in 0..self.cut_count() {
            let earliest = watched.times_to(cut, &self.membership.zone, &self.scale);
            if earliest <= horizon
                && let Some(row) = watched.room.iter().position(|after| *after == earliest)
            {
                consider(self.sample_number(row, cut), earliest);
            }
        }
        for (j, &(value, rate)) in watched.coords.iter().enumerate().filter(|(_, c)| c.1 < 0.0) {
            consider(self.coord_number(j), value.max(0.0) / -rate);
        }
        self.watched = watched;
        first
    }

    /// See [`super::curve::Curve::violation`].
    pub(super) fn first_violation(&mut self, step: f64, except: Option<usize>) -> Option<Crossing> {
        let mut watched = std::mem::take(&mut self.watched);
        let mut first: Option<Crossing> = None;
        let mut consider = |guard: usize, now: f64, then: (f64, f64)| {
            if now >= -VIOLATED || Some(guard) == except {
                return;
            }
            let after = first_zero(then, now, step);
            if first.is_none_or(|f| after < f.after) {
                first = Some(Crossing { guard, after });
            }
        };
        for cut in 0..self.cut_count() {
            let lowest = watched.values_now(cut, self);
            if lowest >= -VIOLATED {
                continue;
            }
            for i in (0..self.rows()).filter(|&i| watched.room[i] < -VIOLATED) {
                consider(self.sample_number(i, cut), watched.room[i], watched.then(i, cut, self.membership.zone[i]));
            }
        }
        for j in 0..self.cols() {
            consider(self.coord_number(j), self.coord_guard(j), watched.coords[j]);
        }
        self.watched = watched;
        first
    }
}

wide_loop! {
    fn fill_times(watched: &mut Watched, cut: usize, zones: &[u8], scales: &[f64]) {
        let (n, at, clock) = (watched.loss.len(), watched.cuts.as_slice()[cut], watched.clock);
        let (loss, slope, dz) = (&watched.loss[..n], &watched.slope[..n], &watched.dz[..n]);
        let (zones, scales, out) = (&zones[..n], &scales[..n], &mut watched.room[..n]);
        for i in 0..n {
            let side = side_of(zones[i], cut, scales[i]);
            let rate = side * excess_rate(loss[i], slope[i], at, dz[i], clock);
            let value = side * excess(loss[i], at);
            let value = if value > 0.0 { value } else { 0.0 };
            out[i] = if rate < 0.0 { value / -rate } else { f64::INFINITY };
        }
    }
}

wide_loop! {
    fn fill_values(losses: &[f64], zones: &[u8], scales: &[f64], cut: usize, at: Cut, out: &mut [f64]) {
        let n = out.len();
        let (losses, zones, scales) = (&losses[..n], &zones[..n], &scales[..n]);
        for i in 0..n {
            out[i] = side_of(zones[i], cut, scales[i]) * excess(losses[i], at);
        }
    }
}

impl Watched {
    /// When each row reaches the threshold `cut`, into `room`; answers the earliest.
    fn times_to(&mut self, cut: usize, zones: &[u8], scales: &[f64]) -> f64 {
        fill_times(self, cut, zones, scales);
        smallest(&self.room)
    }

    /// Every row's guard for the threshold `cut` where `patch` stands now, into `room`; answers the lowest.
    fn values_now(&mut self, cut: usize, patch: &Patch) -> f64 {
        let at = patch.at.cuts.as_slice()[cut];
        fill_values(&patch.at.loss.value, &patch.membership.zone, &patch.scale, cut, at, &mut self.room);
        smallest(&self.room)
    }

    /// A row's guard and its rate as they were.
    fn then(&self, i: usize, cut: usize, zone: u8) -> (f64, f64) {
        let (at, side) = (self.cuts.as_slice()[cut], side(zone, cut));
        let rate = excess_rate(self.loss[i], self.slope[i], at, self.dz[i], self.clock);
        (side * excess(self.loss[i], at), side * rate)
    }
}
