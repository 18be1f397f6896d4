//! Reads files, plain or gzipped, whatever their format: the content tells which it is.

use super::encode::{Encoding, Impute, Raw, Rules, Unknown};
use super::pick::{Pick, take_target};
use super::{DataError, Table, arff, delimited, libsvm, npz};
use crate::loss::TargetKind;
use crate::memory;
use std::io::Read;
use std::path::Path;

/// The name that stands for standard input.
pub const STDIN: &str = "-";

/// What missing values look like in the wild (compared without case).
const MISSING: &[&str] = &["", "na", "n/a", "nan", "null", "none", "?"];

/// Characters of a value that a message repeats.
const SHOWN: usize = 40;

/// Bytes that a number takes from the file to the problem: as read, as a table, as data set, as training rows, scaled, and as much
/// again for the solver.
const BYTES_PER_NUMBER: u128 = 48;

/// Whether the first line names the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Header {
    /// It does unless it holds numbers.
    #[default]
    Detect,
    /// It does.
    Present,
}

/// What is too large to be meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a file when it is unpacked. Default: 4 GiB.
    pub bytes: u64,
    /// Columns, categories written out. Default: 50 000.
    pub columns: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: 4 << 30, columns: 50_000 }
    }
}

/// How to read a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadOptions {
    /// The target column. Default: the last one, or the one the format names.
    pub target: Option<String>,
    /// Whether the target may be absent. Default: no.
    pub target_optional: bool,
    /// What the target is. Default: by its values, see [`Table::guess`].
    pub task: Option<TargetKind>,
    /// Which columns are used. Default: all.
    pub pick: Pick,
    /// What becomes of missing values. Default: they are refused.
    pub impute: Impute,
    /// Whether columns of categories are refused. Default: no, each category becomes a column.
    pub strict: bool,
    /// The encoding of another file that this one is to follow. Default: none, it is learned from this file.
    pub encoding: Option<Encoding>,
    /// What becomes of categories that this encoding does not know. Default: they are refused.
    pub unknown: Unknown,
    /// The delimiter. Default: whichever of comma, tab, semicolon, bar and space is commonest on the first line.
    pub delimiter: Option<u8>,
    /// Default: detect.
    pub header: Header,
    /// What is refused as too large.
    pub limits: Limits,
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
    let bytes = unpack(source, name, options.limits.bytes)?;
    let mut raw = if bytes.starts_with(b"PAR1") {
        parquet(bytes, name, options)?
    } else if bytes.starts_with(b"PK\x03\x04") {
        npz::parse(&bytes, name, options.limits.bytes)?
    } else {
        text(&bytes, name, options)?
    };
    let wanted = options.target.as_deref();
    if options.encoding.is_none() && !raw.picked {
        let names = raw.columns.iter().chain(&raw.target).map(|c| c.name.as_str());
        options.pick.check(name, &names.collect::<Vec<_>>())?;
    }
    let other = wanted.is_some() && raw.target.as_ref().map(|t| t.name.as_str()) != wanted;
    if (raw.target.is_none() || other)
        && let Some(target) = take_target(name, &mut raw.columns, wanted, options.target_optional)?
    {
        raw.columns.extend(raw.target.replace(target));
    }
    raw.encode(&Rules {
        impute: options.impute,
        strict: options.strict,
        encoding: options.encoding.as_ref(),
        pick: &options.pick,
        unknown: options.unknown,
        columns: options.limits.columns,
        task: options.task,
        target_optional: options.target_optional,
    })
}

#[cfg(feature = "parquet")]
fn parquet(bytes: Vec<u8>, name: &str, options: &ReadOptions) -> Result<Raw, DataError> {
    super::parquet::parse(bytes, name, options)
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: Vec<u8>, name: &str, _: &ReadOptions) -> Result<Raw, DataError> {
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
    delimited::parse(body, name, options)
}

pub(crate) fn file_error(action: &'static str, file: &str, error: &std::io::Error) -> DataError {
    DataError::File { action, file: file.into(), kind: error.kind(), message: error.to_string() }
}

/// The bytes of a file, gunzipped if need be; no more than `limit`.
fn unpack(source: impl Read, name: &str, limit: u64) -> Result<Vec<u8>, DataError> {
    let most = limit.saturating_add(1);
    let checked = |bytes: Vec<u8>| match bytes.len() as u64 > limit {
        true => Err(DataError::TooManyBytes { file: name.into(), limit }),
        false => Ok(bytes),
    };
    let mut bytes = Vec::new();
    source.take(most).read_to_end(&mut bytes).map_err(|e| file_error("read", name, &e))?;
    let bytes = checked(bytes)?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut text = Vec::new();
    match flate2::read::MultiGzDecoder::new(&bytes[..]).take(most).read_to_end(&mut text) {
        Ok(_) => checked(text),
        Err(e) if e.kind() == std::io::ErrorKind::OutOfMemory => Err(file_error("read", name, &e)),
        Err(e) => Err(DataError::Compression { file: name.into(), message: e.to_string() }),
    }
}

/// Refuses numbers that would not fit in memory, before they are written out; `bytes` more are needed meanwhile.
pub(super) fn check_memory(file: &str, rows: u64, columns: u64, bytes: u128) -> Result<(), DataError> {
    let needed = u128::from(rows) * u128::from(columns) * BYTES_PER_NUMBER + bytes;
    let available = memory::available();
    match needed <= u128::from(available) {
        true => Ok(()),
        false => Err(DataError::TooLarge { file: file.into(), rows, columns, needed, available }),
    }
}

pub(super) fn is_missing(field: &str) -> bool {
    MISSING.iter().any(|m| field.eq_ignore_ascii_case(m))
}

/// The beginning of a value, for messages.
pub(super) fn clip(value: &str) -> String {
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
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
            return Err(DataError::Missing { file, line: self.line, column, value: clip(field) });
        }
        Ok(field)
    }

    /// No date stands where dates are expected.
    pub(super) fn not_date(&self, field: &str) -> DataError {
        let (file, line, column, value) = (self.file.into(), self.line, self.column.into(), clip(field));
        DataError::NotDate { file, line, column, value }
    }

    pub(super) fn number(&self, field: &str) -> Result<f64, DataError> {
        let (file, line, column, value) = (self.file.into(), self.line, self.column.into(), clip(field));
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
