//! From columns as they were read to numbers: categories become indicator columns, missing values are refused or filled in.
//! What was done is an [`Encoding`], so that other rows can be treated the same way.

use super::column::{Column, Values};
use super::pick::{Pick, no_column};
use super::read::clip;
use super::{DataError, Dataset, Notice, Table, format_number, median};
use crate::loss::TargetKind;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// A column with more categories than this is taken for an identifier or free text.
const MAX_LEVELS: usize = 100;

/// How many names a message lists.
const LISTED: usize = 8;

/// What becomes of categories that another file's encoding does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unknown {
    /// They are refused.
    #[default]
    Refuse,
    /// They are none of the known ones, and a notice says so.
    None,
}

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
    /// Whether it holds dates, which became days since 1970.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dates: bool,
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
        let code = |name: &String| ColumnCode { column: name.clone(), levels: None, fill: None, dates: false };
        Encoding(names.iter().map(code).collect())
    }

    /// The same with every missing value filled in, by the training rows: the median, or the commonest category.
    pub(crate) fn filled(&self, train: &Dataset) -> Encoding {
        let mut at = 0;
        let fill = |code: &ColumnCode| {
            let width = code.levels.as_ref().map_or(1, Vec::len);
            let column = |j: usize| (0..train.len()).map(move |i| train.matrix().value(i, j));
            let own = match &code.levels {
                None => format_number(median(column(at).collect())),
                Some(levels) => {
                    let count = |k: &usize| column(at + k).filter(|v| *v != 0.0).count();
                    // The first of equals, as when it is learned.
                    let commonest = (0..levels.len()).rev().max_by_key(count);
                    commonest.map_or_else(String::new, |k| levels[k].clone())
                }
            };
            at += width;
            ColumnCode { fill: Some(code.fill.clone().unwrap_or(own)), ..code.clone() }
        };
        Encoding(self.0.iter().map(fill).collect())
    }

    /// Whether every feature is a column of numbers as it is.
    pub fn is_plain(&self) -> bool {
        self.0.iter().all(|code| code.levels.is_none() && code.fill.is_none() && !code.dates)
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
    /// Whether columns that are not wanted were left out while it was read.
    pub picked: bool,
}

/// What is asked of the columns.
pub(super) struct Rules<'a> {
    pub impute: Impute,
    pub strict: bool,
    pub encoding: Option<&'a Encoding>,
    pub pick: &'a Pick,
    pub unknown: Unknown,
    pub columns: usize,
    pub task: Option<TargetKind>,
    pub target_optional: bool,
}

impl Raw {
    /// The numbers, encoded by the rules.
    pub fn encode(mut self, rules: &Rules) -> Result<Table, DataError> {
        self.pick(rules);
        let rows = if rules.target_optional { (0..self.lines.len()).collect() } else { self.keep_targets()? };
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
        if d > rules.columns {
            return Err(DataError::TooManyColumns { file: self.file, columns: d, limit: rules.columns });
        }
        let mut unknown = Vec::new();
        let mut x = vec![0.0; self.lines.len() * d];
        let mut at = 0;
        for (code, &k) in encoding.0.iter().zip(&sources) {
            unknown.extend(self.fill(&self.columns[k], code, x.get_mut(at..).unwrap_or_default(), d, rules.unknown)?);
            at += code.levels.as_ref().map_or(1, Vec::len);
        }
        let (target_name, labels) = match self.target.take() {
            Some(target) => (target.name.clone(), labels(target)),
            None => (String::new(), Vec::new()),
        };
        self.notices.extend(unknown);
        self.announce(&encoding, rules);
        let features = encoding.features();
        let mut table = Table {
            rows,
            task: rules.task,
            file: self.file,
            features,
            target_name,
            x,
            labels,
            lines: self.lines,
            notices: self.notices,
            encoding,
        };
        if rules.encoding.is_none() {
            table.notices.extend(table.integer_classes());
        }
        Ok(table)
    }

