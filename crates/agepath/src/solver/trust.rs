//! min over p of bᵀp + ½ pᵀHp within ‖p‖ ≤ radius, for any symmetric H: the subproblem of a trust-region step.
//!
//! The minimiser is −(H + μ)⁻¹b with the μ ≥ max(0, −λ_min) that puts it on the boundary, or Newton's step where that lies inside
//! (Moré and Sorensen 1983). A few factorisations find it; where the slope has no part along the least curvature, or that itself is
//! wanted, the eigen-decomposition of H, which costs as much as dozens of them.

use crate::linalg::{Cholesky, axpy, dot, symmetric_eigen};

/// Eigenvalues below this share of the largest are rounding.
const FLAT: f64 = 1e-13;
/// The boundary is met to this share of the radius.
const ON_BOUNDARY: f64 = 1e-6;
/// Steps of the search for μ: it converges in a few.
const MAX_SEARCH: usize = 100;
/// By factorisations the boundary is met to this share of the radius ...
const NEAR_BOUNDARY: f64 = 0.1;
/// ... with so many of them, or not at all.
const MAX_FACTORS: usize = 12;

/// The minimiser, about on the boundary, by factorisations of H + μ (H a lower triangle); none where that takes too many.
pub(super) fn boundary_step(h: &[f64], b: &[f64], radius: f64) -> Option<Vec<f64>> {
    let m = b.len();
    let size = dot(b, b).sqrt();
    let diagonal: Vec<f64> = (0..m).map(|j| h[j * m + j]).collect();
    let off = |i: usize| {
        let each = (0..m).filter(|&j| j != i);
        each.map(|j| h[i.max(j) * m + i.min(j)].abs()).sum::<f64>()
    };
    // Gershgorin: all eigenvalues are at least `floor`.
    let floor = (0..m).map(|i| diagonal[i] - off(i)).fold(f64::INFINITY, f64::min);
    let least = diagonal.iter().copied().fold(f64::INFINITY, f64::min);
    let (mut low, mut high) = ((-least).max(0.0), (size / radius - floor).max(0.0));
    let between = |low: f64, high: f64| (low * high).sqrt().max(low + 0.01 * (high - low));
    let mut mu = low + 1e-3 * (high - low);
    let (mut factor, mut shifted) = (Cholesky::default(), h.to_vec());
    for _ in 0..MAX_FACTORS {
        (0..m).for_each(|j| shifted[j * m + j] = diagonal[j] + mu);
        let magnitude: Vec<f64> = diagonal.iter().map(|d| d.abs() + mu).collect();
        if !factor.factor_positive(&shifted, &magnitude) {
            low = mu;
            mu = between(low, high);
            continue;
        }
        let mut step: Vec<f64> = b.iter().map(|b| -b).collect();
        factor.solve(&mut step);
        let length = dot(&step, &step).sqrt();
        if (length - radius).abs() <= NEAR_BOUNDARY * radius || (mu == 0.0 && length <= radius) {
            return Some(step);
        }
        if length > radius {
            low = mu
        } else {
            high = mu
        }
        let mut bent = step;
        factor.forward(&mut bent);
        let newton = mu + (length / radius - 1.0) * length * length / dot(&bent, &bent);
        mu = if low < newton && newton < high { newton } else { between(low, high) };
    }
    None
}

/// H by its eigenvalues, smallest first, and eigenvectors.
#[derive(Debug)]
pub(super) struct Curvature {
    values: Vec<f64>,
    vectors: Vec<f64>,
}

impl Curvature {
    /// Of a lower triangle whose entries carry rounding of size `unit`·[`FLAT`].
    pub fn of(a: &[f64], m: usize, unit: f64) -> Option<Curvature> {
        let (mut values, vectors) = symmetric_eigen(a, m)?;
        let flat = FLAT * values.iter().fold(unit, |top, v| top.max(v.abs())).max(f64::MIN_POSITIVE);
        values.iter_mut().filter(|v| v.abs() <= flat).for_each(|v| *v = flat);
        Some(Curvature { values, vectors })
    }

    /// The least curvature and its direction.
    pub fn least(&self) -> (f64, &[f64]) {
        let m = self.values.len();
        (self.values[0], &self.vectors[..m])
    }

