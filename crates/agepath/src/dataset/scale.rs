//! Scaling: x̃ = (x − mean)/std per column, ỹ = (y − shift)/scale.

use super::{Dataset, Matrix, Notice};
use crate::error::{Error, Result};
use crate::loss::TargetKind;
use crate::space::Design;

/// MAD · this estimates a normal distribution's standard deviation (1/Φ⁻¹(3/4)).
const MAD_TO_SIGMA: f64 = 1.4826;

/// How a numeric target is scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TargetScale {
    /// Median and 1.4826·MAD: √λ is a cut-off in robust sigmas.
    #[default]
    Robust,
    /// To the interval [0, 1].
    MinMax,
    /// Left as it is.
    None,
}

/// Every target scale: the name users type, and one line about it.
pub const TARGET_SCALES: &[(&str, TargetScale, &str)] = &[
    ("robust", TargetScale::Robust, "centred by the median, divided by 1.4826 MAD"),
    ("minmax", TargetScale::MinMax, "mapped to [0, 1]"),
    ("none", TargetScale::None, "left as it is"),
];

impl TargetScale {
    /// By name.
    pub fn by_name(name: &str) -> Result<TargetScale> {
        let known = TARGET_SCALES.iter().find(|(n, ..)| *n == name);
        known.map(|(_, scale, _)| *scale).ok_or_else(|| Error::UnknownName {
            what: "target scale",
            name: name.into(),
            choices: TARGET_SCALES.iter().map(|(n, ..)| *n).collect::<Vec<_>>().join(", "),
        })
    }
}

/// The units the solver sees.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// What is subtracted from each column; none: nothing.
    pub x_mean: Option<Vec<f64>>,
    /// What each column is divided by; none: 1.
    pub x_scale: Option<Vec<f64>>,
    /// What is subtracted from the target.
    pub y_shift: f64,
    /// What the target is divided by.
    pub y_scale: f64,
}

impl Scaling {
    /// The scaling of some rows: standardised columns if asked for; the target by `target` (classes are never scaled).
    /// Sparse columns are scaled but not centred, so that they stay sparse; a free intercept makes up for the difference.
    pub fn fit(data: &Dataset, standardize: bool, target: TargetScale) -> (Scaling, Vec<Notice>) {
        let mut notices = Vec::new();
        let (y_shift, y_scale) = match data.kind() {
            TargetKind::Sign => (0.0, 1.0),
            TargetKind::Real => target_units(data, target, &mut notices),
        };
        let columns = Columns::new(data);
        let constant = data.features().iter().zip(&columns.constant).filter(|(_, constant)| **constant);
        let constant: Vec<String> = constant.map(|(name, _)| name.clone()).collect();
        if !constant.is_empty() {
            notices.push(Notice::ConstantColumns { columns: constant });
        }
        let centre = standardize && data.matrix().as_sparse().is_none();
        let x_mean = centre.then_some(columns.mean);
        (Scaling { x_mean, x_scale: standardize.then_some(columns.scale), y_shift, y_scale }, notices)
    }

    /// A feature in the solver's units.
    #[inline]
    pub fn feature(&self, j: usize, value: f64) -> f64 {
        let centred = self.x_mean.as_ref().map_or(value, |mean| value - mean[j]);
        self.x_scale.as_ref().map_or(centred, |scale| centred / scale[j])
    }

    /// The features in the solver's units, row-major.
    pub fn x(&self, data: &Dataset) -> Vec<f64> {
        let mut out = data.x().into_owned();
        for row in out.chunks_exact_mut(data.features().len().max(1)) {
            row.iter_mut().enumerate().for_each(|(j, v)| *v = self.feature(j, *v));
        }
        out
    }

