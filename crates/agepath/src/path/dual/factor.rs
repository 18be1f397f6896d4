//! M and its inverse, in the smaller of two forms.
//!
//! Over the border and the active samples, M = [ 0  1ᵀ ; 1  K + D ] with D = 1/h, 0 for pinned samples. Where K = XXᵀ has
//! more rows than columns, M(db, dβ) = (r₀, r) is condensed: with dw = Xᵀdβ every sample V that varies answers
//! dβ = h (r − xᵀdw − db), which leaves, P being the pinned ones and x̃ a row with the border's 1 after it,
//!
//! N = [ Ω + X̃_VᵀHX̃_V  −X̃_Pᵀ ; −X̃_P  0 ],  N (dw, db, dβ_P) = (X̃_VᵀH r_V − (0, r₀), −r_P),  Ω = 1 but 0 for b:
//!
//! as many unknowns as coefficients and pinned samples. Its Schur complement of a pinned sample is minus that of M.
//! A point is a local minimiser exactly when M has one positive eigenvalue per pinned sample and per h > 0, all others
//! negative; or when N has one positive eigenvalue per coefficient and one negative per pinned sample.

use crate::linalg::{Inverse, Refused, Solved, dot, solve_near_identity};
use crate::space::{Products, Rows};

/// Rounds of correction for curvatures that have moved since the inverse was made.
const MAX_ROUNDS: usize = 20;

/// An active sample and its curvature h; none if it is pinned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Active {
    pub sample: usize,
    pub h: Option<f64>,
}

/// A sample that may be pinned.
struct Candidate {
    /// Its row of the matrix without the diagonal entry.
    row: Vec<f64>,
    /// Its pivot, and the size of what cancels in that.
    pivot: f64,
    size: f64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Factor<'p> {
    products: &'p Products,
    /// 1 if there is an intercept.
    border: usize,
    /// What the inverse was made for.
    active: Vec<Active>,
    inverse: Inverse,
    /// The rows, if M is condensed, and the samples of the last rows of N.
    rows: Option<&'p Rows>,
    pins: Vec<usize>,
    /// Room for the matrix while it is inverted.
    matrix: Vec<f64>,
}

impl<'p> Factor<'p> {
    pub fn new(products: &'p Products, border: usize) -> Self {
        let (rows, inverse) = (products.rows_if_thin(), Inverse::default());
        Factor { products, border, active: Vec::new(), inverse, rows, pins: Vec::new(), matrix: Vec::new() }
    }

    /// Makes the inverse, unless M is singular to rounding or, with `only_stable`, not that of a local minimiser.
    pub fn invert(&mut self, active: Vec<Active>, only_stable: bool) -> Result<(), Refused> {
        self.active = active;
        self.pins = self.active.iter().filter(|a| a.h.is_none()).map(|a| a.sample).collect();
        let mut matrix = std::mem::take(&mut self.matrix);
        let m = self.rows.map_or(self.len(), |rows| rows.design().cols() + self.pins.len());
        matrix.resize(matrix.len().max(m * m), 0.0);
        let a = &mut matrix[..m * m];
        let sizes = match self.rows {
            Some(rows) => self.condensed(rows, a),
            None => self.whole(a),
        };
        let stable = self.stable_inertia();
        let done = self.inverse.invert_if(a, &sizes, |found| !only_stable || found == stable);
        self.matrix = matrix;
        done
    }

    /// M, lower triangle, into `a`. Answers with the sizes that its pivots are judged by.
    fn whole(&self, a: &mut [f64]) -> Vec<f64> {
        let (p, m) = (self.border, self.len());
        let samples: Vec<usize> = self.active.iter().map(|a| a.sample).collect();
        for (k, active) in self.active.iter().enumerate() {
            let row = &mut a[(k + p) * m..(k + p) * m + k + p + 1];
            row[..p].fill(1.0);
            self.products.gather(active.sample, &samples[..=k], &mut row[p..]);
            row[k + p] += active.h.map_or(0.0, f64::recip);
        }
        if p == 1 {
            // Where nothing tells where b is, it stays.
            a[0] = if self.active.is_empty() { -1.0 } else { 0.0 };
        }
        (0..m).map(|k| a[k * m + k].abs()).collect()
    }

