//! Robust scale of residuals, and what a cut-off in its units costs on normal errors.
//!
//! The scale σ solves mean ρ(r/(kσ)) = δ with ρ(u) = 1 − (1 − u²)³ on |u| < 1 and 1 beyond (Tukey's bisquare), k = 1.54764, so that σ is the
//! standard deviation of normal errors and half of the rows may be anything (Rousseeuw and Yohai 1984). δ is lowered from ½ by the share of
//! the rows that the parameters can fit for free.

use crate::dataset::weighted_quantile;
use crate::pacing::Pacing;

/// k: consistent at the normal distribution for δ = ½.
const BISQUARE: f64 = 1.547_64;
/// Quartile of the normal distribution: the median of |r| in units of σ.
const QUARTILE: f64 = 0.674_5;
/// Fixed-point steps; each at least halves the error, far from where it matters.
const MAX_STEPS: usize = 100;
/// Relative accuracy of σ.
const SETTLED: f64 = 1e-8;
/// A scale below this share of the largest residual is none: half of the rows fit exactly.
pub(crate) const EXACT: f64 = 1e-9;
/// δ is not lowered beyond this share of ½: with so many parameters no scale can be told.
const LEAST_ROOM: f64 = 0.1;

/// The M-scale of residuals; row i counts `weights[i]` times, and a fit of `parameters` numbers was made to them.
/// 0 where half of the rows fit exactly.
pub(crate) fn m_scale(residuals: &[f64], weights: &[f64], parameters: usize) -> f64 {
    let total: f64 = weights.iter().sum();
    let largest = residuals.iter().zip(weights).filter(|(_, w)| **w > 0.0).fold(0.0f64, |m, (r, _)| m.max(r.abs()));
    let delta = 0.5 * (1.0 - parameters as f64 / total).max(LEAST_ROOM);
    let sizes = residuals.iter().zip(weights).map(|(r, w)| (r.abs(), *w)).collect();
    let mut sigma = weighted_quantile(sizes, 0.5) / QUARTILE;
    for _ in 0..MAX_STEPS {
        if sigma <= EXACT * largest {
            return 0.0;
        }
        let sum: f64 = residuals.iter().zip(weights).map(|(r, w)| w * rho(r / (BISQUARE * sigma))).sum();
        let next = sigma * (sum / (total * delta)).sqrt();
        let moved = (next / sigma - 1.0).abs();
        sigma = next;
        if moved < SETTLED {
            break;
        }
    }
    if sigma <= EXACT * largest { 0.0 } else { sigma }
}

fn rho(u: f64) -> f64 {
    if u.abs() >= 1.0 {
        return 1.0;
    }
    let inside = 1.0 - u * u;
    1.0 - inside * inside * inside
}

/// Steps of the integral over ±[`TAILS`] standard deviations; the integrand is smooth but for a kink or a step at the cut-off.
const CELLS: usize = 4000;
const TAILS: f64 = 9.0;

/// How much of the information in normal errors of standard deviation `sigma` the estimator at `age` keeps:
/// (E rψ)²/(σ² E ψ²) with ψ = v(r²) r, by Stein's identity for any pacing.
pub(crate) fn efficiency(pacing: &dyn Pacing, age: f64, sigma: f64) -> f64 {
    let (mut cross, mut square) = (0.0, 0.0);
    let width = TAILS / CELLS as f64;
    for k in 0..CELLS {
        let x = (k as f64 + 0.5) * width;
        let density = (-0.5 * x * x).exp();
        let weight = pacing.weight(x * x * sigma * sigma, 1.0 / age);
        cross += density * weight * x * x;
        square += density * weight * weight * x * x;
    }
    let unit = width / (0.5 * std::f64::consts::PI).sqrt();
    if square > 0.0 { cross * cross * unit / square } else { 0.0 }
}

