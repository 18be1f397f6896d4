//! Delimited text: delimiter, header, the notation of numbers and dates are found out, and said where one could doubt.

use super::column::{Column, Values};
use super::dates::parse_date;
use super::encode::{ColumnCode, Raw};
use super::numbers::{Notation, grouped};
use super::pick::{check_names, target_index};
use super::read::{Header, Place, ReadOptions, check_memory, clip, is_missing};
use super::{DataError, Notice};
use csv::StringRecord;
use std::collections::HashMap;

/// The delimiters that are tried, the first of equals wins.
const DELIMITERS: &[u8] = b",\t;|";

/// A longer field is a mistake: no number, name or category is a mebibyte long.
const LONGEST_FIELD: usize = 1 << 20;

/// What a record keeps besides its text, per field: where the field ends; and that of a column of words, a string.
const BYTES_PER_FIELD: u128 = 40;

/// Reads the whole text.
pub(super) fn parse(body: &[u8], file: &str, options: &ReadOptions) -> Result<Raw, DataError> {
    let delimiter = options.delimiter.unwrap_or_else(|| guess_delimiter(body));
    let first = body.split(|&b| b == b'\n' || b == b'\r').find(|line| !line.is_empty()).unwrap_or_default();
    let columns = 1 + first.iter().filter(|&&b| b == delimiter).count();
    let limit = options.limits.columns;
    if columns > limit.saturating_add(1) && options.pick.columns.is_empty() {
        return Err(DataError::TooManyColumns { file: file.into(), columns, limit });
    }
    let fields = body.iter().filter(|&&b| b == delimiter || b == b'\n').count() as u64;
    let text = 2 * body.len() as u128 + u128::from(fields) * BYTES_PER_FIELD;
    check_memory(file, fields / columns as u64 + 1, columns as u64, text)?;
    let (lines, records) = records(body, file, delimiter)?;
    Assembly::new(file, options, delimiter, lines, records)?.raw()
}

fn guess_delimiter(body: &[u8]) -> u8 {
    let first = body.split(|&b| b == b'\n' || b == b'\r').find(|line| !line.is_empty()).unwrap_or_default();
    let count = |d: u8| first.iter().filter(|&&b| b == d).count();
    // `max_by_key` keeps the last of equals; reversed, the first wins ties.
    let best = DELIMITERS.iter().copied().rev().max_by_key(|&d| count(d)).unwrap_or(b',');
    let spaced = first.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count() > 1;
    if count(best) == 0 && spaced { b' ' } else { best }
}

type Lines = (Vec<u64>, Vec<StringRecord>);

fn records(body: &[u8], file: &str, delimiter: u8) -> Result<Lines, DataError> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .delimiter(delimiter)
        .from_reader(body);
    let mut counter = LineCounter { body, at: 0, line: 1 };
    let (mut lines, mut records) = (Vec::new(), Vec::<StringRecord>::new());
    for record in reader.records() {
        let record = record.map_err(|e| DataError::NotText {
            file: file.into(),
            line: e.position().map_or(0, |position| counter.line_of(position.byte())),
            message: "the line is not valid text".into(),
        })?;
        let line = counter.line_of(record.position().map_or(0, csv::Position::byte));
        let record = if delimiter == b' ' { without_gaps(record) } else { record };
        if let Some(field) = record.iter().find(|field| field.len() > LONGEST_FIELD) {
            return Err(DataError::LongField { file: file.into(), line, bytes: field.len(), value: clip(field) });
        }
        let expected = records.first().map_or(record.len(), StringRecord::len);
        if record.len() != expected {
            return Err(DataError::Ragged { file: file.into(), line, expected, found: record.len() });
        }
        lines.push(line);
        records.push(record);
    }
    Ok((lines, records))
}

/// Several spaces separate like one.
fn without_gaps(record: StringRecord) -> StringRecord {
    record.iter().filter(|field| !field.is_empty()).collect()
}

/// From places in the text to lines as an editor counts them, whichever way lines end.
struct LineCounter<'a> {
    body: &'a [u8],
    at: usize,
    line: u64,
}

impl LineCounter<'_> {
    /// The line of a record that begins at `start` or, after the ends of other lines, later. Records come in order.
    fn line_of(&mut self, start: u64) -> u64 {
        let start = (start as usize).min(self.body.len());
        while let Some(&byte) = self.body.get(self.at) {
            let ends = byte == b'\n' || (byte == b'\r' && self.body.get(self.at + 1) != Some(&b'\n'));
            if self.at >= start && byte != b'\n' && byte != b'\r' {
                break;
            }
            self.line += u64::from(ends);
            self.at += 1;
        }
        self.line
    }
}

fn is_number(field: &str) -> bool {
    field.parse::<f64>().is_ok()
}

/// A first line is a header unless it has numbers, and no column that turns from a word into a number below it.
fn has_header(records: &[StringRecord]) -> bool {
    let first = &records[0];
    if !first.iter().any(is_number) {
        return true;
    }
    let word = |f: &str| !is_missing(f) && !is_number(f);
    records.get(1).is_some_and(|second| first.iter().zip(second).any(|(a, b)| word(a) && is_number(b)))
}

fn header_names(file: &str, record: &StringRecord) -> Result<Vec<String>, DataError> {
    let name = |(j, field): (usize, &str)| if field.is_empty() { format!("column{}", j + 1) } else { field.to_owned() };
    let names: Vec<String> = record.iter().enumerate().map(name).collect();
    check_names(file, &names)?;
    Ok(names)
}

