//! `agepath at`: the exact solution at any age of a computed path.

use crate::output::emit;
use agepath::path::Point;
use agepath::report::{Restored, restore_all, sparse};
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// Options of `agepath at`.
#[derive(Args)]
pub struct AtArgs {
    /// Directory that `agepath path` wrote
    dir: PathBuf,
    /// Age; may be given several times
    #[arg(long = "age", value_name = "AGE", required = true, allow_negative_numbers = true)]
    ages: Vec<f64>,
}

/// One line of output, with `class` where there are several, `coef` in linear space and `dual` in kernel space; coefficients,
/// intercept and losses are in the solver's units.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
    age: f64,
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
            let text = serde_json::to_string(&line(class.as_deref(), run, &point))?;
            emit(|out| writeln!(out, "{text}"))?;
        }
    }
    Ok(())
}

fn line<'a>(class: Option<&'a str>, run: &Restored, point: &'a Point) -> Line<'a> {
    let (names, in_kernel_space) = (run.problem.pacing().zones(), run.problem.kernel().is_some());
    Line {
        class,
        age: point.age,
        coef: (!in_kernel_space).then_some(&point.coef),
        dual: in_kernel_space.then(|| sparse(&point.coef)),
        intercept: point.intercept,
        kkt: point.kkt,
        weights: &point.weights,
        zones: point.zones.iter().map(|&z| names[usize::from(z)]).collect(),
        losses: &point.losses,
    }
}
