//! Options by name, as the Python classes hand them over. What is not named has the library's default.

use crate::errors::exception;
use agepath::dataset::{Folds, TARGET_SCALES, TargetScale};
use agepath::decide::DecideOptions;
use agepath::judge::{Branches, tuned};
use agepath::loss::{self, LossParameters};
use agepath::model::{self, Model, Strength};
use agepath::pacing::{self, PacingSpec};
use agepath::path::{Direction, PathOptions, Start};
use agepath::prepare::{DEFAULT_PACING, PrepareOptions, Prepared, Validation};
use agepath::registry::{Parameter, Values};
use agepath::select::{METRICS, RULES, Rule, Scorer};
use agepath::space::{KernelChoice, KernelParameters};
use numpy::IntoPyArray;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use std::time::Duration;

/// What a run is asked for.
#[derive(Clone)]
pub struct Options {
    pub model: &'static Model,
    pub prepare: PrepareOptions,
    pub path: PathOptions,
    /// None: from the data.
    pub ages: Option<(f64, f64)>,
    pub keep: Keep,
    /// Which branches are followed where the library chooses.
    pub branches: Branches,
    /// Whether α of numbers and C of classes are to be found.
    tune: (bool, bool),
    /// A Python function that scores held-out rows.
    scorer: Option<Arc<Py<PyAny>>>,
}

/// Which age is kept.
#[derive(Clone)]
pub enum Keep {
    /// None.
    Nothing,
    /// This one.
    Age(f64),
    /// The one that the library chooses; by held-out rows where folds, a metric or a rule name them.
    Best(DecideOptions),
}

