//! More than two classes: one path per class, that class against all others. The class with the largest predictor wins.
//!
//! All paths share the rows that train, the rows that validate and the folds, so what they say can be put together.

use crate::dataset::{DEFAULT_FOLDS, Dataset, Encoding, Folds, Injected, ManyClasses, Notice, Table};
use crate::decide::{DecideOptions, Kept};
use crate::error::{Error, Result};
use crate::judge::StudyOptions;
use crate::loss::{self, TargetKind};
use crate::model::Model;
use crate::prepare::{Parts, PrepareOptions, Prepared, Validation, boundary, check_validation, prepare_parts};
use crate::problem::Spec;
use crate::select::JudgeBy;
use crate::solver;
use crate::suspects::{Suspect, sorted};
use serde::Serialize;

/// Rows of several classes, ready to become one problem per class.
#[derive(Debug)]
pub struct OneVsRest {
    /// The training rows, noise included, in the user's units.
    pub train: ManyClasses,
    /// The validation rows.
    pub validation: Option<ManyClasses>,
    /// Noise that was injected.
    pub noise: Option<Injected>,
    /// What the user should know.
    pub notices: Vec<Notice>,
    /// How the columns of the file became features.
    pub encoding: Encoding,
    model: &'static Model,
    spec: Spec,
    options: PrepareOptions,
}

impl OneVsRest {
    /// From a table; none if it has no more than two classes, or if its model is for numbers.
    pub fn from_table(table: &Table, options: &PrepareOptions) -> Result<Option<OneVsRest>> {
        options.validate()?;
        let model = options.model_for(table)?;
        if loss::by_name(model.loss, &options.strength.loss)?.target() != TargetKind::Sign {
            return Ok(None);
        }
        let Some(rows) = table.many_classes()? else { return Ok(None) };
        let classes = OneVsRest::new(rows, model, options, table.notices.clone())?;
        Ok(Some(OneVsRest { encoding: table.encoding.clone(), ..classes }))
    }

    /// From rows; `notices` are passed on.
    pub fn new(
        rows: ManyClasses,
        model: &'static Model,
        options: &PrepareOptions,
        notices: Vec<Notice>,
    ) -> Result<OneVsRest> {
        options.validate()?;
        let spec = options.spec(model)?;
        let (train, validation) = match &options.validation {
            Validation::None => (rows, None),
            Validation::Fraction(share) => rows.split(*share, options.seed).map(|(train, held)| (train, Some(held)))?,
            Validation::Rows(table) => {
                let held = table.many_classes_like(&rows)?;
                check_validation(held.rows())?;
                (rows, Some(held))
            }
        };
        let (train, noise) = match options.noise {
            Some(noise) => {
                let distance = || distances(&train, &spec, options);
                let (train, injected) = noise.inject_classes(&train, options.seed, distance)?;
                (train, Some(injected))
            }
            None => (train, None),
        };
        let encoding = Encoding::numbers(train.rows().features());
        Ok(OneVsRest { train, validation, noise, notices, encoding, model, spec, options: options.clone() })
    }

    /// The names of the classes.
    pub fn names(&self) -> &[String] {
        self.train.names()
    }

    /// The problem of class `k` against all others.
    pub fn prepare(&self, k: usize) -> Result<Prepared> {
        let parts = Parts {
            train: self.train.against_rest(k),
            validation: self.validation.as_ref().map(|held| held.against_rest(k)),
            noise: self.noise.clone(),
        };
        let prepared = prepare_parts(parts, self.model, &self.spec, &self.options)?;
        Ok(Prepared { encoding: self.encoding.clone(), ..prepared })
    }

    /// Refuses what cannot be done with these rows, before any path is computed; the folds are those of [`OneVsRest::folds`].
    pub fn validate(&self, options: &DecideOptions) -> Result<()> {
        let JudgeBy::Metric(metric) = options.judge(TargetKind::Sign)? else { return Ok(()) };
        for k in 0..self.names().len() {
            let train = self.train.against_rest(k);
            if let Some(held) = &self.validation {
                let held = held.against_rest(k);
                metric.check(held.y(), held.weights())?;
            }
            for held in options.folds.iter().map(|f| f.rows(&train, 0)).collect::<Result<Vec<_>>>()?.concat() {
                let held = train.subset(&held);
                metric.check(held.y(), held.weights())?;
            }
        }
        Ok(())
    }

    /// The folds that the paths of all classes share.
    pub fn folds(&self, folds: &Folds, seed: u64) -> Result<Folds> {
        Ok(Folds::Given(self.train.folds(folds, seed)?))
    }

