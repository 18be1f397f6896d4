//! Least-squares support vector machines with an RBF kernel, plain and made robust in two ways. Targets are real numbers, or
//! −1 and +1, and z = Σ α_i k(x_i, ·) + b solves
//!
//! [ 0  1ᵀ ; 1  K + diag(1/(C w)) ] (b, α) = (0, t):  minimise ½‖f‖² + ½ C Σ w (t − z)².

use super::{Baseline, Outcome, Task};
use crate::dataset::{Matrix, median};
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Definiteness, dot};
use crate::prepare::Prepared;
use crate::space::{Gram, Kernel, KernelParameters};

/// The machine with its factor: solving for other targets is cheap.
pub(super) struct Machine {
    factor: Cholesky,
    /// A⁻¹1 with A = K + diag(1/(C w)).
    ones: Vec<f64>,
}

/// Weights below this count as this: a weight of 0 would make the diagonal infinite.
const LEAST_WEIGHT: f64 = 1e-6;

impl Machine {
    /// `gram` is row-major, n × n.
    pub(super) fn new(gram: &[f64], c: f64, weights: &[f64]) -> Result<Machine> {
        let n = weights.len();
        let mut a = gram.to_vec();
        for i in 0..n {
            a[i * n + i] += 1.0 / (c * weights[i].max(LEAST_WEIGHT));
        }
        let diagonal: Vec<f64> = (0..n).map(|i| a[i * n + i]).collect();
        let mut factor = Cholesky::default();
        if factor.factor(&a, &diagonal) == Definiteness::Indefinite {
            let reason = crate::error::Breakdown::Stalled;
            return Err(Error::NoSolution { age: f64::INFINITY, reason });
        }
        let mut ones = vec![1.0; n];
        factor.solve(&mut ones);
        Ok(Machine { factor, ones })
    }

    /// α and b for targets t.
    pub(super) fn solve(&self, t: &[f64]) -> (Vec<f64>, f64) {
        let mut alpha = t.to_vec();
        self.factor.solve(&mut alpha);
        let b = alpha.iter().sum::<f64>() / self.ones.iter().sum::<f64>();
        alpha.iter_mut().zip(&self.ones).for_each(|(a, o)| *a -= b * o);
        (alpha, b)
    }
}

/// z = Kα + b, K given row by row.
fn predict(rows: &[f64], alpha: &[f64], b: f64) -> Vec<f64> {
    rows.chunks_exact(alpha.len().max(1)).map(|row| dot(row, alpha) + b).collect()
}

/// The kernel matrix of the training rows and that of other rows against them, both row by row. The kernel is the problem's, or
/// RBF if it has none.
pub(super) struct Kernels {
    pub train: Vec<f64>,
    pub test: Vec<f64>,
}

impl Kernels {
    pub(super) fn new(prepared: &Prepared, rows: &Matrix) -> Result<Kernels> {
        let kernel = match prepared.spec.kernel {
            Some(kernel) => kernel,
            None => Kernel::by_name("rbf", &KernelParameters::default())?,
        };
        let gram =
            Gram::new(&prepared.scaling.design(prepared.train.matrix(), false)?, kernel, prepared.train.weights())?;
        let train = (0..gram.len()).flat_map(|i| gram.column(i).to_vec()).collect();
        let test = prepared.scaling.design(rows, false)?;
        let every = |count: usize| (0..count).collect::<Vec<_>>();
        let test = gram.cross(&test.select(&every(test.rows()), &every(test.cols())))?;
        Ok(Kernels { train, test })
    }
}

fn score(task: &Task, z: &[f64]) -> Result<Outcome> {
    Ok(Outcome::plain(task.test_rows(&task.all)?.score(z)))
}

/// The plain machine.
#[derive(Debug, Clone, Copy)]
pub struct LsSvm {
    /// Default 1.
    pub c: f64,
}

impl Default for LsSvm {
    fn default() -> Self {
        LsSvm { c: 1.0 }
    }
}

impl LsSvm {
    /// The predictors of some rows, in the solver's units.
    pub fn predict(&self, prepared: &Prepared, rows: &Matrix) -> Result<Vec<f64>> {
        let kernels = Kernels::new(prepared, rows)?;
        let y = prepared.problem.target();
        let (alpha, b) = Machine::new(&kernels.train, self.c, &vec![1.0; y.len()])?.solve(y);
        Ok(predict(&kernels.test, &alpha, b))
    }
}