/// One option; None in Python counts as not given.
pub(crate) fn get<'py, T: for<'a> FromPyObject<'a, 'py>>(
    options: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<Option<T>> {
    let Some(value) = options.get_item(name)?.filter(|v| !v.is_none()) else { return Ok(None) };
    let wrong = |_| -> PyErr {
        let text = value.repr().map_or_else(|_| "?".into(), |r| r.to_string());
        PyTypeError::new_err(format!("{name}={text} has the wrong type"))
    };
    value.extract::<T>().map(Some).map_err(|e| wrong(e.into()))
}

/// A number; none for `"auto"`, or if it is not given.
fn tunable(options: &Bound<'_, PyDict>, name: &str) -> PyResult<Option<f64>> {
    if is_auto(options, name)? { Ok(None) } else { get(options, name) }
}

fn is_auto(options: &Bound<'_, PyDict>, name: &str) -> PyResult<bool> {
    let given = options.get_item(name)?;
    Ok(given.is_some_and(|value| value.extract::<String>().is_ok_and(|text| text == "auto")))
}

/// A choice that the library reads from its files under the same name.
fn choice<T: serde::de::DeserializeOwned>(name: &str, text: &str, choices: &str) -> PyResult<T> {
    let wrong = |_| PyValueError::new_err(format!("unknown {name} \"{text}\"; choose one of: {choices}"));
    serde_json::from_value(serde_json::Value::String(text.into())).map_err(wrong)
}

impl Options {
    pub fn new(options: &Bound<'_, PyDict>) -> PyResult<Options> {
        let (prepare, path) = (PrepareOptions::default(), PathOptions::default());
        let strength = prepare.strength;
        let strength = Strength {
            alpha: tunable(options, "alpha")?.unwrap_or(strength.alpha),
            l1_ratio: get(options, "l1_ratio")?.unwrap_or(strength.l1_ratio),
            loss: loss_parameters(options)?,
        };
        let prepare = PrepareOptions {
            strength,
            kernel: kernel(options)?,
            pacing: pacing(options)?.unwrap_or(prepare.pacing),
            intercept: get(options, "fit_intercept")?.unwrap_or(prepare.intercept),
            standardize: get(options, "standardize")?.unwrap_or(prepare.standardize),
            target_scale: match get::<String>(options, "target_scale")? {
                Some(name) => TargetScale::by_name(&name).map_err(exception)?,
                None => prepare.target_scale,
            },
            validation: Validation::None,
            seed: get(options, "seed")?.unwrap_or(prepare.seed),
            ..prepare
        };
        let ages = get::<(f64, f64)>(options, "ages")?;
        let path = PathOptions {
            ages: ages.unwrap_or(path.ages),
            direction: match get::<String>(options, "direction")? {
                Some(name) => choice::<Direction>("direction", &name, "down, up")?,
                None => path.direction,
            },
            start: match get::<String>(options, "start")? {
                Some(name) => choice::<Start>("start", &name, "full, zero, random")?,
                None => path.start,
            },
            from: None,
            seed: prepare.seed,
            max_events: get(options, "max_events")?,
            time_limit: get::<f64>(options, "time_limit")?.map(seconds).transpose()?,
            certify: get(options, "certify")?,
        };
        path.validate().map_err(exception)?;
        let model = match get::<String>(options, "model")? {
            Some(name) => Model::by_name(&name),
            None => {
                let loss: String = get(options, "loss")?.unwrap_or_else(|| model::REGISTRY[0].loss.into());
                Model::by_factors(&loss, get::<String>(options, "penalty")?.as_deref())
            }
        };
        let model = model.map_err(exception)?;
        let prepare = PrepareOptions { model: Some(model.name.into()), ..prepare };
        prepare.validate().map_err(exception)?;
        let scorer = get::<Py<PyAny>>(options, "scorer")?.map(Arc::new);
        let branches = match options.get_item("branches")?.filter(|b| !b.is_none()) {
            Some(given) => given.str()?.to_string().parse::<Branches>().map_err(exception)?,
            None => Branches::default(),
        };
        let tune = (is_auto(options, "alpha")?, is_auto(options, "C")?);
        Ok(Options { model, prepare, path, ages, keep: Keep::new(options)?, branches, tune, scorer })
    }

    /// The problem with the strength that held-out rows like best, where that was asked for.
    pub fn tune(&self, prepared: Prepared) -> agepath::Result<Prepared> {
        let (alpha, c) = self.tune;
        let asked = if prepared.train.classes().is_some() { c } else { alpha };
        // Whoever says how the choice is made has said how strong the penalty is, too.
        let by_library = matches!(&self.keep, Keep::Best(decide) if decide.folds.is_none());
        if asked && by_library { tuned(prepared, self.prepare.seed) } else { Ok(prepared) }
    }

    /// The options of one class among several, or of the only path there is: the scorer is told which class is meant.
    pub fn for_class(&self, class: Option<usize>) -> Options {
        let mut options = self.clone();
        if let (Keep::Best(decide), Some(function)) = (&mut options.keep, &self.scorer) {
            decide.scorer = Some(scorer(function.clone(), class));
        }
        options
    }
}

impl Keep {
    fn new(options: &Bound<'_, PyDict>) -> PyResult<Keep> {
        if let Some(age) = get(options, "age")? {
            return Ok(Keep::Age(age));
        }
        let folds = match options.get_item("folds")?.filter(|f| !f.is_none()) {
            Some(given) => Some(match given.extract::<usize>() {
                Ok(count) => Folds::Count(count),
                Err(_) => Folds::Given(given.extract()?),
            }),
            None => None,
        };
        if folds.is_none() && !get::<bool>(options, "choose")?.unwrap_or(false) {
            return Ok(Keep::Nothing);
        }
        let rule = get::<String>(options, "rule")?.map(|name| Rule::by_name(&name)).transpose().map_err(exception)?;
        let (metric, rule) = (get(options, "metric")?, rule.unwrap_or_default());
        Ok(Keep::Best(DecideOptions { metric, rule, folds, scorer: None }))
    }
}

/// A Python function of row numbers, predictors and the class; what it raises is its own to keep, and counts as no score.
fn scorer(function: Arc<Py<PyAny>>, class: Option<usize>) -> Scorer {
    Scorer(Arc::new(move |rows, z| {
        Python::attach(|py| {
            let score = function.call1(py, (rows.to_vec(), z.to_vec().into_pyarray(py), class));
            score.and_then(|score| score.extract::<Option<f64>>(py)).ok().flatten()
        })
    }))
}

/// Whether a model, or the models of a loss, take classes.
pub fn is_for_classes(model: Option<&str>, loss: Option<&str>) -> PyResult<bool> {
    let loss = match model {
        Some(name) => Model::by_name(name).map_err(exception)?.loss,
        None => loss.unwrap_or(model::REGISTRY[0].loss),
    };
    let loss = loss::by_name(loss, &LossParameters::default()).map_err(exception)?;
    Ok(loss.target() == loss::TargetKind::Sign)
}

fn kernel(options: &Bound<'_, PyDict>) -> PyResult<KernelChoice> {
    let default = KernelParameters::default();
    let gamma = match options.get_item("gamma")?.filter(|g| !g.is_none()) {
        Some(gamma) => {
            let text = gamma.str()?.to_string();
            text.parse().map_err(|e| PyValueError::new_err(format!("gamma={text}: {e}")))?
        }
        None => default.gamma,
    };
    let parameters = KernelParameters {
        gamma,
        degree: get(options, "degree")?.unwrap_or(default.degree),
        coef0: get(options, "coef0")?.unwrap_or(default.coef0),
    };
    let name = get::<String>(options, "kernel")?;
    name.map_or(Ok(KernelChoice::OfModel), |name| KernelChoice::by_name(&name, &parameters)).map_err(exception)
}

/// The Python name of a parameter: sklearn writes C in capitals.
fn python_name(parameter: &Parameter) -> String {
    if parameter.option == "c" { "C".into() } else { parameter.option.replace('-', "_") }
}

fn loss_parameters(options: &Bound<'_, PyDict>) -> PyResult<LossParameters> {
    let mut out = LossParameters::default();
    for parameter in loss::REGISTRY.parameters() {
        if let Some(value) = tunable(options, &python_name(&parameter))? {
            out = out.with(&parameter, value);
        }
    }
    Ok(out)
}

fn pacing(options: &Bound<'_, PyDict>) -> PyResult<Option<PacingSpec>> {
    let mut parameters = Values::default();
    for parameter in pacing::REGISTRY.parameters() {
        if let Some(value) = get(options, &python_name(&parameter))? {
            parameters.set(parameter.name, value);
        }
    }
    let name = get::<String>(options, "pacing")?;
    name.map(|name| PacingSpec::by_name(&name, &parameters)).transpose().map_err(exception)
}

fn seconds(value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|e| PyValueError::new_err(format!("time_limit={value}: {e}")))
}

