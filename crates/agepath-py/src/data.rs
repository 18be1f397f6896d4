//! Rows from numpy and scipy. Dense float64 arrays that lie in one piece, in either order, are read where they are.

use crate::errors::exception;
use agepath::dataset::{Dataset, ManyClasses, Matrix, SparseRows};
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Rows without a target: what is predicted.
#[pyclass(frozen, module = "agepath._agepath")]
pub struct Rows {
    pub(crate) matrix: Matrix,
}

/// Rows with a target: what a path is computed from.
#[pyclass(frozen, module = "agepath._agepath")]
pub struct Data {
    pub(crate) set: Labelled,
}

/// The target of rows.
#[derive(Clone)]
pub(crate) enum Labelled {
    /// Numbers or two classes.
    One(Dataset),
    /// More classes.
    Many(ManyClasses),
}

/// The memory of an array, which is kept alive.
struct Borrowed {
    _owner: Py<PyArray2<f64>>,
    start: *const f64,
    len: usize,
}

// SAFETY: the array is only read, its memory stays where it is while `_owner` lives, and dropping a `Py` is allowed on
// any thread. As with every numpy function that releases the GIL, nobody may write to the array meanwhile.
unsafe impl Send for Borrowed {}
unsafe impl Sync for Borrowed {}

impl AsRef<[f64]> for Borrowed {
    fn as_ref(&self) -> &[f64] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `start` points to `len` numbers of an array that lies in one piece (checked in `borrow`).
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

/// The array as a matrix, without a copy. It must lie in one piece.
fn borrow(x: &Bound<'_, PyArray2<f64>>) -> PyResult<Matrix> {
    let [rows, cols] = [x.shape()[0], x.shape()[1]];
    let by_rows = x.is_c_contiguous();
    let aligned = (x.data() as usize).is_multiple_of(align_of::<f64>());
    if !aligned || !(by_rows || x.is_fortran_contiguous()) {
        return Err(PyValueError::new_err("X must be aligned and lie in one piece; use numpy.ascontiguousarray(X)"));
    }
    let values = Arc::new(Borrowed { _owner: x.clone().unbind(), start: x.data(), len: rows * cols });
    let matrix = match by_rows {
        true => Matrix::row_major(rows, cols, values),
        false => Matrix::column_major(rows, cols, values),
    };
    matrix.ok_or_else(|| PyValueError::new_err("X has an odd shape"))
}

#[pymethods]
impl Rows {
    /// Dense rows.
    #[staticmethod]
    fn dense(x: &Bound<'_, PyArray2<f64>>) -> PyResult<Rows> {
        Ok(Rows { matrix: borrow(x)? })
    }

    /// Compressed sparse rows with sorted columns.
    #[staticmethod]
    fn sparse(
        cols: usize,
        starts: PyReadonlyArray1<i64>,
        indices: PyReadonlyArray1<u32>,
        values: PyReadonlyArray1<f64>,
    ) -> PyResult<Rows> {
        // A negative start cannot be one; as a huge number it is refused below.
        let starts = starts.as_array().iter().map(|&s| s as usize).collect();
        let sparse = SparseRows { starts, indices: indices.as_array().to_vec(), values: values.as_array().to_vec() };
        let matrix = Matrix::sparse(cols, sparse);
        Ok(Rows { matrix: matrix.ok_or_else(|| PyValueError::new_err("the sparse matrix is damaged"))? })
    }

    /// Where the numbers lie in memory; None if they are sparse.
    #[getter]
    fn address(&self) -> Option<usize> {
        self.matrix.address()
    }
}

#[pymethods]
impl Data {
    /// `classes` are the names of −1 and +1, or, if there are more, of 0, 1, 2, …
    #[new]
    fn new(
        rows: &Rows,
        y: PyReadonlyArray1<f64>,
        weights: Option<PyReadonlyArray1<f64>>,
        features: Vec<String>,
        target: String,
        classes: Option<Vec<String>>,
    ) -> PyResult<Data> {
        let y = y.as_array().to_vec();
        let weights = weights.map(|w| w.as_array().to_vec());
        let (two, many) = match classes.map(<[String; 2]>::try_from) {
            None => (None, None),
            Some(Ok(two)) => (Some(two), None),
            Some(Err(names)) => (None, Some(names)),
        };
        let set = Dataset::from_matrix(features, target, rows.matrix.clone(), y, two);
        let set = set.and_then(|set| set.with_weights(weights));
        let set = set.and_then(|set| match many {
            Some(names) => ManyClasses::new(set, names).map(Labelled::Many),
            None => Ok(Labelled::One(set)),
        });
        Ok(Data { set: set.map_err(exception)? })
    }
}
