//! Which training rows are probably bad, and how many: the ones that fit worst at the chosen age.

mod fraction;

pub use fraction::{NoiseFraction, noise_fraction};

use crate::dataset::{Dataset, Scaling};
use crate::path::{Cause, Knot, Path, Point};
use crate::problem::Problem;
use crate::select::theta;
use serde::{Deserialize, Serialize};

/// One training row, as seen at the chosen age.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suspect {
    /// Row number in the file, counted from 0.
    pub row: usize,
    /// Loss divided by the pacing's last threshold; the loss by a path that did not see the row where there is one, so
    /// that a row does not vouch for itself, else the loss at the chosen age.
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
}

/// All training rows, most suspicious first. `held_out` are the predictors
/// of paths that did not see the row, one per training row.
pub fn rank(
    problem: &Problem,
    path: &Path,
    point: &Point,
    (train, scaling): (&Dataset, &Scaling),
    held_out: Option<&[f64]>,
) -> Vec<Suspect> {
    let entry = entry_ages(problem, path);
    let u = 1.0 / point.age;
    let cuts = problem.pacing().cuts(u);
    // A pacing without thresholds compares losses with the age itself.
    let last = cuts.as_slice().last().map_or(u, |cut| cut.value);
    let z = problem.predict(&theta(problem, &point.coef, point.intercept));
    let each = (0..problem.rows()).map(|i| {
        let held_out_loss = held_out.map(|z| problem.loss().at(z[i], problem.target()[i]).value);
        Suspect {
            row: train.rows()[i],
            score: held_out_loss.unwrap_or(point.losses[i]) * last,
            entry_age: entry[i],
            weight: point.weights[i],
            loss: point.losses[i],
            target: train.label(train.y()[i]),
            prediction: train.label(scaling.predict(z[i])),
            held_out_loss,
            held_out_prediction: held_out.map(|z| train.label(scaling.predict(z[i]))),
        }
    });
    sorted(each.collect())
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
    losses.iter().map(|&l| cuts.zone(l) == last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Model, Strength};
    use crate::pacing::PacingSpec;
    use crate::path::{Certificate, Direction, End, Event, Kind, Work};
    use crate::problem::Spec;
    use crate::space::Design;

    /// Four rows of one feature without intercept; the losses at w = 0 are 1, 4, 9 and 16.
    fn problem() -> Problem {
        let design = Design::from_row_major(4, 1, &[1.0; 4], false).unwrap();
        let model = Model::by_name("lasso").unwrap();
        let spec = Spec::preset(model, &Strength::default(), PacingSpec::Linear);
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

    #[test]
    fn worst_rows_come_first_in_the_users_units() {
        let (problem, path) = (problem(), path());
        let names = vec!["a".to_owned()];
        let y = vec![30.0, 40.0, 50.0, 60.0];
        let train = Dataset::new(names, "y".into(), vec![1.0; 4], y, None).unwrap();
        let scaling = Scaling { x_mean: None, x_scale: None, y_shift: 20.0, y_scale: 10.0 };
        let point = Point {
            age: 5.0,
            coef: vec![0.0],
            intercept: 0.0,
            kkt: 0.0,
            weights: vec![0.8, 0.2, 0.0, 0.0],
            zones: vec![0, 0, 1, 1],
            losses: vec![1.0, 4.0, 9.0, 16.0],
        };
        let list = rank(&problem, &path, &point, (&train, &scaling), None);
        let rows: Vec<usize> = list.iter().map(|s| s.row).collect();
        assert_eq!(rows, [3, 2, 1, 0]);
        assert_eq!(list[0].score, 16.0 / 5.0);
        assert_eq!((list[0].target.as_str(), list[0].prediction.as_str()), ("60", "20"));
        assert_eq!(list[2].entry_age, 4.0);
        // A path without the last row would have met it.
        let list = rank(&problem, &path, &point, (&train, &scaling), Some(&[0.0, 0.0, 0.0, 4.0]));
        assert_eq!(list.iter().map(|s| s.row).collect::<Vec<_>>(), [2, 1, 0, 3]);
        assert_eq!((list[3].score, list[3].held_out_prediction.as_deref()), (0.0, Some("60")));
    }
}
