//! From a table to a problem: split, noise, scaling, model, in this order.
//!
//! Noise hits training rows only and comes before the scaling, so the scaling sees what the solver sees.

use crate::dataset::{
    DataError, Dataset, Encoding, Injected, MIN_ROWS, Noise, Notice, Scaling, Table, TargetScale, split,
    weighted_quantile,
};
use crate::error::{Error, Result};
use crate::loss;
use crate::model::{Model, Strength};
use crate::pacing::PacingSpec;
use crate::problem::{Problem, Spec};
use crate::registry::Values;
use crate::solver::{self, AcsOptions};
use crate::space::{Kernel, KernelChoice};

/// Share of the rows that validate unless told otherwise.
pub const VALIDATION_FRACTION: f64 = 0.25;

/// The pacing unless told otherwise.
pub const DEFAULT_PACING: &str = "linear";

/// The default interval of ages starts where this share of the rows of the ordinary fit lies below the last threshold, so
/// that almost everything is excluded there; where that leaves too few rows to hold the fit, the path ends before and says so.
const LOW_QUANTILE: f64 = 0.1;

/// A loss below this share of the worst is none: the accuracy of the fit.
const NO_LOSS: f64 = 1e-6;
/// A fit whose worst loss is below this share of that of θ = 0 is perfect: fits are this exact.
const PERFECT: f64 = 1e-8;

/// The default interval ends this factor above the age where the worst row leaves the last zone, so that every row is in at
/// its upper end.
const HEADROOM: f64 = 1.25;

/// Fits of ACS that tell whether the worst row is still in at the upper end, where weights differ from 1; the path itself
/// will tell exactly.
const LOOKS: usize = 5;

/// Rows that validate.
#[derive(Debug, Clone, PartialEq)]
pub enum Validation {
    /// None: all rows train, and no age is chosen.
    None,
    /// A share of the rows, above 0 and below 1.
    Fraction(f64),
    /// Another table with the same columns.
    Rows(Box<Table>),
}

/// What to make of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct PrepareOptions {
    /// Registry name of the model. Default: by the target, see [`Model::default_for`].
    pub model: Option<String>,
    /// Strengths of penalty and loss.
    pub strength: Strength,
    /// The kernel. Default: that of the model, if it has one; else linear space.
    pub kernel: KernelChoice,
    /// The pacing. Default: [`DEFAULT_PACING`].
    pub pacing: PacingSpec,
    /// Whether the model has an intercept. Default: yes.
    pub intercept: bool,
    /// Whether columns are standardised. Default: yes.
    pub standardize: bool,
    /// How a numeric target is scaled. Default: robust.
    pub target_scale: TargetScale,
    /// Which rows validate. Default: [`VALIDATION_FRACTION`].
    pub validation: Validation,
    /// Noise injected into the training rows. Default: none.
    pub noise: Option<Noise>,
    /// Seed of split and noise. Default 0.
    pub seed: u64,
}

impl Default for PrepareOptions {
    fn default() -> Self {
        let pacing = PacingSpec::by_name(DEFAULT_PACING, &Values::default())
            .expect("the default pacing is in the registry: a test builds this");
        PrepareOptions {
            model: None,
            strength: Strength::default(),
            kernel: KernelChoice::default(),
            pacing,
            intercept: true,
            standardize: true,
            target_scale: TargetScale::default(),
            validation: Validation::Fraction(VALIDATION_FRACTION),
            noise: None,
            seed: 0,
        }
    }
}

impl PrepareOptions {
    /// Refuses values that no data could make sense of, before any data is read.
    pub fn validate(&self) -> Result<()> {
        self.pacing.build()?;
        self.kernel.validate()?;
        let models = match &self.model {
            Some(name) => vec![Model::by_name(name)?],
            None => crate::model::all(),
        };
        for model in models {
            (model.penalty)(&self.strength).validate()?;
            loss::by_name(model.loss, &self.strength.loss)?;
        }
        Ok(())
    }

