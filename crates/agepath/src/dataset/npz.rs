//! NPZ: a zip archive of NumPy arrays. `X` (rows × features) or any other array of two dimensions holds the features, `y` or
//! any other of one dimension the target; `feature_names` or `names`, if there, the names of the features.

use super::DataError;
use super::column::Column;
use super::encode::Raw;
use super::pick::check_names;
use super::read::check_memory;
use std::io::{Cursor, Read};

/// One array.
pub(super) struct Array {
    pub name: String,
    pub shape: Vec<usize>,
    pub values: Items,
}

/// Its values, row by row.
pub(super) enum Items {
    Numbers(Vec<f64>),
    Text(Vec<String>),
}

/// Every array of an archive, `limit` bytes at most.
pub(super) fn arrays(bytes: &[u8], file: &str, limit: u64) -> Result<Vec<Array>, DataError> {
    let wrong = |message: String| DataError::NotArchive { file: file.into(), message };
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|e| wrong(e.to_string()))?;
    let (mut arrays, mut left) = (Vec::new(), limit);
    for k in 0..archive.len() {
        let mut entry = archive.by_index(k).map_err(|e| wrong(e.to_string()))?;
        let name = entry.name().trim_end_matches(".npy").to_owned();
        let mut data = Vec::new();
        // What the archive says of its size may be a lie.
        (&mut entry).take(left.saturating_add(1)).read_to_end(&mut data).map_err(|e| wrong(format!("{name}: {e}")))?;
        let too_many = || DataError::TooManyBytes { file: file.into(), limit };
        left = left.checked_sub(data.len() as u64).ok_or_else(too_many)?;
        check_memory(file, data.len() as u64 / 8, 1, 0)?;
        arrays.push(array(&name, &data).ok_or_else(|| wrong(format!("{name} is not an array of numbers or text")))?);
    }
    Ok(arrays)
}

/// Reads the whole archive.
pub(super) fn parse(bytes: &[u8], file: &str, limit: u64) -> Result<Raw, DataError> {
    let wrong = |message: String| DataError::NotArchive { file: file.into(), message };
    let arrays = arrays(bytes, file, limit)?;
    let find = |names: &[&str], dims: usize| {
        let named = arrays.iter().position(|a| names.contains(&a.name.as_str()) && a.shape.len() == dims);
        named.or_else(|| arrays.iter().position(|a| a.shape.len() == dims && !NAMES.contains(&a.name.as_str())))
    };
    let x = find(&["X", "x", "data"], 2).ok_or_else(|| wrong("it has no array of two dimensions called X".into()))?;
    let y = find(&["y", "target", "labels"], 1);
    let (n, d) = (arrays[x].shape[0], arrays[x].shape[1]);
    let Items::Numbers(values) = &arrays[x].values else { return Err(wrong("X holds text".into())) };
    let names = names(&arrays, d);
    check_names(file, &names)?;
    let column = |(j, name): (usize, String)| Column::numbers(name, (0..n).map(|i| values[i * d + j]).collect());
    let columns = names.into_iter().enumerate().map(column).collect();
    let target = y.map(|y| match &arrays[y].values {
        Items::Numbers(v) => Column::numbers(arrays[y].name.clone(), v.clone()),
        Items::Text(v) => Column::text(arrays[y].name.clone(), v.iter().cloned().map(Some).collect()),
    });
    if let Some(found) = y.map(|y| arrays[y].shape[0]).filter(|&m| m != n) {
        return Err(wrong(format!("X has {n} rows, y has {found}")));
    }
    Ok(Raw { file: file.into(), columns, target, lines: (1..=n as u64).collect(), notices: Vec::new(), picked: false })
}

const NAMES: [&str; 2] = ["feature_names", "names"];

fn names(arrays: &[Array], d: usize) -> Vec<String> {
    let named = arrays.iter().find(|a| NAMES.contains(&a.name.as_str()) && a.shape == [d]);
    match named.map(|a| &a.values) {
        Some(Items::Text(names)) => names.clone(),
        _ => (0..d).map(|j| format!("x{j}")).collect(),
    }
}

