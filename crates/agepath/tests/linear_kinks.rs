//! Losses with kinks in linear space: the same paths as with the linear kernel, residuals from scratch at every knot and at
//! random ages, and degenerate rows.

use agepath::dataset::{ReadOptions, Table, builtin};
use agepath::loss::LossParameters;
use agepath::model::{Model, SampleScale, Strength};
use agepath::pacing::{self, PacingSpec};
use agepath::path::{Direction, End, Path, PathOptions, age_path};
use agepath::penalty::Penalty;
use agepath::prepare::{PrepareOptions, Prepared, Validation, default_ages, prepare};
use agepath::registry::Values;
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
    pacing::REGISTRY.rows().into_iter().map(|row| (row.name, row.build(&Values::default()).unwrap().spec()))
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

fn follow(problem: &Problem, ages: (f64, f64)) -> Path {
    let options = PathOptions { ages, direction: Direction::Down, ..PathOptions::default() };
    age_path(problem, &options, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Ages above those where one class, or no row at all, is left.
fn upper_ages(problem: &Problem) -> (f64, f64) {
    let (low, high) = default_ages(problem).unwrap();
    ((low * high * high).cbrt(), high)
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
                let data = data(model, 60, 4, seed);
                let linear = problem(&data, true, &spec(model, pacing.clone(), None));
                let kernel = problem(&data, true, &spec(model, pacing.clone(), Some(Kernel::Linear)));
                assert_eq!((linear.parameters(), linear.kernel()), (5, None));
                let ages = upper_ages(&linear);
                // Two digits, rounded up, of fits that agree to their tolerance.
                let beside = |a: f64, b: f64| (a / b - 1.0).abs() < 0.1;
                let others = upper_ages(&kernel);
                assert!(beside(ages.0, others.0) && beside(ages.1, others.1), "{title}: {ages:?}, {others:?}");
                let (a, b) = (follow(&linear, ages), follow(&kernel, ages));
                assert_eq!((a.end, b.end), (End::Complete, End::Complete), "{title}");
                check(&linear, &a, 100, &title);
                same += usize::from(compare((&linear, &a), (&kernel, &b), &title));
            }
        }
    }
    // Of 60; rounding may choose another basin.
    assert!(same >= 55, "{same} pairs of paths jump at the same ages");
}

fn prepared(table: &Table, model: &str, noise: &str, pacing: PacingSpec, kernel: KernelChoice) -> Prepared {
    let options = PrepareOptions {
        model: Some(model.into()),
        kernel,
        pacing,
        noise: Some(noise.parse().unwrap()),
        validation: Validation::Fraction(0.7),
        ..PrepareOptions::default()
    };
    prepare(table, &options).unwrap()
}

#[test]
fn linear_space_is_the_linear_kernel_on_real_rows() {
    let classes = builtin("breast_cancer", &ReadOptions::default()).unwrap();
    let numbers = builtin("diabetes", &ReadOptions::default()).unwrap();
    for (name, pacing) in pacings() {
        for model in MODELS {
            let title = format!("{model} {name}");
            let (table, noise) =
                if is_for_classes(model) { (&classes, "flip:0.2") } else { (&numbers, "outliers:0.2") };
            let linear = prepared(table, model, noise, pacing.clone(), KernelChoice::None).problem;
            let kernel = prepared(table, model, noise, pacing.clone(), KernelChoice::Is(Kernel::Linear)).problem;
            let ages = upper_ages(&linear);
            let (a, b) = (follow(&linear, ages), follow(&kernel, ages));
            assert_eq!((a.end, b.end), (End::Complete, End::Complete), "{title}");
            check(&linear, &a, 12, &title);
            compare((&linear, &a), (&kernel, &b), &title);
        }
    }
}

#[test]
fn slopes_match_finite_differences() {
    for (model, pacing) in [("svm", "linear"), ("squared-svm", "log"), ("quantile", "mixture"), ("svr", "linear")] {
        let pacing = PacingSpec::by_name(pacing, &Values::default()).unwrap();
        let problem = problem(&data(model, 60, 4, 1), true, &spec(model, pacing.clone(), None));
        let path = follow(&problem, upper_ages(&problem));
        let mut compared = 0;
        for age in random_ages(path.ages, 12) {
            let h = 1e-5 * age;
            let inside = |a: f64| (a / age - 1.0).abs() > 1e-4;
            if !path.events.iter().all(|e| inside(e.age)) || !path.ages.0.lt(&(age - h)) || age + h > path.ages.1 {
                continue;
            }
            let (below, above) = (path.at(&problem, age - h).unwrap(), path.at(&problem, age + h).unwrap());
            let slope = path.slope(&problem, age).unwrap();
            let size = slope.coef.iter().fold(slope.intercept.abs(), |a, s| a.max(s.abs()));
            let differences = above.coef.iter().zip(&below.coef).map(|(a, b)| (a - b) / (2.0 * h));
            let all = differences.chain([(above.intercept - below.intercept) / (2.0 * h)]);
            for (difference, slope) in all.zip(slope.coef.iter().chain([&slope.intercept])) {
                assert!((difference - slope).abs() <= 1e-5 * (1e-3 + size), "{model} at {age}: {difference}, {slope}");
            }
            compared += 1;
        }
        assert!(compared >= 6, "{model}: {compared} ages");
    }
}

