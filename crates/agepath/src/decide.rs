//! From a path to a decision: the age, the solution there, and the rows to look at.

use crate::dataset::Folds;
use crate::error::{Breakdown, Error, Result};
use crate::judge::{Distances, Yardstick, plain_selection};
use crate::loss::TargetKind;
use crate::path::{Path, PathOptions, Point, Progress, age_path};
use crate::prepare::{Prepared, ages_above, default_ages};
use crate::problem::Problem;
use crate::select::{self, Holdout, JudgeBy, Metric, Rule, Scorer, Selection, cross_validate};
use crate::solver;
use crate::suspects::{self, NoiseFraction, Standing, Suspect, noise_fraction};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Instant;

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

    /// Whether anything that is asked for needs held-out rows: folds, a metric, a score, or a rule about their errors.
    pub(crate) fn is_about_rows(&self) -> bool {
        self.folds.is_some() || self.metric.is_some() || self.scorer.is_some() || self.rule != Rule::Min
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
    let begun = Instant::now();
    let mut attempt = |ages: (f64, f64)| {
        let left = options.time_limit.map(|limit| limit.saturating_sub(begun.elapsed()));
        let options = PathOptions { ages, ..options.clone() };
        Ok((age_path(problem, &PathOptions { time_limit: left, ..options.clone() }, callback)?, options))
    };
    if let Some(ages) = ages {
        return attempt(ages);
    }
    let ages = default_ages(problem)?;
    announce(ages);
    let broken_off = match attempt(ages) {
        Err(Error::NoSolution { age, reason }) if age.is_finite() && reason != Breakdown::OutOfTime => age,
        Ok((path, _)) if path.ages.0 >= path.ages.1 && !path.end.is_a_limit() => path.ages.1,
        other => return other,
    };
    let ages = ages_above(broken_off);
    announce(ages);
    attempt(ages)
}

/// Why a model was chosen, in words and figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reasons {
    /// The branch that it is on.
    pub branch: String,
    /// Why it was chosen.
    pub why: String,
    /// Whether it is the ordinary fit, which trusts every row; the age is then the largest of the path, and means infinity.
    pub ordinary: bool,
    /// Whether anything judged it: a rule or held-out rows.
    pub judged: bool,
    /// What other branches say, where they differ in more than a few rows.
    pub alternatives: Vec<String>,
}

/// A chosen age and what follows from it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Choice {
    /// How it was chosen.
    pub selection: Selection,
    /// Why.
    pub reasons: Reasons,
    /// The exact solution there.
    pub point: Point,
    /// The rows, most suspicious first.
    pub suspects: Vec<Suspect>,
    /// What their scores are measured with.
    pub standing: Standing,
    /// How many of the training rows are probably wrong.
    pub noise_fraction: Option<NoiseFraction>,
    /// The score of the ordinary fit, which trusts every training row, on the rows that chose.
    pub ordinary_score: Option<f64>,
    /// With folds, for each training row the predictor of the path that did not see it.
    pub held_out: Option<Vec<f64>>,
    /// The same of the ordinary fits.
    pub ordinary_held_out: Option<Vec<f64>>,
}

impl Choice {
    /// A choice of a study.
    pub(crate) fn new(
        prepared: &Prepared,
        path: &Path,
        (point, selection): (Point, Selection),
        reasons: Reasons,
        judged: (&Distances, Yardstick),
    ) -> Choice {
        finish(prepared, path, (point, selection), reasons, (Some(judged), HeldOut::default()))
    }

    /// The ordinary fit in place of this choice, which is of one class of several.
    pub fn better_together(self, prepared: &Prepared, path: &Path) -> Result<Choice> {
        let why = "the ordinary fits of all classes together predict held-out rows better";
        let held_out = Some((self.ordinary_held_out.clone(), self.ordinary_held_out));
        trusting(prepared, path, (why, self.reasons.judged), Some(self.selection), held_out)
    }
}

