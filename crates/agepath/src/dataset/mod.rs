//! Data sets: read, checked, split, corrupted on purpose, scaled.
//!
//! [`read()`] or [`builtin()`] gives a [`Table`] (numbers, and the target still as text); a [`Table`] becomes a [`Dataset`]
//! once it is known whether the target is a number or a class.

mod arff;
mod builtin;
mod classes;
mod column;
mod dates;
mod delimited;
mod encode;
mod error;
mod libsvm;
mod matrix;
mod noise;
mod notice;
mod npz;
mod numbers;
#[cfg(feature = "parquet")]
mod parquet;
mod pick;
mod read;
mod rows_file;
mod scale;
mod split;
mod table;

pub use builtin::{BUILTIN, builtin};
pub use classes::ManyClasses;
pub use encode::{ColumnCode, Encoding, IMPUTATIONS, Impute, Unknown};
pub use error::DataError;
pub use matrix::{Matrix, Shared, SparseRows};
pub use noise::{Injected, NOISES, Noise, NoiseKind};
pub use notice::Notice;
pub use pick::Pick;
pub(crate) use read::file_error;
pub use read::{Header, Limits, ReadOptions, STDIN, read, read_from};
pub(crate) use rows_file::{read_rows, write_rows};
pub use scale::{Scaling, TARGET_SCALES, TargetScale};
pub(crate) use scale::{median, weighted_median, weighted_quantile};
pub use split::{DEFAULT_FOLDS, Folds, folds, max_folds, split};
pub use table::Table;

use crate::error::{Error, Result};
use crate::loss::TargetKind;
use std::borrow::Cow;

/// Fewer rows than this cannot be learned from.
pub const MIN_ROWS: usize = 2;

/// Rows with a target, all numbers finite.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    name: String,
    features: Vec<String>,
    target_name: String,
    x: Matrix,
    y: Vec<f64>,
    /// Sample weights; none: all 1.
    weights: Option<Vec<f64>>,
    classes: Option<[String; 2]>,
    rows: Vec<usize>,
}

impl Dataset {
    /// From numbers: `x` row-major, one row per target value; with `classes`, the targets are −1 and +1.
    pub fn new(
        features: Vec<String>,
        target_name: String,
        x: Vec<f64>,
        y: Vec<f64>,
        classes: Option<[String; 2]>,
    ) -> Result<Dataset> {
        let (n, d) = (y.len(), features.len());
        if x.len() != n * d {
            return Err(Error::Shape { what: "values in X", expected: n * d, found: x.len() });
        }
        Self::from_matrix(features, target_name, (x, d).into(), y, classes)
    }

    /// From numbers in any form, which are shared and not copied.
    pub fn from_matrix(
        features: Vec<String>,
        target_name: String,
        x: Matrix,
        y: Vec<f64>,
        classes: Option<[String; 2]>,
    ) -> Result<Dataset> {
        let (n, d) = (y.len(), features.len());
        if n < MIN_ROWS {
            return Err(Error::Shape { what: "rows", expected: MIN_ROWS, found: n });
        }
        if x.cols() != d {
            return Err(Error::Shape { what: "columns of X", expected: d, found: x.cols() });
        }
        // Without columns, nothing tells the number of rows.
        if d > 0 && x.rows() != n {
            return Err(Error::Shape { what: "rows of X", expected: n, found: x.rows() });
        }
        if let Some((row, column, value)) = x.first_not_finite() {
            return Err(Error::NotFinite { row, column, value });
        }
        let wrong = |v: &f64| !v.is_finite() || (classes.is_some() && v.abs() != 1.0);
        if let Some(row) = y.iter().position(wrong) {
            return Err(Error::NotFinite { row, column: d, value: y[row] });
        }
        let rows = (0..n).collect();
        Ok(Dataset { name: "data".into(), features, target_name, x, y, weights: None, classes, rows })
    }

    /// Where the rows came from, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Names of the features.
    pub fn features(&self) -> &[String] {
        &self.features
    }

    /// Name of the target.
    pub fn target_name(&self) -> &str {
        &self.target_name
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.y.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.y.is_empty()
    }

