//! `agepath at`: the exact solution at any age of a computed path.

use crate::output::emit;
use agepath::path::Point;
use agepath::report::restore;
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

/// One line of output; coefficients, intercept and losses are in the solver's units.
#[derive(Serialize)]
struct Line<'a> {
    age: f64,
    coef: &'a [f64],
    intercept: f64,
    kkt: f64,
    weights: &'a [f64],
    zones: Vec<&'static str>,
    losses: &'a [f64],
}

/// Runs the command.
pub fn run(args: &AtArgs) -> Result<()> {
    let run = restore(&args.dir)?;
    let names = run.problem.pacing().zones();
    for &age in &args.ages {
        let point = run.path.at(&run.problem, age)?;
        let text = serde_json::to_string(&line(&point, names))?;
        emit(|out| writeln!(out, "{text}"))?;
    }
    Ok(())
}

fn line<'a>(point: &'a Point, names: &[&'static str]) -> Line<'a> {
    Line {
        age: point.age,
        coef: &point.coef,
        intercept: point.intercept,
        kkt: point.kkt,
        weights: &point.weights,
        zones: point.zones.iter().map(|&z| names[usize::from(z)]).collect(),
        losses: &point.losses,
    }
}