/// The quantile of the normal distribution at `p`, by bisection of its distribution function.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    // 60 halvings leave less than the rounding of the result.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if normal_below(middle) < p { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// P(Z < x): Marsaglia's series in the middle, the continued fraction of Mills' ratio in the tails.
fn normal_below(x: f64) -> f64 {
    let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if x.abs() > 6.0 {
        let mut ratio = x.abs();
        for k in (1..60).rev() {
            ratio = x.abs() + k as f64 / ratio;
        }
        let tail = density / ratio;
        return if x > 0.0 { 1.0 - tail } else { tail };
    }
    let (mut term, mut sum, mut k) = (x, x, 1.0);
    while term.abs() > 1e-17 * (1.0 + sum.abs()) {
        k += 2.0;
        term *= x * x / k;
        sum += term;
    }
    0.5 + density * sum
}

/// The quantile of the chi-squared distribution with `freedom` degrees of freedom (Wilson and Hilferty 1931: right to a few per cent from one degree on).
pub(crate) fn chi_squared_quantile(p: f64, freedom: usize) -> f64 {
    let f = freedom.max(1) as f64;
    let s = 2.0 / (9.0 * f);
    f * (1.0 - s + normal_quantile(p) * s.sqrt()).powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::PacingSpec;
    use crate::registry::Values;

    /// Residuals at the quantiles of a normal distribution.
    fn normal(n: usize, sigma: f64) -> Vec<f64> {
        (0..n).map(|i| sigma * normal_quantile((i as f64 + 0.5) / n as f64)).collect()
    }

    #[test]
    fn sigma_of_normal_errors_whatever_a_third_of_the_rows_says() {
        let clean = normal(2000, 3.0);
        assert!((m_scale(&clean, &[1.0; 2000], 0) / 3.0 - 1.0).abs() < 0.01);
        let mut dirty = clean.clone();
        dirty.iter_mut().step_by(3).for_each(|r| *r = 1e9);
        let scale = m_scale(&dirty, &[1.0; 2000], 0);
        assert!(scale > 3.0 && scale < 6.0, "{scale}");
        // Rows that do not count do not matter, and a unit is a unit.
        let counted: Vec<f64> = (0..2000).map(|i| if i % 3 == 0 { 0.0 } else { 1.0 }).collect();
        assert!((m_scale(&dirty, &counted, 0) / 3.0 - 1.0).abs() < 0.02);
        let small: Vec<f64> = clean.iter().map(|r| 1e-6 * r).collect();
        assert!((m_scale(&small, &[1.0; 2000], 0) * 1e6 / m_scale(&clean, &[1.0; 2000], 0) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn half_of_the_rows_exact_is_no_scale() {
        let mut r = vec![0.0; 60];
        r.extend(normal(40, 1.0));
        assert_eq!(m_scale(&r, &[1.0; 100], 1), 0.0);
    }

    /// The constants of the literature: 95 % at c = 3.673 (linear) and 2.795 (hard).
    #[test]
    fn efficiencies_of_the_literature() {
        for (name, c, share) in [("linear", 3.673, 0.95), ("linear", 2.822, 0.85), ("hard", 2.795, 0.95)] {
            let pacing = PacingSpec::by_name(name, &Values::default()).unwrap().build().unwrap();
            let sigma = 0.7;
            let found = efficiency(&*pacing, (c * sigma) * (c * sigma), sigma);
            assert!((found - share).abs() < 0.002, "{name} {c}: {found}");
        }
    }

    #[test]
    fn quantiles_of_the_tables() {
        assert!((normal_quantile(0.975) - 1.959_964).abs() < 1e-5);
        assert!((normal_quantile(1e-12) + 7.034).abs() < 1e-3);
        assert!((chi_squared_quantile(0.975, 10) / 20.483 - 1.0).abs() < 0.01);
        assert!((chi_squared_quantile(0.5, 3) / 2.366 - 1.0).abs() < 0.01);
    }
}
