//! Solvers at one age: weighted convex fits, and ACS (alternate convex search) on top of them.
//!
//! ACS alternates the two halves of the problem: best weights for the fit, best fit for the weights. It is
//! majorise-minimise on G, so it never goes up; it is the baseline that the path is compared with, and it chooses the
//! basin after a jump.

mod convex;
mod descend;
mod quadratic;
pub(crate) mod smo;
mod trust;

pub(crate) use quadratic::Quadratic;

use crate::error::{Error, Result};
use crate::path::chart::Chart;
use crate::path::patch::Patch;
use crate::path::{dual, kinked};
use crate::problem::Problem;
use crate::space::Products;

/// A weighted convex fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Coefficients, then the intercept if there is one.
    pub theta: Vec<f64>,
    /// Relative KKT residual of the weighted problem.
    pub kkt: f64,
    /// Newton iterations.
    pub iterations: usize,
}

/// Minimises R(θ) + Σ s_i v_i ℓ_i(θ) for fixed weights v (none: all 1, the ordinary fit).
pub fn fit(problem: &Problem, weights: Option<&[f64]>) -> Result<Fit> {
    let n = problem.rows();
    if let Some(w) = weights
        && w.len() != n
    {
        return Err(Error::Shape { what: "weights", expected: n, found: w.len() });
    }
    let ones;
    let weights = match weights {
        Some(w) => w,
        None => {
            ones = vec![1.0; n];
            &ones
        }
    };
    if let Some(products) = &problem.products {
        let theta = match products {
            Products::Rows(_) if problem.loss.is_kinked() => {
                kinked::fit(problem, weights).or_else(|_| dual::fit(problem, products, weights))
            }
            _ => dual::fit(problem, products, weights),
        };
        let theta = theta.map_err(|reason| Error::NoSolution { age: f64::INFINITY, reason })?;
        let kkt = problem.kkt_weighted(products, &theta, weights);
        return Ok(Fit { theta, kkt, iterations: 1 });
    }
    let mut patch = Patch::whole(problem, Chart::new(1.0));
    let start = vec![0.0; problem.design().cols()];
    let (theta, kkt, iterations) =
        patch.fit_weighted(0.0, &start, weights).map_err(|reason| Error::NoSolution { age: f64::INFINITY, reason })?;
    Ok(Fit { theta, kkt, iterations })
}

/// What ACS reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Acs {
    /// Coefficients, then the intercept if there is one.
    pub theta: Vec<f64>,
    /// Relative KKT residual of the problem with the weights recomputed from the final losses.
    pub kkt: f64,
    /// Weighted convex fits made.
    pub fits: usize,
}

/// Options of [`acs`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AcsOptions {
    /// Stop at this relative KKT residual. Default 1e-8.
    pub tolerance: f64,
    /// Stop after this many fits. Default 10,000.
    pub max_fits: usize,
}

impl Default for AcsOptions {
    fn default() -> Self {
        AcsOptions { tolerance: 1e-8, max_fits: 10_000 }
    }
}

/// Plain ACS at one age from `start`, as everybody runs it: no acceleration, no second-order information.
pub fn acs(problem: &Problem, age: f64, start: &[f64], options: &AcsOptions) -> Result<Acs> {
    if start.len() != problem.parameters() {
        return Err(Error::Shape { what: "start values", expected: problem.parameters(), found: start.len() });
    }
    let chart = Chart::new(age);
    let t = chart.time(age);
    let mut patch = Patch::whole(problem, chart);
    let mut theta = start.to_vec();
    let mut fits = 0;
    loop {
        let kkt = problem.kkt(&theta, 1.0 / age);
        if kkt <= options.tolerance || fits == options.max_fits {
            return Ok(Acs { theta, kkt, fits });
        }
        let next = match &problem.products {
            Some(Products::Rows(_)) if problem.loss.is_kinked() => kinked::acs(problem, age, &theta),
            Some(products) => dual::acs(problem, products, age, &theta),
            None => {
                patch.evaluate_by_value(t, &theta);
                let weights = patch.at.weight.value.clone();
                patch.fit_weighted(t, &theta, &weights).map(|(theta, ..)| theta)
            }
        };
        theta = next.map_err(|reason| Error::NoSolution { age, reason })?;
        fits += 1;
    }
}
