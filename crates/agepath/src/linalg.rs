//! The few dense kernels everything rests on. faer does the large ones; nothing else in the crate names it.
//!
//! Symmetric matrices are row-major squares of which only the lower triangle is read and written.

mod bounded;
mod inverse;
mod krylov;
mod sums;

pub(crate) use bounded::bounded_least_squares;
pub use inverse::{Inverse, Refused};
pub(crate) use krylov::{Solved, solve_near_identity};
pub use sums::{accumulate, add_small_gram, combine, smallest, sum_of_sizes};

use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::evd;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, ColMut, MatMut, MatRef, Par};
use std::ops::Range;

/// Below this size plain loops beat the library's set-up cost.
pub const SMALL: usize = 24;
/// A pivot below this share of its diagonal's magnitude is rounding noise: the column depends on the others.
const DEPENDENT: f64 = 1e-12;
/// Where columns depend on each other, the first is taken whose pivot is at least this share of the largest.
const IN_ORDER: f64 = 0.1;

/// aᵀb, with eight running sums so that it vectorises.
#[inline(always)]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len().min(b.len());
    let (a, b) = (&a[..n], &b[..n]);
    let mut sums = [0.0; 8];
    let (mut ca, mut cb) = (a.chunks_exact(8), b.chunks_exact(8));
    for (x, y) in (&mut ca).zip(&mut cb) {
        for k in 0..8 {
            sums[k] += x[k] * y[k];
        }
    }
    let tail: f64 = ca.remainder().iter().zip(cb.remainder()).map(|(x, y)| x * y).sum();
    (0..4).map(|k| sums[k] + sums[k + 4]).sum::<f64>() + tail
}

/// y += a·x
#[inline(always)]
pub fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// out = A b for a symmetric A given by its lower triangle.
#[inline(always)]
pub fn symmetric_times(a: &[f64], b: &[f64], out: &mut [f64]) {
    let m = b.len();
    out.fill(0.0);
    for i in 0..m {
        let row = &a[i * m..i * m + i];
        out[i] += dot(row, &b[..i]) + a[i * m + i] * b[i];
        axpy(b[i], row, &mut out[..i]);
    }
}

/// faer may leave the upper vector registers dirty, after which scalar code on this thread crawls: clean them.
fn clean_vector_registers() {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") {
        #[allow(unsafe_code)]
        // SAFETY: the instruction only clears the upper halves of vector registers, which no Rust value lives in
        // across this call, and the processor has just been asked whether it knows it.
        unsafe {
            std::arch::x86_64::_mm256_zeroupper();
        }
    }
}

/// Defines a function whose loops are compiled for the widest vectors that this processor turns out to have. The body is
/// copied into each version; a closure would be called, in the version that every processor understands.
macro_rules! wide_loop {
    ($(#[$doc:meta])* $vis:vis fn $name:ident $(<$g:ident: $bound:path>)? ($($arg:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$doc])*
        $vis fn $name $(<$g: $bound + ?Sized>)? ($($arg: $type),*) {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn plain $(<$g: $bound + ?Sized>)? ($($arg: $type),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[allow(unsafe_code, clippy::too_many_arguments)]
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
                unsafe fn widest $(<$g: $bound + ?Sized>)? ($($arg: $type),*) {
                    plain($($arg),*)
                }
                #[allow(unsafe_code, clippy::too_many_arguments)]
                #[target_feature(enable = "avx2")]
                unsafe fn wide $(<$g: $bound + ?Sized>)? ($($arg: $type),*) {
                    plain($($arg),*)
                }
                use std::arch::is_x86_feature_detected as has;
                if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
                    #[allow(unsafe_code)]
                    // SAFETY: the processor has just been asked whether it has these features.
                    return unsafe { widest($($arg),*) };
                }
                if has!("avx2") {
                    #[allow(unsafe_code)]
                    // SAFETY: as above.
                    return unsafe { wide($($arg),*) };
                }
            }
            plain($($arg),*)
        }
    };
}
pub(crate) use wide_loop;

wide_loop! {
    /// y += a·x, for long vectors.
    pub fn add_scaled(a: f64, x: &[f64], y: &mut [f64]) {
        axpy(a, x, y);
    }
}

wide_loop! {
    /// out = A x for a large symmetric A, lower triangle.
    pub fn large_symmetric_times(a: &[f64], x: &[f64], out: &mut [f64]) {
        symmetric_times(a, x, out);
    }
}

