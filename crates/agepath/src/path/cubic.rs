//! The third-order term of the far rows: C(ε) = (1/6) Σ_i ψ''_i (x_iᵀε)³.
//!
//! Where a sample crosses a threshold the path has a kink, and the smooth reference curve of a window misses it by a
//! small ε. The first-order model of the far rows is then wrong by ½ Σ ψ''(xᵀε)² x; with this term the error is of third
//! order, which is what lets one window cross hundreds of kinks.

use crate::linalg::{axpy, multiply};
use crate::space::Dense;

/// Symmetric tensor, entries p ≥ q ≥ r, each divided by the symmetry of its indices so that C is a plain sum.
#[derive(Debug, Clone)]
pub(crate) struct Cubic {
    m: usize,
    /// For p = 0, 1, …: a (p+1)² square of which the lower triangle is used.
    blocks: Vec<Vec<f64>>,
}

impl Cubic {
    /// Sums over the rows of `x` with third derivatives `psi2`.
    pub fn new(x: &Dense, psi2: &[f64]) -> Cubic {
        let m = x.cols();
        let columns: Vec<usize> = (0..m).collect();
        let mut blocks: Vec<Vec<f64>> = (0..m).map(|p| vec![0.0; (p + 1) * (p + 1)]).collect();
        let mut weights = vec![0.0; x.rows()];
        for (p, block) in blocks.iter_mut().enumerate() {
            multiply(psi2, x.column(p), &mut weights);
            x.gram(&weights, &columns[..=p], block);
            for q in 0..=p {
                for r in 0..=q {
                    block[q * (p + 1) + r] *= match (p == q, q == r) {
                        (true, true) => 1.0 / 6.0,
                        (false, false) => 1.0,
                        _ => 0.5,
                    };
                }
            }
        }
        Cubic { m, blocks }
    }

    /// Adds ∇C(ε) to `gradient` and answers C(ε).
    pub fn add_gradient(&self, e: &[f64], gradient: &mut [f64]) -> f64 {
        let mut value = 0.0;
        for p in 0..self.m {
            if e[p] == 0.0 {
                // Terms with e_p to the first power still pull on p.
                let mut pull = 0.0;
                for q in 0..p {
                    let row = &self.blocks[p][q * (p + 1)..q * (p + 1) + q + 1];
                    pull += e[q] * crate::linalg::dot(row, &e[..=q]);
                }
                gradient[p] += pull;
                continue;
            }
            for q in 0..=p {
                let row = &self.blocks[p][q * (p + 1)..q * (p + 1) + q + 1];
                let inner = crate::linalg::dot(row, &e[..=q]);
                value += e[p] * e[q] * inner;
                gradient[p] += e[q] * inner;
                gradient[q] += e[p] * inner;
                axpy(e[p] * e[q], row, &mut gradient[..=q]);
            }
        }
        value
    }

    /// Adds ∇²C(ε) to the lower triangle `hessian`.
    pub fn add_hessian(&self, e: &[f64], hessian: &mut [f64]) {
        let m = self.m;
        let mut add = |i: usize, j: usize, v: f64| {
            // Each unordered pair is one lower entry; a pair of equal indices counts twice on the diagonal.
            hessian[i.max(j) * m + i.min(j)] += if i == j { 2.0 * v } else { v };
        };
        for p in 0..m {
            for q in 0..=p {
                for r in 0..=q {
                    let c = self.blocks[p][q * (p + 1) + r];
                    add(p, q, c * e[r]);
                    add(p, r, c * e[q]);
                    add(q, r, c * e[p]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn value_gradient_and_hessian_are_those_of_the_sum() {
        let (n, m) = (300, 5);
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(2);
        let data: Vec<f64> = (0..n * m).map(|_| rng.random::<f64>() - 0.4).collect();
        let psi2: Vec<f64> = (0..n).map(|_| rng.random::<f64>() - 0.5).collect();
        let x = Dense::from_rows(n, m, &data);
        let cubic = Cubic::new(&x, &psi2);
        for e in [[0.1, -0.2, 0.05, 0.3, -0.4], [0.1, 0.0, 0.05, 0.0, -0.4]] {
            let along: Vec<f64> = (0..n).map(|i| crate::linalg::dot(&data[i * m..(i + 1) * m], &e)).collect();
            let want: f64 = along.iter().zip(&psi2).map(|(z, c)| c * z.powi(3) / 6.0).sum();
            let mut gradient = vec![0.0; m];
            let value = cubic.add_gradient(&e, &mut gradient);
            assert!((value - want).abs() < 1e-12);
            let mut hessian = vec![0.0; m * m];
            cubic.add_hessian(&e, &mut hessian);
            for j in 0..m {
                let g: f64 = (0..n).map(|i| 0.5 * psi2[i] * along[i].powi(2) * data[i * m + j]).sum();
                assert!((gradient[j] - g).abs() < 1e-12, "gradient {j}");
                for k in 0..=j {
                    let h: f64 = (0..n).map(|i| psi2[i] * along[i] * data[i * m + j] * data[i * m + k]).sum();
                    assert!((hessian[j * m + k] - h).abs() < 1e-12, "hessian {j} {k}");
                }
            }
        }
    }
}
