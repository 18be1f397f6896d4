//! The problem in kernel space: θ = (β, b), z = Kβ + b, and α β_i ∈ −∂φ_i(z_i) where φ_i = s_i F(ℓ(z, y_i)).

use super::{Problem, TIED};
use crate::error::{Error, Result};
use crate::linalg::dot;
use crate::loss::Loss;
use crate::penalty::Penalty;
use crate::space::{Design, Gram, Kernel, Products, Rows};
use std::sync::Arc;

/// What the path is followed with in dual coefficients; none where linear space alone serves.
pub(super) fn products(
    design: &Arc<Design>,
    intercept: bool,
    kernel: Option<Kernel>,
    weights: Option<&[f64]>,
    loss: &dyn Loss,
) -> Result<Option<Products>> {
    Ok(match kernel {
        Some(kernel) => Some(Products::Kernel(gram(design, intercept, kernel, weights)?)),
        None if loss.has_pieces() => Some(Products::Rows(Rows::new(design.clone(), intercept))),
        None => None,
    })
}

/// The kernel matrix of a design, its intercept column left out.
fn gram(design: &Design, intercept: bool, kernel: Kernel, weights: Option<&[f64]>) -> Result<Gram> {
    if !intercept {
        return Gram::new(design, kernel, weights);
    }
    let rows: Vec<usize> = (0..design.rows()).collect();
    let features: Vec<usize> = (0..design.cols() - 1).collect();
    Gram::new(&Design::Dense(design.select(&rows, &features)), kernel, weights)
}

/// α of ½ α ‖f‖²: the only penalty that kernel space and losses with pieces know.
pub(super) fn ridge(penalty: &Penalty, loss: &dyn Loss) -> Result<f64> {
    if penalty.l1() == 0.0 && penalty.l2() > 0.0 {
        return Ok(penalty.l2());
    }
    Err(Error::Option {
        name: "penalty",
        value: format!("{penalty:?}"),
        expected: format!("an l2 penalty above 0 with a kernel or the {} loss", loss.name()),
    })
}

impl Problem {
    /// The coefficients of the features that dual coefficients stand for, w = Σ β_i x_i; none unless the kernel is linear.
    pub fn linear_coefficients(&self, dual: &[f64]) -> Option<Vec<f64>> {
        if self.kernel()? != Kernel::Linear {
            return None;
        }
        let mut w = vec![0.0; self.design.cols()];
        self.design.accumulate(dual, &mut w);
        w.truncate(self.features());
        Some(w)
    }

    pub(super) fn split<'t>(&self, theta: &'t [f64]) -> (&'t [f64], f64) {
        let n = self.rows();
        (&theta[..n], if self.intercept { theta[n] } else { 0.0 })
    }

    /// z = Kβ + b.
    pub(super) fn predict_dual(&self, gram: &Gram, theta: &[f64]) -> Vec<f64> {
        let (beta, b) = self.split(theta);
        let support: Vec<usize> = (0..beta.len()).filter(|&i| beta[i] != 0.0).collect();
        let coef: Vec<f64> = support.iter().map(|&i| beta[i]).collect();
        let mut z = vec![b; beta.len()];
        gram.accumulate(&support, &coef, &mut z);
        z
    }

    /// ½ α βᵀKβ.
    pub(super) fn penalty_dual(&self, gram: &Gram, theta: &[f64]) -> f64 {
        let (beta, b) = self.split(theta);
        let z = self.predict_dual(gram, theta);
        0.5 * self.ridge * (dot(beta, &z) - b * beta.iter().sum::<f64>())
    }

    /// The largest distance of a sample's (z, −αβ) from the graph of ∂φ, vertical or horizontal, in units of its slope and of
    /// z, and |Σ αβ| in units of slope.
    pub(super) fn kkt_dual(&self, gram: &Gram, theta: &[f64], u: f64) -> f64 {
        let (beta, _) = self.split(theta);
        let z = self.predict_dual(gram, theta);
        let cuts = self.pacing.cuts(u);
        let weight = |_: usize, loss: f64, side: f64| self.pacing.at(cuts.zone(loss * (1.0 + side)), loss, u).value;
        self.violation_dual(beta, &z, weight)
    }

    /// The same for the convex problem with fixed weights.
    pub(crate) fn kkt_weighted(&self, products: &Products, theta: &[f64], weights: &[f64]) -> f64 {
        let gram = match products {
            Products::Kernel(gram) => gram,
            Products::Rows(rows) => return self.kkt_kinked_weighted(rows, theta, weights),
        };
        let (beta, _) = self.split(theta);
        self.violation_dual(beta, &self.predict_dual(gram, theta), |i, _, _| weights[i])
    }

    fn violation_dual(&self, beta: &[f64], z: &[f64], weight: impl Fn(usize, f64, f64) -> f64) -> f64 {
        let unit = self.slope_unit();
        let samples =
            (0..z.len()).map(|i| self.off_graph(i, z[i], -self.ridge * beta[i], unit, |l, e| weight(i, l, e)));
        let worst = samples.fold(0.0, |a: f64, b: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) });
        if !self.intercept {
            return worst;
        }
        worst.max(self.ridge * beta.iter().sum::<f64>().abs() / unit)
    }

    /// What violations are relative to: s C for the losses that have a C.
    pub(crate) fn slope_unit(&self) -> f64 {
        let largest = self.scale.iter().fold(0.0f64, |a, s| a.max(*s));
        largest * self.loss.slope_unit() * self.predictor_scale
    }

    /// How far (z, ψ) is from the graph of ∂φ_i, `weight` being that of a loss on one side of its thresholds.
    pub(super) fn off_graph(&self, i: usize, z: f64, psi: f64, unit: f64, weight: impl Fn(f64, f64) -> f64) -> f64 {
        let (y, s) = (self.target[i], self.scale[i]);
        let slope = |piece: u8, z: f64, side: f64| {
            let l = self.loss.at_piece(piece, z, y);
            s * weight(l.value, side) * l.slope
        };
        let kinks = self.loss.kinks(y);
        let piece = kinks.piece(z);
        // Where the weight drops at a threshold and the loss lies on it, either weight is optimal.
        let sides: &[f64] = if self.pacing.is_continuous() { &[0.0] } else { &[TIED, -TIED] };
        let mut best = sides.iter().map(|&e| (psi - slope(piece, z, e)).abs() / unit).fold(f64::INFINITY, f64::min);
        for (k, &kink) in kinks.as_slice().iter().enumerate() {
            let (low, high) = (slope(k as u8, kink, 0.0), slope(k as u8 + 1, kink, 0.0));
            let beyond = (low - psi).max(psi - high).max(0.0);
            best = best.min((z - kink).abs() / self.predictor_scale + beyond / unit);
        }
        best
    }
}
