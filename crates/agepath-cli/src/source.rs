//! Where data comes from: a file, standard input, or a data set that comes with the program.

use agepath::dataset::{self, ReadOptions, Table};
use anyhow::Result;
use std::path::Path;

/// What a data set that comes with the program is called: this and its name.
const BUILTIN_PREFIX: &str = "builtin:";

/// Reads it.
pub fn read(source: &Path, options: &ReadOptions) -> Result<Table> {
    let builtin = source.to_str().and_then(|s| s.strip_prefix(BUILTIN_PREFIX));
    Ok(match builtin {
        Some(name) => dataset::builtin(name, options)?,
        None => dataset::read(source, options)?,
    })
}
