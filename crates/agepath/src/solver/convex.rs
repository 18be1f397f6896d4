//! min over θ of R(θ) + Σ s_i v_i ℓ_i(θ) (+ the far part) for fixed weights v: proximal Newton.
//!
//! Each iteration minimises the quadratic model plus the L1 bounds exactly (see [`super::quadratic`]), over the
//! coefficients that are nonzero or violate their bound; a line search makes it safe for losses that are not
//! quadratic. Squared loss takes one iteration per change of working set.

use super::quadratic::Quadratic;
use crate::error::Breakdown;
use crate::linalg::{axpy, dot, multiply, sum_of_sizes};
use crate::loss::Losses;
use crate::path::far::FarAt;
use crate::path::patch::Patch;
use crate::problem::ROUNDING_FLOOR;
use std::time::Instant;

/// Stop at this relative KKT residual.
const CONVERGED: f64 = 1e-12;
/// A residual that no longer falls is accepted below this; what needs more is polished by Newton on its own problem.
const STAGNATED: f64 = 1e-7;
/// An ACS step need not be exact: this share of the residual may be left.
const ACS_SHARE: f64 = 1e-3;
const MAX_ITERATIONS: usize = 200;
/// Armijo's sufficient decrease.
const SUFFICIENT: f64 = 1e-4;
/// Value and gradient of the weighted convex problem at a point.
struct Weighted {
    value: f64,
    gradient: Vec<f64>,
    curvature: Vec<f64>,
    far: FarAt,
    kkt: f64,
    largest: f64,
}

