//! A problem over some rows and some columns, on its own or as part of a window.
//!
//! The rows at hand are treated one by one; the others, if there are any, are a [`Background`]. With all rows at hand and no far
//! part, this is the problem itself, so the tracker, the solvers and the descent are written once and serve both.

use super::at::polish;
use super::chart::Chart;
use super::curve::{Crossing, Curve, Flip, GoOn, Halt, Landing, Stability, Verdict};
use super::far::{Background, FarAt};
use super::guards::{Guarded, Watched};
use super::types::Cause;
use crate::error::Breakdown;
use crate::linalg::{Cholesky, Definiteness, dot, sum_of_sizes, wide_loop};
use crate::loss::Losses;
use crate::pacing::{Cuts, Weights};
use crate::problem::{Problem, ROUNDING_FLOOR};
use crate::space::Design;
use std::borrow::Cow;
use std::time::Instant;

/// Of the curvature along H⁻¹x, a flip must leave at least this share by the kept factor; else a fresh one decides.
const SAFE_SHARE: f64 = 0.7;

/// A column that depends on others has their slope; one that is held but pulled harder than this, relatively, does not.
const PULLED: f64 = 1e-9;

/// A landing a hair behind the end of a branch is brought back to it over at most this distance, relative to the point.
const BACK: f64 = 1e-3;
/// A landing no further away than this is where it began.
const NOT_MOVED: f64 = 1e-9;
/// ... and below this, unless the objective falls by this share of it.
const BLURRED: f64 = 1e-6;
const UNSEEN: f64 = 1e-13;

/// Coefficients whose gradient exceeds this share of the bound are part of a window.
const COLUMN_SHARE: f64 = 0.7;
/// Below this many columns all of them are.
const ALL_COLUMNS: usize = 32;

/// The state of one coefficient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coord {
    /// No L1 bound: always free to move.
    Free,
    /// Held at 0 by the L1 bound.
    Zero,
    /// Positive.
    Plus,
    /// Negative.
    Minus,
}

impl Coord {
    pub fn sign(self) -> f64 {
        match self {
            Coord::Plus => 1.0,
            Coord::Minus => -1.0,
            Coord::Free | Coord::Zero => 0.0,
        }
    }
}

/// Which smooth piece of the problem we are on.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Membership {
    pub zone: Vec<u8>,
    pub coord: Vec<Coord>,
    /// The coefficients that move, in the order they became active.
    pub active: Vec<usize>,
}

impl Membership {
    /// Lists the active coefficients anew, keeping the order of those that were there.
    pub fn relist(&mut self) {
        let coord = &self.coord;
        self.active.retain(|&j| coord[j] != Coord::Zero);
        for (j, c) in coord.iter().enumerate() {
            if *c != Coord::Zero && !self.active.contains(&j) {
                self.active.push(j);
            }
        }
    }
}

/// Everything known at the last evaluated point.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evaluation {
    pub t: f64,
    pub u: f64,
    /// du/dt
    pub speed: f64,
    pub x: Vec<f64>,
    pub z: Vec<f64>,
    pub loss: Losses,
    pub weight: Weights,
    pub psi: Vec<f64>,
    pub h: Vec<f64>,
    pub cuts: Cuts,
    /// Σ |ψ|, or a floor for it
    pub total: f64,
    /// Σ over the rows of the sizes that h is the difference of
    pub bending: f64,
    /// ∂/∂x of everything but the L1 part.
    pub gradient: Vec<f64>,
    pub far: FarAt,
}

/// How much was done; the tracker adds it up.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub evaluations: usize,
    pub factorizations: usize,
    pub updates: usize,
    pub acs_fits: usize,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Patch<'p> {
    pub problem: &'p Problem,
    pub design: Cow<'p, Design>,
    pub target: Cow<'p, [f64]>,
    pub scale: Cow<'p, [f64]>,
    pub l1: Vec<f64>,
    pub l2: Vec<f64>,
    pub column_scales: Vec<f64>,
    /// ‖x_i‖ in units where every column has size 1.
    pub row_norms: Cow<'p, [f64]>,
    /// Rows and columns of the problem that these are.
    pub row_ids: Vec<usize>,
    pub col_ids: Vec<usize>,
    pub far: Option<Background>,
    /// How far from the far part's reference curve it may be trusted.
    pub trust: f64,
    /// When fits are to give up.
    pub deadline: Option<Instant>,
    pub chart: Chart,
    /// Σ |ψ| over all rows, where there is a background; None: these are all rows.
    pub residual_scale: Option<f64>,
    pub membership: Membership,
    pub at: Evaluation,
    pub factor: Cholesky,
    pub counters: Counters,
    /// The membership to go back to.
    marked: Membership,
    pub watched: Watched,
    /// Room for two numbers per row.
    scratch: [Vec<f64>; 2],
}