    /// The model of a table: the one that is named, else by the target.
    pub(crate) fn model_for(&self, table: &Table) -> Result<&'static Model> {
        match &self.model {
            Some(name) => Model::by_name(name),
            None => Ok(Model::default_for(table.guess())),
        }
    }

    /// How the target is scaled; not at all where a link stands between it and the predictor.
    fn target_scale_of(&self, spec: &Spec) -> Result<TargetScale> {
        let scales = loss::by_name(spec.loss, &spec.loss_parameters)?.is_in_units_of_the_target();
        Ok(if scales { self.target_scale } else { TargetScale::None })
    }

    /// What is fitted. Rows of the file cannot validate a precomputed kernel.
    pub(crate) fn spec(&self, model: &'static Model) -> Result<Spec> {
        let preset = Spec::preset(model, &self.strength, self.pacing.clone());
        let spec = Spec { kernel: self.kernel.resolve(preset.kernel), ..preset };
        if spec.kernel == Some(Kernel::Precomputed) && self.validation != Validation::None {
            return Err(Error::Option {
                name: "validation",
                value: "rows of the file".into(),
                expected: "0 with a precomputed kernel: its columns belong to the rows that train".into(),
            });
        }
        Ok(spec)
    }
}

/// Everything a path needs, and everything needed to read it afterwards.
#[derive(Debug)]
pub struct Prepared {
    /// The problem, in the solver's units.
    pub problem: Problem,
    /// Its model.
    pub model: &'static Model,
    /// Its specification.
    pub spec: Spec,
    /// The training rows, noise included, in the user's units.
    pub train: Dataset,
    /// The validation rows, in the user's units.
    pub validation: Option<Dataset>,
    /// From the user's units to the solver's.
    pub scaling: Scaling,
    /// Noise that was injected.
    pub noise: Option<Injected>,
    /// What the user should know.
    pub notices: Vec<Notice>,
    /// How the columns of the file became features.
    pub encoding: Encoding,
}

/// Makes a problem of a table.
pub fn prepare(table: &Table, options: &PrepareOptions) -> Result<Prepared> {
    options.validate()?;
    let model = options.model_for(table)?;
    let data = table.dataset(loss::by_name(model.loss, &options.strength.loss)?.target())?;
    let prepared = prepare_rows(data, model, options, table.notices.clone())?;
    Ok(Prepared { encoding: table.encoding.clone(), ..prepared })
}

/// Makes a problem of rows whose target is of the model's kind; `notices` are passed on.
pub fn prepare_rows(
    data: Dataset,
    model: &'static Model,
    options: &PrepareOptions,
    mut notices: Vec<Notice>,
) -> Result<Prepared> {
    options.validate()?;
    let spec = options.spec(model)?;
    let (train, validation) = divide(data, options)?;
    let (train, noise) = match options.noise {
        Some(noise) => {
            let (train, injected) = noise.inject(&train, options.seed, || boundary(&train, &spec, options))?;
            (train, Some(injected))
        }
        None => (train, None),
    };
    let more = prepare_parts(Parts { train, validation, noise }, model, &spec, options)?;
    notices.extend(more.notices);
    Ok(Prepared { notices, ..more })
}

/// Rows that are divided and corrupted already.
pub(crate) struct Parts {
    pub train: Dataset,
    pub validation: Option<Dataset>,
    pub noise: Option<Injected>,
}

/// Makes a problem of them.
pub(crate) fn prepare_parts(
    Parts { train, validation, noise }: Parts,
    model: &'static Model,
    spec: &Spec,
    options: &PrepareOptions,
) -> Result<Prepared> {
    train.check_target()?;
    // Kernel values are not features.
    let standardize = options.standardize && spec.kernel != Some(Kernel::Precomputed);
    let (scaling, notices) = Scaling::fit(&train, standardize, options.target_scale_of(spec)?);
    let problem = build(&train, &scaling, options.intercept, spec)?;
    let encoding = Encoding::numbers(train.features());
    Ok(Prepared { problem, model, spec: spec.clone(), train, validation, scaling, noise, notices, encoding })
}

/// The decision values of the ordinary fit to clean rows.
pub(crate) fn boundary(data: &Dataset, spec: &Spec, options: &PrepareOptions) -> Result<Vec<f64>> {
    let (scaling, _) = Scaling::fit(data, options.standardize, options.target_scale_of(spec)?);
    let problem = build(data, &scaling, options.intercept, spec)?;
    Ok(problem.predict(&solver::fit(&problem, None)?.theta))
}

fn divide(data: Dataset, options: &PrepareOptions) -> Result<(Dataset, Option<Dataset>)> {
    match &options.validation {
        Validation::None => Ok((data, None)),
        Validation::Fraction(share) => {
            let (train, held) = split(&data, *share, options.seed)?;
            Ok((train, Some(held)))
        }
        Validation::Rows(table) => {
            let held = table.dataset_like(&data)?;
            check_validation(&held)?;
            Ok((data, Some(held)))
        }
    }
}

