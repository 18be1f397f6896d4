//! M and its inverse.
//!
//! Over the border and the active samples, M = [ 0  1ᵀ ; 1  K + D ] with D = 1/h, 0 for pinned samples. A point is a local
//! minimiser exactly when M has one positive eigenvalue per pinned sample and per h > 0, all others negative.

use crate::linalg::{Inverse, Refused, Solved, dot, solve_near_identity};
use crate::space::Products;

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
    /// Room for the matrix while it is inverted.
    matrix: Vec<f64>,
}

impl<'p> Factor<'p> {
    pub fn new(products: &'p Products, border: usize) -> Self {
        Factor { products, border, active: Vec::new(), inverse: Inverse::default(), matrix: Vec::new() }
    }

    /// Makes the inverse, unless M is singular to rounding or, with `only_stable`, not that of a local minimiser.
    pub fn invert(&mut self, active: Vec<Active>, only_stable: bool) -> Result<(), Refused> {
        self.active = active;
        let mut matrix = std::mem::take(&mut self.matrix);
        let m = self.len();
        matrix.resize(matrix.len().max(m * m), 0.0);
        let a = &mut matrix[..m * m];
        let sizes = self.whole(a);
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

    /// Whether the inertia is that of a local minimiser.
    pub fn is_stable(&self) -> bool {
        self.inverse.inertia() == self.stable_inertia()
    }

    fn stable_inertia(&self) -> (usize, usize) {
        let positive = self.active.iter().filter(|a| a.h.is_none_or(|h| h > 0.0)).count();
        (positive, self.active.len() + self.border - positive)
    }

    /// How many equations M stands for.
    pub fn len(&self) -> usize {
        self.active.len() + self.border
    }

    /// M⁻¹ rhs for the curvatures that M was made for.
    pub fn times(&self, rhs: &[f64]) -> Vec<f64> {
        self.inverse.times(rhs)
    }

    /// M⁻¹ rhs for the curvatures `now`: from the kept M₀, (I + M₀⁻¹Δ)x = M₀⁻¹ rhs.
    pub fn solve(&self, rhs: &[f64], now: &[Option<f64>], tolerance: f64) -> Solved {
        let x = self.inverse.times(rhs);
        let drift = self.drift(now);
        if drift.iter().all(|d| *d == 0.0) {
            Solved { x, radius: 0.0, residual: 0.0 }
        } else {
            solve_near_identity(x, |v| self.inverse.times(&self.drifted(&drift, v)), tolerance, MAX_ROUNDS)
        }
    }

    /// How far D has moved since the inverse was made.
    fn drift(&self, now: &[Option<f64>]) -> Vec<f64> {
        let moved = |(a, now): (&Active, &Option<f64>)| match (a.h, now) {
            (Some(kept), Some(now)) => 1.0 / now - 1.0 / kept,
            _ => 0.0,
        };
        self.active.iter().zip(now).map(moved).collect()
    }

    /// The change of the matrix that this drift means, times v.
    fn drifted(&self, drift: &[f64], v: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; v.len()];
        let active = out[self.border..].iter_mut().zip(&v[self.border..]);
        active.zip(drift).for_each(|((out, v), d)| *out = v * d);
        out
    }

    // Changes of one active sample; each answers false if it cannot be told from here whether M becomes singular.

    /// Another curvature for row `k`, or pinned.
    #[must_use]
    pub fn change(&mut self, k: usize, h: Option<f64>) -> bool {
        let before = self.active[k].h;
        self.active[k].h = h;
        let d = |h: Option<f64>| h.map_or(0.0, f64::recip);
        self.inverse.change_diagonal(k + self.border, d(h) - d(before))
    }

    /// One more sample.
    #[must_use]
    pub fn insert(&mut self, new: Active) -> bool {
        let (column, square) = (self.column(new.sample), self.products.square(new.sample));
        let done = self.inverse.insert(&column, square + new.h.map_or(0.0, f64::recip));
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
            if !self.inverse.insert_unless_dependent(&row, self.products.square(sample), size) {
                break;
            }
            self.active.push(Active { sample, h: None });
            pinned.push(waiting.swap_remove(k));
            for (&other, candidate) in waiting.iter().zip(&mut candidates) {
                let mut product = [0.0];
                self.products.gather(other, &[sample], &mut product);
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
        Candidate { pivot: self.products.square(sample) - dot(&row, &answer), size: self.size(sample) + cancels, row }
    }

    /// Row `k` goes, the last one takes its place.
    #[must_use]
    pub fn swap_remove(&mut self, k: usize) -> bool {
        let done = self.inverse.swap_remove(k + self.border);
        if done {
            self.active.swap_remove(k);
        }
        done
    }

    /// The size of what cancels in the pivot of a pinned sample.
    fn size(&self, sample: usize) -> f64 {
        self.products.square(sample) + self.border as f64
    }

    /// The new row of the matrix for a sample that is not in it yet.
    fn column(&self, sample: usize) -> Vec<f64> {
        let mut column = vec![1.0; self.border + self.active.len()];
        let samples: Vec<usize> = self.active.iter().map(|a| a.sample).collect();
        self.products.gather(sample, &samples, &mut column[self.border..]);
        column
    }
}
