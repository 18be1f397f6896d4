//! The features of all rows: dense in either order, owned or shared with whoever has them, or sparse.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Numbers that somebody owns: a `Vec`, or memory of the caller that stays as it is while it is shared.
pub type Shared = Arc<dyn AsRef<[f64]> + Send + Sync>;

/// n × d numbers.
#[derive(Clone)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    store: Store,
}

#[derive(Clone)]
enum Store {
    /// Row after row.
    Rows(Shared),
    /// Column after column.
    Columns(Shared),
    Sparse(Arc<SparseRows>),
}

/// Compressed sparse rows: row `i` has `values[starts[i]..starts[i + 1]]` in columns `indices[..]`.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseRows {
    /// Where each row begins, and where the last one ends.
    pub starts: Vec<usize>,
    /// Columns, smallest first in each row and each at most once.
    pub indices: Vec<u32>,
    /// Their values.
    pub values: Vec<f64>,
}

impl SparseRows {
    /// Columns and values of row `i`.
    pub fn row(&self, i: usize) -> (&[u32], &[f64]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    fn is_valid(&self, cols: usize) -> bool {
        let n = self.values.len();
        let ends = self.starts.first() == Some(&0) && self.starts.last() == Some(&n) && self.indices.len() == n;
        ends && self.starts.is_sorted()
            && (0..self.starts.len() - 1).all(|i| {
                let indices = self.row(i).0;
                indices.is_sorted_by(|a, b| a < b) && indices.last().is_none_or(|&j| (j as usize) < cols)
            })
    }
}

impl Matrix {
    /// Dense, row after row; none if the number of values is not `rows` × `cols`.
    pub fn row_major(rows: usize, cols: usize, values: Shared) -> Option<Matrix> {
        let fits = (*values).as_ref().len() == rows * cols;
        fits.then_some(Matrix { rows, cols, store: Store::Rows(values) })
    }

    /// Dense, column after column; none if the number of values is not `rows` × `cols`.
    pub fn column_major(rows: usize, cols: usize, values: Shared) -> Option<Matrix> {
        let fits = (*values).as_ref().len() == rows * cols;
        fits.then_some(Matrix { rows, cols, store: Store::Columns(values) })
    }

    /// Sparse; none if the parts do not fit together or the columns of a row are not in order.
    pub fn sparse(cols: usize, values: SparseRows) -> Option<Matrix> {
        let rows = values.starts.len().checked_sub(1)?;
        values.is_valid(cols).then(|| Matrix { rows, cols, store: Store::Sparse(Arc::new(values)) })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The sparse rows, where they are sparse.
    pub fn as_sparse(&self) -> Option<&SparseRows> {
        match &self.store {
            Store::Sparse(sparse) => Some(sparse),
            _ => None,
        }
    }

    /// Where dense values lie in memory, for those who want to see that they are shared.
    pub fn address(&self) -> Option<usize> {
        match &self.store {
            Store::Rows(values) | Store::Columns(values) => Some((**values).as_ref().as_ptr() as usize),
            Store::Sparse(_) => None,
        }
    }

    /// One value.
    #[inline]
    pub fn value(&self, i: usize, j: usize) -> f64 {
        match &self.store {
            Store::Rows(values) => (**values).as_ref()[i * self.cols + j],
            Store::Columns(values) => (**values).as_ref()[j * self.rows + i],
            Store::Sparse(sparse) => {
                let (indices, values) = sparse.row(i);
                indices.binary_search(&(j as u32)).map_or(0.0, |k| values[k])
            }
        }
    }

    /// Row `i`, dense.
    pub fn row(&self, i: usize) -> Cow<'_, [f64]> {
        match &self.store {
            Store::Rows(values) => Cow::Borrowed(&(**values).as_ref()[i * self.cols..(i + 1) * self.cols]),
            Store::Columns(_) => (0..self.cols).map(|j| self.value(i, j)).collect(),
            Store::Sparse(sparse) => {
                let mut row = vec![0.0; self.cols];
                let (indices, values) = sparse.row(i);
                indices.iter().zip(values).for_each(|(&j, &v)| row[j as usize] = v);
                Cow::Owned(row)
            }
        }
    }

    /// All values, dense, row after row; borrowed where they lie so.
    pub fn to_row_major(&self) -> Cow<'_, [f64]> {
        match &self.store {
            Store::Rows(values) => Cow::Borrowed((**values).as_ref()),
            _ => (0..self.rows).flat_map(|i| self.row(i).into_owned()).collect(),
        }
    }

