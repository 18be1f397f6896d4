//! A run, read back from its directory: the same path and, to the last bit, the same problem.

use super::classes::{ClassPlace, ClassesFile};
use super::manifest::{self, Sealed, steadily};
use super::{OLD_TRAIN_FILE, PATH_FILE, PathFile, ProblemRecord};
use crate::dataset::{DataError, Dataset, Encoding, Header, Injected, Limits, ReadOptions, Scaling, Table};
use crate::dataset::{read_from, read_rows};
use crate::error::Result;
use crate::loss::TargetKind;
use crate::model::Model;
use crate::path::Path as AgePath;
use crate::prepare::{Prepared, build};
use crate::problem::{Problem, Spec};
use std::path::Path;

/// Residual above which a knot is not a solution: knots are solved to 1e-9.
const SOLVED: f64 = 1e-6;

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

    /// Whether the knots solve the problem at all. Not each of them: a path that was stopped may end before its last one is
    /// polished; but knots of other rows solve nothing.
    fn solves(&self) -> bool {
        let knots = &self.path.knots;
        let solves = |k: usize| {
            let mut theta = knots[k].coef.clone();
            theta.resize(self.problem.parameters(), knots[k].intercept);
            self.problem.kkt(&theta, 1.0 / knots[k].age) <= SOLVED
        };
        [0, knots.len() / 2, knots.len() - 1].into_iter().any(solves)
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
    steadily(dir, || read_all(dir))
}

fn read_all(dir: &Path) -> Result<Vec<(Option<String>, Restored)>> {
    let sealed = Sealed::open(dir)?;
    let (bytes, _) = read_path_file(&sealed, dir)?;
    let Some(file) = ClassesFile::parse(&bytes) else { return Ok(vec![(None, read_one(dir)?)]) };
    let class = |place: ClassPlace| {
        let directory = place.checked_directory(dir)?;
        sealed.check_class(&place.directory)?;
        Ok((Some(place.name), read_one(&directory)?))
    };
    file.classes.into_iter().map(class).collect()
}

/// `path.json` of a directory, and what messages call it.
fn read_path_file(sealed: &Sealed, dir: &Path) -> Result<(Vec<u8>, String)> {
    let absent = || {
        let message = format!("there is no {PATH_FILE} in it");
        DataError::NotPath { file: dir.display().to_string(), message }
    };
    Ok((sealed.read(PATH_FILE)?.ok_or_else(absent)?, dir.join(PATH_FILE).display().to_string()))
}

/// Reads a path from its directory.
pub fn restore(dir: &Path) -> Result<Restored> {
    steadily(dir, || read_one(dir))
}

fn read_one(dir: &Path) -> Result<Restored> {
    let sealed = Sealed::open(dir)?;
    let (bytes, name) = read_path_file(&sealed, dir)?;
    if let Some(file) = ClassesFile::parse(&bytes) {
        let directories: Vec<String> = file.classes.into_iter().map(|class| class.directory).collect();
        let message = format!("it holds one path per class, in its directories {}", directories.join(", "));
        return Err(DataError::NotPath { file: dir.display().to_string(), message }.into());
    }
    let record = PathFile::parse(&bytes, &name)?;
    let restored = Restored::new(&record, read_train(&sealed, dir, &record.problem)?, &name)?;
    if !sealed.is_vouched_for() && !restored.solves() {
        let message = "the solutions in path.json are not those of its training rows".into();
        return Err(manifest::not_whole(dir, message).into());
    }
    Ok(restored)
}

/// The training rows, as the manifest says or as they used to be.
fn read_train(sealed: &Sealed, dir: &Path, problem: &ProblemRecord) -> Result<Dataset> {
    let name = sealed.rows().unwrap_or(OLD_TRAIN_FILE);
    let file = dir.join(name).display().to_string();
    let bytes = sealed.read(name)?.ok_or_else(|| manifest::not_whole(dir, format!("{name} is missing")))?;
    if name != OLD_TRAIN_FILE {
        return read_rows(&bytes, &file, &problem.features, &problem.target, problem.classes.clone());
    }
    let options = ReadOptions {
        target: Some(problem.target.clone()),
        delimiter: Some(b','),
        header: Header::Present,
        encoding: Some(Encoding::numbers(&problem.features)),
        // It was read before.
        limits: Limits { bytes: u64::MAX, columns: usize::MAX },
        ..ReadOptions::default()
    };
    with_classes(&read_from(&bytes[..], &file, &options)?, problem.classes.clone())
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
    use super::super::{Overwrite, Staging, write_path};
    use super::*;
    use crate::dataset::builtin;
    use crate::path::{Certificate, Direction, End, Knot, Work};
    use crate::prepare::{PrepareOptions, prepare};

    fn one_knot(size: usize) -> AgePath {
        AgePath {
            ages: (0.1, 1.0),
            direction: Direction::Down,
            knots: vec![Knot { age: 1.0, coef: vec![0.0; size], intercept: 0.0 }],
            events: Vec::new(),
            gaps: Vec::new(),
            notes: Vec::new(),
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
            let staging = Staging::begin(&dir, Overwrite::Results).unwrap();
            write_path(staging.dir(), &prepared, &one_knot(10 + 20 * usize::from(name != "diabetes")), &[]).unwrap();
            staging.commit().unwrap();
            let restored = restore(&dir).unwrap();
            std::fs::remove_dir_all(&dir).unwrap();
            assert_eq!(bits(&restored.problem), bits(&prepared.problem), "{name}");
            assert_eq!(restored.train.rows(), prepared.train.rows());
            assert_eq!(restored.scaling, prepared.scaling);
        }
    }
}
