//! What the age-path is compared with, on rows from Python: `agepath::baseline` with its settings by name.

use crate::data::{Data, Labelled, Rows};
use crate::errors::exception;
use crate::options::{Options, get};
use crate::watch;
use agepath::Error;
use agepath::baseline::{Acs, LsSvm, MosplOptions, RLsSvm, ReLsSvm, RobustSvm, front, huber_fit};
use agepath::dataset::{Dataset, Matrix, Noise};
use agepath::prepare::{PrepareOptions, Prepared, default_ages, prepare_rows};
use agepath::solver;
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Instant;

/// One of them, with its settings.
enum Rival {
    Original,
    Acs { step: f64, every: usize },
    Mospl(MosplOptions),
    HuberLasso { threshold: f64 },
    LsSvm(LsSvm),
    RLsSvm(RLsSvm),
    ReLsSvm(ReLsSvm),
    RobustSvm(RobustSvm),
}

const NAMES: &str = "original, acs, mospl, huber-lasso, ls-svm, rls-svm, re-ls-svm, robust-svm";

/// What was learned: an age if there is one, the solution where it is one of the model's, and the predictors of the asked rows.
struct Candidate {
    age: Option<f64>,
    theta: Option<Vec<f64>>,
    z: Vec<f64>,
}

impl Rival {
    fn new(name: &str, given: &Bound<'_, PyDict>, seed: u64) -> PyResult<Rival> {
        let c = |default: f64| Ok::<f64, PyErr>(get(given, "c")?.unwrap_or(default));
        Ok(match name {
            "original" => Rival::Original,
            "acs" => Rival::Acs {
                step: get(given, "step")?.unwrap_or(Acs::default().step),
                every: get(given, "every")?.unwrap_or(1),
            },
            "mospl" => {
                let default = MosplOptions::default();
                Rival::Mospl(MosplOptions {
                    population: get(given, "population")?.unwrap_or(default.population),
                    generations: get(given, "generations")?.unwrap_or(default.generations),
                    exponent: get(given, "exponent")?.or(default.exponent),
                    seed,
                })
            }
            "huber-lasso" => {
                let missing = || PyValueError::new_err("huber-lasso needs a threshold");
                Rival::HuberLasso { threshold: get(given, "threshold")?.ok_or_else(missing)? }
            }
            "ls-svm" => Rival::LsSvm(LsSvm { c: c(LsSvm::default().c)? }),
            "rls-svm" => {
                let default = RLsSvm::default();
                let truncation = get(given, "truncation")?.unwrap_or(default.truncation);
                Rival::RLsSvm(RLsSvm { c: c(default.c)?, truncation })
            }
            "re-ls-svm" => {
                let default = ReLsSvm::default();
                Rival::ReLsSvm(ReLsSvm { c: c(default.c)?, kept: get(given, "kept")?.unwrap_or(default.kept) })
            }
            "robust-svm" => {
                let default = RobustSvm::default();
                Rival::RobustSvm(RobustSvm { c: c(default.c)?, flips: get(given, "flips")?.unwrap_or(default.flips) })
            }
            other => return Err(PyValueError::new_err(format!("unknown rival {other:?}; choose one of: {NAMES}"))),
        })
    }

    fn run(&self, prepared: &Prepared, ages: Option<(f64, f64)>, rows: &Matrix) -> agepath::Result<Vec<Candidate>> {
        let problem = &prepared.problem;
        let solutions: Vec<(Option<f64>, Vec<f64>)> = match self {
            Rival::Original => vec![(None, solver::fit(problem, None)?.theta)],
            Rival::Acs { step, every } => {
                let ages = ages.map_or_else(|| default_ages(problem), Ok)?;
                let swept = Acs { step: *step }.sweep(problem, ages)?;
                swept.into_iter().step_by((*every).max(1)).map(|(age, theta)| (Some(age), theta)).collect()
            }
            Rival::Mospl(options) => front(problem, options)?.into_iter().map(|p| (None, p.theta)).collect(),
            Rival::HuberLasso { threshold } => vec![(None, huber_fit(problem, *threshold)?)],
            Rival::LsSvm(machine) => return single(prepared, machine.predict(prepared, rows)?),
            Rival::RLsSvm(machine) => return single(prepared, machine.predict(prepared, rows)?),
            Rival::ReLsSvm(machine) => return single(prepared, machine.predict(prepared, rows)?),
            Rival::RobustSvm(machine) => return single(prepared, machine.predict(prepared, rows)?),
        };
        let rows = problem.new_rows(prepared.scaling.design(rows, problem.has_intercept())?)?;
        let candidate = |(age, theta): (Option<f64>, Vec<f64>)| {
            let z = rows.predict(&theta).into_iter().map(|z| prepared.scaling.predict(z)).collect();
            Candidate { age, theta: Some(theta), z }
        };
        Ok(solutions.into_iter().map(candidate).collect())
    }
}

