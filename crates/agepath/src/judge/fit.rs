//! Weighted fits and ACS over some of the rows, whatever the penalty: the rows that do not take part weigh nothing.

use crate::path::chart::Chart;
use crate::path::patch::Patch;
use crate::problem::Problem;

/// A settled fit moves by less than this share of the cut-off from one step to the next: far below what tells two branches apart.
const SETTLED: f64 = 1e-4;

/// Fits of one problem.
pub(crate) struct Fitter<'p> {
    problem: &'p Problem,
    patch: Patch<'p>,
    /// Weighted convex fits made.
    pub fits: usize,
}

impl<'p> Fitter<'p> {
    pub fn new(problem: &'p Problem) -> Fitter<'p> {
        Fitter { problem, patch: Patch::whole(problem, Chart::new(1.0)), fits: 0 }
    }

    /// The fit in which row i counts `weights[i]` times; none where there is no minimiser.
    pub fn weighted(&mut self, start: &[f64], weights: &[f64]) -> Option<Vec<f64>> {
        self.fits += 1;
        let (theta, ..) = self.patch.fit_weighted(0.0, start, weights).ok()?;
        theta.iter().all(|v| v.is_finite()).then_some(theta)
    }

    /// y − z of every row.
    pub fn residuals(&self, theta: &[f64]) -> Vec<f64> {
        self.problem.predict(theta).iter().zip(self.problem.target()).map(|(z, y)| y - z).collect()
    }

    /// ACS at `age` over rows that count `rows[i]` times, at most `steps` fits. None where fewer rows carry the fit than it has
    /// parameters: as many are met exactly, whatever they say.
    pub fn settle(&mut self, theta: Vec<f64>, age: f64, rows: &[f64], steps: usize) -> Option<Vec<f64>> {
        let u = 1.0 / age;
        let needed = 1 + theta.iter().filter(|&&w| w != 0.0).count();
        let tolerance = SETTLED * age.sqrt();
        let mut theta = theta;
        let mut z = self.problem.predict(&theta);
        for _ in 0..steps {
            let losses = self.problem.losses(&theta);
            let weights: Vec<f64> =
                losses.iter().zip(rows).map(|(&l, m)| m * self.problem.pacing().weight(l, u)).collect();
            if weights.iter().filter(|&&v| v > 0.0).count() < needed {
                return None;
            }
            theta = self.weighted(&theta, &weights)?;
            let next = self.problem.predict(&theta);
            let moved = z.iter().zip(&next).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            z = next;
            if moved <= tolerance {
                break;
            }
        }
        Some(theta)
    }
}