impl Patch<'_> {
    /// The minimiser, its relative KKT residual and the number of iterations.
    pub(crate) fn fit_weighted(
        &mut self,
        t: f64,
        start: &[f64],
        weights: &[f64],
    ) -> Result<(Vec<f64>, f64, usize), Breakdown> {
        let here = self.weighted(t, start, weights);
        self.minimise_weighted(t, start, here, weights, CONVERGED)
    }

    /// The convex fit with the weights of the last evaluation, to within a small share of the way there.
    pub(crate) fn acs_step(&mut self) -> Result<Vec<f64>, Breakdown> {
        self.counters.acs_fits += 1;
        let weights: Vec<f64> = self.at.weight.value.iter().map(|v| v.clamp(0.0, 1.0)).collect();
        let (t, start) = (self.at.t, self.at.x.clone());
        let here = self.weighted_here(&weights);
        let tolerance = CONVERGED.max(ACS_SHARE * here.kkt);
        Ok(self.minimise_weighted(t, &start, here, &weights, tolerance)?.0)
    }

    fn minimise_weighted(
        &mut self,
        t: f64,
        start: &[f64],
        mut here: Weighted,
        weights: &[f64],
        tolerance: f64,
    ) -> Result<(Vec<f64>, f64, usize), Breakdown> {
        let mut x = start.to_vec();
        let mut last = f64::INFINITY;
        for iteration in 0..MAX_ITERATIONS {
            if here.kkt <= tolerance || (here.kkt <= STAGNATED && here.kkt > 0.5 * last) {
                return Ok((x, here.kkt, iteration));
            }
            if !here.value.is_finite() {
                return Err(Breakdown::Unbounded);
            }
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(Breakdown::OutOfTime);
            }
            last = here.kkt;
            let step = self.proximal_step(&x, &here);
            let Some((next, there)) = self.search(t, &x, &here, &step, weights) else {
                let good = here.kkt <= STAGNATED;
                return if good { Ok((x, here.kkt, iteration)) } else { Err(self.breakdown(here.kkt, here.largest)) };
            };
            (x, here) = (next, there);
        }
        Err(self.breakdown(here.kkt, here.largest))
    }

    /// What it means that Newton got no further, given the largest predictor.
    pub(crate) fn breakdown(&self, residual: f64, largest: f64) -> Breakdown {
        if largest > self.problem.loss.flat_beyond() { Breakdown::Unbounded } else { Breakdown::Newton { residual } }
    }

    fn weighted(&mut self, t: f64, x: &[f64], weights: &[f64]) -> Weighted {
        self.counters.evaluations += 1;
        let n = self.rows();
        let mut z = vec![0.0; n];
        self.design.predict(x, &mut z);
        let mut loss = Losses::default();
        self.problem.loss.fill(&z, &self.target, &mut loss);
        let mut far = FarAt::default();
        if let Some(background) = &self.far {
            background.at(t, x, &mut far);
        }
        self.weighted_at(x, &z, &loss, far, weights)
    }

    /// The same at the last evaluated point.
    fn weighted_here(&self, weights: &[f64]) -> Weighted {
        let at = &self.at;
        self.weighted_at(&at.x, &at.z, &at.loss, at.far.clone(), weights)
    }

    fn weighted_at(&self, x: &[f64], z: &[f64], loss: &Losses, far: FarAt, weights: &[f64]) -> Weighted {
        let n = self.rows();
        let mut gradient = vec![0.0; x.len()];
        let mut value = 0.0;
        if self.far.is_some() {
            gradient.copy_from_slice(&far.gradient);
            value += far.value;
        }
        let [mut psi, mut curvature, mut losses, mut rounding] = std::array::from_fn(|_| vec![0.0; n]);
        let counts: Vec<f64> = self.scale.iter().zip(weights).map(|(s, v)| s * v).collect();
        multiply(&counts, &loss.slope, &mut psi);
        multiply(&counts, &loss.curvature, &mut curvature);
        multiply(&counts, &loss.value, &mut losses);
        for i in 0..n {
            rounding[i] = curvature[i] * (z[i].abs() + self.target[i].abs());
        }
        // Nothing in these sums is negative.
        value += sum_of_sizes(&losses);
        self.design.accumulate(&psi, &mut gradient);
        let total = sum_of_sizes(&psi).max(ROUNDING_FLOOR * sum_of_sizes(&rounding));
        let total = self.residual_scale.unwrap_or(total);
        let mut worst = 0.0f64;
        for j in 0..x.len() {
            gradient[j] += self.l2[j] * x[j];
            value += self.l1[j] * x[j].abs() + 0.5 * self.l2[j] * x[j] * x[j];
            let miss = if x[j] == 0.0 && self.l1[j] > 0.0 {
                (gradient[j].abs() - self.l1[j]).max(0.0)
            } else {
                let sign = if self.l1[j] > 0.0 { x[j].signum() } else { 0.0 };
                (gradient[j] + self.l1[j] * sign).abs()
            };
            if miss > 0.0 {
                worst = worst.max(miss / (total * self.column_scales[j] + self.l1[j] + self.l2[j] * x[j].abs()));
            }
        }
        Weighted { value, gradient, curvature, far, kkt: worst, largest: z.iter().fold(0.0, |a, z| a.max(z.abs())) }
    }

    /// The exact minimiser of the quadratic model over the working set, as a step.
    fn proximal_step(&mut self, x: &[f64], here: &Weighted) -> Vec<f64> {
        self.counters.factorizations += 1;
        let working: Vec<usize> =
            (0..x.len()).filter(|&j| self.l1[j] == 0.0 || x[j] != 0.0 || here.gradient[j].abs() > self.l1[j]).collect();
        let bending = sum_of_sizes(&here.curvature);
        let (a, magnitude) = self.hessian_of(&here.curvature, bending, &here.far, &working);
        let pick = |from: &[f64]| working.iter().map(|&j| from[j]).collect::<Vec<_>>();
        let (g, l1, from) = (pick(&here.gradient), pick(&self.l1), pick(x));
        let mut to = from.clone();
        Quadratic { a: &a, magnitude: &magnitude, g: &g, l1: &l1 }.minimise(&from, &mut to);
        let mut step = vec![0.0; x.len()];
        for (k, &j) in working.iter().enumerate() {
            step[j] = to[k] - from[k];
        }
        step
    }

    /// Backtracks until the objective falls enough.
    fn search(
        &mut self,
        t: f64,
        x: &[f64],
        here: &Weighted,
        step: &[f64],
        weights: &[f64],
    ) -> Option<(Vec<f64>, Weighted)> {
        let bound: f64 = (0..x.len()).map(|j| self.l1[j] * ((x[j] + step[j]).abs() - x[j].abs())).sum();
        let slope = dot(&here.gradient, step) + bound;
        let noise = 1e-14 * here.value.abs();
        let mut share = 1.0;
        for _ in 0..40 {
            let mut next = x.to_vec();
            axpy(share, step, &mut next);
            let there = self.weighted(t, &next, weights);
            if there.value <= here.value + SUFFICIENT * share * slope + noise && there.value.is_finite() {
                return Some((next, there));
            }
            share *= 0.5;
        }
        None
    }
}
