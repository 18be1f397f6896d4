//! Metrics: how well predictors z fit targets y on rows the model was not fitted to.
//!
//! Every metric only improves when a single row is predicted better, which the bounds in [`super::curve`] rely on.

use crate::dataset::weighted_median;
use crate::error::{Error, Result};
use crate::loss::{Logistic, Loss, TargetKind};
use std::sync::Arc;

/// The share of the largest squared errors that the trimmed mean leaves out.
const TRIMMED: f64 = 0.2;

/// How well predictions fit.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name users type.
    pub name: &'static str,
    /// One line for `--help` and the documentation.
    pub summary: &'static str,
    /// The targets it is for.
    pub kind: TargetKind,
    /// Whether more is better.
    pub higher_is_better: bool,
    /// The power of the target's unit it is measured in.
    unit_power: i32,
    /// Of predictors z, targets y and sample weights; not a number where it is undefined.
    formula: fn(&[f64], &[f64], &[f64]) -> f64,
}

/// Every metric; the first of a kind of target is its default: one that a few wrong validation rows cannot spoil.
pub const METRICS: &[Metric] = &[
    Metric {
        name: "mae",
        summary: "mean absolute error",
        kind: TargetKind::Real,
        higher_is_better: false,
        unit_power: 1,
        formula: |z, y, w| mean(&errors(z, y), w),
    },
    Metric {
        name: "median-ae",
        summary: "median absolute error",
        kind: TargetKind::Real,
        higher_is_better: false,
        unit_power: 1,
        formula: |z, y, w| weighted_median(errors(z, y).into_iter().zip(w.iter().copied()).collect()),
    },
    Metric {
        name: "trimmed-mse",
        summary: "mean squared error without the largest 20 %",
        kind: TargetKind::Real,
        higher_is_better: false,
        unit_power: 2,
        formula: trimmed_mse,
    },
    Metric {
        name: "rmse",
        summary: "root mean square error",
        kind: TargetKind::Real,
        higher_is_better: false,
        unit_power: 1,
        formula: |z, y, w| mean(&squares(z, y), w).sqrt(),
    },
    Metric {
        name: "r2",
        summary: "share of the target's variance that is explained",
        kind: TargetKind::Real,
        higher_is_better: true,
        unit_power: 0,
        formula: r2,
    },
    Metric {
        name: "accuracy",
        summary: "share of rows whose class is predicted",
        kind: TargetKind::Sign,
        higher_is_better: true,
        unit_power: 0,
        formula: |z, y, w| mean(&hits(z, y), w),
    },
    Metric {
        name: "balanced-accuracy",
        summary: "mean over the classes of the share predicted rightly",
        kind: TargetKind::Sign,
        higher_is_better: true,
        unit_power: 0,
        formula: balanced_accuracy,
    },
    Metric {
        name: "log-loss",
        summary: "mean of ln(1 + exp(-yz))",
        kind: TargetKind::Sign,
        higher_is_better: false,
        unit_power: 0,
        formula: |z, y, w| {
            let loss = Logistic { c: 1.0 };
            mean(&z.iter().zip(y).map(|(&z, &y)| loss.at(z, y).value).collect::<Vec<_>>(), w)
        },
    },
    Metric {
        name: "auc",
        summary: "area under the ROC curve",
        kind: TargetKind::Sign,
        higher_is_better: true,
        unit_power: 0,
        formula: auc,
    },
];

/// A score of the caller's own, larger being better: of the row numbers of held-out rows and their predictors in the user's
/// units. Where it has none, the age is not chosen.
#[derive(Clone)]
pub struct Scorer(pub Arc<ScoreOf>);

/// What a [`Scorer`] computes.
pub type ScoreOf = dyn Fn(&[usize], &[f64]) -> Option<f64> + Send + Sync;

impl std::fmt::Debug for Scorer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scorer")
    }
}

impl PartialEq for Scorer {
    fn eq(&self, other: &Scorer) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What stands for a [`Scorer`] where a metric is named.
const OWN: [Metric; 2] = [own(TargetKind::Real), own(TargetKind::Sign)];

const fn own(kind: TargetKind) -> Metric {
    Metric {
        name: "own",
        summary: "a score of your own",
        kind,
        higher_is_better: true,
        unit_power: 0,
        formula: |_, _, _| f64::NAN,
    }
}

impl Metric {
    /// The stand-in for a score of the caller's own.
    pub(crate) fn own(kind: TargetKind) -> &'static Metric {
        if kind == TargetKind::Real { &OWN[0] } else { &OWN[1] }
    }

