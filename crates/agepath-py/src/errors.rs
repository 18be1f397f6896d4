//! The library's errors as the exceptions that Python users expect.

use agepath::Error;
use agepath::dataset::DataError;
use pyo3::PyErr;
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyRuntimeError, PyValueError};
use std::io::ErrorKind;

/// Wrong input is a `ValueError`, a file that cannot be used an `OSError`, a problem without solution a `RuntimeError`.
pub fn exception(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Data(DataError::File { kind: ErrorKind::NotFound, .. }) => PyFileNotFoundError::new_err(message),
        Error::Data(DataError::File { .. }) => PyOSError::new_err(message),
        Error::NoSolution { .. } => PyRuntimeError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}