impl Baseline for LsSvm {
    fn name(&self) -> &'static str {
        "ls-svm"
    }

    fn summary(&self) -> &'static str {
        "least-squares SVM, RBF kernel"
    }

    fn run(&self, task: &Task) -> Result<Outcome> {
        score(task, &self.predict(&task.all, task.test.matrix())?)
    }
}

/// The truncated squared loss min(r², τ²), minimised by the concave–convex procedure: the concave part is replaced by its
/// tangent, which amounts to giving rows with |r| > τ their own prediction as target. The matrix never changes.
#[derive(Debug, Clone, Copy)]
pub struct RLsSvm {
    /// Default 1.
    pub c: f64,
    /// τ. Default 1.5: half-way between a right and a wrong class, and 1.5 robust sigmas of a scaled target.
    pub truncation: f64,
}

impl Default for RLsSvm {
    fn default() -> Self {
        RLsSvm { c: 1.0, truncation: 1.5 }
    }
}

const MAX_ROUNDS: usize = 500;
const SETTLED: f64 = 1e-10;

impl RLsSvm {
    /// The predictors of some rows, in the solver's units.
    pub fn predict(&self, prepared: &Prepared, rows: &Matrix) -> Result<Vec<f64>> {
        let kernels = Kernels::new(prepared, rows)?;
        let (alpha, b, _) = self.fit(&kernels.train, prepared.problem.target())?;
        Ok(predict(&kernels.test, &alpha, b))
    }

    /// α and b, and the truncated objective after each round.
    fn fit(&self, gram: &[f64], y: &[f64]) -> Result<(Vec<f64>, f64, Vec<f64>)> {
        let machine = Machine::new(gram, self.c, &vec![1.0; y.len()])?;
        let (mut alpha, mut b) = machine.solve(y);
        let mut objective = Vec::new();
        for _ in 0..MAX_ROUNDS {
            let z = predict(gram, &alpha, b);
            let norm: f64 = z.iter().zip(&alpha).map(|(z, a)| a * (z - b)).sum();
            let loss: f64 = z.iter().zip(y).map(|(z, y)| (y - z).powi(2).min(self.truncation.powi(2))).sum();
            objective.push(0.5 * norm + 0.5 * self.c * loss);
            let t: Vec<f64> =
                z.iter().zip(y).map(|(&z, &y)| if (y - z).abs() > self.truncation { z } else { y }).collect();
            let (next, offset) = machine.solve(&t);
            let moved = next.iter().zip(&alpha).map(|(a, b)| (a - b).abs()).fold((offset - b).abs(), f64::max);
            (alpha, b) = (next, offset);
            if moved < SETTLED {
                break;
            }
        }
        Ok((alpha, b, objective))
    }
}

impl Baseline for RLsSvm {
    fn name(&self) -> &'static str {
        "rls-svm"
    }

    fn summary(&self) -> &'static str {
        "least-squares SVM with the truncated squared loss (CCCP), RBF kernel"
    }

    fn run(&self, task: &Task) -> Result<Outcome> {
        score(task, &self.predict(&task.all, task.test.matrix())?)
    }
}

/// Started from least trimmed squares, then re-weighted once by standardised residuals.
#[derive(Debug, Clone, Copy)]
pub struct ReLsSvm {
    /// Default 1.
    pub c: f64,
    /// The share of rows that least trimmed squares keeps. Default 0.7.
    pub kept: f64,
}

impl Default for ReLsSvm {
    fn default() -> Self {
        ReLsSvm { c: 1.0, kept: 0.7 }
    }
}

/// Standardised residuals up to the first count fully, from the second on next to nothing, linearly in between.
const FULL_UNTIL: f64 = 2.5;
const NOTHING_FROM: f64 = 3.0;
const MAD_TO_SIGMA: f64 = 1.4826;