wide_loop! {
    /// out = a ∘ b
    pub fn multiply(a: &[f64], b: &[f64], out: &mut [f64]) {
        for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
            *out = a * b;
        }
    }
}

thread_local! {
    /// Room for a block of rows: asking the system for it anew each time costs as much as the product.
    static BLOCK: std::cell::RefCell<Vec<f64>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Lower triangle of `out` (row-major m²) += Aᵀ diag(h) A, where A has `h.len()` rows and the columns `column(0..m)`.
pub fn add_weighted_gram<'a>(h: &[f64], m: usize, column: impl Fn(usize) -> &'a [f64], out: &mut [f64]) {
    let k = h.len();
    BLOCK.with_borrow_mut(|block| {
        if block.len() < 2 * k * m {
            block.resize(2 * k * m, 0.0);
        }
        let (plain, scaled) = block[..2 * k * m].split_at_mut(k * m);
        for j in 0..m {
            plain[j * k..(j + 1) * k].copy_from_slice(column(j));
            multiply(h, column(j), &mut scaled[j * k..(j + 1) * k]);
        }
        triangular::matmul(
            MatMut::from_row_major_slice_mut(out, m, m),
            BlockStructure::TriangularLower,
            Accum::Add,
            MatRef::from_column_major_slice(plain, k, m).transpose(),
            BlockStructure::Rectangular,
            MatRef::from_column_major_slice(scaled, k, m),
            BlockStructure::Rectangular,
            1.0,
            Par::Seq,
        );
    });
    clean_vector_registers();
}

/// Products of rows: out (row-major, |left| × |right|) = X_left X_rightᵀ for X of `n` rows, stored by columns.
pub fn row_products(x: &[f64], n: usize, left: Range<usize>, right: Range<usize>, out: &mut [f64]) {
    let x = MatRef::from_column_major_slice(x, n, x.len() / n.max(1));
    let (rows, cols) = (left.len(), right.len());
    faer::linalg::matmul::matmul(
        MatMut::from_row_major_slice_mut(&mut out[..rows * cols], rows, cols),
        Accum::Replace,
        x.subrows(left.start, rows),
        x.subrows(right.start, cols).transpose(),
        1.0,
        Par::Seq,
    );
    clean_vector_registers();
}

/// out (m², row-major) = ZᵀAZ for a symmetric A (p², all of it) and Z (p × m, column after column).
pub fn congruence(a: &[f64], z: &[f64], out: &mut [f64]) {
    let p = a.len().isqrt();
    let m = z.len() / p.max(1);
    let mut product = vec![0.0; p * m];
    let z = MatRef::from_column_major_slice(z, p, m);
    let a = MatRef::from_row_major_slice(a, p, p);
    let middle = MatMut::from_column_major_slice_mut(&mut product, p, m);
    faer::linalg::matmul::matmul(middle, Accum::Replace, a, z, 1.0, Par::Seq);
    triangular::matmul(
        MatMut::from_row_major_slice_mut(out, m, m),
        BlockStructure::TriangularLower,
        Accum::Replace,
        z.transpose(),
        BlockStructure::Rectangular,
        MatRef::from_column_major_slice(&product, p, m),
        BlockStructure::Rectangular,
        1.0,
        Par::Seq,
    );
    clean_vector_registers();
}

/// Lower triangle of `a` += h x xᵀ.
#[cfg(test)]
pub fn rank_one(a: &mut [f64], x: &[f64], h: f64) {
    let m = x.len();
    for i in 0..m {
        axpy(h * x[i], &x[..=i], &mut a[i * m..i * m + i + 1]);
    }
}

/// The eigenvalues of a symmetric matrix, smallest first, and its eigenvectors, one after the other; none if they cannot be found.
/// On one thread: of these sizes, others would wait more than they work.
pub fn symmetric_eigen(a: &[f64], m: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let (mut values, mut vectors) = (vec![0.0; m], vec![0.0; m * m]);
    let request = evd::self_adjoint_evd_scratch::<f64>(m, evd::ComputeEigenvectors::Yes, Par::Seq, Default::default());
    let mut memory = faer::dyn_stack::MemBuffer::new(request);
    let found = evd::self_adjoint_evd(
        MatRef::from_row_major_slice(&a[..m * m], m, m),
        ColMut::from_slice_mut(&mut values).as_diagonal_mut(),
        Some(MatMut::from_column_major_slice_mut(&mut vectors, m, m)),
        Par::Seq,
        faer::dyn_stack::MemStack::new(&mut memory),
        Default::default(),
    );
    clean_vector_registers();
    found.ok()?;
    values.iter().all(|v| v.is_finite()).then_some((values, vectors))
}

