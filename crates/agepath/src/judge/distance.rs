//! How far out a row lies in X, told so that a third of the rows cannot hide themselves.
//!
//! The covariance of the half of the rows with the smallest determinant (Rousseeuw 1985), from deterministic starts (Hubert, Rousseeuw and
//! Verdonck 2012), one of them the correlation of wrapped columns (Raymaekers and Rousseeuw 2021); random starts miss a cluster of 30 % from
//! about ten columns on. Covariances are regularised, so many or collinear columns are no obstacle. Columns of two values say nothing
//! about distance and are left out; a column whose middle half is one value is measured by its outer quantiles.

use super::scale::{chi_squared_quantile, normal_quantile};
use crate::dataset::{Dataset, median, weighted_quantile};
use crate::linalg::{Cholesky, dot, symmetric_eigen};

/// 1/0.6745: from the median absolute deviation to the standard deviation.
const MAD: f64 = 1.4826;
/// The distance between the outer quantiles of a normal distribution at [`OUTER`] and 1 − [`OUTER`].
const OUTER: f64 = 0.05;
const OUTER_WIDTH: f64 = 3.29;
/// A spread below this share of the column's size is rounding.
const NO_SPREAD: f64 = 1e-9;
/// A column needs more values than this to have a distance.
const FEW_VALUES: usize = 2;
/// This share of the average variance is added to every covariance.
const REGULAR: f64 = 1e-3;
/// Concentration settles within a few steps; more are cut off.
const MAX_STEPS: usize = 50;
/// More columns than this share of the rows, or more than so many, are not told apart by half of the rows.
const MOST_COLUMNS_SHARE: f64 = 0.2;
const MOST_COLUMNS: usize = 150;
/// A row within this quantile of the distances of normal rows is central.
const CENTRAL: f64 = 0.975;

/// Where the rows lie.
#[derive(Debug, Clone)]
pub(crate) struct Distances {
    /// Squared robust distance of each row, in units where the median is that of normal rows.
    pub square: Vec<f64>,
    /// The squared distance beyond which a row is far out.
    pub cutoff: f64,
    /// Robustly standardised columns, row-major; those that are not used are left out.
    pub z: Vec<f64>,
    /// How many of them there are.
    pub columns: usize,
    /// Which columns those are, with middle and spread.
    units: Vec<(usize, f64, f64)>,
    /// What the distances are measured by.
    shape: Option<Shape>,
}

/// Middle and covariance of the rows in the middle.
#[derive(Debug, Clone)]
struct Shape {
    mean: Vec<f64>,
    factor: Cholesky,
    /// From squared distances by these to those whose median is that of normal rows.
    unit: f64,
}

impl Shape {
    /// Squared distances of rows.
    fn distances(&self, z: &[f64]) -> Vec<f64> {
        let mut work = vec![0.0; self.mean.len()];
        let distance = z.chunks_exact(self.mean.len()).map(|row| {
            work.iter_mut().zip(row.iter().zip(&self.mean)).for_each(|(w, (v, m))| *w = v - m);
            self.factor.forward(&mut work);
            self.unit * work.iter().map(|v| v * v).sum::<f64>()
        });
        distance.collect()
    }
}

/// The used columns of all rows in their robust units, row-major.
fn standardised(data: &Dataset, units: &[(usize, f64, f64)]) -> Vec<f64> {
    let mut z = Vec::with_capacity(data.len() * units.len());
    for i in 0..data.len() {
        let row = data.row(i);
        z.extend(units.iter().map(|&(j, middle, spread)| (row[j] - middle) / spread));
    }
    z
}

