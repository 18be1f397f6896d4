//! What must not change the decision: units and origins of X and y, the order of rows, the names of classes, and whether a row
//! is written twice or has a weight of 2.

use agepath::dataset::{Dataset, Folds, ReadOptions, Table, builtin};
use agepath::decide::{Choice, DecideOptions, decide};
use agepath::model::Model;
use agepath::path::{PathOptions, Progress, age_path};
use agepath::prepare::{PrepareOptions, Prepared, Validation, default_ages, prepare, prepare_rows};
use std::ops::ControlFlow;

fn go(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The whole job on a table whose first rows validate: folds and splits are drawn by position, which a permutation moves.
fn decision(table: &Table, folds: Option<usize>) -> (Prepared, Choice) {
    let held = 60;
    let part = |from: usize, to: usize| {
        let d = table.features.len();
        let mut part = table.clone();
        part.x = table.x[from * d..to * d].to_vec();
        part.labels = table.labels[from..to].to_vec();
        part.lines = table.lines[from..to].to_vec();
        part
    };
    let (mut validate, train) = (part(0, held), part(held, table.labels.len()));
    // Rows of another file: their numbers are their own.
    validate.file = "held out".into();
    let validation = if folds.is_some() { Validation::None } else { Validation::Rows(Box::new(validate)) };
    let prepared = prepare(&train, &PrepareOptions { validation, ..PrepareOptions::default() }).unwrap();
    let ages = default_ages(&prepared.problem).unwrap();
    let options = PathOptions { ages, certify: Some(0), ..PathOptions::default() };
    let path = age_path(&prepared.problem, &options, &mut go).unwrap();
    let by = DecideOptions { folds: folds.map(Folds::Count), ..DecideOptions::default() };
    let choice = decide(&prepared, &path, &options, &by, &go).unwrap();
    (prepared, choice)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1e-3)
}

/// A row of the table and its suspicion, in the order of the rows.
fn scores(choice: &Choice) -> Vec<(usize, f64)> {
    let mut list: Vec<(usize, f64)> = choice.suspects.iter().map(|s| (s.row, s.score)).collect();
    list.sort_by_key(|s| s.0);
    list
}

fn assert_same(a: &Choice, b: &Choice) {
    assert!(close(a.selection.age, b.selection.age), "{} {}", a.selection.age, b.selection.age);
    for (x, y) in scores(a).iter().zip(scores(b)) {
        assert!(x.0 == y.0 && close(x.1, y.1), "{x:?} {y:?}");
    }
}

/// Diabetes with every tenth target spoiled.
fn spoiled() -> Table {
    let mut table = builtin("diabetes", &ReadOptions::default()).unwrap();
    for label in table.labels.iter_mut().step_by(10) {
        *label = "900".into();
    }
    table
}

#[test]
fn shifting_and_scaling_x_and_y_changes_units_only() {
    let plain = spoiled();
    let mut other = plain.clone();
    let d = other.features.len();
    for (k, v) in other.x.iter_mut().enumerate() {
        // Powers of two and whole numbers, so that the numbers themselves stay exact.
        *v = *v * [0.25, 1024.0][k % d % 2] + 4096.0;
    }
    for label in &mut other.labels {
        *label = (label.parse::<f64>().unwrap() * 64.0 - 32768.0).to_string();
    }
    for folds in [None, Some(5)] {
        let (a, b) = (decision(&plain, folds), decision(&other, folds));
        assert_same(&a.1, &b.1);
        assert!(close(64.0 * a.1.selection.score, b.1.selection.score));
    }
}

#[test]
fn the_order_of_rows_does_not_matter() {
    let plain = spoiled();
    let (d, n) = (plain.features.len(), plain.labels.len());
    let held = 60;
    // The validation rows stay in front.
    let order: Vec<usize> = (0..n).map(|i| if i < held { held - 1 - i } else { n - 1 - (i - held) }).collect();
    let mut other = plain.clone();
    other.x = order.iter().flat_map(|&i| plain.x[i * d..(i + 1) * d].to_vec()).collect();
    other.labels = order.iter().map(|&i| plain.labels[i].clone()).collect();
    let (a, b) = (decision(&plain, None).1, decision(&other, None).1);
    assert!(close(a.selection.age, b.selection.age));
    let trained = n - held;
    for ((row, score), (back, same)) in scores(&a).iter().zip(scores(&b).iter().rev()) {
        assert_eq!(*row, trained - 1 - back);
        assert!(close(*score, *same), "{row}: {score} {same}");
    }
}

#[test]
fn the_names_of_classes_do_not_matter() {
    let mut plain = builtin("breast_cancer", &ReadOptions::default()).unwrap();
    for label in plain.labels.iter_mut().step_by(9) {
        *label = if label == "0" { "1" } else { "0" }.into();
    }
    // Sorted the other way round, so that the signs of the two classes change places.
    let mut other = plain.clone();
    for label in &mut other.labels {
        *label = if label == "0" { "sick" } else { "healthy" }.into();
    }
    let (a, b) = (decision(&plain, None), decision(&other, None));
    assert_eq!(a.0.train.y().iter().map(|y| -y).collect::<Vec<_>>(), b.0.train.y());
    assert_same(&a.1, &b.1);
    for (x, y) in a.1.point.coef.iter().zip(&b.1.point.coef) {
        assert!((x + y).abs() < 1e-6 * x.abs().max(1e-3), "{x} {y}");
    }
    for (x, y) in a.1.suspects.iter().zip(&b.1.suspects) {
        let named = |label: &str| if label == "0" { "sick" } else { "healthy" };
        assert_eq!(named(&x.prediction), y.prediction);
        assert_eq!(named(&x.target), y.target);
    }
}

