//! A computed path with its rows, as Python sees it.

use crate::data::{Data, Labelled, Rows};
use crate::errors::exception;
use crate::options::{Keep, Options};
use crate::watch::{self, Watch};
use agepath::dataset::{ManyClasses, Matrix};
use agepath::decide::{Choice, Kept};
use agepath::judge::{Branch, StudyOptions, study};
use agepath::loss::LossParameters;
use agepath::one_vs_rest::{OneVsRest, Verdict, combine, normalise, winner};
use agepath::path::{Cause, End, Kind, Path, Point, Progress};
use agepath::prepare::{Prepared, prepare_rows};
use agepath::report::{self, Overwrite, PathFile, Report, Restored, Staging, Summary};
use agepath::suspects::{Suspect, entry_ages};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// A computed path, the rows it was computed from, and what was made of it.
#[pyclass(frozen, module = "agepath._agepath")]
pub struct Run {
    inner: Arc<Inner>,
}

struct Inner {
    prepared: Prepared,
    path: Path,
    /// The branches that were not chosen.
    others: Vec<Branch>,
    kept: Option<Kept>,
    /// Notices of the library and of the choice.
    warnings: Vec<String>,
    /// Wall-clock seconds spent in the library.
    seconds: f64,
}

impl Inner {
    fn choice(&self) -> Option<&Choice> {
        self.kept.as_ref().and_then(Kept::choice)
    }

    /// What it says of the rows, as one class of several.
    fn verdict(&self) -> Option<agepath::Result<Verdict>> {
        Some(Verdict::new(&self.prepared, self.kept.as_ref()?))
    }

    /// One row per solution; in kernel space the coefficients are those of the training rows.
    fn solutions<'py>(&self, py: Python<'py>, points: &[Point]) -> PyResult<Bound<'py, PyDict>> {
        let count = points.len();
        let users: Vec<_> = points.iter().map(|p| self.user_units(&p.coef, p.intercept)).collect();
        let out = PyDict::new(py);
        out.set_item("age", column(py, points.iter().map(|p| p.age)))?;
        out.set_item("kkt", column(py, points.iter().map(|p| p.kkt)))?;
        out.set_item("intercept", column(py, users.iter().map(|u| u.1)))?;
        out.set_item("coef", table(py, count, users.into_iter().flat_map(|u| u.0).collect())?)?;
        out.set_item("solver_intercept", column(py, points.iter().map(|p| p.intercept)))?;
        let all = |field: fn(&Point) -> &[f64]| points.iter().flat_map(field).copied().collect::<Vec<f64>>();
        out.set_item("solver_coef", table(py, count, all(|p| &p.coef))?)?;
        out.set_item("weights", table(py, count, all(|p| &p.weights))?)?;
        out.set_item("losses", table(py, count, all(|p| &p.losses))?)?;
        let zones = points.iter().flat_map(|p| &p.zones).copied().collect();
        out.set_item("zones", table::<u8>(py, count, zones)?)?;
        Ok(out)
    }

    /// With a linear kernel, the coefficients of the features that dual coefficients stand for, and the intercept, in the
    /// user's units.
    fn linear_units(&self, point: &Point) -> Option<(Vec<f64>, f64)> {
        let coef = self.prepared.problem.linear_coefficients(&point.coef)?;
        Some(self.prepared.scaling.undo(&coef, point.intercept))
    }

    /// Coefficients and intercept in the user's units.
    fn user_units(&self, coef: &[f64], intercept: f64) -> (Vec<f64>, f64) {
        let scaling = &self.prepared.scaling;
        match self.prepared.problem.kernel() {
            Some(_) => scaling.undo_dual(coef, intercept),
            None => scaling.undo(coef, intercept),
        }
    }

    fn apply(&self, matrix: &Matrix, theta: &[f64]) -> agepath::Result<Vec<f64>> {
        let (problem, scaling) = (&self.prepared.problem, &self.prepared.scaling);
        let rows = problem.new_rows(scaling.design(matrix, problem.has_intercept())?)?;
        Ok(rows.predict(theta).into_iter().map(|z| scaling.predict(z)).collect())
    }

    fn predict(&self, matrix: &Matrix, ages: &[f64]) -> agepath::Result<Vec<Vec<f64>>> {
        let (problem, scaling) = (&self.prepared.problem, &self.prepared.scaling);
        let rows = problem.new_rows(scaling.design(matrix, problem.has_intercept())?)?;
        let at = |&age: &f64| {
            let theta = self.path.at(problem, age)?.theta(problem);
            Ok(rows.respond(&theta).into_iter().map(|z| scaling.predict(z)).collect())
        };
        ages.par_iter().map(at).collect()
    }
}

