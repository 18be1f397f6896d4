//! Which rows are probably bad, and how many: the ones that stand out at the chosen age.

mod fraction;

use fraction::LabelOdds;
pub use fraction::{NoiseFraction, noise_fraction};

use crate::judge::{Distances, FLAG, Yardstick, efficiency};
use crate::loss::{Loss, TargetKind};
use crate::path::{Cause, Knot, Path, Point};
use crate::prepare::Prepared;
use crate::problem::Problem;
use crate::select::theta;
use serde::{Deserialize, Serialize};

/// One row, as seen at the chosen age.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suspect {
    /// Row number in the file, counted from 0.
    pub row: usize,
    /// How far the row stands out; above 1 is flagged. Numbers: |r|/(kσ) with σ the robust scale of the residuals and k the cut-off.
    /// Classes: the normal deviate of the same rarity as the row's label, over the same cut-off. By a path that did not see
    /// the row where there is one, so that a row does not vouch for itself.
    pub score: f64,
    /// The largest age at which the row is still in the zone of the largest losses: infinite if it is there at the
    /// largest age of the path, 0 if it never is on the path.
    pub entry_age: f64,
    /// Its weight.
    pub weight: f64,
    /// Its loss, in the solver's units.
    pub loss: f64,
    /// Its target, in the user's units.
    pub target: String,
    /// What the model predicts, in the user's units.
    pub prediction: String,
    /// Its loss by a path that did not see it, where there is one.
    pub held_out_loss: Option<f64>,
    /// What that path predicts for it, in the user's units.
    pub held_out_prediction: Option<String>,
    /// How far out it lies in X, where that was measured: its robust distance over the cut-off; above 1 is far out.
    #[serde(default)]
    pub leverage: Option<f64>,
}

impl Suspect {
    /// What the row is, in a word or two; nothing where it neither stands out nor lies far out.
    pub fn kind(&self) -> &'static str {
        match (self.score > 1.0, self.leverage.is_some_and(|l| l > 1.0)) {
            (true, true) => "bad leverage",
            (true, false) => "outlier",
            (false, true) => "good leverage",
            (false, false) => "",
        }
    }
}

/// What scores are measured with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The robust scale of the residuals, in the user's units; numbers only.
    pub sigma: Option<f64>,
    /// A row is flagged beyond this many standard deviations.
    pub cutoff: f64,
    /// Rows that are flagged.
    pub flagged: usize,
    /// The last threshold of the pacing as a cut-off in scales, c = √λ/σ for linear and hard pacing; squared loss only.
    pub cut: Option<f64>,
    /// The information that this cut-off keeps where all errors are normal.
    pub efficiency: Option<f64>,
}

/// All rows that have a target, most suspicious first, and what their scores are measured with. `judged` says where rows lie in X and
/// what residuals are measured with, where that is known; `held_out` are the predictors of paths that did not see the row, one
/// per training row.
pub(crate) fn rank(
    prepared: &Prepared,
    path: &Path,
    point: &Point,
    judged: Option<(&Distances, Yardstick)>,
    held_out: Option<&[f64]>,
) -> (Vec<Suspect>, Standing) {
    let (problem, train, scaling) = (&prepared.problem, &prepared.train, &prepared.scaling);
    let entry = entry_ages(problem, path);
    let z = problem.predict(&point.theta(problem));
    let scale = Scale::new(prepared, held_out.unwrap_or(&z), judged.map(|(_, stick)| stick));
    let leverage = judged.filter(|(d, _)| d.columns > 0).map(|(d, _)| d);
    let each = (0..problem.rows()).map(|i| Suspect {
        row: train.rows()[i],
        score: scale.score(problem.loss(), held_out.unwrap_or(&z)[i], problem.target()[i]),
        entry_age: entry[i],
        weight: point.weights[i],
        loss: point.losses[i],
        target: train.label(train.y()[i]),
        prediction: train.label(scaling.predict(problem.loss().response(z[i]))),
        held_out_loss: held_out.map(|z| problem.loss().at(z[i], problem.target()[i]).value),
        held_out_prediction: held_out.map(|z| train.label(scaling.predict(problem.loss().response(z[i])))),
        leverage: leverage.map(|d| (d.square[i] / d.cutoff).sqrt()),
    });
    let mut list: Vec<Suspect> = each.collect();
    list.extend(held_rows(prepared, point, &scale));
    let flagged = list.iter().filter(|s| s.score > 1.0).count();
    let standing = scale.standing(prepared, point.age, flagged);
    (sorted(list), standing)
}

/// What the score of a row is measured with.
enum Scale {
    Numbers(Yardstick),
    Classes(LabelOdds),
}