fn single(prepared: &Prepared, z: Vec<f64>) -> agepath::Result<Vec<Candidate>> {
    let z = z.into_iter().map(|z| prepared.scaling.predict(z)).collect();
    Ok(vec![Candidate { age: None, theta: None, z }])
}

/// Rows of numbers or of two classes.
fn one(data: &Data) -> PyResult<Dataset> {
    match &data.set {
        Labelled::One(set) => Ok(set.clone()),
        Labelled::Many(_) => Err(PyValueError::new_err("the rivals take numbers or two classes")),
    }
}

/// Learns from `data` and predicts `rows`: ages (NaN where there is none), solutions in the solver's units (None for machines that have
/// a kernel of their own), predictions in the user's units, one row per candidate, and the seconds it took.
#[pyfunction]
#[pyo3(signature = (name, data, rows, options, settings, threads))]
pub fn rival<'py>(
    py: Python<'py>,
    name: &str,
    data: &Data,
    rows: &Rows,
    options: &Bound<'py, PyDict>,
    settings: &Bound<'py, PyDict>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = Options::new(options)?;
    let chosen = Rival::new(name, settings, options.prepare.seed)?;
    let (set, matrix) = (one(data)?, rows.matrix.clone());
    let (found, seconds) = watch::run(py, threads, None, move |_| {
        let begun = Instant::now();
        let prepared = prepare_rows(set, options.model, &options.prepare, Vec::new())?;
        let found = chosen.run(&prepared, options.ages, &matrix)?;
        Ok((found, begun.elapsed().as_secs_f64()))
    })?;
    let (count, out) = (found.len(), PyDict::new(py));
    let ages: Vec<f64> = found.iter().map(|c| c.age.unwrap_or(f64::NAN)).collect();
    out.set_item("age", ages.into_pyarray(py))?;
    out.set_item("seconds", seconds)?;
    let thetas: Option<Vec<&Vec<f64>>> = found.iter().map(|c| c.theta.as_ref()).collect();
    let shaped = |values: Vec<f64>| {
        let width = values.len().checked_div(count).unwrap_or(0);
        values.into_pyarray(py).reshape([count, width])
    };
    out.set_item("theta", thetas.map(|t| shaped(t.into_iter().flatten().copied().collect())).transpose()?)?;
    out.set_item("predictions", shaped(found.iter().flat_map(|c| &c.z).copied().collect())?)?;
    Ok(out)
}

/// The rows with noise of a kind and rate (`"flip:0.3"`): X, y as the engine reads it, and which rows were hit.
#[pyfunction]
#[pyo3(signature = (data, options, noise))]
pub fn corrupt<'py>(
    py: Python<'py>,
    data: &Data,
    options: &Bound<'py, PyDict>,
    noise: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let options = Options::new(options)?;
    let noise: Noise = noise.parse().map_err(|e: Error| exception(e))?;
    let set = one(data)?;
    let prepared = watch::run(py, Some(1), None, move |_| {
        let with_noise = PrepareOptions { noise: Some(noise), ..options.prepare };
        prepare_rows(set, options.model, &with_noise, Vec::new())
    })?;
    let (train, out) = (&prepared.train, PyDict::new(py));
    let shape = [train.len(), train.features().len()];
    out.set_item("x", train.x().into_owned().into_pyarray(py).reshape(shape)?)?;
    out.set_item("y", train.y().to_vec().into_pyarray(py))?;
    let hit = prepared.noise.map(|injected| injected.rows).unwrap_or_default();
    out.set_item("rows", hit.into_iter().map(|row| row as i64).collect::<Vec<_>>().into_pyarray(py))?;
    Ok(out)
}