    /// The features of all rows, row-major.
    pub fn x(&self) -> Cow<'_, [f64]> {
        self.x.to_row_major()
    }

    /// The features of all rows, as they lie.
    pub fn matrix(&self) -> &Matrix {
        &self.x
    }

    /// The features of row `i`.
    pub fn row(&self, i: usize) -> Cow<'_, [f64]> {
        self.x.row(i)
    }

    /// Sample weights; none: all 1.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// The sample weight of row `i`.
    pub fn weight(&self, i: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |w| w[i])
    }

    /// The targets: numbers, or −1 and +1 for the two classes.
    pub fn y(&self) -> &[f64] {
        &self.y
    }

    /// The class names in the order −1, +1; none for a numeric target.
    pub fn classes(&self) -> Option<&[String; 2]> {
        self.classes.as_ref()
    }

    /// Row numbers in the file the rows came from, counted from 0.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Number or class.
    pub fn kind(&self) -> TargetKind {
        match self.classes {
            Some(_) => TargetKind::Sign,
            None => TargetKind::Real,
        }
    }

    /// A target or prediction in the user's words: the number itself, or the name of the class.
    pub fn label(&self, y: f64) -> String {
        match &self.classes {
            Some([minus, plus]) => (if y > 0.0 { plus } else { minus }).clone(),
            None => format_number(y),
        }
    }

    /// The chosen rows, in the order given.
    pub fn subset(&self, chosen: &[usize]) -> Dataset {
        Dataset {
            x: self.x.subset(chosen),
            y: chosen.iter().map(|&i| self.y[i]).collect(),
            weights: self.weights.as_ref().map(|w| chosen.iter().map(|&i| w[i]).collect()),
            rows: chosen.iter().map(|&i| self.rows[i]).collect(),
            name: self.name.clone(),
            features: self.features.clone(),
            target_name: self.target_name.clone(),
            classes: self.classes.clone(),
        }
    }

    /// Refuses a target that does not vary over the rows that count: there is nothing to learn.
    pub fn check_target(&self) -> std::result::Result<(), DataError> {
        let mut counted = (0..self.len()).filter(|&i| self.weight(i) > 0.0).map(|i| self.y[i]);
        let first = counted.next().unwrap_or_default();
        if counted.any(|y| y != first) {
            return Ok(());
        }
        let (file, column, value) = (self.name.clone(), self.target_name.clone(), self.label(first));
        Err(match self.classes {
            Some(_) => DataError::NotTwoClasses { file, column, count: 1, classes: value },
            None => DataError::ConstantTarget { file, column, value },
        })
    }

    /// The same rows with sample weights: finite, 0 or more, not all 0. An integer weight counts like as many rows.
    pub fn with_weights(mut self, weights: Option<Vec<f64>>) -> Result<Dataset> {
        if let Some(w) = &weights {
            crate::problem::check_weights(w, self.len())?;
        }
        self.weights = weights;
        Ok(self)
    }

    /// The same rows with −1 and +1 exchanged, labels and names alike.
    pub fn with_classes_swapped(mut self) -> Dataset {
        if let Some(classes) = &mut self.classes {
            classes.swap(0, 1);
            self.y.iter_mut().for_each(|y| *y = -*y);
        }
        self
    }

    /// The same rows under another name, for messages.
    pub fn with_name(mut self, name: &str) -> Dataset {
        self.name = name.into();
        self
    }

    /// Replaces the row numbers, when the rows were written out and read back.
    pub fn with_rows(mut self, rows: Vec<usize>) -> Result<Dataset> {
        if rows.len() != self.len() {
            return Err(Error::Shape { what: "row numbers", expected: self.len(), found: rows.len() });
        }
        self.rows = rows;
        Ok(self)
    }
}

/// The shortest text that reads back as the same number.
pub fn format_number(v: f64) -> String {
    // Plain notation where it is short, else an exponent; both round-trip in Rust.
    if v == 0.0 || (1e-5..1e16).contains(&v.abs()) || !v.is_finite() { format!("{v}") } else { format!("{v:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_text() {
        for v in [0.1, 1e300, -3.5e-310, 123456789.25, 1.0 / 3.0, 0.0, -0.0, f64::MIN_POSITIVE] {
            assert_eq!(format_number(v).parse::<f64>().unwrap().to_bits(), v.to_bits());
        }
    }

    #[test]
    fn a_bad_number_is_located() {
        let names = vec!["a".into(), "b".into()];
        let error = Dataset::new(names, "y".into(), vec![1.0, 2.0, 3.0, f64::NAN], vec![0.0, 1.0], None);
        assert!(matches!(error, Err(Error::NotFinite { row: 1, column: 1, .. })));
    }

    #[test]
    fn subsets_keep_the_row_numbers() {
        let set = Dataset::new(vec!["a".into()], "y".into(), vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0], None).unwrap();
        let part = set.subset(&[2, 0]).subset(&[0]);
        assert_eq!((&part.x()[..], part.y(), part.rows()), (&[3.0][..], &[6.0][..], &[2][..]));
    }
}
