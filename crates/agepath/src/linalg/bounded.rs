//! Least squares between bounds: min ‖Σ_i x_i a_i − r‖² over low ≤ x ≤ high, by active sets (Stark and Parker 1995).

use super::{Cholesky, axpy, dot};

/// Steps on one active set: the first solves, the others remove the rounding of the normal equations.
const REFINEMENTS: usize = 3;
/// A bound is left if that lowers the residual by more than this share of it.
const LEAVE: f64 = 1e-10;

/// One number per row of `a` (row after row, as long as `r`).
pub(crate) fn bounded_least_squares(a: &[f64], r: &[f64], ends: &[(f64, f64)]) -> Vec<f64> {
    by_projection(a, r, ends).unwrap_or_else(|| by_active_sets(a, r, ends))
}

/// What is left of r where it is met, relative to what adds up to it.
const MET: f64 = 1e-14;
/// Rounds in which all that leave their bounds are put there together.
const ROUNDS: usize = 12;

/// From the middle of all bounds along the shortest way, in units of their widths, to where r is met; those that leave their
/// bounds stay there, and the others go on. None if r is not met in the end: where there are many ways, one is found.
fn by_projection(a: &[f64], r: &[f64], ends: &[(f64, f64)]) -> Option<Vec<f64>> {
    let (k, m) = (ends.len(), r.len());
    let row = |i: usize| &a[i * m..(i + 1) * m];
    let mut x: Vec<f64> = ends.iter().map(|(low, high)| 0.5 * (low + high)).collect();
    let mut free: Vec<usize> = (0..k).collect();
    let size: f64 = r.iter().map(|r| r.abs()).sum::<f64>()
        + (0..k)
            .map(|i| ends[i].0.abs().max(ends[i].1.abs()) * row(i).iter().map(|a| a.abs()).sum::<f64>())
            .sum::<f64>();
    for _ in 0..ROUNDS {
        let way = ShortestWay::new(&free, ends, &row, m);
        for _ in 0..REFINEMENTS {
            let mut rest = r.to_vec();
            (0..k).for_each(|i| axpy(-x[i], row(i), &mut rest));
            way.step(&rest, &row, &mut x);
        }
        let before = free.len();
        free.retain(|&i| ends[i].0 <= x[i] && x[i] <= ends[i].1);
        (0..k).for_each(|i| x[i] = x[i].clamp(ends[i].0, ends[i].1));
        if free.len() == before {
            let mut rest = r.to_vec();
            (0..k).for_each(|i| axpy(-x[i], row(i), &mut rest));
            return (rest.iter().all(|r| r.abs() <= MET * size)).then_some(x);
        }
    }
    None
}

/// The normal equations of the free rows, the smaller way round: dx = W A y with (AᵀWA) y = rest, or with (AWAᵀ) where there are
/// fewer rows than columns.
struct ShortestWay<'f> {
    free: &'f [usize],
    weights: Vec<f64>,
    thin: bool,
    factor: Cholesky,
}

impl<'f> ShortestWay<'f> {
    fn new<'a>(free: &'f [usize], ends: &[(f64, f64)], row: &impl Fn(usize) -> &'a [f64], m: usize) -> Self {
        let k = free.len();
        let thin = k <= m;
        let weights: Vec<f64> =
            free.iter().map(|&i| if thin { 1.0 } else { (ends[i].1 - ends[i].0).powi(2) }).collect();
        let size = if thin { k } else { m };
        let mut gram = vec![0.0; size * size];
        for (p, &i) in free.iter().enumerate() {
            if thin {
                free[..=p].iter().enumerate().for_each(|(q, &j)| gram[p * size + q] = dot(row(i), row(j)));
            } else {
                let x = row(i);
                (0..m).for_each(|c| axpy(weights[p] * x[c], &x[..=c], &mut gram[c * m..c * m + c + 1]));
            }
        }
        let sizes: Vec<f64> = (0..size).map(|j| gram[j * size + j]).collect();
        let mut factor = Cholesky::default();
        factor.factor(&gram, &sizes);
        ShortestWay { free, weights, thin, factor }
    }

    fn step<'a>(&self, rest: &[f64], row: &impl Fn(usize) -> &'a [f64], x: &mut [f64]) {
        if self.thin {
            let mut step: Vec<f64> = self.free.iter().map(|&i| dot(row(i), rest)).collect();
            self.factor.solve(&mut step);
            self.free.iter().zip(step).for_each(|(&i, d)| x[i] += d);
        } else {
            let mut y = rest.to_vec();
            self.factor.solve(&mut y);
            self.free.iter().zip(&self.weights).for_each(|(&i, w)| x[i] += w * dot(row(i), &y));
        }
    }
}