impl ReLsSvm {
    /// The predictors of some rows, in the solver's units.
    pub fn predict(&self, prepared: &Prepared, rows: &Matrix) -> Result<Vec<f64>> {
        let kernels = Kernels::new(prepared, rows)?;
        let (alpha, b) = self.fit(&kernels.train, prepared.problem.target())?;
        Ok(predict(&kernels.test, &alpha, b))
    }

    fn fit(&self, gram: &[f64], y: &[f64]) -> Result<(Vec<f64>, f64)> {
        let n = y.len();
        let kept = ((self.kept * n as f64).round() as usize).clamp(1, n);
        let mut weights = vec![1.0; n];
        let (mut alpha, mut b) = Machine::new(gram, self.c, &weights)?.solve(y);
        let residuals = |alpha: &[f64], b: f64| -> Vec<f64> {
            predict(gram, alpha, b).iter().zip(y).map(|(z, y)| (y - z).abs()).collect()
        };
        for _ in 0..MAX_ROUNDS {
            let r = residuals(&alpha, b);
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by(|&i, &j| r[i].total_cmp(&r[j]));
            let mut next = vec![0.0; n];
            order[..kept].iter().for_each(|&i| next[i] = 1.0);
            if next == weights {
                break;
            }
            weights = next;
            (alpha, b) = Machine::new(gram, self.c, &weights)?.solve(y);
        }
        let r = residuals(&alpha, b);
        let sigma = MAD_TO_SIGMA * median((0..n).filter(|&i| weights[i] > 0.0).map(|i| r[i]).collect());
        if sigma > 0.0 {
            let weight = |r: f64| ((NOTHING_FROM - r / sigma) / (NOTHING_FROM - FULL_UNTIL)).clamp(0.0, 1.0);
            let weights: Vec<f64> = r.iter().map(|&r| weight(r)).collect();
            (alpha, b) = Machine::new(gram, self.c, &weights)?.solve(y);
        }
        Ok((alpha, b))
    }
}

impl Baseline for ReLsSvm {
    fn name(&self) -> &'static str {
        "re-ls-svm"
    }

    fn summary(&self) -> &'static str {
        "re-weighted least-squares SVM started from least trimmed squares, RBF kernel"
    }

    fn run(&self, task: &Task) -> Result<Outcome> {
        score(task, &self.predict(&task.all, task.test.matrix())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With K = I everything is known in closed form: α = (t − b)/(1 + 1/C), b the mean of t.
    #[test]
    fn the_plain_machine_by_hand() {
        let gram = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        let (alpha, b) = Machine::new(&gram, 1.0, &[1.0; 3]).unwrap().solve(&[1.0, 2.0, 6.0]);
        assert!((b - 3.0).abs() < 1e-12);
        for (a, t) in alpha.iter().zip([1.0, 2.0, 6.0]) {
            assert!((a - (t - 3.0) / 2.0).abs() < 1e-12);
        }
    }

    /// A line through the origin (K = xxᵀ) with one wrong row: the robust machines ignore it, the plain one does not.
    #[test]
    fn a_wrong_row_is_ignored() {
        let x: Vec<f64> = (0..12).map(|i| f64::from(i) / 6.0 - 1.0).collect();
        let mut y: Vec<f64> = x.iter().map(|x| 2.0 * x).collect();
        y[11] = -30.0;
        let gram: Vec<f64> = (0..144).map(|k| x[k / 12] * x[k % 12]).collect();
        let slope = |alpha: &[f64]| alpha.iter().zip(&x).map(|(a, x)| a * x).sum::<f64>();
        let plain = Machine::new(&gram, 1e4, &[1.0; 12]).unwrap().solve(&y).0;
        assert!((slope(&plain) - 2.0).abs() > 2.0);
        let (alpha, _, objective) = RLsSvm { c: 1e4, truncation: 12.0 }.fit(&gram, &y).unwrap();
        assert!((slope(&alpha) - 2.0).abs() < 1e-3, "{}", slope(&alpha));
        assert!(objective.windows(2).all(|w| w[1] <= w[0] * (1.0 + 1e-9)), "{objective:?}");
        let (alpha, _) = ReLsSvm { c: 1e4, kept: 0.7 }.fit(&gram, &y).unwrap();
        assert!((slope(&alpha) - 2.0).abs() < 1e-3, "{}", slope(&alpha));
    }
}
