//! How many rows are wrong, from the predictors z of a model that does not follow them.
//!
//! Numbers: the errors r = z − y are a mixture, (1 − π) N(μ, σ²) + π N(ν, τ²) with τ ≥ 2σ: most rows err a little, some by
//! much more. Two classes: the true class is + with probability p = 1/(1 + exp(−(az + b))), and a share π of the labels,
//! whatever the row, is the other one: P(y = +) = (1 − π) p + π (1 − p). Both by maximum likelihood (EM); the standard error
//! of π comes from the summed outer products of the scores. It says what chance does, not what a wrong model of the noise
//! does: heavy tails of honest rows count as wrong rows, and flips that gather at the boundary are not seen as flips.

use crate::dataset::weighted_median;
use crate::linalg::Cholesky;
use crate::loss::TargetKind;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Wrong rows err at least this much more widely than the others: what is closer cannot be told apart.
const WIDER: f64 = 2.0;

/// EM stops when the share moves by less than this; far below any standard error.
const SETTLED: f64 = 1e-7;

const MAX_ITERATIONS: usize = 2000;

/// The share EM starts from, and for classes the largest it can mean: beyond, the classes would have changed names.
const FIRST_GUESS: f64 = 0.2;
const MAX_FLIPS: f64 = 0.5;

/// The share of rows that are wrong, with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NoiseFraction {
    /// From 0 to 1.
    pub estimate: f64,
    /// Its standard error, as far as chance goes.
    pub standard_error: f64,
    /// Whether the predictions were made by paths that had not seen the rows.
    pub held_out: bool,
}

/// Rows that the estimate needs at least: it has as many parameters.
const FEWEST: f64 = 5.0;

/// Estimates the share of wrong rows from predictors z and targets y, row i standing for `counts[i]` rows; none for no more
/// rows than the estimate has parameters.
pub fn noise_fraction(
    z: &[f64],
    (y, counts): (&[f64], &[f64]),
    kind: TargetKind,
    held_out: bool,
) -> Option<NoiseFraction> {
    if counts.iter().sum::<f64>() <= FEWEST {
        return None;
    }
    let counted = z.iter().zip(y).zip(counts).filter(|(_, count)| **count > 0.0).map(|((z, y), n)| (*z, *y, *n));
    let (estimate, standard_error) = match kind {
        TargetKind::Real => Mixture::fit(&counted.map(|(z, y, n)| (z - y, n)).collect::<Vec<_>>()),
        TargetKind::Sign => Flips::fit(&counted.collect::<Vec<_>>()),
    };
    Some(NoiseFraction { estimate, standard_error, held_out })
}

/// Two normal distributions.
#[derive(Debug, Clone, Copy)]
struct Mixture {
    share: f64,
    mean: [f64; 2],
    sigma: [f64; 2],
}

impl Mixture {
    /// Of errors, each with the number of rows that have it.
    fn fit(errors: &[(f64, f64)]) -> (f64, f64) {
        let middle = weighted_median(errors.to_vec());
        let mad = weighted_median(errors.iter().map(|(r, n)| ((r - middle).abs(), *n)).collect());
        let total: f64 = errors.iter().map(|e| e.1).sum();
        let square = errors.iter().map(|(r, n)| n * (r - middle) * (r - middle)).sum::<f64>() / total;
        if square == 0.0 {
            return (0.0, 0.0);
        }
        // A spread of 0 would make the core a point.
        let floor = 1e-6 * square.sqrt();
        let core = f64::max(mad, floor);
        let mut at =
            Mixture { share: FIRST_GUESS, mean: [middle; 2], sigma: [core, f64::max(square.sqrt(), WIDER * core)] };
        for _ in 0..MAX_ITERATIONS {
            let next = at.improve(errors, floor);
            let moved = (next.share - at.share).abs();
            at = next;
            if moved < SETTLED {
                break;
            }
        }
        (at.share, standard_error(errors.iter().map(|&(r, n)| (at.score(r), n))))
    }

    /// The two densities, weighted.
    fn parts(&self, r: f64) -> [f64; 2] {
        let density = |k: usize| {
            let x = (r - self.mean[k]) / self.sigma[k];
            (-0.5 * x * x).exp() / (self.sigma[k] * (2.0 * PI).sqrt())
        };
        [(1.0 - self.share) * density(0), self.share * density(1)]
    }

