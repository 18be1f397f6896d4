//! Predictions for other rows, from a run's directory: at the chosen age, or at any age of the path.

use super::{MODEL_FILE, Restored, replace, restore};
use crate::dataset::{DataError, Encoding, Table, format_number};
use crate::error::Result;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;

/// `model.json` of a run with more than two classes: one path per class, each in a directory of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OneVsRest {
    /// "agepath.one-vs-rest/1"
    pub format: String,
    /// Name of the target.
    pub target: String,
    /// The classes, in their order.
    pub classes: Vec<String>,
    /// The directory of each class's path, inside the run's.
    pub parts: Vec<String>,
    /// Share of the validation rows, or of the held-out rows, whose class is predicted; none without either.
    pub accuracy: Option<f64>,
}

/// The first field of [`OneVsRest`].
pub const ONE_VS_REST: &str = "agepath.one-vs-rest/1";

/// A model that was chosen, ready to predict.
#[derive(Debug)]
pub struct Predictor {
    target: String,
    encoding: Encoding,
    /// With more than two classes, their names, one part each.
    classes: Option<Vec<String>>,
    parts: Vec<Part>,
}

/// One path and the parameters at the age in question.
#[derive(Debug)]
struct Part {
    run: Restored,
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
        let file = dir.join(MODEL_FILE);
        let text = std::fs::read(&file).ok();
        if let Some(many) = text.as_ref().and_then(|t| serde_json::from_slice::<OneVsRest>(t).ok()) {
            let parts: Vec<Part> = many.parts.iter().map(|p| Part::open(&dir.join(p), age)).collect::<Result<_>>()?;
            let encoding = parts.first().map(|p| p.run.encoding.clone()).unwrap_or_default();
            return Ok(Predictor { target: many.target, encoding, classes: Some(many.classes), parts });
        }
        let part = Part::open(dir, age)?;
        let (target, encoding) = (part.run.train.target_name().to_owned(), part.run.encoding.clone());
        Ok(Predictor { target, encoding, classes: None, parts: vec![part] })
    }

    /// Name of the target.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// How the columns of a file become features.
    pub fn encoding(&self) -> &Encoding {
        &self.encoding
    }

    /// What the model says about the rows of a table that was read with [`Predictor::encoding`].
    pub fn predict(&self, table: &Table) -> Result<Predictions> {
        let z: Vec<Vec<f64>> = self.parts.iter().map(|part| part.predict(table)).collect::<Result<_>>()?;
        match &self.classes {
            None => Ok(self.parts[0].predictions(z.into_iter().next().unwrap_or_default())),
            Some(classes) => Ok(self.one_vs_rest(classes, z)),
        }
    }

    /// The class with the largest decision value; probabilities are each class's own, made to add up to 1.
    fn one_vs_rest(&self, classes: &[String], z: Vec<Vec<f64>>) -> Predictions {
        let n = z.first().map_or(0, Vec::len);
        let best = |i: usize| (0..z.len()).max_by(|&a, &b| z[a][i].total_cmp(&z[b][i]).then(b.cmp(&a))).unwrap_or(0);
        let prediction = (0..n).map(|i| classes[best(i)].clone()).collect();
        let named = |what: &str, k: usize| format!("{what}_{}", classes[k]);
        let probability = |k: usize, i: usize| self.parts[k].run.problem.loss().probability(z[k][i]);
        let mut columns = Vec::new();
        if n > 0 && probability(0, 0).is_some() {
            let raw: Vec<Vec<f64>> =
                (0..z.len()).map(|k| (0..n).map(|i| probability(k, i).unwrap_or(0.0)).collect()).collect();
            let total: Vec<f64> =
                (0..n).map(|i| raw.iter().map(|p| p[i]).sum::<f64>().max(f64::MIN_POSITIVE)).collect();
            for (k, p) in raw.iter().enumerate() {
                columns.push((named("probability", k), p.iter().zip(&total).map(|(p, t)| p / t).collect()));
            }
        }
        columns.extend(z.into_iter().enumerate().map(|(k, z)| (named("decision", k), z)));
        Predictions { prediction, columns }
    }
}

impl Part {
    fn open(dir: &Path, age: Option<f64>) -> Result<Part> {
        let run = restore(dir)?;
        let age = match age {
            Some(age) => age,
            None => chosen_age(dir)?,
        };
        let point = run.path.at(&run.problem, age)?;
        let theta = crate::select::theta(&run.problem, &point.coef, point.intercept);
        Ok(Part { run, theta })
    }

    fn predict(&self, table: &Table) -> Result<Vec<f64>> {
        let rows = table.unlabelled(&self.run.train)?;
        let design = self.run.scaling.design(rows.matrix(), self.run.problem.has_intercept())?;
        Ok(self.run.problem.new_rows(design)?.predict(&self.theta))
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
