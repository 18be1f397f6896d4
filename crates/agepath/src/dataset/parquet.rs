//! Parquet: columns of numbers, booleans, text and dates; nested columns are refused by name.

use super::DataError;
use super::column::{Column, Values};
use super::encode::Raw;
use super::pick::check_names;
use super::read::{ReadOptions, check_memory};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

/// Reads the whole file. The library that reads Parquet panics on some damaged files; that becomes an error like all others.
pub(super) fn parse(bytes: Vec<u8>, file: &str, options: &ReadOptions) -> Result<Raw, DataError> {
    let damaged = || DataError::NotArchive { file: file.into(), message: "the Parquet file is damaged".into() };
    quietly(|| read(bytes, file, options)).unwrap_or_else(|| Err(damaged()))
}

/// Runs something that may panic, without the message on standard error; none if it did.
fn quietly<T>(run: impl FnOnce() -> T) -> Option<T> {
    // The hook is the process's; one at a time may change it.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let done = panic::catch_unwind(AssertUnwindSafe(run));
    panic::set_hook(hook);
    done.ok()
}

fn read(bytes: Vec<u8>, file: &str, options: &ReadOptions) -> Result<Raw, DataError> {
    let wrong = |message: String| DataError::NotArchive { file: file.into(), message };
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).map_err(|e| wrong(e.to_string()))?;
    let schema = reader.metadata().file_metadata().schema();
    let names: Vec<String> = schema.get_fields().iter().map(|f| f.name().to_owned()).collect();
    check_names(file, &names)?;
    check_size(&reader, file, options)?;
    let mut cells: Vec<Vec<Cell>> = vec![Vec::new(); names.len()];
    for row in reader.get_row_iter(None).map_err(|e| wrong(e.to_string()))? {
        let row = row.map_err(|e| wrong(e.to_string()))?;
        for (j, (name, field)) in row.get_column_iter().enumerate() {
            let cell = cell(field).ok_or_else(|| wrong(format!("column \"{name}\" holds neither numbers nor text")))?;
            cells[j].push(cell);
        }
    }
    let lines: Vec<u64> = (1..=cells.first().map_or(0, Vec::len) as u64).collect();
    let columns = names.into_iter().zip(cells).map(|(name, cells)| column(name, cells)).collect();
    Ok(Raw { file: file.into(), columns, target: None, lines, notices: Vec::new(), picked: false })
}

/// Bytes of a cell as it is read, text apart.
const CELL: u128 = 2 * size_of::<Field>() as u128;

/// Refuses what is too large before it is unpacked, by what the file says of itself.
fn check_size(reader: &SerializedFileReader<bytes::Bytes>, file: &str, options: &ReadOptions) -> Result<(), DataError> {
    let meta = reader.metadata();
    let columns = meta.file_metadata().schema().get_fields().len();
    let unpacked: u64 = meta.row_groups().iter().map(|group| group.total_byte_size().max(0) as u64).sum();
    if unpacked > options.limits.bytes {
        return Err(DataError::TooManyBytes { file: file.into(), limit: options.limits.bytes });
    }
    if columns > options.limits.columns.saturating_add(1) && options.pick.columns.is_empty() {
        return Err(DataError::TooManyColumns { file: file.into(), columns, limit: options.limits.columns });
    }
    let rows = meta.file_metadata().num_rows().max(0) as u64;
    let cells = u128::from(rows) * columns as u128;
    check_memory(file, rows, columns as u64, u128::from(unpacked) + cells * CELL)
}

#[derive(Clone)]
enum Cell {
    Missing,
    Number(f64),
    /// Days since 1970.
    Date(f64),
    Text(String),
}

fn cell(field: &Field) -> Option<Cell> {
    Some(match field {
        Field::Null => Cell::Missing,
        Field::Bool(v) => Cell::Number(f64::from(u8::from(*v))),
        Field::Byte(v) => Cell::Number(f64::from(*v)),
        Field::Short(v) => Cell::Number(f64::from(*v)),
        Field::Int(v) => Cell::Number(f64::from(*v)),
        Field::Long(v) => Cell::Number(*v as f64),
        Field::UByte(v) => Cell::Number(f64::from(*v)),
        Field::UShort(v) => Cell::Number(f64::from(*v)),
        Field::UInt(v) => Cell::Number(f64::from(*v)),
        Field::ULong(v) => Cell::Number(*v as f64),
        Field::Float(v) => Cell::Number(f64::from(*v)),
        Field::Double(v) => Cell::Number(*v),
        Field::Float16(v) => Cell::Number(f64::from(*v)),
        Field::Date(days) => Cell::Date(f64::from(*days)),
        Field::TimestampMillis(t) => Cell::Date(*t as f64 / (DAY * 1e3)),
        Field::TimestampMicros(t) => Cell::Date(*t as f64 / (DAY * 1e6)),
        Field::Str(v) => Cell::Text(v.clone()),
        Field::Bytes(v) => Cell::Text(String::from_utf8_lossy(v.data()).into_owned()),
        _ => return None,
    })
}

/// Seconds of a day.
const DAY: f64 = 86400.0;

/// Numbers, unless a cell holds text.
fn column(name: String, cells: Vec<Cell>) -> Column {
    let missing = cells.iter().position(|c| matches!(c, Cell::Missing)).map(|row| (row, "null".to_owned()));
    let dates = cells.iter().any(|c| matches!(c, Cell::Date(_)));
    let textual = cells.iter().any(|c| matches!(c, Cell::Text(_)));
    let values = if textual {
        let text = |c: Cell| match c {
            Cell::Missing => None,
            Cell::Number(v) | Cell::Date(v) => Some(super::format_number(v)),
            Cell::Text(v) => Some(v),
        };
        Values::Text(cells.into_iter().map(text).collect())
    } else {
        let number = |c: &Cell| match c {
            Cell::Number(v) | Cell::Date(v) => *v,
            _ => f64::NAN,
        };
        Values::Numbers(cells.iter().map(number).collect())
    };
    let nan = match &values {
        Values::Numbers(v) => v.iter().position(|v| v.is_nan()).map(|row| (row, "NaN".to_owned())),
        Values::Text(_) => None,
    };
    Column { name, values, missing: missing.or(nan), dates }
}