    /// One step of EM. A row so far out that both densities vanish belongs to the wide part.
    fn improve(&self, errors: &[(f64, f64)], floor: f64) -> Mixture {
        let (mut n, mut sum, mut square) = ([1e-12; 2], [0.0; 2], [0.0; 2]);
        for &(r, count) in errors {
            let [a, b] = self.parts(r);
            let wide = if a + b > 0.0 { b / (a + b) } else { 1.0 };
            for (k, w) in [count * (1.0 - wide), count * wide].into_iter().enumerate() {
                n[k] += w;
                sum[k] += w * r;
                square[k] += w * r * r;
            }
        }
        let mean = [sum[0] / n[0], sum[1] / n[1]];
        let spread = |k: usize| f64::max(square[k] / n[k] - mean[k] * mean[k], 0.0).sqrt();
        let core = f64::max(spread(0), floor);
        Mixture { share: n[1] / (n[0] + n[1]), mean, sigma: [core, f64::max(spread(1), WIDER * core)] }
    }

    /// The derivatives of ln density by share, means and ln σ.
    fn score(&self, r: f64) -> [f64; 5] {
        let [a, b] = self.parts(r);
        let total = f64::max(a + b, f64::MIN_POSITIVE);
        let by = |k: usize, part: f64| {
            let x = (r - self.mean[k]) / self.sigma[k];
            (part / total * x / self.sigma[k], part / total * (x * x - 1.0))
        };
        let ((m0, s0), (m1, s1)) = (by(0, a), by(1, b));
        let share = (b / f64::max(self.share, 1e-12) - a / f64::max(1.0 - self.share, 1e-12)) / total;
        [share, m0, s0, m1, s1]
    }
}

/// A logistic curve over z with a share of flipped labels.
#[derive(Debug, Clone, Copy)]
struct Flips {
    share: f64,
    slope: f64,
    offset: f64,
}

impl Flips {
    /// Of predictors and labels, each with the number of rows that have them.
    fn fit(rows: &[(f64, f64, f64)]) -> (f64, f64) {
        let total: f64 = rows.iter().map(|(.., n)| n).sum();
        let size = rows.iter().map(|(z, _, n)| n * z.abs()).sum::<f64>() / total;
        if size == 0.0 {
            return (0.0, 0.0);
        }
        let rows: Vec<(f64, f64, f64)> = rows.iter().map(|&(z, y, n)| (z / size, y, n)).collect();
        let mut at = Flips { share: FIRST_GUESS, slope: 1.0, offset: 0.0 };
        for _ in 0..MAX_ITERATIONS {
            let next = at.improve(&rows, total);
            let moved = (next.share - at.share).abs() + (next.slope - at.slope).abs();
            at = next;
            if moved < SETTLED {
                break;
            }
        }
        (at.share, standard_error(rows.iter().map(|&(z, y, n)| (at.score(z, y), n))))
    }

    /// Probability that the true class is the one observed.
    fn honest(&self, z: f64, y: f64) -> f64 {
        1.0 / (1.0 + (-y * (self.slope * z + self.offset)).exp())
    }

    /// One step of EM: the share exactly, the curve by one step of Newton's method.
    fn improve(&self, rows: &[(f64, f64, f64)], total: f64) -> Flips {
        let (mut flipped, mut g, mut h) = (0.0, [0.0; 2], [1e-9, 0.0, 1e-9]);
        for &(z, y, count) in rows {
            let q = self.honest(z, y);
            let wrong = self.share * (1.0 - q);
            let wrong = wrong / f64::max(wrong + (1.0 - self.share) * q, f64::MIN_POSITIVE);
            flipped += count * wrong;
            let plus = if y > 0.0 { 1.0 - wrong } else { wrong };
            let p = self.honest(z, 1.0);
            let (miss, curvature) = (count * (plus - p), count * p * (1.0 - p));
            g = [g[0] + miss * z, g[1] + miss];
            h = [h[0] + curvature * z * z, h[1] + curvature * z, h[2] + curvature];
        }
        let det = f64::max(h[0] * h[2] - h[1] * h[1], f64::MIN_POSITIVE);
        // Separable rows would let the curve grow ever steeper; a step is at most 1.
        let step = |v: f64| (v / det).clamp(-1.0, 1.0);
        Flips {
            share: (flipped / total).min(MAX_FLIPS),
            slope: (self.slope + step(h[2] * g[0] - h[1] * g[1])).clamp(0.0, 1e3),
            offset: self.offset + step(h[0] * g[1] - h[1] * g[0]),
        }
    }