/// Refuses a file without rows.
pub(crate) fn check_validation(held: &Dataset) -> Result<()> {
    match held.is_empty() {
        true => {
            let file = held.name().to_owned();
            Err(DataError::TooFewRows { file, what: "validation", rows: 0, needed: 1 }.into())
        }
        false => Ok(()),
    }
}

/// The problem of some training rows; the same rows and scaling give the same problem to the last bit.
pub fn build(train: &Dataset, scaling: &Scaling, intercept: bool, spec: &Spec) -> Result<Problem> {
    debug_assert!(train.len() >= MIN_ROWS);
    Problem::new(scaling.design(train.matrix(), intercept)?, scaling.y(train), train.weights(), intercept, spec)
}

/// Ages worth following, from the losses of the ordinary fit: from where a tenth of the rows lies below the last threshold to
/// where all of them do, and still do with the weights they have there.
pub fn default_ages(problem: &Problem) -> Result<(f64, f64)> {
    let ordinary = solver::fit(problem, None)?.theta;
    let (worst, unit) = (worst_loss(problem, &ordinary), worst_loss(problem, &vec![0.0; problem.parameters()]));
    if worst <= PERFECT * unit {
        // A perfect fit has no losses to speak of, only their rounding; the loss of a model that says nothing is an age.
        let age = age_of_threshold(problem, if unit > 0.0 { unit } else { 1.0 });
        return Ok((round_down(age), round_up(HEADROOM * age)));
    }
    // Rows without any loss (beyond the margin, inside the tube) say nothing about ages.
    let losses = problem.losses(&ordinary).into_iter().zip(problem.scale.iter().copied());
    let easy = weighted_quantile(losses.filter(|l| l.0 > NO_LOSS * worst).collect(), LOW_QUANTILE);
    let low = age_of_threshold(problem, easy);
    let high = age_of_threshold(problem, worst).max(low);
    Ok((round_down(low), round_up(age_with_all_rows(problem, ordinary, HEADROOM * high))))
}

/// The loss of the worst row that counts.
fn worst_loss(problem: &Problem, theta: &[f64]) -> f64 {
    let counted = problem.losses(theta).into_iter().zip(&problem.scale).filter(|(_, scale)| **scale > 0.0);
    counted.fold(0.0f64, |worst, (loss, _)| worst.max(loss))
}

/// From `age` upwards, where ACS from the ordinary fit leaves every row within the last threshold. Rows that count less let
/// go of the fit, and their losses grow.
fn age_with_all_rows(problem: &Problem, mut theta: Vec<f64>, mut age: f64) -> f64 {
    let look = AcsOptions { max_fits: 1, ..AcsOptions::default() };
    for _ in 0..LOOKS {
        // An age where there is no fit is shown by the path as well.
        let Ok(next) = solver::acs(problem, age, &theta, &look) else { break };
        theta = next.theta;
        let needed = HEADROOM * age_of_threshold(problem, worst_loss(problem, &theta));
        age = age.max(needed);
    }
    age
}

/// Ages worth following where the path from above breaks off at `age`, before it has reached [`default_ages`]: the
/// decade above it.
pub fn ages_above(age: f64) -> (f64, f64) {
    let low = round_up(HEADROOM * age);
    (low, 10.0 * low)
}

/// The age at which the pacing's last threshold equals `loss`, by bisection in ln u: thresholds grow with the age.
pub(crate) fn age_of_threshold(problem: &Problem, loss: f64) -> f64 {
    let beyond = |u: f64| match problem.pacing().cuts(u).as_slice().last() {
        Some(cut) => cut.value * loss > 1.0,
        None => u * loss > 1.0,
    };
    // Far outside of any age that makes sense, and ln of it still finite.
    let (mut low, mut high) = (-300.0f64, 300.0f64);
    // Each step halves the interval: 60 steps leave less than the rounding of ln u.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if beyond(middle.exp()) {
            high = middle;
        } else {
            low = middle;
        }
    }
    (-low).exp()
}

/// Two significant digits are enough for an interval that is printed and typed again.
fn digit(value: f64) -> f64 {
    10f64.powf(value.log10().floor() - 1.0)
}

pub(crate) fn round_down(value: f64) -> f64 {
    tidy((value / digit(value)).floor() * digit(value))
}

fn round_up(value: f64) -> f64 {
    tidy((value / digit(value)).ceil() * digit(value))
}