impl Distances {
    /// Of the rows of a data set.
    pub fn new(data: &Dataset) -> Distances {
        let n = data.len();
        let rows: Vec<_> = (0..n).map(|i| data.row(i)).collect();
        let usable = (0..data.features().len()).filter_map(|j| {
            let (middle, spread) = unit(&rows.iter().map(|r| r[j]).collect::<Vec<f64>>())?;
            Some((j, middle, spread))
        });
        let units: Vec<(usize, f64, f64)> = usable.collect();
        let (p, z) = (units.len(), standardised(data, &units));
        let cutoff = chi_squared_quantile(CENTRAL, p);
        if p == 0 || p as f64 > MOST_COLUMNS_SHARE * n as f64 || p > MOST_COLUMNS {
            return Distances { square: vec![0.0; n], cutoff, z, columns: p, units, shape: None };
        }
        let mut shape = smallest_determinant(&z, p);
        let mut square = shape.as_ref().map_or_else(|| vec![0.0; n], |shape| shape.distances(&z));
        let middle = median(square.clone());
        if let Some(shape) = shape.as_mut().filter(|_| middle > 0.0) {
            shape.unit = chi_squared_quantile(0.5, p) / middle;
            square.iter_mut().for_each(|d| *d *= shape.unit);
        }
        Distances { square, cutoff, z, columns: p, units, shape }
    }

    /// Where other rows of the same kind lie, by what these rows say of the middle.
    pub fn of(&self, data: &Dataset) -> Distances {
        let z = standardised(data, &self.units);
        let square = self.shape.as_ref().map_or_else(|| vec![0.0; data.len()], |shape| shape.distances(&z));
        Distances { square, z, ..self.clone() }
    }

    /// 1 for rows in the middle of X, 0 for the others; at least half of the rows are in the middle.
    pub fn central(&self) -> Vec<f64> {
        let half = weighted_quantile(self.square.iter().map(|&d| (d, 1.0)).collect(), 0.5);
        let limit = self.cutoff.max(half);
        self.square.iter().map(|&d| f64::from(u8::from(d <= limit))).collect()
    }

    /// 1 in the middle, falling off with the squared distance (Mallows' weights).
    pub fn falling(&self) -> Vec<f64> {
        self.square.iter().map(|&d| if d > self.cutoff { self.cutoff / d } else { 1.0 }).collect()
    }
}

/// Middle and spread of a column; none if it has no spread to speak of.
fn unit(column: &[f64]) -> Option<(f64, f64)> {
    let middle = median(column.to_vec());
    let size = column.iter().fold(0.0f64, |m, v| m.max((v - middle).abs()));
    let mut spread = MAD * median(column.iter().map(|v| (v - middle).abs()).collect());
    if spread <= NO_SPREAD * size {
        let at = |share| weighted_quantile(column.iter().map(|&v| (v, 1.0)).collect(), share);
        spread = (at(1.0 - OUTER) - at(OUTER)) / OUTER_WIDTH;
    }
    let mut values = column.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    (spread > NO_SPREAD * size && values.len() > FEW_VALUES).then_some((middle, spread))
}

/// Middle and covariance by the best of all starts.
fn smallest_determinant(z: &[f64], p: usize) -> Option<Shape> {
    let n = z.len() / p;
    let half = (n + p).div_ceil(2).min(n);
    let columns: Vec<Vec<f64>> = (0..p).map(|j| z.iter().skip(j).step_by(p).copied().collect()).collect();
    let starts = shapes(z, p, &columns).into_iter().filter_map(|shape| first_half(z, p, &shape, half));
    let found = starts.filter_map(|rows| concentrate(z, p, rows, half));
    let size = |shape: &Shape| shape.factor.log_determinant();
    found.reduce(|a, b| if size(&b) < size(&a) { b } else { a })
}

