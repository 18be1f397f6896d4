//! `agepath predict`: what a computed model says about other rows.

use crate::output::emit;
use crate::source;
use agepath::dataset::ReadOptions;
use agepath::report::{Predictor, write_bytes};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

/// Options of `agepath predict`.
#[derive(Args)]
pub struct PredictArgs {
    /// Directory that `agepath path` wrote
    dir: PathBuf,
    /// The rows, in any format that `agepath path` reads; the target may be absent
    data: PathBuf,
    /// Age [default: the chosen one]
    #[arg(long, value_name = "AGE", allow_negative_numbers = true)]
    age: Option<f64>,
    /// CSV file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &PredictArgs) -> Result<()> {
    let predictor = Predictor::open(&args.dir, args.age)?;
    let options = ReadOptions {
        target: Some(predictor.target().to_owned()),
        target_optional: true,
        encoding: Some(predictor.encoding().clone()),
        ..ReadOptions::default()
    };
    let predictions = predictor.predict(&source::read(&args.data, &options)?)?;
    match &args.output {
        Some(file) => write_bytes(file, predictions.to_csv().as_bytes())?,
        None => emit(|out| out.write_all(predictions.to_csv().as_bytes()))?,
    }
    Ok(())
}