    /// By name, or the default for the kind of target.
    pub fn choose(name: Option<&str>, kind: TargetKind) -> Result<&'static Metric> {
        let fits = |m: &&Metric| m.kind == kind && name.is_none_or(|name| m.name == name);
        METRICS.iter().find(fits).ok_or_else(|| {
            let choices = METRICS.iter().filter(|m| m.kind == kind).map(|m| m.name);
            Error::UnknownName {
                what: "metric for this target",
                name: name.unwrap_or_default().into(),
                choices: choices.collect::<Vec<_>>().join(", "),
            }
        })
    }

    /// The score of predictors `z` for targets `y`, both in units of which one is `unit` of the user's, with sample
    /// weights `w` (none: all 1); not a number where the metric is undefined (one class only, a constant target).
    pub fn score(&self, z: &[f64], y: &[f64], w: Option<&[f64]>, unit: f64) -> f64 {
        let value = match w {
            Some(w) => (self.formula)(z, y, w),
            None => (self.formula)(z, y, &vec![1.0; y.len()]),
        };
        unit.powi(self.unit_power) * value
    }

    /// By how much score `a` is better than score `b`.
    pub fn advantage(&self, a: f64, b: f64) -> f64 {
        if self.higher_is_better { a - b } else { b - a }
    }

    /// Refuses held-out targets for which the metric is undefined.
    pub(crate) fn check(&self, y: &[f64], w: Option<&[f64]>) -> Result<()> {
        if self.score(y, y, w, 1.0).is_finite() {
            return Ok(());
        }
        Err(Error::Option {
            name: "metric",
            value: self.name.into(),
            expected: match self.kind {
                TargetKind::Real => "validation rows whose targets differ".into(),
                TargetKind::Sign => "validation rows of both classes".into(),
            },
        })
    }
}

fn errors(z: &[f64], y: &[f64]) -> Vec<f64> {
    z.iter().zip(y).map(|(z, y)| (z - y).abs()).collect()
}

fn squares(z: &[f64], y: &[f64]) -> Vec<f64> {
    z.iter().zip(y).map(|(z, y)| (z - y) * (z - y)).collect()
}

fn hits(z: &[f64], y: &[f64]) -> Vec<f64> {
    z.iter().zip(y).map(|(&z, &y)| f64::from((z > 0.0) == (y > 0.0))).collect()
}

fn mean(values: &[f64], w: &[f64]) -> f64 {
    values.iter().zip(w).map(|(v, w)| v * w).sum::<f64>() / w.iter().sum::<f64>()
}

/// Without the rows of the largest errors: so many of them as lie wholly within the trimmed share of the weight.
fn trimmed_mse(z: &[f64], y: &[f64], w: &[f64]) -> f64 {
    let mut rows: Vec<(f64, f64)> = squares(z, y).into_iter().zip(w.iter().copied()).collect();
    rows.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    // A weight counts like as many rows, and only whole rows are left out.
    let mut left_out = (TRIMMED * w.iter().sum::<f64>()).floor();
    for row in &mut rows {
        let part = row.1.min(left_out);
        row.1 -= part;
        left_out -= part;
    }
    rows.reverse();
    let (squares, w): (Vec<f64>, Vec<f64>) = rows.into_iter().unzip();
    mean(&squares, &w)
}

fn r2(z: &[f64], y: &[f64], w: &[f64]) -> f64 {
    let middle = mean(y, w);
    let total = mean(&y.iter().map(|y| (y - middle) * (y - middle)).collect::<Vec<_>>(), w);
    if total > 0.0 { 1.0 - mean(&squares(z, y), w) / total } else { f64::NAN }
}

fn balanced_accuracy(z: &[f64], y: &[f64], w: &[f64]) -> f64 {
    let hits = hits(z, y);
    let of_class = |positive: bool| {
        let inside: Vec<f64> = y.iter().zip(w).map(|(y, w)| if (*y > 0.0) == positive { *w } else { 0.0 }).collect();
        mean(&hits, &inside)
    };
    0.5 * (of_class(true) + of_class(false))
}

