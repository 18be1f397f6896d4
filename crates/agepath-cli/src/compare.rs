//! `agepath compare`: baselines and the age-path side by side.

use crate::args::{Talk, choices, metrics, noise_help, pacings};
use crate::output::emit;
use crate::reading::ReadArgs;
use crate::source;
use agepath::baseline::{self, Baseline, CompareOptions, Mospl, MosplOptions, compare};
use agepath::dataset::Noise;
use agepath::loss::LossParameters;
use agepath::model::Strength;
use agepath::pacing::PacingSpec;
use agepath::prepare::{DEFAULT_PACING, PrepareOptions};
use agepath::registry::Values;
use anyhow::{Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::path::PathBuf;

/// Options of `agepath compare`.
#[derive(Args)]
pub struct CompareArgs {
    /// The data, in any format that `agepath path` reads
    data: PathBuf,
    #[command(flatten)]
    reading: ReadArgs,
    /// Penalty strength of the regressions
    #[arg(long, default_value_t = Strength::default().alpha, allow_negative_numbers = true)]
    alpha: f64,
    /// Loss factor of the classifiers
    #[arg(long, default_value_t = LossParameters::default().c(), allow_negative_numbers = true)]
    c: f64,
    /// Pacing
    #[arg(long, default_value = DEFAULT_PACING, value_parser = pacings())]
    pacing: String,
    #[arg(long, value_name = "KIND:RATE", help = noise_help())]
    noise: Option<Noise>,
    /// Random splits; a quarter of the rows is tested on and stays clean
    #[arg(long, value_name = "N", default_value_t = CompareOptions::default().repeats)]
    repeats: usize,
    /// Seed of the first split and its noise
    #[arg(long, default_value_t = PrepareOptions::default().seed)]
    seed: u64,
    /// What is measured on the test rows, and what ages are chosen by [default: mae for numbers, accuracy for classes]
    #[arg(long, value_parser = metrics())]
    metric: Option<String>,
    /// Run only these methods
    #[arg(long, value_name = "METHOD,...", value_delimiter = ',', value_parser = methods())]
    only: Vec<String>,
    /// Leave out these methods
    #[arg(long, value_name = "METHOD,...", value_delimiter = ',', value_parser = methods())]
    skip: Vec<String>,
    /// Generations of MOSPL
    #[arg(long, value_name = "N", default_value_t = MosplOptions::default().generations)]
    generations: usize,
    #[command(flatten)]
    talk: Talk,
}

fn methods() -> PossibleValuesParser {
    let list = baseline::registry();
    choices(list.iter().map(|b| (b.name(), b.summary())))
}

impl CompareArgs {
    fn options(&self) -> Result<CompareOptions> {
        let loss = LossParameters::with_c(self.c);
        let prepare = PrepareOptions {
            model: self.reading.model.clone(),
            strength: Strength { alpha: self.alpha, loss, ..Strength::default() },
            pacing: PacingSpec::by_name(&self.pacing, &Values::default())?,
            noise: self.noise,
            seed: self.seed,
            ..PrepareOptions::default()
        };
        prepare.validate()?;
        Ok(CompareOptions { prepare, metric: self.metric.clone(), repeats: self.repeats, ..CompareOptions::default() })
    }

    fn wants(&self, name: &str) -> bool {
        let among = |list: &[String]| list.iter().any(|n| n == name);
        (self.only.is_empty() || among(&self.only)) && !among(&self.skip)
    }
}

/// Runs the command.
pub fn run(args: &CompareArgs) -> Result<()> {
    let options = args.options()?;
    let table = source::read(&args.data, &args.reading.options()?)?;
    let mospl = Mospl { options: MosplOptions { generations: args.generations, ..MosplOptions::default() } };
    let mut baselines = baseline::registry();
    for b in &mut baselines {
        if b.name() == mospl.name() {
            *b = Box::new(mospl);
        }
    }
    let chosen: Vec<&dyn Baseline> = baselines.iter().map(|b| &**b).filter(|b| args.wants(b.name())).collect();
    if chosen.is_empty() {
        bail!("nothing to compare: --only and --skip leave no method");
    }
    let quiet = args.talk.quiet || !std::io::stderr().is_terminal();
    let bar = ProgressBar::new((options.repeats * chosen.len()) as u64);
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} [{elapsed}]")?);
    let result = compare(&table, &chosen, &options, &mut |repeat, name| {
        if !quiet {
            bar.inc(1);
            bar.set_message(format!("split {}: {name}", repeat + 1));
        }
    });
    if !quiet {
        bar.finish_and_clear();
    }
    let comparison = result?;
    if args.talk.json {
        let text = serde_json::to_string(&comparison)?;
        emit(|out| writeln!(out, "{text}"))?;
    } else if !args.talk.quiet {
        emit(|out| write!(out, "{comparison}"))?;
    }
    Ok(())
}
