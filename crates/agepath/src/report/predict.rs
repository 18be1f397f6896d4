//! Predictions for other rows, from a run's directory: at the chosen age, or at any age of the path.

use super::manifest::{Sealed, not_whole, steadily};
use super::{ClassesModel, MODEL_FILE, ModelFile, Restored, restore_all};
use crate::dataset::{DataError, Encoding, Impute, Table, format_number};
use crate::error::Result;
use crate::loss::TargetKind;
use crate::one_vs_rest::{normalise, winner};
use crate::select::METRICS;
use serde::Deserialize;
use std::path::Path;

/// A model that was chosen, ready to predict.
#[derive(Debug)]
pub struct Predictor {
    /// One path, or one per class.
    parts: Vec<Part>,
    /// The names of the classes, where there are more than two.
    classes: Option<Vec<String>>,
}

/// One path at one age.
#[derive(Debug)]
struct Part {
    run: Restored,
    /// The parameters at the age in question.
    theta: Vec<f64>,
}

/// What a model says about some rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    /// The numbers, or the names of the classes.
    pub prediction: Vec<String>,
    /// More columns by name: decision values of classes, and probabilities where the loss has them.
    pub columns: Vec<(String, Vec<f64>)>,
}

/// `model.json`: one model, or one per class.
#[derive(Deserialize)]
#[serde(untagged)]
enum Models {
    Many(ClassesModel),
    One(Box<ModelFile>),
}

impl Predictor {
    /// Opens a run's directory; `age` replaces what was chosen.
    pub fn open(dir: &Path, age: Option<f64>) -> Result<Predictor> {
        steadily(dir, || Predictor::read(dir, age))
    }

    fn read(dir: &Path, age: Option<f64>) -> Result<Predictor> {
        let runs = restore_all(dir)?;
        let models = match age {
            Some(_) => Vec::new(),
            None => chosen_models(dir, runs.len())?,
        };
        let vouched_for = Sealed::open(dir)?.is_vouched_for();
        let (names, runs): (Vec<Option<String>>, Vec<Restored>) = runs.into_iter().unzip();
        let part = |(k, run): (usize, Restored)| {
            let model = models.get(k);
            let kept = model.map(|model| if model.ordinary { f64::INFINITY } else { model.age });
            let age = kept.or(age).unwrap_or(run.path.ages.1);
            let point = run.path.at(&run.problem, age)?;
            if !vouched_for && model.is_some_and(|model| !model.is_at(&run, &point)) {
                let message = format!("{MODEL_FILE} is not the solution at its age, {age}");
                return Err(not_whole(dir, message).into());
            }
            Ok(Part { theta: point.theta(&run.problem), run })
        };
        let parts = runs.into_iter().enumerate().map(part).collect::<Result<Vec<_>>>()?;
        Ok(Predictor { parts, classes: names.into_iter().collect() })
    }

    /// Name of the target.
    pub fn target(&self) -> &str {
        self.first().train.target_name()
    }

    /// How the columns of a file become features. With an imputation, columns without missing values in the training rows are
    /// filled in by them, too.
    pub fn encoding(&self, impute: Impute) -> Encoding {
        let Restored { encoding, train, .. } = self.first();
        match impute {
            Impute::Refuse => encoding.clone(),
            Impute::Median => encoding.filled(train),
        }
    }

    fn first(&self) -> &Restored {
        // A run has at least one path.
        &self.parts[0].run
    }

    /// What the model says about the rows of a table that was read with [`Predictor::encoding`].
    pub fn predict(&self, table: &Table) -> Result<Predictions> {
        let rows = table.unlabelled(&self.first().train)?;
        let predictors = |part: &Part| {
            let design = part.run.scaling.design(rows.matrix(), part.run.problem.has_intercept())?;
            Ok(part.run.problem.new_rows(design)?.predict(&part.theta))
        };
        let mut z = self.parts.iter().map(predictors).collect::<Result<Vec<_>>>()?;
        Ok(match &self.classes {
            Some(names) => self.class_predictions(names, z),
            None => self.predictions(z.swap_remove(0)),
        })
    }

    /// How well the predictions fit the targets that the table has: a metric's name, its value, and the number of rows. None if
    /// there are no targets. Classes that the model does not know are wrong predictions.
    pub fn scores(&self, table: &Table, predictions: &Predictions) -> Result<Vec<(&'static str, f64, usize)>> {
        let pairs = table.labels.iter().zip(&predictions.prediction).filter(|(label, _)| !label.is_empty());
        let (labels, predicted): (Vec<&String>, Vec<&String>) = pairs.unzip();
        let count = labels.len();
        if count == 0 {
            return Ok(Vec::new());
        }
        if self.classes.is_some() || self.first().train.classes().is_some() {
            let hits = labels.iter().zip(&predicted).filter(|(a, b)| a == b).count();
            return Ok(vec![("accuracy", hits as f64 / count as f64, count)]);
        }
        let number = |text: &&String| text.parse::<f64>().ok().filter(|v| v.is_finite());
        let (Some(y), Some(z)) = (
            labels.iter().map(number).collect::<Option<Vec<_>>>(),
            predicted.iter().map(number).collect::<Option<Vec<_>>>(),
        ) else {
            return Ok(Vec::new());
        };
        let metrics = METRICS.iter().filter(|m| m.kind == TargetKind::Real);
        Ok(metrics
            .map(|m| (m.name, m.score(&z, &y, None, 1.0), count))
            .filter(|(_, score, _)| score.is_finite())
            .collect())
    }