impl<'p> Patch<'p> {
    /// The whole problem.
    pub fn whole(problem: &'p Problem, chart: Chart) -> Self {
        let (n, m) = (problem.design.rows(), problem.design.cols());
        let mut patch = Patch {
            problem,
            design: Cow::Borrowed(&problem.design),
            target: Cow::Borrowed(&problem.target),
            scale: Cow::Borrowed(&problem.scale),
            l1: problem.l1.clone(),
            l2: problem.l2.clone(),
            column_scales: problem.column_scales.clone(),
            row_norms: Cow::Borrowed(problem.row_norms()),
            row_ids: (0..n).collect(),
            col_ids: (0..m).collect(),
            far: None,
            trust: f64::INFINITY,
            deadline: None,
            chart,
            residual_scale: None,
            membership: Membership::default(),
            at: Evaluation::default(),
            factor: Cholesky::default(),
            counters: Counters::default(),
            marked: Membership::default(),
            watched: Watched::default(),
            scratch: Default::default(),
        };
        patch.membership.zone = vec![0; n];
        patch.membership.coord = patch.free_or_zero();
        patch.membership.relist();
        patch
    }

    /// A part of `parent`: the named rows as they are, everything else in `far`.
    pub fn part(parent: &Patch<'p>, rows: &[usize], cols: &[usize], far: Background, trust: f64) -> Self {
        let pick = |from: &[f64], ids: &[usize]| ids.iter().map(|&k| from[k]).collect::<Vec<_>>();
        let mut membership = Membership {
            zone: rows.iter().map(|&i| parent.membership.zone[i]).collect(),
            coord: cols.iter().map(|&j| parent.membership.coord[j]).collect(),
            active: Vec::new(),
        };
        let place = |j: &usize| cols.iter().position(|c| c == j);
        membership.active = parent.membership.active.iter().filter_map(place).collect();
        Patch {
            problem: parent.problem,
            design: Cow::Owned(Design::Dense(parent.design.select(rows, cols))),
            target: Cow::Owned(pick(&parent.target, rows)),
            scale: Cow::Owned(pick(&parent.scale, rows)),
            l1: pick(&parent.l1, cols),
            l2: pick(&parent.l2, cols),
            column_scales: pick(&parent.column_scales, cols),
            row_norms: Cow::Owned(pick(&parent.row_norms, rows)),
            row_ids: rows.iter().map(|&i| parent.row_ids[i]).collect(),
            col_ids: cols.iter().map(|&j| parent.col_ids[j]).collect(),
            far: Some(far),
            trust,
            deadline: parent.deadline,
            chart: parent.chart,
            residual_scale: Some(parent.cancelling()),
            membership,
            at: Evaluation::default(),
            factor: Cholesky::default(),
            counters: Counters::default(),
            marked: Membership::default(),
            watched: Watched::default(),
            scratch: Default::default(),
        }
    }

    pub fn rows(&self) -> usize {
        self.design.rows()
    }

    pub fn cols(&self) -> usize {
        self.design.cols()
    }

    /// No coefficient active but the free ones.
    pub fn free_or_zero(&self) -> Vec<Coord> {
        self.l1.iter().map(|&l1| if l1 > 0.0 { Coord::Zero } else { Coord::Free }).collect()
    }

    /// Active columns, and those that may become so.
    pub fn working_columns(&self) -> Vec<usize> {
        let m = self.cols();
        let works = |j: &usize| {
            self.membership.coord[*j] != Coord::Zero || self.at.gradient[*j].abs() > COLUMN_SHARE * self.l1[*j]
        };
        if m <= ALL_COLUMNS { (0..m).collect() } else { (0..m).filter(works).collect() }
    }

