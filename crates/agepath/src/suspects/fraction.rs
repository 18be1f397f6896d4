//! How many rows are wrong, from the predictors z of a model that does not follow them.
//!
//! Numbers: the rows that are flagged, less the share of normal errors that would be; so the share and the flags agree, and bad rows
//! that look like good ones are not counted. Two classes: the true class is + with probability p = 1/(1 + exp(−(az + b))), and a share π of the labels,
//! whatever the row, is the other one: P(y = +) = (1 − π) p + π (1 − p). By maximum likelihood (EM); the standard error
//! of π comes from the summed outer products of the scores. It says what chance does, not what a wrong model of the noise
//! does: heavy tails of honest rows count as wrong rows, and flips that gather at the boundary are not seen as flips.

use crate::judge::{BEYOND_FLAG, normal_quantile};
use crate::linalg::Cholesky;
use serde::{Deserialize, Serialize};

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

/// An error larger than this says nothing about the share.
const USELESS: f64 = 0.1;

impl NoiseFraction {
    /// Of numbers, from the rows that are flagged; a row of weight 2 is two rows.
    pub(crate) fn of_flags(flagged: f64, rows: f64, held_out: bool) -> NoiseFraction {
        let share = flagged / rows;
        let estimate = ((share - BEYOND_FLAG) / (1.0 - BEYOND_FLAG)).max(0.0);
        let spread = share.max(BEYOND_FLAG);
        NoiseFraction { estimate, standard_error: (spread * (1.0 - spread) / rows).sqrt(), held_out }
    }

    /// Whether so many rows can tell it.
    pub fn can_be_told(&self) -> bool {
        self.estimate.is_finite() && self.standard_error <= USELESS
    }
}

/// How probable each label is where labels may be flipped.
#[derive(Debug, Clone, Copy)]
pub(super) struct LabelOdds {
    flips: Flips,
    size: f64,
}

impl LabelOdds {
    /// From predictors and labels.
    pub fn new(z: &[f64], y: &[f64], counts: &[f64]) -> LabelOdds {
        let rows: Vec<(f64, f64, f64)> = z.iter().zip(y).zip(counts).map(|((z, y), n)| (*z, *y, *n)).collect();
        let (flips, size) = Flips::settled(&rows);
        LabelOdds { flips, size }
    }

    /// The normal deviate that is as rare, on both sides together, as this label would be if it were not flipped.
    pub fn deviate(&self, z: f64, y: f64) -> f64 {
        let honest = self.flips.honest(z / self.size, y).clamp(f64::MIN_POSITIVE, 1.0);
        -normal_quantile(0.5 * honest)
    }
}

/// Rows that the estimate needs at least: it has as many parameters.
const FEWEST: f64 = 5.0;

/// Estimates the share of flipped labels from predictors z and labels y, row i standing for `counts[i]` rows; none for no more
/// rows than the estimate has parameters.
pub fn noise_fraction(z: &[f64], (y, counts): (&[f64], &[f64]), held_out: bool) -> Option<NoiseFraction> {
    if counts.iter().sum::<f64>() <= FEWEST {
        return None;
    }
    let counted = z.iter().zip(y).zip(counts).filter(|(_, count)| **count > 0.0).map(|((z, y), n)| (*z, *y, *n));
    let (estimate, standard_error) = Flips::fit(&counted.collect::<Vec<_>>());
    Some(NoiseFraction { estimate, standard_error, held_out })
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
        let (at, size) = Flips::settled(rows);
        if at.slope == 0.0 {
            return (0.0, 0.0);
        }
        (at.share, standard_error(rows.iter().map(|&(z, y, n)| (at.score(z / size, y), n))))
    }

    /// The curve over z in units of the mean size of z, which comes with it. Where no predictor says anything, neither does the curve.
    fn settled(rows: &[(f64, f64, f64)]) -> (Flips, f64) {
        let total: f64 = rows.iter().map(|(.., n)| n).sum();
        let size = rows.iter().map(|(z, _, n)| n * z.abs()).sum::<f64>() / total;
        if size == 0.0 {
            return (Flips { share: 0.0, slope: 0.0, offset: 0.0 }, 1.0);
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
        (at, size)
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
        let n = 2000;
        for share in [0.0, 0.1, 0.3] {
            let (mut off, mut errors) = (Vec::new(), Vec::new());
            for seed in 0..20 {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let (mut z, mut y) = (Vec::new(), Vec::new());
                for _ in 0..n {
                    let bad = rng.random::<f64>() < share;
                    let at = 2.0 * normal(&mut rng);
                    let plus = rng.random::<f64>() < 1.0 / (1.0 + (-2.0 * at).exp());
                    z.push(at);
                    y.push(if plus != bad { 1.0 } else { -1.0 });
                }
                let found = noise_fraction(&z, (&y, &vec![1.0; n]), true).unwrap();
                off.push(found.estimate - share);
                errors.push(found.standard_error);
            }
            let mean = off.iter().sum::<f64>() / 20.0;
            let spread = (off.iter().map(|o| o * o).sum::<f64>() / 20.0).sqrt();
            let claimed = errors.iter().sum::<f64>() / 20.0;
            assert!(mean.abs() < 0.015, "{share}: {mean}");
            if share > 0.0 {
                assert!((0.5..2.0).contains(&(spread / claimed)), "{share}: {spread} {claimed}");
            }
        }
    }

    /// Labels that a curve explains are no suspects, one far on the wrong side is; the rarer, the larger.
    #[test]
    fn a_label_on_the_wrong_side_stands_out() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let z: Vec<f64> = (0..1000).map(|_| 2.0 * normal(&mut rng)).collect();
        let sign = |z: f64, rng: &mut ChaCha8Rng| {
            if rng.random::<f64>() < 1.0 / (1.0 + (-3.0 * z).exp()) { 1.0 } else { -1.0 }
        };
        let y: Vec<f64> = z.iter().map(|&z| sign(z, &mut rng)).collect();
        let odds = LabelOdds::new(&z, &y, &vec![1.0; 1000]);
        assert!(odds.deviate(4.0, -1.0) > odds.deviate(2.0, -1.0) && odds.deviate(2.0, -1.0) > odds.deviate(2.0, 1.0));
        assert!(odds.deviate(4.0, -1.0) > 2.5 && odds.deviate(0.0, -1.0) < 1.5);
    }

    #[test]
    fn the_share_of_numbers_is_that_of_the_flags_less_what_chance_flags() {
        let of = |flagged: i32, rows: i32| NoiseFraction::of_flags(flagged.into(), rows.into(), false);
        assert_eq!(of(0, 1000).estimate, 0.0);
        assert!((of(308, 1000).estimate - 0.3).abs() < 0.001);
        assert!(of(10, 1000).can_be_told() && !of(2, 5).can_be_told());
    }

    const ONES: [f64; 6] = [1.0; 6];

    #[test]
    fn perfect_fits_and_few_rows_give_no_trouble() {
        let signs = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0];
        assert!(noise_fraction(&signs[..3], (&signs[..3], &ONES[..3]), false).is_none());
        let found = noise_fraction(&signs, (&signs, &ONES), false).unwrap();
        assert!(found.estimate < 0.05 && found.standard_error.is_finite(), "{found:?}");
        assert_eq!(noise_fraction(&[0.0; 6], (&signs, &ONES), false).unwrap().estimate, 0.0);
    }
}