/// Correlations that leverage can bend but not break; column-major p × p.
fn shapes(z: &[f64], p: usize, columns: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = z.len() / p;
    let each = |f: &dyn Fn(f64) -> f64| columns.iter().map(|c| c.iter().map(|&v| f(v)).collect()).collect::<Vec<_>>();
    let scores: Vec<Vec<f64>> = columns.iter().map(|c| ranks(c)).collect();
    let normal = |r: &f64| normal_quantile((r - 1.0 / 3.0) / (n as f64 + 1.0 / 3.0));
    // The quantile function is slow: once per rank.
    let table: Vec<f64> = (0..=2 * n).map(|k| normal(&(0.5 * k.max(2) as f64))).collect();
    let normal_scores: Vec<Vec<f64>> =
        scores.iter().map(|c| c.iter().map(|r| table[(2.0 * r) as usize]).collect()).collect();
    let norms: Vec<f64> = z.chunks_exact(p).map(|row| row.iter().map(|v| v * v).sum::<f64>().sqrt()).collect();
    let signs: Vec<Vec<f64>> =
        columns.iter().map(|c| c.iter().zip(&norms).map(|(v, s)| v / s.max(f64::MIN_POSITIVE)).collect()).collect();
    let limit = median(norms.clone());
    let inner: Vec<Vec<f64>> =
        columns.iter().map(|c| c.iter().zip(&norms).filter(|(_, s)| **s <= limit).map(|(v, _)| *v).collect()).collect();
    vec![
        correlation(&each(&wrapped)),
        correlation(&each(&f64::tanh)),
        correlation(&scores),
        correlation(&normal_scores),
        correlation(&signs),
        correlation(&inner),
    ]
}

/// Wrapping: as it is up to 1.5, back to 0 at 4 standard deviations (Raymaekers and Rousseeuw 2021).
fn wrapped(z: f64) -> f64 {
    let size = z.abs();
    match size {
        s if s < 1.5 => z,
        s if s < 4.0 => z.signum() * 1.540_793 * (0.862_273_1 * (4.0 - s)).tanh(),
        _ => 0.0,
    }
}

/// Ranks from 1, ties sharing their mean.
fn ranks(column: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..column.len()).collect();
    order.sort_unstable_by(|&a, &b| column[a].total_cmp(&column[b]));
    let mut out = vec![0.0; column.len()];
    let mut k = 0;
    while k < order.len() {
        let mut end = k + 1;
        while end < order.len() && column[order[end]] == column[order[k]] {
            end += 1;
        }
        order[k..end].iter().for_each(|&i| out[i] = 0.5 * (k + 1 + end) as f64);
        k = end;
    }
    out
}

fn correlation(columns: &[Vec<f64>]) -> Vec<f64> {
    let p = columns.len();
    let centred: Vec<Vec<f64>> = columns
        .iter()
        .map(|c| {
            let mean = c.iter().sum::<f64>() / c.len().max(1) as f64;
            let size = c.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>().sqrt();
            c.iter().map(|v| if size > 0.0 { (v - mean) / size } else { 0.0 }).collect()
        })
        .collect();
    let mut out = vec![0.0; p * p];
    for a in 0..p {
        for b in 0..=a {
            let value = if a == b { 1.0 } else { dot(&centred[a], &centred[b]) };
            (out[a * p + b], out[b * p + a]) = (value, value);
        }
    }
    out
}

/// The half of the rows nearest to the middle along the axes of a shape, in robust units of each axis.
fn first_half(z: &[f64], p: usize, shape: &[f64], half: usize) -> Option<Vec<usize>> {
    let n = z.len() / p;
    let (_, axes) = symmetric_eigen(shape, p)?;
    let mut distance = vec![0.0; n];
    for k in 0..p {
        let along: Vec<f64> = z.chunks_exact(p).map(|row| dot(row, &axes[k * p..(k + 1) * p])).collect();
        let Some((middle, spread)) = unit(&along) else { continue };
        distance.iter_mut().zip(&along).for_each(|(d, v)| *d += ((v - middle) / spread).powi(2));
    }
    Some(nearest(&distance, half))
}

/// The rows with the smallest distances, in order.
fn nearest(distance: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..distance.len()).collect();
    order.sort_by(|&a, &b| distance[a].total_cmp(&distance[b]));
    order.truncate(count);
    order.sort_unstable();
    order
}

/// Concentration: the half nearest by the mean and covariance of the half, until it stays.
fn concentrate(z: &[f64], p: usize, mut rows: Vec<usize>, half: usize) -> Option<Shape> {
    let mut best = None;
    for _ in 0..MAX_STEPS {
        let Some(shape) = shape_of(z, p, &rows) else { break };
        let again = nearest(&shape.distances(z), half);
        best = Some(shape);
        if again == rows {
            break;
        }
        rows = again;
    }
    best
}