    /// z, losses and thresholds at (t, x); zones and all that hangs on them are left alone.
    pub fn evaluate_losses(&mut self, t: f64, x: &[f64]) {
        let n = self.rows();
        self.counters.evaluations += 1;
        let at = &mut self.at;
        at.t = t;
        at.u = self.chart.inverse_age(t);
        at.speed = self.chart.speed(t);
        at.cuts = self.problem.pacing.cuts(at.u);
        at.x.clear();
        at.x.extend_from_slice(x);
        at.z.resize(n, 0.0);
        self.design.predict(x, &mut at.z);
        self.problem.loss.fill(&at.z, &self.target, &mut at.loss);
    }

    /// ψ, h and the gradient under the current zones, after `evaluate_losses`.
    pub fn evaluate_gradient(&mut self) {
        let n = self.rows();
        let at = &mut self.at;
        at.psi.resize(n, 0.0);
        at.h.resize(n, 0.0);
        self.problem.pacing.fill(&self.membership.zone, &at.loss.value, at.u, &mut at.weight);
        let [rounding, bending] = &mut self.scratch;
        rounding.resize(n, 0.0);
        bending.resize(n, 0.0);
        fill_slopes(at, &self.scale, &self.target, rounding, bending);
        at.total = f64::max(sum_of_sizes(&at.psi), ROUNDING_FLOOR * sum_of_sizes(rounding));
        at.bending = sum_of_sizes(bending);
        at.gradient.clear();
        match &self.far {
            Some(far) => {
                far.at(at.t, &at.x, &mut at.far);
                at.gradient.extend_from_slice(&at.far.gradient);
            }
            None => at.gradient.resize(at.x.len(), 0.0),
        }
        for ((g, l2), x) in at.gradient.iter_mut().zip(&self.l2).zip(&at.x) {
            *g += l2 * x;
        }
        self.design.accumulate(&at.psi, &mut at.gradient);
    }

    /// Puts every sample in the zone its loss says; answers whether anything changed.
    pub fn rezone(&mut self) -> bool {
        let mut changed = false;
        for (zone, &loss) in self.membership.zone.iter_mut().zip(&self.at.loss.value) {
            let now = self.at.cuts.zone(loss);
            changed |= now != *zone;
            *zone = now;
        }
        changed
    }

    /// Evaluates at (t, x) with every sample in the zone its loss says.
    pub fn evaluate_by_value(&mut self, t: f64, x: &[f64]) {
        self.evaluate_losses(t, x);
        self.rezone();
        self.evaluate_gradient();
    }

    /// Σ |ψ| over all rows, those of the background included.
    pub fn cancelling(&self) -> f64 {
        self.residual_scale.unwrap_or(self.at.total)
    }

    /// A violation in column `j`, relative to the size of what cancels there.
    pub fn relative(&self, j: usize, violation: f64) -> f64 {
        if violation == 0.0 {
            return 0.0;
        }
        let terms = self.cancelling() * self.column_scales[j];
        violation / (terms + self.l1[j] + self.l2[j] * self.at.x[j].abs())
    }

    /// Relative KKT violation over all coordinates, zeros included.
    pub fn violation_of_kkt(&self) -> f64 {
        (0..self.cols())
            .map(|j| {
                let g = self.at.gradient[j];
                let violation = match self.membership.coord[j] {
                    Coord::Zero => (g.abs() - self.l1[j]).max(0.0),
                    c => (g + self.l1[j] * c.sign()).abs(),
                };
                self.relative(j, violation)
            })
            .fold(0.0, f64::max)
    }

    /// The Hessian of the smooth part over `columns`, lower triangle, and the magnitude of its diagonal.
    pub fn hessian(&self, columns: &[usize]) -> (Vec<f64>, Vec<f64>) {
        self.hessian_of(&self.at.h, self.at.bending, &self.at.far, columns)
    }

    /// The same for other curvatures of the rows, the difference of numbers whose sizes add up to `bending`.
    pub fn hessian_of(&self, h: &[f64], bending: f64, far: &FarAt, columns: &[usize]) -> (Vec<f64>, Vec<f64>) {
        let k = columns.len();
        let (mut a, mut magnitude) = (vec![0.0; k * k], vec![0.0; k]);
        let m = self.cols();
        let far = self.far.as_ref().map(|background| background.hessian(far));
        for (p, &i) in columns.iter().enumerate() {
            if let Some(far) = &far {
                for (q, &j) in columns[..=p].iter().enumerate() {
                    a[p * k + q] = far[i.max(j) * m + i.min(j)];
                }
            }
            a[p * k + p] += self.l2[i];
            magnitude[p] = a[p * k + p].abs();
        }
        self.design.gram(h, columns, &mut a);
        // What was summed into the diagonal, by size: judged by the samples that count and the columns' own scale.
        for (p, &j) in columns.iter().enumerate() {
            magnitude[p] = (magnitude[p] + bending * self.column_scales[j].powi(2)).max(a[p * k + p].abs());
        }
        (a, magnitude)
    }

