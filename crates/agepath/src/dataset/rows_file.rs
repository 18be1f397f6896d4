//! The training rows of a result: an NPZ archive, so that they keep their type, are compressed, and numpy reads them too.
//! `X` (column by column, which compresses better) or, for sparse rows, `X_indptr`, `X_indices` and `X_data`; `y`, ±1 for
//! classes; `feature_names`, for people. Names and classes that count are in `path.json`.

use super::npz::{Array, Items, arrays};
use super::{DataError, Dataset, Matrix, SparseRows};
use crate::error::Result;
use std::io::{self, Cursor, Seek, Write};
use std::sync::Arc;
use zip::write::{SimpleFileOptions, ZipWriter};

/// Arrays from this size on need the large form of an archive's entry; a bit below what the small form can hold.
const LARGE: usize = 1 << 31;
/// How hard is tried to make it small: text of numbers hardly gets smaller beyond.
const LEVEL: i64 = 1;
/// An array's values begin at a multiple of this, as numpy's own do.
const ALIGN: usize = 64;

/// Writes the rows.
pub(crate) fn write_rows(out: &mut (impl Write + ?Sized), data: &Dataset) -> io::Result<()> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let matrix = data.matrix();
    match matrix.as_sparse() {
        Some(SparseRows { starts, indices, values }) => {
            put(
                &mut zip,
                "X_indptr",
                "<u8",
                (starts.len(), None),
                starts.iter().flat_map(|&v| (v as u64).to_le_bytes()),
            )?;
            put(&mut zip, "X_indices", "<u4", (indices.len(), None), indices.iter().flat_map(|v| v.to_le_bytes()))?;
            put(&mut zip, "X_data", "<f8", (values.len(), None), values.iter().flat_map(|v| v.to_le_bytes()))?;
        }
        None => {
            let (n, d) = (data.len(), matrix.cols());
            let cells = (0..d).flat_map(|j| (0..n).map(move |i| (i, j)));
            put(&mut zip, "X", "<f8", (n, Some(d)), cells.flat_map(|(i, j)| matrix.value(i, j).to_le_bytes()))?;
        }
    }
    put(&mut zip, "y", "<f8", (data.len(), None), data.y().iter().flat_map(|v| v.to_le_bytes()))?;
    put_names(&mut zip, data.features())?;
    out.write_all(zip.finish()?.get_ref())
}

fn put_names(zip: &mut ZipWriter<impl Write + Seek>, names: &[String]) -> io::Result<()> {
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(1);
    let padded = |name: &String| {
        let mut codes: Vec<u32> = name.chars().map(u32::from).collect();
        codes.resize(width, 0);
        codes
    };
    let bytes = names.iter().flat_map(padded).flat_map(u32::to_le_bytes);
    put(zip, "feature_names", &format!("<U{width}"), (names.len(), None), bytes)
}

/// One array of one or, column by column, two dimensions.
fn put(
    zip: &mut ZipWriter<impl Write + Seek>,
    name: &str,
    kind: &str,
    (rows, cols): (usize, Option<usize>),
    bytes: impl Iterator<Item = u8>,
) -> io::Result<()> {
    let bytes: Vec<u8> = bytes.collect();
    let shape = cols.map_or(format!("{rows},"), |cols| format!("{rows}, {cols}"));
    let order = if cols.is_some() { "True" } else { "False" };
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': ({shape}), }}");
    // Magic, version and length take ten bytes, the end of the line one.
    let used = 10 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', used.next_multiple_of(ALIGN) - used));
    header.push('\n');
    let options = SimpleFileOptions::default().compression_level(Some(LEVEL)).large_file(bytes.len() >= LARGE);
    zip.start_file(format!("{name}.npy"), options)?;
    zip.write_all(b"\x93NUMPY\x01\x00")?;
    let length = u16::try_from(header.len()).map_err(|_| io::Error::other("the header of an array is too long"))?;
    zip.write_all(&length.to_le_bytes())?;
    zip.write_all(header.as_bytes())?;
    zip.write_all(&bytes)
}

