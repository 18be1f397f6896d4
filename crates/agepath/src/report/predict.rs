//! Predictions for other rows, from a run's directory: at the chosen age, or at any age of the path.

use super::{MODEL_FILE, Restored, replace, restore};
use crate::dataset::{DataError, Encoding, Table, format_number};
use crate::error::Result;
use serde::Deserialize;
use std::io::Write;
use std::path::Path;

/// A model that was chosen, ready to predict.
#[derive(Debug)]
pub struct Predictor {
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

/// The age of `model.json`, whatever else is in it.
#[derive(Deserialize)]
struct Age {
    age: f64,
}

impl Predictor {
    /// Opens a run's directory; `age` replaces the chosen one.
    pub fn open(dir: &Path, age: Option<f64>) -> Result<Predictor> {
        let run = restore(dir)?;
        let age = match age {
            Some(age) => age,
            None => chosen_age(dir)?,
        };
        let point = run.path.at(&run.problem, age)?;
        let theta = crate::select::theta(&run.problem, &point.coef, point.intercept);
        Ok(Predictor { run, theta })
    }

    /// Name of the target.
    pub fn target(&self) -> &str {
        self.run.train.target_name()
    }

    /// How the columns of a file become features.
    pub fn encoding(&self) -> &Encoding {
        &self.run.encoding
    }

    /// What the model says about the rows of a table that was read with [`Predictor::encoding`].
    pub fn predict(&self, table: &Table) -> Result<Predictions> {
        let rows = table.unlabelled(&self.run.train)?;
        let design = self.run.scaling.design(rows.matrix(), self.run.problem.has_intercept())?;
        Ok(self.predictions(self.run.problem.new_rows(design)?.predict(&self.theta)))
    }

    /// Numbers, or two classes with decision values.
    fn predictions(&self, z: Vec<f64>) -> Predictions {
        let (train, scaling) = (&self.run.train, &self.run.scaling);
        let prediction = z.iter().map(|&z| train.label(scaling.predict(z))).collect();
        let Some([minus, plus]) = train.classes() else { return Predictions { prediction, columns: Vec::new() } };
        let mut columns = Vec::new();
        let loss = self.run.problem.loss();
        if let Some(p) = z.iter().map(|&z| loss.probability(z)).collect::<Option<Vec<f64>>>() {
            columns.push((format!("probability_{minus}"), p.iter().map(|p| 1.0 - p).collect()));
            columns.push((format!("probability_{plus}"), p));
        }
        columns.push(("decision".into(), z));
        Predictions { prediction, columns }
    }
}

fn chosen_age(dir: &Path) -> Result<f64> {
    let wrong = |message: String| DataError::NotPath { file: dir.display().to_string(), message };
    let bytes = std::fs::read(dir.join(MODEL_FILE))
        .map_err(|e| wrong(format!("it has no {MODEL_FILE} ({e}), so no age was chosen; give one with --age")))?;
    Ok(serde_json::from_slice::<Age>(&bytes).map_err(|e| wrong(format!("{MODEL_FILE}: {e}")))?.age)
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
