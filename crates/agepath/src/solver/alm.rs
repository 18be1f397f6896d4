//! Weighted convex fits in linear space for losses that are piecewise linear, almost to the end: the augmented Lagrangian of
//! min ½‖w‖² + Σ φ_i(ζ_i), ζ = Xw + b, each of its problems solved by semismooth Newton (Li, Sun and Toh 2018).
//!
//! With a = Xw + b − β/σ, sample i answers ζ = prox(a) and β ← σ(ζ − a), which lies between the ends of its segments by
//! construction; those at a kink have curvature σ. SMO takes over from here: it has little left to do, and it is what says
//! that the fit is right.

use super::smo::Range;
use crate::linalg::{Cholesky, Definiteness, axpy, dot};
use crate::space::Rows;

/// Rounds of the multiplier.
const MAX_ROUNDS: usize = 12;
/// Newton steps in each.
const MAX_NEWTON: usize = 40;
/// σ of the first round, in units of β per unit of z, and how much it grows each time.
const FIRST: f64 = 10.0;
const GROWTH: f64 = 8.0;
/// σ at most: β = σ(ζ − a) is wrong by σ times the rounding of a.
const LARGEST: f64 = 1e6;
/// Newton has solved a round when its gradient is this share of what cancels in it ...
const SOLVED: f64 = 1e-9;
/// ... and the rounds end when ζ = Xw + b to this share of SMO's tolerance.
const JOINED: f64 = 0.1;
/// Armijo's sufficient decrease.
const SUFFICIENT: f64 = 1e-4;
/// Shortest share of a Newton step that is tried.
const SHORTEST: f64 = 1e-4;

impl Range {
    /// β and the loss where ½σ(ζ − a)² + φ(ζ) is least, and whether ζ is at a kink.
    fn nearest(&self, a: f64, sigma: f64) -> (f64, f64, bool) {
        // The loss is 0 at every kink.
        let on_piece = |k: usize| {
            let beta = self.ends[k];
            (beta, -beta * (a + beta / sigma - self.kinks[k.min(self.segments - 1)]), false)
        };
        for k in 0..self.segments {
            let beta = sigma * (self.kinks[k] - a);
            if beta > self.ends[k] {
                return on_piece(k);
            }
            if beta >= self.ends[k + 1] {
                return (beta, 0.0, true);
            }
        }
        on_piece(self.segments)
    }
}

/// One problem of the augmented Lagrangian.
struct Round<'a> {
    rows: &'a Rows,
    ranges: &'a [Range],
    /// β/σ of the round before.
    shift: Vec<f64>,
    sigma: f64,
}

/// Its value and what Newton needs, at a point (w, b).
struct At {
    value: f64,
    beta: Vec<f64>,
    /// w − Xᵀβ, −Σβ
    gradient: Vec<f64>,
    /// σ of the samples at a kink.
    curvature: Vec<f64>,
}

impl Round<'_> {
    fn at(&self, theta: &[f64]) -> At {
        let (design, features) = (self.rows.design(), self.rows.features());
        let mut z = vec![0.0; design.rows()];
        design.predict(theta, &mut z);
        let mut value = 0.5 * dot(&theta[..features], &theta[..features]);
        let (mut beta, mut curvature) = (vec![0.0; z.len()], vec![0.0; z.len()]);
        for i in 0..z.len() {
            let (b, loss, at_kink) = self.ranges[i].nearest(z[i] - self.shift[i], self.sigma);
            value += loss + 0.5 * b * b / self.sigma;
            beta[i] = b;
            curvature[i] = if at_kink { self.sigma } else { 0.0 };
        }
        let mut gradient = vec![0.0; theta.len()];
        design.accumulate(&beta, &mut gradient);
        gradient.iter_mut().for_each(|g| *g = -*g);
        axpy(1.0, &theta[..features], &mut gradient[..features]);
        At { value, beta, gradient, curvature }
    }

    /// The Newton step; none if its matrix cannot be factored.
    fn step(&self, at: &At) -> Option<Vec<f64>> {
        let (design, features) = (self.rows.design(), self.rows.features());
        let m = design.cols();
        let mut hessian = vec![0.0; m * m];
        design.gram(&at.curvature, &(0..m).collect::<Vec<_>>(), &mut hessian);
        (0..features).for_each(|j| hessian[j * m + j] += 1.0);
        if features < m && hessian[m * m - 1] == 0.0 {
            // No sample holds b: as if one did.
            hessian[m * m - 1] = self.sigma;
        }
        let sizes: Vec<f64> = (0..m).map(|j| hessian[j * m + j]).collect();
        let mut factor = Cholesky::default();
        if factor.factor(&hessian, &sizes) == Definiteness::Indefinite {
            return None;
        }
        let mut step: Vec<f64> = at.gradient.iter().map(|g| -g).collect();
        factor.solve(&mut step);
        Some(step)
    }

    /// Newton with a line search, as far as it gets.
    fn minimise(&self, theta: &mut Vec<f64>) -> At {
        let mut here = self.at(theta);
        for _ in 0..MAX_NEWTON {
            let size: f64 = here.beta.iter().map(|b| b.abs()).sum::<f64>() + f64::MIN_POSITIVE;
            if here.gradient.iter().all(|g| g.abs() <= SOLVED * size) {
                break;
            }
            let Some(step) = self.step(&here) else { break };
            let slope = dot(&here.gradient, &step);
            let mut share = 1.0;
            let next = loop {
                let mut trial = theta.clone();
                axpy(share, &step, &mut trial);
                let there = self.at(&trial);
                if there.value <= here.value + SUFFICIENT * share * slope {
                    break Some((trial, there));
                }
                share *= 0.5;
                if share < SHORTEST {
                    break None;
                }
            };
            let Some((trial, there)) = next else { break };
            (*theta, here) = (trial, there);
        }
        here
    }
}

/// β near the solution, from β and an intercept near it or not; `unit` is that of β, and `tolerance`
/// how near to Xw + b the ζ need be.
pub(super) fn approach(rows: &Rows, ranges: &[Range], start: (&[f64], f64), unit: f64, tolerance: f64) -> Vec<f64> {
    let design = rows.design();
    let mut beta: Vec<f64> = start.0.iter().zip(ranges).map(|(b, r)| r.clamp(*b)).collect();
    let mut theta = vec![0.0; design.cols()];
    design.accumulate(&beta, &mut theta);
    theta[rows.features()..].fill(start.1);
    let mut sigma = FIRST * unit;
    for _ in 0..MAX_ROUNDS {
        let round = Round { rows, ranges, shift: beta.iter().map(|b| b / sigma).collect(), sigma };
        let at = round.minimise(&mut theta);
        // ζ − Xw − b = (β − its last value)/σ
        let apart = at.beta.iter().zip(&beta).fold(0.0f64, |a, (new, old)| a.max((new - old).abs())) / sigma;
        beta = at.beta;
        if apart <= JOINED * tolerance {
            break;
        }
        sigma = (GROWTH * sigma).min(LARGEST * unit);
    }
    beta
}
