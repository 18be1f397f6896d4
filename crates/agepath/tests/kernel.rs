//! Paths in kernel space on real data: residuals from scratch at every knot and at random ages, linear kernel against
//! linear space, and jumps that go down. `AGEPATH_FULL=1` runs every combination.

use agepath::dataset::{ReadOptions, Table, builtin};
use agepath::loss::LossParameters;
use agepath::model::Strength;
use agepath::pacing::{self, Linear, Mixture, Pacing, PacingSpec};
use agepath::path::{Direction, End, Path, PathOptions, age_path};
use agepath::prepare::{PrepareOptions, Prepared, Validation, default_ages, prepare};
use agepath::registry::Values;
use agepath::space::{Gamma, Kernel, KernelChoice};
use agepath::suspects::entry_ages;
use agepath::{Breakdown, Problem};
use rand::{RngExt, SeedableRng};
use std::ops::ControlFlow;

/// The promise, relative to C.
const KKT: f64 = 1e-9;

fn full() -> bool {
    std::env::var("AGEPATH_FULL").is_ok()
}

/// One combination.
#[derive(Debug, Clone)]
struct Case {
    model: &'static str,
    kernel: Option<Kernel>,
    c: f64,
    pacing: PacingSpec,
    noise: &'static str,
    direction: Direction,
}

const RBF: Option<Kernel> = Some(Kernel::Rbf { gamma: Gamma::SCALE });

/// The problem over a share of the rows.
fn prepared(table: &Table, case: &Case, share: f64) -> Prepared {
    let options = PrepareOptions {
        model: Some(case.model.into()),
        kernel: case.kernel.map_or(KernelChoice::None, KernelChoice::Is),
        strength: Strength { loss: LossParameters::with_c(case.c), ..Strength::default() },
        pacing: case.pacing.clone(),
        noise: (!case.noise.is_empty()).then(|| case.noise.parse().unwrap()),
        validation: if share < 1.0 { Validation::Fraction(1.0 - share) } else { Validation::None },
        ..PrepareOptions::default()
    };
    prepare(table, &options).unwrap()
}

/// Ages at which a hinge of C has something to tell: losses around C.
fn ages(case: &Case) -> (f64, f64) {
    let (low, high) = (0.25 * case.c, 4.0 * case.c);
    if ["mixture", "huber"].contains(&case.pacing.kind) { (low.sqrt(), high.sqrt()) } else { (low, high) }
}

fn try_to_follow(problem: &Problem, ages: (f64, f64), direction: Direction) -> agepath::Result<Path> {
    let options = PathOptions { ages, direction, ..PathOptions::default() };
    age_path(problem, &options, &mut |_| ControlFlow::Continue(()))
}

fn follow(problem: &Problem, ages: (f64, f64), direction: Direction) -> Path {
    try_to_follow(problem, ages, direction).unwrap()
}

/// KKT at all knots and at random ages; objectives that never rise at jumps.
fn check(problem: &Problem, path: &Path, count: usize, title: &str) {
    assert_eq!(path.end, End::Complete, "{title}");
    assert!(path.certificate.max_kkt <= KKT, "{title}: knots {:e}", path.certificate.max_kkt);
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let (low, high) = path.ages;
    for _ in 0..count {
        let age = (low.ln() + rng.random::<f64>() * (high / low).ln()).exp().clamp(low, high);
        let point = path.at(problem, age).unwrap_or_else(|e| panic!("{title}: at {age}: {e}"));
        assert!(point.kkt <= KKT, "{title}: {:e} at {age}", point.kkt);
    }
    for jump in path.jumps() {
        assert!(jump.drop >= -1e-9, "{title}: the objective rises by {:e} at {}", -jump.drop, jump.age);
    }
}

fn pacings() -> impl Iterator<Item = (&'static str, PacingSpec)> {
    pacing::REGISTRY.rows().into_iter().map(|row| (row.name, row.build(&Values::default()).unwrap().spec()))
}

/// Pacings whose weight may have hardly any slope: in dual coefficients 1/slope is an entry of the matrix, and such paths may have
/// gaps (DESIGN.md, "Known defects").
fn may_go_flat(pacing: &str) -> bool {
    ["polynomial", "welsch"].contains(&pacing)
}

fn run(table: &Table, case: &Case, count: usize) {
    let prepared = prepared(table, case, 1.0);
    let path = follow(&prepared.problem, ages(case), case.direction);
    let title = format!("{case:?}");
    if full() {
        let (events, jumps, work) = (path.events.len(), path.jumps().count(), path.work);
        eprintln!("{title}: {events} events, {jumps} jumps, kkt {:.1e}, {work:?}", path.certificate.max_kkt);
    }
    match path.end {
        End::Gaps if may_go_flat(case.pacing.kind) => {
            assert!(path.certificate.max_kkt <= KKT, "{title}: knots {:e}", path.certificate.max_kkt);
        }
        _ => check(&prepared.problem, &path, count, &title),
    }
}

#[test]
fn svm_paths_on_breast_cancer() {
    let table = builtin("breast_cancer", &ReadOptions::default()).unwrap();
    let wide = [RBF, Some(Kernel::Rbf { gamma: Gamma::Value(0.5) }), Some(Kernel::Linear)];
    let (kernels, cs, noises): (&[_], &[f64], &[_]) =
        if full() { (&wide, &[0.2, 1.0, 2.0], &["flip:0.2", "flip:0.3"]) } else { (&wide[..1], &[1.0], &["flip:0.3"]) };
    for (_, pacing) in pacings() {
        for direction in [Direction::Down, Direction::Up] {
            for &kernel in kernels {
                for &c in cs {
                    for &noise in noises {
                        let count = if full() { 200 } else { 10 };
                        run(&table, &Case { model: "svm", kernel, c, pacing: pacing.clone(), noise, direction }, count);
                    }
                }
            }
        }
    }
}