    /// Numbers, or two classes with decision values.
    fn predictions(&self, z: Vec<f64>) -> Predictions {
        let (train, scaling, loss) = (&self.first().train, &self.first().scaling, self.first().problem.loss());
        let prediction = z.iter().map(|&z| train.label(scaling.predict(loss.response(z)))).collect();
        let Some([minus, plus]) = train.classes() else { return Predictions { prediction, columns: Vec::new() } };
        let mut columns = Vec::new();
        if let Some(p) = self.probabilities(&z) {
            columns.push((format!("probability_{minus}"), p.iter().map(|p| 1.0 - p).collect()));
            columns.push((format!("probability_{plus}"), p));
        }
        columns.push(("decision".into(), z));
        Predictions { prediction, columns }
    }

    /// More classes: the largest decision value wins, and probabilities are made to sum up to 1. `z` holds the predictors of
    /// each class.
    fn class_predictions(&self, names: &[String], z: Vec<Vec<f64>>) -> Predictions {
        let count = z.first().map_or(0, Vec::len);
        let prediction = (0..count).map(|i| names[winner(z.iter().map(|z| z[i]))].clone()).collect();
        let mut columns = Vec::new();
        if let Some(mut p) = z.iter().map(|z| self.probabilities(z)).collect::<Option<Vec<_>>>() {
            for i in 0..count {
                let mut row: Vec<f64> = p.iter().map(|p| p[i]).collect();
                normalise(&mut row);
                p.iter_mut().zip(row).for_each(|(p, value)| p[i] = value);
            }
            columns.extend(names.iter().map(|name| format!("probability_{name}")).zip(p));
        }
        columns.extend(names.iter().map(|name| format!("decision_{name}")).zip(z));
        Predictions { prediction, columns }
    }

    fn probabilities(&self, z: &[f64]) -> Option<Vec<f64>> {
        let loss = self.first().problem.loss();
        z.iter().map(|&z| loss.probability(z)).collect()
    }
}

/// The chosen age of a run with one path, and whether the ordinary fit was kept instead; none if none was chosen.
pub fn chosen_age(dir: &Path) -> Result<Option<(f64, bool)>> {
    let models = steadily(dir, || read_models(dir))?;
    Ok(models.and_then(|models| models.first().map(|model| (model.age, model.ordinary))))
}

/// The models that were chosen, of `count` paths.
fn chosen_models(dir: &Path, count: usize) -> Result<Vec<ModelFile>> {
    let wrong = |message: String| DataError::NotPath { file: dir.display().to_string(), message };
    let absent = || wrong(format!("it has no {MODEL_FILE}, so no age was chosen; give one with --age"));
    let models = read_models(dir)?.ok_or_else(absent)?;
    match models.len() == count {
        true => Ok(models),
        false => Err(wrong(format!("{MODEL_FILE} has {} models for {count} paths", models.len())).into()),
    }
}

fn read_models(dir: &Path) -> Result<Option<Vec<ModelFile>>> {
    let Some(bytes) = Sealed::open(dir)?.read(MODEL_FILE)? else { return Ok(None) };
    let wrong = |e: serde_json::Error| DataError::NotPath {
        file: dir.display().to_string(),
        message: format!("{MODEL_FILE} is not understood ({e})"),
    };
    Ok(Some(match serde_json::from_slice(&bytes).map_err(wrong)? {
        Models::Many(ClassesModel { one_vs_rest, .. }) => one_vs_rest,
        Models::One(model) => vec![*model],
    }))
}

impl Predictions {
    /// As CSV: row (counted from 0), prediction, and the other columns.
    pub fn to_csv(&self) -> String {
        let mut csv = csv::Writer::from_writer(Vec::new());
        let names = self.columns.iter().map(|(name, _)| name.as_str());
        let write = |csv: &mut csv::Writer<Vec<u8>>| -> csv::Result<()> {
            csv.write_record(["row", "prediction"].into_iter().chain(names))?;
            for (i, prediction) in self.prediction.iter().enumerate() {
                csv.write_field(i.to_string())?;
                csv.write_field(prediction)?;
                self.columns.iter().try_for_each(|(_, values)| csv.write_field(format_number(values[i])))?;
                csv.write_record(None::<&[u8]>)?;
            }
            Ok(())
        };
        write(&mut csv).expect("writing to memory cannot fail");
        let bytes = csv.into_inner().expect("writing to memory cannot fail");
        String::from_utf8(bytes).expect("numbers and strings are UTF-8")
    }
}
