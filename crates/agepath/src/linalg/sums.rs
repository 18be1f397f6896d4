//! Sums over rows that are stored by columns, in vectors as wide as the processor has them.

use pulp::{Arch, Simd, WithSimd};

/// Rows handled together, so that what is read several times stays in the nearest cache.
const BLOCK: usize = 512;

/// Σ |a_i|
pub fn sum_of_sizes(a: &[f64]) -> f64 {
    Arch::new().dispatch(SumOfSizes { a })
}

/// The smallest of some numbers; infinite if there are none.
pub fn smallest(a: &[f64]) -> f64 {
    Arch::new().dispatch(Smallest { a })
}

/// z = Σ_j θ_j x_j over the columns x_j = `column(j)`; those with θ_j = 0 are not read.
pub fn combine<'a>(theta: &[f64], column: impl Fn(usize) -> &'a [f64], z: &mut [f64]) {
    let active: Vec<usize> = (0..theta.len()).filter(|&j| theta[j] != 0.0).collect();
    Arch::new().dispatch(Combine { theta, active: &active, column, z });
}

/// g_j += x_jᵀψ over the columns x_j = `column(j)`.
pub fn accumulate<'a>(psi: &[f64], column: impl Fn(usize) -> &'a [f64], g: &mut [f64]) {
    Arch::new().dispatch(Accumulate { psi, column, g });
}

/// Lower triangle of `out` (row-major m²) += Aᵀ diag(h) A for a matrix A of few columns, `column(0..m)`.
pub fn add_small_gram<'a>(h: &[f64], m: usize, column: impl Fn(usize) -> &'a [f64], out: &mut [f64]) {
    Arch::new().dispatch(SmallGram { h, m, column, out });
}

/// a_pᵀb_q for P × Q pairs at once: what is read serves several products, and that many sums hide each other's latency.
#[inline(always)]
fn products<S: Simd, const P: usize, const Q: usize>(simd: S, a: [&[f64]; P], b: [&[f64]; Q]) -> [[f64; Q]; P] {
    let n = b[0].len();
    let vectors = n / S::F64_LANES;
    let (a, b) = (a.map(|a| &a[..n]), b.map(|b| &b[..n]));
    let (wide_a, wide_b) = (a.map(|a| &S::as_simd_f64s(a).0[..vectors]), b.map(|b| &S::as_simd_f64s(b).0[..vectors]));
    let mut sums = [[simd.splat_f64s(0.0); Q]; P];
    for i in 0..vectors {
        for p in 0..P {
            let left = wide_a[p][i];
            for q in 0..Q {
                sums[p][q] = simd.mul_add_e_f64s(left, wide_b[q][i], sums[p][q]);
            }
        }
    }
    let mut out = [[0.0; Q]; P];
    for p in 0..P {
        for q in 0..Q {
            out[p][q] = simd.reduce_sum_f64s(sums[p][q]);
            for i in vectors * S::F64_LANES..n {
                out[p][q] += a[p][i] * b[q][i];
            }
        }
    }
    out
}

/// z += Σ θ_k x_k
#[inline(always)]
fn add_columns<S: Simd, const K: usize>(simd: S, theta: [f64; K], x: [&[f64]; K], z: &mut [f64]) {
    let n = z.len();
    let x = x.map(|x| &x[..n]);
    let (wide_z, rest) = S::as_mut_simd_f64s(z);
    let wide_x = x.map(|x| &S::as_simd_f64s(x).0[..wide_z.len()]);
    let factors = theta.map(|t| simd.splat_f64s(t));
    for (i, z) in wide_z.iter_mut().enumerate() {
        for k in 0..K {
            *z = simd.mul_add_e_f64s(factors[k], wide_x[k][i], *z);
        }
    }
    let done = n - rest.len();
    for (i, z) in rest.iter_mut().enumerate() {
        for k in 0..K {
            *z += theta[k] * x[k][done + i];
        }
    }
}

struct SumOfSizes<'a> {
    a: &'a [f64],
}

impl WithSimd for SumOfSizes<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let (wide, rest) = S::as_simd_f64s(self.a);
        let mut sums = [simd.splat_f64s(0.0); 4];
        let mut fours = wide.chunks_exact(4);
        for four in &mut fours {
            for k in 0..4 {
                sums[k] = simd.add_f64s(sums[k], simd.abs_f64s(four[k]));
            }
        }
        for &a in fours.remainder() {
            sums[0] = simd.add_f64s(sums[0], simd.abs_f64s(a));
        }
        let sum = simd.add_f64s(simd.add_f64s(sums[0], sums[1]), simd.add_f64s(sums[2], sums[3]));
        simd.reduce_sum_f64s(sum) + rest.iter().map(|a| a.abs()).sum::<f64>()
    }
}

struct Smallest<'a> {
    a: &'a [f64],
}