impl Scale {
    fn new(prepared: &Prepared, z: &[f64], stick: Option<Yardstick>) -> Scale {
        let problem = &prepared.problem;
        let (y, counts) = (problem.target(), &problem.counts);
        if problem.loss().target() == TargetKind::Sign {
            return Scale::Classes(LabelOdds::new(z, y, counts));
        }
        let residuals: Vec<f64> = z.iter().zip(y).map(|(&z, &y)| problem.loss().residual(z, y)).collect();
        // In kernel space there are as many parameters as rows, and the penalty is what bounds them.
        let parameters = if problem.kernel().is_some() { 0 } else { problem.parameters() };
        Scale::Numbers(stick.unwrap_or_else(|| Yardstick::new(&residuals, counts, parameters)))
    }

    fn score(&self, loss: &dyn Loss, z: f64, y: f64) -> f64 {
        match self {
            Scale::Numbers(stick) => stick.score(loss.residual(z, y)),
            Scale::Classes(odds) => odds.deviate(z, y) / FLAG,
        }
    }

    fn standing(&self, prepared: &Prepared, age: f64, flagged: usize) -> Standing {
        let Scale::Numbers(stick) = self else {
            return Standing { sigma: None, cutoff: FLAG, flagged, cut: None, efficiency: None };
        };
        let pacing = prepared.problem.pacing();
        let squared = prepared.spec.loss == "squared" && stick.sigma > 0.0;
        let threshold = pacing.cuts(1.0 / age).as_slice().last().map(|cut| 1.0 / cut.value);
        Standing {
            sigma: Some(stick.sigma * prepared.scaling.y_scale),
            cutoff: stick.cutoff,
            flagged,
            cut: threshold.filter(|_| squared).map(|t| t.sqrt() / stick.sigma),
            efficiency: squared.then(|| efficiency(pacing, age, stick.sigma)),
        }
    }
}

/// The validation rows, if they are rows of the same file: they are judged like all others.
fn held_rows(prepared: &Prepared, point: &Point, scale: &Scale) -> Vec<Suspect> {
    let (problem, scaling) = (&prepared.problem, &prepared.scaling);
    let Some(held) = prepared.validation.as_ref().filter(|held| held.name() == prepared.train.name()) else {
        return Vec::new();
    };
    let rows = scaling.design(held.matrix(), problem.has_intercept()).and_then(|design| problem.new_rows(design));
    // The same rows were scored to choose the age.
    let Ok(rows) = rows else { return Vec::new() };
    let z = rows.predict(&point.theta(problem));
    let y = scaling.y(held);
    let each = (0..held.len()).map(|i| {
        let loss = problem.loss().at(z[i], y[i]).value;
        let prediction = held.label(scaling.predict(problem.loss().response(z[i])));
        Suspect {
            row: held.rows()[i],
            score: scale.score(problem.loss(), z[i], y[i]),
            entry_age: 0.0,
            weight: problem.pacing().weight(loss, 1.0 / point.age),
            loss,
            target: held.label(held.y()[i]),
            prediction: prediction.clone(),
            held_out_loss: Some(loss),
            held_out_prediction: Some(prediction),
            leverage: None,
        }
    });
    each.collect()
}

/// Most suspicious first: by score, ties by entry age.
pub(crate) fn sorted(mut list: Vec<Suspect>) -> Vec<Suspect> {
    list.sort_by(|a, b| {
        let by_score = b.score.total_cmp(&a.score);
        by_score.then(b.entry_age.total_cmp(&a.entry_age))
    });
    list
}

/// For each row the largest age at which it is still in the zone of the largest losses; see [`Suspect::entry_age`].
pub fn entry_ages(problem: &Problem, path: &Path) -> Vec<f64> {
    let Some(top) = path.knots.iter().max_by(|a, b| a.age.total_cmp(&b.age)) else {
        return vec![0.0; problem.rows()];
    };
    let mut out = vec![0.0f64; problem.rows()];
    let last = problem.pacing().zones().last().copied().unwrap_or_default();
    for event in &path.events {
        if let Cause::Sample { index, from, to } = event.cause
            && (from == last || to == last)
        {
            out[index] = out[index].max(event.age);
        }
    }
    // A jump may move many rows at once; only both of its sides tell which.
    for pair in path.knots.windows(2).filter(|p| p[0].age == p[1].age) {
        let [before, after] = [&pair[0], &pair[1]].map(|knot| in_last_zone(problem, knot));
        for (i, entry) in out.iter_mut().enumerate() {
            if before[i] != after[i] {
                *entry = entry.max(pair[0].age);
            }
        }
    }
    for (i, inside) in in_last_zone(problem, top).into_iter().enumerate() {
        // A row that turns at the largest age itself only touches the threshold there.
        if inside && out[i] < top.age {
            out[i] = f64::INFINITY;
        }
    }
    out
}