#[test]
fn every_other_loss_with_a_kernel() {
    let classes = builtin("breast_cancer", &ReadOptions::default()).unwrap();
    let numbers = builtin("diabetes", &ReadOptions::default()).unwrap();
    let direction = Direction::Down;
    let mut stalled = Vec::new();
    for (name, pacing) in pacings() {
        for model in ["logistic", "squared-svm", "svr", "quantile", "ridge"] {
            let (table, noise, c) = match model {
                "logistic" | "squared-svm" => (&classes, "flip:0.2", 1.0),
                _ => (&numbers, "outliers:0.2", 0.5),
            };
            let prepared =
                prepared(table, &Case { model, kernel: RBF, c, pacing: pacing.clone(), noise, direction }, 0.5);
            let title = format!("{model} {name}");
            let ages = default_ages(&prepared.problem).unwrap();
            match try_to_follow(&prepared.problem, ages, direction) {
                Ok(path) if path.end == End::Complete => check(&prepared.problem, &path, 3, &title),
                // With one class left, the intercept of a loss that falls for ever has no bound.
                Ok(Path { end: End::Degenerate { reason: Breakdown::Unbounded, .. }, .. }) if model == "logistic" => {}
                Ok(Path { end: End::Gaps, .. }) if may_go_flat(name) => {}
                other => stalled.push((title, other.map(|p| p.end))),
            }
        }
    }
    assert!(stalled.is_empty(), "{stalled:?}");
}

/// w = Xᵀβ.
fn primal(problem: &Problem, beta: &[f64]) -> Vec<f64> {
    let mut w = vec![0.0; problem.design().cols()];
    problem.design().accumulate(beta, &mut w);
    w.truncate(problem.features());
    w
}

#[test]
fn a_linear_kernel_is_linear_space() {
    let classes = builtin("breast_cancer", &ReadOptions::default()).unwrap();
    let numbers = builtin("diabetes", &ReadOptions::default()).unwrap();
    for (name, pacing) in pacings() {
        for (table, model, noise) in [(&classes, "logistic", "flip:0.2"), (&numbers, "ridge", "outliers:0.3")] {
            let case = Case { model, kernel: None, c: 1.0, pacing: pacing.clone(), noise, direction: Direction::Down };
            let linear = prepared(table, &case, 0.3);
            let dual = prepared(table, &Case { kernel: Some(Kernel::Linear), ..case }, 0.3);
            // Above the jumps: where the solution changes, both sides are right.
            let (low, high) = default_ages(&linear.problem).unwrap();
            let low = (low * high).sqrt();
            let (a, b) = (
                follow(&linear.problem, (low, high), case.direction),
                follow(&dual.problem, (low, high), case.direction),
            );
            let last = a.jumps().chain(b.jumps()).map(|e| e.age).fold(low, f64::max);
            for k in 1..=12 {
                let age = last * (high / last).powf(k as f64 / 13.0);
                let (p, q) = (a.at(&linear.problem, age).unwrap(), b.at(&dual.problem, age).unwrap());
                let mut w = primal(&dual.problem, &q.coef);
                w.push(q.intercept);
                let size = p.coef.iter().fold(1.0f64, |a, w| a.max(w.abs()));
                for (x, y) in p.coef.iter().chain([&p.intercept]).zip(&w) {
                    assert!((x - y).abs() <= 1e-8 * size, "{model} {name} at {age}: {x} against {y}");
                }
            }
        }
    }
}

/// Below an age of 2C the model may be a constant that leaves one class out: all rows of that class enter, or leave, at once.
#[test]
fn a_class_that_enters_or_leaves_at_once() {
    let table = builtin("breast_cancer", &ReadOptions::default()).unwrap();
    let pacings = [(Linear.spec(), 0.4), (Mixture { gamma: 1.0 }.spec(), 0.4f64.sqrt())];
    for (pacing, tie) in pacings {
        for direction in [Direction::Down, Direction::Up] {
            let kernel = Some(Kernel::Rbf { gamma: Gamma::Value(0.5) });
            let case = Case { model: "svm", kernel, c: 0.2, pacing: pacing.clone(), noise: "flip:0.3", direction };
            let problem = prepared(&table, &case, 1.0).problem;
            let path = follow(&problem, ages(&case), direction);
            let title = format!("{case:?}");
            check(&problem, &path, 5, &title);
            assert_eq!(path.jumps().count(), 0, "{title}: the solution is continuous there");
            let last = problem.pacing().zones().len() - 1;
            let left_out = |age: f64| {
                let zones = path.at(&problem, age).unwrap().zones;
                zones.into_iter().filter(|&zone| usize::from(zone) == last).count()
            };
            let (below, above) = (left_out(tie * (1.0 - 1e-6)), left_out(tie * (1.0 + 1e-6)));
            assert!(below > 100 && above == 0, "{title}: {below} rows are left out below {tie}, {above} above");
            let entering = entry_ages(&problem, &path).into_iter().filter(|age| (age / tie - 1.0).abs() < 1e-9).count();
            assert_eq!(entering, below, "{title}: each of them has its turning point");
        }
    }
}