/// The whole job on rows with weights, or on the same rows repeated; `from` says which of the given rows each one is.
fn weighted_decision(rows: Dataset, from: &[usize], model: &str) -> (Prepared, Choice, Vec<f64>) {
    let model = Model::by_name(model).unwrap();
    let options = PrepareOptions { validation: Validation::None, ..PrepareOptions::default() };
    let prepared = prepare_rows(rows, model, &options, Vec::new()).unwrap();
    let ages = default_ages(&prepared.problem).unwrap();
    let options = PathOptions { ages, certify: Some(0), ..PathOptions::default() };
    let path = age_path(&prepared.problem, &options, &mut go).unwrap();
    // Copies of a row are in one fold: a row must not be judged by a path that has seen its twin.
    let fold = |k: usize| (0..from.len()).filter(|&i| from[i] % 4 == k).collect();
    let folds = Folds::Given((0..4).map(fold).collect());
    let by = DecideOptions { folds: Some(folds), ..DecideOptions::default() };
    let choice = decide(&prepared, &path, &options, &by, &go).unwrap();
    let theta = choice.point.theta(&prepared.problem);
    let z = prepared.problem.predict(&theta);
    (prepared, choice, z)
}

#[test]
fn a_row_that_is_repeated_is_a_row_with_a_weight() {
    for (name, model) in [("diabetes", "lasso"), ("breast_cancer", "logistic"), ("breast_cancer", "svm")] {
        let table = if name == "diabetes" { spoiled() } else { builtin(name, &ReadOptions::default()).unwrap() };
        let all = table.dataset(table.guess()).unwrap();
        let data = all.subset(&(0..150).collect::<Vec<_>>());
        let weights: Vec<f64> = (0..data.len()).map(|i| [1.0, 3.0, 0.0, 2.0, 1.0][i * i % 5]).collect();
        let copies = (0..data.len()).flat_map(|i| vec![i; weights[i] as usize]).collect::<Vec<_>>();
        let repeated = data.subset(&copies);
        let weighted = data.clone().with_weights(Some(weights.clone())).unwrap();
        let each: Vec<usize> = (0..data.len()).collect();
        let (a, b) = (weighted_decision(weighted, &each, model), weighted_decision(repeated, &copies, model));
        let ages = |p: &Prepared| default_ages(&p.problem).unwrap();
        assert_eq!(ages(&a.0), ages(&b.0), "{name}");
        assert!(close(a.1.selection.age, b.1.selection.age), "{name}: {} {}", a.1.selection.age, b.1.selection.age);
        assert!(close(a.1.selection.score, b.1.selection.score), "{name}");
        assert!(close(a.1.selection.standard_error, b.1.selection.standard_error), "{name}");
        if a.0.problem.kernel().is_none() {
            for (x, y) in a.1.point.coef.iter().zip(&b.1.point.coef) {
                assert!(close(*x, *y), "{name}: {x} {y}");
            }
        }
        let [x, y] = [&a.1, &b.1].map(|c| c.noise_fraction.unwrap());
        assert!((x.estimate - y.estimate).abs() < 1e-5, "{name}: {x:?} {y:?}");
        assert!((x.standard_error - y.standard_error).abs() < 1e-5, "{name}: {x:?} {y:?}");
        // Predictions and suspicion of every copy are those of the row.
        for (k, &i) in copies.iter().enumerate() {
            assert!(close(a.2[i], b.2[k]), "{name}, row {i}: {} {}", a.2[i], b.2[k]);
        }
        let of = |choice: &Choice| choice.suspects.iter().map(|s| (s.row, s.score)).collect::<Vec<_>>();
        let mut once: Vec<(usize, f64)> = of(&b.1);
        once.sort_by_key(|s| s.0);
        once.dedup_by_key(|s| s.0);
        let mut counted: Vec<(usize, f64)> = of(&a.1).into_iter().filter(|s| weights[s.0] > 0.0).collect();
        counted.sort_by_key(|s| s.0);
        assert_eq!(once.len(), counted.len());
        for (x, y) in counted.iter().zip(&once) {
            assert!(x.0 == y.0 && close(x.1, y.1), "{name}: {x:?} {y:?}");
        }
    }
}

#[test]
fn weights_below_one_are_relative() {
    let table = spoiled();
    let data = table.dataset(table.guess()).unwrap().subset(&(0..150).collect::<Vec<_>>());
    let each: Vec<usize> = (0..data.len()).collect();
    let tiny = data.clone().with_weights(Some(vec![1e-4; data.len()])).unwrap();
    let (a, b) = (weighted_decision(data, &each, "lasso"), weighted_decision(tiny, &each, "lasso"));
    assert_same(&a.1, &b.1);
    let [x, y] = [&a.1, &b.1].map(|c| c.noise_fraction.unwrap().standard_error);
    assert!((x - y).abs() < 1e-6, "{x} {y}");
}