/// One `.npy`: magic, version, length of the header, a Python dictionary with type, order and shape, the values.
fn array(name: &str, data: &[u8]) -> Option<Array> {
    let rest = data.strip_prefix(b"\x93NUMPY")?;
    let (start, length): (usize, usize) = match rest.first()? {
        1 => (4, usize::from(u16::from_le_bytes(rest.get(2..4)?.try_into().ok()?))),
        _ => (6, u32::from_le_bytes(rest.get(2..6)?.try_into().ok()?) as usize),
    };
    let header = std::str::from_utf8(rest.get(start..start.checked_add(length)?)?).ok()?;
    let after = |key: &str| header.split_once(&format!("'{key}':")).map(|(_, rest)| rest.trim_start());
    let kind = after("descr")?.strip_prefix('\'')?.split_once('\'')?.0;
    let fortran = after("fortran_order")?.starts_with("True");
    let shape = after("shape")?.strip_prefix('(')?.split_once(')')?.0;
    let shape: Vec<usize> =
        shape.split(',').map(str::trim).filter(|s| !s.is_empty()).map(|s| s.parse().ok()).collect::<Option<_>>()?;
    let count = shape.iter().try_fold(1usize, |a, &b| a.checked_mul(b))?;
    let values = items(kind, rest.get(start + length..)?, count)?;
    let values = if fortran && shape.len() == 2 { transpose(values, &shape) } else { values };
    Some(Array { name: name.to_owned(), shape, values })
}

fn items(kind: &str, data: &[u8], count: usize) -> Option<Items> {
    let (big, kind) = (kind.starts_with('>'), kind.trim_start_matches(['<', '>', '|', '=']));
    let width: usize = kind.get(1..)?.parse().ok()?;
    let size = if kind.starts_with('U') { 4 * width } else { width };
    if size == 0 || data.len() < count.checked_mul(size)? {
        return None;
    }
    let chunks = data.chunks_exact(size).take(count).map(|c| {
        let mut bytes = c.to_vec();
        if big && !kind.starts_with(['U', 'S']) {
            bytes.reverse();
        }
        bytes
    });
    macro_rules! numbers {
        ($type:ty) => {
            Items::Numbers(
                chunks.map(|c| c.try_into().map(|b| <$type>::from_le_bytes(b) as f64).ok()).collect::<Option<_>>()?,
            )
        };
    }
    Some(match kind {
        "f8" => numbers!(f64),
        "f4" => numbers!(f32),
        "f2" => {
            let half = |c: Vec<u8>| c.try_into().map(|b| half_precision(u16::from_le_bytes(b))).ok();
            Items::Numbers(chunks.map(half).collect::<Option<_>>()?)
        }
        "i8" => numbers!(i64),
        "i4" => numbers!(i32),
        "i2" => numbers!(i16),
        "i1" => numbers!(i8),
        "u8" => numbers!(u64),
        "u4" => numbers!(u32),
        "u2" => numbers!(u16),
        "u1" | "b1" => numbers!(u8),
        _ if kind.starts_with('S') => Items::Text(chunks.map(|c| text(c.into_iter().map(u32::from))).collect()),
        _ if kind.starts_with('U') => {
            let code = |b: &[u8]| {
                let b = [b[0], b[1], b[2], b[3]];
                if big { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) }
            };
            Items::Text(chunks.map(|c| text(c.chunks_exact(4).map(code))).collect())
        }
        _ => return None,
    })
}

/// A number of 16 bits: sign, five bits of exponent, ten of fraction.
fn half_precision(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023) / 1024.0);
    sign * match exponent {
        0 => fraction * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
    }
}

fn text(codes: impl Iterator<Item = u32>) -> String {
    codes.take_while(|&c| c != 0).map(|c| char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// From column by column to row by row.
fn transpose(values: Items, shape: &[usize]) -> Items {
    let (n, d) = (shape[0], shape[1]);
    match values {
        Items::Numbers(v) => Items::Numbers((0..n * d).map(|k| v[(k % d) * n + k / d]).collect()),
        Items::Text(v) => Items::Text((0..n * d).map(|k| v[(k % d) * n + k / d].clone()).collect()),
    }
}