/// The same rows in linear space and with the linear kernel, whatever the design looks like.
fn assert_same_path(design: impl Fn() -> Design, y: &[f64], intercept: bool, model: &str, title: &str) {
    for (name, pacing) in pacings() {
        let title = format!("{title}: {model} {name}");
        let make =
            |kernel| Problem::new(design(), y.to_vec(), None, intercept, &spec(model, pacing.clone(), kernel)).unwrap();
        let (linear, kernel) = (make(None), make(Some(Kernel::Linear)));
        let ages = upper_ages(&linear);
        let (a, b) = (follow(&linear, ages), follow(&kernel, ages));
        assert_eq!((a.end, b.end), (End::Complete, End::Complete), "{title}");
        check(&linear, &a, 12, &title);
        compare((&linear, &a), (&kernel, &b), &title);
    }
}

#[test]
fn without_an_intercept() {
    for model in MODELS {
        let Data { n, d, x, y } = data(model, 50, 3, 4);
        assert_same_path(|| Design::from_row_major(n, d, &x, false).unwrap(), &y, false, model, "no intercept");
    }
}

#[test]
fn a_constant_column() {
    for model in MODELS {
        let Data { n, d, mut x, y } = data(model, 50, 4, 5);
        x.chunks_mut(d).for_each(|row| row[2] = 0.7);
        assert_same_path(|| Design::from_row_major(n, d, &x, true).unwrap(), &y, true, model, "constant column");
    }
}

#[test]
fn repeated_rows() {
    for model in MODELS {
        let Data { n, d, mut x, mut y } = data(model, 50, 4, 6);
        for i in (0..n - 1).step_by(9) {
            x.copy_within(i * d..(i + 1) * d, (i + 1) * d);
            y[i + 1] = y[i];
        }
        assert_same_path(|| Design::from_row_major(n, d, &x, true).unwrap(), &y, true, model, "repeated rows");
    }
}

/// A rare class that the features say next to nothing of.
fn rare_class(d: usize, share: f64) -> Data {
    let n = 60;
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let rare: Vec<bool> = (0..n).map(|_| rng.random::<f64>() < share).collect();
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let x = (0..n * d).map(|k| normal() + if rare[k / d] { 0.15 } else { 0.0 }).collect();
    Data { n, d, x, y: rare.iter().map(|&rare| if rare { 1.0 } else { -1.0 }).collect() }
}

/// Where features say nothing of a class that is rare, the model is a constant: every other row is at its kink, and only a few
/// of the multipliers that hold them there are determined.
#[test]
fn features_that_say_nothing() {
    let (mut ways_up, mut complete) = (0, 0);
    for (d, share) in [(1, 0.1), (2, 0.25), (2, 0.4), (5, 0.1), (5, 0.25)] {
        let data = rare_class(d, share);
        for (name, pacing) in pacings() {
            // Losses are 0 and 2C = 1, and a mixture's age is the square root of one.
            let root = ["mixture", "huber"].contains(&pacing.kind);
            let ages = if root { (0.5, 3.0) } else { (0.25, 9.0) };
            for kernel in [None, Some(Kernel::Linear)] {
                let problem = problem(&data, true, &spec("svm", pacing.clone(), kernel));
                for direction in [Direction::Down, Direction::Up] {
                    let title = format!("{name} {kernel:?} {direction:?} {d} features, {share}");
                    let options = PathOptions { ages, direction, ..PathOptions::default() };
                    let path = age_path(&problem, &options, &mut |_| ControlFlow::Continue(())).unwrap();
                    check(&problem, &path, 2, &title);
                    match direction {
                        Direction::Down => assert_eq!(path.end, End::Complete, "{title}"),
                        // Weights without slope have gaps of their own (DESIGN.md, "Known defects").
                        Direction::Up if ["polynomial", "welsch"].contains(&pacing.kind) => {}
                        Direction::Up => {
                            (ways_up, complete) = (ways_up + 1, complete + usize::from(path.end == End::Complete))
                        }
                    }
                }
            }
        }
    }
    // A known defect: on the way up a few end where too many rows are at their kink.
    assert!(ways_up == 50 && complete >= 48, "{complete} of {ways_up} paths come up to the end");
}

#[test]
fn fewer_rows_than_columns() {
    for model in MODELS {
        let Data { n, d, x, y } = data(model, 24, 40, 7);
        assert_same_path(|| Design::from_row_major(n, d, &x, true).unwrap(), &y, true, model, "wide");
    }
}

#[test]
fn sparse_rows() {
    for model in MODELS {
        let Data { n, d, mut x, y } = data(model, 60, 5, 8);
        x.iter_mut().enumerate().filter(|(k, _)| k % 3 == 1).for_each(|(_, v)| *v = 0.0);
        let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in x.chunks(d) {
            for (j, v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                indices.push(j as u32);
                values.push(*v);
            }
            starts.push(values.len());
        }
        assert_eq!(starts.len(), n + 1);
        let design = || Design::from_csr(d, starts.clone(), indices.clone(), values.clone(), true).unwrap();
        assert_same_path(design, &y, true, model, "sparse");
    }
}

#[test]
fn other_penalties_are_refused() {
    let Data { n, d, x, y } = data("svm", 20, 3, 9);
    let hinge = spec("svm", PacingSpec::by_name("linear", &Values::default()).unwrap(), None);
    for penalty in [Penalty::L1 { alpha: 0.1 }, Penalty::None, Penalty::L2 { alpha: 0.0 }] {
        let design = Design::from_row_major(n, d, &x, true).unwrap();
        let spec = Spec { penalty, scale: SampleScale::Sum, ..hinge.clone() };
        let error = Problem::new(design, y.clone(), None, true, &spec).unwrap_err().to_string();
        assert!(error.contains("l2 penalty above 0") && error.contains("hinge"), "{error}");
    }
}