    /// Factors the reduced Hessian under the current membership.
    pub fn factorize(&mut self) -> Definiteness {
        self.counters.factorizations += 1;
        let (a, magnitude) = self.hessian(&self.membership.active);
        self.factor.factor(&a, &magnitude)
    }

    /// Factors the active block of a Hessian over `columns`.
    pub fn factor_from(&mut self, a: &[f64], magnitude: &[f64], columns: &[usize]) -> Definiteness {
        self.counters.factorizations += 1;
        let active = &self.membership.active;
        let place: Option<Vec<usize>> = active.iter().map(|j| columns.iter().position(|c| c == j)).collect();
        let Some(place) = place else {
            return self.factorize();
        };
        let (m, k) = (columns.len(), active.len());
        let mut block = vec![0.0; k * k];
        for (p, &i) in place.iter().enumerate() {
            for (q, &j) in place[..=p].iter().enumerate() {
                block[p * k + q] = a[i.max(j) * m + i.min(j)];
            }
        }
        let magnitude: Vec<f64> = place.iter().map(|&i| magnitude[i]).collect();
        self.factor.factor(&block, &magnitude)
    }

    /// How many columns the kept factor has.
    pub fn factor_size(&self) -> usize {
        self.factor.size()
    }

    /// Solves with the kept factor: `rhs` over all columns in, step over all columns out (0 where not active).
    pub fn solve(&self, rhs: impl Fn(usize) -> f64) -> Vec<f64> {
        let active = &self.membership.active;
        let mut b: Vec<f64> = active.iter().map(|&j| rhs(j)).collect();
        self.factor.solve(&mut b);
        let mut out = vec![0.0; self.cols()];
        for (&j, b) in active.iter().zip(&b) {
            out[j] = *b;
        }
        out
    }

    /// Σ s F(ℓ) at inverse age `u`; F is never negative.
    fn paced_sum(&self, losses: &[f64], u: f64) -> f64 {
        let mut terms = Vec::new();
        self.problem.pacing.fill_primitives(&self.scale, losses, u, &mut terms);
        sum_of_sizes(&terms)
    }

    /// G at the last evaluated point.
    pub fn value(&self) -> f64 {
        let at = &self.at;
        let rows = self.paced_sum(&at.loss.value, at.u);
        let far = if self.far.is_some() { at.far.value } else { 0.0 };
        let each = at.x.iter().zip(&self.l1).zip(&self.l2);
        rows + far + each.map(|((w, l1), l2)| l1 * w.abs() + 0.5 * l2 * w * w).sum::<f64>()
    }

    /// G(t, x).
    pub fn merit(&self, t: f64, x: &[f64]) -> f64 {
        let n = self.rows();
        let u = self.chart.inverse_age(t);
        let mut z = vec![0.0; n];
        self.design.predict(x, &mut z);
        let mut loss = Losses::default();
        self.problem.loss.fill(&z, &self.target, &mut loss);
        let rows = self.paced_sum(&loss.value, u);
        let far = self.far.as_ref().map_or(0.0, |far| {
            let mut out = FarAt::default();
            far.at(t, x, &mut out);
            out.value
        });
        let each = x.iter().zip(&self.l1).zip(&self.l2);
        rows + far + each.map(|((w, l1), l2)| l1 * w.abs() + 0.5 * l2 * w * w).sum::<f64>()
    }

    /// ∂²ψ/∂z² of every row at the last evaluated point, by central differences: a correction to a correction, two
    /// digits are plenty.
    pub fn third_derivatives(&self) -> Vec<f64> {
        let n = self.rows();
        let steps: Vec<f64> = self.at.z.iter().map(|z| 1e-4 * (1.0 + z.abs())).collect();
        let curvatures = |side: f64| {
            let z: Vec<f64> = self.at.z.iter().zip(&steps).map(|(z, d)| z + side * d).collect();
            let (mut loss, mut weight) = (Losses::default(), Weights::default());
            self.problem.loss.fill(&z, &self.target, &mut loss);
            self.problem.pacing.fill(&self.membership.zone, &loss.value, self.at.u, &mut weight);
            let h = |i: usize| {
                let l = loss.get(i);
                self.scale[i] * (weight.value[i] * l.curvature + weight.by_loss[i] * l.slope * l.slope)
            };
            (0..n).map(h).collect::<Vec<f64>>()
        };
        let (low, high) = (curvatures(-1.0), curvatures(1.0));
        (0..n).map(|i| (high[i] - low[i]) / (2.0 * steps[i])).collect()
    }