/// Chooses an age of `path`, which was computed with `path_options`, by folds or validation rows. Where there are neither, where every
/// candidate is degenerate, or where the ordinary fit does better, that is kept; without an ordinary fit the largest age.
/// `callback` watches the paths of the folds and may stop them.
pub fn decide(
    prepared: &Prepared,
    path: &Path,
    path_options: &PathOptions,
    options: &DecideOptions,
    callback: &(dyn Fn(&Progress) -> ControlFlow<()> + Sync),
) -> Result<Choice> {
    let judge = options.judge(prepared.train.kind())?;
    let judged = match &options.folds {
        Some(folds) => by_folds(prepared, path, path_options, (judge, folds, options.rule), callback)?,
        None => by_validation(prepared, path, judge, options.rule)?,
    };
    let asked = options.folds.is_some() || prepared.validation.is_some();
    let Some(Judged { selection, held_out, ordinary_held_out }) = judged else {
        let why = if asked { "no age that held-out rows could judge" } else { "nothing was asked to choose an age" };
        return trusting(prepared, path, (why, false), None, None);
    };
    if selection.prefers_ordinary() {
        let why = (format!("held-out {} is no better at any age", selection.metric), true);
        let held_out = Some((ordinary_held_out.clone(), ordinary_held_out));
        return trusting(prepared, path, (&why.0, why.1), Some(selection), held_out);
    }
    let point = path.at(&prepared.problem, selection.age)?;
    let why = format!("best held-out {}", selection.metric);
    let reasons =
        Reasons { branch: path.direction.name().into(), why, ordinary: false, judged: true, alternatives: Vec::new() };
    Ok(finish(prepared, path, (point, selection), reasons, (None, (held_out, ordinary_held_out))))
}

/// What held-out rows say.
struct Judged {
    selection: Selection,
    held_out: Option<Vec<f64>>,
    ordinary_held_out: Option<Vec<f64>>,
}

fn by_validation(prepared: &Prepared, path: &Path, judge: JudgeBy, rule: Rule) -> Result<Option<Judged>> {
    let problem = &prepared.problem;
    let Some(rows) = &prepared.validation else { return Ok(None) };
    let holdout = judge.holdout(problem, rows, &prepared.scaling)?;
    let Some(mut selection) = select::choose(problem, path, &holdout, rule)? else { return Ok(None) };
    selection.ordinary = ordinary_score(prepared, &holdout)?;
    Ok(Some(Judged { selection, held_out: None, ordinary_held_out: None }))
}

fn by_folds(
    prepared: &Prepared,
    path: &Path,
    path_options: &PathOptions,
    (judge, folds, rule): (JudgeBy, &Folds, Rule),
    callback: &(dyn Fn(&Progress) -> ControlFlow<()> + Sync),
) -> Result<Option<Judged>> {
    // A path that ends where it begins has no other age to choose.
    if path.ages.0 >= path.ages.1 {
        return Ok(None);
    }
    let path_options = PathOptions { ages: path.ages, ..path_options.clone() };
    let cv = match cross_validate(prepared, judge, &path_options, folds, callback) {
        Ok(cv) => cv,
        // A fold without a solution anywhere in the interval: every candidate is degenerate there.
        Err(Error::NoSolution { .. }) => return Ok(None),
        Err(other) => return Err(other),
    };
    let Some(mut selection) = cv.choose(&prepared.problem, path, rule)? else { return Ok(None) };
    let held_out = Some(cv.predict(selection.age)?);
    let (ordinary_held_out, score) = cv.ordinary()?.unzip();
    selection.ordinary = score;
    Ok(Some(Judged { selection, held_out, ordinary_held_out }))
}

/// The ordinary fit, or where there is none the largest age that has a solution.
pub fn trusting(
    prepared: &Prepared,
    path: &Path,
    (why, judged): (&str, bool),
    selection: Option<Selection>,
    held_out: Option<HeldOut>,
) -> Result<Choice> {
    let problem = &prepared.problem;
    let branch = path.direction.name().to_owned();
    let (point, ordinary) = match solver::fit(problem, None) {
        Ok(fit) => (Point::ordinary(problem, path.ages.1, &fit.theta), true),
        Err(Error::NoSolution { .. }) => (largest(problem, path)?, false),
        Err(other) => return Err(other),
    };
    let kept =
        if ordinary { "the ordinary fit is kept" } else { "there is no ordinary fit, so the largest age is kept" };
    let reasons = Reasons { branch, why: format!("{why}: {kept}"), ordinary, judged, alternatives: Vec::new() };
    let selection = match selection {
        Some(selection) => {
            Selection { age: point.age, score: selection.ordinary.unwrap_or(selection.score), ..selection }
        }
        None => plain_selection(select::Candidate { age: point.age, score: 0.0, standard_error: 0.0 }),
    };
    Ok(finish(prepared, path, (point, selection), reasons, (None, held_out.unwrap_or_default())))
}

