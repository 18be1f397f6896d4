//! The inverse of a symmetric indefinite matrix, kept up to date while rows come and go, with its inertia.
//!
//! Adding a row with Schur complement σ adds a positive or negative eigenvalue by the sign of σ (Haynsworth); removing row
//! k takes one away by the sign of (A⁻¹)_kk, which is 1/σ of that row; adding δ to a diagonal entry moves one eigenvalue
//! through zero exactly when 1 + δ (A⁻¹)_kk is negative, and adding δ xxᵀ when 1 + δ xᵀA⁻¹x is. Each change costs O(m²).

use super::{add_scaled, axpy, clean_vector_registers, dot};
use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::lblt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::linalg::triangular_inverse::invert_unit_lower_triangular;
use faer::{Accum, MatMut, MatRef, Par};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use std::ops::Range;

/// A Schur complement below this share of what cancels in it is not to be trusted: a fresh factor must decide.
const UNRELIABLE: f64 = 1e-9;
fn is_below(share: f64, value: f64, size: f64) -> bool {
    value.is_nan() || value.abs() <= share * size
}

/// A row whose pivot is this share of its diagonal depends on the others.
const DEPENDENT: f64 = 1e-13;
/// From this size on, the work is shared among threads.
const PARALLEL: usize = 600;
/// ... a product in so many parts.
const PARTS: usize = 16;
/// Rows that go through a product together.
const GROUP: usize = 4;

/// Why there is no inverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The matrix is singular to rounding.
    Singular,
    /// Its inertia is not what was wanted.
    Unwanted,
}

/// A block of B: a pivot, or [ p  s ; s  q ].
enum Block {
    One { k: usize, p: f64 },
    Two { k: usize, p: f64, q: f64, s: f64 },
}

impl Block {
    /// The block that begins at row `k`.
    fn at(k: usize, a: &[f64], beside: &[f64]) -> Block {
        let m = beside.len();
        let (p, s) = (a[k * m + k], beside[k]);
        if k + 1 < m && s != 0.0 { Block::Two { k, p, q: a[(k + 1) * m + k + 1], s } } else { Block::One { k, p } }
    }

    /// The row after it.
    fn end(&self) -> usize {
        match *self {
            Block::One { k, .. } => k + 1,
            Block::Two { k, .. } => k + 2,
        }
    }

    fn is_singular(&self, size: impl Fn(usize) -> f64) -> bool {
        match *self {
            Block::One { k, p } => is_below(DEPENDENT, p, size(k)),
            Block::Two { k, p, q, s } => is_below(DEPENDENT, p * q - s * s, size(k) * size(k + 1) + s * s),
        }
    }

    /// Numbers of positive and negative eigenvalues.
    fn signs(&self) -> (usize, usize) {
        match *self {
            Block::One { p, .. } => (usize::from(p > 0.0), usize::from(p < 0.0)),
            Block::Two { p, q, s, .. } if p * q - s * s < 0.0 => (1, 1),
            Block::Two { p, q, .. } => (2 * usize::from(p + q > 0.0), 2 * usize::from(p + q < 0.0)),
        }
    }
}