/// The mean and the regularised covariance of some rows.
fn shape_of(z: &[f64], p: usize, rows: &[usize]) -> Option<Shape> {
    let count = rows.len() as f64;
    let mut mean = vec![0.0; p];
    for &i in rows {
        crate::linalg::axpy(1.0 / count, &z[i * p..(i + 1) * p], &mut mean);
    }
    let columns: Vec<Vec<f64>> = (0..p).map(|j| rows.iter().map(|&i| z[i * p + j] - mean[j]).collect()).collect();
    let mut covariance = vec![0.0; p * p];
    crate::linalg::add_weighted_gram(&vec![1.0 / count; rows.len()], p, |j| &columns[j], &mut covariance);
    let average = (0..p).map(|j| covariance[j * p + j]).sum::<f64>() / p as f64;
    (0..p).for_each(|j| covariance[j * p + j] += REGULAR * average + f64::MIN_POSITIVE);
    let magnitude: Vec<f64> = (0..p).map(|j| covariance[j * p + j]).collect();
    let mut factor = Cholesky::default();
    factor.factor(&covariance, &magnitude);
    factor.log_determinant().is_finite().then_some(Shape { mean, factor, unit: 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    fn noise(rng: &mut rand_chacha::ChaCha8Rng) -> f64 {
        (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
    }

    /// A third of the rows in one far place, which pulls means and covariances along; half of the columns are of two values.
    fn rows(n: usize, p: usize, seed: u64) -> Dataset {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let mut x = Vec::new();
        for i in 0..n {
            let common = noise(&mut rng);
            for j in 0..p {
                let value = if j % 2 == 1 {
                    f64::from(u8::from(common + noise(&mut rng) > 0.0))
                } else {
                    common + noise(&mut rng)
                };
                let far = 8.0 + 0.1 * noise(&mut rng);
                x.push(if i % 10 < 3 && j % 2 == 0 { far } else { value });
            }
        }
        let names = (0..p).map(|j| format!("x{j}")).collect();
        Dataset::new(names, "y".into(), x, (0..n).map(|i| i as f64).collect(), None).unwrap()
    }

    #[test]
    fn a_cluster_of_a_third_does_not_hide_itself() {
        for (p, seed) in [(4, 1), (4, 2), (4, 3)] {
            let distances = Distances::new(&rows(400, p, seed));
            assert_eq!(distances.columns, p / 2);
            let central = distances.central();
            let inside = (0..400).filter(|i| i % 10 < 3).map(|i| central[i]).sum::<f64>();
            let good = (0..400).filter(|i| i % 10 >= 3).map(|i| central[i]).sum::<f64>();
            assert_eq!(inside, 0.0, "{p} columns");
            assert!(good > 0.85 * 280.0, "{p} columns: {good} of 280");
        }
    }

    #[test]
    fn rows_lie_where_others_see_them() {
        let (some, all) = (rows(400, 4, 7), rows(400, 4, 8));
        let seen = Distances::new(&some);
        assert_eq!(seen.of(&some).square, seen.square);
        let (ours, theirs) = (seen.of(&all), Distances::new(&all));
        let apart = ours.square.iter().zip(&theirs.square).filter(|(a, b)| (*a / *b).ln().abs() > 0.7).count();
        assert!(apart < 40, "{apart} of 400 rows lie elsewhere");
        assert!((0..400).filter(|i| i % 10 < 3).all(|i| ours.central()[i] == 0.0));
    }

    #[test]
    fn columns_that_say_nothing_leave_every_row_central() {
        let x = (0..40).flat_map(|i| [f64::from(i % 2), 3.0]).collect();
        let data =
            Dataset::new(vec!["a".into(), "b".into()], "y".into(), x, (0..40).map(f64::from).collect(), None).unwrap();
        let distances = Distances::new(&data);
        assert_eq!(distances.columns, 0);
        assert_eq!(distances.central(), vec![1.0; 40]);
    }
}