    /// N, likewise.
    fn condensed(&self, rows: &Rows, a: &mut [f64]) -> Vec<f64> {
        let (design, cols) = (rows.design(), rows.design().cols());
        let m = cols + self.pins.len();
        let mut h = vec![0.0; design.rows()];
        self.active.iter().for_each(|a| h[a.sample] = a.h.unwrap_or(0.0));
        let mut block = vec![0.0; cols * cols];
        design.gram(&h, &(0..cols).collect::<Vec<_>>(), &mut block);
        a.fill(0.0);
        let mut sizes = Vec::with_capacity(m);
        for j in 0..cols {
            a[j * m..j * m + j + 1].copy_from_slice(&block[j * cols..j * cols + j + 1]);
            if j < rows.features() || self.active.is_empty() {
                a[j * m + j] += 1.0;
            }
            sizes.push(a[j * m + j].abs());
        }
        for (k, &i) in self.pins.iter().enumerate() {
            design.add_row(i, -1.0, &mut a[(cols + k) * m..(cols + k) * m + cols]);
            sizes.push(self.size(i));
        }
        sizes
    }

    /// Whether the inertia is that of a local minimiser.
    pub fn is_stable(&self) -> bool {
        self.inverse.inertia() == self.stable_inertia()
    }

    fn stable_inertia(&self) -> (usize, usize) {
        match self.rows {
            Some(rows) => (rows.design().cols(), self.pins.len()),
            None => {
                let positive = self.active.iter().filter(|a| a.h.is_none_or(|h| h > 0.0)).count();
                (positive, self.active.len() + self.border - positive)
            }
        }
    }

    /// How many equations M stands for.
    pub fn len(&self) -> usize {
        self.active.len() + self.border
    }

    /// M⁻¹ rhs for the curvatures that M was made for.
    pub fn times(&self, rhs: &[f64]) -> Vec<f64> {
        let kept: Vec<Option<f64>> = self.active.iter().map(|a| a.h).collect();
        self.expand(self.inverse.times(&self.condense(rhs, &kept)), rhs, &kept)
    }

    /// M⁻¹ rhs for the curvatures `now`: from the kept M₀, (I + M₀⁻¹Δ)x = M₀⁻¹ rhs.
    pub fn solve(&self, rhs: &[f64], now: &[Option<f64>], tolerance: f64) -> Solved {
        let x = self.inverse.times(&self.condense(rhs, now));
        let drift = self.drift(now);
        let mut solved = if drift.iter().all(|d| *d == 0.0) {
            Solved { x, radius: 0.0, residual: 0.0 }
        } else {
            solve_near_identity(x, |v| self.inverse.times(&self.drifted(&drift, v)), tolerance, MAX_ROUNDS)
        };
        solved.x = self.expand(solved.x, rhs, now);
        solved
    }

    /// The right side of the equations that are solved.
    fn condense(&self, rhs: &[f64], now: &[Option<f64>]) -> Vec<f64> {
        let Some(rows) = self.rows else { return rhs.to_vec() };
        let (p, cols) = (self.border, rows.design().cols());
        let mut pull = vec![0.0; rows.design().rows()];
        let mut out = vec![0.0; cols];
        let mut pinned = Vec::with_capacity(self.pins.len());
        for ((a, h), r) in self.active.iter().zip(now).zip(&rhs[p..]) {
            match h {
                Some(h) => pull[a.sample] = h * r,
                None => pinned.push((a.sample, -r)),
            }
        }
        rows.design().accumulate(&pull, &mut out);
        if p == 1 {
            out[cols - 1] -= rhs[0];
        }
        // The rows of N have an order of their own.
        out.resize(cols + self.pins.len(), 0.0);
        for (i, r) in pinned {
            if let Some(k) = self.pin(i) {
                out[cols + k] = r;
            }
        }
        out
    }

