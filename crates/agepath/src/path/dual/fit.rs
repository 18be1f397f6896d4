//! Weighted convex fits: SMO where a kink can pin samples, Newton where ψ is continuous.

use super::super::curve::GoOn;
use super::factor::{Active, Factor};
use super::states::is_tied;
use super::{Dual, State};
use crate::error::Breakdown;
use crate::linalg::axpy;
use crate::loss::LossAt;
use crate::solver::smo::{self, DualFit, Range};

/// SMO stops at this violation, in units of z: what needs more is polished by Newton on its own problem.
pub(super) const FINE: f64 = 1e-6;
/// ... or, where samples are to be told apart that are closer together, at this.
pub(super) const FINEST: f64 = 1e-11;
/// Newton stops at this residual.
const CONVERGED: f64 = 1e-11;
/// A residual that no longer falls is accepted below this.
const STAGNATED: f64 = 1e-7;
const MAX_NEWTON: usize = 100;

impl Dual<'_> {
    /// A first fit, from which Newton goes on.
    pub(super) fn fit_weighted(&mut self, weights: &[f64], go_on: GoOn<'_>) -> Result<Vec<f64>, Breakdown> {
        let zero = vec![0.0; 2 * self.n() + 1];
        self.fit_to(&zero, &self.scaled(weights), FINE, go_on)
    }

    /// c for weights that equal rows have in common.
    pub(super) fn scaled(&self, weights: &[f64]) -> Vec<f64> {
        self.scale.iter().zip(weights).map(|(s, v)| s * v).collect()
    }

    /// min over (β, b) of ½ βᵀKβ + Σ c_i ℓ_i with c = s v/α, from a warm start, to a tolerance of SMO's, in units of z. Out of time
    /// where `go_on` says no.
    pub(super) fn fit_to(
        &mut self,
        x: &[f64],
        c: &[f64],
        tolerance: f64,
        go_on: GoOn<'_>,
    ) -> Result<Vec<f64>, Breakdown> {
        match self.problem.loss.is_kinked() {
            true => self.fit_by_smo(x, c, tolerance, go_on),
            false => self.fit_by_newton(x, c, go_on),
        }
    }

    fn fit_by_smo(&self, x: &[f64], c: &[f64], tolerance: f64, go_on: GoOn<'_>) -> Result<Vec<f64>, Breakdown> {
        let ranges: Vec<Range> = (0..self.n()).map(|i| self.range(i, c[i])).collect();
        let tolerance = tolerance * self.problem.predictor_scale;
        let start = (self.beta(x), x[self.n()]);
        let DualFit { beta, intercept, z } =
            smo::fit(&self.columns, &ranges, self.border() == 1, start, tolerance, go_on)?;
        let mut out = beta;
        out.push(intercept);
        out.extend(z);
        Ok(out)
    }

    fn range(&self, i: usize, c: f64) -> Range {
        let (kinks, y) = (self.kinks[i].as_slice(), self.problem.target[i]);
        let mut range = Range { segments: kinks.len(), ..Range::default() };
        for (k, &kink) in kinks.iter().enumerate() {
            range.kinks[k] = kink;
            range.ends[k] = -c * self.problem.loss.at_piece(k as u8, kink, y).slope;
            range.ends[k + 1] = -c * self.problem.loss.at_piece(k as u8 + 1, kink, y).slope;
        }
        range
    }

    /// Newton with a line search on (K + 1/h) over the samples whose loss has curvature.
    fn fit_by_newton(&mut self, start: &[f64], c: &[f64], go_on: GoOn<'_>) -> Result<Vec<f64>, Breakdown> {
        let n = self.n();
        let mut x = start.to_vec();
        let mut last = f64::INFINITY;
        for _ in 0..MAX_NEWTON {
            if !go_on() {
                return Err(Breakdown::OutOfTime);
            }
            let losses = self.losses_at(&x);
            let (residual, step) = self.convex_step(&x, c, &losses);
            if residual <= CONVERGED || (residual <= STAGNATED && residual > 0.5 * last) {
                return Ok(x);
            }
            last = residual;
            let here = self.convex_value(&x, c, &losses);
            let mut share = 1.0;
            let next = loop {
                let mut next = x.clone();
                axpy(share, &step, &mut next);
                let there = self.convex_value(&next, c, &self.losses_at(&next));
                if there <= here + 1e-13 * here.abs() {
                    break Some(next);
                }
                share *= 0.5;
                if share < 1e-9 {
                    break None;
                }
            };
            match next {
                Some(next) => x = next,
                None if residual <= STAGNATED => return Ok(x),
                None => return Err(self.breakdown(residual, &x)),
            }
        }
        debug_assert_eq!(x.len(), 2 * n + 1);
        Err(self.breakdown(last, &x))
    }

    fn breakdown(&self, residual: f64, x: &[f64]) -> Breakdown {
        let largest = self.z(x).iter().fold(0.0f64, |a, z| a.max(z.abs()));
        if largest > self.problem.loss.flat_beyond() { Breakdown::Unbounded } else { Breakdown::Newton { residual } }
    }

    fn losses_at(&self, x: &[f64]) -> Vec<LossAt> {
        self.z(x).iter().zip(&self.problem.target).map(|(&z, &y)| self.problem.loss.at(z, y)).collect()
    }

    fn convex_value(&self, x: &[f64], c: &[f64], losses: &[LossAt]) -> f64 {
        let (beta, z, b) = (self.beta(x), self.z(x), x[self.n()]);
        let penalty: f64 = beta.iter().zip(z).map(|(beta, z)| beta * (z - b)).sum();
        0.5 * penalty + c.iter().zip(losses).map(|(c, l)| c * l.value).sum::<f64>()
    }

    /// The residual of β + c ℓ'(z) = 0 and Σβ = 0, and the Newton step.
    fn convex_step(&mut self, x: &[f64], c: &[f64], losses: &[LossAt]) -> (f64, Vec<f64>) {
        let (n, p) = (self.n(), self.border());
        let off = |i: usize| x[i] + c[i] * losses[i].slope;
        let sum: f64 = if p == 1 { x[..n].iter().sum() } else { 0.0 };
        // Σβ relative to what cancels in it: where all β have one sign and the loss falls for ever, they vanish only at infinity.
        let falls_for_ever = self.problem.loss.flat_beyond().is_finite();
        let size: f64 = x[..n].iter().map(|beta| beta.abs()).sum();
        let balance = sum.abs() / size.max(if falls_for_ever { f64::MIN_POSITIVE } else { self.unit });
        let residual = (0..n).map(|i| off(i).abs() / self.unit).fold(balance, f64::max);
        // Samples without curvature take the β their slope says; the others answer.
        let active: Vec<usize> = (0..n).filter(|&i| c[i] * losses[i].curvature > 0.0).collect();
        let fixed: Vec<usize> = (0..n).filter(|&i| c[i] * losses[i].curvature <= 0.0 && off(i) != 0.0).collect();
        let change: Vec<f64> = fixed.iter().map(|&i| -off(i)).collect();
        let mut dz = vec![0.0; n];
        self.products.accumulate(&fixed, &change, &mut dz);
        let curvature = |i: usize| c[i] * losses[i].curvature;
        let b = if active.is_empty() { 0.0 } else { -(sum + change.iter().sum::<f64>()) };
        let mut rhs = vec![b; p];
        rhs.extend(active.iter().map(|&i| -off(i) / curvature(i) - dz[i]));
        self.counters.factorizations += 1;
        let mut factor = Factor::new(self.products, p);
        // Strictly convex: never singular but for rounding, and then the line search says so.
        let _ = factor.invert(active.iter().map(|&i| Active { sample: i, h: Some(curvature(i)) }).collect(), false);
        let solved = factor.times(&rhs);
        let mut step = vec![0.0; 2 * n + 1];
        active.iter().zip(&solved[p..]).for_each(|(&i, d)| step[i] = *d);
        fixed.iter().zip(&change).for_each(|(&i, d)| step[i] = *d);
        step[n] = if p == 1 { solved[0] } else { 0.0 };
        let db = step[n];
        let all = &mut step[n + 1..];
        all.iter_mut().zip(&dz).for_each(|(out, dz)| *out = dz + db);
        self.products.accumulate(&active, &solved[p..], all);
        (residual, step)
    }

    /// The weights that the losses at the last evaluated point say; a pinned sample's loss is 0.
    pub(super) fn weights(&self) -> Vec<f64> {
        let pinned = self.problem.pacing.weight(0.0, self.at.u);
        let weight = |i: usize| match self.members.state[i] {
            State::Pinned { .. } | State::Held { .. } => pinned,
            _ => self.at.weight[i].value.clamp(0.0, 1.0),
        };
        (0..self.n()).map(weight).collect()
    }

    /// The weights at x by its losses, whatever the states are; but a sample on a threshold where the weight drops is in
    /// the zone of its state.
    pub(super) fn weights_at(&self, u: f64, x: &[f64]) -> Vec<f64> {
        let (z, pacing) = (self.z(x), &self.problem.pacing);
        let cuts = pacing.cuts(u);
        let weight = |i: usize| {
            let loss = self.problem.loss.at(z[i], self.problem.target[i]).value;
            match self.members.state[i] {
                State::Smooth { zone, .. } if !pacing.is_continuous() && is_tied(&cuts, loss, zone) => {
                    pacing.at(zone, loss, u).value.clamp(0.0, 1.0)
                }
                _ => pacing.weight(loss, u),
            }
        };
        (0..self.n()).map(weight).collect()
    }
}