    /// ∂gradient/∂t at the last evaluated point.
    fn gradient_by_time(&self) -> Vec<f64> {
        let at = &self.at;
        let mut out = match &self.far {
            Some(_) => at.far.by_time.clone(),
            None => vec![0.0; self.cols()],
        };
        let q: Vec<f64> = (0..self.rows()).map(|i| self.psi_by_time(i)).collect();
        self.design.accumulate(&q, &mut out);
        out
    }

    /// ∂ψ_i/∂t
    pub fn psi_by_time(&self, i: usize) -> f64 {
        self.scale[i] * self.at.weight.by_inverse_age[i] * self.at.loss.slope[i] * self.at.speed
    }

    fn row(&self, i: usize) -> Vec<f64> {
        let active = &self.membership.active;
        let mut x = vec![0.0; active.len()];
        self.design.copy_row(i, active, &mut x);
        x
    }

    fn flip_sample(&mut self, i: usize, cut: usize) -> Flip {
        let from = self.membership.zone[i];
        let upper = usize::from(from) == cut;
        let to = if upper { from + 1 } else { from - 1 };
        let names = self.problem.pacing.zones();
        let cause = Cause::Sample { index: self.row_ids[i], from: names[from as usize], to: names[to as usize] };
        let outward = if upper { self.at.loss.slope[i].signum() } else { -self.at.loss.slope[i].signum() };
        let held = self.factor.any_held();
        let flat_exit = if held { self.flat_exit(i, outward) } else { None };
        self.membership.zone[i] = to;
        let old = self.at.h[i];
        self.refresh_row(i);
        if !self.problem.pacing.is_continuous() {
            return Flip { cause, verdict: Verdict::Jump { exit: None } };
        }
        let x = self.row(i);
        let sigma = self.at.h[i] - old;
        let safe = !held && self.factor.update(&x, sigma, SAFE_SHARE);
        if safe {
            self.counters.updates += 1;
            return Flip { cause, verdict: Verdict::Turning };
        }
        // The direction that moves this sample on through its threshold at the least cost elsewhere.
        let exit = flat_exit.unwrap_or_else(|| {
            let mut full = vec![0.0; self.cols()];
            self.design.add_row(i, outward, &mut full);
            self.solve(|j| full[j])
        });
        let verdict = match self.factorize() {
            Definiteness::Indefinite => Verdict::Jump { exit: Some(exit) },
            // Nothing else had curvature along the exit: every point up to the next threshold is a solution.
            Definiteness::Semidefinite(_) if !held => Verdict::Jump { exit: Some(exit) },
            _ => Verdict::Turning,
        };
        Flip { cause, verdict }
    }

    /// A direction without curvature that moves sample `i` outward, if the held columns span one.
    fn flat_exit(&self, i: usize, outward: f64) -> Option<Vec<f64>> {
        let active = &self.membership.active;
        let k = active.len();
        let (a, _) = self.hessian(active);
        let x = self.row(i);
        let mut exit = vec![0.0; self.cols()];
        for p in (0..k).filter(|&p| self.factor.is_held(p)) {
            let mut flat: Vec<f64> = (0..k).map(|r| -a[r.max(p) * k + r.min(p)]).collect();
            self.factor.solve(&mut flat);
            flat[p] = 1.0;
            let moves = outward * dot(&flat, &x);
            active.iter().zip(&flat).for_each(|(&j, f)| exit[j] += moves * f);
        }
        let mut full = vec![0.0; self.cols()];
        self.design.add_row(i, outward, &mut full);
        (dot(&exit, &full) > 1e-9 * dot(&full, &full)).then_some(exit)
    }