    /// The minimiser within the radius.
    pub fn step(&self, b: &[f64], radius: f64) -> Vec<f64> {
        let m = b.len();
        let along: Vec<f64> = self.vectors.chunks(m).map(|v| dot(v, b)).collect();
        let size = |mu: f64| along.iter().zip(&self.values).map(|(c, w)| (c / (w + mu)).powi(2)).sum::<f64>().sqrt();
        let lowest = (-self.values[0]).max(0.0);
        if self.values[0] > 0.0 && size(0.0) <= radius {
            return self.combine(&along, 0.0);
        }
        let top = self.values.iter().fold(0.0f64, |top, v| top.max(v.abs())).max(f64::MIN_POSITIVE);
        let nudge = 1e-14 * top;
        if size(lowest + nudge) < radius {
            return self.hard_case(&along, lowest + nudge, radius);
        }
        let (mut low, mut high) = (lowest + nudge, lowest + dot(b, b).sqrt() / radius + nudge);
        let mut mu = low + 1e-3 * (high - low);
        for _ in 0..MAX_SEARCH {
            let length = size(mu);
            if (length - radius).abs() <= ON_BOUNDARY * radius || high - low <= 1e-15 * high {
                break;
            }
            if length > radius {
                low = mu
            } else {
                high = mu
            }
            let steep: f64 = along.iter().zip(&self.values).map(|(c, w)| c * c / (w + mu).powi(3)).sum();
            let newton = mu + (length / radius - 1.0) * length * length / steep;
            mu = if low < newton && newton < high { newton } else { 0.5 * (low + high) };
        }
        self.combine(&along, mu)
    }

    /// The slope has no part along the least curvature: as much of that direction as the radius has room for.
    fn hard_case(&self, along: &[f64], mu: f64, radius: f64) -> Vec<f64> {
        let mut step = self.combine(along, mu);
        let room = (radius * radius - dot(&step, &step)).max(0.0).sqrt();
        let way = if along[0] > 0.0 { -room } else { room };
        axpy(way, self.least().1, &mut step);
        step
    }

    fn combine(&self, along: &[f64], mu: f64) -> Vec<f64> {
        let m = along.len();
        let mut step = vec![0.0; m];
        for (k, v) in self.vectors.chunks(m).enumerate() {
            axpy(-along[k] / (self.values[k] + mu), v, &mut step);
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::symmetric_times;
    use proptest::prelude::*;

    proptest! {
        /// Nothing within the radius is lower, and the step does not leave it.
        #[test]
        fn no_point_within_the_radius_is_lower(
            entries in prop::collection::vec(-1.0..1.0f64, 16),
            b in prop::collection::vec(-1.0..1.0f64, 4),
            others in prop::collection::vec(-1.0..1.0f64, 40),
            radius in 0.01..3.0f64,
        ) {
            let model = |p: &[f64]| {
                let mut hp = vec![0.0; 4];
                symmetric_times(&entries, p, &mut hp);
                dot(&b, p) + 0.5 * dot(&hp, p)
            };
            let step = Curvature::of(&entries, 4, 1.0).unwrap().step(&b, radius);
            let length = dot(&step, &step).sqrt();
            if let Some(near) = boundary_step(&entries, &b, radius) {
                let reach = dot(&near, &near).sqrt();
                prop_assert!(reach <= (1.0 + NEAR_BOUNDARY) * radius);
                // No better than the best in the radius that it has, and hardly worse than the best in the one that was asked for.
                let best = Curvature::of(&entries, 4, 1.0).unwrap().step(&b, reach);
                prop_assert!((model(&near) - model(&best)).abs() <= 10.0 * ON_BOUNDARY * (1.0 + model(&best).abs()));
                prop_assert!(model(&near) <= (1.0 - 2.0 * NEAR_BOUNDARY) * model(&step) + 1e-9);
            }
            prop_assert!(length <= radius * (1.0 + 1e-5));
            for p in others.chunks(4) {
                let size = dot(p, p).sqrt().max(1e-12);
                for share in [1.0, 0.5, (size / radius).min(1.0)] {
                    let p: Vec<f64> = p.iter().map(|v| v * share * radius / size).collect();
                    prop_assert!(model(&step) <= model(&p) + 1e-6);
                }
            }
        }
    }

    #[test]
    fn a_saddle_without_slope_is_left_to_the_boundary() {
        let step = Curvature::of(&[1.0, 0.0, 0.0, -2.0], 2, 1.0).unwrap().step(&[0.0, 0.0], 0.5);
        assert!((dot(&step, &step).sqrt() - 0.5).abs() < 1e-9 && step[0].abs() < 1e-9);
    }
}