    /// The options of a study with folds that the paths of all classes share, where folds choose.
    pub fn share_folds(&self, options: &StudyOptions, seed: u64) -> Result<StudyOptions> {
        let mut options = options.clone();
        let count = DEFAULT_FOLDS.min(self.train.max_folds());
        let wanted = !options.unchosen && self.validation.is_none() && count > 1;
        let folds = options.decide.folds.take().or(wanted.then_some(Folds::Count(count)));
        options.decide.folds = folds.map(|folds| self.folds(&folds, seed)).transpose()?;
        Ok(options)
    }

    /// How well the paths together predict rows they did not see: the validation rows, or the training rows by folds.
    /// None where a path has no say about them.
    pub fn accuracy(&self, verdicts: &[Verdict]) -> Option<Accuracy> {
        let (rows, held): (_, Option<Vec<&[f64]>>) = match &self.validation {
            Some(rows) => (rows, verdicts.iter().map(|v| v.validation.as_deref()).collect()),
            None => (&self.train, verdicts.iter().map(|v| v.held_out.as_deref()).collect()),
        };
        let (score, standard_error) = share_right(rows, &held?);
        let ordinary: Option<Vec<&[f64]>> = verdicts.iter().map(|v| v.ordinary.as_deref()).collect();
        let ordinary_score = ordinary.map(|z| share_right(rows, &z).0);
        Some(Accuracy { score, standard_error, ordinary_score })
    }

    /// Whether the ordinary fits of all classes together predict rows they did not see better than the ages that were chosen class by
    /// class: an age may be best for its class against the rest, and its predictors yet too large or small beside the others'.
    pub fn prefers_ordinary(&self, verdicts: &[Verdict]) -> bool {
        let better = |a: Accuracy| a.ordinary_score.is_some_and(|ordinary| ordinary > a.score);
        verdicts.len() == self.names().len() && self.accuracy(verdicts).is_some_and(better)
    }
}

/// How far each row is from being told another class by the ordinary fits.
fn distances(train: &ManyClasses, spec: &Spec, options: &PrepareOptions) -> Result<Vec<f64>> {
    let each = (0..train.names().len()).map(|k| boundary(&train.against_rest(k), spec, options));
    let z = each.collect::<Result<Vec<_>>>()?;
    let distance = |i: usize| {
        let mut row: Vec<f64> = z.iter().map(|z| z[i]).collect();
        row.sort_unstable_by(|a, b| b.total_cmp(a));
        row[0] - row[1]
    };
    Ok((0..train.rows().len()).map(distance).collect())
}

/// What the path of one class says, as far as the classes together need it.
#[derive(Debug, Clone)]
pub struct Verdict {
    suspects: Vec<Suspect>,
    /// Predictors of the training rows.
    z: Vec<f64>,
    /// Predictors of the training rows by paths that did not see them.
    held_out: Option<Vec<f64>>,
    /// Predictors of the validation rows.
    validation: Option<Vec<f64>>,
    /// Predictors of the validation rows by the ordinary fit; without such rows, of training rows by ordinary fits that did not see them.
    ordinary: Option<Vec<f64>>,
}

impl Verdict {
    /// At the kept age of one class.
    pub fn new(prepared: &Prepared, kept: &Kept) -> Result<Verdict> {
        let theta = kept.point().theta(&prepared.problem);
        let (validation, ordinary) = match &prepared.validation {
            Some(rows) => (Some(predictors(prepared, rows, &theta)?), ordinary(prepared, rows)?),
            None => (None, kept.choice().and_then(|choice| choice.ordinary_held_out.clone())),
        };
        Ok(Verdict {
            suspects: kept.suspects().to_vec(),
            z: prepared.problem.predict(&theta),
            held_out: kept.choice().and_then(|choice| choice.held_out.clone()),
            validation,
            ordinary,
        })
    }
}

fn predictors(prepared: &Prepared, rows: &Dataset, theta: &[f64]) -> Result<Vec<f64>> {
    let (problem, scaling) = (&prepared.problem, &prepared.scaling);
    Ok(problem.new_rows(scaling.design(rows.matrix(), problem.has_intercept())?)?.predict(theta))
}

