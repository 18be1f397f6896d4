//! The point, and the equations it solves.
//!
//! With everything divided by the penalty's α, a stationary point is D θ + Σ ψ_i x_i = r, D = diag(1, …, 1, 0) and r = 0 in the
//! end. Row i is on a *piece* of its loss in a zone of the pacing, where ψ_i is a function of z_i = x_iᵀθ and the age, or *pinned*
//! at one of its kinks, where z_i is known and ψ_i is free between the two one-sided slopes. Pinned rows are independent
//! (`basis.rs`); a row that lies at its kink because others hold it there is on one of its pieces all the same.
//! Places change by events (`drive.rs`) alone, and by value when a point is taken up from outside.

use super::super::chart::Chart;
use super::super::patch::Counters;
use super::super::types::{NO_LOSS, PINNED};
use super::basis::{Basis, Hessian, Shape};
use super::space::Space;
use crate::linalg::{axpy, dot};
use crate::pacing::Cuts;

/// Newton is done at this residual, relative to what cancels in each condition ...
const CONVERGED: f64 = 2e-14;
/// ... or at this, if it falls no further.
const STAGNATED: f64 = 1e-11;
const MAX_NEWTON: usize = 30;
/// With a factor made elsewhere Newton has to gain this much in each step.
const GAIN: f64 = 0.2;
/// Bad steps with a factor of its own before Newton gives up.
const PATIENCE: usize = 3;
/// Curvatures may be off by this share of the largest before they are taken up anew.
const DRIFT: f64 = 3e-3;
/// Rows whose curvature is changed one by one: beyond this share of all, a fresh sum is cheaper.
const FEW: usize = 16;
/// What is left of a row beside those that are pinned, relative to its size, if it depends on them.
pub(super) const DEPENDENT: f64 = 1e-9;
/// Predictors this near to a kink, in units of z, are at it.
pub(super) const TIED: f64 = 1e-11;

/// Where a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// Between kinks, in a zone.
    Piece { piece: u8, zone: u8 },
    /// Pinned at a kink.
    Kink { kink: u8 },
}

/// What ψ follows.
#[derive(Debug, Clone)]
pub(super) enum Law {
    /// Fixed weights, multiplied by s/α: a convex problem.
    Fixed(Vec<f64>),
    /// The pacing's weights at the age of the clock.
    Paced,
}

/// A solution with the places of its rows; `pins` are the pinned rows with their ψ.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub theta: Vec<f64>,
    pub place: Vec<Place>,
    pub pins: Vec<(usize, f64)>,
}

/// Everything known at (t, θ).
#[derive(Debug, Clone, Default)]
pub(super) struct Evaluation {
    pub u: f64,
    pub cuts: Cuts,
    pub z: Vec<f64>,
    pub loss: Vec<f64>,
    /// ℓ'
    pub slope: Vec<f64>,
    pub psi: Vec<f64>,
    pub h: Vec<f64>,
    /// ∂ψ/∂u
    pub q: Vec<f64>,
}

/// S = Σ h_i x_i x_iᵀ (lower triangle) for the curvatures it was summed up with.
#[derive(Debug, Default)]
struct Curvature {
    sum: Vec<f64>,
    h: Vec<f64>,
    largest: f64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Engine<'s, 'p> {
    pub space: &'s Space<'p>,
    pub chart: Chart,
    pub law: Law,
    /// The clock, and the share of the pull r₀ that is left.
    pub t: f64,
    pub left: f64,
    pub theta: Vec<f64>,
    pub place: Vec<Place>,
    pub basis: Basis,
    /// ψ of the pinned rows, in the basis's order.
    pub pinned: Vec<f64>,
    pub at: Evaluation,
    curvature: Curvature,
    pub hessian: Hessian,
    /// Whether the factor is that of the basis.
    factored: bool,
    pub shape: Shape,
    pub counters: Counters,
    /// Largest number of pinned rows.
    pub largest: usize,
    /// Chooses among ties once a choice has led back.
    pub salt: u64,
}

impl<'s, 'p> Engine<'s, 'p> {
    pub fn new(space: &'s Space<'p>, chart: Chart) -> Self {
        let (n, p) = (space.n(), space.p);
        Engine {
            space,
            chart,
            law: Law::Paced,
            t: 0.0,
            left: 0.0,
            theta: vec![0.0; p],
            place: vec![Place::Piece { piece: 0, zone: 0 }; n],
            basis: Basis::new(p),
            pinned: Vec::new(),
            at: Evaluation::default(),
            curvature: Curvature { h: vec![0.0; n], ..Curvature::default() },
            hessian: Hessian::new(p, space.penalised()),
            factored: false,
            shape: Shape::Unstable,
            counters: Counters::default(),
            largest: 0,
            salt: 0,
        }
    }