    fn pin(&self, i: usize) -> Option<usize> {
        self.pins.iter().position(|&j| j == i)
    }

    /// (db, dβ) from the solution of the equations that are solved.
    fn expand(&self, x: Vec<f64>, rhs: &[f64], now: &[Option<f64>]) -> Vec<f64> {
        let Some(rows) = self.rows else { return x };
        let (p, cols) = (self.border, rows.design().cols());
        let mut z = vec![0.0; rows.design().rows()];
        rows.design().predict(&x[..cols], &mut z);
        let mut out = if p == 1 { vec![x[cols - 1]] } else { Vec::new() };
        for ((a, h), r) in self.active.iter().zip(now).zip(&rhs[p..]) {
            out.push(match h {
                Some(h) => h * (r - z[a.sample]),
                None => self.pin(a.sample).map_or(0.0, |k| x[cols + k]),
            });
        }
        out
    }

    /// How far D, or H, has moved since the inverse was made.
    fn drift(&self, now: &[Option<f64>]) -> Vec<f64> {
        let moved = |(a, now): (&Active, &Option<f64>)| match (a.h, now, self.rows) {
            (Some(kept), Some(now), Some(_)) => now - kept,
            (Some(kept), Some(now), None) => 1.0 / now - 1.0 / kept,
            _ => 0.0,
        };
        self.active.iter().zip(now).map(moved).collect()
    }

