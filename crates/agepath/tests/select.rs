//! Choosing an age: the curve against brute force, the two rules, ends of the path that teach nothing.

use agepath::dataset::{Folds, ReadOptions, builtin, folds, read_from};
use agepath::decide::{DecideOptions, decide};
use agepath::path::{Path, PathOptions, Progress, age_path};
use agepath::prepare::{PrepareOptions, Prepared, Validation, build, default_ages, prepare};
use agepath::select::{Candidate, Holdout, JudgeBy, METRICS, Metric, Rule, choose, cross_validate};
use agepath::solver;
use std::ops::ControlFlow;

fn go(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn run(name: &str, noise: &str, validation: Validation, ages: Option<(f64, f64)>) -> (Prepared, Path, PathOptions) {
    let table = builtin(name, &ReadOptions::default()).unwrap();
    let options = PrepareOptions { noise: Some(noise.parse().unwrap()), validation, ..PrepareOptions::default() };
    let prepared = prepare(&table, &options).unwrap();
    let ages = ages.unwrap_or_else(|| default_ages(&prepared.problem).unwrap());
    let options = PathOptions { ages, certify: Some(0), ..PathOptions::default() };
    let path = age_path(&prepared.problem, &options, &mut go).unwrap();
    (prepared, path, options)
}

fn metric(name: &str) -> &'static Metric {
    METRICS.iter().find(|m| m.name == name).unwrap()
}

fn log_spaced((low, high): (f64, f64), count: usize) -> impl Iterator<Item = f64> {
    (0..count).map(move |k| (low * (high / low).powf(k as f64 / (count - 1) as f64)).clamp(low, high))
}

/// Parameters on the path, found by nothing that the library's choice uses but the path.
fn theta(path: &Path, prepared_problem: &agepath::Problem, age: f64) -> Vec<f64> {
    let point = path.at(prepared_problem, age).unwrap();
    let mut theta = point.coef;
    theta.push(point.intercept);
    theta
}

#[test]
fn no_age_of_a_dense_grid_is_better_than_the_gap_allows() {
    let (prepared, path, _) = run("diabetes", "outliers:0.3", Validation::Fraction(0.25), None);
    let rows = prepared.validation.as_ref().unwrap();
    for name in ["mae", "median-ae", "trimmed-mse", "rmse", "r2"] {
        let holdout = Holdout::new(&prepared.problem, rows, &prepared.scaling, metric(name)).unwrap();
        let chosen = choose(&prepared.problem, &path, &holdout, Rule::Min).unwrap().unwrap();
        let dense = log_spaced(path.ages, 1500)
            .map(|age| holdout.score(&holdout.predict(&theta(&path, &prepared.problem, age))))
            .reduce(|a, b| if metric(name).advantage(a, b) > 0.0 { a } else { b })
            .unwrap();
        let missed = metric(name).advantage(dense, chosen.score);
        assert!(missed <= chosen.gap, "{name}: {missed} > {}", chosen.gap);
        assert!(chosen.gap <= 0.11 * chosen.min.standard_error, "{name}: {} {:?}", chosen.gap, chosen.min);
    }
}

/// Mean and standard error over folds computed here, from fits to the rows outside each fold.
#[test]
fn the_curve_of_a_cross_validation_is_that_of_its_folds() {
    let (prepared, path, options) = run("diabetes", "target:0.3", Validation::None, Some((2.0, 60.0)));
    let cv = cross_validate(&prepared, JudgeBy::Metric(metric("mae")), &options, &Folds::Count(5), &go).unwrap();
    let chosen = cv.choose(&prepared.problem, &path, Rule::Min).unwrap().unwrap();
    assert_eq!(chosen.folds, Some(5));
    let parts = folds(&prepared.train, 5, options.seed).unwrap();
    // At a large age and linear pacing the problem has one solution, which ACS finds from anywhere.
    let Candidate { age, score, standard_error } = *chosen.curve.last().unwrap();
    assert_eq!(age, 60.0);
    let scores: Vec<f64> = parts
        .iter()
        .map(|held| {
            let rest: Vec<usize> = (0..prepared.train.len()).filter(|i| !held.contains(i)).collect();
            let problem = build(&prepared.train.subset(&rest), &prepared.scaling, true, &prepared.spec).unwrap();
            let start = solver::fit(&problem, None).unwrap().theta;
            let acs = solver::acs(&problem, age, &start, &solver::AcsOptions::default()).unwrap();
            let (coef, intercept) = prepared.scaling.undo(&acs.theta[..10], acs.theta[10]);
            let data = prepared.train.subset(held);
            let error = |i: usize| {
                let z: f64 = data.row(i).iter().zip(&coef).map(|(x, w)| x * w).sum();
                (z + intercept - data.y()[i]).abs()
            };
            (0..data.len()).map(error).sum::<f64>() / data.len() as f64
        })
        .collect();
    let mean = scores.iter().sum::<f64>() / 5.0;
    let variance = scores.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / 4.0;
    assert!((score - mean).abs() < 1e-5 * mean, "{score} {mean}");
    assert!((standard_error - (variance / 5.0).sqrt()).abs() < 1e-4 * standard_error);
}

