//! A run, read back from its directory: the same path and, to the last bit, the same problem.

use super::classes::ClassesFile;
use super::{PATH_FILE, PathFile, TRAIN_FILE};
use crate::dataset::{DataError, Dataset, Encoding, Header, Injected, ReadOptions, Scaling, Table, read};
use crate::error::Result;
use crate::loss::TargetKind;
use crate::model::Model;
use crate::path::Path as AgePath;
use crate::prepare::{Prepared, build};
use crate::problem::{Problem, Spec};
use std::path::Path;

/// A run that was written by [`write_path`](super::write_path).
#[derive(Debug)]
pub struct Restored {
    /// What was solved.
    pub problem: Problem,
    /// The path.
    pub path: AgePath,
    /// The training rows.
    pub train: Dataset,
    /// From the user's units to the solver's.
    pub scaling: Scaling,
    /// How the columns of the user's file became features.
    pub encoding: Encoding,
    /// The model.
    pub model: &'static Model,
    /// Its specification.
    pub spec: Spec,
    /// Noise that was injected into the training rows.
    pub noise: Option<Injected>,
}

impl Restored {
    /// From the words of the file and the training rows; `file` is what messages call the file.
    pub fn new(record: &PathFile, train: Dataset, file: &str) -> Result<Restored> {
        let path = record.path(file)?;
        let (problem, scaling, spec) = (&record.problem, record.problem.scaling(), record.problem.spec()?);
        let train = train.with_rows(problem.rows.clone())?.with_weights(problem.weights.clone())?;
        let rebuilt = build(&train, &scaling, problem.intercept, &spec)?;
        let model = Model::by_name(&problem.model)?;
        let encoding = problem.encoding.clone().unwrap_or_else(|| Encoding::numbers(&problem.features));
        Ok(Restored { problem: rebuilt, path, train, scaling, encoding, model, spec, noise: record.noise.clone() })
    }

    /// As it was when the path was computed, validation rows and notices apart.
    pub fn into_prepared(self) -> (Prepared, AgePath) {
        let Restored { problem, path, train, scaling, encoding, model, spec, noise } = self;
        (
            Prepared { problem, model, spec, train, validation: None, scaling, noise, notices: Vec::new(), encoding },
            path,
        )
    }
}

/// Every path of a run with the name of its class; a run without several classes has one path and no name.
pub fn restore_all(dir: &Path) -> Result<Vec<(Option<String>, Restored)>> {
    let (bytes, _) = read_path_file(dir)?;
    match ClassesFile::parse(&bytes) {
        Some(file) => {
            let each = file.classes.into_iter();
            each.map(|class| Ok((Some(class.name), restore(&dir.join(class.directory))?))).collect()
        }
        None => Ok(vec![(None, restore(dir)?)]),
    }
}

/// `path.json` of a directory, and what messages call it.
fn read_path_file(dir: &Path) -> Result<(Vec<u8>, String)> {
    let file = dir.join(PATH_FILE);
    let bytes = std::fs::read(&file).map_err(|e| DataError::NotPath {
        file: dir.display().to_string(),
        message: format!("cannot read {PATH_FILE} in it: {e}"),
    })?;
    Ok((bytes, file.display().to_string()))
}

/// Reads a path from its directory.
pub fn restore(dir: &Path) -> Result<Restored> {
    let (bytes, name) = read_path_file(dir)?;
    if let Some(file) = ClassesFile::parse(&bytes) {
        let directories: Vec<String> = file.classes.into_iter().map(|class| class.directory).collect();
        let message = format!("it holds one path per class, in its directories {}", directories.join(", "));
        return Err(DataError::NotPath { file: dir.display().to_string(), message }.into());
    }
    let record = PathFile::parse(&bytes, &name)?;
    let problem = &record.problem;
    let options = ReadOptions {
        target: Some(problem.target.clone()),
        delimiter: Some(b','),
        header: Header::Present,
        encoding: Some(Encoding::numbers(&problem.features)),
        ..ReadOptions::default()
    };
    let table = read(&dir.join(TRAIN_FILE), &options)?;
    Restored::new(&record, with_classes(&table, problem.classes.clone())?, &name)
}

/// The classes as they were, in their order.
fn with_classes(table: &Table, classes: Option<[String; 2]>) -> Result<Dataset> {
    let kind = match classes {
        Some(_) => TargetKind::Sign,
        None => TargetKind::Real,
    };
    let data = table.dataset(kind)?;
    if data.classes() == classes.as_ref() {
        return Ok(data);
    }
    // A table names the classes in order; whoever computed the path may have had another one.
    let swapped = data.with_classes_swapped();
    if swapped.classes() == classes.as_ref() {
        return Ok(swapped);
    }
    Err(DataError::NotPath {
        file: table.file.clone(),
        message: format!("its classes are not the {classes:?} of {PATH_FILE}"),
    }
    .into())
}

#[cfg(test)]
mod tests {
    use super::super::write_path;
    use super::*;
    use crate::dataset::builtin;
    use crate::path::{Certificate, Direction, End, Work};
    use crate::prepare::{PrepareOptions, prepare};

    fn empty_path() -> AgePath {
        AgePath {
            ages: (0.1, 1.0),
            direction: Direction::Down,
            knots: Vec::new(),
            events: Vec::new(),
            gaps: Vec::new(),
            certificate: Certificate::default(),
            work: Work::default(),
            end: End::Complete,
        }
    }

    fn bits(problem: &Problem) -> Vec<u64> {
        let columns: Vec<usize> = (0..problem.design().cols()).collect();
        let mut row = vec![0.0; columns.len()];
        let mut out: Vec<u64> = problem.target().iter().map(|y| y.to_bits()).collect();
        for i in 0..problem.rows() {
            problem.design().copy_row(i, &columns, &mut row);
            out.extend(row.iter().map(|v| v.to_bits()));
        }
        out
    }

    #[test]
    fn the_same_problem_to_the_last_bit() {
        for (name, noise) in [("diabetes", "outliers:0.3"), ("breast_cancer", "outliers:0.2")] {
            let table = builtin(name, &ReadOptions::default()).unwrap();
            let options = PrepareOptions { noise: Some(noise.parse().unwrap()), ..PrepareOptions::default() };
            let prepared = prepare(&table, &options).unwrap();
            let folder = format!("agepath-restore-{name}-{}", std::process::id());
            let dir = std::env::temp_dir().join(folder);
            std::fs::create_dir_all(&dir).unwrap();
            write_path(&dir, &prepared, &empty_path()).unwrap();
            let restored = restore(&dir).unwrap();
            std::fs::remove_dir_all(&dir).unwrap();
            assert_eq!(bits(&restored.problem), bits(&prepared.problem), "{name}");
            assert_eq!(restored.train.rows(), prepared.train.rows());
            assert_eq!(restored.scaling, prepared.scaling);
        }
    }
}