    /// Leaves out the columns that are not wanted. With another file's encoding, that decides.
    fn pick(&mut self, rules: &Rules) {
        if rules.encoding.is_some() {
            return;
        }
        self.columns.retain(|column| rules.pick.keeps(&column.name));
        for column in self.columns.iter_mut().filter(|c| rules.pick.categorical.contains(&c.name)) {
            *column = std::mem::replace(column, Column::numbers(String::new(), Vec::new())).into_categories();
        }
    }

    /// Leaves out the rows without a target, and returns the numbers of the others.
    fn keep_targets(&mut self) -> Result<Vec<usize>, DataError> {
        let rows = self.lines.len();
        let Some(target) = self.target.as_mut().filter(|target| target.missing.is_some()) else {
            return Ok((0..rows).collect());
        };
        let is_there = |i: &usize| match &target.values {
            Values::Numbers(values) => !values[*i].is_nan(),
            Values::Text(values) => values[*i].is_some(),
        };
        let kept: Vec<usize> = (0..rows).filter(is_there).collect();
        let (count, column) = (rows - kept.len(), target.name.clone());
        let first = (0..rows).find(|i| !is_there(i)).unwrap_or(0);
        let (file, line) = (self.file.clone(), self.lines.get(first).copied().unwrap_or(0));
        if 2 * count >= rows {
            return Err(DataError::MissingTarget { file, line, column, count, rows });
        }
        target.keep(&kept);
        self.columns.iter_mut().for_each(|column| column.keep(&kept));
        self.lines = kept.iter().map(|&i| self.lines[i]).collect();
        self.notices.push(Notice::MissingTargets { file, column, count, line });
        Ok(kept)
    }

    fn no_column(&self, column: &str) -> DataError {
        no_column(&self.file, column, &self.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>())
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
            Ok(ColumnCode { column: column.name.clone(), levels, fill, dates: column.dates })
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
        let value = clip(values.get(first).and_then(Option::as_deref).unwrap_or_default());
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

    /// Writes the features of one column into `x`, which begins at its first feature and has `d` per row; returns what is to
    /// be said of unknown categories.
    fn fill(
        &self,
        column: &Column,
        code: &ColumnCode,
        x: &mut [f64],
        d: usize,
        unknown: Unknown,
    ) -> Result<Option<Notice>, DataError> {
        let (mut strange, mut first) = (0, None);
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
                Some(levels) => match levels.iter().position(|l| *l == text) {
                    Some(known) => x[row * d + known] = 1.0,
                    None if unknown == Unknown::None => {
                        strange += 1;
                        first.get_or_insert((row, clip(&text)));
                    }
                    None => {
                        return Err(DataError::UnknownLevel {
                            file: file.clone(),
                            line: self.line(row),
                            column: name.clone(),
                            value: clip(&text),
                            levels: levels.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", "),
                        });
                    }
                },
            }
        }
        let notice = |(row, value): (usize, String)| {
            let (file, column, line) = (file.clone(), name.clone(), self.line(row));
            Notice::UnknownLevels { file, column, value, line, count: strange }
        };
        Ok(first.map(notice))
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
        let dates: Vec<String> = encoding.0.iter().filter(|c| c.dates).map(|c| c.column.clone()).collect();
        if !dates.is_empty() {
            self.notices.push(Notice::Dates { file: file.clone(), columns: dates });
        }
        let identifiers = self.columns.iter().filter(|c| c.is_identifier()).map(|c| c.name.clone());
        self.notices.extend(identifiers.map(|column| Notice::Identifier { file: file.clone(), column }));
    }
}

/// The target as text; nothing where it is missing.
fn labels(target: Column) -> Vec<String> {
    match target.values {
        Values::Numbers(values) => {
            values.into_iter().map(|v| if v.is_nan() { String::new() } else { format_number(v) }).collect()
        }
        Values::Text(values) => values.into_iter().map(Option::unwrap_or_default).collect(),
    }
}