/// Dependent rows that are free keep the value they have.
fn by_active_sets(a: &[f64], r: &[f64], ends: &[(f64, f64)]) -> Vec<f64> {
    let (k, row) = (ends.len(), |i: usize| &a[i * r.len()..(i + 1) * r.len()]);
    // From the middle, or from the smaller end where no more than a few of many rows can be free in the end.
    let many = k > r.len();
    let smaller = |low: f64, high: f64| if low.abs() <= high.abs() { low } else { high };
    let begin = |&(low, high): &(f64, f64)| if many { smaller(low, high) } else { 0.5 * (low + high) };
    let mut x: Vec<f64> = ends.iter().map(begin).collect();
    let mut free = vec![!many; k];
    let mut factor = FreeSet::default();
    let mut steps = if many { REFINEMENTS } else { 0 };
    // Each set is left by a bound that is hit or by one that is let go; twice as many as rows is ample.
    for _ in 0..(REFINEMENTS + 1) * (2 * k + 4) {
        let mut rest = r.to_vec();
        (0..k).for_each(|i| axpy(-x[i], row(i), &mut rest));
        let pull: Vec<f64> = (0..k).map(|i| dot(row(i), &rest)).collect();
        if steps == REFINEMENTS {
            let gain = |i: usize| {
                let inward = if x[i] <= ends[i].0 { pull[i] } else { -pull[i] };
                inward / dot(row(i), row(i)).sqrt().max(f64::MIN_POSITIVE)
            };
            let best = (0..k).filter(|&i| !free[i]).max_by(|&i, &j| gain(i).total_cmp(&gain(j)));
            match best.filter(|&i| gain(i) > LEAVE * dot(&rest, &rest).sqrt()) {
                Some(i) => free[i] = true,
                None => break,
            }
            steps = 0;
        }
        factor.make(&free, &row);
        let step = factor.step(&pull);
        // Whoever would pass a bound first stops all.
        let room = |(i, d): &(usize, f64)| {
            let (low, high) = ends[*i];
            if *d > 0.0 { (high - x[*i]) / d } else { (low - x[*i]) / d }
        };
        let share = step.iter().filter(|s| s.1 != 0.0).map(room).fold(1.0, f64::min).max(0.0);
        let mut hit = false;
        for (i, d) in step {
            let (low, high) = ends[i];
            let to = x[i] + share * d;
            // At the bound up to rounding: the next step would only be short.
            let slack = f64::EPSILON * (high - low);
            let stops = share < 1.0 && ((d > 0.0 && to >= high - slack) || (d < 0.0 && to <= low + slack));
            x[i] = if stops && d > 0.0 {
                high
            } else if stops {
                low
            } else {
                to.clamp(low, high)
            };
            free[i] = !stops;
            hit |= stops;
        }
        steps = if hit { 0 } else { steps + 1 };
    }
    x
}

/// The normal equations of the free rows.
#[derive(Default)]
struct FreeSet {
    made_for: Vec<bool>,
    rows: Vec<usize>,
    factor: Cholesky,
}

