//! What can be typed after `agepath path`, and the library's options made of it. Choices and defaults are the library's.

use crate::numbers::{LossNumbers, Numbers, PacingNumbers};
use crate::reading::ReadArgs;
use crate::source;
use agepath::dataset::{self, Encoding, Folds, Noise, ReadOptions, TARGET_SCALES, TargetScale};
use agepath::decide::DecideOptions;
use agepath::judge::{Branches, StudyOptions, tuned};
use agepath::loss::LossParameters;
use agepath::model::{self, Strength};
use agepath::pacing::{self, PacingSpec};
use agepath::path::{Direction, PathOptions, Start};
use agepath::prepare::{DEFAULT_PACING, PrepareOptions, Prepared, Validation};
use agepath::registry::Parameter;
use agepath::report::{Overwrite, PlotFormat};
use agepath::select::{METRICS, RULES, Rule};
use agepath::space::{Gamma, KERNELS, KernelChoice, KernelParameters};
use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde::de::{DeserializeOwned, IntoDeserializer, value::Error as NameError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of `agepath path`.
#[derive(Args)]
pub struct PathArgs {
    /// CSV, TSV, LIBSVM, ARFF (all also gzipped), Parquet or NPZ file; `-` is standard input, `builtin:NAME` a data set that
    /// comes with the program
    pub data: PathBuf,
    /// Directory to write to
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Write to the directory even if it holds other things than an earlier result; files of other names are kept
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    reading: ReadArgs,
    /// Penalty strength of the regressions: a number, or `auto` for the one near it that held-out rows like best [default: auto; 0.005
    /// with --validation or --cv]
    #[arg(long, allow_negative_numbers = true)]
    alpha: Option<Tunable>,
    /// Share of L1 in the elastic net
    #[arg(long, default_value_t = Strength::default().l1_ratio, allow_negative_numbers = true)]
    l1_ratio: f64,
    /// Loss factor of the classifiers and of the support vector regressions: a number, or `auto` for the one that held-out rows
    /// like best in linear space [default: 1]
    #[arg(long, allow_negative_numbers = true)]
    c: Option<Tunable>,
    #[command(flatten)]
    loss: LossNumbers,
    /// Kernel, or `none` [default: that of the model: rbf for svm, squared-svm, svr and quantile, none for the others]
    #[arg(long, value_parser = kernels())]
    kernel: Option<String>,
    /// Gamma of the kernel: a number, or `scale` for 1/(columns x variance)
    #[arg(long, default_value_t = KernelParameters::default().gamma, allow_hyphen_values = true)]
    kernel_gamma: Gamma,
    /// Degree of the polynomial kernel
    #[arg(long, default_value_t = KernelParameters::default().degree)]
    kernel_degree: u32,
    /// Constant of the polynomial and the sigmoid kernel
    #[arg(long, default_value_t = KernelParameters::default().coef0, allow_negative_numbers = true)]
    kernel_coef0: f64,
    /// Pacing
    #[arg(long, default_value = DEFAULT_PACING, value_parser = pacings())]
    pacing: String,
    #[command(flatten)]
    pacing_numbers: PacingNumbers,
    /// Age interval [default: from the data, printed]
    #[arg(long, value_name = "LO:HI", value_parser = parse_ages, allow_hyphen_values = true)]
    pub ages: Option<(f64, f64)>,
    /// `down` from the convex problem at infinite age, or `up` from LO [default: down]
    #[arg(long, value_parser = by_name::<Direction>)]
    direction: Option<Direction>,
    /// Where ACS starts when the direction is up: `full`, `zero` or `random` [default: full]
    #[arg(long, value_parser = by_name::<Start>)]
    start: Option<Start>,
    /// Branches of the path to follow: `auto`, `down` from infinite age, `up` from LO, or at most so many
    #[arg(long, value_name = "auto|down|up|N", default_value = "auto", conflicts_with = "direction")]
    branches: Branches,
    /// Seed of split, noise, random start and of the ages that are checked
    #[arg(long, default_value_t = PathOptions::default().seed)]
    seed: u64,
    /// Leave the columns as they are
    #[arg(long)]
    no_standardize: bool,
    /// Fit no intercept (standardised columns are centred all the same)
    #[arg(long)]
    no_intercept: bool,
    /// How a numeric target is scaled
    #[arg(long, default_value = TARGET_SCALES[0].0, value_parser = target_scales())]
    target_scale: String,
    #[arg(long, value_name = "FRACTION|FILE|0", allow_hyphen_values = true, help = validation_help())]
    validation: Option<String>,
    /// Rows that nothing is chosen by; the report draws their score along the path
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,
    /// Choose the age by cross-validation with this many folds; all rows train
    #[arg(long, value_name = "K", conflicts_with = "validation")]
    cv: Option<usize>,
    /// How the age is chosen from the curve of scores
    #[arg(long, default_value = RULES[0].0, value_parser = rules())]
    select: String,
    /// What the age is chosen by [default: mae for numbers, accuracy for classes]
    #[arg(long, value_parser = metrics())]
    metric: Option<String>,
    #[arg(long, value_name = "KIND:RATE", help = noise_help())]
    noise: Option<Noise>,
    /// Also draw path, learning curve and critical points to this file; its ending says which format
    #[arg(long, value_name = "FILE.svg|FILE.png", value_parser = plot_file)]
    pub plot: Option<PathBuf>,
    /// Stop after this many critical points
    #[arg(long, value_name = "N")]
    max_events: Option<usize>,
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, allow_hyphen_values = true)]
    time_limit: Option<Duration>,
    /// Check the path at this many random ages besides its knots [default: 200; 64 with a kernel, where each costs a step]
    #[arg(long, value_name = "N")]
    certify: Option<usize>,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub talk: Talk,
}

