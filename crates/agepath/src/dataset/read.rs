//! Reads files, plain or gzipped, whatever their format: the content tells which it is. Delimited text is read here.

use super::encode::{Column, Encoding, Impute, Raw, Rules, Values, check_names, take_target, target_index};
use super::{DataError, Notice, Table, arff, libsvm, npz};
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

/// The name that stands for standard input.
pub const STDIN: &str = "-";

/// What missing values look like in the wild (compared without case).
const MISSING: &[&str] = &["", "na", "n/a", "nan", "null", "none", "?"];

/// The delimiters that are tried.
const DELIMITERS: &[u8] = b",\t;";

/// Whether the first line names the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Header {
    /// It does unless it holds numbers.
    #[default]
    Detect,
    /// It does.
    Present,
}

/// How to read a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadOptions {
    /// The target column. Default: the last one, or the one the format names.
    pub target: Option<String>,
    /// Whether the target may be absent. Default: no.
    pub target_optional: bool,
    /// What becomes of missing values. Default: they are refused.
    pub impute: Impute,
    /// Whether columns of categories are refused. Default: no, each category becomes a column.
    pub strict: bool,
    /// The encoding of another file that this one is to follow. Default: none, it is learned from this file.
    pub encoding: Option<Encoding>,
    /// The delimiter. Default: whichever of comma, tab and semicolon is commonest on the first line.
    pub delimiter: Option<u8>,
    /// Default: detect.
    pub header: Header,
}

/// Reads a file; [`STDIN`] is standard input.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Table, DataError> {
    if path == Path::new(STDIN) {
        return read_from(std::io::stdin().lock(), "standard input", options);
    }
    let name = path.display().to_string();
    let file = std::fs::File::open(path).map_err(|e| file_error("read", &name, &e))?;
    read_from(file, &name, options)
}

/// Reads from anywhere; `name` is what messages call it.
pub fn read_from(source: impl Read, name: &str, options: &ReadOptions) -> Result<Table, DataError> {
    let bytes = decompress(source, name)?;
    let rules = Rules { impute: options.impute, strict: options.strict, encoding: options.encoding.as_ref() };
    let mut raw = if bytes.starts_with(b"PAR1") {
        parquet(bytes, name)?
    } else if bytes.starts_with(b"PK\x03\x04") {
        npz::parse(&bytes, name)?
    } else {
        text(&bytes, name, options)?
    };
    let wanted = options.target.as_deref();
    let other = wanted.is_some() && raw.target.as_ref().map(|t| t.name.as_str()) != wanted;
    if (raw.target.is_none() || other)
        && let Some(target) = take_target(name, &mut raw.columns, wanted, options.target_optional)?
    {
        raw.columns.extend(raw.target.replace(target));
    }
    raw.encode(&rules)
}

#[cfg(feature = "parquet")]
fn parquet(bytes: Vec<u8>, name: &str) -> Result<Raw, DataError> {
    super::parquet::parse(bytes, name)
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: Vec<u8>, name: &str) -> Result<Raw, DataError> {
    let message = "this program was built without Parquet; build it with the feature \"parquet\"".into();
    Err(DataError::NotArchive { file: name.into(), message })
}

/// LIBSVM, ARFF or delimited text.
fn text(bytes: &[u8], name: &str, options: &ReadOptions) -> Result<Raw, DataError> {
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(DataError::Empty { file: name.into() });
    }
    if let Ok(text) = std::str::from_utf8(body) {
        let first = text.lines().find(|l| !l.trim().is_empty() && !l.starts_with('#')).unwrap_or_default();
        if options.delimiter.is_none() && libsvm::looks_like(first) {
            return libsvm::parse(text, name, options.encoding.as_ref());
        }
        if arff::looks_like(text) {
            return arff::parse(text, name);
        }
    }
    let (lines, records) = parse(body, name, options.delimiter)?;
    assemble(name, options, lines, records)
}

pub(crate) fn file_error(action: &'static str, file: &str, error: &std::io::Error) -> DataError {
    DataError::File { action, file: file.into(), kind: error.kind(), message: error.to_string() }
}

fn decompress(mut source: impl Read, name: &str) -> Result<Vec<u8>, DataError> {
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes).map_err(|e| file_error("read", name, &e))?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut text = Vec::new();
    match flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut text) {
        Ok(_) => Ok(text),
        Err(e) => Err(DataError::Compression { file: name.into(), message: e.to_string() }),
    }
}