    pub fn point(&self) -> Point {
        let pins = self.basis.rows().iter().copied().zip(self.pinned.iter().copied()).collect();
        Point { theta: self.theta.clone(), place: self.place.clone(), pins }
    }

    /// Takes up a point.
    pub fn load(&mut self, point: &Point) {
        self.theta.clone_from(&point.theta);
        self.place.clone_from(&point.place);
        self.pinned = point.pins.iter().map(|pin| pin.1).collect();
        let rows: Vec<usize> = point.pins.iter().map(|pin| pin.0).collect();
        self.pin_all(&rows);
    }

    fn pin_all(&mut self, rows: &[usize]) {
        self.basis.clear();
        rows.iter().for_each(|&i| self.basis.insert(i, self.space.row(i)));
        self.factored = false;
    }

    /// Pins row `i` with a ψ.
    pub fn pin(&mut self, i: usize, kink: u8, psi: f64) {
        self.place[i] = Place::Kink { kink };
        self.basis.insert(i, self.space.row(i));
        self.pinned.push(psi);
        self.factored = false;
        self.largest = self.largest.max(self.basis.len());
    }

    /// Lets the pinned row at `k` go to a piece.
    pub fn unpin(&mut self, k: usize, place: Place) {
        self.place[self.basis.rows()[k]] = place;
        self.basis.remove(k);
        self.pinned.remove(k);
        self.factored = false;
        if self.basis.is_worn() {
            let rows = self.basis.rows().to_vec();
            self.pin_all(&rows);
        }
    }

    /// Whether row `i` counts at all.
    pub fn counts(&self, i: usize) -> bool {
        match &self.law {
            Law::Fixed(c) => c[i] > 0.0,
            Law::Paced => true,
        }
    }

    pub fn kink(&self, i: usize, kink: u8) -> f64 {
        self.space.kinks[i].as_slice()[usize::from(kink)]
    }

    /// The one-sided slopes ψ of row `i` at a kink, below and above it, with their rates in u.
    pub fn ends(&self, i: usize, kink: u8) -> [(f64, f64); 2] {
        let (problem, z, y) = (self.space.problem, self.kink(i, kink), self.space.target[i]);
        let (weight, rate) = match &self.law {
            Law::Fixed(c) => (c[i], 0.0),
            Law::Paced => {
                let v = problem.pacing.at(self.at.cuts.zone(0.0), 0.0, self.at.u);
                (self.space.scale[i] * v.value, self.space.scale[i] * v.by_inverse_age)
            }
        };
        [kink, kink + 1].map(|piece| {
            let slope = problem.loss.at_piece(piece, z, y).slope;
            (weight * slope, rate * slope)
        })
    }

    /// Sets u and the thresholds for the clock.
    pub fn set_time(&mut self, t: f64) {
        self.t = t;
        self.at.u = self.chart.inverse_age(t);
        self.at.cuts = self.space.problem.pacing.cuts(self.at.u);
    }

    /// Evaluates at the clock and θ under the present places.
    pub fn evaluate(&mut self) {
        self.counters.evaluations += 1;
        self.set_time(self.t);
        let n = self.space.n();
        let at = &mut self.at;
        for array in [&mut at.z, &mut at.loss, &mut at.slope, &mut at.psi, &mut at.h, &mut at.q] {
            array.resize(n, 0.0);
        }
        self.space.design.predict(&self.theta, &mut at.z);
        (0..n).for_each(|i| self.look(i));
        for (&i, psi) in self.basis.rows().iter().zip(&self.pinned) {
            self.at.psi[i] = *psi;
        }
    }

