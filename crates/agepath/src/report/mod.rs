//! What a run leaves behind: files that can be read back, and a summary for people.
//!
//! Every file is written under a temporary name in the same directory and then renamed, so an interrupted run never
//! leaves half a file under a final name.

mod classes;
mod model_file;
mod page;
mod path_file;
mod plot;
mod predict;
mod restore;
mod summary;
mod tables;

pub use classes::{ClassRun, ClassesModel, ClassesReport, ClassesSummary, class_dir, class_file, write_classes};
pub use model_file::{KernelModel, ModelFile};
pub use page::Report;
pub use path_file::{PathFile, ProblemRecord, sparse};
pub use plot::{PlotFormat, plot, write_plot};
pub use predict::{Predictions, Predictor, chosen_age, write_predictions};
pub use restore::{Restored, restore, restore_all};
pub use summary::{Chosen, NoiseFound, Summary, short};
pub use tables::{suspects_csv, write_suspects, write_train};

use crate::dataset::DataError;
pub use crate::decide::Choice;
use crate::error::Result;
use crate::path::Path as AgePath;
use crate::prepare::Prepared;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The computed path.
pub const PATH_FILE: &str = "path.json";
/// The training rows as the solver used them, in the user's units.
pub const TRAIN_FILE: &str = "train.csv.gz";
/// The training rows, most suspicious first.
pub const SUSPECTS_FILE: &str = "suspects.csv";
/// The chosen model in the user's units.
pub const MODEL_FILE: &str = "model.json";
/// The figures printed at the end.
pub const SUMMARY_FILE: &str = "summary.json";
/// The page that shows it all.
pub const REPORT_FILE: &str = "report.html";

/// Creates the directory of a run if need be.
pub fn create_dir(dir: &Path) -> Result<()> {
    Ok(fs::create_dir_all(dir).map_err(|e| write_error(dir, &e))?)
}

/// Writes the path and its training rows to `dir`, and returns the names of the files.
pub fn write_path(dir: &Path, prepared: &Prepared, path: &AgePath) -> Result<Vec<&'static str>> {
    write_json(&dir.join(PATH_FILE), &PathFile::new(prepared, path))?;
    write_train(&dir.join(TRAIN_FILE), &prepared.train)?;
    Ok(vec![PATH_FILE, TRAIN_FILE])
}

/// Writes what follows from the chosen age and the summary to `dir`, and returns the names of the files. Without a
/// chosen age, what an earlier run left of one is removed.
pub fn write_choice(
    dir: &Path,
    prepared: &Prepared,
    choice: Option<&Choice>,
    summary: &Summary,
) -> Result<Vec<&'static str>> {
    write_json(&dir.join(SUMMARY_FILE), summary)?;
    let Some(choice) = choice else {
        remove_if_there(&dir.join(SUSPECTS_FILE))?;
        remove_if_there(&dir.join(MODEL_FILE))?;
        return Ok(vec![SUMMARY_FILE]);
    };
    write_suspects(&dir.join(SUSPECTS_FILE), &choice.suspects)?;
    write_json(&dir.join(MODEL_FILE), &ModelFile::new(prepared, &choice.point, Some(&choice.selection)))?;
    Ok(vec![SUMMARY_FILE, SUSPECTS_FILE, MODEL_FILE])
}

/// Writes the page to `dir`, and returns its name.
pub fn write_report(dir: &Path, report: &Report) -> Result<&'static str> {
    let page = report.html()?;
    replace(&dir.join(REPORT_FILE), |out| out.write_all(page.as_bytes()))?;
    Ok(REPORT_FILE)
}

/// Writes `value` as JSON.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    replace(path, |out| {
        serde_json::to_writer(&mut *out, value)?;
        out.write_all(b"\n")
    })
}

fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(write_error(path, &e).into()),
        _ => Ok(()),
    }
}

fn write_error(path: &Path, error: &io::Error) -> DataError {
    DataError::File {
        action: "write",
        file: path.display().to_string(),
        kind: error.kind(),
        message: error.to_string(),
    }
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