/// The share of pairs of rows of different classes that z puts in the right order, ties counting half.
pub(crate) fn auc(z: &[f64], y: &[f64], w: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..z.len()).collect();
    order.sort_unstable_by(|&a, &b| z[a].total_cmp(&z[b]));
    let (mut below, mut right, mut positives) = (0.0, 0.0, 0.0);
    for tied in order.chunk_by(|&a, &b| z[a] == z[b]) {
        let weight = |positive: bool| tied.iter().filter(|&&i| (y[i] > 0.0) == positive).map(|&i| w[i]).sum::<f64>();
        let (plus, minus) = (weight(true), weight(false));
        right += plus * (below + 0.5 * minus);
        below += minus;
        positives += plus;
    }
    right / (positives * below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(name: &str, z: &[f64], y: &[f64]) -> f64 {
        METRICS.iter().find(|m| m.name == name).unwrap().score(z, y, None, 1.0)
    }

    #[test]
    fn metrics_by_hand() {
        let (z, y) = ([1.0, 2.0, 3.0], [1.0, 4.0, 0.0]);
        assert_eq!(score("mae", &z, &y), 5.0 / 3.0);
        assert_eq!(score("rmse", &z, &y), (13.0f64 / 3.0).sqrt());
        assert_eq!(score("median-ae", &z, &y), 2.0);
        assert_eq!(score("trimmed-mse", &[0.0; 5], &[1.0, 2.0, 3.0, 4.0, 100.0]), 30.0 / 4.0);
        assert_eq!(score("r2", &[1.0, 2.0, 2.0], &[1.0, 2.0, 3.0]), 0.5);
        assert_eq!(score("accuracy", &[0.5, -2.0], &[1.0, 1.0]), 0.5);
        assert_eq!(score("balanced-accuracy", &[1.0, 1.0, -1.0, 1.0], &[1.0, 1.0, 1.0, -1.0]), 1.0 / 3.0);
        assert_eq!(score("log-loss", &[0.0, 0.0], &[1.0, -1.0]), 2f64.ln());
        assert_eq!(score("auc", &[3.0, 1.0, 1.0, 0.0], &[1.0, 1.0, -1.0, -1.0]), 3.5 / 4.0);
    }

    #[test]
    fn scores_are_in_the_users_units() {
        let find = |name: &str| METRICS.iter().find(|m| m.name == name).unwrap();
        assert_eq!(find("mae").score(&[1.0], &[3.0], None, 10.0), 20.0);
        assert_eq!(find("trimmed-mse").score(&[1.0], &[3.0], None, 10.0), 400.0);
        assert_eq!(find("r2").score(&[1.0, 2.0], &[1.0, 2.0], None, 10.0), 1.0);
    }

    /// Moving any one prediction towards its target makes no score worse.
    #[test]
    fn every_metric_only_improves_with_better_predictions() {
        let z = [0.3, -1.2, 0.8, 2.0, -0.1, 0.05];
        for metric in METRICS {
            let y: [f64; 6] = match metric.kind {
                TargetKind::Real => [1.0, -1.0, 0.5, 0.0, 3.0, 0.1],
                TargetKind::Sign => [1.0, -1.0, -1.0, 1.0, 1.0, -1.0],
            };
            let before = metric.score(&z, &y, None, 1.0);
            for i in 0..z.len() {
                let mut better = z;
                better[i] = match metric.kind {
                    TargetKind::Real => y[i],
                    TargetKind::Sign => z[i] + y[i],
                };
                let after = metric.score(&better, &y, None, 1.0);
                assert!(metric.advantage(after, before) >= -1e-12, "{} {i}", metric.name);
            }
        }
    }

    #[test]
    fn weights_count_like_repeated_rows() {
        let (z, w) = ([0.3, -1.2, 0.8, 2.0, -0.1, 0.05], [2.0, 0.0, 3.0, 1.0, 4.0, 1.0]);
        let repeat = |v: &[f64]| -> Vec<f64> {
            v.iter().zip(&w).flat_map(|(v, w)| std::iter::repeat_n(*v, *w as usize)).collect()
        };
        for metric in METRICS {
            let y: [f64; 6] = match metric.kind {
                TargetKind::Real => [1.0, -1.0, 0.5, 0.0, 3.0, 0.1],
                TargetKind::Sign => [1.0, -1.0, -1.0, 1.0, 1.0, -1.0],
            };
            let weighted = metric.score(&z, &y, Some(&w), 1.0);
            let repeated = metric.score(&repeat(&z), &repeat(&y), None, 1.0);
            assert!((weighted - repeated).abs() <= 1e-14, "{}: {weighted} {repeated}", metric.name);
        }
    }

    #[test]
    fn metrics_belong_to_a_kind_of_target() {
        assert_eq!(Metric::choose(None, TargetKind::Real).unwrap().name, "mae");
        assert_eq!(Metric::choose(None, TargetKind::Sign).unwrap().name, "accuracy");
        let error = Metric::choose(Some("accuracy"), TargetKind::Real).unwrap_err();
        assert!(error.to_string().contains("mae, median-ae, trimmed-mse, rmse, r2"));
    }

    #[test]
    fn undefined_metrics_are_refused() {
        for (name, y) in [("auc", [1.0, 1.0]), ("balanced-accuracy", [-1.0, -1.0]), ("r2", [3.0, 3.0])] {
            let metric = METRICS.iter().find(|m| m.name == name).unwrap();
            assert!(metric.check(&y, None).is_err(), "{name}");
            assert!(metric.check(&[1.0, -1.0], None).is_ok(), "{name}");
        }
    }
}