#[test]
fn every_row_is_predicted_by_the_path_that_did_not_see_it() {
    let (prepared, _, options) = run("diabetes", "outliers:0.1", Validation::None, Some((1.0, 40.0)));
    let cv = cross_validate(&prepared, JudgeBy::Metric(metric("mae")), &options, &Folds::Count(4), &go).unwrap();
    let z = cv.predict(3.0).unwrap();
    for fold in &cv.folds {
        let theta = theta(&fold.path, &fold.problem, 3.0);
        for &i in fold.held.iter().take(3) {
            let x = prepared.scaling.x(&prepared.train.subset(&[i]));
            let direct: f64 = x.iter().zip(&theta).map(|(x, w)| x * w).sum::<f64>() + theta[10];
            assert!((z[i] - direct).abs() < 1e-9);
        }
    }
}

#[test]
fn the_simpler_model_is_the_largest_age_within_one_standard_error() {
    let (prepared, path, _) = run("diabetes", "outliers:0.3", Validation::Fraction(0.25), None);
    let rows = prepared.validation.as_ref().unwrap();
    let holdout = Holdout::new(&prepared.problem, rows, &prepared.scaling, metric("mae")).unwrap();
    let min = choose(&prepared.problem, &path, &holdout, Rule::Min).unwrap().unwrap();
    let simple = choose(&prepared.problem, &path, &holdout, Rule::OneSe).unwrap().unwrap();
    assert_eq!((min.age, simple.age), (min.min.age, min.one_se.age));
    assert!(simple.age > min.age);
    let limit = min.min.score + min.min.standard_error;
    assert!(simple.score <= limit);
    for age in log_spaced((simple.age * 1.002, path.ages.1), 300) {
        let score = holdout.score(&holdout.predict(&theta(&path, &prepared.problem, age)));
        assert!(score > limit, "{age}: {score} <= {limit}");
    }
}

#[test]
fn ends_of_the_path_that_teach_nothing_are_not_chosen() {
    // Nearly no row is left at the small end, where a few rows are met exactly; without the check, the best accuracy of
    // a one-sided validation set would be one class for every row.
    let (prepared, path, _) = run("diabetes", "outliers:0.3", Validation::Fraction(0.25), Some((1e-5, 40.0)));
    let rows = prepared.validation.as_ref().unwrap();
    let holdout = Holdout::new(&prepared.problem, rows, &prepared.scaling, metric("mae")).unwrap();
    let chosen = choose(&prepared.problem, &path, &holdout, Rule::Min).unwrap().unwrap();
    assert!(!chosen.degenerate.is_empty());
    for candidate in &chosen.curve {
        let point = path.at(&prepared.problem, candidate.age).unwrap();
        let active = point.coef.iter().filter(|&&w| w != 0.0).count();
        let weight: f64 = point.weights.iter().sum();
        assert!(weight >= (active + 2) as f64 && weight >= 16.0, "{}: {weight}", candidate.age);
    }

    let mut text = "a,b,y\n".to_owned();
    for i in 0..60 {
        text += &format!("{},{},{}\n", i % 10, (i * 7) % 13, if i % 10 == 9 { "rare" } else { "common" });
    }
    let table = read_from(text.as_bytes(), "t.csv", &ReadOptions::default()).unwrap();
    let prepared = prepare(&table, &PrepareOptions::default()).unwrap();
    let options = PathOptions { ages: (0.01, 5.0), certify: Some(0), ..PathOptions::default() };
    let path = age_path(&prepared.problem, &options, &mut go).unwrap();
    let rows = prepared.validation.as_ref().unwrap();
    let holdout = Holdout::new(&prepared.problem, rows, &prepared.scaling, metric("accuracy")).unwrap();
    if let Some(chosen) = choose(&prepared.problem, &path, &holdout, Rule::Min).unwrap() {
        let z = holdout.predict(&theta(&path, &prepared.problem, chosen.age));
        assert!(z.iter().any(|&z| z > 0.0) && z.iter().any(|&z| z < 0.0), "{z:?}");
    }
}

#[test]
fn a_path_of_one_age_has_nothing_to_choose_by_folds() {
    let table = builtin("diabetes", &ReadOptions::default()).unwrap();
    let options = PrepareOptions { validation: Validation::None, ..PrepareOptions::default() };
    let prepared = prepare(&table, &options).unwrap();
    let options = PathOptions { ages: (2.0, 3.0), certify: Some(0), ..PathOptions::default() };
    let mut path = age_path(&prepared.problem, &options, &mut go).unwrap();
    path.ages = (3.0, 3.0);
    let by = DecideOptions { folds: Some(Folds::Count(3)), ..DecideOptions::default() };
    let choice = decide(&prepared, &path, &options, &by, &go).unwrap();
    assert!(choice.reasons.ordinary && !choice.reasons.judged, "{:?}", choice.reasons);
}