/// Reads rows that [`write_rows`] wrote, with their names; `file` is what messages call the file.
pub(crate) fn read_rows(
    bytes: &[u8],
    file: &str,
    features: &[String],
    target: &str,
    classes: Option<[String; 2]>,
) -> Result<Dataset> {
    let mut arrays = arrays(bytes, file, u64::MAX)?;
    let mut take = |name: &str| {
        let at = arrays.iter().position(|a| a.name == name)?;
        match arrays.swap_remove(at) {
            Array { shape, values: Items::Numbers(values), .. } => Some((shape, values)),
            _ => None,
        }
    };
    let wrong = |message: &str| DataError::NotArchive { file: file.into(), message: message.into() };
    let (_, y) = take("y").ok_or_else(|| wrong("it has no array y"))?;
    let x = match take("X") {
        Some((shape, values)) => match shape[..] {
            [rows, cols] => Matrix::row_major(rows, cols, Arc::new(values)),
            _ => None,
        },
        None => {
            let sparse = (take("X_indptr"), take("X_indices"), take("X_data"));
            let (Some((_, starts)), Some((_, indices)), Some((_, values))) = sparse else {
                return Err(wrong("it has no array X").into());
            };
            let starts = starts.into_iter().map(|v| v as usize).collect();
            let indices = indices.into_iter().map(|v| v as u32).collect();
            Matrix::sparse(features.len(), SparseRows { starts, indices, values })
        }
    };
    let x = x.ok_or_else(|| wrong("X is damaged"))?;
    Ok(Dataset::from_matrix(features.to_vec(), target.into(), x, y, classes)?.with_name(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(data: &Dataset) -> Dataset {
        let mut bytes = Vec::new();
        write_rows(&mut bytes, data).unwrap();
        read_rows(&bytes, "data", data.features(), data.target_name(), data.classes().cloned()).unwrap()
    }

    #[test]
    fn rows_survive_to_the_last_bit() {
        let x = vec![0.1, -3.5e-310, 1e300, -0.0, 1.0 / 3.0, 7.0];
        let data = Dataset::new(vec!["a".into(), "größe".into()], "y".into(), x, vec![0.1, 2.0, -1e-5], None).unwrap();
        let read = again(&data);
        let bits = |data: &Dataset| data.x().iter().chain(data.y()).map(|v| v.to_bits()).collect::<Vec<u64>>();
        assert_eq!(bits(&read), bits(&data));
    }

    #[test]
    fn sparse_rows_stay_sparse() {
        let rows = SparseRows { starts: vec![0, 1, 1, 3], indices: vec![2, 0, 1], values: vec![0.1, 0.2, -0.3] };
        let matrix = Matrix::sparse(3, rows).unwrap();
        let names = ["a", "b", "c"].map(String::from).to_vec();
        let classes = Some(["no".to_owned(), "yes".to_owned()]);
        let data = Dataset::from_matrix(names, "t".into(), matrix, vec![1.0, -1.0, 1.0], classes).unwrap();
        assert_eq!(again(&data), data);
    }

    #[test]
    fn the_usual_reader_reads_them() {
        let data =
            Dataset::new(vec!["a".into(), "b".into()], "y".into(), vec![1.0, 2.0, 3.0, 4.0], vec![5.0, 6.0], None);
        let mut bytes = Vec::new();
        write_rows(&mut bytes, &data.unwrap()).unwrap();
        let table = super::super::read_from(&bytes[..], "t.npz", &super::super::ReadOptions::default()).unwrap();
        assert_eq!((table.features.join(","), table.x), ("a,b".to_owned(), vec![1.0, 2.0, 3.0, 4.0]));
        assert_eq!(table.labels, ["5", "6"]);
    }
}
