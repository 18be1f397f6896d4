//! From columns as they were read to numbers: categories become indicator columns, missing values are refused or filled in.
//! What was done is an [`Encoding`], so that other rows can be treated the same way.

use super::{DataError, Notice, Table, format_number, median};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A column with more categories than this is taken for an identifier or free text.
const MAX_LEVELS: usize = 100;

/// How many names a message lists.
const LISTED: usize = 8;

/// What becomes of missing values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Impute {
    /// They are refused.
    #[default]
    Refuse,
    /// The median of the column takes their place; in a column of categories, the commonest one.
    Median,
}

/// Every way of filling in: the name users type, and one line about it.
pub const IMPUTATIONS: &[(&str, Impute, &str)] =
    &[("median", Impute::Median, "the column's median; for categories the commonest one")];

impl Impute {
    /// By name.
    pub fn by_name(name: &str) -> crate::error::Result<Impute> {
        let known = IMPUTATIONS.iter().find(|(n, ..)| *n == name);
        known.map(|(_, impute, _)| *impute).ok_or_else(|| crate::error::Error::UnknownName {
            what: "imputation",
            name: name.into(),
            choices: IMPUTATIONS.iter().map(|(n, ..)| *n).collect::<Vec<_>>().join(", "),
        })
    }
}

/// How one column of a file becomes features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnCode {
    /// Its name in the file.
    pub column: String,
    /// Its categories, one feature each; none for a column of numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<String>>,
    /// What takes the place of a missing value, as text; none: missing values are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<String>,
}

impl ColumnCode {
    fn features(&self) -> Vec<String> {
        match &self.levels {
            None => vec![self.column.clone()],
            Some(levels) => levels.iter().map(|level| format!("{}={level}", self.column)).collect(),
        }
    }
}

/// How the columns of a file become features, in their order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Encoding(pub Vec<ColumnCode>);

impl Encoding {
    /// The names of the features.
    pub fn features(&self) -> Vec<String> {
        self.0.iter().flat_map(ColumnCode::features).collect()
    }

    /// Columns of numbers as they are.
    pub fn numbers(names: &[String]) -> Encoding {
        let code = |name: &String| ColumnCode { column: name.clone(), levels: None, fill: None };
        Encoding(names.iter().map(code).collect())
    }

    /// Whether every feature is a column of numbers as it is.
    pub fn is_plain(&self) -> bool {
        self.0.iter().all(|code| code.levels.is_none() && code.fill.is_none())
    }
}

/// The values of one column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    /// Not a number where it is missing.
    Numbers(Vec<f64>),
    /// None where it is missing.
    Text(Vec<Option<String>>),
}

/// One column as it was read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub name: String,
    pub values: Values,
    /// What stands in the first row where a value is missing.
    pub missing: Option<(usize, String)>,
}

impl Column {
    pub fn numbers(name: String, values: Vec<f64>) -> Column {
        let missing = values.iter().position(|v| v.is_nan()).map(|row| (row, "NaN".to_owned()));
        Column { name, values: Values::Numbers(values), missing }
    }

    pub fn text(name: String, values: Vec<Option<String>>) -> Column {
        let missing = values.iter().position(Option::is_none).map(|row| (row, String::new()));
        Column { name, values: Values::Text(values), missing }
    }
}

/// A file as it was read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Raw {
    pub file: String,
    pub columns: Vec<Column>,
    pub target: Option<Column>,
    /// The line of each row, counted from 1; in formats without lines, the row.
    pub lines: Vec<u64>,
    pub notices: Vec<Notice>,
}

/// What is asked of the columns.
pub(super) struct Rules<'a> {
    pub impute: Impute,
    pub strict: bool,
    pub encoding: Option<&'a Encoding>,
}

impl Raw {
    /// The numbers, encoded by the rules.
    pub fn encode(mut self, rules: &Rules) -> Result<Table, DataError> {
        let encoding = match rules.encoding {
            Some(encoding) => encoding.clone(),
            None => self.learn(rules)?,
        };
        let places: HashMap<&str, usize> = self.columns.iter().enumerate().map(|(k, c)| (c.name.as_str(), k)).collect();
        let mut sources = Vec::with_capacity(encoding.0.len());
        for code in &encoding.0 {
            let found = places.get(code.column.as_str());
            sources.push(*found.ok_or_else(|| self.no_column(&code.column))?);
        }
        let d = encoding.0.iter().map(|code| code.levels.as_ref().map_or(1, Vec::len)).sum();
        let mut x = vec![0.0; self.lines.len() * d];
        let mut at = 0;
        for (code, &k) in encoding.0.iter().zip(&sources) {
            self.fill(&self.columns[k], code, x.get_mut(at..).unwrap_or_default(), d)?;
            at += code.levels.as_ref().map_or(1, Vec::len);
        }
        let (target_name, labels) = match self.target.take() {
            Some(target) => (target.name.clone(), self.labels(target)?),
            None => (String::new(), Vec::new()),
        };
        self.announce(&encoding, rules);
        let features = encoding.features();
        Ok(Table {
            file: self.file,
            features,
            target_name,
            x,
            labels,
            lines: self.lines,
            notices: self.notices,
            encoding,
        })
    }

