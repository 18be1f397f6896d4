//! What a run leaves behind: files that can be read back, and a summary for people.
//!
//! A run's files are written aside and swapped in whole ([`Staging`]), with a manifest of their hashes that is checked when they
//! are read. A file written by itself is written under a temporary name and then renamed.

mod classes;
mod manifest;
mod model_file;
mod page;
mod path_file;
mod plot;
mod predict;
mod restore;
mod staging;
mod summary;
mod tables;

pub use classes::{ClassRun, ClassesModel, ClassesReport, ClassesSummary, class_dir, class_file, write_classes};
pub use manifest::MANIFEST_FILE;
pub use model_file::{KernelModel, ModelFile};
pub use page::Report;
pub use path_file::{PathFile, ProblemRecord, sparse};
pub use plot::{PlotFormat, plot};
pub use predict::{Predictions, Predictor, chosen_age};
pub use restore::{Restored, restore, restore_all};
pub use staging::{Overwrite, Staging};
pub use summary::{Chosen, NoiseFound, Summary, short};
pub use tables::{suspects_csv, write_suspects, write_train};

use crate::dataset::{DataError, file_error};
pub use crate::decide::Choice;
use crate::error::Result;
use crate::judge::Branch;
use crate::path::Path as AgePath;
use crate::prepare::Prepared;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The computed path.
pub const PATH_FILE: &str = "path.json";
/// The training rows as the solver used them, in the user's units, as arrays that numpy reads too.
pub const TRAIN_FILE: &str = "train.npz";
/// The training rows as text, in directories of earlier versions.
const OLD_TRAIN_FILE: &str = "train.csv.gz";
/// The training rows, most suspicious first.
pub const SUSPECTS_FILE: &str = "suspects.csv";
/// The chosen model in the user's units.
pub const MODEL_FILE: &str = "model.json";
/// The figures printed at the end.
pub const SUMMARY_FILE: &str = "summary.json";
/// The page that shows it all.
pub const REPORT_FILE: &str = "report.html";
/// What the name of the directory of a class begins with; its number follows.
const CLASS_PREFIX: &str = "class-";

/// Every name that a file of a result has or had, but for the manifest.
const FILES: &[&str] = &[PATH_FILE, TRAIN_FILE, OLD_TRAIN_FILE, SUSPECTS_FILE, MODEL_FILE, SUMMARY_FILE, REPORT_FILE];

/// Writes the path, the branches that were not chosen and the training rows to `dir`, and returns the names of the files.
pub fn write_path(dir: &Path, prepared: &Prepared, path: &AgePath, others: &[&Branch]) -> Result<Vec<&'static str>> {
    fs::create_dir_all(dir).map_err(|e| write_error(dir, &e))?;
    write_json(&dir.join(PATH_FILE), &PathFile::new(prepared, path).with_branches(others))?;
    write_train(&dir.join(TRAIN_FILE), &prepared.train)?;
    Ok(vec![PATH_FILE, TRAIN_FILE])
}

/// Writes what follows from the chosen age and the summary to `dir`, and returns the names of the files.
pub fn write_choice(
    dir: &Path,
    prepared: &Prepared,
    choice: Option<&Choice>,
    summary: &Summary,
) -> Result<Vec<&'static str>> {
    write_json(&dir.join(SUMMARY_FILE), summary)?;
    let Some(choice) = choice else { return Ok(vec![SUMMARY_FILE]) };
    write_suspects(&dir.join(SUSPECTS_FILE), &choice.suspects)?;
    write_json(&dir.join(MODEL_FILE), &ModelFile::new(prepared, &choice.point, Some(choice)))?;
    Ok(vec![SUMMARY_FILE, SUSPECTS_FILE, MODEL_FILE])
}

/// Writes the page to `dir`, and returns its name.
pub fn write_report(dir: &Path, report: &Report) -> Result<&'static str> {
    let page = report.html()?;
    replace(&dir.join(REPORT_FILE), |out| out.write_all(page.as_bytes()))?;
    Ok(REPORT_FILE)
}

/// Writes a file that is wanted for itself, like a figure: under a temporary name, which is then changed.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, |out| out.write_all(bytes))
}

/// Writes `value` as JSON.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    replace(path, |out| {
        serde_json::to_writer(&mut *out, value)?;
        out.write_all(b"\n")
    })
}

fn write_error(path: &Path, error: &io::Error) -> DataError {
    file_error("write", &path.display().to_string(), error)
}

fn read_error(path: &Path, error: &io::Error) -> DataError {
    file_error("read", &path.display().to_string(), error)
}

/// Removes the temporary file unless the rename took it away.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // Gone already after a rename; otherwise there is nobody left to tell.
        let _ = fs::remove_file(&self.0);
    }
}

/// Writes a file under a temporary name beside `path`, then renames it to `path`.
fn replace(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = Temporary(path.with_file_name(name));
    let save = || {
        let mut out = BufWriter::new(File::create(&temporary.0)?);
        write(&mut out)?;
        out.into_inner()?.sync_all()?;
        fs::rename(&temporary.0, path)
    };
    Ok(save().map_err(|e| write_error(path, &e))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("agepath-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_other() {
        let dir = scratch("replace");
        let file = dir.join("a.txt");
        replace(&file, |out| out.write_all(b"old")).unwrap();
        let failed = replace(&file, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert!(failed.unwrap_err().to_string().contains("disk full"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(dir).unwrap();
    }
}