/// Computes a path, or with more than two classes one for each class against all others.
#[pyfunction]
#[pyo3(signature = (data, options, threads, progress))]
pub fn solve(
    py: Python<'_>,
    data: &Data,
    options: &Bound<'_, PyDict>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Run>> {
    let options = Options::new(options)?;
    let set = data.set.clone();
    let runs = watch::run(py, threads, progress, move |watch| match set {
        Labelled::One(set) => {
            let begun = Instant::now();
            let prepared = options.tune(prepare_rows(set, options.model, &options.prepare, Vec::new())?)?;
            Ok(vec![follow(begun, prepared, options.for_class(None), &|progress| watch.see(progress))?])
        }
        Labelled::Many(set) => follow_classes(set, options, watch),
    })?;
    Ok(runs.into_iter().map(|inner| Run { inner: Arc::new(inner) }).collect())
}

type Callback<'a> = dyn Fn(&Progress) -> ControlFlow<()> + Sync + 'a;

fn follow_classes(set: ManyClasses, mut options: Options, watch: &Watch) -> agepath::Result<Vec<Inner>> {
    let asked = options.clone();
    let classes = OneVsRest::new(set, options.model, &options.prepare, Vec::new())?;
    if let Keep::Best(decide) = &mut options.keep {
        let asked = StudyOptions { decide: decide.clone(), ..StudyOptions::default() };
        *decide = classes.share_folds(&asked, options.path.seed)?.decide;
        classes.validate(decide)?;
    }
    let count = classes.names().len();
    let class = |k: usize| {
        let share =
            |progress: &Progress| watch.see(&Progress { done: (k as f64 + progress.done) / count as f64, ..*progress });
        follow(Instant::now(), asked.tune(classes.prepare(k)?)?, options.for_class(Some(k)), &share)
    };
    let mut runs = (0..count).map(class).collect::<agepath::Result<Vec<Inner>>>()?;
    let verdicts: Vec<Verdict> = runs.iter().filter_map(Inner::verdict).collect::<agepath::Result<_>>()?;
    if classes.prefers_ordinary(&verdicts) {
        for run in &mut runs {
            if let Some(Kept::Chosen(choice)) = run.kept.take() {
                let choice = choice.better_together(&run.prepared, &run.path)?;
                run.kept = Some(Kept::Chosen(Box::new(choice)));
            }
        }
    }
    Ok(runs)
}

fn follow(begun: Instant, prepared: Prepared, options: Options, callback: &Callback) -> agepath::Result<Inner> {
    let path = || {
        let mut callback = |p: &Progress| callback(p);
        agepath::decide::follow(&prepared.problem, &options.path, options.ages, &mut |_| (), &mut callback)
    };
    let (path, others, kept) = match options.keep {
        Keep::Nothing => (path()?.0, Vec::new(), None),
        Keep::Age(age) => {
            let path = path()?.0;
            let kept = Kept::at(&prepared, &path, age)?;
            (path, Vec::new(), Some(kept))
        }
        Keep::Best(decide) => {
            decide.validate(&prepared)?;
            let asked = StudyOptions { ages: options.ages, branches: options.branches, decide, unchosen: false };
            let mut study = study(&prepared, &options.path, &asked, &mut |_| (), callback)?;
            let chosen = study.branches.remove(study.chosen);
            (chosen.path, study.branches, Some(Kept::Chosen(Box::new(study.choice))))
        }
    };
    let unjudged = kept.as_ref().and_then(Kept::choice).filter(|choice| !choice.reasons.judged);
    let warnings = unjudged.map(|choice| choice.reasons.why.clone()).into_iter().collect();
    Ok(Inner { prepared, path, others, kept, warnings, seconds: begun.elapsed().as_secs_f64() })
}

