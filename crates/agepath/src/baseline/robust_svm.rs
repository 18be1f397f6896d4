//! An SVM for labels of which each is flipped with probability μ: the expected kernel matrix under such flips has its
//! off-diagonal entries times 1 − 4μ(1 − μ). The dual is solved by pairs of most violating coordinates.

use super::lssvm::Kernels;
use super::{Baseline, Outcome, Task};
use crate::dataset::Matrix;
use crate::error::Result;
use crate::linalg::dot;
use crate::loss::TargetKind;
use crate::prepare::Prepared;

/// The corrected machine with an RBF kernel.
#[derive(Debug, Clone, Copy)]
pub struct RobustSvm {
    /// Default 1.
    pub c: f64,
    /// μ. Default 0.1.
    pub flips: f64,
}

impl Default for RobustSvm {
    fn default() -> Self {
        RobustSvm { c: 1.0, flips: 0.1 }
    }
}

/// Stop when no pair of coordinates violates the optimality conditions by more.
const TOLERANCE: f64 = 1e-6;

/// Pairs per row before giving up; what is reached by then is used.
const MAX_PAIRS_PER_ROW: usize = 1000;

/// β = y∘α and b of the dual with K's off-diagonal entries times 1 − 4μ(1 − μ); `gram` is row-major.
pub fn robust_svm(gram: &[f64], y: &[f64], c: f64, flips: f64) -> (Vec<f64>, f64) {
    let n = y.len();
    let factor = 1.0 - 4.0 * flips * (1.0 - flips);
    let q = |i: usize, j: usize| y[i] * y[j] * gram[i * n + j] * if i == j { 1.0 } else { factor };
    let mut alpha = vec![0.0; n];
    let mut gradient = vec![-1.0; n];
    let (mut high, mut low) = (0.0, 0.0);
    for _ in 0..MAX_PAIRS_PER_ROW * n {
        let up = |i: &usize| if y[*i] > 0.0 { alpha[*i] < c } else { alpha[*i] > 0.0 };
        let down = |i: &usize| if y[*i] > 0.0 { alpha[*i] > 0.0 } else { alpha[*i] < c };
        let value = |i: usize| -y[i] * gradient[i];
        let i = (0..n).filter(up).max_by(|&a, &b| value(a).total_cmp(&value(b)));
        let j = (0..n).filter(down).min_by(|&a, &b| value(a).total_cmp(&value(b)));
        let (Some(i), Some(j)) = (i, j) else { break };
        (high, low) = (value(i), value(j));
        if high - low < TOLERANCE {
            break;
        }
        // Along y_i, −y_j the dual is a parabola.
        let curvature = q(i, i) + q(j, j) - 2.0 * y[i] * y[j] * q(i, j);
        let mut step = (high - low) / curvature.max(1e-12);
        step = step.min(if y[i] > 0.0 { c - alpha[i] } else { alpha[i] });
        step = step.min(if y[j] > 0.0 { alpha[j] } else { c - alpha[j] });
        alpha[i] = (alpha[i] + y[i] * step).clamp(0.0, c);
        alpha[j] = (alpha[j] - y[j] * step).clamp(0.0, c);
        for (k, g) in gradient.iter_mut().enumerate() {
            *g += step * (y[i] * q(k, i) - y[j] * q(k, j));
        }
    }
    let beta = alpha.iter().zip(y).map(|(a, y)| a * y).collect();
    (beta, 0.5 * (high + low))
}

impl RobustSvm {
    /// The predictors of some rows.
    pub fn predict(&self, prepared: &Prepared, rows: &Matrix) -> Result<Vec<f64>> {
        let kernels = Kernels::new(prepared, rows)?;
        let (beta, b) = robust_svm(&kernels.train, prepared.problem.target(), self.c, self.flips);
        Ok(kernels.test.chunks_exact(beta.len()).map(|row| dot(row, &beta) + b).collect())
    }
}

impl Baseline for RobustSvm {
    fn name(&self) -> &'static str {
        "robust-svm"
    }

    fn summary(&self) -> &'static str {
        "SVM with the kernel corrected for flipped labels, RBF kernel"
    }

    fn kind(&self) -> Option<TargetKind> {
        Some(TargetKind::Sign)
    }

    fn run(&self, task: &Task) -> Result<Outcome> {
        let z = self.predict(&task.all, task.test.matrix())?;
        Ok(Outcome::plain(task.test_rows(&task.all)?.score(&z)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two points at −1 and 1 on a line: the widest margin is w = 1, b = 0, so each α is ½ without flips.
    #[test]
    fn two_points_by_hand() {
        let (x, y) = ([-1.0, 1.0], [-1.0, 1.0]);
        let gram: Vec<f64> = (0..4).map(|k| x[k / 2] * x[k % 2]).collect();
        let (beta, b) = robust_svm(&gram, &y, 10.0, 0.0);
        assert!((beta[1] - 0.5).abs() < 1e-9 && (beta[0] + 0.5).abs() < 1e-9 && b.abs() < 1e-9);
        // With μ = ½ the off-diagonal vanishes: α = 1 each.
        let (beta, _) = robust_svm(&gram, &y, 10.0, 0.5);
        assert!((beta[1] - 1.0).abs() < 1e-9);
        // In between: (1 + factor) α = 1.
        let (beta, _) = robust_svm(&gram, &y, 10.0, 0.1);
        assert!((beta[1] - 1.0 / 1.64).abs() < 1e-9, "{beta:?}");
    }
}
