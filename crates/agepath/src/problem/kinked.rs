//! Losses with kinks in linear space: θ = (w, b), and αw = −Xᵀψ with ψ_i ∈ ∂φ_i(z_i).
//!
//! θ says which ψ a sample has unless its predictor is at a kink, where any between the two one-sided ones will do. The best
//! of these are found by least squares on the optimality conditions; what they leave is the violation.

use super::{Problem, ROUNDING_FLOOR, TIED};
use crate::linalg::bounded_least_squares;
use crate::space::{Products, Rows};

/// Predictors this near to a kink, in units of z, are taken to be at it: the narrowest reach that leaves no violation counts.
const REACHES: [f64; 2] = [1e-11, 1e-9];
/// A violation that no other choice of ψ need improve on.
const SMALL_ENOUGH: f64 = 1e-12;

/// ψ of all samples, and how far they are from optimal.
struct Slopes {
    psi: Vec<f64>,
    violation: f64,
}

impl Problem {
    /// θ of dual coefficients and an intercept.
    pub(crate) fn theta_of(&self, products: &Products, beta: &[f64], b: f64) -> Vec<f64> {
        let mut theta = match products {
            Products::Kernel(_) => beta.to_vec(),
            Products::Rows(rows) => {
                let support: Vec<usize> = (0..beta.len()).filter(|&i| beta[i] != 0.0).collect();
                let coef: Vec<f64> = support.iter().map(|&i| beta[i]).collect();
                let mut w = rows.combination(&support, &coef);
                w.truncate(rows.features());
                w
            }
        };
        theta.extend(self.intercept.then_some(b));
        theta
    }

    /// Dual coefficients and intercept of a solution θ at inverse age `u`.
    pub(crate) fn dual_of(&self, products: &Products, theta: &[f64], u: f64) -> (Vec<f64>, f64) {
        match products {
            Products::Kernel(_) => {
                let (beta, b) = self.split(theta);
                (beta.to_vec(), b)
            }
            Products::Rows(rows) => self.dual_of_rows(rows, theta, u),
        }
    }

    /// The same in linear space.
    pub(crate) fn dual_of_rows(&self, rows: &Rows, theta: &[f64], u: f64) -> (Vec<f64>, f64) {
        let psi = self.best_slopes(rows, theta, &self.paced(u)).psi;
        let b = if self.intercept { theta[rows.features()] } else { 0.0 };
        (psi.into_iter().map(|psi| -psi / self.ridge).collect(), b)
    }

    /// The violation at inverse age `u`, each coordinate relative to what cancels in it, or the distance of a sample from
    /// its kink, in units of z.
    pub(super) fn kkt_kinked(&self, rows: &Rows, theta: &[f64], u: f64) -> f64 {
        self.best_slopes(rows, theta, &self.paced(u)).violation
    }

    /// The same for the convex problem with fixed weights.
    pub(super) fn kkt_kinked_weighted(&self, rows: &Rows, theta: &[f64], weights: &[f64]) -> f64 {
        self.best_slopes(rows, theta, &|i, _, _| weights[i]).violation
    }

    /// The weight of a sample's loss on one side of its thresholds.
    fn paced(&self, u: f64) -> impl Fn(usize, f64, f64) -> f64 {
        let cuts = self.pacing.cuts(u);
        move |_, loss, side| self.pacing.at(cuts.zone(loss * (1.0 + side)), loss, u).value
    }

    fn best_slopes(&self, rows: &Rows, theta: &[f64], weight: &dyn Fn(usize, f64, f64) -> f64) -> Slopes {
        let mut z = vec![0.0; self.rows()];
        self.design.predict(theta, &mut z);
        let narrow = self.slopes(rows, theta, &z, REACHES[0], weight);
        if narrow.violation <= SMALL_ENOUGH {
            return narrow;
        }
        let wide = self.slopes(rows, theta, &z, REACHES[1], weight);
        if wide.violation < narrow.violation { wide } else { narrow }
    }

    /// ψ by value, and by least squares for samples within `reach` of a kink. Where the weight drops at a threshold and a loss
    /// lies on it, every weight between the two is optimal.
    fn slopes(
        &self,
        rows: &Rows,
        theta: &[f64],
        z: &[f64],
        reach: f64,
        weight: &dyn Fn(usize, f64, f64) -> f64,
    ) -> Slopes {
        let (mut psi, mut floor) = (vec![0.0; z.len()], 0.0);
        let (mut open, mut ends, mut near) = (Vec::new(), Vec::new(), Vec::new());
        for (i, &z) in z.iter().enumerate() {
            let (y, s) = (self.target[i], self.scale[i]);
            let slope = |piece: u8, z: f64, side: f64| {
                let l = self.loss.at_piece(piece, z, y);
                s * weight(i, l.value, side) * l.slope
            };
            let kinks = self.loss.kinks(y);
            let (l, piece) = (self.loss.at(z, y), kinks.piece(z));
            psi[i] = slope(piece, z, 0.0);
            floor += s * weight(i, l.value, 0.0) * l.curvature * (z.abs() + y.abs());
            let at = |kink: &f64| (z - kink).abs() <= reach * self.predictor_scale;
            let (low, high) = if let Some(k) = kinks.as_slice().iter().position(at) {
                let kink = kinks.as_slice()[k];
                near.push((i, psi[i], kink));
                (slope(k as u8, kink, 0.0), slope(k as u8 + 1, kink, 0.0))
            } else if self.pacing.is_continuous() {
                continue;
            } else {
                let (a, b) = (slope(piece, z, -TIED), slope(piece, z, TIED));
                (a.min(b), a.max(b))
            };
            if high > low {
                open.push(i);
                ends.push((low, high));
            }
        }
        if !open.is_empty() {
            self.choose(rows, theta, &mut psi, &open, &ends);
        }
        let total: f64 = psi.iter().map(|psi| psi.abs()).sum();
        let unit = self.slope_unit();
        // A ψ that its side of the kink does not have is that of the kink, which the sample is off by so much.
        let elsewhere = |&&(i, own, _): &&(usize, f64, f64)| (psi[i] - own).abs() > SMALL_ENOUGH * unit;
        let off = near.iter().filter(elsewhere).map(|(i, _, kink)| (z[*i] - kink).abs() / self.predictor_scale);
        let off = off.fold(0.0, f64::max);
        // Where hardly a sample pulls, relative to what one of them could.
        let size = total.max(ROUNDING_FLOOR * floor).max(unit);
        let violation = self.violation(theta, (&psi, size)).max(off);
        Slopes { psi, violation }
    }

    /// The ψ of samples at a kink that come nearest to αw = −Xᵀψ and Σψ = 0.
    fn choose(&self, rows: &Rows, theta: &[f64], psi: &mut [f64], open: &[usize], ends: &[(f64, f64)]) {
        let cols = rows.design().cols();
        open.iter().for_each(|&i| psi[i] = 0.0);
        let mut rest = vec![0.0; cols];
        rows.design().accumulate(psi, &mut rest);
        for (j, rest) in rest.iter_mut().enumerate() {
            *rest = -*rest - self.l2[j] * theta[j];
        }
        let x: Vec<f64> = (open.iter())
            .flat_map(|&i| {
                let mut row = vec![0.0; cols];
                rows.design().add_row(i, 1.0, &mut row);
                row
            })
            .collect();
        let found = bounded_least_squares(&x, &rest, ends);
        open.iter().zip(found).for_each(|(&i, found)| psi[i] = found);
    }
}