/// The training rows of all classes, each as the path sees it that doubts it most; `data` are the rows of all classes.
#[pyfunction]
pub fn suspects_of_classes<'py>(
    py: Python<'py>,
    data: &Data,
    runs: Vec<PyRef<'py, Run>>,
) -> PyResult<Bound<'py, PyDict>> {
    let Labelled::Many(train) = &data.set else {
        return Err(PyValueError::new_err("the rows have no more than two classes"));
    };
    let verdicts = runs.iter().filter_map(|run| run.inner.verdict());
    let verdicts = verdicts.collect::<agepath::Result<Vec<_>>>().map_err(exception)?;
    suspects_table(py, &combine(train, &verdicts))
}

/// The place of the class that wins in each row of predictors.
#[pyfunction]
pub fn winners<'py>(py: Python<'py>, z: PyReadonlyArray2<'py, f64>) -> Bound<'py, PyArray1<i64>> {
    column(py, z.as_array().rows().into_iter().map(|row| winner(row.iter().copied()) as i64))
}

/// What a loss predicts at predictors `z`: `z` itself, unless it has a link.
#[pyfunction]
pub fn responses<'py>(
    py: Python<'py>,
    loss: &str,
    z: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let loss = agepath::loss::by_name(loss, &LossParameters::default()).map_err(exception)?;
    Ok(PyArray1::from_iter(py, z.as_array().iter().map(|&z| loss.response(z))))
}

/// Probabilities of the classes of a loss that has them: `z` has one column for two classes, else one per class.
#[pyfunction]
pub fn probabilities<'py>(
    py: Python<'py>,
    loss: &str,
    z: PyReadonlyArray2<'py, f64>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let loss = agepath::loss::by_name(loss, &LossParameters::default()).map_err(exception)?;
    let none = || PyValueError::new_err(format!("the {} loss has no probabilities", loss.name()));
    let mut out = Vec::new();
    for row in z.as_array().rows() {
        let p: Option<Vec<f64>> = row.iter().map(|&z| loss.probability(z)).collect();
        let mut p = p.ok_or_else(none)?;
        match p[..] {
            [p] => out.extend([1.0 - p, p]),
            _ => {
                normalise(&mut p);
                out.extend(p);
            }
        }
    }
    table(py, z.as_array().nrows(), out)
}

/// Reads what [`Run::save`] or the command wrote to a directory.
#[pyfunction]
pub fn load(dir: PathBuf) -> PyResult<Run> {
    let (prepared, path) = report::restore(&dir).map_err(exception)?.into_prepared();
    let kind = report::chosen_age(&dir).map_err(exception)?;
    let again = |(age, ordinary): (f64, bool)| match ordinary {
        true => Kept::ordinary(&prepared, &path),
        false => Kept::at(&prepared, &path, age),
    };
    let kept = kind.map(again).transpose().map_err(exception)?;
    Ok(Run { inner: Arc::new(Inner { prepared, path, others: Vec::new(), kept, warnings: Vec::new(), seconds: 0.0 }) })
}

/// The opposite of [`Run::record`], the training rows being given again.
#[pyfunction]
#[pyo3(signature = (record, data, kept))]
pub fn restore(record: &[u8], data: &Data, kept: Option<&[u8]>) -> PyResult<Run> {
    let name = report::PATH_FILE;
    let file = PathFile::parse(record, name).map_err(|e| exception(e.into()))?;
    let kept = kept.map(postcard::from_bytes::<Kept>).transpose();
    let kept = kept.map_err(|e| PyValueError::new_err(format!("not a pickled path: {e}")))?;
    let Labelled::One(set) = &data.set else {
        return Err(PyValueError::new_err("a path has two classes, or numbers"));
    };
    Ok(Run::new(Restored::new(&file, set.clone(), name).map_err(exception)?, kept))
}

impl Run {
    fn new(restored: Restored, kept: Option<Kept>) -> Run {
        let (prepared, path) = restored.into_prepared();
        Run { inner: Arc::new(Inner { prepared, path, others: Vec::new(), kept, warnings: Vec::new(), seconds: 0.0 }) }
    }
}

