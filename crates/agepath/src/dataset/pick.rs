//! Which columns of a file are features, and which is the target.

use super::DataError;
use super::column::Column;
use std::collections::BTreeSet;

/// How many names a message lists.
const LISTED: usize = 8;

/// Which columns are used, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pick {
    /// Left out. Default: none.
    pub drop: Vec<String>,
    /// If not empty, the only ones that are used besides the target.
    pub columns: Vec<String>,
    /// Numbers that are names, like postcodes: each becomes a column. Default: none.
    pub categorical: Vec<String>,
}

impl Pick {
    /// Whether a column is used.
    pub(super) fn keeps(&self, name: &str) -> bool {
        let among = |list: &[String]| list.iter().any(|n| n == name);
        !among(&self.drop) && (self.columns.is_empty() || among(&self.columns))
    }

    /// Refuses names that are not there.
    pub(super) fn check(&self, file: &str, names: &[&str]) -> Result<(), DataError> {
        let mut asked = self.drop.iter().chain(&self.columns).chain(&self.categorical);
        match asked.find(|name| !names.contains(&name.as_str())) {
            Some(name) => Err(no_column(file, name, names)),
            None => Ok(()),
        }
    }
}

/// No column has the name.
pub(super) fn no_column(file: &str, name: &str, names: &[&str]) -> DataError {
    let more = if names.len() > LISTED { ", …" } else { "" };
    let columns = names.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ") + more;
    DataError::NoColumn { file: file.into(), column: name.into(), columns }
}

/// Takes the target column out of the others: the one called `name`, or the last. With `optional`, it may be absent.
pub(super) fn take_target(
    file: &str,
    columns: &mut Vec<Column>,
    name: Option<&str>,
    optional: bool,
) -> Result<Option<Column>, DataError> {
    let Some(at) = target_index(file, columns.iter().map(|c| c.name.as_str()), name, optional)? else {
        return Ok(None);
    };
    Ok(Some(columns.remove(at)))
}

/// Where the target stands among the names.
pub(super) fn target_index<'a>(
    file: &str,
    names: impl ExactSizeIterator<Item = &'a str> + Clone,
    name: Option<&str>,
    optional: bool,
) -> Result<Option<usize>, DataError> {
    let Some(name) = name else {
        let one = names.clone().next().filter(|_| names.len() < 2);
        return match one {
            Some(column) if !optional => Err(DataError::OneColumn { file: file.into(), column: column.into() }),
            _ => Ok((!optional).then(|| names.len() - 1)),
        };
    };
    match names.clone().position(|n| n == name) {
        Some(at) => Ok(Some(at)),
        None if optional => Ok(None),
        None => Err(no_column(file, name, &names.collect::<Vec<_>>())),
    }
}

/// Refuses two columns of the same name.
pub(super) fn check_names(file: &str, names: &[String]) -> Result<(), DataError> {
    let mut seen = BTreeSet::new();
    match names.iter().find(|name| !seen.insert(*name)) {
        Some(column) => Err(DataError::DuplicateColumn { file: file.into(), column: column.clone() }),
        None => Ok(()),
    }
}
