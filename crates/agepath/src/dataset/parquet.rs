//! Parquet: columns of numbers, booleans and text; nested columns and dates are refused by name.

use super::DataError;
use super::encode::{Column, Raw, Values, check_names};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;

/// Reads the whole file.
pub(super) fn parse(bytes: Vec<u8>, file: &str) -> Result<Raw, DataError> {
    let wrong = |message: String| DataError::NotArchive { file: file.into(), message };
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).map_err(|e| wrong(e.to_string()))?;
    let schema = reader.metadata().file_metadata().schema();
    let names: Vec<String> = schema.get_fields().iter().map(|f| f.name().to_owned()).collect();
    check_names(file, &names)?;
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
    Ok(Raw { file: file.into(), columns, target: None, lines, notices: Vec::new() })
}

#[derive(Clone)]
enum Cell {
    Missing,
    Number(f64),
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
        Field::Str(v) => Cell::Text(v.clone()),
        Field::Bytes(v) => Cell::Text(String::from_utf8_lossy(v.data()).into_owned()),
        _ => return None,
    })
}

/// Numbers, unless a cell holds text.
fn column(name: String, cells: Vec<Cell>) -> Column {
    let missing = cells.iter().position(|c| matches!(c, Cell::Missing)).map(|row| (row, "null".to_owned()));
    let textual = cells.iter().any(|c| matches!(c, Cell::Text(_)));
    let values = if textual {
        let text = |c: Cell| match c {
            Cell::Missing => None,
            Cell::Number(v) => Some(super::format_number(v)),
            Cell::Text(v) => Some(v),
        };
        Values::Text(cells.into_iter().map(text).collect())
    } else {
        Values::Numbers(cells.iter().map(|c| if let Cell::Number(v) = c { *v } else { f64::NAN }).collect())
    };
    let nan = match &values {
        Values::Numbers(v) => v.iter().position(|v| v.is_nan()).map(|row| (row, "NaN".to_owned())),
        Values::Text(_) => None,
    };
    Column { name, values, missing: missing.or(nan) }
}
