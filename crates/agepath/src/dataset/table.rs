//! A table as it was read: features are numbers, the target is still text.

use super::read::Place;
use super::{DataError, Dataset, Encoding, MIN_ROWS, ManyClasses, Notice};
use crate::loss::TargetKind;
use std::collections::{BTreeSet, HashMap};

/// How many class names a message lists.
const LISTED: usize = 6;

/// More different whole numbers than this are numbers unless somebody says that they are classes.
const MOST_CLASSES: usize = 20;
/// Fewer rows than this for each of them look like numbers, too.
const ROWS_PER_CLASS: usize = 10;

/// Numbers with a target column of text.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Where it was read from.
    pub file: String,
    /// Names of the features.
    pub features: Vec<String>,
    /// Name of the target.
    pub target_name: String,
    /// Row-major, one value per feature.
    pub x: Vec<f64>,
    /// The target as written.
    pub labels: Vec<String>,
    /// The line of each row, counted from 1.
    pub lines: Vec<u64>,
    /// The number of each row in the file, counted from 0; rows without a target are left out.
    pub rows: Vec<usize>,
    /// What the target is meant to be, if somebody said so.
    pub task: Option<TargetKind>,
    /// What the user should know.
    pub notices: Vec<Notice>,
    /// How the columns of the file became features.
    pub encoding: Encoding,
}

impl Table {
    /// What the target is said to be, or looks like: classes if it has exactly two different values, no numbers at all, or few
    /// whole numbers; else numbers.
    pub fn guess(&self) -> TargetKind {
        let numeric = self.labels.iter().any(|l| l.parse::<f64>().is_ok());
        let looks = self.distinct().len() == 2 || !numeric || self.integer_classes().is_some();
        self.task.unwrap_or(if looks { TargetKind::Sign } else { TargetKind::Real })
    }

    /// What is to be said of a target of more than two but few whole numbers, unless somebody said what it is.
    pub(super) fn integer_classes(&self) -> Option<Notice> {
        let (distinct, rows) = (self.distinct(), self.labels.len());
        let whole = |label: &&str| label.parse::<f64>().is_ok_and(|v| v.fract() == 0.0);
        let few = (3..=MOST_CLASSES).contains(&distinct.len()) && rows >= ROWS_PER_CLASS * distinct.len();
        (self.task.is_none() && few && distinct.iter().all(whole)).then(|| Notice::IntegerClasses {
            column: self.target_name.clone(),
            count: distinct.len(),
            rows,
        })
    }

    /// The data set, its target read as `kind`.
    pub fn dataset(&self, kind: TargetKind) -> Result<Dataset, DataError> {
        self.check_rows()?;
        let classes = match kind {
            TargetKind::Real => None,
            TargetKind::Sign => Some(self.two_classes()?),
        };
        let y = self.targets(classes.as_ref())?;
        let set = self.build(self.features.clone(), self.x.clone(), y, classes);
        set.check_target()?;
        Ok(set)
    }

    /// The data set with the features and classes of `model`, whatever order its columns have.
    pub fn dataset_like(&self, model: &Dataset) -> Result<Dataset, DataError> {
        let x = self.features_like(model)?;
        let classes = model.classes().cloned();
        let y = self.targets(classes.as_ref())?;
        Ok(self.build(model.features().to_vec(), x, y, classes))
    }

    /// The rows with the features of `model` and no targets: they are 0.
    pub fn unlabelled(&self, model: &Dataset) -> Result<Dataset, DataError> {
        let x = self.features_like(model)?;
        Ok(self.build(model.features().to_vec(), x, vec![0.0; self.lines.len()], None))
    }

