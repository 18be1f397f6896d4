//! Where a search for the fit of the good rows may begin.
//!
//! The ordinary fit; the fit of the rows in the middle of X; fits of small random subsets; and fits without the half of the rows to which
//! all others are most sensitive (Peña and Yohai 1999): with the hat matrix H of the rows, the sensitivities are S = H diag(r/(1 − h)),
//! and the leading eigenvectors of SSᵀ show groups of rows that pull together.

use super::fit::Fitter;
use crate::linalg::{Cholesky, dot, symmetric_eigen};
use crate::problem::Problem;
use rand::{RngExt, SeedableRng};

/// Random subsets of a few rows: more where rows are few and each try is cheap.
const SUBSETS: usize = 30;
const SUBSETS_OF_FEW: usize = 100;
const FEW_ROWS: usize = 200;
/// Eigenvectors whose rows are left out; with more columns than this they are not looked for.
const MOST_COLUMNS: usize = 200;
const DIRECTIONS: usize = 8;
/// 1 − h is kept above this: a row that fits itself has no sensitivity to show.
const SELF_FITTING: f64 = 0.01;
/// Added to a Gram matrix relative to its diagonal, so that collinear columns have a hat matrix.
const RIDGE: f64 = 1e-8;

/// Parameters to start from; row i takes part `rows[i]` times.
pub(crate) fn starts(fitter: &mut Fitter, problem: &Problem, rows: &[f64], seed: u64) -> Vec<Vec<f64>> {
    let zero = vec![0.0; problem.parameters()];
    let n = problem.rows();
    let mut out: Vec<Vec<f64>> = Vec::new();
    out.extend(fitter.weighted(&zero, &vec![1.0; n]));
    let Some(of_rows) = fitter.weighted(&zero, rows) else { return out };
    out.push(of_rows.clone());
    let drawn = if n <= FEW_ROWS { SUBSETS_OF_FEW } else { SUBSETS };
    for weights in subsets(rows, problem.parameters() + 1, drawn, seed) {
        out.extend(fitter.weighted(&of_rows, &weights));
    }
    let residuals = fitter.residuals(&of_rows);
    for weights in insensitive_halves(problem, rows, &residuals) {
        out.extend(fitter.weighted(&of_rows, &weights));
    }
    out
}

/// Weights 1 on `size` random rows among those that take part at least half.
fn subsets(rows: &[f64], size: usize, count: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let mut pool: Vec<usize> = (0..rows.len()).filter(|&i| rows[i] >= 0.5).collect();
    let size = size.min(pool.len());
    let draw = |_| {
        let mut weights = vec![0.0; rows.len()];
        for k in 0..size {
            let other = k + rng.random_range(0..pool.len() - k);
            pool.swap(k, other);
            weights[pool[k]] = 1.0;
        }
        weights
    };
    (0..count).map(draw).collect()
}

/// Weights without the half of the rows that are largest, smallest, or largest in size along each direction of sensitivity.
fn insensitive_halves(problem: &Problem, rows: &[f64], residuals: &[f64]) -> Vec<Vec<f64>> {
    let part: Vec<usize> = (0..problem.rows()).filter(|&i| rows[i] > 0.0).collect();
    let directions = sensitivities(problem, rows, residuals, &part).unwrap_or_default();
    let mut out = Vec::new();
    for scores in directions {
        let keys: [fn(f64) -> f64; 3] = [|s| s, |s| -s, f64::abs];
        for key in keys {
            let mut order: Vec<usize> = (0..part.len()).collect();
            order.sort_by(|&a, &b| key(scores[a]).total_cmp(&key(scores[b])));
            let mut weights = vec![0.0; problem.rows()];
            order[..part.len().div_ceil(2)].iter().for_each(|&k| weights[part[k]] = 1.0);
            out.push(weights);
        }
    }
    out
}

/// The leading eigenvectors of SSᵀ = Q (Qᵀ D² Q) Qᵀ, one number per row of `part`; Q an orthonormal basis of the weighted columns.
fn sensitivities(problem: &Problem, rows: &[f64], residuals: &[f64], part: &[usize]) -> Option<Vec<Vec<f64>>> {
    let columns: Vec<usize> = (0..problem.design().cols()).collect();
    let m = columns.len();
    if m > MOST_COLUMNS {
        return None;
    }
    let mut gram = vec![0.0; m * m];
    problem.design().gram(rows, &columns, &mut gram);
    (0..m).for_each(|j| gram[j * m + j] *= 1.0 + RIDGE);
    let magnitude: Vec<f64> = (0..m).map(|j| gram[j * m + j]).collect();
    let mut factor = Cholesky::default();
    factor.factor(&gram, &magnitude);
    let basis: Vec<Vec<f64>> = part
        .iter()
        .map(|&i| {
            let mut row = vec![0.0; m];
            problem.design().copy_row(i, &columns, &mut row);
            factor.forward(&mut row);
            row.iter_mut().for_each(|v| *v *= rows[i].sqrt());
            row
        })
        .collect();
    let strength: Vec<f64> = basis
        .iter()
        .zip(part)
        .map(|(q, &i)| {
            let own = dot(q, q).min(1.0 - SELF_FITTING);
            rows[i] * (residuals[i] / (1.0 - own)).powi(2)
        })
        .collect();
    let mut inner = vec![0.0; m * m];
    for (q, d) in basis.iter().zip(&strength) {
        for a in 0..m {
            for b in 0..=a {
                inner[a * m + b] += d * q[a] * q[b];
            }
        }
    }
    let (_, axes) = symmetric_eigen(&inner, m)?;
    // Eigenvalues come in increasing order.
    let leading = (0..m).rev().take(DIRECTIONS);
    Some(leading.map(|k| basis.iter().map(|q| dot(q, &axes[k * m..(k + 1) * m])).collect()).collect())
}