fn made_up_names(count: usize) -> Vec<String> {
    let mut names: Vec<String> = (0..count).map(|j| format!("x{j}")).collect();
    if let Some(last) = names.last_mut() {
        *last = "target".into();
    }
    names
}

/// Records on their way to columns.
struct Assembly<'a> {
    file: &'a str,
    options: &'a ReadOptions,
    names: Vec<String>,
    target: Option<usize>,
    lines: Vec<u64>,
    records: Vec<StringRecord>,
    notation: Notation,
    notices: Vec<Notice>,
}

impl<'a> Assembly<'a> {
    fn new(
        file: &'a str,
        options: &'a ReadOptions,
        delimiter: u8,
        mut lines: Vec<u64>,
        mut records: Vec<StringRecord>,
    ) -> Result<Assembly<'a>, DataError> {
        let header = options.header == Header::Present || has_header(&records);
        let names = if header { header_names(file, &records[0])? } else { made_up_names(records[0].len()) };
        let listed: Vec<&str> = names.iter().map(String::as_str).collect();
        if options.encoding.is_none() {
            options.pick.check(file, &listed)?;
        }
        let target = target_index(file, listed.iter().copied(), options.target.as_deref(), options.target_optional)?;
        if header {
            lines.remove(0);
            records.remove(0);
        }
        let notices = if header { Vec::new() } else { vec![Notice::NoHeader { file: file.into() }] };
        // Numbers that contradict each other are refused one by one.
        let notation = Notation::of(records.iter().flatten(), delimiter).unwrap_or_default();
        Ok(Assembly { file, options, names, target, lines, records, notation, notices })
    }

    fn raw(mut self) -> Result<Raw, DataError> {
        let codes = self.options.encoding.as_ref();
        let codes: Option<HashMap<&str, &ColumnCode>> =
            codes.map(|codes| codes.0.iter().map(|c| (c.column.as_str(), c)).collect());
        let (mut columns, mut target) = (Vec::with_capacity(self.names.len()), None);
        for (j, name) in self.names.iter().enumerate() {
            let known = codes.as_ref().map(|codes| codes.get(name.as_str()).copied());
            if self.target == Some(j) {
                target = Some(self.target_column(j));
            } else if match known {
                Some(code) => code.is_some(),
                None => self.options.pick.keeps(name),
            } {
                columns.push(self.column(j, known.flatten())?);
            }
        }
        let commas = self.records.iter().flatten().any(|f| f.contains(',') && self.number(f, false).is_some());
        if self.notation != Notation::Plain && commas {
            let decimal = self.notation == Notation::DecimalComma;
            self.notices.push(Notice::Commas { file: self.file.into(), decimal });
        }
        Ok(Raw { file: self.file.into(), columns, target, lines: self.lines, notices: self.notices, picked: true })
    }

    fn fields(&self, j: usize) -> impl Iterator<Item = &str> + Clone {
        self.records.iter().map(move |r| r.get(j).unwrap_or_default())
    }

    /// A number in plain form.
    fn number(&self, field: &str, dots_group: bool) -> Option<String> {
        let grouped = if dots_group { grouped(field, '.', ',') } else { None };
        grouped.or_else(|| self.notation.plain(field))
    }

    fn first_missing(&self, j: usize) -> Option<(usize, String)> {
        let mut fields = self.fields(j).enumerate();
        fields.find(|(_, field)| is_missing(field)).map(|(i, field)| (i, field.to_owned()))
    }

    /// The labels are the user's; only numbers become plain.
    fn target_column(&self, j: usize) -> Column {
        let present = self.fields(j).filter(|f| !is_missing(f));
        let dots_group = self.notation.dots_group(present.clone());
        let numeric = self.notation != Notation::Plain && present.clone().all(|f| self.number(f, dots_group).is_some());
        let plain = |f: &str| if numeric { self.number(f, dots_group) } else { None };
        let label = |f: &str| (!is_missing(f)).then(|| plain(f).unwrap_or_else(|| f.to_owned()));
        let values = Values::Text(self.fields(j).map(label).collect());
        Column { name: self.names[j].clone(), values, missing: self.first_missing(j), dates: false }
    }

    /// A column of features; `known` says how it became features in another file.
    fn column(&self, j: usize, known: Option<&ColumnCode>) -> Result<Column, DataError> {
        let name = self.names[j].clone();
        let present = self.fields(j).filter(|f| !is_missing(f));
        let dots_group = self.notation.dots_group(present.clone());
        let words = present.clone().filter(|f| self.number(f, dots_group).is_none()).count();
        let numbers = present.clone().count() - words;
        let is_text = match known {
            Some(code) => code.levels.is_some(),
            None => self.options.pick.categorical.contains(&name),
        };
        let dates = match known {
            Some(code) => code.dates,
            None => !is_text && words > 0 && present.clone().all(|f| parse_date(f).is_some()),
        };
        let values = if is_text || (known.is_none() && !dates && words > numbers) {
            Values::Text(self.fields(j).map(|f| (!is_missing(f)).then(|| f.to_owned())).collect())
        } else {
            let each = self.fields(j).zip(&self.lines).map(|(field, &line)| {
                let place = Place { file: self.file, line, column: &name };
                match (is_missing(field), dates) {
                    (true, _) => Ok(f64::NAN),
                    (false, true) => parse_date(field).ok_or_else(|| place.not_date(field)),
                    (false, false) => place.number(self.number(field, dots_group).as_deref().unwrap_or(field)),
                }
            });
            Values::Numbers(each.collect::<Result<_, _>>()?)
        };
        Ok(Column { name, values, missing: self.first_missing(j), dates })
    }
}