/// How much is said, and where.
#[derive(Args, Clone, Copy)]
pub struct Talk {
    /// Say nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
    /// Print summary.json on standard output and nothing else there
    #[arg(long)]
    pub json: bool,
    /// Say more
    #[arg(short, long)]
    pub verbose: bool,
}

impl PathArgs {
    /// Which directories may be written to.
    pub fn overwrite(&self) -> Overwrite {
        if self.force { Overwrite::Anything } else { Overwrite::Results }
    }

    /// The data.
    pub fn table(&self) -> Result<dataset::Table> {
        source::read(&self.data, &self.read_options(None)?)
    }

    /// How the data is read; another file follows the encoding of the first.
    fn read_options(&self, encoding: Option<&Encoding>) -> Result<ReadOptions> {
        Ok(ReadOptions { encoding: encoding.cloned(), ..self.reading.options()? })
    }

    /// What is made of the data, but for the rows that validate.
    pub fn prepare(&self) -> Result<PrepareOptions> {
        let options = PrepareOptions {
            model: self.reading.model.clone(),
            strength: Strength {
                alpha: number(self.alpha, Strength::default().alpha),
                l1_ratio: self.l1_ratio,
                loss: self.loss_parameters(),
            },
            kernel: self.kernel()?,
            pacing: PacingSpec::by_name(&self.pacing, &self.pacing_numbers.0)?,
            intercept: !self.no_intercept,
            standardize: !self.no_standardize,
            target_scale: TargetScale::by_name(&self.target_scale)?,
            validation: Validation::None,
            noise: self.noise,
            seed: self.seed,
        };
        options.validate()?;
        Ok(options)
    }

    /// The problem with the strength that held-out rows like best, where that was asked for.
    pub fn tune(&self, prepared: Prepared) -> Result<Prepared> {
        let asked = if prepared.train.classes().is_some() { self.c } else { self.alpha };
        // Whoever says how the choice is made has said how strong the penalty is, too, unless told otherwise; so for classes.
        let judged_otherwise = self.validation.is_some() || self.cv.is_some() || prepared.train.classes().is_some();
        match asked {
            Some(Tunable::Auto) => Ok(tuned(prepared, self.seed)?),
            None if !judged_otherwise => Ok(tuned(prepared, self.seed)?),
            _ => Ok(prepared),
        }
    }

    fn kernel(&self) -> Result<KernelChoice> {
        let parameters =
            KernelParameters { gamma: self.kernel_gamma, degree: self.kernel_degree, coef0: self.kernel_coef0 };
        let given = parameters != KernelParameters::default();
        match &self.kernel {
            Some(name) => Ok(KernelChoice::by_name(name, &parameters)?),
            // Parameters alone speak of the model's own kernel.
            None if given => Ok(KernelChoice::by_name(KERNELS[0].name, &parameters)?),
            None => Ok(KernelChoice::OfModel),
        }
    }

    fn loss_parameters(&self) -> LossParameters {
        let default = LossParameters::default();
        let c = number(self.c, default.c());
        let with = |out: LossParameters, p: &Parameter| out.with(p, self.loss.0.get(p));
        LossNumbers::list().iter().fold(default, with).with_factor(c)
    }

    /// The test rows, read like `table`.
    pub fn test_table(&self, table: &dataset::Table) -> Result<Option<dataset::Table>> {
        let Some(file) = &self.test else { return Ok(None) };
        source::read(file, &self.read_options(Some(&table.encoding))?).map(Some)
    }