    /// The rows in the solver's units as a problem takes them; sparse rows that are not centred stay sparse.
    pub fn design(&self, matrix: &Matrix, intercept: bool) -> Result<Design> {
        match matrix.as_sparse().filter(|_| self.x_mean.is_none()) {
            Some(sparse) => {
                let scaled = sparse.indices.iter().zip(&sparse.values).map(|(&j, &v)| self.feature(j as usize, v));
                let (starts, indices) = (sparse.starts.clone(), sparse.indices.clone());
                Design::from_csr(matrix.cols(), starts, indices, scaled.collect(), intercept)
            }
            None => {
                let at = |i: usize, j: usize| self.feature(j, matrix.value(i, j));
                Design::from_fn(matrix.rows(), matrix.cols(), intercept, at)
            }
        }
    }

    /// The targets in the solver's units.
    pub fn y(&self, data: &Dataset) -> Vec<f64> {
        data.y().iter().map(|y| (y - self.y_shift) / self.y_scale).collect()
    }

    /// A prediction in the user's units.
    pub fn predict(&self, z: f64) -> f64 {
        self.y_shift + self.y_scale * z
    }

    /// Coefficients of training rows and an intercept in the user's units, for z = Σ β_i k(x_i, ·) + b.
    pub fn undo_dual(&self, dual: &[f64], intercept: f64) -> (Vec<f64>, f64) {
        (dual.iter().map(|beta| self.y_scale * beta).collect(), self.predict(intercept))
    }

    /// Coefficients and intercept in the user's units.
    pub fn undo(&self, coef: &[f64], intercept: f64) -> (Vec<f64>, f64) {
        let (mut out, mut shift) = (coef.to_vec(), intercept);
        for (j, w) in out.iter_mut().enumerate() {
            if let Some(scale) = &self.x_scale {
                *w /= scale[j];
            }
            if let Some(mean) = &self.x_mean {
                shift -= *w * mean[j];
            }
        }
        for w in &mut out {
            *w *= self.y_scale;
        }
        (out, self.predict(shift))
    }
}

/// What is to be known of the columns of some rows, those of weight 0 left out.
struct Columns {
    mean: Vec<f64>,
    /// Population standard deviation; 1 for a constant column, which is only centred.
    scale: Vec<f64>,
    constant: Vec<bool>,
}

impl Columns {
    fn new(data: &Dataset) -> Columns {
        let d = data.features().len();
        let counted: Vec<usize> = (0..data.len()).filter(|&i| data.weight(i) > 0.0).collect();
        let total: f64 = counted.iter().map(|&i| data.weight(i)).sum();
        let first: Vec<f64> = counted.first().map_or(vec![0.0; d], |&i| data.row(i).into_owned());
        let (mut mean, mut scale, mut constant) = (vec![0.0; d], vec![0.0; d], vec![true; d]);
        // Row by row, so that every form of the features is read in its own order; each column's sum is the same.
        for &i in &counted {
            for (j, &v) in data.row(i).iter().enumerate() {
                mean[j] += data.weight(i) * v;
                constant[j] &= v == first[j];
            }
        }
        mean.iter_mut().for_each(|m| *m /= total);
        for &i in &counted {
            for (j, &v) in data.row(i).iter().enumerate() {
                scale[j] += data.weight(i) * (v - mean[j]).powi(2);
            }
        }
        for j in 0..d {
            scale[j] = (scale[j] / total).sqrt();
            // Rounding would leave a constant column a tiny deviation, and that would be blown up to 1.
            if constant[j] {
                (mean[j], scale[j]) = (first[j], 1.0);
            }
        }
        Columns { mean, scale, constant }
    }
}

/// Mean and population standard deviation of each column; a constant column is only centred.
pub(super) fn column_units(data: &Dataset) -> (Vec<f64>, Vec<f64>) {
    let columns = Columns::new(data);
    (columns.mean, columns.scale)
}

