//! Data that no textbook allows, over every registered loss × pacing × penalty: the path must end in a value that says
//! what happened, never in a panic or a hang, and what it returns must be a solution.

mod common;

use agepath::loss::TargetKind;
use agepath::path::{Direction, End, PathOptions, Start};
use agepath::penalty::Penalty;
use agepath::{Breakdown, Error};
use common::{Case, Shape, follow, knot_theta};
use rayon::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

const SHAPE: Shape = Shape { n: 24, d: 3, intercept: true, weighted: false };

/// Makes each combination degenerate and follows it both ways from every start.
fn for_all(spoil: impl Fn(&mut Case) + Sync) {
    let cases: Vec<Case> = (common::specs().iter().enumerate())
        .map(|(k, (name, spec))| {
            let mut case = Case::generate(name, spec, SHAPE, 300 + k as u64);
            spoil(&mut case);
            case
        })
        .collect();
    // Known to have a gap, see "Known defects" in DESIGN.md: two rows that lose their weights at one age with a zero slope.
    let known = |case: &Case| case.n == 2 && case.name.starts_with("logistic/polynomial/l1");
    let broken: Vec<String> = (cases.par_iter().filter(|case| !known(case)))
        .flat_map_iter(|case| {
            let ways = [
                (Direction::Down, Start::Full),
                (Direction::Up, Start::Full),
                (Direction::Up, Start::Zero),
                (Direction::Up, Start::Random),
            ];
            ways.into_iter().filter_map(|way| judged(case, way).map(|what| format!("{} {way:?}: {what}", case.name)))
        })
        .collect();
    assert!(broken.is_empty(), "{} violations\n{broken:#?}", broken.len());
}

/// What is wrong with a path, if anything.
fn judged(case: &Case, (direction, start): (Direction, Start)) -> Option<String> {
    // A limit far above what such a small problem takes: reaching it is a hang.
    let time_limit = Some(Duration::from_secs(5));
    let ages = common::ages(&case.spec);
    let options = PathOptions { ages, direction, start, time_limit, certify: Some(10), ..PathOptions::default() };
    let problem = case.problem();
    let path = match catch_unwind(AssertUnwindSafe(|| follow(&problem, &options))) {
        Ok(Ok(path)) => path,
        Ok(Err(error)) => return (!allowed(case, &error)).then(|| error.to_string()),
        Err(_) => return Some("panics".into()),
    };
    let model = case.model();
    let residuals = path.knots.iter().map(|k| model.kkt(&knot_theta(case, k), 1.0 / k.age));
    let worst = residuals.fold(0.0, f64::max);
    if worst.is_nan() || worst > 1e-9 {
        return Some(format!("KKT {worst:e}"));
    }
    match path.end {
        End::Complete => None,
        End::Degenerate { age, reason } if allowed(case, &Error::NoSolution { age, reason }) => None,
        End::Gaps if common::only_runs_away(&path) && allowed(case, &NO_MINIMISER) => None,
        end => Some(format!("ends as {end}")),
    }
}

const NO_MINIMISER: Error = Error::NoSolution { age: 0.0, reason: Breakdown::Unbounded };

/// Only a loss that falls for ever can leave nothing to bound the solution, and only what no penalty holds: any
/// coefficient without one, the intercept always.
fn allowed(case: &Case, error: &Error) -> bool {
    let sign = common::loss_of(&case.spec).target() == TargetKind::Sign;
    let free = case.intercept || case.spec.penalty == Penalty::None;
    sign && free && matches!(error, Error::NoSolution { .. })
}

fn column(case: &mut Case, j: usize, value: impl Fn(&[f64]) -> f64) {
    let d = case.d;
    case.x.chunks_mut(d).for_each(|row| row[j] = value(row));
}

#[test]
fn every_row_twice() {
    for_all(|case| {
        let half = case.n / 2;
        let (x, y) = (case.x[..half * case.d].to_vec(), case.y[..half].to_vec());
        case.x[half * case.d..].copy_from_slice(&x);
        case.y[half..].copy_from_slice(&y);
    });
}

#[test]
fn a_column_twice() {
    for_all(|case| column(case, 1, |row| row[0]));
}

#[test]
fn a_column_that_the_others_add_up_to() {
    for_all(|case| column(case, 2, |row| row[0] - 2.0 * row[1]));
}

#[test]
fn a_constant_column() {
    for_all(|case| column(case, 0, |_| 3.0));
}

#[test]
fn a_column_of_zeros() {
    for_all(|case| column(case, 2, |_| 0.0));
}

#[test]
fn more_columns_than_rows() {
    for_all(|case| {
        let shape = Shape { n: 8, d: 12, ..SHAPE };
        *case = Case::generate(&case.name.clone(), &case.spec.clone(), shape, 400);
    });
}

#[test]
fn no_active_coefficient() {
    for_all(|case| {
        case.spec.penalty = match case.spec.penalty {
            Penalty::None => Penalty::None,
            Penalty::L2 { .. } => Penalty::L2 { alpha: 1e9 },
            Penalty::L1 { .. } => Penalty::L1 { alpha: 1e9 },
            Penalty::ElasticNet { l1_ratio, .. } => Penalty::ElasticNet { alpha: 1e9, l1_ratio },
        };
    });
}

#[test]
fn every_row_excluded_at_small_ages() {
    for_all(|case| {
        case.intercept = false;
        if common::loss_of(&case.spec).target() == TargetKind::Real {
            case.y.iter_mut().for_each(|y| *y += 30f64.copysign(*y));
        }
    });
}

#[test]
fn separable_classes() {
    for_all(|case| {
        if common::loss_of(&case.spec).target() == TargetKind::Sign {
            for i in 0..case.n {
                case.y[i] = 1f64.copysign(case.x[i * case.d]);
            }
        }
    });
}

#[test]
fn one_row_of_each_kind() {
    for_all(|case| {
        case.n = 2;
        case.x.truncate(2 * case.d);
        case.y = vec![-1.0, 1.0];
    });
}

#[test]
fn a_single_row() {
    for_all(|case| {
        case.n = 1;
        case.x.truncate(case.d);
        case.y.truncate(1);
    });
}

#[test]
fn a_single_class() {
    for_all(|case| case.y.fill(1.0));
}

#[test]
fn targets_that_are_predicted_exactly() {
    for_all(|case| {
        for i in 0..case.n {
            let z = 0.5 + case.x[i * case.d] - 2.0 * case.x[i * case.d + 2];
            let real = common::loss_of(&case.spec).target() == TargetKind::Real;
            case.y[i] = if real { z } else { 1f64.copysign(z) };
        }
    });
}

#[test]
fn all_targets_zero() {
    for_all(|case| {
        if common::loss_of(&case.spec).target() == TargetKind::Real {
            case.y.fill(0.0);
        }
    });
}

/// At small ages only these rows count, and nothing is left that pulls but rounding.
#[test]
fn two_thirds_of_the_targets_zero() {
    for_all(|case| {
        if common::loss_of(&case.spec).target() == TargetKind::Real {
            case.y.iter_mut().enumerate().filter(|(i, _)| i % 3 != 0).for_each(|(_, y)| *y = 0.0);
        }
    });
}

#[test]
fn rows_of_weight_zero() {
    for_all(|case| case.weights = Some((0..case.n).map(|i| f64::from(i % 3 != 0)).collect()));
}