    /// The derivatives of ln P(y) by share, slope and offset.
    fn score(&self, z: f64, y: f64) -> [f64; 3] {
        let q = self.honest(z, y);
        let total = f64::max((1.0 - self.share) * q + self.share * (1.0 - q), f64::MIN_POSITIVE);
        let curve = (1.0 - 2.0 * self.share) * q * (1.0 - q) * y / total;
        [(1.0 - 2.0 * q) / total, curve * z, curve]
    }
}

/// The standard error of the first parameter from scores and the number of rows that have them.
fn standard_error<const P: usize>(scores: impl Iterator<Item = ([f64; P], f64)>) -> f64 {
    let mut information = vec![0.0; P * P];
    for (s, count) in scores {
        for a in 0..P {
            for b in 0..P {
                information[a * P + b] += count * s[a] * s[b];
            }
        }
    }
    let diagonal: Vec<f64> = (0..P).map(|k| information[k * P + k]).collect();
    if diagonal[0] <= 0.0 {
        return 0.0;
    }
    let mut factor = Cholesky::default();
    factor.factor(&information, &diagonal);
    let mut unit = vec![0.0; P];
    unit[0] = 1.0;
    factor.solve(&mut unit);
    f64::max(unit[0], 0.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    fn normal(rng: &mut ChaCha8Rng) -> f64 {
        StandardNormal.sample(rng)
    }

    /// Drawn with a known share, the estimate is off by no more than chance allows, and its error says how much that is.
    #[test]
    fn a_known_share_is_found_within_its_standard_error() {
        for (kind, n) in [(TargetKind::Real, 2000), (TargetKind::Sign, 2000)] {
            for share in [0.0, 0.1, 0.3] {
                let mut off = Vec::new();
                let mut errors = Vec::new();
                for seed in 0..20 {
                    let mut rng = ChaCha8Rng::seed_from_u64(seed);
                    let (mut z, mut y) = (Vec::new(), Vec::new());
                    for _ in 0..n {
                        let bad = rng.random::<f64>() < share;
                        let at = 2.0 * normal(&mut rng);
                        z.push(at);
                        y.push(match kind {
                            TargetKind::Real => at + normal(&mut rng) * if bad { 5.0 } else { 1.0 },
                            TargetKind::Sign => {
                                let plus = rng.random::<f64>() < 1.0 / (1.0 + (-2.0 * at).exp());
                                if plus != bad { 1.0 } else { -1.0 }
                            }
                        });
                    }
                    let found = noise_fraction(&z, (&y, &vec![1.0; n]), kind, true).unwrap();
                    off.push(found.estimate - share);
                    errors.push(found.standard_error);
                }
                let mean = off.iter().sum::<f64>() / 20.0;
                let spread = (off.iter().map(|o| o * o).sum::<f64>() / 20.0).sqrt();
                let claimed = errors.iter().sum::<f64>() / 20.0;
                assert!(mean.abs() < 0.015, "{kind:?} {share}: {mean}");
                if share > 0.0 {
                    assert!((0.5..2.0).contains(&(spread / claimed)), "{kind:?} {share}: {spread} {claimed}");
                }
            }
        }
    }

    const ONES: [f64; 6] = [1.0; 6];

    #[test]
    fn perfect_fits_and_few_rows_give_no_trouble() {
        let y = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(noise_fraction(&y, (&y, &ONES), TargetKind::Real, false).unwrap().estimate, 0.0);
        assert!(noise_fraction(&y[..3], (&y[..3], &ONES[..3]), TargetKind::Real, false).is_none());
        let signs = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0];
        let found = noise_fraction(&signs, (&signs, &ONES), TargetKind::Sign, false).unwrap();
        assert!(found.estimate < 0.05 && found.standard_error.is_finite(), "{found:?}");
        assert_eq!(noise_fraction(&[0.0; 6], (&signs, &ONES), TargetKind::Sign, false).unwrap().estimate, 0.0);
    }
}