/// Shift and scale of a numeric target.
pub(super) fn target_units(data: &Dataset, scale: TargetScale, notices: &mut Vec<Notice>) -> (f64, f64) {
    let counted = || (0..data.len()).filter(|&i| data.weight(i) > 0.0).map(|i| (data.y()[i], data.weight(i)));
    match scale {
        TargetScale::None => (0.0, 1.0),
        TargetScale::MinMax => {
            let low = counted().map(|(y, _)| y).fold(f64::INFINITY, f64::min);
            let high = counted().map(|(y, _)| y).fold(f64::NEG_INFINITY, f64::max);
            (low, if high > low { high - low } else { 1.0 })
        }
        TargetScale::Robust => {
            let middle = weighted_median(counted().collect());
            let mad = weighted_median(counted().map(|(y, w)| ((y - middle).abs(), w)).collect());
            if mad > 0.0 {
                return (middle, MAD_TO_SIGMA * mad);
            }
            let total: f64 = counted().map(|(_, w)| w).sum();
            let mean = counted().map(|(y, w)| w * y).sum::<f64>() / total;
            let std = (counted().map(|(y, w)| w * (y - mean).powi(2)).sum::<f64>() / total).sqrt();
            let scale = if std > 0.0 { std } else { 1.0 };
            notices.push(Notice::TargetScaleFallback { column: data.target_name().into(), scale });
            (mean, scale)
        }
    }
}

/// The smallest value that has at least `share` of the weight at or below it; 0 for none. `values` are (value, weight).
pub(crate) fn weighted_quantile(mut values: Vec<(f64, f64)>, share: f64) -> f64 {
    values.retain(|v| v.1 > 0.0);
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = values.iter().map(|v| v.1).sum();
    let mut below = 0.0;
    let enough = |v: &&(f64, f64)| {
        below += v.1;
        below >= share * total
    };
    values.iter().find(enough).or(values.last()).map_or(0.0, |v| v.0)
}

/// The median; where exactly half of the weight lies below, the mean of the values on both sides. 0 for none.
pub(crate) fn weighted_median(values: Vec<(f64, f64)>) -> f64 {
    let from_above = values.iter().map(|&(v, w)| (-v, w)).collect();
    0.5 * (weighted_quantile(values, 0.5) - weighted_quantile(from_above, 0.5))
}

/// The median of values that all count the same.
pub(crate) fn median(values: Vec<f64>) -> f64 {
    weighted_median(values.into_iter().map(|v| (v, 1.0)).collect())
}

#[cfg(test)]
mod tests {
    use super::super::SparseRows;
    use super::*;

    fn set(x: Vec<f64>, y: Vec<f64>) -> Dataset {
        let d = x.len() / y.len();
        Dataset::new((0..d).map(|j| format!("f{j}")).collect(), "y".into(), x, y, None).unwrap()
    }

    #[test]
    fn columns_are_standardised_and_constant_ones_only_centred() {
        let data = set(vec![0.1, 1.0, 0.1, 3.0, 0.1, 5.0], vec![1.0, 2.0, 4.0]);
        let (scaling, notices) = Scaling::fit(&data, true, TargetScale::Robust);
        assert_eq!(scaling.x_scale.as_ref().unwrap()[0], 1.0);
        let x = scaling.x(&data);
        assert_eq!((x[0], x[3]), (0.0, 0.0));
        assert!((x[1] + 1.5f64.sqrt()).abs() < 1e-15);
        assert_eq!(notices, [Notice::ConstantColumns { columns: vec!["f0".into()] }]);
        assert_eq!((scaling.y_shift, scaling.y_scale), (2.0, MAD_TO_SIGMA));
    }

    #[test]
    fn a_zero_mad_falls_back_with_a_notice() {
        let data = set(vec![1.0, 2.0, 3.0, 4.0], vec![0.0, 0.0, 0.0, 4.0]);
        let (scaling, notices) = Scaling::fit(&data, true, TargetScale::Robust);
        assert_eq!((scaling.y_shift, scaling.y_scale), (1.0, 3f64.sqrt()));
        assert!(matches!(notices[..], [Notice::TargetScaleFallback { .. }]));
    }