/// Rows of equal length as an array.
fn table<'py, T: numpy::Element>(py: Python<'py>, rows: usize, values: Vec<T>) -> PyResult<Bound<'py, PyArray2<T>>> {
    let cols = values.len().checked_div(rows).unwrap_or(0);
    values.into_pyarray(py).reshape([rows, cols])
}

fn column<T: numpy::Element>(py: Python<'_>, values: impl Iterator<Item = T>) -> Bound<'_, PyArray1<T>> {
    values.collect::<Vec<T>>().into_pyarray(py)
}

/// Training rows, one list or array per column.
fn suspects_table<'py>(py: Python<'py>, list: &[Suspect]) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("row", column(py, list.iter().map(|s| s.row as i64)))?;
    out.set_item("score", column(py, list.iter().map(|s| s.score)))?;
    out.set_item("entry_age", column(py, list.iter().map(|s| s.entry_age)))?;
    out.set_item("weight", column(py, list.iter().map(|s| s.weight)))?;
    out.set_item("loss", column(py, list.iter().map(|s| s.loss)))?;
    out.set_item("target", list.iter().map(|s| s.target.as_str()).collect::<Vec<_>>())?;
    out.set_item("prediction", list.iter().map(|s| s.prediction.as_str()).collect::<Vec<_>>())?;
    let loss = |s: &Suspect| s.held_out_loss.unwrap_or(f64::NAN);
    out.set_item("held_out_loss", column(py, list.iter().map(loss)))?;
    let prediction = |s: &Suspect| s.held_out_prediction.clone();
    out.set_item("held_out_prediction", list.iter().map(prediction).collect::<Vec<_>>())?;
    out.set_item("leverage", column(py, list.iter().map(|s| s.leverage.unwrap_or(f64::NAN))))?;
    out.set_item("kind", list.iter().map(Suspect::kind).collect::<Vec<_>>())?;
    Ok(out)
}

#[pymethods]
impl Run {
    /// The ages covered, smallest first.
    #[getter]
    fn ages(&self) -> (f64, f64) {
        self.inner.path.ages
    }

    /// Why the path ends where it ends.
    #[getter]
    fn end(&self) -> String {
        self.inner.path.end.to_string()
    }

    /// Whether all ages asked for are covered.
    #[getter]
    fn complete(&self) -> bool {
        self.inner.path.end == End::Complete
    }