/// One more (or less) eigenvalue of the sign of `pivot`.
fn count(inertia: &mut (usize, usize), pivot: f64, by: isize) {
    let side = if pivot > 0.0 { &mut inertia.0 } else { &mut inertia.1 };
    if pivot != 0.0 {
        *side = side.wrapping_add_signed(by);
    }
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Inverse {
    m: usize,
    /// Distance between rows.
    stride: usize,
    /// The lower triangle, row-major.
    r: Vec<f64>,
    /// Numbers of positive and negative eigenvalues.
    inertia: (usize, usize),
    /// For the next inversion.
    work: Vec<f64>,
}

impl Inverse {
    /// Inverts `a` (row-major m², lower triangle), which is used up. Answers false, and holds zeros, if it is singular to
    /// rounding.
    pub fn invert(&mut self, a: &mut [f64], m: usize) -> bool {
        let sizes: Vec<f64> = (0..m).map(|k| a[k * m + k].abs()).collect();
        self.invert_if(a, &sizes, |_| true).is_ok()
    }

    /// The same with the sizes that pivots are judged by: those of what cancels in them, where the diagonal does not say. Of a
    /// matrix whose inertia is not wanted, that is all that is found.
    ///
    /// PAPᵀ = LBLᵀ with blocks of one or two rows in B; then L⁻¹, and A⁻¹ = Pᵀ L⁻ᵀ (B⁻¹L⁻¹) P: half of the work of solving for
    /// every column of the identity.
    pub fn invert_if(
        &mut self,
        a: &mut [f64],
        sizes: &[f64],
        wanted: impl FnOnce((usize, usize)) -> bool,
    ) -> Result<(), Refused> {
        let done = self.try_to_invert(a, sizes, wanted);
        if done == Err(Refused::Singular) {
            self.r.fill(0.0);
        }
        done
    }

    fn try_to_invert(
        &mut self,
        a: &mut [f64],
        sizes: &[f64],
        wanted: impl FnOnce((usize, usize)) -> bool,
    ) -> Result<(), Refused> {
        let m = sizes.len();
        (self.m, self.inertia) = (m, (0, 0));
        self.make_room(m);
        let parallel = if m < PARALLEL { Par::Seq } else { Par::rayon(0) };
        // By columns, L is stored where rows have their upper triangle.
        for i in 0..m {
            for j in 0..i {
                a[j * m + i] = a[i * m + j];
            }
        }
        let (mut order, mut place, mut beside) = (vec![0usize; m], vec![0usize; m], vec![0.0; m]);
        let mut scratch = MemBuffer::new(cholesky_in_place_scratch::<usize, f64>(m, parallel, Default::default()));
        cholesky_in_place(
            MatMut::from_column_major_slice_mut(a, m, m),
            DiagMut::from_slice_mut(&mut beside),
            &mut order,
            &mut place,
            parallel,
            MemStack::new(&mut scratch),
            Default::default(),
        );
        clean_vector_registers();
        let mut blocks = Vec::with_capacity(m);
        while blocks.last().map_or(0, Block::end) < m {
            let block = Block::at(blocks.last().map_or(0, Block::end), a, &beside);
            if block.is_singular(|k| sizes[order[k]]) {
                return Err(Refused::Singular);
            }
            let (positive, negative) = block.signs();
            self.inertia = (self.inertia.0 + positive, self.inertia.1 + negative);
            blocks.push(block);
        }
        if !wanted(self.inertia) {
            return Err(Refused::Unwanted);
        }
        self.work.resize(self.work.len().max(m * m), 0.0);
        let work = &mut self.work[..m * m];
        let l = MatRef::from_column_major_slice(a, m, m);
        invert_unit_lower_triangular(MatMut::from_column_major_slice_mut(work, m, m), l, parallel);
        clean_vector_registers();
        // B⁻¹L⁻¹ goes into the other triangle, row k of it into column k.
        for block in blocks {
            match block {
                Block::One { k, p } => {
                    for j in 0..k {
                        work[k * m + j] = work[j * m + k] / p;
                    }
                    work[k * m + k] = 1.0 / p;
                }
                Block::Two { k, p, q, s } => {
                    let det = p * q - s * s;
                    for j in 0..k {
                        let (x, y) = (work[j * m + k], work[j * m + k + 1]);
                        work[k * m + j] = (q * x - s * y) / det;
                        work[(k + 1) * m + j] = (p * y - s * x) / det;
                    }
                    work[k * m + k] = q / det;
                    work[(k + 1) * m + k] = -s / det;
                    work[(k + 1) * m + k + 1] = p / det;
                }
            }
        }
        let both = MatRef::from_row_major_slice(work, m, m);
        matmul(
            MatMut::from_column_major_slice_mut(a, m, m),
            BlockStructure::TriangularLower,
            Accum::Replace,
            both,
            BlockStructure::UnitTriangularUpper,
            both,
            BlockStructure::TriangularLower,
            1.0,
            parallel,
        );
        clean_vector_registers();
        for j in 0..m {
            for i in j..m {
                let (row, column) = (order[i].max(order[j]), order[i].min(order[j]));
                self.r[row * self.stride + column] = a[j * m + i];
            }
        }
        let sound = |k: usize| {
            let row = self.lower(k);
            row[k].abs() * sizes[k] <= 1.0 / DEPENDENT && row.iter().all(|v| v.is_finite())
        };
        if (0..m).all(sound) { Ok(()) } else { Err(Refused::Singular) }
    }

    /// Room for m rows and some more. What is there stays only as far as nobody reads it.
    fn make_room(&mut self, m: usize) {
        if m > self.stride || 2 * m + 16 < self.stride {
            self.stride = m + m / 4 + 16;
            self.r = vec![0.0; self.stride * self.stride];
            self.work = Vec::new();
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.m
    }

    /// Numbers of positive and negative eigenvalues of the matrix.
    pub fn inertia(&self) -> (usize, usize) {
        self.inertia
    }

    /// Row `k` up to the diagonal.
    #[inline(always)]
    fn lower(&self, k: usize) -> &[f64] {
        &self.r[k * self.stride..=k * self.stride + k]
    }

    /// Row `k` of the inverse.
    pub fn row(&self, k: usize) -> Vec<f64> {
        let mut row = self.lower(k).to_vec();
        row.extend((k + 1..self.m).map(|i| self.r[i * self.stride + k]));
        row
    }

    /// A⁻¹x.
    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        let part = |rows: Range<usize>| {
            let mut out = vec![0.0; self.m];
            Arch::new().dispatch(Product { inverse: self, rows, x, out: &mut out });
            out
        };
        if self.m < PARALLEL {
            return part(0..self.m);
        }
        // Rows become longer: parts of equal area, as many whatever the number of threads, so that sums do not depend on it.
        let edge = |k: usize| match k {
            PARTS => self.m,
            _ => (self.m as f64 * (k as f64 / PARTS as f64).sqrt()) as usize / GROUP * GROUP,
        };
        let sums: Vec<Vec<f64>> = (0..PARTS).into_par_iter().map(|k| part(edge(k)..edge(k + 1))).collect();
        sums.into_iter()
            .reduce(|mut a, b| {
                axpy(1.0, &b, &mut a);
                a
            })
            .unwrap_or_default()
    }

    /// A⁻¹ += factor · v vᵀ
    fn add_rank_one(&mut self, factor: f64, v: &[f64]) {
        let (m, stride) = (self.m, self.stride);
        let update = |(k, row): (usize, &mut [f64])| add_scaled(factor * v[k], v, &mut row[..=k]);
        if m < PARALLEL {
            self.r.chunks_mut(stride).take(m).enumerate().for_each(update);
        } else {
            self.r.par_chunks_mut(stride).take(m).enumerate().for_each(update);
        }
    }

    /// Adds a last row with entries `a` and the given diagonal. Answers false, and changes nothing, if the new matrix
    /// cannot be told from a singular one this way.
    #[must_use]
    pub fn insert(&mut self, a: &[f64], diagonal: f64) -> bool {
        self.insert_above(UNRELIABLE, a, diagonal, diagonal)
    }

    /// The same for a diagonal of 0, with the size that the Schur complement would have if nothing cancelled in it.
    #[must_use]
    pub fn insert_zero(&mut self, a: &[f64], size: f64) -> bool {
        self.insert_above(UNRELIABLE, a, 0.0, size)
    }

    /// The same unless the row depends on the others, however badly conditioned that makes the matrix; with the size of what
    /// cancels in the Schur complement.
    #[must_use]
    pub fn insert_unless_dependent(&mut self, a: &[f64], diagonal: f64, size: f64) -> bool {
        self.insert_above(DEPENDENT, a, diagonal, size)
    }

    fn insert_above(&mut self, share: f64, a: &[f64], diagonal: f64, size: f64) -> bool {
        let g = self.times(a);
        let cancelled = dot(a, &g);
        let schur = diagonal - cancelled;
        if is_below(share, schur, size.abs() + cancelled.abs()) {
            return false;
        }
        if self.m + 1 > self.stride {
            self.widen();
        }
        self.add_rank_one(1.0 / schur, &g);
        let (m, stride) = (self.m, self.stride);
        for (k, g) in g.iter().enumerate() {
            self.r[m * stride + k] = -g / schur;
        }
        self.r[m * stride + m] = 1.0 / schur;
        self.m += 1;
        count(&mut self.inertia, schur, 1);
        true
    }

    fn widen(&mut self) {
        let stride = self.stride + self.stride / 2 + 16;
        let mut r = vec![0.0; stride * stride];
        for k in 0..self.m {
            r[k * stride..=k * stride + k].copy_from_slice(self.lower(k));
        }
        (self.r, self.stride) = (r, stride);
    }

    /// Takes row `k` away; the last row takes its place. Answers false, and changes nothing, if what is left cannot be told
    /// from a singular matrix.
    #[must_use]
    pub fn swap_remove(&mut self, k: usize) -> bool {
        let v = self.row(k);
        let pivot = v[k];
        let largest = v.iter().fold(0.0f64, |a, x| a.max(x.abs()));
        if is_below(UNRELIABLE, pivot, largest) {
            return false;
        }
        self.add_rank_one(-1.0 / pivot, &v);
        count(&mut self.inertia, pivot, -1);
        let (last, stride) = (self.m - 1, self.stride);
        if k != last {
            let moved = self.lower(last).to_vec();
            self.r[k * stride..k * stride + k].copy_from_slice(&moved[..k]);
            self.r[k * stride + k] = moved[last];
            for i in k + 1..last {
                self.r[i * stride + k] = moved[i];
            }
        }
        self.m = last;
        true
    }

    /// Adds `delta` to diagonal entry `k`. Answers false, and changes nothing, if the result cannot be told from a
    /// singular matrix.
    #[must_use]
    pub fn change_diagonal(&mut self, k: usize, delta: f64) -> bool {
        let v = self.row(k);
        let along = v[k];
        self.change_along(delta, &v, along)
    }

    /// Adds `delta` x xᵀ, likewise.
    #[must_use]
    pub fn change_by(&mut self, delta: f64, x: &[f64]) -> bool {
        let v = self.times(x);
        let along = dot(x, &v);
        self.change_along(delta, &v, along)
    }

    /// Adds `delta` x xᵀ, given v = A⁻¹x and xᵀA⁻¹x.
    fn change_along(&mut self, delta: f64, v: &[f64], along: f64) -> bool {
        let ratio = 1.0 + delta * along;
        if is_below(UNRELIABLE, ratio, 1.0 + (delta * along).abs()) {
            return false;
        }
        self.add_rank_one(-delta / ratio, v);
        if ratio < 0.0 {
            count(&mut self.inertia, delta, 1);
            count(&mut self.inertia, -delta, -1);
        }
        true
    }
}

/// Adds to `out` what rows `rows` of the triangle stand for, times x: each entry serves twice, and four rows share what is
/// read of x and out.
struct Product<'a> {
    inverse: &'a Inverse,
    rows: Range<usize>,
    x: &'a [f64],
    out: &'a mut [f64],
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Product { inverse, rows, x, out } = self;
        let mut i = rows.start;
        while i < rows.end {
            let end = (i + GROUP).min(rows.end);
            if end == i + GROUP {
                let (p, p1) = S::as_simd_f64s(&inverse.lower(i)[..i]);
                let (q, q1) = S::as_simd_f64s(&inverse.lower(i + 1)[..i]);
                let (r, r1) = S::as_simd_f64s(&inverse.lower(i + 2)[..i]);
                let (s, s1) = S::as_simd_f64s(&inverse.lower(i + 3)[..i]);
                let (x0, x1) = S::as_simd_f64s(&x[..i]);
                let (out0, out1) = S::as_mut_simd_f64s(&mut out[..i]);
                let own = [x[i], x[i + 1], x[i + 2], x[i + 3]];
                let (a, b) = (simd.splat_f64s(own[0]), simd.splat_f64s(own[1]));
                let (c, d) = (simd.splat_f64s(own[2]), simd.splat_f64s(own[3]));
                let zero = simd.splat_f64s(0.0);
                let (mut e, mut f, mut g, mut h) = (zero, zero, zero, zero);
                for (((((p, q), r), s), x), out) in p.iter().zip(q).zip(r).zip(s).zip(x0).zip(out0) {
                    e = simd.mul_add_e_f64s(*p, *x, e);
                    f = simd.mul_add_e_f64s(*q, *x, f);
                    g = simd.mul_add_e_f64s(*r, *x, g);
                    h = simd.mul_add_e_f64s(*s, *x, h);
                    let half = simd.mul_add_e_f64s(b, *q, simd.mul_add_e_f64s(a, *p, *out));
                    *out = simd.mul_add_e_f64s(d, *s, simd.mul_add_e_f64s(c, *r, half));
                }
                let mut sums = [
                    simd.reduce_sum_f64s(e),
                    simd.reduce_sum_f64s(f),
                    simd.reduce_sum_f64s(g),
                    simd.reduce_sum_f64s(h),
                ];
                for k in 0..x1.len() {
                    let row = [p1[k], q1[k], r1[k], s1[k]];
                    for l in 0..GROUP {
                        sums[l] += row[l] * x1[k];
                        out1[k] += row[l] * own[l];
                    }
                }
                for l in 0..GROUP {
                    out[i + l] += sums[l];
                }
            } else {
                for k in i..end {
                    let row = &inverse.lower(k)[..i];
                    out[k] += dot(row, &x[..i]);
                    axpy(x[k], row, &mut out[..i]);
                }
            }
            // The block on the diagonal.
            for k in i..end {
                let row = inverse.lower(k);
                for j in i..k {
                    out[k] += row[j] * x[j];
                    out[j] += row[j] * x[k];
                }
                out[k] += row[k] * x[k];
            }
            i = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    /// A symmetric matrix with eigenvalues of both signs.
    fn matrix(m: usize) -> Vec<f64> {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(m as u64);
        let mut a = vec![0.0; m * m];
        for i in 0..m {
            for j in 0..=i {
                let v = rng.random::<f64>() - 0.5 + if i == j && i % 3 == 0 { 2.0 } else { 0.0 };
                (a[i * m + j], a[j * m + i]) = (v, v);
            }
        }
        a
    }

    fn part(a: &[f64], m: usize, keep: &[usize]) -> Vec<f64> {
        keep.iter().flat_map(|&i| keep.iter().map(move |&j| a[i * m + j])).collect()
    }

    fn assert_same(found: &Inverse, a: &[f64], m: usize) {
        let mut fresh = Inverse::default();
        assert!(fresh.invert(&mut a.to_vec(), m));
        assert_eq!(found.inertia(), fresh.inertia());
        for k in 0..m {
            for (x, y) in found.row(k).into_iter().zip(fresh.row(k)) {
                assert!((x - y).abs() < 1e-8 * (1.0 + y.abs()), "{x} against {y}");
            }
        }
    }

    #[test]
    fn changes_keep_the_inverse_and_the_inertia() {
        let m = 40;
        let mut a = matrix(m);
        let mut kept: Vec<usize> = (0..10).collect();
        let mut inverse = Inverse::default();
        assert!(inverse.invert(&mut part(&a, m, &kept), 10));
        for i in 10..m {
            let column: Vec<f64> = kept.iter().map(|&k| a[i * m + k]).collect();
            assert!(inverse.insert(&column, a[i * m + i]));
            kept.push(i);
        }
        assert_same(&inverse, &part(&a, m, &kept), m);
        for (k, delta) in [(3, 1.7), (8, -2.9), (0, -4.0), (21, 0.4)] {
            assert!(inverse.change_diagonal(k, delta));
            a[k * m + k] += delta;
        }
        assert_same(&inverse, &part(&a, m, &kept), m);
        let v: Vec<f64> = (0..m).map(|k| (k as f64).cos()).collect();
        for delta in [-0.8, 3.0] {
            assert!(inverse.change_by(delta, &v));
            (0..m * m).for_each(|k| a[k] += delta * v[k / m] * v[k % m]);
            assert_same(&inverse, &part(&a, m, &kept), m);
        }
        for k in [5, 0, 30, 36] {
            assert!(inverse.swap_remove(k));
            kept.swap_remove(k);
        }
        assert_same(&inverse, &part(&a, m, &kept), kept.len());
        let x: Vec<f64> = (0..kept.len()).map(|k| k as f64).collect();
        let y = inverse.times(&x);
        let back: Vec<f64> = kept.iter().map(|&i| kept.iter().zip(&y).map(|(&j, y)| a[i * m + j] * y).sum()).collect();
        assert!(back.iter().zip(&x).all(|(b, x)| (b - x).abs() < 1e-9));
    }

    #[test]
    fn a_shared_product_is_the_same_for_any_number_of_threads() {
        let m = PARALLEL + 1;
        let mut a = matrix(m);
        let mut inverse = Inverse::default();
        assert!(inverse.invert(&mut a, m));
        let x: Vec<f64> = (0..m).map(|k| (k as f64).cos()).collect();
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| inverse.times(&x))
        };
        let found = with(1);
        assert_eq!(found, with(3));
        for (k, found) in found.iter().enumerate() {
            let expected = dot(&inverse.row(k), &x);
            assert!((found - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{found} against {expected}");
        }
    }

    #[test]
    fn a_repeated_row_under_a_border_is_refused() {
        // A kernel matrix of twelve points, two of them twice, under a border of ones.
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        for _ in 0..50 {
            let mut points: Vec<[f64; 3]> = (0..12).map(|_| [0; 3].map(|_| 2.0 * rng.random::<f64>() - 1.0)).collect();
            (points[7], points[10]) = (points[2], points[5]);
            let kernel = |p: &[f64; 3], q: &[f64; 3]| (-0.7 * (0..3).map(|k| (p[k] - q[k]).powi(2)).sum::<f64>()).exp();
            let m = points.len() + 1;
            let mut a = vec![1.0; m * m];
            a[0] = 0.0;
            for (i, p) in points.iter().enumerate() {
                for (j, q) in points.iter().enumerate() {
                    a[(i + 1) * m + j + 1] = kernel(p, q);
                }
            }
            let mut inverse = Inverse::default();
            assert!(!inverse.invert(&mut a, m));
        }
    }

    #[test]
    fn an_unwanted_inertia_is_all_that_is_found() {
        let m = 9;
        let mut inverse = Inverse::default();
        assert!(inverse.invert(&mut matrix(m), m));
        let found = inverse.inertia();
        let sizes = vec![1.0; m];
        let refused = inverse.invert_if(&mut matrix(m), &sizes, |inertia| inertia != found);
        assert_eq!((refused, inverse.inertia()), (Err(Refused::Unwanted), found));
        assert_eq!(inverse.invert_if(&mut matrix(m), &sizes, |inertia| inertia == found), Ok(()));
        assert_same(&inverse, &matrix(m), m);
    }

    #[test]
    fn a_dependent_row_is_refused() {
        let mut inverse = Inverse::default();
        assert!(inverse.invert(&mut [2.0, 0.5, 0.5, 1.0], 2));
        assert!(!inverse.insert(&[2.0, 0.5], 2.0));
        assert_eq!(inverse.len(), 2);
        assert!(!Inverse::default().invert(&mut [1.0, 1.0, 1.0, 1.0], 2));
    }
}