impl WithSimd for Smallest<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let (wide, rest) = S::as_simd_f64s(self.a);
        let mut least = [simd.splat_f64s(f64::INFINITY); 4];
        let mut fours = wide.chunks_exact(4);
        for four in &mut fours {
            for k in 0..4 {
                least[k] = simd.min_f64s(least[k], four[k]);
            }
        }
        for &a in fours.remainder() {
            least[0] = simd.min_f64s(least[0], a);
        }
        let least = simd.min_f64s(simd.min_f64s(least[0], least[1]), simd.min_f64s(least[2], least[3]));
        rest.iter().copied().fold(simd.reduce_min_f64s(least), f64::min)
    }
}

struct Combine<'t, F> {
    theta: &'t [f64],
    active: &'t [usize],
    column: F,
    z: &'t mut [f64],
}

impl<'a, F: Fn(usize) -> &'a [f64]> WithSimd for Combine<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for (b, z) in self.z.chunks_mut(BLOCK).enumerate() {
            z.fill(0.0);
            let (first, rows) = (b * BLOCK, z.len());
            let part = |j: usize| &(self.column)(j)[first..first + rows];
            let mut fours = self.active.chunks_exact(4);
            for j in &mut fours {
                let j = [j[0], j[1], j[2], j[3]];
                add_columns(simd, j.map(|j| self.theta[j]), j.map(part), z);
            }
            for &j in fours.remainder() {
                add_columns(simd, [self.theta[j]], [part(j)], z);
            }
        }
    }
}

struct Accumulate<'t, F> {
    psi: &'t [f64],
    column: F,
    g: &'t mut [f64],
}

impl<'a, F: Fn(usize) -> &'a [f64]> WithSimd for Accumulate<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let m = self.g.len();
        for (b, psi) in self.psi.chunks(BLOCK).enumerate() {
            let part = |j: usize| &(self.column)(j)[b * BLOCK..b * BLOCK + psi.len()];
            for (k, g) in self.g.chunks_mut(4).enumerate() {
                // What sticks out beyond the last column repeats it and is left.
                let [sums] = products(simd, [psi], [0, 1, 2, 3].map(|q| part((4 * k + q).min(m - 1))));
                g.iter_mut().zip(sums).for_each(|(g, sum)| *g += sum);
            }
        }
    }
}

struct SmallGram<'t, F> {
    h: &'t [f64],
    m: usize,
    column: F,
    out: &'t mut [f64],
}

impl<'a, F: Fn(usize) -> &'a [f64]> WithSimd for SmallGram<'_, F> {
    type Output = ();

    /// Two rows of the result by four columns at a time.
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let m = self.m;
        let mut scaled = [[0.0; BLOCK]; 2];
        for (b, h) in self.h.chunks(BLOCK).enumerate() {
            let part = |p: usize| &(self.column)(p.min(m - 1))[b * BLOCK..b * BLOCK + h.len()];
            for p in (0..m).step_by(2) {
                for (r, scaled) in scaled.iter_mut().enumerate() {
                    super::multiply(h, part(p + r), &mut scaled[..h.len()]);
                }
                let rows = scaled.each_ref().map(|s| &s[..h.len()]);
                for q in (0..m.min(p + 2)).step_by(4) {
                    let sums = products(simd, rows, [0, 1, 2, 3].map(|k| part(q + k)));
                    for (r, sums) in sums.iter().enumerate().take(m - p) {
                        for (k, sum) in sums.iter().enumerate().take(p + r + 1 - q) {
                            self.out[(p + r) * m + q + k] += sum;
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_width_gives_the_plain_sum() {
        for n in [0, 1, 7, 64, 513, 1100] {
            for m in [1, 2, 3, 4, 5, 11] {
                let value = |i: usize, j: usize| ((i * 7 + j * 13) % 11) as f64 - 4.5;
                let columns: Vec<Vec<f64>> = (0..m).map(|j| (0..n).map(|i| value(i, j)).collect()).collect();
                let column = |j: usize| columns[j].as_slice();
                let h: Vec<f64> = (0..n).map(|i| (i % 5) as f64 - 1.5).collect();
                let theta: Vec<f64> = (0..m).map(|j| if j == 1 { 0.0 } else { j as f64 - 2.25 }).collect();
                // Multiples of 1/16 of moderate size: every order of summation gives the same number.
                assert_eq!(sum_of_sizes(&h), h.iter().map(|h| h.abs()).sum::<f64>());
                assert_eq!(smallest(&h), h.iter().copied().fold(f64::INFINITY, f64::min));
                let mut z = vec![9.0; n];
                combine(&theta, column, &mut z);
                let plain = |i: usize| (0..m).map(|j| theta[j] * columns[j][i]).sum::<f64>();
                assert!((0..n).all(|i| z[i] == plain(i)));
                let (mut g, mut a) = (vec![1.0; m], vec![2.0; m * m]);
                accumulate(&h, column, &mut g);
                add_small_gram(&h, m, column, &mut a);
                for p in 0..m {
                    assert_eq!(g[p], 1.0 + (0..n).map(|i| h[i] * columns[p][i]).sum::<f64>());
                    for q in 0..m {
                        let sum: f64 = (0..n).map(|i| h[i] * columns[p][i] * columns[q][i]).sum();
                        assert_eq!(a[p * m + q], 2.0 + if q <= p { sum } else { 0.0 }, "{n} {m} {p} {q}");
                    }
                }
            }
        }
    }
}