    /// Loss, ψ, h and q of one row at its z.
    pub fn look(&mut self, i: usize) {
        let (problem, at) = (self.space.problem, &mut self.at);
        let Place::Piece { piece, zone } = self.place[i] else {
            (at.loss[i], at.slope[i], at.h[i], at.q[i]) = (0.0, 0.0, 0.0, 0.0);
            return;
        };
        let l = problem.loss.at_piece(piece, at.z[i], self.space.target[i]);
        (at.loss[i], at.slope[i]) = (l.value, l.slope);
        match &self.law {
            Law::Fixed(c) => (at.psi[i], at.h[i], at.q[i]) = (c[i] * l.slope, c[i] * l.curvature, 0.0),
            Law::Paced => {
                let (v, s) = (problem.pacing.at(zone, l.value, at.u), self.space.scale[i]);
                at.psi[i] = s * v.value * l.slope;
                at.h[i] = s * (v.value * l.curvature + v.by_loss * l.slope * l.slope);
                at.q[i] = s * v.by_inverse_age * l.slope;
            }
        }
    }

    /// D θ + Σ ψ x.
    pub fn gradient(&self) -> Vec<f64> {
        let mut out = self.theta.clone();
        out[self.space.penalised()..].fill(0.0);
        self.space.design.accumulate(&self.at.psi, &mut out);
        out
    }

    /// What the conditions are short of, at the evaluated point: the gradient's and the pinned rows'.
    fn shortfall(&self, pull: Option<&[f64]>) -> (Vec<f64>, Vec<f64>) {
        let mut f: Vec<f64> = self.gradient().into_iter().map(|g| -g).collect();
        if let Some(pull) = pull {
            axpy(self.left, pull, &mut f);
        }
        if self.shape == Shape::Flat {
            f[self.space.penalised()..].fill(0.0);
        }
        let off = |&i: &usize| match self.place[i] {
            Place::Kink { kink } => self.kink(i, kink) - self.at.z[i],
            Place::Piece { .. } => 0.0,
        };
        (f, self.basis.rows().iter().map(off).collect())
    }

    /// The size of a shortfall, each condition relative to what cancels in it.
    fn violation(&self, (f, g): &(Vec<f64>, Vec<f64>)) -> f64 {
        // Where hardly a row pulls, relative to what one of them could.
        let unit = self.space.problem.slope_unit() / self.space.problem.ridge;
        let total = self.at.psi.iter().map(|psi| psi.abs()).sum::<f64>().max(unit);
        let pulls = f.iter().zip(&self.space.column_scales).zip(&self.theta);
        let worst = pulls.map(|((f, scale), w)| f.abs() / (total * scale + w.abs())).fold(0.0, worse);
        let size = dot(&self.theta, &self.theta).sqrt();
        let unit = |i: usize| self.space.problem.predictor_scale + self.space.norms[i] * size;
        let off = self.basis.rows().iter().zip(g).map(|(&i, g)| g.abs() / unit(i));
        off.fold(worst, worse)
    }

    /// Newton at the present clock and places. False if it does not arrive or what it needs is not there.
    pub fn correct(&mut self, pull: Option<&[f64]>) -> bool {
        let (mut last, mut own, mut bad) = (f64::INFINITY, false, 0);
        for _ in 0..MAX_NEWTON {
            self.evaluate();
            let short = self.shortfall(pull);
            let size = self.violation(&short);
            if !size.is_finite() {
                return false;
            }
            if size <= CONVERGED {
                return true;
            }
            if size > GAIN * last {
                if size <= STAGNATED {
                    return true;
                }
                if own {
                    bad += 1;
                }
                if bad > PATIENCE || self.refresh(true) == Shape::Unstable {
                    return false;
                }
                own = true;
            } else if !self.factored && self.refresh(false) == Shape::Unstable {
                return false;
            }
            last = size;
            let (d, a) = self.hessian.solve(&self.basis, &short.0, &short.1);
            axpy(1.0, &d, &mut self.theta);
            axpy(1.0, &a, &mut self.pinned);
        }
        false
    }