/// Predictors of the fit that trusts every training row, where there is one.
fn ordinary(prepared: &Prepared, rows: &Dataset) -> Result<Option<Vec<f64>>> {
    match solver::fit(&prepared.problem, None) {
        Ok(fit) => predictors(prepared, rows, &fit.theta).map(Some),
        Err(Error::NoSolution { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// The share of rows whose class is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Accuracy {
    /// Of all paths at their ages.
    pub score: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Of the ordinary fits, which trust every row.
    pub ordinary_score: Option<f64>,
}

/// The weighted share of rows whose class wins, and its standard error; `z` holds the predictors of each class.
fn share_right(rows: &ManyClasses, z: &[&[f64]]) -> (f64, f64) {
    let (mut right, mut total, mut squares) = (0.0, 0.0, 0.0);
    for i in 0..rows.rows().len() {
        let weight = rows.rows().weight(i);
        total += weight;
        squares += weight * weight;
        if winner(z.iter().map(|z| z[i])) == rows.class(i) {
            right += weight;
        }
    }
    let share = right / total;
    (share, (share * (1.0 - share) * squares).sqrt() / total)
}

/// The class that wins: the largest predictor, of equals the first.
pub fn winner(z: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (k, z) in z.enumerate() {
        if z > best.1 {
            best = (k, z);
        }
    }
    best.0
}

/// Makes the probabilities of the classes, each against all others, sum up to 1; without any, all are equal.
pub fn normalise(p: &mut [f64]) {
    let total: f64 = p.iter().sum();
    let count = p.len() as f64;
    p.iter_mut().for_each(|p| *p = if total > 0.0 { *p / total } else { 1.0 / count });
}

/// The training rows, each as the path sees it that doubts it most, most suspicious first. There is one verdict per class.
pub fn combine(train: &ManyClasses, verdicts: &[Verdict]) -> Vec<Suspect> {
    let rows = train.rows().rows();
    // Row numbers need not be sorted: rows may have been handed over in any order.
    let places: std::collections::HashMap<usize, usize> = rows.iter().enumerate().map(|(i, &row)| (row, i)).collect();
    let mut worst: Vec<Option<&Suspect>> = vec![None; rows.len()];
    for suspect in verdicts.iter().flat_map(|v| &v.suspects) {
        if let Some(&i) = places.get(&suspect.row)
            && worst[i].is_none_or(|seen| suspect.score > seen.score)
        {
            worst[i] = Some(suspect);
        }
    }
    let name = |k: usize| train.names()[k].clone();
    let held_out: Option<Vec<&[f64]>> = verdicts.iter().map(|v| v.held_out.as_deref()).collect();
    let each = worst.into_iter().enumerate().filter_map(|(i, suspect)| {
        Some(Suspect {
            target: name(train.class(i)),
            prediction: name(winner(verdicts.iter().map(|v| v.z[i]))),
            held_out_prediction: held_out.as_ref().map(|z| name(winner(z.iter().map(|z| z[i])))),
            ..suspect?.clone()
        })
    });
    sorted(each.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_predictor_wins_and_the_first_of_equals() {
        assert_eq!(winner([-1.0, 2.0, 0.5].into_iter()), 1);
        assert_eq!(winner([3.0, 1.0, 3.0].into_iter()), 0);
        assert_eq!(winner([f64::NEG_INFINITY; 3].into_iter()), 0);
    }

    #[test]
    fn probabilities_sum_to_one() {
        let (mut some, mut none) = ([0.2, 0.6, 0.2], [0.0; 4]);
        normalise(&mut some);
        normalise(&mut none);
        assert_eq!((some, none), ([0.2, 0.6, 0.2], [0.25; 4]));
    }

    fn suspect(row: usize, score: f64, target: &str) -> Suspect {
        Suspect {
            row,
            score,
            entry_age: 0.0,
            weight: 1.0,
            loss: score,
            target: target.into(),
            prediction: "not u".into(),
            held_out_loss: None,
            held_out_prediction: None,
            leverage: None,
        }
    }

    #[test]
    fn a_row_is_shown_as_the_path_sees_it_that_doubts_it_most() {
        let rows = Dataset::new(vec!["a".into()], "y".into(), vec![0.0; 3], vec![0.0, 1.0, 2.0], None).unwrap();
        let train =
            ManyClasses::new(rows.with_rows(vec![7, 3, 5]).unwrap(), ["u", "v", "w"].map(String::from).to_vec());
        let verdict = |scores: [f64; 3], z: [f64; 3]| Verdict {
            suspects: [7, 3, 5].into_iter().zip(scores).map(|(row, score)| suspect(row, score, "not u")).collect(),
            z: z.to_vec(),
            held_out: None,
            validation: None,
            ordinary: None,
        };
        let verdicts = [
            verdict([0.1, 2.0, 0.3], [1.0, 1.0, -1.0]),
            verdict([0.5, 0.2, 0.1], [0.0, -1.0, -1.0]),
            verdict([0.2, 0.1, 0.9], [-1.0, 0.0, 1.0]),
        ];
        let list = combine(&train.unwrap(), &verdicts);
        let seen: Vec<_> = list.iter().map(|s| (s.row, s.score, &s.target[..], &s.prediction[..])).collect();
        assert_eq!(seen, [(3, 2.0, "v", "u"), (5, 0.9, "w", "w"), (7, 0.5, "u", "u")]);
    }
}