/// Through text with two digits, so that no rounding of the powers of ten shows.
fn tidy(value: f64) -> f64 {
    format!("{value:.1e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{ReadOptions, builtin};
    use crate::path::{PathOptions, age_path};
    use std::ops::ControlFlow;

    fn diabetes(options: &PrepareOptions) -> Prepared {
        let table = builtin("diabetes", &ReadOptions::default()).unwrap();
        prepare(&table, options).unwrap()
    }

    #[test]
    fn noise_stays_out_of_the_validation_rows() {
        let clean = diabetes(&PrepareOptions::default());
        let noise = "outliers:0.3".parse().unwrap();
        let dirty = diabetes(&PrepareOptions { noise: Some(noise), ..PrepareOptions::default() });
        assert_eq!(clean.validation, dirty.validation);
        assert_eq!(clean.train.rows(), dirty.train.rows());
        let hit = &dirty.noise.as_ref().unwrap().rows;
        assert!(hit.iter().all(|row| dirty.train.rows().contains(row)));
        assert_eq!(hit.len(), (0.3 * dirty.train.len() as f64).round() as usize);
    }

    #[test]
    fn wrong_options_are_refused_before_any_data() {
        let strength = Strength { alpha: -1.0, ..Strength::default() };
        let options = PrepareOptions { strength, ..PrepareOptions::default() };
        assert!(matches!(options.validate(), Err(Error::Option { name: "alpha", .. })));
    }

    #[test]
    fn thresholds_and_ages_match_for_every_pacing() {
        for row in crate::pacing::REGISTRY.rows() {
            let pacing = PacingSpec::by_name(row.name, &Values::default()).unwrap();
            let prepared = diabetes(&PrepareOptions { pacing, ..PrepareOptions::default() });
            let age = age_of_threshold(&prepared.problem, 2.0);
            let cuts = prepared.problem.pacing().cuts(1.0 / age);
            let last = cuts.as_slice().last().unwrap().value;
            assert!((2.0 * last - 1.0).abs() < 1e-10, "{}", row.name);
        }
    }

    /// At the lower end almost every row is left out, at the upper end none is.
    #[test]
    fn default_ages_go_from_almost_nothing_to_everything() {
        for (name, noise) in [("diabetes", None), ("diabetes", Some("outliers:0.3")), ("diabetes", Some("target:0.3"))]
        {
            for pacing in ["hard", "linear", "mixture"] {
                let pacing = PacingSpec::by_name(pacing, &Values::default()).unwrap();
                let table = builtin(name, &ReadOptions::default()).unwrap();
                let noise = noise.map(|n| n.parse().unwrap());
                let options = PrepareOptions {
                    noise,
                    pacing: pacing.clone(),
                    validation: Validation::None,
                    ..PrepareOptions::default()
                };
                let problem = prepare(&table, &options).unwrap().problem;
                let ages = default_ages(&problem).unwrap();
                let options = PathOptions { ages, certify: Some(0), ..PathOptions::default() };
                let path = age_path(&problem, &options, &mut |_| ControlFlow::Continue(())).unwrap();
                let excluded = |age: f64| {
                    let weights = path.at(&problem, age).unwrap().weights;
                    weights.iter().filter(|&&v| v == 0.0).count() as f64 / weights.len() as f64
                };
                let (low, high) = path.ages;
                assert!(excluded(low) > 0.8, "{pacing:?} {noise:?}: {} excluded at {low}", excluded(low));
                assert_eq!(excluded(high), 0.0, "{pacing:?} {noise:?} at {high}");
            }
        }
    }

    #[test]
    fn classes_are_all_in_at_the_upper_end() {
        for model in ["logistic", "svm"] {
            let table = builtin("breast_cancer", &ReadOptions::default()).unwrap();
            let noise = Some("flip:0.2".parse().unwrap());
            let options = PrepareOptions { model: Some(model.into()), noise, ..PrepareOptions::default() };
            let problem = prepare(&table, &options).unwrap().problem;
            let (_, high) = default_ages(&problem).unwrap();
            let options = PathOptions { ages: (0.9 * high, high), certify: Some(0), ..PathOptions::default() };
            let path = age_path(&problem, &options, &mut |_| ControlFlow::Continue(())).unwrap();
            assert!(path.at(&problem, high).unwrap().weights.iter().all(|&v| v > 0.0), "{model}");
        }
    }

    #[test]
    fn ages_are_rounded_outwards() {
        assert_eq!(round_up(1.21), 1.3);
        assert_eq!(round_down(0.0567), 0.056);
    }
}