    /// ψ and h of one row after its zone changed (ψ is continuous: the gradient stands).
    fn refresh_row(&mut self, i: usize) {
        let at = &mut self.at;
        let (l, s) = (at.loss.get(i), self.scale[i]);
        let v = self.problem.pacing.at(self.membership.zone[i], l.value, at.u);
        at.psi[i] = s * v.value * l.slope;
        at.h[i] = s * (v.value * l.curvature + v.by_loss * l.slope * l.slope);
        (at.weight.value[i], at.weight.by_loss[i], at.weight.by_inverse_age[i]) =
            (v.value, v.by_loss, v.by_inverse_age);
    }

    fn flip_coord(&mut self, j: usize) -> Flip {
        let entering = self.membership.coord[j] == Coord::Zero;
        let sign = -self.at.gradient[j].signum();
        let (from, to) = if entering { ("zero", "active") } else { ("active", "zero") };
        let cause = Cause::Feature { index: self.col_ids[j], from, to };
        self.membership.coord[j] = match (entering, sign > 0.0) {
            (true, true) => Coord::Plus,
            (true, false) => Coord::Minus,
            (false, _) => Coord::Zero,
        };
        self.at.x[j] = 0.0;
        // Negative curvature along e_j with the others following: where to go if the larger face is not stable.
        let exit = entering.then(|| {
            let (a, _) = self.hessian(&(0..self.cols()).collect::<Vec<_>>());
            let m = self.cols();
            let mut exit = self.solve(|k| -a[k.max(j) * m + k.min(j)]);
            exit[j] = 1.0;
            exit.iter_mut().for_each(|e| *e *= sign);
            exit
        });
        self.membership.relist();
        let verdict = match self.factorize() {
            Definiteness::Indefinite => Verdict::Jump { exit },
            _ => Verdict::Turning,
        };
        Flip { cause, verdict }
    }
}