    /// Brings the factor up to date at the evaluated point: with its very curvatures, or with near ones.
    pub fn refresh(&mut self, exactly: bool) -> Shape {
        let changed = self.follow_curvature(exactly);
        if changed || !self.factored {
            self.counters.factorizations += 1;
            self.shape = self.hessian.factor(&self.basis);
            if self.shape == Shape::Unstable && !exactly && self.follow_curvature(true) {
                self.shape = self.hessian.factor(&self.basis);
            }
            self.factored = true;
        }
        self.shape
    }

    /// Answers whether S has changed.
    fn follow_curvature(&mut self, exactly: bool) -> bool {
        let (h, n, p) = (&self.at.h, self.space.n(), self.space.p);
        let known = &mut self.curvature;
        let largest = h.iter().fold(0.0f64, |a, h| a.max(h.abs()));
        if largest == 0.0 {
            let changed = known.largest != 0.0 || !known.sum.is_empty();
            known.h.fill(0.0);
            (known.sum, known.largest) = (Vec::new(), 0.0);
            self.hessian.set(None);
            return changed;
        }
        let slack = if exactly { 0.0 } else { DRIFT * largest };
        // Curvatures that grow together with u keep their sum's form.
        let (mut now, mut before) = (0.0, 0.0);
        for (h, known) in h.iter().zip(&known.h).filter(|(h, known)| **h * **known > 0.0) {
            (now, before) = (now + h.abs(), before + known.abs());
        }
        let ratio = if before > 0.0 { now / before } else { 1.0 };
        let rounding = 1e-14 * largest;
        let off: Vec<usize> = (0..n).filter(|&i| (h[i] - ratio * known.h[i]).abs() > slack.max(rounding)).collect();
        let scaled = (ratio - 1.0).abs() > 1e-15;
        if off.is_empty() && !scaled && known.largest > 0.0 {
            return false;
        }
        if known.largest == 0.0 || off.len() * FEW > n {
            known.h.clone_from(h);
            known.sum = vec![0.0; p * p];
            self.space.design.gram(h, &(0..p).collect::<Vec<_>>(), &mut known.sum);
        } else {
            known.h.iter_mut().for_each(|h| *h *= ratio);
            known.sum.iter_mut().for_each(|s| *s *= ratio);
            for &i in &off {
                let (x, change) = (self.space.row(i), h[i] - known.h[i]);
                (0..p).for_each(|a| axpy(change * x[a], &x[..=a], &mut known.sum[a * p..a * p + a + 1]));
                known.h[i] = h[i];
            }
            self.counters.updates += off.len();
        }
        known.largest = largest;
        self.hessian.set(Some(&known.sum));
        true
    }

    /// What events call a place.
    pub fn name(&self, i: usize, place: Place) -> &'static str {
        let Place::Piece { piece, zone } = place else { return PINNED };
        let problem = self.space.problem;
        let kink = self.kink(i, piece.saturating_sub(1));
        let l = problem.loss.at_piece(piece, kink, self.space.target[i]);
        if l.slope == 0.0 && l.curvature == 0.0 { NO_LOSS } else { problem.pacing.zones()[usize::from(zone)] }
    }