impl FreeSet {
    fn make<'a>(&mut self, free: &[bool], row: &impl Fn(usize) -> &'a [f64]) {
        if self.made_for == free {
            return;
        }
        self.made_for = free.to_vec();
        self.rows = (0..free.len()).filter(|&i| free[i]).collect();
        let m = self.rows.len();
        let mut gram = vec![0.0; m * m];
        for (p, &i) in self.rows.iter().enumerate() {
            for (q, &j) in self.rows[..=p].iter().enumerate() {
                gram[p * m + q] = dot(row(i), row(j));
            }
        }
        let sizes: Vec<f64> = (0..m).map(|p| gram[p * m + p]).collect();
        self.factor.factor(&gram, &sizes);
    }

    fn step(&self, pull: &[f64]) -> Vec<(usize, f64)> {
        let mut step: Vec<f64> = self.rows.iter().map(|&i| pull[i]).collect();
        self.factor.solve(&mut step);
        self.rows.iter().copied().zip(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    /// No move within the bounds lowers the residual.
    fn assert_optimal(a: &[f64], r: &[f64], ends: &[(f64, f64)]) -> f64 {
        let x = bounded_least_squares(a, r, ends);
        let mut rest = r.to_vec();
        x.iter().zip(a.chunks(r.len())).for_each(|(x, row)| axpy(-x, row, &mut rest));
        for ((x, row), (low, high)) in x.iter().zip(a.chunks(r.len())).zip(ends) {
            assert!(low <= x && x <= high);
            let pull = dot(row, &rest);
            assert!(pull <= 1e-9 || *x >= high - 1e-9, "{x} below {high} is pulled up by {pull}");
            assert!(pull >= -1e-9 || *x <= low + 1e-9, "{x} above {low} is pulled down by {pull}");
        }
        dot(&rest, &rest).sqrt()
    }

    #[test]
    fn no_move_within_the_bounds_improves_the_fit() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(5);
        for round in 0..200 {
            let (k, m) = (1 + round % 9, 1 + round % 5);
            let mut a: Vec<f64> = (0..k * m).map(|_| rng.random::<f64>() - 0.5).collect();
            if round % 3 == 0 && k > 1 {
                // A repeated row.
                let (first, second) = a.split_at_mut(m);
                second[..m].copy_from_slice(first);
            }
            let r: Vec<f64> = (0..m).map(|_| rng.random::<f64>() - 0.5).collect();
            let ends: Vec<(f64, f64)> = (0..k).map(|_| (-rng.random::<f64>(), rng.random::<f64>())).collect();
            assert_optimal(&a, &r, &ends);
        }
    }

    #[test]
    fn many_rows_share_what_few_could_not_bear() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
        for m in 1..6 {
            let k = 300;
            let a: Vec<f64> = (0..k * m).map(|_| rng.random::<f64>() - 0.5).collect();
            let x: Vec<f64> = (0..k).map(|_| rng.random::<f64>()).collect();
            let mut r = vec![0.0; m];
            x.iter().zip(a.chunks(m)).for_each(|(x, row)| axpy(*x, row, &mut r));
            let left = assert_optimal(&a, &r, &vec![(0.0, 1.0); k]);
            assert!(left < 1e-12, "{left} left of {k} rows in {m} columns");
        }
    }

    #[test]
    fn what_can_be_met_is_met() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(6);
        for round in 0..200 {
            let (k, m) = (1 + round % 7, 4);
            let mut a: Vec<f64> = (0..k * m).map(|_| rng.random::<f64>() - 0.5).collect();
            if k > 1 {
                let (first, second) = a.split_at_mut(m);
                second[..m].copy_from_slice(first);
            }
            // Some of the true values are at a bound.
            let x: Vec<f64> = (0..k).map(|i| if i % 3 == 1 { 1.0 } else { 2.0 * rng.random::<f64>() - 1.0 }).collect();
            let mut r = vec![0.0; m];
            x.iter().zip(a.chunks(m)).for_each(|(x, row)| axpy(*x, row, &mut r));
            let left = assert_optimal(&a, &r, &vec![(-1.0, 1.0); k]);
            assert!(left < 1e-13, "{left} left of {k} rows");
        }
    }
}