    /// The rows of more than two classes; none if there are no more than two. Fractions, and values that hardly ever occur
    /// twice, are no classes.
    pub fn many_classes(&self) -> crate::error::Result<Option<ManyClasses>> {
        let names = self.class_names();
        if names.len() <= 2 {
            return Ok(None);
        }
        let fraction = |name: &String| name.parse::<f64>().is_ok_and(|v| v.fract() != 0.0);
        let (count, rows) = (names.len(), self.labels.len());
        if 2 * count > rows || names.iter().any(fraction) {
            let (file, column, classes) = (self.file.clone(), self.target_name.clone(), listed(&names));
            return Err(DataError::NotClasses { file, column, count, rows, classes }.into());
        }
        let y = self.class_numbers(&names)?;
        Ok(Some(ManyClasses::new(self.build(self.features.clone(), self.x.clone(), y, None), names)?))
    }

    /// The rows with the features and classes of `model`, whatever order its columns have.
    pub fn many_classes_like(&self, model: &ManyClasses) -> crate::error::Result<ManyClasses> {
        let x = self.features_like(model.rows())?;
        let y = self.class_numbers(model.names())?;
        ManyClasses::new(self.build(model.rows().features().to_vec(), x, y, None), model.names().to_vec())
    }

    fn features_like(&self, model: &Dataset) -> Result<Vec<f64>, DataError> {
        let places: HashMap<&str, usize> = self.features.iter().enumerate().map(|(k, f)| (f.as_str(), k)).collect();
        let mut columns = Vec::with_capacity(model.features().len());
        for name in model.features() {
            let found = places.get(name.as_str()).copied();
            columns.push(found.ok_or_else(|| DataError::NoColumn {
                file: self.file.clone(),
                column: name.clone(),
                columns: self.features.join(", "),
            })?);
        }
        let d = self.features.len();
        let pick = |i: usize| columns.iter().map(move |&j| self.x[i * d + j]);
        Ok((0..self.lines.len()).flat_map(pick).collect())
    }

    fn build(&self, features: Vec<String>, x: Vec<f64>, y: Vec<f64>, classes: Option<[String; 2]>) -> Dataset {
        Dataset {
            name: self.file.clone(),
            target_name: self.target_name.clone(),
            rows: self.rows.iter().copied().take(y.len()).collect(),
            x: (x, features.len()).into(),
            features,
            y,
            weights: None,
            classes,
        }
    }

    fn check_rows(&self) -> Result<(), DataError> {
        if self.labels.len() >= MIN_ROWS {
            return Ok(());
        }
        let (file, rows) = (self.file.clone(), self.labels.len());
        Err(DataError::TooFewRows { file, what: "data", rows, needed: MIN_ROWS })
    }

    fn distinct(&self) -> BTreeSet<&str> {
        self.labels.iter().map(String::as_str).collect()
    }

    /// The names of the classes, sorted as numbers if they are numbers.
    fn class_names(&self) -> Vec<String> {
        let mut names: Vec<&str> = self.distinct().into_iter().collect();
        let number = |s: &str| s.parse::<f64>().ok();
        if names.iter().all(|s| number(s).is_some()) {
            names.sort_by(|a, b| number(a).partial_cmp(&number(b)).unwrap_or(std::cmp::Ordering::Equal));
        }
        names.into_iter().map(str::to_owned).collect()
    }

    fn two_classes(&self) -> Result<[String; 2], DataError> {
        let names = self.class_names();
        if let [minus, plus] = &names[..] {
            return Ok([minus.clone(), plus.clone()]);
        }
        Err(DataError::NotTwoClasses {
            file: self.file.clone(),
            column: self.target_name.clone(),
            count: names.len(),
            classes: listed(&names),
        })
    }

    fn targets(&self, classes: Option<&[String; 2]>) -> Result<Vec<f64>, DataError> {
        let each = self.labels.iter().zip(&self.lines);
        each.map(|(label, &line)| {
            let Some([minus, plus]) = classes else {
                return Place { file: &self.file, line, column: &self.target_name }.number(label);
            };
            match label {
                l if l == minus => Ok(-1.0),
                l if l == plus => Ok(1.0),
                _ => Err(self.unknown_class(label, line, &[minus.clone(), plus.clone()])),
            }
        })
        .collect()
    }

