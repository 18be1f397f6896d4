//! `agepath at`: the exact solution at any age of a computed path.

use crate::output::emit;
use agepath::path::Point;
use agepath::report::{Restored, restore_all, sparse};
use anyhow::Result;
use clap::Args;
use serde::{Serialize, Serializer};
use serde_json::{Number, Value};
use std::path::PathBuf;

/// Options of `agepath at`.
#[derive(Args)]
pub struct AtArgs {
    /// Directory that `agepath path` wrote
    dir: PathBuf,
    /// Age, or inf for the ordinary fit; may be given several times
    #[arg(long = "age", value_name = "AGE", required = true, allow_negative_numbers = true)]
    ages: Vec<f64>,
    /// Coefficients and intercept in the units of the solver, as in path.json [default: in those of the data, with names]
    #[arg(long)]
    solver_units: bool,
}

/// One line of output: coefficients by name, or of rows of the file in kernel space, and the intercept in the units of the data;
/// of each training row, its number in the file, weight, zone, and loss, which is in the units of the age.
#[derive(Serialize)]
struct UserLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
    age: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    coef: Option<ByName<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dual: Option<Vec<(usize, f64)>>,
    intercept: f64,
    kkt: f64,
    rows: &'a [usize],
    weights: &'a [f64],
    zones: Vec<&'static str>,
    losses: &'a [f64],
}

/// One line of output in the solver's units, with `class` where there are several, `coef` in linear space and `dual` in kernel
/// space.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
    age: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    coef: Option<&'a [f64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dual: Option<Vec<(usize, f64)>>,
    intercept: f64,
    kkt: f64,
    weights: &'a [f64],
    zones: Vec<&'static str>,
    losses: &'a [f64],
}

/// Runs the command.
pub fn run(args: &AtArgs) -> Result<()> {
    let runs = restore_all(&args.dir)?;
    for &age in &args.ages {
        for (class, run) in &runs {
            let point = run.path.at(&run.problem, age)?;
            let text = match args.solver_units {
                true => serde_json::to_string(&line(class.as_deref(), run, &point))?,
                false => serde_json::to_string(&user_line(class.as_deref(), run, &point))?,
            };
            emit(|out| writeln!(out, "{text}"))?;
        }
    }
    Ok(())
}

/// Written as an object, in the order of the features.
struct ByName<'a>(Vec<(&'a str, f64)>);

impl Serialize for ByName<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

fn user_line<'a>(class: Option<&'a str>, run: &'a Restored, point: &'a Point) -> UserLine<'a> {
    let Line { dual, zones, .. } = line(class, run, point);
    let (train, scaling) = (&run.train, &run.scaling);
    let ((coef, intercept), in_kernel_space) = match dual {
        Some(_) => (scaling.undo_dual(&point.coef, point.intercept), true),
        None => (scaling.undo(&point.coef, point.intercept), false),
    };
    let named = || ByName(train.features().iter().map(String::as_str).zip(coef.iter().copied()).collect());
    let by_row = || sparse(&coef).into_iter().map(|(i, beta)| (train.rows()[i], beta)).collect();
    UserLine {
        class,
        age: number(point.age),
        coef: (!in_kernel_space).then(named),
        dual: in_kernel_space.then(by_row),
        intercept,
        kkt: point.kkt,
        rows: train.rows(),
        weights: &point.weights,
        zones,
        losses: &point.losses,
    }
}

fn line<'a>(class: Option<&'a str>, run: &Restored, point: &'a Point) -> Line<'a> {
    let (names, in_kernel_space) = (run.problem.pacing().zones(), run.problem.kernel().is_some());
    Line {
        class,
        age: number(point.age),
        coef: (!in_kernel_space).then_some(&point.coef),
        dual: in_kernel_space.then(|| sparse(&point.coef)),
        intercept: point.intercept,
        kkt: point.kkt,
        weights: &point.weights,
        zones: point.zones.iter().map(|&z| names[usize::from(z)]).collect(),
        losses: &point.losses,
    }
}

/// An age; the infinite one, which JSON has no number for, as the word that is also read.
fn number(age: f64) -> Value {
    Number::from_f64(age).map_or_else(|| "inf".into(), Value::Number)
}
