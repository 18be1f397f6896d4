//! Baselines against known answers, and the table that puts them side by side.

use agepath::baseline::{Acs, Baseline, CompareOptions, Mospl, MosplOptions, compare, huber_fit, registry};
use agepath::dataset::{ReadOptions, builtin};
use agepath::model::{Model, Strength};
use agepath::pacing::{Linear, Pacing};
use agepath::path::{PathOptions, age_path};
use agepath::prepare::{PrepareOptions, Validation, prepare};
use agepath::space::Design;
use agepath::{Problem, Spec};
use std::ops::ControlFlow;

/// Huber's estimate of a location: four rows at 0 and one at 10, threshold 1. Σψ = −4μ + 1 = 0.
#[test]
fn hubers_mean_by_hand() {
    let design = Design::from_row_major(5, 1, &[1.0; 5], false).unwrap();
    let spec = Spec::preset(Model::by_name("least-squares").unwrap(), &Strength::default(), Linear.spec());
    let problem = Problem::new(design, vec![0.0, 0.0, 0.0, 0.0, 10.0], None, false, &spec).unwrap();
    let found = huber_fit(&problem, 1.0).unwrap();
    assert!((found[0] - 0.25).abs() < 1e-8, "{found:?}");
}

/// At large ages the problem has one solution, and ACS on its grid must find the path's.
#[test]
fn acs_meets_the_path_at_large_ages() {
    let table = builtin("diabetes", &ReadOptions::default()).unwrap();
    let options = PrepareOptions { validation: Validation::None, ..PrepareOptions::default() };
    let prepared = prepare(&table, &options).unwrap();
    let options = PathOptions { ages: (30.0, 33.0), certify: Some(0), ..PathOptions::default() };
    let path = age_path(&prepared.problem, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    let sweep = Acs::default().sweep(&prepared.problem, options.ages).unwrap();
    assert_eq!(sweep.iter().map(|s| s.0).collect::<Vec<_>>(), [30.0, 30.5, 31.0, 31.5, 32.0, 32.5, 33.0]);
    for (age, theta) in sweep {
        let point = path.at(&prepared.problem, age).unwrap();
        for (a, b) in theta.iter().zip(&point.coef) {
            assert!((a - b).abs() < 1e-5, "{age}: {a} {b}");
        }
    }
}

#[test]
fn one_table_for_every_baseline() {
    let small = Mospl { options: MosplOptions { population: 20, generations: 5, ..MosplOptions::default() } };
    for (name, noise, expected) in [
        (
            "diabetes",
            "target:0.3",
            &["agepath", "original", "mospl", "huber-lasso", "ls-svm", "rls-svm", "re-ls-svm"][..],
        ),
        (
            "breast_cancer",
            "flip:0.2",
            &["agepath", "original", "mospl", "ls-svm", "rls-svm", "re-ls-svm", "robust-svm"],
        ),
    ] {
        let table = builtin(name, &ReadOptions::default()).unwrap();
        let all = registry();
        let chosen = all.iter().map(|b| if b.name() == "mospl" { &small as &dyn Baseline } else { &**b });
        let chosen: Vec<&dyn Baseline> = chosen.filter(|b| expected.contains(&b.name())).collect();
        let prepare = PrepareOptions { noise: Some(noise.parse().unwrap()), ..PrepareOptions::default() };
        let options = CompareOptions { prepare, repeats: 2, ..CompareOptions::default() };
        let mut runs = 0;
        let found = compare(&table, &chosen, &options, &mut |_, _| runs += 1).unwrap();
        assert_eq!(found.rows.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), expected);
        assert_eq!(runs, 2 * expected.len());
        let row = |name: &str| found.rows.iter().find(|r| r.name == name).unwrap();
        for row in &found.rows {
            assert!(row.failures.is_empty() && row.mean.is_finite() && row.deviation >= 0.0, "{row:?}");
        }
        assert!(row("agepath").age.is_some() && row("original").age.is_none());
        if found.higher_is_better {
            assert!(row("agepath").mean > row("original").mean, "{found}");
            assert!(row("robust-svm").mean > 0.7, "{found}");
        } else {
            assert!(row("agepath").mean < row("original").mean, "{found}");
            assert!(row("huber-lasso").mean < row("original").mean, "{found}");
        }
        let again = compare(&table, &chosen[..2], &options, &mut |_, _| ()).unwrap();
        assert_eq!(again.rows[0].mean, row("agepath").mean, "the seed decides");
    }
}
