//! From a path to a decision: the age, the solution there, and the rows to look at.

use crate::dataset::Folds;
use crate::error::{Error, Result};
use crate::loss::TargetKind;
use crate::path::{Path, PathOptions, Point, Progress, age_path};
use crate::prepare::{Prepared, ages_above, default_ages};
use crate::problem::Problem;
use crate::select::{self, Holdout, JudgeBy, Metric, Rule, Scorer, Selection, cross_validate};
use crate::solver;
use crate::suspects::{self, NoiseFraction, Suspect, noise_fraction};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// How the age is chosen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DecideOptions {
    /// Name of the metric. Default: the first in the registry for the kind of target.
    pub metric: Option<String>,
    /// Default: the best score.
    pub rule: Rule,
    /// Folds of a cross-validation over the training rows. Default: none, the validation rows judge.
    pub folds: Option<Folds>,
    /// A score of the caller's own instead of a metric. Default: none.
    pub scorer: Option<Scorer>,
}

impl DecideOptions {
    /// Refuses what cannot be done with these rows, before any path is computed.
    pub fn validate(&self, prepared: &Prepared) -> Result<()> {
        let judge = self.judge(prepared.train.kind())?;
        if let Some(rows) = &prepared.validation {
            judge.holdout(&prepared.problem, rows, &prepared.scaling)?;
        }
        if let Some(folds) = &self.folds {
            for held in folds.rows(&prepared.train, 0)? {
                judge.holdout(&prepared.problem, &prepared.train.subset(&held), &prepared.scaling)?;
            }
        }
        Ok(())
    }

    /// What held-out rows are judged by.
    pub(crate) fn judge(&self, kind: TargetKind) -> Result<JudgeBy<'_>> {
        match &self.scorer {
            Some(scorer) => Ok(JudgeBy::Own(scorer)),
            None => Metric::choose(self.metric.as_deref(), kind).map(JudgeBy::Metric),
        }
    }
}

/// Follows the path of a problem over `ages`, or over an interval from the data, which `announce` is told beforehand; where the
/// path from above breaks off before it reaches that interval, the decade above is followed. Returns the path and the
/// options it was computed with.
pub fn follow(
    problem: &Problem,
    options: &PathOptions,
    ages: Option<(f64, f64)>,
    announce: &mut dyn FnMut((f64, f64)),
    callback: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<(Path, PathOptions)> {
    let mut attempt = |ages: (f64, f64)| {
        let options = PathOptions { ages, ..options.clone() };
        Ok((age_path(problem, &options, callback)?, options))
    };
    if let Some(ages) = ages {
        return attempt(ages);
    }
    let ages = default_ages(problem)?;
    announce(ages);
    let broken_off = match attempt(ages) {
        Err(Error::NoSolution { age, .. }) if age.is_finite() => age,
        Ok((path, _)) if path.ages.0 >= path.ages.1 => path.ages.1,
        other => return other,
    };
    let ages = ages_above(broken_off);
    announce(ages);
    attempt(ages)
}

/// A chosen age and what follows from it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Choice {
    /// How it was chosen.
    pub selection: Selection,
    /// The exact solution there.
    pub point: Point,
    /// The training rows, most suspicious first.
    pub suspects: Vec<Suspect>,
    /// How many of the training rows are probably wrong.
    pub noise_fraction: Option<NoiseFraction>,
    /// The score of the ordinary fit, which trusts every training row, on the validation rows.
    pub ordinary_score: Option<f64>,
    /// With folds, for each training row the predictor of the path that did not see it.
    pub held_out: Option<Vec<f64>>,
}