    /// Registry name of the model.
    #[getter]
    fn model(&self) -> &'static str {
        self.inner.prepared.model.name
    }

    /// Registry name of the loss.
    #[getter]
    fn loss(&self) -> &'static str {
        self.inner.prepared.spec.loss
    }

    /// Whether solutions have a coefficient per training row instead of one per feature.
    #[getter]
    fn in_kernel_space(&self) -> bool {
        self.inner.prepared.problem.kernel().is_some()
    }

    /// Names of the features.
    #[getter]
    fn features(&self) -> Vec<String> {
        self.inner.prepared.train.features().to_vec()
    }

    /// Name of the target.
    #[getter]
    fn target(&self) -> &str {
        self.inner.prepared.train.target_name()
    }

    /// The classes of −1 and +1; None for a numeric target.
    #[getter]
    fn classes(&self) -> Option<[String; 2]> {
        self.inner.prepared.train.classes().cloned()
    }

    /// Number of training rows.
    #[getter]
    fn rows(&self) -> usize {
        self.inner.prepared.problem.rows()
    }

    /// Names of the zones, smallest loss first.
    #[getter]
    fn zones(&self) -> Vec<&'static str> {
        self.inner.prepared.problem.pacing().zones().to_vec()
    }

    /// What the user should be warned of.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.inner.warnings.clone()
    }

    /// The kept age; infinite for the ordinary fit.
    #[getter]
    fn age(&self) -> Option<f64> {
        let kept = self.inner.kept.as_ref()?;
        let ordinary = kept.choice().is_some_and(|choice| choice.reasons.ordinary);
        Some(if ordinary { f64::INFINITY } else { kept.point().age })
    }

    /// Why the kept age was chosen, on which branch, and the names of the other branches; None for an age of one's own.
    #[getter]
    fn why(&self) -> Option<(String, String, Vec<String>)> {
        let reasons = &self.inner.choice()?.reasons;
        let others = self.inner.others.iter().map(|branch| branch.name.clone()).collect();
        Some((reasons.why.clone(), reasons.branch.clone(), others))
    }

    /// The share of bad rows and its standard error, as far as they could be estimated at the kept age.
    #[getter]
    fn noise_fraction(&self) -> Option<(f64, f64)> {
        let noise = self.inner.kept.as_ref()?.noise_fraction()?;
        Some((noise.estimate, noise.standard_error))
    }

    /// The exact solution at the kept age, as of [`Run::at`].
    fn solution<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let kept = self.inner.kept.as_ref();
        kept.map(|kept| self.inner.solutions(py, std::slice::from_ref(kept.point()))).transpose()
    }

    /// With a linear kernel, coefficients of the features and intercept at the kept age, in the user's units.
    fn linear<'py>(&self, py: Python<'py>) -> Option<(Bound<'py, PyArray1<f64>>, f64)> {
        let (coef, intercept) = self.inner.linear_units(self.inner.kept.as_ref()?.point())?;
        Some((coef.into_pyarray(py), intercept))
    }

    /// How the age was chosen, as JSON.
    fn selection(&self) -> PyResult<Option<String>> {
        let text = self.inner.choice().map(|choice| serde_json::to_string(&choice.selection)).transpose();
        text.map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// The training rows, most suspicious first, one list or array per column.
    fn suspects<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(kept) = &self.inner.kept else { return Ok(None) };
        suspects_table(py, kept.suspects()).map(Some)
    }

    /// Wall-clock seconds spent in the library, from the rows to the result.
    #[getter]
    fn seconds(&self) -> f64 {
        self.inner.seconds
    }

    /// Where the numbers of X lie in memory; None if they are sparse.
    #[getter]
    fn x_address(&self) -> Option<usize> {
        self.inner.prepared.train.matrix().address()
    }

    /// The problem, certificate, work and direction in the words of path.json.
    fn about(&self) -> PyResult<String> {
        let file = PathFile::new(&self.inner.prepared, &self.inner.path);
        let mut value = serde_json::to_value(&file).map_err(|e| PyValueError::new_err(e.to_string()))?;
        if let Some(fields) = value.as_object_mut() {
            fields.remove("knots");
            fields.remove("events");
        }
        Ok(value.to_string())
    }

    /// Ages, coefficients and intercepts of the stored solutions, in the user's units.
    fn knots<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let path = &self.inner.path;
        let solutions: Vec<_> = path.knots.iter().map(|k| self.inner.user_units(&k.coef, k.intercept)).collect();
        let out = PyDict::new(py);
        out.set_item("age", column(py, path.knots.iter().map(|k| k.age)))?;
        out.set_item("intercept", column(py, solutions.iter().map(|s| s.1)))?;
        let coef = solutions.into_iter().flat_map(|s| s.0).collect();
        out.set_item("coef", table(py, path.knots.len(), coef)?)?;
        Ok(out)
    }

    /// The critical points, one list or array per column.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let events = &self.inner.path.events;
        let states = |cause: &Cause| match *cause {
            Cause::Sample { index, from, to } => ("sample", index as i64, from, to),
            Cause::Feature { index, from, to } => ("feature", index as i64, from, to),
            Cause::Fold => ("fold", -1, "", ""),
        };
        let causes: Vec<_> = events.iter().map(|e| states(&e.cause)).collect();
        let kind = |kind: Kind| if kind == Kind::Jump { "jump" } else { "turning" };
        let out = PyDict::new(py);
        out.set_item("age", column(py, events.iter().map(|e| e.age)))?;
        out.set_item("kind", events.iter().map(|e| kind(e.kind)).collect::<Vec<_>>())?;
        out.set_item("cause", causes.iter().map(|c| c.0).collect::<Vec<_>>())?;
        out.set_item("index", column(py, causes.iter().map(|c| c.1)))?;
        out.set_item("from", causes.iter().map(|c| c.2).collect::<Vec<_>>())?;
        out.set_item("to", causes.iter().map(|c| c.3).collect::<Vec<_>>())?;
        out.set_item("size", column(py, events.iter().map(|e| e.size)))?;
        out.set_item("drop", column(py, events.iter().map(|e| e.drop)))?;
        Ok(out)
    }

    /// The exact solutions at some ages: one row per age.
    fn at<'py>(&self, py: Python<'py>, ages: Vec<f64>, threads: Option<usize>) -> PyResult<Bound<'py, PyDict>> {
        let inner = self.inner.clone();
        let points: Vec<Point> = watch::run(py, threads, None, move |_| {
            ages.into_par_iter().map(|age| inner.path.at(&inner.prepared.problem, age)).collect()
        })?;
        self.inner.solutions(py, &points)
    }

    /// The predictors of new rows at some ages, in the user's units: one row per age.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        ages: Vec<f64>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (inner, matrix, count) = (self.inner.clone(), rows.matrix.clone(), ages.len());
        let predictors: Vec<Vec<f64>> = watch::run(py, threads, None, move |_| inner.predict(&matrix, &ages))?;
        table(py, count, predictors.into_iter().flatten().collect())
    }

    /// The predictors of new rows for a solution in the solver's units, in the user's units.
    fn apply<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        coef: PyReadonlyArray1<f64>,
        intercept: f64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (inner, matrix) = (self.inner.clone(), rows.matrix.clone());
        let mut theta = coef.as_array().to_vec();
        theta.extend(inner.prepared.problem.has_intercept().then_some(intercept));
        let predictors = watch::run(py, Some(1), None, move |_| inner.apply(&matrix, &theta))?;
        Ok(predictors.into_pyarray(py))
    }

    /// For each training row the largest age at which it is still in the zone of the largest losses.
    fn entry_ages<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        entry_ages(&self.inner.prepared.problem, &self.inner.path).into_pyarray(py)
    }

    /// Writes the files of the command to a directory; with `force`, also to one that holds other things.
    fn save(&self, dir: PathBuf, force: bool) -> PyResult<()> {
        let (prepared, path, choice) = (&self.inner.prepared, &self.inner.path, self.inner.choice());
        let overwrite = if force { Overwrite::Anything } else { Overwrite::Results };
        let write = || {
            let staging = Staging::begin(&dir, overwrite)?;
            let others: Vec<&Branch> = self.inner.others.iter().collect();
            report::write_path(staging.dir(), prepared, path, &others)?;
            report::write_choice(staging.dir(), prepared, choice, &Summary::new(prepared, path, choice))?;
            staging.commit()
        };
        write().map_err(exception)
    }

    /// The report of the command: one page that needs nothing else.
    fn to_html(&self, py: Python<'_>) -> PyResult<String> {
        let inner = self.inner.clone();
        watch::run(py, Some(1), None, move |_| {
            let (prepared, path, choice) = (&inner.prepared, &inner.path, inner.choice());
            let summary = &Summary::new(prepared, path, choice);
            Report { prepared, path, choice, summary, command: None, test: None }.html()
        })
    }

    /// The kept age and what follows from it, for [`restore`].
    fn kept<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let bytes = self.inner.kept.as_ref().map(postcard::to_stdvec).transpose();
        let bytes = bytes.map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok(bytes.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// What [`restore`] needs besides the training rows.
    fn record<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let file = PathFile::new(&self.inner.prepared, &self.inner.path);
        let bytes = serde_json::to_vec(&file).map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The training rows: X (an array, or starts, columns and values), y, weights, and names.
    fn train<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let train = &self.inner.prepared.train;
        let out = PyDict::new(py);
        match train.matrix().as_sparse() {
            Some(sparse) => {
                out.set_item("starts", column(py, sparse.starts.iter().map(|&s| s as i64)))?;
                out.set_item("indices", column(py, sparse.indices.iter().copied()))?;
                out.set_item("values", column(py, sparse.values.iter().copied()))?;
            }
            None => out.set_item("x", table(py, train.len(), train.x().into_owned())?)?,
        }
        out.set_item("y", column(py, train.y().iter().copied()))?;
        out.set_item("weights", train.weights().map(|w| column(py, w.iter().copied())))?;
        let about = PyDict::new(py);
        about.set_item("features", train.features())?;
        about.set_item("target", train.target_name())?;
        about.set_item("classes", train.classes())?;
        out.set_item("about", about)?;
        Ok(out)
    }
}