    fn no_column(&self, column: &str) -> DataError {
        let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).take(LISTED).collect();
        let more = if self.columns.len() > LISTED { ", …" } else { "" };
        DataError::NoColumn { file: self.file.clone(), column: column.into(), columns: names.join(", ") + more }
    }

    /// How the columns of this file become numbers.
    fn learn(&self, rules: &Rules) -> Result<Encoding, DataError> {
        let codes = self.columns.iter().map(|column| {
            if let Some((row, value)) = &column.missing
                && rules.impute == Impute::Refuse
            {
                return Err(self.missing(column, *row, value));
            }
            let filled = column.missing.is_some();
            let (levels, fill) = match &column.values {
                Values::Numbers(values) => {
                    let present: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
                    if present.is_empty() && filled {
                        return Err(self.missing(column, 0, ""));
                    }
                    (None, filled.then(|| format_number(median(present))))
                }
                Values::Text(values) => {
                    let (levels, commonest) = self.levels(column, values, rules.strict)?;
                    (Some(levels), filled.then_some(commonest))
                }
            };
            Ok(ColumnCode { column: column.name.clone(), levels, fill })
        });
        Ok(Encoding(codes.collect::<Result<_, _>>()?))
    }

    /// The categories of a column, sorted, and the commonest.
    fn levels(
        &self,
        column: &Column,
        values: &[Option<String>],
        strict: bool,
    ) -> Result<(Vec<String>, String), DataError> {
        let first = values.iter().position(Option::is_some).unwrap_or(0);
        let value = values.get(first).cloned().flatten().unwrap_or_default();
        let (file, line, name) = (self.file.clone(), self.line(first), column.name.clone());
        if strict {
            return Err(DataError::NotNumber { file, line, column: name, value });
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        values.iter().flatten().for_each(|v| *counts.entry(v).or_default() += 1);
        if counts.len() > MAX_LEVELS {
            return Err(DataError::TooManyLevels { file, column: name, count: counts.len(), value });
        }
        let commonest = counts.iter().rev().max_by_key(|(_, n)| **n).map_or("", |(level, _)| level);
        Ok((counts.keys().map(|&k| k.to_owned()).collect(), commonest.to_owned()))
    }

    fn line(&self, row: usize) -> u64 {
        self.lines.get(row).copied().unwrap_or(0)
    }

    fn missing(&self, column: &Column, row: usize, value: &str) -> DataError {
        let (file, line) = (self.file.clone(), self.line(row));
        DataError::Missing { file, line, column: column.name.clone(), value: value.into() }
    }

    /// Writes the features of one column into `x`, which begins at its first feature and has `d` per row.
    fn fill(&self, column: &Column, code: &ColumnCode, x: &mut [f64], d: usize) -> Result<(), DataError> {
        let missing = |row: usize| {
            let value = column.missing.as_ref().map_or("", |(_, value)| value);
            self.missing(column, row, value)
        };
        let (name, file) = (&column.name, &self.file);
        for row in 0..self.lines.len() {
            let text = match &column.values {
                Values::Numbers(values) if values[row].is_finite() && code.levels.is_none() => {
                    x[row * d] = values[row];
                    continue;
                }
                Values::Numbers(values) => (!values[row].is_nan()).then(|| format_number(values[row])),
                Values::Text(values) => values[row].clone(),
            };
            let text = text.or_else(|| code.fill.clone()).ok_or_else(|| missing(row))?;
            match &code.levels {
                None => {
                    let place = super::read::Place { file, line: self.line(row), column: name };
                    x[row * d] = place.number(&text)?;
                }
                Some(levels) => {
                    let known = levels.iter().position(|l| *l == text).ok_or_else(|| DataError::UnknownLevel {
                        file: file.clone(),
                        line: self.line(row),
                        column: name.clone(),
                        value: text,
                        levels: levels.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", "),
                    })?;
                    x[row * d + known] = 1.0;
                }
            }
        }
        Ok(())
    }

    fn labels(&self, target: Column) -> Result<Vec<String>, DataError> {
        if let Some((row, value)) = &target.missing {
            return Err(self.missing(&target, *row, value));
        }
        Ok(match target.values {
            Values::Numbers(values) => values.into_iter().map(format_number).collect(),
            Values::Text(values) => values.into_iter().flatten().collect(),
        })
    }

    /// Tells what was made of the columns, once: not when another file's encoding was used.
    fn announce(&mut self, encoding: &Encoding, rules: &Rules) {
        if rules.encoding.is_some() {
            return;
        }
        let file = &self.file;
        let categories: Vec<String> =
            encoding.0.iter().filter(|c| c.levels.is_some()).map(|c| c.column.clone()).collect();
        let filled: Vec<String> = encoding.0.iter().filter(|c| c.fill.is_some()).map(|c| c.column.clone()).collect();
        if !categories.is_empty() {
            self.notices.push(Notice::Categories { file: file.clone(), columns: categories });
        }
        if !filled.is_empty() {
            self.notices.push(Notice::Imputed { file: file.clone(), columns: filled });
        }
    }
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
        None => {
            let listed: Vec<&str> = names.take(LISTED).collect();
            Err(DataError::NoColumn { file: file.into(), column: name.into(), columns: listed.join(", ") })
        }
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
