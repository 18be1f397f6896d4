//! The Python module `agepath._agepath`: arrays in, paths out. The classes people use are in `python/agepath`.

mod data;
mod errors;
mod options;
mod rivals;
mod run;
mod watch;

use pyo3::prelude::*;

/// The engine behind the package `agepath`.
#[pymodule]
mod _agepath {
    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    #[pymodule_export]
    use crate::data::{Data, Rows};
    #[pymodule_export]
    use crate::rivals::{corrupt, rival};
    #[pymodule_export]
    use crate::run::{Run, load, probabilities, responses, restore, solve, suspects_of_classes, winners};

    /// The library's defaults, by the names that the estimators use.
    #[pyfunction]
    fn defaults(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        crate::options::defaults(py)
    }

    /// The parameters of losses and pacings: by factor and name, default and one line about it.
    #[pyfunction]
    fn parameters(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        crate::options::parameters(py)
    }

    /// The names that the library's registries know, with one line about each.
    #[pyfunction]
    fn choices(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        crate::options::choices(py)
    }

    /// Fingerprints of the library's sources: of all of them, and of what the rivals need.
    #[pyfunction]
    fn fingerprints(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let out = PyDict::new(py);
        out.set_item("path", env!("AGEPATH_FINGERPRINT_PATH"))?;
        out.set_item("rivals", env!("AGEPATH_FINGERPRINT_RIVALS"))?;
        Ok(out)
    }

    /// Whether a model, or the models of a loss, take classes.
    #[pyfunction]
    #[pyo3(signature = (model, loss))]
    fn is_for_classes(model: Option<&str>, loss: Option<&str>) -> PyResult<bool> {
        crate::options::is_for_classes(model, loss)
    }

    /// Panics where the engine runs, so that a test can see what becomes of it.
    #[pyfunction]
    fn panic_for_tests(py: Python<'_>) -> PyResult<()> {
        crate::watch::run(py, Some(1), None, |_| -> agepath::Result<()> { panic!("on purpose") })
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