/// Predictors of training rows by models that did not see them: of what is kept, and of the ordinary fits.
type HeldOut = (Option<Vec<f64>>, Option<Vec<f64>>);

/// The solution at the largest age that has one, which trusts the most rows.
fn largest(problem: &Problem, path: &Path) -> Result<Point> {
    let mut ages: Vec<f64> = path.knots.iter().map(|k| k.age).collect();
    ages.sort_unstable_by(|a, b| b.total_cmp(a));
    let found = ages.iter().find_map(|&age| path.at(problem, age).ok());
    found.map_or_else(|| path.at(problem, path.ages.1), Ok)
}

fn finish(
    prepared: &Prepared,
    path: &Path,
    (point, selection): (Point, Selection),
    reasons: Reasons,
    (judged, (held_out, ordinary_held_out)): (Option<(&Distances, Yardstick)>, HeldOut),
) -> Choice {
    let Inspection { point, suspects, standing, noise_fraction } =
        Inspection::new(prepared, path, point, judged, held_out.as_deref());
    let ordinary_score = selection.ordinary;
    Choice {
        selection,
        reasons,
        point,
        suspects,
        standing,
        noise_fraction,
        ordinary_score,
        held_out,
        ordinary_held_out,
    }
}

/// The age that is kept and what follows from it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Kept {
    /// Chosen.
    Chosen(Box<Choice>),
    /// The user's own.
    Plain(Box<Inspection>),
}

impl Kept {
    /// An age of the user's own.
    pub fn at(prepared: &Prepared, path: &Path, age: f64) -> Result<Kept> {
        Ok(Kept::Plain(Box::new(inspect(prepared, path, age, None)?)))
    }

    /// The ordinary fit, which trusts every row.
    pub fn ordinary(prepared: &Prepared, path: &Path) -> Result<Kept> {
        Ok(Kept::Chosen(Box::new(trusting(prepared, path, ("as it was kept before", true), None, None)?)))
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

/// What an age says about the rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Inspection {
    /// The exact solution there.
    pub point: Point,
    /// The rows, most suspicious first.
    pub suspects: Vec<Suspect>,
    /// What their scores are measured with.
    pub standing: Standing,
    /// How many of the training rows are probably wrong.
    pub noise_fraction: Option<NoiseFraction>,
}

/// Looks at the rows at one age; `held_out` are the predictors of paths that did not see the row, if there are any.
pub fn inspect(prepared: &Prepared, path: &Path, age: f64, held_out: Option<&[f64]>) -> Result<Inspection> {
    Ok(Inspection::new(prepared, path, path.at(&prepared.problem, age)?, None, held_out))
}

impl Inspection {
    /// Looks at the rows at one solution.
    fn new(
        prepared: &Prepared,
        path: &Path,
        point: Point,
        judged: Option<(&Distances, Yardstick)>,
        held_out: Option<&[f64]>,
    ) -> Inspection {
        let (suspects, standing) = suspects::rank(prepared, path, &point, judged, held_out);
        let (problem, kind) = (&prepared.problem, prepared.train.kind());
        let share = match kind {
            TargetKind::Real => {
                let counts: HashMap<usize, f64> =
                    prepared.train.rows().iter().copied().zip(problem.counts.iter().copied()).collect();
                let count = |s: &Suspect| counts.get(&s.row).copied().unwrap_or(1.0);
                let flagged = suspects.iter().filter(|s| s.score > 1.0).map(count).sum();
                let rows: f64 = suspects.iter().map(count).sum();
                Some(NoiseFraction::of_flags(flagged, rows, held_out.is_some()))
            }
            TargetKind::Sign => {
                let rows = (problem.target(), &problem.counts[..]);
                let own = || problem.predict(&point.theta(problem));
                noise_fraction(&held_out.map_or_else(own, <[f64]>::to_vec), rows, held_out.is_some())
            }
        };
        let noise_fraction = share.filter(NoiseFraction::can_be_told);
        Inspection { point, suspects, standing, noise_fraction }
    }
}

/// What held-out rows make of the fit that trusts every training row, where there is one.
fn ordinary_score(prepared: &Prepared, holdout: &Holdout) -> Result<Option<f64>> {
    match solver::fit(&prepared.problem, None) {
        Ok(fit) => Ok(Some(holdout.score(&holdout.predict(&fit.theta)))),
        Err(Error::NoSolution { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}