/// Chooses an age of `path`, which was computed with `path_options`, by folds or validation rows; none if there are
/// neither, or if every candidate is degenerate. `callback` watches the paths of the folds and may stop them.
pub fn decide(
    prepared: &Prepared,
    path: &Path,
    path_options: &PathOptions,
    options: &DecideOptions,
    callback: &(dyn Fn(&Progress) -> ControlFlow<()> + Sync),
) -> Result<Option<Choice>> {
    let problem = &prepared.problem;
    let judge = options.judge(prepared.train.kind())?;
    let holdout = |rows| judge.holdout(problem, rows, &prepared.scaling);
    let holdout = prepared.validation.as_ref().map(holdout).transpose()?;
    let (selection, held_out) = match (&options.folds, &holdout) {
        // A path that ends where it begins has no other age to choose.
        (Some(_), _) if path.ages.0 >= path.ages.1 => (None, None),
        (Some(folds), _) => {
            let path_options = PathOptions { ages: path.ages, ..path_options.clone() };
            match cross_validate(prepared, judge, &path_options, folds, callback) {
                Ok(cv) => {
                    let selection = cv.choose(problem, path, options.rule)?;
                    let held_out = selection.as_ref().map(|s| cv.predict(s.age)).transpose()?;
                    (selection, held_out)
                }
                // A fold without a solution anywhere in the interval: every candidate is degenerate there.
                Err(Error::NoSolution { .. }) => (None, None),
                Err(other) => return Err(other),
            }
        }
        (None, Some(holdout)) => (select::choose(problem, path, holdout, options.rule)?, None),
        (None, None) => (None, None),
    };
    let Some(selection) = selection else { return Ok(None) };
    let Inspection { point, suspects, noise_fraction } = inspect(prepared, path, selection.age, held_out.as_deref())?;
    let ordinary_score = holdout.map(|h| ordinary_score(prepared, &h)).transpose()?.flatten();
    Ok(Some(Choice { selection, point, suspects, noise_fraction, ordinary_score, held_out }))
}

/// The age that is kept and what follows from it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Kept {
    /// Chosen by held-out rows.
    Chosen(Box<Choice>),
    /// The user's own, or the largest where none could be chosen.
    Plain(Box<Inspection>),
}

impl Kept {
    /// An age of the user's own.
    pub fn at(prepared: &Prepared, path: &Path, age: f64) -> Result<Kept> {
        Ok(Kept::Plain(Box::new(inspect(prepared, path, age, None)?)))
    }

    /// What was chosen, or else the largest age that has a solution, which trusts the most rows.
    pub fn or_largest(choice: Option<Choice>, prepared: &Prepared, path: &Path) -> Result<Kept> {
        if let Some(choice) = choice {
            return Ok(Kept::Chosen(Box::new(choice)));
        }
        let mut ages: Vec<f64> = path.knots.iter().map(|k| k.age).collect();
        ages.sort_unstable_by(|a, b| b.total_cmp(a));
        let found = ages.iter().find_map(|&age| Kept::at(prepared, path, age).ok());
        found.map_or_else(|| Kept::at(prepared, path, path.ages.1), Ok)
    }

    /// The exact solution there.
    pub fn point(&self) -> &Point {
        match self {
            Kept::Chosen(choice) => &choice.point,
            Kept::Plain(inspection) => &inspection.point,
        }
    }

    /// The training rows, most suspicious first.
    pub fn suspects(&self) -> &[Suspect] {
        match self {
            Kept::Chosen(choice) => &choice.suspects,
            Kept::Plain(inspection) => &inspection.suspects,
        }
    }

    /// How many of the training rows are probably wrong.
    pub fn noise_fraction(&self) -> Option<NoiseFraction> {
        match self {
            Kept::Chosen(choice) => choice.noise_fraction,
            Kept::Plain(inspection) => inspection.noise_fraction,
        }
    }

    /// How it was chosen, if it was.
    pub fn choice(&self) -> Option<&Choice> {
        match self {
            Kept::Chosen(choice) => Some(choice),
            Kept::Plain(_) => None,
        }
    }
}

/// What an age says about the training rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Inspection {
    /// The exact solution there.
    pub point: Point,
    /// The training rows, most suspicious first.
    pub suspects: Vec<Suspect>,
    /// How many of the training rows are probably wrong.
    pub noise_fraction: Option<NoiseFraction>,
}

/// Looks at the training rows at one age; `held_out` are the predictors of paths that did not see the row, if there are any.
pub fn inspect(prepared: &Prepared, path: &Path, age: f64, held_out: Option<&[f64]>) -> Result<Inspection> {
    let problem = &prepared.problem;
    let point = path.at(problem, age)?;
    let suspects = suspects::rank(problem, path, &point, (&prepared.train, &prepared.scaling), held_out);
    let kind = prepared.train.kind();
    let rows = (problem.target(), &problem.counts[..]);
    let noise_fraction = match held_out {
        Some(z) => noise_fraction(z, rows, kind, true),
        None => noise_fraction(&problem.predict(&point.theta(problem)), rows, kind, false),
    };
    Ok(Inspection { point, suspects, noise_fraction })
}

/// What held-out rows make of the fit that trusts every training row, where there is one.
fn ordinary_score(prepared: &Prepared, holdout: &Holdout) -> Result<Option<f64>> {
    match solver::fit(&prepared.problem, None) {
        Ok(fit) => Ok(Some(holdout.score(&holdout.predict(&fit.theta)))),
        Err(Error::NoSolution { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}