    /// Rows that validate; a file is read like `table`, the data itself.
    pub fn validation(&self, table: &dataset::Table) -> Result<Validation> {
        let Some(text) = &self.validation else {
            return Ok(Validation::None);
        };
        Ok(match text.parse::<f64>() {
            Ok(0.0) => Validation::None,
            Ok(fraction) => Validation::Fraction(fraction),
            Err(_) => {
                let options = self.read_options(Some(&table.encoding))?;
                Validation::Rows(Box::new(source::read(Path::new(text), &options)?))
            }
        })
    }

    /// What is followed, and how the choice is made.
    pub fn study(&self) -> Result<StudyOptions> {
        let decide = DecideOptions {
            metric: self.metric.clone(),
            rule: Rule::by_name(&self.select)?,
            // A metric or a rule is about held-out rows.
            folds: self.cv.map(Folds::Count),
            scorer: None,
        };
        let unchosen = self.validation.as_deref().and_then(|text| text.parse().ok()) == Some(0.0);
        Ok(StudyOptions { ages: self.ages, branches: self.branches, decide, unchosen })
    }

    /// What the tracker is asked for; the ages are checked if they were given.
    pub fn path(&self) -> Result<PathOptions> {
        let default = PathOptions::default();
        let options = PathOptions {
            ages: self.ages.unwrap_or(default.ages),
            direction: self.direction.unwrap_or(default.direction),
            start: self.start.unwrap_or(default.start),
            from: None,
            seed: self.seed,
            max_events: self.max_events,
            time_limit: self.time_limit,
            certify: self.certify,
        };
        options.validate()?;
        Ok(options)
    }
}

/// A number, or to be found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tunable {
    /// By held-out rows.
    Auto,
    /// As it is.
    Given(f64),
}

/// The number that was given, or the one to start from.
fn number(asked: Option<Tunable>, default: f64) -> f64 {
    match asked {
        Some(Tunable::Given(value)) => value,
        Some(Tunable::Auto) | None => default,
    }
}

impl std::str::FromStr for Tunable {
    type Err = std::num::ParseFloatError;

    fn from_str(text: &str) -> Result<Tunable, Self::Err> {
        match text {
            "auto" => Ok(Tunable::Auto),
            _ => text.parse().map(Tunable::Given),
        }
    }
}

/// Choices with a line of help each.
pub fn choices<'a>(list: impl Iterator<Item = (&'static str, &'a str)>) -> PossibleValuesParser {
    list.map(|(name, summary)| PossibleValue::new(name).help(summary.to_owned())).collect::<Vec<_>>().into()
}

/// The models.
pub fn models() -> PossibleValuesParser {
    choices(model::all().into_iter().map(|m| (m.name, m.summary)))
}

fn kernels() -> PossibleValuesParser {
    choices(KernelChoice::names())
}

/// The pacings.
pub fn pacings() -> PossibleValuesParser {
    choices(pacing::REGISTRY.rows().iter().map(|p| (p.name, p.summary)))
}

fn target_scales() -> PossibleValuesParser {
    choices(TARGET_SCALES.iter().map(|(name, _, summary)| (*name, *summary)))
}

fn rules() -> PossibleValuesParser {
    choices(RULES.iter().map(|(name, _, summary)| (*name, *summary)))
}

fn validation_help() -> &'static str {
    "Rows that choose the age: a share of the rows, a file with the same columns, or 0 to choose none and keep the ordinary \
     fit [default: every row trains, and the choice is made without setting any aside]"
}

/// The metrics.
pub fn metrics() -> PossibleValuesParser {
    choices(METRICS.iter().map(|m| (m.name, m.summary)))
}

/// What `--noise` does.
pub fn noise_help() -> String {
    let kinds = dataset::NOISES.iter();
    let kinds: Vec<String> = kinds.map(|(name, _, summary)| format!("{name} ({summary})")).collect();
    format!("Corrupt this share of the training rows first, for studies: {}", kinds.join("; "))
}

/// A choice that the library reads from its files under the same name.
fn by_name<T: DeserializeOwned>(text: &str) -> Result<T, NameError> {
    T::deserialize(text.into_deserializer())
}

fn parse_ages(text: &str) -> Result<(f64, f64), String> {
    let wrong = || "expected LO:HI, two numbers".to_owned();
    let (low, high) = text.split_once(':').ok_or_else(wrong)?;
    let number = |s: &str| s.trim().parse::<f64>().map_err(|_| wrong());
    Ok((number(low)?, number(high)?))
}

/// A file name that the library can draw to.
fn plot_file(text: &str) -> Result<PathBuf, agepath::Error> {
    let path = PathBuf::from(text);
    PlotFormat::of(&path).map(|_| path)
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|e| e.to_string())?;
    Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())
}
