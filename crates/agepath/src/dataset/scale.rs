//! Scaling: x̃ = (x − mean)/std per column, ỹ = (y − shift)/scale.

use super::{Dataset, Notice};
use crate::error::{Error, Result};
use crate::loss::TargetKind;

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
    pub fn fit(data: &Dataset, standardize: bool, target: TargetScale) -> (Scaling, Vec<Notice>) {
        let mut notices = Vec::new();
        let (y_shift, y_scale) = match data.kind() {
            TargetKind::Sign => (0.0, 1.0),
            TargetKind::Real => target_units(data, target, &mut notices),
        };
        let (mean, scale) = column_units(data);
        let constant: Vec<String> =
            (0..scale.len()).filter(|&j| is_constant(data, j)).map(|j| data.features()[j].clone()).collect();
        if !constant.is_empty() {
            notices.push(Notice::ConstantColumns { columns: constant });
        }
        let scaling =
            Scaling { x_mean: standardize.then_some(mean), x_scale: standardize.then_some(scale), y_shift, y_scale };
        (scaling, notices)
    }

    /// The features in the solver's units, row-major.
    pub fn x(&self, data: &Dataset) -> Vec<f64> {
        let mut out = data.x().to_vec();
        if let (Some(mean), Some(scale)) = (&self.x_mean, &self.x_scale) {
            for row in out.chunks_exact_mut(mean.len().max(1)) {
                for ((v, m), s) in row.iter_mut().zip(mean).zip(scale) {
                    *v = (*v - m) / s;
                }
            }
        }
        out
    }

    /// The targets in the solver's units.
    pub fn y(&self, data: &Dataset) -> Vec<f64> {
        data.y().iter().map(|y| (y - self.y_shift) / self.y_scale).collect()
    }

    /// A prediction in the user's units.
    pub fn predict(&self, z: f64) -> f64 {
        self.y_shift + self.y_scale * z
    }

    /// Coefficients and intercept in the user's units.
    pub fn undo(&self, coef: &[f64], intercept: f64) -> (Vec<f64>, f64) {
        let (mut out, mut shift) = (coef.to_vec(), intercept);
        if let (Some(mean), Some(scale)) = (&self.x_mean, &self.x_scale) {
            for ((w, m), s) in out.iter_mut().zip(mean).zip(scale) {
                *w /= s;
                shift -= *w * m;
            }
        }
        for w in &mut out {
            *w *= self.y_scale;
        }
        (out, self.predict(shift))
    }
}

fn is_constant(data: &Dataset, j: usize) -> bool {
    (1..data.len()).all(|i| data.row(i)[j] == data.row(0)[j])
}

/// Mean and population standard deviation of each column; a constant column is only centred.
pub(super) fn column_units(data: &Dataset) -> (Vec<f64>, Vec<f64>) {
    let n = data.len() as f64;
    (0..data.features().len())
        .map(|j| {
            // Rounding would leave a constant column a tiny deviation, and that would be blown up to 1.
            if is_constant(data, j) {
                return (data.row(0)[j], 1.0);
            }
            let mean = (0..data.len()).map(|i| data.row(i)[j]).sum::<f64>() / n;
            let square = (0..data.len()).map(|i| (data.row(i)[j] - mean).powi(2)).sum::<f64>();
            (mean, (square / n).sqrt())
        })
        .unzip()
}

/// Shift and scale of a numeric target.
pub(super) fn target_units(data: &Dataset, scale: TargetScale, notices: &mut Vec<Notice>) -> (f64, f64) {
    let y = data.y();
    match scale {
        TargetScale::None => (0.0, 1.0),
        TargetScale::MinMax => {
            let low = y.iter().copied().fold(f64::INFINITY, f64::min);
            let high = y.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            (low, if high > low { high - low } else { 1.0 })
        }
        TargetScale::Robust => {
            let middle = median(y.to_vec());
            let mad = median(y.iter().map(|v| (v - middle).abs()).collect());
            if mad > 0.0 {
                return (middle, MAD_TO_SIGMA * mad);
            }
            let mean = y.iter().sum::<f64>() / y.len() as f64;
            let std = (y.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / y.len() as f64).sqrt();
            let scale = if std > 0.0 { std } else { 1.0 };
            notices.push(Notice::TargetScaleFallback { column: data.target_name().into(), scale });
            (mean, scale)
        }
    }
}

/// The median; of an even number of values the mean of the two in the middle. 0 for none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    let n = values.len();
    if n == 0 {
        return 0.0;
    }
    let (low, upper, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    let upper = *upper;
    if n % 2 == 1 {
        return upper;
    }
    let lower = low.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    0.5 * (lower + upper)
}

#[cfg(test)]
mod tests {
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
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