/// The library's defaults, by the names that the estimators use.
pub fn defaults(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let prepare = PrepareOptions::default();
    let out = PyDict::new(py);
    out.set_item("alpha", "auto")?;
    out.set_item("l1_ratio", prepare.strength.l1_ratio)?;
    for parameter in loss::REGISTRY.parameters().iter().chain(&pacing::REGISTRY.parameters()) {
        out.set_item(python_name(parameter), parameter.default)?;
    }
    out.set_item("pacing", DEFAULT_PACING)?;
    out.set_item("fit_intercept", prepare.intercept)?;
    out.set_item("standardize", prepare.standardize)?;
    let scale = TARGET_SCALES.iter().find(|(_, scale, _)| *scale == prepare.target_scale);
    out.set_item("target_scale", scale.map(|(name, ..)| *name))?;
    let path = PathOptions::default();
    out.set_item("direction", serde_json::to_value(path.direction).ok().and_then(|v| v.as_str().map(str::to_owned)))?;
    out.set_item("certify", path.certify)?;
    let kernel = KernelParameters::default();
    out.set_item("gamma", kernel.gamma.to_string())?;
    out.set_item("degree", kernel.degree)?;
    out.set_item("coef0", kernel.coef0)?;
    Ok(out)
}

/// The parameters of losses and pacings: name in Python, then default and one line about it.
pub fn parameters(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    for (factor, list) in [("loss", loss::REGISTRY.parameters()), ("pacing", pacing::REGISTRY.parameters())] {
        let named = PyDict::new(py);
        for parameter in &list {
            named.set_item(python_name(parameter), (parameter.default, parameter.help))?;
        }
        out.set_item(factor, named)?;
    }
    Ok(out)
}

/// The names that the library's registries know, with one line about each.
pub fn choices(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    let list = |items: &mut dyn Iterator<Item = (&'static str, &'static str)>| -> PyResult<Bound<'_, PyDict>> {
        let names = PyDict::new(py);
        for (name, summary) in items {
            names.set_item(name, summary)?;
        }
        Ok(names)
    };
    out.set_item("loss", list(&mut loss::REGISTRY.rows().iter().map(|e| (e.name, e.summary)))?)?;
    out.set_item("model", list(&mut model::all().iter().map(|m| (m.name, m.summary)))?)?;
    out.set_item("pacing", list(&mut pacing::REGISTRY.rows().iter().map(|p| (p.name, p.summary)))?)?;
    out.set_item("metric", list(&mut METRICS.iter().map(|m| (m.name, m.summary)))?)?;
    out.set_item("kernel", list(&mut KernelChoice::names())?)?;
    out.set_item("selection", list(&mut RULES.iter().map(|(name, _, summary)| (*name, *summary)))?)?;
    out.set_item("target_scale", list(&mut TARGET_SCALES.iter().map(|(name, _, summary)| (*name, *summary)))?)?;
    Ok(out)
}
