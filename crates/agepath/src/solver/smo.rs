//! Weighted convex fits over dual coefficients for losses that are piecewise linear: sequential minimal optimisation.
//!
//! The dual is min ½ βᵀKβ − Σ ∫ z_i dβ_i over Σβ = 0 (with an intercept), where β_i runs over the slopes of its pieces: between
//! −c m_k and −c m_{k+1} (c = s v, m the slopes on both sides of kink k) its predictor is held at the kink. Each step moves
//! the pair that promises the most (second-order choice of Fan, Chen and Lin 2005); kernel columns are at hand, so a step
//! costs O(n). Ends when no pair violates the conditions by more than the tolerance, in units of z.

use crate::error::Breakdown;
use crate::linalg::Inverse;
use crate::loss::MAX_KINKS;
use crate::path::curve::GoOn;
use crate::space::Products;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;

/// Steps per row before giving up.
const MAX_STEPS_PER_ROW: usize = 20_000;
/// A curvature below this share of the diagonal is rounding: equal rows.
const FLAT: f64 = 1e-12;

/// What β_i may be: ends of its segments, largest first, and the kink on each segment between them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Range {
    pub ends: [f64; MAX_KINKS + 1],
    pub kinks: [f64; MAX_KINKS],
    pub segments: usize,
}

impl Range {
    /// The segment above β: its upper end and its kink.
    fn above(&self, beta: f64) -> Option<(f64, f64)> {
        (0..self.segments).rev().find(|&k| beta < self.ends[k]).map(|k| (self.ends[k], self.kinks[k]))
    }

    /// The segment below β: its lower end and its kink.
    fn below(&self, beta: f64) -> Option<(f64, f64)> {
        (0..self.segments).find(|&k| beta > self.ends[k + 1]).map(|k| (self.ends[k + 1], self.kinks[k]))
    }

    pub(super) fn clamp(&self, beta: f64) -> f64 {
        beta.clamp(self.ends[self.segments], self.ends[0])
    }
}

/// The columns of K. Those that are not stored but computed are kept for a while: fits come back to the same few.
#[derive(Debug)]
pub(crate) struct Columns<'p> {
    products: &'p Products,
    kept: RefCell<HashMap<usize, Rc<[f64]>>>,
}

/// Bytes of kept columns; beyond that all are forgotten.
const KEPT_BYTES: usize = 32 << 20;

/// One of them.
enum Column<'p> {
    Stored(&'p [f64]),
    Computed(Rc<[f64]>),
}

impl Deref for Column<'_> {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        match self {
            Column::Stored(column) => column,
            Column::Computed(column) => column,
        }
    }
}

impl<'p> Columns<'p> {
    pub fn new(products: &'p Products) -> Self {
        Columns { products, kept: RefCell::default() }
    }

    fn get(&self, i: usize) -> Column<'p> {
        if let Some(column) = self.kept.borrow().get(&i) {
            return Column::Computed(column.clone());
        }
        match self.products.column(i) {
            Cow::Borrowed(column) => Column::Stored(column),
            Cow::Owned(column) => {
                let column: Rc<[f64]> = column.into();
                let mut kept = self.kept.borrow_mut();
                if (kept.len() + 1) * size_of_val(&*column) > KEPT_BYTES {
                    kept.clear();
                }
                kept.insert(i, column.clone());
                Column::Computed(column)
            }
        }
    }
}

/// A weighted fit.
#[derive(Debug)]
pub(crate) struct DualFit {
    pub beta: Vec<f64>,
    pub intercept: f64,
    pub z: Vec<f64>,
}

/// A fit in progress.
#[derive(Clone)]
struct Smo<'a> {
    columns: &'a Columns<'a>,
    ranges: &'a [Range],
    intercept: bool,
    beta: Vec<f64>,
    /// Kβ
    g: Vec<f64>,
    /// How far each β may go, and the kink that pulls it: (limit, kink − Kβ is what the pull is).
    up: Vec<Option<(f64, f64)>>,
    down: Vec<Option<(f64, f64)>>,
}