    /// The change of the matrix that this drift means, times v.
    fn drifted(&self, drift: &[f64], v: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; v.len()];
        match self.rows {
            Some(rows) => {
                let (design, cols) = (rows.design(), rows.design().cols());
                let (mut z, mut pull) = (vec![0.0; design.rows()], vec![0.0; design.rows()]);
                design.predict(&v[..cols], &mut z);
                self.active.iter().zip(drift).for_each(|(a, d)| pull[a.sample] = d * z[a.sample]);
                design.accumulate(&pull, &mut out[..cols]);
            }
            None => {
                let active = out[self.border..].iter_mut().zip(&v[self.border..]);
                active.zip(drift).for_each(|((out, v), d)| *out = v * d);
            }
        }
        out
    }

    // Changes of one active sample; each answers false if it cannot be told from here whether M becomes singular.

    /// Another curvature for row `k`, or pinned.
    #[must_use]
    pub fn change(&mut self, k: usize, h: Option<f64>) -> bool {
        let Active { sample, h: before } = self.active[k];
        self.active[k].h = h;
        match self.rows {
            None => {
                let d = |h: Option<f64>| h.map_or(0.0, f64::recip);
                self.inverse.change_diagonal(k + self.border, d(h) - d(before))
            }
            // While a sample is pinned, its curvature does not matter: so it is pinned first and let go last.
            Some(_) => {
                (h.is_some() || self.add_pin(sample))
                    && self.bend(sample, h.unwrap_or(0.0) - before.unwrap_or(0.0))
                    && (before.is_some() || self.remove_pin(sample))
            }
        }
    }

    /// One more sample.
    #[must_use]
    pub fn insert(&mut self, new: Active) -> bool {
        let done = match (self.rows, new.h) {
            (None, h) => {
                let (column, square) = (self.column(new.sample), self.products.square(new.sample));
                self.inverse.insert(&column, square + h.map_or(0.0, f64::recip))
            }
            (Some(_), Some(h)) => self.bend(new.sample, h),
            (Some(_), None) => self.add_pin(new.sample),
        };
        if done {
            self.active.push(new);
        }
        done
    }

    /// Pins those of `waiting` that do not depend on the others, however badly conditioned that makes M: the most independent
    /// ones first, so that rounding is not taken for independence. Answers who is pinned, in order, and who is not.
    pub fn pin_independent(&mut self, mut waiting: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
        let mut pinned = Vec::new();
        let mut candidates: Vec<Candidate> = waiting.iter().map(|&i| self.candidate(i)).collect();
        let share = |c: &Candidate| c.pivot.abs() / c.size;
        while let Some(k) = (0..waiting.len()).max_by(|&a, &b| share(&candidates[a]).total_cmp(&share(&candidates[b])))
        {
            let (sample, Candidate { row, pivot, size }) = (waiting[k], candidates.swap_remove(k));
            let answer = self.inverse.times(&row);
            if !self.inverse.insert_unless_dependent(&row, self.diagonal(sample), size) {
                break;
            }
            self.active.push(Active { sample, h: None });
            self.pins.push(sample);
            pinned.push(waiting.swap_remove(k));
            for (&other, candidate) in waiting.iter().zip(&mut candidates) {
                let mut product = [0.0];
                if self.rows.is_none() {
                    self.products.gather(other, &[sample], &mut product);
                }
                let shared = product[0] - dot(&candidate.row, &answer);
                candidate.pivot -= shared * shared / pivot;
                candidate.row.push(product[0]);
            }
        }
        (pinned, waiting)
    }

    fn candidate(&self, sample: usize) -> Candidate {
        let row = self.column(sample);
        let answer = self.inverse.times(&row);
        let cancels: f64 = row.iter().zip(&answer).map(|(a, b)| (a * b).abs()).sum();
        Candidate { pivot: self.diagonal(sample) - dot(&row, &answer), size: self.size(sample) + cancels, row }
    }

    /// The diagonal entry of a pinned sample.
    fn diagonal(&self, sample: usize) -> f64 {
        if self.rows.is_some() { 0.0 } else { self.products.square(sample) }
    }

    /// Row `k` goes, the last one takes its place.
    #[must_use]
    pub fn swap_remove(&mut self, k: usize) -> bool {
        let Active { sample, h } = self.active[k];
        let done = match (self.rows, h) {
            (None, _) => self.inverse.swap_remove(k + self.border),
            (Some(_), Some(h)) => self.bend(sample, -h),
            (Some(_), None) => self.remove_pin(sample),
        };
        if done {
            self.active.swap_remove(k);
        }
        done
    }

    /// The size of what cancels in the pivot of a pinned sample in N.
    fn size(&self, sample: usize) -> f64 {
        self.products.square(sample) + self.border as f64
    }

    /// The new row of the matrix for a sample that is not in it yet.
    fn column(&self, sample: usize) -> Vec<f64> {
        match self.rows {
            Some(rows) => {
                let mut column = vec![0.0; self.inverse.len()];
                rows.design().add_row(sample, -1.0, &mut column[..rows.design().cols()]);
                column
            }
            None => {
                let mut column = vec![1.0; self.border + self.active.len()];
                let samples: Vec<usize> = self.active.iter().map(|a| a.sample).collect();
                self.products.gather(sample, &samples, &mut column[self.border..]);
                column
            }
        }
    }

    fn add_pin(&mut self, sample: usize) -> bool {
        let done = self.inverse.insert_zero(&self.column(sample), self.size(sample));
        if done {
            self.pins.push(sample);
        }
        done
    }

    fn remove_pin(&mut self, sample: usize) -> bool {
        let (Some(rows), Some(k)) = (self.rows, self.pin(sample)) else { return false };
        let done = self.inverse.swap_remove(rows.design().cols() + k);
        if done {
            self.pins.swap_remove(k);
        }
        done
    }

    /// N += by · x̃ x̃ᵀ
    fn bend(&mut self, sample: usize, by: f64) -> bool {
        by == 0.0 || self.inverse.change_by(by, &self.column(sample))
    }
}