    /// The place that z says; a row at a kink stays on the piece it is on. Where the weight drops at a threshold that the loss
    /// lies on, the zone stays as well.
    pub fn place_by_value(&self, i: usize, z: f64) -> Place {
        let problem = self.space.problem;
        let (kinks, y) = (&self.space.kinks[i], self.space.target[i]);
        let near = TIED * (problem.predictor_scale + z.abs());
        let was = match self.place[i] {
            Place::Piece { piece, zone } => Some((piece, zone)),
            Place::Kink { .. } => None,
        };
        let tied = |piece: u8| {
            let beside = [piece.checked_sub(1), Some(piece)].into_iter().flatten();
            beside.filter_map(|k| kinks.as_slice().get(usize::from(k))).any(|kink| (z - kink).abs() <= near)
        };
        let piece = match was {
            Some((piece, _)) if tied(piece) => piece,
            _ => kinks.piece(z),
        };
        let loss = problem.loss.at_piece(piece, z, y).value.max(0.0);
        let zone = match was {
            Some((before, zone))
                if before == piece && !problem.pacing.is_continuous() && self.is_on_threshold(loss, zone) =>
            {
                zone
            }
            _ => self.at.cuts.zone(loss),
        };
        Place::Piece { piece, zone }
    }

    /// Whether a loss is on a threshold of `zone`.
    fn is_on_threshold(&self, loss: f64, zone: u8) -> bool {
        let zone = usize::from(zone);
        let on = |k: usize| self.at.cuts.as_slice().get(k).is_some_and(|cut| (loss * cut.value - 1.0).abs() <= ON);
        on(zone) || (zone > 0 && on(zone - 1))
    }

    /// Takes up θ with rows where z says, and those of `pins` that are at their kink pinned, with a ψ near the given one.
    pub fn settle(&mut self, theta: &[f64], pins: &[(usize, u8, f64)]) {
        self.theta = theta.to_vec();
        self.set_time(self.t);
        let mut z = vec![0.0; self.space.n()];
        self.space.design.predict(theta, &mut z);
        self.place = (0..z.len()).map(|i| self.place_by_value(i, z[i])).collect();
        let mut all = pins.to_vec();
        if matches!(self.law, Law::Paced) {
            // Rows that others hold at their kink hold as well: without them a minimiser may look like a saddle.
            all.extend((0..z.len()).filter_map(|i| self.held_at_kink(i, z[i])));
        }
        self.settle_within(&all, &z, 1.0);
    }

    /// The kink that a row on a piece lies at, and the ψ it has there.
    fn held_at_kink(&self, i: usize, z: f64) -> Option<(usize, u8, f64)> {
        let Place::Piece { piece, .. } = self.place[i] else { return None };
        let near = TIED * (self.space.problem.predictor_scale + z.abs());
        let kinks = self.space.kinks[i].as_slice();
        let at = |k: &u8| kinks.get(usize::from(*k)).is_some_and(|kink| (z - kink).abs() <= near);
        let kink = [Some(piece), piece.checked_sub(1)].into_iter().flatten().find(at)?;
        let [(low, _), (high, _)] = self.ends(i, kink);
        Some((i, kink, if kink == piece { low } else { high }))
    }

    /// Pins those of `pins` that are within `reach` times [`TIED`] of their kink, as far as they are independent.
    pub fn settle_within(&mut self, pins: &[(usize, u8, f64)], z: &[f64], reach: f64) {
        self.pin_all(&[]);
        self.pinned.clear();
        for &(i, kink, psi) in pins {
            let near = reach * TIED * (self.space.problem.predictor_scale + z[i].abs());
            let [(low, _), (high, _)] = self.ends(i, kink);
            let x = self.space.row(i);
            let free = || self.basis.free_part(x) > DEPENDENT * self.space.norms[i];
            let pinned = matches!(self.place[i], Place::Kink { .. });
            let near = (z[i] - self.kink(i, kink)).abs() <= near;
            if !pinned && near && low < high && self.basis.len() < self.space.p && free() {
                self.pin(i, kink, psi.clamp(low, high));
            }
        }
    }

    /// The pinned rows with kink and ψ.
    pub fn pins(&self) -> Vec<(usize, u8, f64)> {
        let each = self.basis.rows().iter().zip(&self.pinned);
        each.filter_map(|(&i, &psi)| match self.place[i] {
            Place::Kink { kink } => Some((i, kink, psi)),
            Place::Piece { .. } => None,
        })
        .collect()
    }
}

/// A loss this near to a threshold, relatively, is on it.
const ON: f64 = 1e-10;

fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}