/// Solves from a warm start, if the tolerance can be reached before `go_on` says no.
pub(crate) fn fit(
    columns: &Columns,
    ranges: &[Range],
    intercept: bool,
    start: (&[f64], f64),
    tolerance: f64,
    go_on: GoOn<'_>,
) -> Result<DualFit, Breakdown> {
    let n = columns.products.len();
    let beta: Vec<f64> = start.0.iter().zip(ranges).map(|(b, r)| r.clamp(*b)).collect();
    let (up, down) = (vec![None; n], vec![None; n]);
    let mut smo = Smo { columns, ranges, intercept, beta, g: vec![0.0; n], up, down };
    if intercept {
        smo.balance();
    }
    let support: Vec<usize> = (0..n).filter(|&i| smo.beta[i] != 0.0).collect();
    let coef: Vec<f64> = support.iter().map(|&i| smo.beta[i]).collect();
    columns.products.accumulate(&support, &coef, &mut smo.g);
    (0..n).for_each(|i| smo.look(i));
    // Newton usually finishes from a rough solution.
    let mut aim = ROUGH * tolerance;
    let mut since_slide = 0;
    for _ in 0..MAX_STEPS_PER_ROW * n.max(100) {
        since_slide += 1;
        if since_slide % ASK_EVERY == 0 && !go_on() {
            return Err(Breakdown::OutOfTime);
        }
        if since_slide % n.max(100) == 0 && since_slide >= smo.steps_worth_a_slide() {
            smo.slide();
            since_slide = 0;
        }
        let step = if intercept { smo.pair(aim) } else { smo.single(aim) };
        if let Step::Done(b) = step {
            if let Some(exact) = smo.clone().refined(b) {
                return Ok(exact);
            }
            if aim == tolerance {
                return Ok(smo.fit(b));
            }
            aim = tolerance;
        }
    }
    Err(Breakdown::Newton { residual: tolerance })
}

/// Steps between two questions whether to go on.
const ASK_EVERY: usize = 64;

/// Newton is first tried at this many times the tolerance.
const ROUGH: f64 = 100.0;
/// A slide over m samples costs about as much as m³ over so many SMO steps per row.
const SLIDE_COST: usize = 10;
/// What is added to the diagonal of K in a slide, relative to it: where rows depend on each other, K alone is singular.
const PROXIMAL: f64 = 1e-9;
/// Rounds of Newton after SMO; each may let a few samples go to their ends or leave them.
const MAX_ROUNDS: usize = 20;
/// A round that ends with less violation than this, in units of z, is exact.
const EXACT: f64 = 1e-11;

enum Step {
    Moved,
    /// Optimal with this intercept.
    Done(f64),
}