    /// The place of each row's class among `names`.
    fn class_numbers(&self, names: &[String]) -> Result<Vec<f64>, DataError> {
        let places: HashMap<&str, usize> = names.iter().enumerate().map(|(k, name)| (name.as_str(), k)).collect();
        let each = self.labels.iter().zip(&self.lines);
        each.map(|(label, &line)| {
            let place = places.get(label.as_str()).map(|&k| k as f64);
            place.ok_or_else(|| self.unknown_class(label, line, names))
        })
        .collect()
    }

    fn unknown_class(&self, label: &str, line: u64, classes: &[String]) -> DataError {
        DataError::UnknownClass {
            file: self.file.clone(),
            line,
            column: self.target_name.clone(),
            value: label.to_owned(),
            classes: classes.join(", "),
        }
    }
}

/// The first few names.
fn listed(names: &[String]) -> String {
    let more = if names.len() > LISTED { ", …" } else { "" };
    names[..names.len().min(LISTED)].join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::super::{ReadOptions, read_from};
    use super::*;

    fn table(text: &str) -> Table {
        read_from(text.as_bytes(), "t.csv", &ReadOptions::default()).unwrap()
    }

    #[test]
    fn the_kind_of_target_is_guessed() {
        assert_eq!(table("a,y\n1,0\n2,1\n3,0").guess(), TargetKind::Sign);
        assert_eq!(table("a,y\n1,u\n2,v\n3,w").guess(), TargetKind::Sign);
        assert_eq!(table("a,y\n1,1.5\n2,2.5\n3,oops").guess(), TargetKind::Real);
        assert_eq!(table("a,y\n1,5\n2,5").guess(), TargetKind::Real);
    }

    #[test]
    fn classes_keep_their_names_and_are_sorted() {
        let set = table("a,y\n1,10\n2,2\n3,10").dataset(TargetKind::Sign).unwrap();
        assert_eq!(set.classes().unwrap(), &["2".to_owned(), "10".to_owned()]);
        assert_eq!(set.y(), [1.0, -1.0, 1.0]);
        assert_eq!(set.label(-0.3), "2");
    }

    #[test]
    fn unusable_targets_are_refused() {
        let three = table("a,y\n1,u\n2,v\n3,w").dataset(TargetKind::Sign);
        assert!(matches!(three, Err(DataError::NotTwoClasses { count: 3, .. })));
        let one = table("a,y\n1,u\n2,u").dataset(TargetKind::Sign);
        assert!(matches!(one, Err(DataError::NotTwoClasses { count: 1, .. })));
        let constant = table("a,y\n1,5\n2,5").dataset(TargetKind::Real);
        assert!(matches!(constant, Err(DataError::ConstantTarget { .. })));
        let text = table("a,y\n1,1.5\n2,oops\n3,2").dataset(TargetKind::Real);
        assert!(matches!(text, Err(DataError::NotNumber { line: 3, .. })));
        let few = table("a,y\n1,5").dataset(TargetKind::Real);
        assert!(matches!(few, Err(DataError::TooFewRows { rows: 1, .. })));
    }

    #[test]
    fn another_file_is_read_in_the_same_columns() {
        let train = table("a,b,y\n1,2,u\n3,4,v").dataset(TargetKind::Sign).unwrap();
        let other = table("b,a,y\n20,10,v").dataset_like(&train).unwrap();
        assert_eq!((&other.x()[..], other.y()), (&[10.0, 20.0][..], &[1.0][..]));
        let missing = table("b,y\n20,v").dataset_like(&train);
        assert!(matches!(missing, Err(DataError::NoColumn { .. })));
        let unknown = table("a,b,y\n1,2,w").dataset_like(&train);
        assert!(matches!(unknown, Err(DataError::UnknownClass { line: 2, .. })));
    }
}
