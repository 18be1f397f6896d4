//! The search for fits that most rows agree on: every start is settled at falling ages, and the smallest scale wins.

use super::distance::Distances;
use super::fit::Fitter;
use super::scale::{efficiency, m_scale};
use super::starts::starts;
use crate::prepare::age_of_threshold;
use crate::problem::Problem;

/// Ages above the one aimed for, in units of its cut-off: first a few steps for every start ...
const COARSE: [f64; 2] = [3.0, 2.0];
const COARSE_STEPS: usize = 2;
/// ... then to the end for the best.
const FINE: [f64; 3] = [1.5, 1.2, 1.0];
const FINE_STEPS: usize = 100;
const KEPT: usize = 6;
/// Of each search so many fits go on.
const WINNERS: usize = 2;
/// The information that the cut-off of the search keeps on normal errors: enough to hold on, little enough to let go of bad rows.
pub(crate) const SEARCH_EFFICIENCY: f64 = 0.85;
/// Cut-offs that can be meant, in scales.
const CUTS: (f64, f64) = (1.3, 30.0);
/// Where half of the rows fit exactly, this share of the predictors' size stands for their scale.
const EXACT_SCALE: f64 = 1e-6;

/// A settled fit.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// Which rows it was sought among.
    pub name: &'static str,
    /// The scale of their residuals.
    pub sigma: f64,
    /// The parameters.
    pub theta: Vec<f64>,
}

/// From scales to ages.
#[derive(Clone, Copy)]
pub(crate) struct Ages<'p>(pub &'p Problem);

impl Ages<'_> {
    /// The age whose last threshold is `c` scales.
    pub fn at(self, c: f64, sigma: f64) -> f64 {
        age_of_threshold(self.0, (c * sigma) * (c * sigma))
    }

    /// A scale that an age can be made of.
    pub fn scale(self, sigma: f64) -> f64 {
        sigma.max(EXACT_SCALE * self.0.predictor_scale)
    }

    /// The cut-off that keeps a share of the information in normal errors.
    pub fn cut_of_efficiency(self, share: f64, sigma: f64) -> f64 {
        let (mut low, mut high) = CUTS;
        // Each step halves the interval: 30 leave nothing that matters.
        for _ in 0..30 {
            let middle = 0.5 * (low + high);
            if efficiency(self.0.pacing(), self.at(middle, sigma), sigma) < share {
                low = middle
            } else {
                high = middle
            }
        }
        0.5 * (low + high)
    }
}

/// The scale of the residuals of `theta`; row i takes part `rows[i]` times.
pub(crate) fn scale_of(fitter: &Fitter, problem: &Problem, theta: &[f64], rows: &[f64]) -> f64 {
    let counted: Vec<f64> = rows.iter().zip(&problem.counts).map(|(m, n)| m * n).collect();
    m_scale(&fitter.residuals(theta), &counted, problem.parameters())
}

/// Fits sought among the central rows, among all rows as they count less the farther out they are, and among all rows alike; the best
/// of each first.
pub(crate) fn search_all(fitter: &mut Fitter, problem: &Problem, distances: &Distances, seed: u64) -> Vec<Vec<Found>> {
    let kinds = [
        ("central rows", distances.central()),
        ("weighted rows", distances.falling()),
        ("all rows", vec![1.0; problem.rows()]),
    ];
    let enough = |rows: &[f64]| rows.iter().sum::<f64>() > (problem.parameters() + 2) as f64;
    kinds
        .into_iter()
        .filter(|(_, rows)| enough(rows))
        .map(|(name, rows)| search(fitter, problem, name, &rows, seed))
        .collect()
}

fn search(fitter: &mut Fitter, problem: &Problem, name: &'static str, rows: &[f64], seed: u64) -> Vec<Found> {
    let ages = Ages(problem);
    let mut cut = None;
    let mut first = Vec::new();
    for theta in starts(fitter, problem, rows, seed) {
        let sigma = ages.scale(scale_of(fitter, problem, &theta, rows));
        let c = *cut.get_or_insert_with(|| ages.cut_of_efficiency(SEARCH_EFFICIENCY, sigma));
        first.extend(concentrate(fitter, problem, (theta, rows), c, (&COARSE, COARSE_STEPS)));
    }
    first.sort_by(|a, b| a.0.total_cmp(&b.0));
    let c = cut.unwrap_or(CUTS.1);
    let each = first.into_iter().take(KEPT);
    let mut out: Vec<(f64, Vec<f64>)> =
        each.filter_map(|(_, theta)| concentrate(fitter, problem, (theta, rows), c, (&FINE, FINE_STEPS))).collect();
    out.sort_by(|a, b| a.0.total_cmp(&b.0));
    out.into_iter().take(WINNERS).map(|(sigma, theta)| Found { name, sigma, theta }).collect()
}

/// Settles at falling ages, `c` scales times each factor; the scale reached, and where.
fn concentrate(
    fitter: &mut Fitter,
    problem: &Problem,
    (mut theta, rows): (Vec<f64>, &[f64]),
    c: f64,
    (factors, steps): (&[f64], usize),
) -> Option<(f64, Vec<f64>)> {
    let ages = Ages(problem);
    for factor in factors {
        let sigma = ages.scale(scale_of(fitter, problem, &theta, rows));
        theta = fitter.settle(theta, ages.at(c * factor, sigma), rows, steps)?;
    }
    Some((scale_of(fitter, problem, &theta, rows), theta))
}
