//! min over y of gᵀ(y − x) + ½ (y − x)ᵀA(y − x) + Σ l1_j |y_j| for positive semidefinite A: the subproblem of every
//! proximal Newton step.
//!
//! Coordinate descent finds the face (which coefficients are zero, the signs of the rest); a Cholesky solve on the face
//! finishes to rounding, however ill-conditioned A is. Both only ever decrease the objective.

use crate::linalg::{Cholesky, axpy, symmetric_times};

/// Rounds of sweep + face solve before what is there is taken.
const MAX_ROUNDS: usize = 300;
/// A slope along a flat direction below this share of what cancels in it is rounding.
const FLAT: f64 = 1e-8;
/// A bound exceeded by less than this share of itself is kept.
const SLACK: f64 = 1e-12;

/// One subproblem. `a` is a lower triangle, `l1` the bounds (0: free).
#[derive(Debug)]
pub(crate) struct Quadratic<'a> {
    pub a: &'a [f64],
    pub magnitude: &'a [f64],
    pub g: &'a [f64],
    pub l1: &'a [f64],
}

impl Quadratic<'_> {
    fn entry(&self, i: usize, j: usize) -> f64 {
        self.a[i.max(j) * self.g.len() + i.min(j)]
    }

    /// Moves `y` (at the start: x) to the minimiser.
    pub fn minimise(&self, x: &[f64], y: &mut [f64]) {
        // q = gradient of the quadratic part at y.
        let mut q = self.gradient(x, y);
        for _ in 0..MAX_ROUNDS {
            self.solve_on_face(y, &mut q);
            if !self.sweep(y, &mut q) {
                return;
            }
            q = self.gradient(x, y);
        }
    }

    fn gradient(&self, x: &[f64], y: &[f64]) -> Vec<f64> {
        let step: Vec<f64> = y.iter().zip(x).map(|(y, x)| y - x).collect();
        let mut q = vec![0.0; y.len()];
        symmetric_times(self.a, &step, &mut q);
        axpy(1.0, self.g, &mut q);
        q
    }

    /// One pass of coordinate descent over the coordinates at zero; answers whether any of them moved.
    fn sweep(&self, y: &mut [f64], q: &mut [f64]) -> bool {
        let mut moved = false;
        for j in 0..y.len() {
            let curvature = self.entry(j, j);
            if y[j] != 0.0 || self.l1[j] == 0.0 || q[j].abs() <= self.l1[j] * (1.0 + SLACK) || curvature <= 0.0 {
                continue;
            }
            let step = -(q[j] - self.l1[j] * q[j].signum()) / curvature;
            y[j] = step;
            for (k, q) in q.iter_mut().enumerate() {
                *q += step * self.entry(k, j);
            }
            moved = true;
        }
        moved
    }

    /// Newton on the face of y's signs, stopping where a sign would change and going on without that coordinate.
    fn solve_on_face(&self, y: &mut [f64], q: &mut [f64]) {
        let m = y.len();
        loop {
            let face: Vec<usize> = (0..m).filter(|&j| y[j] != 0.0 || self.l1[j] == 0.0).collect();
            let k = face.len();
            let mut a = vec![0.0; k * k];
            for (p, &i) in face.iter().enumerate() {
                for (r, &j) in face[..=p].iter().enumerate() {
                    a[p * k + r] = self.entry(i, j);
                }
            }
            let magnitude: Vec<f64> = face.iter().map(|&j| self.magnitude[j]).collect();
            let mut factor = Cholesky::default();
            factor.factor(&a, &magnitude);
            let sign = |y: f64, l1: f64| if l1 > 0.0 { y.signum() } else { 0.0 };
            let slope: Vec<f64> = face.iter().map(|&j| q[j] + self.l1[j] * sign(y[j], self.l1[j])).collect();
            let flat = self.flat_descent(&face, &a, &factor, &slope);
            let along_flat = flat.is_some();
            let step = flat.unwrap_or_else(|| {
                let mut step: Vec<f64> = slope.iter().map(|s| -s).collect();
                factor.solve(&mut step);
                step
            });
            // The first sign change on the way. Where nothing curves, there is no other end.
            let mut share = if along_flat { f64::INFINITY } else { 1.0 };
            let mut blocked = None;
            for (p, &j) in face.iter().enumerate() {
                if self.l1[j] > 0.0 && step[p] * y[j] < 0.0 && (along_flat || (y[j] + step[p]) * y[j] <= 0.0) {
                    let at = -y[j] / step[p];
                    if at <= share {
                        (share, blocked) = (at, Some(j));
                    }
                }
            }
            if blocked.is_none() && along_flat {
                return; // no bound ends it: there is no minimiser
            }
            for (p, &j) in face.iter().enumerate() {
                y[j] += share * step[p];
                let delta = share * step[p];
                for (i, q) in q.iter_mut().enumerate() {
                    *q += delta * self.entry(i, j);
                }
            }
            match blocked {
                Some(j) => y[j] = 0.0,
                None => return,
            }
        }
    }

    /// A direction on the face without curvature in which the objective falls: one that a held column spans with the
    /// others.
    fn flat_descent(&self, face: &[usize], a: &[f64], factor: &Cholesky, slope: &[f64]) -> Option<Vec<f64>> {
        let k = face.len();
        (0..k).filter(|&p| factor.is_held(p)).find_map(|p| {
            let mut direction: Vec<f64> = (0..k).map(|r| -a[r.max(p) * k + r.min(p)]).collect();
            factor.solve(&mut direction);
            direction[p] = 1.0;
            let fall = crate::linalg::dot(&direction, slope);
            let size: f64 = direction.iter().zip(face).map(|(d, &j)| d.abs() * (self.l1[j] + self.g[j].abs())).sum();
            (fall.abs() > FLAT * size).then(|| {
                direction.iter_mut().for_each(|d| *d *= -fall.signum());
                direction
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::rank_one;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_minimiser_satisfies_its_optimality_conditions(
            values in prop::collection::vec(-1.0..1.0f64, 60),
            w in prop::collection::vec(-2.0..2.0f64, 6),
            bound in 0.05..1.0f64,
            collinear in any::<bool>(),
        ) {
            let m = 6;
            let mut a = vec![0.0; m * m];
            for row in values.chunks(m) {
                let mut row = row.to_vec();
                if collinear {
                    row[3] = row[1];
                }
                rank_one(&mut a, &row, 1.0);
            }
            // A gradient that the quadratic can reach, or there is no minimiser.
            let mut g = vec![0.0; m];
            symmetric_times(&a, &w, &mut g);
            let mut l1 = vec![bound; m];
            l1[5] = 0.0;
            let magnitude: Vec<f64> = (0..m).map(|j| a[j * m + j]).collect();
            let problem = Quadratic { a: &a, magnitude: &magnitude, g: &g, l1: &l1 };
            let x = vec![0.0; m];
            let mut y = x.clone();
            problem.minimise(&x, &mut y);
            let q = problem.gradient(&x, &y);
            for j in 0..m {
                let miss = if y[j] == 0.0 { (q[j].abs() - l1[j]).max(0.0) }
                           else { (q[j] + if l1[j] > 0.0 { l1[j] * y[j].signum() } else { 0.0 }).abs() };
                prop_assert!(miss < 1e-8, "coordinate {j}: {miss}");
            }
        }
    }
}
