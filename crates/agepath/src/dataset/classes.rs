//! Rows of more than two classes, which become one data set per class: that class against all others.

use super::split::{most_folds, split_groups};
use super::{Dataset, Folds};
use crate::error::{Error, Result};

/// Rows of several classes.
#[derive(Debug, Clone, PartialEq)]
pub struct ManyClasses {
    /// The target is the number of the class.
    rows: Dataset,
    names: Vec<String>,
}

impl ManyClasses {
    /// From rows whose target is a place among `names`.
    pub fn new(rows: Dataset, names: Vec<String>) -> Result<ManyClasses> {
        let known = |y: f64| y >= 0.0 && y.fract() == 0.0 && (y as usize) < names.len();
        match rows.y().iter().position(|&y| !known(y)) {
            Some(row) => Err(Error::NotFinite { row, column: rows.features().len(), value: rows.y()[row] }),
            None => Ok(ManyClasses { rows, names }),
        }
    }

    /// The names of the classes.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The rows; their target is the number of the class.
    pub fn rows(&self) -> &Dataset {
        &self.rows
    }

    /// The number of the class of row `i`.
    pub fn class(&self, i: usize) -> usize {
        self.rows.y()[i] as usize
    }

    /// The rows with class `k` as +1 and all others as −1. The features are shared, not copied.
    pub fn against_rest(&self, k: usize) -> Dataset {
        let name = &self.names[k];
        let sign = |&y: &f64| if y as usize == k { 1.0 } else { -1.0 };
        Dataset {
            y: self.rows.y().iter().map(sign).collect(),
            classes: Some([format!("not {name}"), name.clone()]),
            ..self.rows.clone()
        }
    }

    /// Training and validation rows: `fraction` of each class validate.
    pub fn split(&self, fraction: f64, seed: u64) -> Result<(ManyClasses, ManyClasses)> {
        let (train, validate) = split_groups(&self.rows, self.groups(), fraction, seed)?;
        let part = |chosen: &[usize]| ManyClasses { rows: self.rows.subset(chosen), names: self.names.clone() };
        Ok((part(&train), part(&validate)))
    }

    /// The rows of each fold, of each class about as many in every fold.
    pub fn folds(&self, folds: &Folds, seed: u64) -> Result<Vec<Vec<usize>>> {
        folds.draw(self.rows.len(), self.groups(), seed)
    }

    /// How many folds can be drawn at most: outside of every fold there must be rows of every class.
    pub fn max_folds(&self) -> usize {
        most_folds(self.rows.len(), &self.groups())
    }

    /// The rows of each class.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups = vec![Vec::new(); self.names.len()];
        (0..self.rows.len()).for_each(|i| groups[self.class(i)].push(i));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(n: usize) -> ManyClasses {
        let rows = Dataset::new(
            vec!["a".into()],
            "y".into(),
            (0..n).map(|i| i as f64).collect(),
            (0..n).map(|i| (i % 3) as f64).collect(),
            None,
        );
        ManyClasses::new(rows.unwrap(), ["u", "v", "w"].map(String::from).to_vec()).unwrap()
    }

    #[test]
    fn one_class_stands_against_the_others() {
        let all = data(6);
        let one = all.against_rest(1);
        assert_eq!(one.y(), [-1.0, 1.0, -1.0, -1.0, 1.0, -1.0]);
        assert_eq!(one.classes().unwrap(), &["not v".to_owned(), "v".to_owned()]);
        assert_eq!(one.matrix().address(), all.rows().matrix().address());
    }

    #[test]
    fn every_class_is_in_every_part() {
        let data = data(60);
        let (train, held) = data.split(0.25, 3).unwrap();
        for k in 0..3 {
            assert_eq!(train.against_rest(k).y().iter().filter(|&&y| y > 0.0).count(), 15);
            assert_eq!(held.against_rest(k).y().iter().filter(|&&y| y > 0.0).count(), 5);
        }
        for fold in data.folds(&Folds::Count(4), 0).unwrap() {
            assert!((0..3).all(|k| fold.iter().filter(|&&i| data.class(i) == k).count() == 5));
        }
        assert_eq!(data.max_folds(), 20);
    }

    #[test]
    fn numbers_that_are_no_class_are_refused() {
        let rows = Dataset::new(vec!["a".into()], "y".into(), vec![0.0; 2], vec![0.0, 3.0], None).unwrap();
        assert!(ManyClasses::new(rows, vec!["u".into(), "v".into(), "w".into()]).is_err());
    }
}