    #[test]
    fn undoing_gives_the_same_predictions() {
        let data = set(vec![1.0, -2.0, 4.0, 0.5, 2.0, 9.0], vec![10.0, 20.0, 40.0]);
        for target in [TargetScale::Robust, TargetScale::MinMax, TargetScale::None] {
            let (scaling, _) = Scaling::fit(&data, true, target);
            let (w, b) = ([0.7, -0.3], 0.2);
            let (coef, intercept) = scaling.undo(&w, b);
            for i in 0..3 {
                let z = scaling.x(&data)[2 * i] * w[0] + scaling.x(&data)[2 * i + 1] * w[1] + b;
                let direct = intercept + coef[0] * data.row(i)[0] + coef[1] * data.row(i)[1];
                assert!((scaling.predict(z) - direct).abs() < 1e-12 * direct.abs().max(1.0));
            }
        }
    }

    #[test]
    fn weights_count_like_repeated_rows() {
        let x = vec![1.0, 5.0, 2.0, 5.0, 7.0, 5.0, 3.0, 6.0];
        let weighted = set(x, vec![10.0, 20.0, 40.0, 80.0]).with_weights(Some(vec![2.0, 1.0, 3.0, 0.0])).unwrap();
        let repeated = weighted.subset(&[0, 0, 1, 2, 2, 2]).with_weights(None).unwrap();
        for target in [TargetScale::Robust, TargetScale::MinMax, TargetScale::None] {
            let [(a, _), (b, _)] = [&weighted, &repeated].map(|data| Scaling::fit(data, true, target));
            assert_eq!((a.y_shift, a.y_scale), (b.y_shift, b.y_scale));
            let pairs = [(a.x_mean, b.x_mean), (a.x_scale, b.x_scale)];
            for (a, b) in pairs.into_iter().flat_map(|(a, b)| a.unwrap().into_iter().zip(b.unwrap())) {
                assert!((a - b).abs() <= 1e-15 * b.abs(), "{a} {b}");
            }
        }
        assert_eq!(weighted_quantile(vec![(3.0, 1.0), (1.0, 2.0), (9.0, 0.0)], 0.7), 3.0);
        assert_eq!((median(vec![3.0, 1.0, 2.0]), median(vec![4.0, 1.0, 2.0, 3.0])), (2.0, 2.5));
    }

    #[test]
    fn sparse_columns_stay_sparse_and_predict_alike() {
        let x = SparseRows { starts: vec![0, 1, 2, 4], indices: vec![0, 1, 0, 1], values: vec![2.0, 4.0, 6.0, 1.0] };
        let names = || vec!["a".to_owned(), "b".to_owned()];
        let matrix = Matrix::sparse(2, x).unwrap();
        let data = Dataset::from_matrix(names(), "y".into(), matrix, vec![1.0, 2.0, 4.0], None).unwrap();
        let (scaling, _) = Scaling::fit(&data, true, TargetScale::None);
        assert!(scaling.x_mean.is_none());
        let dense = Dataset::new(names(), "y".into(), data.x().into_owned(), data.y().to_vec(), None).unwrap();
        assert_eq!(scaling.x_scale, Scaling::fit(&dense, true, TargetScale::None).0.x_scale);
        let design = scaling.design(data.matrix(), true).unwrap();
        assert!(matches!(design, Design::Sparse(_)));
        let mut z = vec![0.0; 3];
        design.predict(&[0.5, -2.0, 1.0], &mut z);
        let (coef, intercept) = scaling.undo(&[0.5, -2.0], 1.0);
        for i in 0..3 {
            let direct = intercept + coef[0] * data.row(i)[0] + coef[1] * data.row(i)[1];
            assert!((z[i] - direct).abs() < 1e-14);
        }
    }
}
