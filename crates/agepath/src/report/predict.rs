//! Predictions for other rows, from a run's directory: at the chosen age, or at any age of the path.

use super::{MODEL_FILE, Restored, replace, restore_all};
use crate::dataset::{DataError, Encoding, Table, format_number};
use crate::error::Result;
use crate::one_vs_rest::{normalise, winner};
use serde::Deserialize;
use std::io::Write;
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

/// The ages of `model.json`, whatever else is in it: one, or one per class.
#[derive(Deserialize)]
#[serde(untagged)]
enum Ages {
    Many { one_vs_rest: Vec<Age> },
    One(Age),
}

#[derive(Deserialize)]
struct Age {
    age: f64,
}

impl Predictor {
    /// Opens a run's directory; `age` replaces what was chosen.
    pub fn open(dir: &Path, age: Option<f64>) -> Result<Predictor> {
        let runs = restore_all(dir)?;
        let ages = match age {
            Some(age) => vec![age; runs.len()],
            None => chosen_ages(dir, runs.len())?,
        };
        let (names, runs): (Vec<Option<String>>, Vec<Restored>) = runs.into_iter().unzip();
        let part = |(run, age): (Restored, f64)| {
            let theta = run.path.at(&run.problem, age)?.theta(&run.problem);
            Ok(Part { run, theta })
        };
        let parts = runs.into_iter().zip(ages).map(part).collect::<Result<Vec<_>>>()?;
        Ok(Predictor { parts, classes: names.into_iter().collect() })
    }

    /// Name of the target.
    pub fn target(&self) -> &str {
        self.first().train.target_name()
    }

    /// How the columns of a file become features.
    pub fn encoding(&self) -> &Encoding {
        &self.first().encoding
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

    /// Numbers, or two classes with decision values.
    fn predictions(&self, z: Vec<f64>) -> Predictions {
        let (train, scaling) = (&self.first().train, &self.first().scaling);
        let prediction = z.iter().map(|&z| train.label(scaling.predict(z))).collect();
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

/// The chosen age of a run with one path; none if none was chosen.
pub fn chosen_age(dir: &Path) -> Result<Option<f64>> {
    if !dir.join(MODEL_FILE).exists() {
        return Ok(None);
    }
    chosen_ages(dir, 1).map(|ages| ages.first().copied())
}

/// The chosen ages of `count` paths.
fn chosen_ages(dir: &Path, count: usize) -> Result<Vec<f64>> {
    let wrong = |message: String| DataError::NotPath { file: dir.display().to_string(), message };
    let bytes = std::fs::read(dir.join(MODEL_FILE))
        .map_err(|e| wrong(format!("it has no {MODEL_FILE} ({e}), so no age was chosen; give one with --age")))?;
    let ages = match serde_json::from_slice(&bytes).map_err(|e| wrong(format!("{MODEL_FILE}: {e}")))? {
        Ages::Many { one_vs_rest } => one_vs_rest.iter().map(|a| a.age).collect(),
        Ages::One(age) => vec![age.age],
    };
    match ages.len() == count {
        true => Ok(ages),
        false => Err(wrong(format!("{MODEL_FILE} has {} ages for {count} paths", ages.len())).into()),
    }
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

/// Writes predictions to a CSV file.
pub fn write_predictions(path: &Path, predictions: &Predictions) -> Result<()> {
    replace(path, |out| out.write_all(predictions.to_csv().as_bytes()))
}