/// What a factorisation found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Definiteness {
    /// Positive definite.
    Positive,
    /// Positive definite but for this many dependent columns, which are held.
    Semidefinite(usize),
    /// A negative pivot: there is a direction of negative curvature.
    Indefinite,
}

/// A = LLᵀ, kept up to date by rank-one changes. Columns that depend on the others are *held*: solves leave a 0 there.
#[derive(Debug, Clone, Default)]
pub struct Cholesky {
    m: usize,
    /// Row-major lower triangle.
    l: Vec<f64>,
    held: Vec<bool>,
    workspace: Vec<f64>,
}

impl Cholesky {
    /// Factors `a`. `magnitude[j]` is the size of what was summed into a_jj; pivots are judged against it.
    pub fn factor(&mut self, a: &[f64], magnitude: &[f64]) -> Definiteness {
        if self.factor_positive(a, magnitude) {
            return Definiteness::Positive;
        }
        let Some(dependent) = dependent(a, magnitude) else { return Definiteness::Indefinite };
        self.held = dependent;
        self.l.copy_from_slice(&a[..self.m * self.m]);
        match self.factor_by_rows(magnitude) {
            true => Definiteness::Positive,
            false => Definiteness::Semidefinite(self.held.iter().filter(|&&held| held).count()),
        }
    }

    /// Factors `a` if it is positive definite; answers whether it is. If not, there is nothing to solve with.
    #[must_use]
    pub fn factor_positive(&mut self, a: &[f64], magnitude: &[f64]) -> bool {
        let m = magnitude.len();
        self.m = m;
        self.l.clear();
        self.l.extend_from_slice(&a[..m * m]);
        self.held.clear();
        self.held.resize(m, false);
        if m >= SMALL { self.factor_blocked(magnitude) } else { self.factor_by_rows(magnitude) }
    }

    fn factor_blocked(&mut self, magnitude: &[f64]) -> bool {
        let m = self.m;
        let request = llt::cholesky_in_place_scratch::<f64>(m, Par::Seq, Default::default());
        let mut memory = faer::dyn_stack::MemBuffer::new(request);
        let done = llt::cholesky_in_place(
            MatMut::from_row_major_slice_mut(&mut self.l, m, m),
            Default::default(),
            Par::Seq,
            faer::dyn_stack::MemStack::new(&mut memory),
            Default::default(),
        );
        clean_vector_registers();
        done.is_ok() && (0..m).all(|j| self.l[j * m + j].powi(2) > DEPENDENT * magnitude[j])
    }

    /// Factors row by row without the columns that are held, and holds those without a pivot of their own; answers whether
    /// none is held.
    fn factor_by_rows(&mut self, magnitude: &[f64]) -> bool {
        let m = self.m;
        for i in 0..m {
            let (above, below) = self.l.split_at_mut(i * m);
            let row = &mut below[..=i];
            for j in 0..i {
                row[j] = if self.held[j] {
                    0.0
                } else {
                    (row[j] - dot(&row[..j], &above[j * m..j * m + j])) / above[j * m + j]
                };
            }
            let pivot = row[i] - dot(&row[..i], &row[..i]);
            if !self.held[i] && pivot > DEPENDENT * magnitude[i] {
                row[i] = pivot.sqrt();
            } else {
                self.held[i] = true;
                row.fill(0.0);
                row[i] = 1.0;
            }
        }
        !self.any_held()
    }

    /// How many columns there are.
    pub fn size(&self) -> usize {
        self.m
    }

    /// Whether column `j` is held.
    pub fn is_held(&self, j: usize) -> bool {
        self.held[j]
    }

    /// Whether any column is held.
    pub fn any_held(&self) -> bool {
        self.held.contains(&true)
    }

    /// ln det A; −∞ if a column is held.
    pub fn log_determinant(&self) -> f64 {
        if self.any_held() {
            return f64::NEG_INFINITY;
        }
        (0..self.m).map(|j| 2.0 * self.l[j * self.m + j].ln()).sum()
    }