    /// The chosen rows, in the order given.
    pub fn subset(&self, chosen: &[usize]) -> Matrix {
        let store = match &self.store {
            Store::Sparse(sparse) => {
                let mut part = SparseRows { starts: vec![0], indices: Vec::new(), values: Vec::new() };
                for &i in chosen {
                    let (indices, values) = sparse.row(i);
                    part.indices.extend(indices);
                    part.values.extend(values);
                    part.starts.push(part.values.len());
                }
                Store::Sparse(Arc::new(part))
            }
            _ => {
                let mut values = Vec::with_capacity(chosen.len() * self.cols);
                chosen.iter().for_each(|&i| values.extend_from_slice(&self.row(i)));
                Store::Rows(Arc::new(values))
            }
        };
        Matrix { rows: chosen.len(), cols: self.cols, store }
    }

    /// Row, column and value of the first number that is not finite.
    pub fn first_not_finite(&self) -> Option<(usize, usize, f64)> {
        let wrong = |v: &f64| !v.is_finite();
        match &self.store {
            Store::Rows(values) => {
                let values = (**values).as_ref();
                values.iter().position(wrong).map(|k| (k / self.cols, k % self.cols, values[k]))
            }
            Store::Columns(values) => {
                let values = (**values).as_ref();
                values.iter().position(wrong).map(|k| (k % self.rows, k / self.rows, values[k]))
            }
            Store::Sparse(sparse) => sparse.values.iter().position(wrong).map(|k| {
                let row = sparse.starts.partition_point(|&start| start <= k) - 1;
                (row, sparse.indices[k] as usize, sparse.values[k])
            }),
        }
    }
}

impl From<(Vec<f64>, usize)> for Matrix {
    /// From row-major values and the number of columns; values that do not fill a row are left out.
    fn from((values, cols): (Vec<f64>, usize)) -> Matrix {
        let rows = values.len().checked_div(cols).unwrap_or(0);
        Matrix { rows, cols, store: Store::Rows(Arc::new(values)) }
    }
}

impl PartialEq for Matrix {
    fn eq(&self, other: &Matrix) -> bool {
        (self.rows, self.cols) == (other.rows, other.cols) && (0..self.rows).all(|i| self.row(i) == other.row(i))
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = match self.store {
            Store::Rows(_) => "row-major",
            Store::Columns(_) => "column-major",
            Store::Sparse(_) => "sparse",
        };
        write!(f, "{} x {} {store}", self.rows, self.cols)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [[1, 0, 2], [0, 0, 0], [0, 3, 0]] in each form.
    fn each_form() -> [Matrix; 3] {
        let sparse = SparseRows { starts: vec![0, 2, 2, 3], indices: vec![0, 2, 1], values: vec![1.0, 2.0, 3.0] };
        [
            Matrix::row_major(3, 3, Arc::new(vec![1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0])).unwrap(),
            Matrix::column_major(3, 3, Arc::new(vec![1.0, 0.0, 0.0, 0.0, 0.0, 3.0, 2.0, 0.0, 0.0])).unwrap(),
            Matrix::sparse(3, sparse).unwrap(),
        ]
    }

    #[test]
    fn every_form_holds_the_same_numbers() {
        let forms = each_form();
        for m in &forms {
            assert_eq!(m, &forms[0]);
            assert_eq!((m.value(0, 2), m.value(2, 1), m.value(1, 1)), (2.0, 3.0, 0.0));
            assert_eq!(*m.subset(&[2, 0]).to_row_major(), [0.0, 3.0, 0.0, 1.0, 0.0, 2.0]);
            assert_eq!(m.first_not_finite(), None);
        }
        assert_eq!(forms[2].subset(&[2, 0]).as_sparse().unwrap().starts, [0, 1, 3]);
    }

    #[test]
    fn shared_rows_are_not_copied() {
        let owner: Shared = Arc::new(vec![1.0, 2.0, 3.0, 4.0]);
        let m = Matrix::row_major(2, 2, owner.clone()).unwrap();
        assert_eq!(m.to_row_major().as_ptr(), (*owner).as_ref().as_ptr());
        assert!(matches!(m.row(1), Cow::Borrowed([3.0, 4.0])));
    }

    #[test]
    fn parts_that_do_not_fit_are_refused_and_bad_numbers_located() {
        assert!(Matrix::row_major(2, 2, Arc::new(vec![1.0; 3])).is_none());
        let rows = |starts: &[usize], indices: &[u32]| SparseRows {
            starts: starts.to_vec(),
            indices: indices.to_vec(),
            values: vec![f64::NAN; indices.len()],
        };
        for bad in [rows(&[], &[]), rows(&[0, 2], &[1, 0]), rows(&[0, 1], &[3]), rows(&[0, 1], &[0, 1])] {
            assert!(Matrix::sparse(3, bad).is_none());
        }
        let (row, column, _) = Matrix::sparse(3, rows(&[0, 0, 1], &[2])).unwrap().first_not_finite().unwrap();
        assert_eq!((row, column), (1, 2));
    }
}
