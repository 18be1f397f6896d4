//! `manifest.json`: which files make up one result, with their sizes and hashes. Files of two runs, files that were cut off
//! and files that were changed are noticed when they are read. Directories from before there was a manifest stay readable.

use super::{CLASS_PREFIX, TRAIN_FILE, read_error, write_json};
use crate::dataset::DataError;
use crate::error::Result;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The manifest of a result.
pub const MANIFEST_FILE: &str = "manifest.json";

/// The first field of the file.
const FORMAT: &str = "agepath.result/1";

/// How often a result that is being replaced is read anew.
const READS: usize = 5;

/// The files of one result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: String,
    /// The version of the program that wrote it.
    version: String,
    /// The file with the training rows; none where the directories of classes have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rows: Option<String>,
    /// By name; of the directory of a class, its manifest.
    files: BTreeMap<String, Fingerprint>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Fingerprint {
    bytes: u64,
    sha256: String,
}

impl Fingerprint {
    fn of(bytes: &[u8]) -> Fingerprint {
        let hex = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Fingerprint { bytes: bytes.len() as u64, sha256: hex }
    }
}

/// Writes the manifest of a directory that holds one result and nothing else, those of its classes first.
pub(super) fn seal(dir: &Path) -> Result<()> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(|e| read_error(dir, &e))? {
        let entry = entry.map_err(|e| read_error(dir, &e))?;
        let (mut path, mut name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if name.starts_with(CLASS_PREFIX) && path.is_dir() {
            seal(&path)?;
            (path, name) = (path.join(MANIFEST_FILE), format!("{name}/{MANIFEST_FILE}"));
        }
        let bytes = fs::read(&path).map_err(|e| read_error(&path, &e))?;
        files.insert(name, Fingerprint::of(&bytes));
    }
    let rows = files.contains_key(TRAIN_FILE).then(|| TRAIN_FILE.to_owned());
    let manifest = Manifest { format: FORMAT.into(), version: env!("CARGO_PKG_VERSION").into(), rows, files };
    write_json(&dir.join(MANIFEST_FILE), &manifest)
}

/// A result's directory, its files checked as they are read.
#[derive(Debug)]
pub(super) struct Sealed {
    dir: PathBuf,
    /// None in directories from before there was one.
    manifest: Option<Manifest>,
}

impl Sealed {
    /// Reads the manifest.
    pub fn open(dir: &Path) -> Result<Sealed> {
        let file = dir.join(MANIFEST_FILE);
        let wrong = |message: String| not_whole(dir, message);
        let bytes = match fs::read(&file) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return match dir.join(TRAIN_FILE).exists() {
                    true => Err(wrong(format!("{MANIFEST_FILE} is missing")).into()),
                    false => Ok(Sealed { dir: dir.into(), manifest: None }),
                };
            }
            other => other.map_err(|e| read_error(&file, &e))?,
        };
        let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|e| wrong(format!("{MANIFEST_FILE}: {e}")))?;
        if manifest.format != FORMAT {
            let Manifest { format, version, .. } = manifest;
            return Err(wrong(format!("its format is \"{format}\" (version {version}), not \"{FORMAT}\"")).into());
        }
        Ok(Sealed { dir: dir.into(), manifest: Some(manifest) })
    }

    /// Whether a manifest vouches for the files.
    pub fn is_vouched_for(&self) -> bool {
        self.manifest.is_some()
    }

    /// The file with the training rows, if the manifest names one.
    pub fn rows(&self) -> Option<&str> {
        self.manifest.as_ref()?.rows.as_deref()
    }

    /// A file as it was written; none if the result has no such file.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.dir.join(name);
        let wrong = |message: &str| not_whole(&self.dir, format!("{name} {message}"));
        let listed = self.manifest.as_ref().map(|manifest| manifest.files.get(name));
        let bytes = match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return match listed.flatten() {
                    Some(_) => Err(wrong("is missing").into()),
                    None => Ok(None),
                };
            }
            other => other.map_err(|e| read_error(&path, &e))?,
        };
        match listed {
            None => Ok(Some(bytes)),
            Some(None) => Err(wrong(&format!("is there, but {MANIFEST_FILE} does not know it")).into()),
            Some(Some(written)) if written.bytes > bytes.len() as u64 => {
                Err(wrong(&format!("is cut off after {} of {} bytes", bytes.len(), written.bytes)).into())
            }
            Some(Some(written)) if *written != Fingerprint::of(&bytes) => {
                Err(wrong("was changed, or belongs to another run").into())
            }
            Some(Some(_)) => Ok(Some(bytes)),
        }
    }

    /// Checks that the directory of a class is the one that was written with this result.
    pub fn check_class(&self, class: &str) -> Result<()> {
        let name = format!("{class}/{MANIFEST_FILE}");
        match (&self.manifest, self.read(&name)?) {
            (Some(_), None) => Err(not_whole(&self.dir, format!("{name} is missing")).into()),
            _ => Ok(()),
        }
    }
}

pub(super) fn not_whole(dir: &Path, message: String) -> DataError {
    DataError::NotWhole { file: dir.display().to_string(), message }
}

/// Reads from a directory, and again if it was replaced meanwhile.
pub(super) fn steadily<T>(dir: &Path, read: impl Fn() -> Result<T>) -> Result<T> {
    // What cannot be read now says why when it is read in earnest.
    let state = || fs::read(dir.join(MANIFEST_FILE)).ok();
    for _ in 1..READS {
        let before = state();
        match read() {
            Err(_) if before != state() => {}
            done => return done,
        }
    }
    read()
}