/// ‖a − b‖
pub(crate) fn euclidean(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

wide_loop! {
    /// ψ and h of every row, the magnitudes whose rounding is in ψ at least, and those whose difference h is.
    fn fill_slopes(
        at: &mut Evaluation,
        scale: &[f64],
        target: &[f64],
        rounding: &mut [f64],
        bending: &mut [f64],
    ) {
        let n = rounding.len();
        let (scale, target, z) = (&scale[..n], &target[..n], &at.z[..n]);
        let (slope, curvature) = (&at.loss.slope[..n], &at.loss.curvature[..n]);
        let (weight, by_loss) = (&at.weight.value[..n], &at.weight.by_loss[..n]);
        let (psi, h, bending) = (&mut at.psi[..n], &mut at.h[..n], &mut bending[..n]);
        for i in 0..n {
            let (convex, concave) = (weight[i] * curvature[i], by_loss[i] * slope[i] * slope[i]);
            psi[i] = scale[i] * weight[i] * slope[i];
            h[i] = scale[i] * (convex + concave);
            bending[i] = scale[i] * (convex.abs() + concave.abs());
            rounding[i] = bending[i] * (z[i].abs() + target[i].abs());
        }
    }
}

impl Curve for Patch<'_> {
    fn evaluate(&mut self, t: f64, x: &[f64]) {
        self.evaluate_losses(t, x);
        self.evaluate_gradient();
    }

    fn point(&self) -> &[f64] {
        &self.at.x
    }

    fn residual(&self) -> f64 {
        (self.membership.active.iter().enumerate())
            .map(|(p, &j)| {
                let slope = self.at.gradient[j] + self.l1[j] * self.membership.coord[j].sign();
                (self.factor.is_held(p), self.relative(j, slope.abs()))
            })
            .filter(|&(held, residual)| !held || residual > PULLED)
            .map(|(_, residual)| residual)
            .fold(0.0, f64::max)
    }

    fn refactor(&mut self) -> Stability {
        match self.factorize() {
            Definiteness::Indefinite => Stability::Unstable,
            _ => Stability::Stable,
        }
    }

    fn newton_step(&mut self) -> Vec<f64> {
        self.solve(|j| -(self.at.gradient[j] + self.l1[j] * self.membership.coord[j].sign()))
    }

    fn tangent(&mut self) -> Vec<f64> {
        let q = self.gradient_by_time();
        self.solve(|j| -q[j])
    }

    fn crossing(&mut self, tangent: &[f64], direction: f64, horizon: f64) -> Option<Crossing> {
        self.first_crossing(tangent, direction, horizon)
    }

    fn violation(&mut self, step: f64, except: Option<usize>) -> Option<Crossing> {
        self.first_violation(step, except)
    }

    fn guard(&self, guard: usize) -> f64 {
        match self.guarded(guard) {
            Guarded::Coord(j) => self.coord_guard(j),
            Guarded::Sample { row, cut } => self.sample_guard(row, cut),
        }
    }

    fn guard_rate(&self, guard: usize, dt: f64, dx: &[f64]) -> f64 {
        match self.guarded(guard) {
            Guarded::Coord(j) => self.coord_rate_along(j, dt, dx),
            Guarded::Sample { row, cut } => self.sample_rate(row, cut, dt, dx),
        }
    }

    fn flip(&mut self, guard: usize) -> Flip {
        match self.guarded(guard) {
            Guarded::Coord(j) => self.flip_coord(j),
            Guarded::Sample { row, cut } => self.flip_sample(row, cut),
        }
    }

    fn land(&mut self, behind: f64, _: Option<&[f64]>, go_on: GoOn<'_>) -> Result<Landing, Halt> {
        let (t, start) = (self.at.t, self.at.x.clone());
        self.evaluate_by_value(behind, &start);
        let there = self.descend(go_on)?.x;
        let reach = BACK * (1.0 + self.norm(&there));
        let x = polish(self, t, there, reach).ok_or(Halt::Broken(Breakdown::Stalled))?;
        if !self.within_trust() {
            return Err(Halt::Escaped);
        }
        let (moved, unit) = (self.distance(&x, &start), 1.0 + self.norm(&x));
        let drop = self.merit(t, &start) - self.value();
        // Close to a fold a point is known less well than elsewhere: what has hardly moved must have fallen.
        let elsewhere = moved > BLURRED * unit || (moved > NOT_MOVED * unit && drop > UNSEEN * self.value().abs());
        let size = if elsewhere { euclidean(&x, &start) } else { 0.0 };
        Ok(Landing { x, size, drop })
    }

    fn is_whole(&self) -> bool {
        self.far.is_none()
    }

    fn norm(&self, dx: &[f64]) -> f64 {
        let squares: f64 = dx.iter().zip(&self.column_scales).map(|(d, s)| (d * s).powi(2)).sum();
        squares.sqrt() / self.problem.predictor_scale
    }

    fn snap(&self, x: &mut [f64]) {
        for (x, coord) in x.iter_mut().zip(&self.membership.coord) {
            if coord.sign() * *x < 0.0 {
                *x = 0.0;
            }
        }
    }

    fn land_at(&mut self, t: f64, x: &[f64], go_on: GoOn<'_>) -> Result<Landing, Halt> {
        self.evaluate_by_value(t, x);
        self.descend(go_on)
    }

    fn measure(&self, t: f64, from: &[f64], to: &[f64]) -> (f64, f64) {
        (euclidean(from, to), self.merit(t, from) - self.merit(t, to))
    }

    fn ordinary(&mut self, _: GoOn<'_>) -> Option<Vec<f64>> {
        let (zero, ones) = (vec![0.0; self.cols()], vec![1.0; self.rows()]);
        self.fit_weighted(0.0, &zero, &ones).ok().map(|(x, ..)| x)
    }

    fn changes(&self) -> Vec<Cause> {
        let (before, now, names) = (&self.marked, &self.membership, self.problem.pacing.zones());
        let zones = before.zone.iter().zip(&now.zone).enumerate().filter(|(_, (from, to))| from != to);
        let samples = zones.map(|(i, (&from, &to))| Cause::Sample {
            index: self.row_ids[i],
            from: names[usize::from(from)],
            to: names[usize::from(to)],
        });
        let name = |coord: Coord| if coord == Coord::Zero { "zero" } else { "active" };
        let coords = before.coord.iter().zip(&now.coord).map(|(&from, &to)| (name(from), name(to))).enumerate();
        let features = coords.filter(|(_, (from, to))| from != to);
        let features = features.map(|(j, (from, to))| Cause::Feature { index: self.col_ids[j], from, to });
        samples.chain(features).collect()
    }

    fn mark(&mut self) {
        self.marked.clone_from(&self.membership);
    }

    fn undo(&mut self) {
        self.membership.clone_from(&self.marked);
    }

    fn within_trust(&self) -> bool {
        match &self.far {
            Some(_) => self.norm(&self.at.far.offset) <= self.trust,
            None => true,
        }
    }
}