impl Smo<'_> {
    fn fit(self, b: f64) -> DualFit {
        DualFit { z: self.g.iter().map(|g| g + b).collect(), beta: self.beta, intercept: b }
    }

    /// Newton on the samples between their ends, which hold their kinks, from SMO's solution; None if it does not arrive.
    fn refined(mut self, mut b: f64) -> Option<DualFit> {
        for _ in 0..MAX_ROUNDS {
            let free = self.free();
            if free.is_empty() {
                break;
            }
            let Some((step, db)) = self.newton(&free, b) else { break };
            b += db;
            // Whoever would pass an end stops there.
            let mut moved: Vec<f64> = Vec::with_capacity(free.len());
            for (&i, d) in free.iter().zip(&step) {
                let to = self.beta[i] + d;
                let top = self.up[i].map_or(self.beta[i], |(limit, _)| limit);
                let bottom = self.down[i].map_or(self.beta[i], |(limit, _)| limit);
                let to = to.clamp(bottom, top);
                moved.push(to - self.beta[i]);
                self.beta[i] = to;
            }
            self.columns.products.accumulate(&free, &moved, &mut self.g);
            (0..self.beta.len()).for_each(|i| self.look(i));
            let (violation, balance) = self.violation(b);
            if violation <= EXACT && balance <= EXACT {
                return Some(self.fit(b));
            }
        }
        None
    }

    fn free(&self) -> Vec<usize> {
        (0..self.beta.len()).filter(|&i| self.held_kink(i).is_some()).collect()
    }

    fn steps_worth_a_slide(&self) -> usize {
        let n = self.beta.len();
        self.free().len().pow(3) / (SLIDE_COST * n.max(1))
    }

    /// Newton on the samples between their ends, as far as none of them passes an end; then without that one, and so on until
    /// a whole step is made. The objective never rises, and where pairs crawl this does not.
    fn slide(&mut self) {
        let p = usize::from(self.intercept);
        let mut free = self.free();
        let (moved, before): (Vec<usize>, Vec<f64>) = free.iter().map(|&i| (i, self.beta[i])).unzip();
        let largest = free.iter().map(|&i| self.columns.products.square(i)).fold(0.0, f64::max);
        let proximal = PROXIMAL * largest;
        let m = free.len() + p;
        let mut a = self.free_matrix(&free);
        (p..m).for_each(|k| a[k * m + k] += proximal);
        let mut inverse = Inverse::default();
        if free.len() <= p || !inverse.invert(&mut a, m) {
            return;
        }
        // What is left of the equations of Σβ and of every kink.
        let mut rest = vec![-self.beta.iter().sum::<f64>(); p];
        rest.extend(free.iter().map(|&i| self.held_kink(i).unwrap_or(self.g[i]) - self.g[i]));
        while free.len() > p {
            let step = inverse.times(&rest);
            let (mut share, mut stopper) = (1.0, None);
            for (k, (&i, d)) in free.iter().zip(&step[p..]).enumerate() {
                let limit = if *d > 0.0 { self.up[i] } else { self.down[i] }.map_or(self.beta[i], |(limit, _)| limit);
                let room = (limit - self.beta[i]) / d;
                if room < share {
                    (share, stopper) = (room, Some((k, limit)));
                }
            }
            for (&i, d) in free.iter().zip(&step[p..]) {
                self.beta[i] += share * d;
            }
            for (k, (rest, d)) in rest.iter_mut().zip(&step).enumerate() {
                *rest = (1.0 - share) * *rest + if k < p { 0.0 } else { share * proximal * d };
            }
            let Some((k, limit)) = stopper else { break };
            self.beta[free[k]] = limit;
            free.swap_remove(k);
            rest.swap_remove(k + p);
            if !inverse.swap_remove(k + p) {
                break;
            }
        }
        let change: Vec<f64> = moved.iter().zip(&before).map(|(&i, before)| self.beta[i] - before).collect();
        self.columns.products.accumulate(&moved, &change, &mut self.g);
        moved.into_iter().for_each(|i| self.look(i));
    }

    /// [ 0  1ᵀ ; 1  K ] over some samples, lower triangle.
    fn free_matrix(&self, free: &[usize]) -> Vec<f64> {
        let p = usize::from(self.intercept);
        let m = free.len() + p;
        let mut a = vec![0.0; m * m];
        for (k, &i) in free.iter().enumerate() {
            let row = &mut a[(k + p) * m..(k + p) * m + k + p + 1];
            row[..p].fill(1.0);
            self.columns.products.gather(i, &free[..=k], &mut row[p..]);
        }
        a
    }

    /// The kink that holds a sample between its ends.
    fn held_kink(&self, i: usize) -> Option<f64> {
        match (self.up[i], self.down[i]) {
            (Some((_, a)), Some((_, b))) if a == b => Some(a),
            _ => None,
        }
    }

    fn newton(&self, free: &[usize], b: f64) -> Option<(Vec<f64>, f64)> {
        let p = usize::from(self.intercept);
        let m = free.len() + p;
        let mut rhs = vec![-self.beta.iter().sum::<f64>(); p];
        for &i in free {
            rhs.push(self.held_kink(i)? - self.g[i] - b);
        }
        let mut inverse = Inverse::default();
        if !inverse.invert(&mut self.free_matrix(free), m) {
            return None;
        }
        let solved = inverse.times(&rhs);
        Some((solved[p..].to_vec(), if p == 1 { solved[0] } else { 0.0 }))
    }

    /// How far any sample is pulled, and |Σβ|.
    fn violation(&self, b: f64) -> (f64, f64) {
        let worst = (0..self.beta.len()).map(|i| {
            let z = self.g[i] + b;
            let up = self.up[i].map_or(0.0, |(_, kink)| kink - z);
            let down = self.down[i].map_or(0.0, |(_, kink)| z - kink);
            up.max(down).max(0.0)
        });
        let sum = if self.intercept { self.beta.iter().sum::<f64>().abs() } else { 0.0 };
        (worst.fold(0.0, f64::max), sum)
    }

    /// Moves β towards the ends that are open until Σβ = 0.
    fn balance(&mut self) {
        let mut excess: f64 = self.beta.iter().sum();
        // Twice: the last correction is rounding only.
        for _ in 0..2 {
            for (beta, range) in self.beta.iter_mut().zip(self.ranges) {
                let moved = range.clamp(*beta - excess);
                excess -= *beta - moved;
                *beta = moved;
            }
            excess = self.beta.iter().sum();
        }
    }

    fn look(&mut self, i: usize) {
        self.up[i] = self.ranges[i].above(self.beta[i]);
        self.down[i] = self.ranges[i].below(self.beta[i]);
    }

    fn shift(&mut self, i: usize, by: f64, to_limit: Option<f64>) {
        self.beta[i] = to_limit.unwrap_or(self.beta[i] + by);
        let column = self.columns.get(i);
        crate::linalg::add_scaled(by, &column, &mut self.g);
        self.look(i);
    }

    fn pair(&mut self, tolerance: f64) -> Step {
        let n = self.beta.len();
        let mut best: Option<(usize, f64)> = None;
        for i in 0..n {
            if let Some((_, kink)) = self.up[i] {
                let pull = kink - self.g[i];
                if best.is_none_or(|(_, b)| pull > b) {
                    best = Some((i, pull));
                }
            }
        }
        let Some((i, high)) = best else {
            return Step::Done(self.lowest_down().unwrap_or(0.0));
        };
        let column = self.columns.get(i);
        let (mut low, mut partner) = (f64::INFINITY, None);
        let mut gain = 0.0;
        for j in 0..n {
            if let Some((_, kink)) = self.down[j] {
                let pull = kink - self.g[j];
                low = low.min(pull);
                let gap = high - pull;
                if gap > 0.0 {
                    let curvature = self.curvature(i, j, column[j]);
                    if gap * gap / curvature > gain {
                        (gain, partner) = (gap * gap / curvature, Some((j, gap, curvature)));
                    }
                }
            }
        }
        let (j, gap, curvature) = match partner {
            Some(p) if high - low > tolerance => p,
            _ => return Step::Done(if low.is_finite() { 0.5 * (high + low) } else { high }),
        };
        let (Some((top, _)), Some((bottom, _))) = (self.up[i], self.down[j]) else {
            return Step::Done(0.5 * (high + low));
        };
        let (room_up, room_down) = (top - self.beta[i], self.beta[j] - bottom);
        let step = (gap / curvature).min(room_up).min(room_down);
        self.shift(i, step, (step == room_up).then_some(top));
        self.shift(j, -step, (step == room_down).then_some(bottom));
        Step::Moved
    }

    fn lowest_down(&self) -> Option<f64> {
        (0..self.beta.len()).filter_map(|j| self.down[j].map(|(_, kink)| kink - self.g[j])).reduce(f64::min)
    }

    fn curvature(&self, i: usize, j: usize, between: f64) -> f64 {
        let (a, b) = (self.columns.products.square(i), self.columns.products.square(j));
        (a + b - 2.0 * between).max(FLAT * (a.abs() + b.abs()).max(f64::MIN_POSITIVE))
    }

    /// Without an intercept every β moves on its own.
    fn single(&mut self, tolerance: f64) -> Step {
        let mut best = (tolerance, None);
        for i in 0..self.beta.len() {
            for (way, open) in [(1.0, self.up[i]), (-1.0, self.down[i])] {
                if let Some((limit, kink)) = open {
                    let pull = way * (kink - self.g[i]);
                    if pull > best.0 {
                        best = (pull, Some((i, way, limit)));
                    }
                }
            }
        }
        let (pull, Some((i, way, limit))) = best else {
            return Step::Done(0.0);
        };
        let room = way * (limit - self.beta[i]);
        let step = (pull / self.columns.products.square(i).max(f64::MIN_POSITIVE)).min(room);
        self.shift(i, way * step, (step == room).then_some(limit));
        Step::Moved
    }
}