    /// b ← L⁻¹ b, so that ‖b‖² becomes bᵀA⁻¹b; held entries become 0.
    pub fn forward(&self, b: &mut [f64]) {
        let m = self.m;
        for i in 0..m {
            b[i] =
                if self.held[i] { 0.0 } else { (b[i] - dot(&self.l[i * m..i * m + i], &b[..i])) / self.l[i * m + i] };
        }
    }

    /// b ← A⁻¹ b; held entries become 0.
    pub fn solve(&self, b: &mut [f64]) {
        let m = self.m;
        self.forward(b);
        for i in (0..m).rev() {
            b[i] /= self.l[i * m + i];
            let factor = -b[i];
            axpy(factor, &self.l[i * m..i * m + i], &mut b[..i]);
        }
    }

    /// A ← A + σ x xᵀ. Answers false, and leaves the factor alone, when the result would not be safely positive:
    /// less than `margin` of the curvature along A⁻¹x would be left.
    #[must_use]
    pub fn update(&mut self, x: &[f64], sigma: f64, margin: f64) -> bool {
        let m = self.m;
        debug_assert!(!self.any_held());
        self.workspace.clear();
        self.workspace.extend_from_slice(x);
        // p = L⁻¹x; the determinant changes by the factor 1 + σ pᵀp.
        let p = &mut self.workspace;
        for i in 0..m {
            p[i] = (p[i] - dot(&self.l[i * m..i * m + i], &p[..i])) / self.l[i * m + i];
        }
        if 1.0 + sigma * dot(p, p) <= margin {
            return false;
        }
        // L̃ = L·chol(I + σppᵀ), column by column (Gill, Golub, Murray, Saunders 1974, method C1).
        let mut running = 1.0;
        let mut carried = x.to_vec();
        for j in 0..m {
            let pj = p[j];
            let next = running + sigma * pj * pj;
            let scale = (next / running).sqrt();
            let old = self.l[j * m + j];
            self.l[j * m + j] = old * scale;
            let beta = sigma * pj / (running * scale);
            for i in j + 1..m {
                let lij = self.l[i * m + j];
                carried[i] -= pj * lij;
                self.l[i * m + j] = scale * lij + beta * carried[i];
            }
            running = next;
        }
        true
    }
}