fn guess_delimiter(body: &[u8]) -> u8 {
    let first = body.split(|&b| b == b'\n').find(|line| !line.is_empty()).unwrap_or_default();
    let count = |d: u8| first.iter().filter(|&&b| b == d).count();
    // `max_by_key` keeps the last of equals; reversed, the comma wins ties.
    DELIMITERS.iter().copied().rev().max_by_key(|&d| count(d)).unwrap_or(b',')
}

type Lines = (Vec<u64>, Vec<csv::StringRecord>);

fn parse(body: &[u8], name: &str, delimiter: Option<u8>) -> Result<Lines, DataError> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .delimiter(delimiter.unwrap_or_else(|| guess_delimiter(body)))
        .from_reader(body);
    let (mut lines, mut records) = (Vec::new(), Vec::<csv::StringRecord>::new());
    for record in reader.records() {
        let record = record.map_err(|e| DataError::NotText {
            file: name.into(),
            line: e.position().map_or(0, csv::Position::line),
            message: "the line is not valid text".into(),
        })?;
        let line = record.position().map_or(0, csv::Position::line);
        let expected = records.first().map_or(record.len(), csv::StringRecord::len);
        if record.len() != expected {
            return Err(DataError::Ragged { file: name.into(), line, expected, found: record.len() });
        }
        lines.push(line);
        records.push(record);
    }
    Ok((lines, records))
}

fn is_number(field: &str) -> bool {
    field.parse::<f64>().is_ok()
}

pub(super) fn is_missing(field: &str) -> bool {
    MISSING.iter().any(|m| field.eq_ignore_ascii_case(m))
}

/// A first line is a header unless it has numbers, and no column that turns from a word into a number below it.
fn has_header(records: &[csv::StringRecord]) -> bool {
    let first = &records[0];
    if !first.iter().any(is_number) {
        return true;
    }
    let word = |f: &str| !is_missing(f) && !is_number(f);
    records.get(1).is_some_and(|second| first.iter().zip(second).any(|(a, b)| word(a) && is_number(b)))
}

fn assemble(
    file: &str,
    options: &ReadOptions,
    lines: Vec<u64>,
    records: Vec<csv::StringRecord>,
) -> Result<Raw, DataError> {
    let header = options.header == Header::Present || has_header(&records);
    let names = if header { header_names(file, &records[0])? } else { made_up_names(records[0].len()) };
    let target =
        target_index(file, names.iter().map(String::as_str), options.target.as_deref(), options.target_optional)?;
    let skip = usize::from(header);
    let (records, lines) = (&records[skip..], lines[skip..].to_vec());
    let codes = options.encoding.as_ref();
    let codes = codes.map(|codes| codes.0.iter().map(|c| (c.column.as_str(), c)).collect::<HashMap<_, _>>());
    let mut raw = Raw {
        file: file.into(),
        columns: Vec::with_capacity(names.len()),
        target: None,
        notices: if header { Vec::new() } else { vec![Notice::NoHeader { file: file.into() }] },
        lines,
    };
    for (j, name) in names.into_iter().enumerate() {
        let is_target = target == Some(j);
        let known = codes.as_ref().and_then(|codes| codes.get(name.as_str()));
        if codes.is_some() && known.is_none() && !is_target {
            continue;
        }
        // The target stays text: its labels are the user's.
        let as_text = is_target || known.is_some_and(|code| code.levels.is_some());
        let as_numbers = known.is_some_and(|code| code.levels.is_none());
        let fields = records.iter().map(|r| r.get(j).unwrap_or_default());
        let missing =
            fields.clone().position(is_missing).map(|i| (i, records[i].get(j).unwrap_or_default().to_owned()));
        let words = fields.clone().filter(|f| !is_missing(f) && !is_number(f)).count();
        let numbers = fields.clone().filter(|f| is_number(f)).count();
        let values = if as_text || (!as_numbers && words > numbers) {
            Values::Text(fields.map(|f| (!is_missing(f)).then(|| f.to_owned())).collect())
        } else {
            let parsed = fields.zip(&raw.lines).map(|(field, &line)| match is_missing(field) {
                true => Ok(f64::NAN),
                false => Place { file, line, column: &name }.number(field),
            });
            Values::Numbers(parsed.collect::<Result<_, _>>()?)
        };
        let column = Column { name, values, missing };
        if is_target { raw.target = Some(column) } else { raw.columns.push(column) }
    }
    Ok(raw)
}

