//! Baselines side by side, over repeated splits.

use super::{Baseline, Task};
use crate::dataset::{Noise, Table, split};
use crate::error::{Error, Result};
use crate::loss;
use crate::model::Model;
use crate::prepare::{PrepareOptions, VALIDATION_FRACTION, Validation, prepare_rows};
use crate::select::Metric;
use serde::Serialize;
use std::time::Instant;

/// What is compared.
#[derive(Debug, Clone)]
pub struct CompareOptions {
    /// How problems are made of rows; its noise hits all rows that are learned from, validation rows too.
    pub prepare: PrepareOptions,
    /// Name of the metric. Default: that of the target.
    pub metric: Option<String>,
    /// Random splits. Default 5.
    pub repeats: usize,
    /// Share of the rows that are tested on and stay clean. Default 0.25.
    pub test: f64,
}

impl Default for CompareOptions {
    fn default() -> Self {
        CompareOptions { prepare: PrepareOptions::default(), metric: None, repeats: 5, test: 0.25 }
    }
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Name of the baseline.
    pub name: String,
    /// Mean score on the test rows.
    pub mean: f64,
    /// Standard deviation of the score over the repeats.
    pub deviation: f64,
    /// Mean wall-clock seconds.
    pub seconds: f64,
    /// Mean chosen age, where there is one.
    pub age: Option<f64>,
    /// Mean over the repeats of the best score over all ages on the test rows: the protocol of papers that choose by the
    /// test rows; not comparable with the rest.
    pub test_selected: Option<f64>,
    /// What went wrong in a repeat, if it did; the means are over the others.
    pub failures: Vec<String>,
}

/// The whole table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Where the data came from.
    pub data: String,
    /// Name of the model.
    pub model: &'static str,
    /// Name of the metric.
    pub metric: &'static str,
    /// Whether a larger score is better.
    pub higher_is_better: bool,
    /// Kind and share of the noise.
    pub noise: Option<String>,
    /// Random splits.
    pub repeats: usize,
    /// The seed of the first split.
    pub seed: u64,
    /// One per baseline.
    pub rows: Vec<Row>,
}

/// Runs the baselines on the same splits; `progress` is told the repeat and the baseline before each run.
pub fn compare(
    table: &Table,
    baselines: &[&dyn Baseline],
    options: &CompareOptions,
    progress: &mut dyn FnMut(usize, &str),
) -> Result<Comparison> {
    if options.repeats == 0 {
        let (name, value) = ("repeats", "0".into());
        return Err(Error::Option { name, value, expected: "1 or more".into() });
    }
    let model = match &options.prepare.model {
        Some(name) => Model::by_name(name)?,
        None => Model::default_for(table.guess()),
    };
    let kind = loss::by_name(model.loss, &options.prepare.strength.loss)?.target();
    let metric = Metric::choose(options.metric.as_deref(), kind)?;
    let baselines: Vec<_> = baselines.iter().filter(|b| b.kind().is_none_or(|k| k == kind)).collect();
    let mut runs: Vec<Runs> = vec![Runs::default(); baselines.len()];
    for repeat in 0..options.repeats {
        let task = task(table, model, metric, options, options.prepare.seed + repeat as u64)?;
        for (baseline, runs) in baselines.iter().zip(&mut runs) {
            progress(repeat, baseline.name());
            let start = Instant::now();
            match baseline.run(&task) {
                Ok(outcome) => {
                    runs.scores.push(outcome.score);
                    runs.seconds.push(start.elapsed().as_secs_f64());
                    runs.ages.extend(outcome.age);
                    runs.test_selected.extend(outcome.test_selected);
                }
                Err(error) => runs.failures.push(error.to_string()),
            }
        }
    }
    let rows = baselines.iter().zip(runs).map(|(b, runs)| runs.row(b.name())).collect();
    Ok(Comparison {
        data: table.file.clone(),
        model: model.name,
        metric: metric.name,
        higher_is_better: metric.higher_is_better,
        noise: options.prepare.noise.map(|n| format!("{}:{}", n.kind.name(), n.rate)),
        repeats: options.repeats,
        seed: options.prepare.seed,
        rows,
    })
}

/// One split: clean test rows, the others corrupted and prepared with and without validation rows.
fn task(
    table: &Table,
    model: &'static Model,
    metric: &'static Metric,
    options: &CompareOptions,
    seed: u64,
) -> Result<Task> {
    let kind = loss::by_name(model.loss, &options.prepare.strength.loss)?.target();
    let (train, test) = split(&table.dataset(kind)?, options.test, seed)?;
    let noise: Option<Noise> = options.prepare.noise;
    let prepared = |validation, noise, rows| {
        let prepare = PrepareOptions { validation, noise, seed, ..options.prepare.clone() };
        prepare_rows(rows, model, &prepare, Vec::new())
    };
    let all = prepared(Validation::None, noise, train)?;
    // The validation rows are corrupted like the others: nobody has clean ones.
    let share = match options.prepare.validation {
        Validation::Fraction(share) => share,
        _ => VALIDATION_FRACTION,
    };
    let divided = prepared(Validation::Fraction(share), None, all.train.clone())?;
    Ok(Task { all, divided, test, metric, seed })
}

#[derive(Debug, Clone, Default)]
struct Runs {
    scores: Vec<f64>,
    seconds: Vec<f64>,
    ages: Vec<f64>,
    test_selected: Vec<f64>,
    failures: Vec<String>,
}

impl Runs {
    fn row(self, name: &str) -> Row {
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let middle = mean(&self.scores);
        let square: f64 = self.scores.iter().map(|s| (s - middle).powi(2)).sum();
        let degrees = (self.scores.len().max(2) - 1) as f64;
        Row {
            name: name.into(),
            mean: middle,
            deviation: (square / degrees).sqrt(),
            seconds: mean(&self.seconds),
            age: (!self.ages.is_empty()).then(|| mean(&self.ages)),
            test_selected: (!self.test_selected.is_empty()).then(|| mean(&self.test_selected)),
            failures: self.failures,
        }
    }
}

impl std::fmt::Display for Comparison {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let noise = self.noise.as_deref().unwrap_or("none");
        let better = if self.higher_is_better { "more" } else { "less" };
        writeln!(
            f,
            "{}: {}, noise {noise}, {} splits from seed {}; {} on clean test rows ({better} is better)",
            self.data, self.model, self.repeats, self.seed, self.metric
        )?;
        writeln!(f, "{:14} {:>12} {:>12} {:>9} {:>9} {:>14}", "", "mean", "sd", "seconds", "age", "test-selected")?;
        let optional = |v: Option<f64>| v.map_or("-".into(), |v| format!("{v:.4}"));
        for row in &self.rows {
            writeln!(
                f,
                "{:14} {:>12.5} {:>12.5} {:>9.2} {:>9} {:>14}",
                row.name,
                row.mean,
                row.deviation,
                row.seconds,
                optional(row.age),
                optional(row.test_selected)
            )?;
            for failure in &row.failures {
                writeln!(f, "{:14} failed: {failure}", "")?;
            }
        }
        writeln!(f, "test-selected: the best of all ages on the test rows, as some papers report; not a fair figure")
    }
}