/// Which columns of a positive semidefinite `a` depend on the others, by pivots that are each at least a share of the largest
/// left: those that remain are as independent as can be, and what is left of a dependent one is rounding, not the rounding of
/// ill-conditioned solves. None: `a` has a direction of negative curvature.
fn dependent(a: &[f64], magnitude: &[f64]) -> Option<Vec<bool>> {
    let m = magnitude.len();
    let entry = |i: usize, j: usize| a[i.max(j) * m + i.min(j)];
    let mut left: Vec<f64> = (0..m).map(|j| entry(j, j)).collect();
    let mut pending = vec![true; m];
    let mut rows: Vec<Vec<f64>> = vec![Vec::new(); m];
    let share = |left: &[f64], j: usize| if left[j] > DEPENDENT * magnitude[j] { left[j] / magnitude[j] } else { 0.0 };
    loop {
        if (0..m).any(|j| pending[j] && left[j] < -DEPENDENT * magnitude[j]) {
            return None;
        }
        let largest = (0..m).filter(|&j| pending[j]).fold(0.0f64, |top, j| top.max(share(&left, j)));
        if largest == 0.0 {
            return Some(pending);
        }
        let pivot = (0..m).find(|&j| pending[j] && share(&left, j) >= IN_ORDER * largest)?;
        pending[pivot] = false;
        let root = left[pivot].sqrt();
        let chosen = std::mem::take(&mut rows[pivot]);
        for i in (0..m).filter(|&i| pending[i]) {
            let l = (entry(i, pivot) - dot(&rows[i], &chosen)) / root;
            rows[i].push(l);
            left[i] -= l * l;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    fn random(n: usize, seed: u64) -> Vec<f64> {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        (0..n).map(|_| rng.random::<f64>() - 0.5).collect()
    }

    fn spd(m: usize, seed: u64) -> Vec<f64> {
        let b = random(3 * m * m, seed);
        let mut a = vec![0.0; m * m];
        for row in b.chunks(m) {
            rank_one(&mut a, row, 1.0);
        }
        a
    }

    fn diagonal(a: &[f64], m: usize) -> Vec<f64> {
        (0..m).map(|j| a[j * m + j]).collect()
    }

    #[test]
    fn solves_and_updates_on_both_sides_of_the_blocking_threshold() {
        for m in [1, 2, 9, 23, 24, 61] {
            let mut a = spd(m, m as u64);
            let mut f = Cholesky::default();
            assert_eq!(f.factor(&a, &diagonal(&a, m)), Definiteness::Positive);
            for (k, sigma) in [(1, 0.7), (2, -0.05)] {
                let x = random(m, 77 + k);
                assert!(f.update(&x, sigma, 0.0));
                rank_one(&mut a, &x, sigma);
                let want = random(m, 5);
                let mut b = vec![0.0; m];
                symmetric_times(&a, &want, &mut b);
                f.solve(&mut b);
                for (b, w) in b.iter().zip(&want) {
                    assert!((b - w).abs() < 1e-9, "m = {m}: {b} against {w}");
                }
            }
        }
    }

    #[test]
    fn a_downdate_that_would_lose_positivity_is_refused() {
        let a = vec![2.0, 0.0, 0.0, 3.0];
        let mut f = Cholesky::default();
        f.factor(&a, &[2.0, 3.0]);
        let before = f.l.clone();
        assert!(!f.update(&[1.0, 0.0], -2.5, 0.0));
        assert_eq!(before, f.l);
        assert!(f.update(&[1.0, 0.0], -1.5, 0.0));
    }

    #[test]
    fn dependent_columns_are_held_and_negative_curvature_is_seen() {
        // Third column = first + second.
        let a = vec![2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 3.0, 3.0, 6.0];
        let mut f = Cholesky::default();
        assert_eq!(f.factor(&a, &[2.0, 2.0, 6.0]), Definiteness::Semidefinite(1));
        assert!(f.is_held(2) && !f.is_held(0));
        let mut b = vec![3.0, 3.0, 9.0];
        f.solve(&mut b);
        assert!((b[0] - 1.0).abs() < 1e-12 && (b[1] - 1.0).abs() < 1e-12 && b[2] == 0.0);
        assert_eq!(f.factor(&[1.0, 0.0, 2.0, 1.0], &[1.0, 1.0]), Definiteness::Indefinite);
    }

    #[test]
    fn many_dependent_columns_leave_an_accurate_solve() {
        // Fewer rows than columns, graded sizes: in their order, the columns become nearly dependent long before they are.
        for (rows, m, seed) in [(20, 33, 1), (40, 60, 2), (70, 90, 3), (5, 12, 4)] {
            let mut data = random(rows * m, seed);
            for row in data.chunks_mut(m) {
                (1..m).for_each(|j| row[j] = row[j - 1] + 0.1 * row[j]);
            }
            let mut a = vec![0.0; m * m];
            data.chunks(m).for_each(|row| rank_one(&mut a, row, 1.0));
            let mut f = Cholesky::default();
            assert_eq!(f.factor(&a, &diagonal(&a, m)), Definiteness::Semidefinite(m - rows));
            let mut b = vec![0.0; m];
            symmetric_times(&a, &random(m, 9), &mut b);
            let mut x = b.clone();
            f.solve(&mut x);
            let mut back = vec![0.0; m];
            symmetric_times(&a, &x, &mut back);
            let size = b.iter().fold(0.0f64, |top, b| top.max(b.abs()));
            for (back, b) in back.iter().zip(&b) {
                assert!((back - b).abs() < 1e-10 * size, "{rows} rows, {m} columns: {back} against {b}");
            }
        }
    }

    #[test]
    fn gram_and_products_equal_the_plain_sums() {
        for m in [3, 30] {
            let n = 700;
            let data = random(n * m, 3);
            let h = random(n, 4);
            let x = crate::space::Dense::from_rows(n, m, &data);
            let columns: Vec<usize> = (0..m).rev().collect();
            let (mut plain, mut blocked) = (vec![0.0; m * m], vec![0.0; m * m]);
            for (row, &h) in data.chunks(m).zip(&h) {
                let row: Vec<f64> = columns.iter().map(|&j| row[j]).collect();
                rank_one(&mut plain, &row, h);
            }
            x.gram(&h, &columns, &mut blocked);
            for i in 0..m {
                for j in 0..=i {
                    assert!((plain[i * m + j] - blocked[i * m + j]).abs() < 1e-12);
                }
            }
        }
    }
}