fn in_last_zone(problem: &Problem, knot: &Knot) -> Vec<bool> {
    let pacing = problem.pacing();
    let cuts = pacing.cuts(1.0 / knot.age);
    let last = (pacing.zones().len().max(1) - 1) as u8;
    let losses = problem.losses(&theta(problem, &knot.coef, knot.intercept));
    // Without thresholds the weight says who is left out.
    let inside =
        |l: f64| if last > 0 { cuts.zone(l) == last } else { pacing.weight(l, 1.0 / knot.age) <= pacing.left_out() };
    losses.into_iter().map(inside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Dataset, ReadOptions, builtin};
    use crate::model::{Model, Strength};
    use crate::pacing::{Linear, Pacing};
    use crate::path::{Certificate, Direction, End, Event, Kind, PathOptions, Work, age_path};
    use crate::prepare::{PrepareOptions, Validation, prepare, prepare_rows};
    use crate::problem::Spec;
    use crate::space::Design;
    use std::ops::ControlFlow;

    /// Four rows of one feature without intercept; the losses at w = 0 are 1, 4, 9 and 16.
    fn problem() -> Problem {
        let design = Design::from_row_major(4, 1, &[1.0; 4], false).unwrap();
        let model = Model::by_name("lasso").unwrap();
        let spec = Spec::preset(model, &Strength::default(), Linear.spec());
        Problem::new(design, vec![1.0, 2.0, 3.0, 4.0], None, false, &spec).unwrap()
    }

    fn knot(age: f64) -> Knot {
        Knot { age, coef: vec![0.0], intercept: 0.0 }
    }

    /// A made-up path with w = 0 throughout, between ages 2 and 10.
    fn path() -> Path {
        let turn = |age, index| Event {
            age,
            kind: Kind::Turning,
            cause: Cause::Sample { index, from: "E", to: "D" },
            size: 0.0,
            drop: 0.0,
        };
        Path {
            ages: (2.0, 10.0),
            direction: Direction::Down,
            knots: vec![knot(10.0), knot(9.0), knot(4.0), knot(2.0)],
            events: vec![turn(9.0, 2), turn(4.0, 1)],
            gaps: Vec::new(),
            notes: Vec::new(),
            certificate: Certificate::default(),
            work: Work::default(),
            end: End::Complete,
        }
    }

    #[test]
    fn entry_ages_by_hand() {
        let ages = entry_ages(&problem(), &path());
        assert_eq!(ages, [0.0, 4.0, 9.0, f64::INFINITY]);
    }

    /// A constant model of 20 rows, one of them far off; the other rows are ±1 around it in the user's units.
    #[test]
    fn scores_are_residuals_in_robust_scales() {
        let y: Vec<f64> = (0..20).map(|i| if i == 7 { 90.0 } else { 50.0 + f64::from(i % 5) - 2.0 }).collect();
        let x = (0..20).map(|i| f64::from(i % 4)).collect();
        let data = Dataset::new(vec!["a".into()], "y".into(), x, y, None).unwrap();
        let options = PrepareOptions { validation: Validation::None, ..PrepareOptions::default() };
        let prepared = prepare_rows(data, Model::by_name("lasso").unwrap(), &options, Vec::new()).unwrap();
        let problem = &prepared.problem;
        let path = PathOptions { ages: (0.5, 800.0), certify: Some(0), ..PathOptions::default() };
        let path = age_path(problem, &path, &mut |_| ControlFlow::Continue(())).unwrap();
        let point = path.at(problem, 20.0).unwrap();
        let (list, standing) = rank(&prepared, &path, &point, None, None);
        assert_eq!((list.len(), list[0].row, list[0].kind(), standing.flagged), (20, 7, "outlier", 1));
        assert_eq!(list[0].target, "90");
        let sigma = standing.sigma.unwrap();
        for s in &list {
            let residual = s.target.parse::<f64>().unwrap() - s.prediction.parse::<f64>().unwrap();
            assert!((s.score - residual.abs() / (standing.cutoff * sigma)).abs() < 1e-9, "{s:?}");
        }
        assert!((standing.cut.unwrap() - 20f64.sqrt() * prepared.scaling.y_scale / sigma).abs() < 1e-9);
        // A path without the bad row would have met it: by what that one says it does not stand out.
        let mut held_out = problem.predict(&point.theta(problem));
        held_out[7] = problem.target()[7];
        let (list, _) = rank(&prepared, &path, &point, None, Some(&held_out));
        assert_eq!(list.iter().find(|s| s.row == 7).unwrap().score, 0.0);
    }

    /// Rows that were set aside are judged like all others.
    #[test]
    fn held_out_rows_of_the_same_file_are_in_the_list() {
        let table = builtin("diabetes", &ReadOptions::default()).unwrap();
        let prepared = prepare(&table, &PrepareOptions::default()).unwrap();
        let held = prepared.validation.as_ref().unwrap().len();
        assert!(held > 0);
        let path = PathOptions { ages: (1.0, 60.0), certify: Some(0), ..PathOptions::default() };
        let path = age_path(&prepared.problem, &path, &mut |_| ControlFlow::Continue(())).unwrap();
        let point = path.at(&prepared.problem, 10.0).unwrap();
        let (list, _) = rank(&prepared, &path, &point, None, None);
        let mut rows: Vec<usize> = list.iter().map(|s| s.row).collect();
        rows.sort_unstable();
        assert_eq!(rows, (0..442).collect::<Vec<_>>());
    }
}