fn header_names(file: &str, record: &csv::StringRecord) -> Result<Vec<String>, DataError> {
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

/// Where a field stands, for messages.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) file: &'a str,
    pub(super) line: u64,
    pub(super) column: &'a str,
}

impl Place<'_> {
    fn present<'f>(&self, field: &'f str) -> Result<&'f str, DataError> {
        if is_missing(field) {
            let (file, column) = (self.file.into(), self.column.into());
            return Err(DataError::Missing { file, line: self.line, column, value: field.into() });
        }
        Ok(field)
    }

    pub(super) fn number(&self, field: &str) -> Result<f64, DataError> {
        let (file, line, column, value) = (self.file.into(), self.line, self.column.into(), field.into());
        match self.present(field)?.parse::<f64>() {
            Ok(v) if v.is_finite() => Ok(v),
            Ok(_) => Err(DataError::NotFinite { file, line, column, value }),
            Err(_) => Err(DataError::NotNumber { file, line, column, value }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        read_from(text.as_bytes(), "t.csv", &ReadOptions::default()).unwrap()
    }

    fn error(text: &str) -> DataError {
        read_from(text.as_bytes(), "t.csv", &ReadOptions::default()).unwrap_err()
    }

    #[test]
    fn delimiters_quotes_bom_and_blank_lines() {
        for text in ["a,b,y\n1,2,3\n\n4,5,6\n", "\u{feff}a\tb\ty\r\n1\t2\t3\r\n4\t5\t6", "a;\"b\";y\n1; 2 ;3\n4;5;6"] {
            let t = table(text);
            assert_eq!(t.features, ["a", "b"]);
            assert_eq!((t.target_name.as_str(), t.x.as_slice()), ("y", &[1.0, 2.0, 4.0, 5.0][..]));
            assert_eq!(t.labels, ["3", "6"]);
        }
    }

    #[test]
    fn headers_are_detected() {
        assert_eq!(table("1,2,3\n4,5,6").features, ["x0", "x1"]);
        assert_eq!(table("1,2,red\n4,5,blue").labels, ["red", "blue"]);
        assert_eq!(table("0,1,target\n4,5,6").labels, ["6"]);
        assert_eq!(table("1,2,3\n4,5,6").notices.len(), 1);
    }

    #[test]
    fn the_target_may_stand_anywhere() {
        let options = ReadOptions { target: Some("a".into()), ..ReadOptions::default() };
        let t = read_from(&b"a,b\n1,2\n3,4\n"[..], "t.csv", &options).unwrap();
        assert_eq!((t.features.as_slice(), t.x.as_slice()), (&["b".to_owned()][..], &[2.0, 4.0][..]));
        let options = ReadOptions { target: Some("z".into()), ..ReadOptions::default() };
        let e = read_from(&b"a,b\n1,2\n3,4\n"[..], "t.csv", &options).unwrap_err();
        assert!(matches!(e, DataError::NoColumn { .. }));
    }

    #[test]
    fn errors_carry_line_column_and_value() {
        let line = 3;
        let column = || "b".to_owned();
        let file = || "t.csv".to_owned();
        let missing = DataError::Missing { file: file(), line, column: column(), value: "NA".into() };
        assert_eq!(error("a,b,y\n1,2,3\n4,NA,6\n"), missing);
        let text = DataError::NotNumber { file: file(), line, column: column(), value: "x".into() };
        assert_eq!(error("a,b,y\n1,2,3\n4,x,6\n"), text);
        let infinite = DataError::NotFinite { file: file(), line, column: column(), value: "-inf".into() };
        assert_eq!(error("a,b,y\n1,2,3\n4,-inf,6\n"), infinite);
        let ragged = DataError::Ragged { file: file(), line, expected: 3, found: 2 };
        assert_eq!(error("a,b,y\n1,2,3\n4,5\n"), ragged);
        assert_eq!(error(" \n"), DataError::Empty { file: file() });
        assert!(matches!(error("a,a,y\n1,2,3"), DataError::DuplicateColumn { .. }));
        assert!(matches!(error("a\n1\n2"), DataError::OneColumn { .. }));
    }

    #[test]
    fn cut_off_gzip_is_refused() {
        let (_, bytes) = super::super::BUILTIN[0];
        let e = read_from(&bytes[..bytes.len() / 2], "t.csv.gz", &ReadOptions::default()).unwrap_err();
        assert!(matches!(e, DataError::Compression { .. }), "{e}");
    }
}
