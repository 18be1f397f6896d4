//! `agepath predict`: what a computed model says about other rows.

use crate::output::{emit, note};
use crate::reading::{SizeArgs, imputation, imputations};
use crate::source;
use agepath::dataset::{ReadOptions, Unknown};
use agepath::report::{Predictor, short, write_bytes};
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
    /// Fill in missing values by the training rows [default: they are refused unless missing values of the column were filled in
    /// when the path was computed]
    #[arg(long, value_parser = imputations())]
    impute: Option<String>,
    #[command(flatten)]
    sizes: SizeArgs,
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command.
pub fn run(args: &PredictArgs) -> Result<()> {
    let predictor = Predictor::open(&args.dir, args.age)?;
    let options = ReadOptions {
        target: Some(predictor.target().to_owned()),
        target_optional: true,
        encoding: Some(predictor.encoding(imputation(args.impute.as_deref())?)),
        unknown: Unknown::None,
        limits: args.sizes.limits(),
        ..ReadOptions::default()
    };
    let table = source::read(&args.data, &options)?;
    let predictions = predictor.predict(&table)?;
    let scores = predictor.scores(&table, &predictions)?;
    if !args.quiet {
        table.notices.iter().for_each(|notice| note(&format!("note: {notice}")));
        for (name, score, rows) in scores {
            note(&format!("{name} {} over {rows} rows with a target", short(score)));
        }
    }
    match &args.output {
        Some(file) => write_bytes(file, predictions.to_csv().as_bytes())?,
        None => emit(|out| out.write_all(predictions.to_csv().as_bytes()))?,
    }
    Ok(())
}
