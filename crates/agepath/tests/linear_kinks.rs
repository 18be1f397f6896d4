//! Losses with kinks in linear space: the same paths as with the linear kernel, residuals from scratch at every knot and at
//! random ages, and degenerate rows.

use agepath::dataset::{ReadOptions, Table, builtin};
use agepath::loss::LossParameters;
use agepath::model::{Model, SampleScale, Strength};
use agepath::pacing::{self, PacingParameters, PacingSpec};
use agepath::path::{Direction, End, Path, PathOptions, age_path};
use agepath::penalty::Penalty;
use agepath::prepare::{PrepareOptions, Prepared, Validation, default_ages, prepare};
use agepath::space::{Design, Kernel, KernelChoice};
use agepath::{Problem, Spec};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::ops::ControlFlow;

/// The promise of every residual.
const KKT: f64 = 1e-9;
const MODELS: [&str; 4] = ["svm", "squared-svm", "svr", "quantile"];

fn pacings() -> impl Iterator<Item = (&'static str, PacingSpec)> {
    pacing::REGISTRY.iter().map(|e| (e.name, (e.spec)(&PacingParameters::default())))
}

fn is_for_classes(model: &str) -> bool {
    model.ends_with("svm")
}

/// Rows and targets: noisy classes or numbers, some of them wrong.
struct Data {
    n: usize,
    d: usize,
    /// Row-major.
    x: Vec<f64>,
    y: Vec<f64>,
}

fn data(model: &str, n: usize, d: usize, seed: u64) -> Data {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let x: Vec<f64> = (0..n * d).map(|_| normal()).collect();
    let w: Vec<f64> = (0..d).map(|_| normal()).collect();
    let y = x.chunks(d).enumerate().map(|(i, x)| {
        let z = x.iter().zip(&w).map(|(x, w)| x * w).sum::<f64>() + 0.3 + 0.5 * normal();
        match (is_for_classes(model), i % 6 == 0) {
            (true, wrong) => (if wrong { -z } else { z }).signum(),
            (false, wrong) => z + if wrong { 8.0 * normal() } else { 0.0 },
        }
    });
    Data { n, d, y: y.collect(), x: x.clone() }
}

fn spec(model: &str, pacing: PacingSpec, kernel: Option<Kernel>) -> Spec {
    let strength = Strength { loss: LossParameters::with_c(0.5), ..Strength::default() };
    Spec { kernel, ..Spec::preset(Model::by_name(model).unwrap(), &strength, pacing) }
}

fn problem(data: &Data, intercept: bool, spec: &Spec) -> Problem {
    let design = Design::from_row_major(data.n, data.d, &data.x, intercept).unwrap();
    Problem::new(design, data.y.clone(), None, intercept, spec).unwrap()
}

fn try_follow(problem: &Problem, ages: (f64, f64)) -> agepath::Result<Path> {
    let options = PathOptions {
        ages,
        direction: Direction::Down,
        time_limit: Some(std::time::Duration::from_secs(4)),
        ..PathOptions::default()
    };
    age_path(problem, &options, &mut |_| ControlFlow::Continue(()))
}

fn random_ages((low, high): (f64, f64), count: usize) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    (0..count).map(|_| (low.ln() + rng.random::<f64>() * (high / low).ln()).exp().clamp(low, high)).collect()
}

/// KKT at all knots and at random ages; objectives that never rise at jumps.
fn check(problem: &Problem, path: &Path, count: usize, title: &str) {
    assert!(path.certificate.max_kkt <= KKT, "{title}: knots {:e}", path.certificate.max_kkt);
    for age in random_ages(path.ages, count) {
        let point = path.at(problem, age).unwrap_or_else(|e| panic!("{title}: at {age}: {e}"));
        assert!(point.kkt <= KKT, "{title}: {:e} at {age}", point.kkt);
    }
    for jump in path.jumps() {
        assert!(jump.drop >= -1e-9, "{title}: the objective rises by {:e} at {}", -jump.drop, jump.age);
    }
}

/// Whether two paths jump at the same ages.
fn same_jumps(a: &Path, b: &Path) -> bool {
    let ages = |path: &Path| path.jumps().map(|e| e.age).collect::<Vec<_>>();
    let (a, b) = (ages(a), ages(b));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| (a / b - 1.0).abs() < 1e-6)
}

/// The path in linear space against that with the linear kernel; above their jumps unless these are the same. Answers
/// whether they were.
fn compare((linear, a): (&Problem, &Path), (kernel, b): (&Problem, &Path), title: &str) -> bool {
    let (low, high) = (a.ages.0.max(b.ages.0), a.ages.1);
    let same = same_jumps(a, b);
    let last = a.jumps().chain(b.jumps()).map(|e| e.age).fold(low, f64::max);
    let near_jump = |age: f64| a.jumps().any(|e| (e.age / age - 1.0).abs() < 1e-4);
    let ages = random_ages((if same { low } else { last * (1.0 + 1e-4) }, high), 16);
    let mut compared = 0;
    for age in ages.into_iter().filter(|&age| !near_jump(age)) {
        let (p, q) = (a.at(linear, age).unwrap(), b.at(kernel, age).unwrap());
        let mut w = kernel.linear_coefficients(&q.coef).unwrap();
        w.push(q.intercept);
        let size = p.coef.iter().fold(1.0f64, |a, w| a.max(w.abs()));
        for (x, y) in p.coef.iter().chain([&p.intercept]).zip(&w) {
            assert!((x - y).abs() <= 1e-8 * size, "{title} at {age}: {x} against {y}");
        }
        compared += 1;
    }
    assert!(compared >= 12, "{title}: {compared} ages");
    same
}

#[test]
fn linear_space_is_the_linear_kernel_on_random_rows() {
    let mut same = 0;
    for (name, pacing) in pacings() {
        for model in MODELS {
            for seed in 0..3 {
                let title = format!("{model} {name} {seed}");
                if let Ok(only) = std::env::var("ONLY")
                    && !title.starts_with(&only)
                {
                    continue;
                }
                let data = data(model, 60, 4, seed);
                let linear = problem(&data, true, &spec(model, pacing, None));
                let kernel = problem(&data, true, &spec(model, pacing, Some(Kernel::Linear)));
                assert_eq!((linear.parameters(), linear.kernel()), (5, None));
                let (low, high) = default_ages(&linear).unwrap();
                assert_eq!((low, high), default_ages(&kernel).unwrap(), "{title}");
                let low = (low * high * high).cbrt();
                let (a, b) = (try_follow(&linear, (low, high)), try_follow(&kernel, (low, high)));
                if a.is_err() || b.is_err() {
                    eprintln!("{title}: {:?} {:?}", a.err(), b.err());
                    continue;
                }
                let (a, b) = (a.unwrap(), b.unwrap());
                eprintln!(
                    "{title}: {:?} {} events {} jumps, kernel {:?} {} events {} jumps",
                    a.end,
                    a.events.len(),
                    a.jumps().count(),
                    b.end,
                    b.events.len(),
                    b.jumps().count()
                );
                if std::env::var("ONLY").is_ok() {
                    for (k, path) in [("linear", &a), ("kernel", &b)] {
                        for e in path.events.iter() {
                            eprintln!("{k} {:.12} {:?} {:?} {:.3e} {:.3e}", e.age, e.kind, e.cause, e.size, e.drop);
                        }
                        eprintln!("{:?}", path.work);
                    }
                }
                check(&linear, &a, 100, &title);
                same += usize::from(compare((&linear, &a), (&kernel, &b), &title));
            }
        }
    }
    eprintln!("{same}");
}
