//! The active set of losses with pieces in linear space: paths that can be written down, and points where far more rows lie at
//! their kink than can be told apart.

use agepath::loss::LossParameters;
use agepath::model::{Model, Strength};
use agepath::pacing::{self, PacingSpec};
use agepath::path::{Direction, End, Kind, Path, PathOptions, Progress, age_path};
use agepath::registry::Values;
use agepath::space::Design;
use agepath::{Problem, Spec};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

const KKT: f64 = 1e-9;

fn spec(model: &str, c: f64, pacing: &str) -> Spec {
    let strength = Strength { loss: LossParameters::with_c(c), ..Strength::default() };
    let pacing = PacingSpec::by_name(pacing, &Values::default()).unwrap();
    Spec { kernel: None, ..Spec::preset(Model::by_name(model).unwrap(), &strength, pacing) }
}

fn go(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// One row x = 1 with target y, no intercept.
fn one_row(model: &str, y: f64, pacing: &str) -> Problem {
    let design = Design::from_row_major(1, 1, &[1.0], false).unwrap();
    Problem::new(design, vec![y], None, false, &spec(model, 0.5, pacing)).unwrap()
}

fn follow(problem: &Problem, ages: (f64, f64), direction: Direction) -> Path {
    let options = PathOptions { ages, direction, ..PathOptions::default() };
    age_path(problem, &options, &mut go).unwrap()
}

/// ½w² + F(½(1 − w)): w = (½ − ¼u)/(1 − ¼u) with u = 1/λ while the loss is below λ, that is down to λ = ½; then w = 0.
#[test]
fn one_hinge_under_linear_pacing() {
    let problem = one_row("svm", 1.0, "linear");
    let path = follow(&problem, (0.1, 10.0), Direction::Down);
    assert_eq!(path.end, End::Complete);
    assert!(path.gaps.is_empty() && path.certificate.max_kkt <= 1e-13, "{:e}", path.certificate.max_kkt);
    for age in [10.0, 3.0, 1.0, 0.7, 0.5001, 0.4, 0.1] {
        let (u, w) = (1.0 / age, path.at(&problem, age).unwrap().coef[0]);
        let expected = if age > 0.5 { (0.5 - 0.25 * u) / (1.0 - 0.25 * u) } else { 0.0 };
        assert!((w - expected).abs() < 1e-13, "{w} for {expected} at {age}");
    }
    let [event] = path.events[..] else { panic!("{:?}", path.events) };
    assert!(event.kind == Kind::Turning && (event.age - 0.5).abs() < 1e-11, "{event:?}");
}

/// Hard pacing keeps the ordinary fit w = ½ down to its loss, then drops the row.
#[test]
fn one_row_under_hard_pacing() {
    // C(1 − ½) for the hinge; C(2 − ½ − 0.1) for the tube; Cτ(2 − ¼) for the median, whose slope is ½C.
    for (model, y, w, loss) in [("svm", 1.0, 0.5, 0.25), ("svr", 2.0, 0.5, 0.7), ("quantile", 2.0, 0.25, 0.4375)] {
        let problem = one_row(model, y, "hard");
        let path = follow(&problem, (0.1, 10.0), Direction::Down);
        assert_eq!(path.end, End::Complete, "{model}");
        let jumps: Vec<f64> = path.jumps().map(|e| e.age).collect();
        assert!(jumps.len() == 1 && (jumps[0] / loss - 1.0).abs() < 1e-11, "{model}: {jumps:?}");
        let at = |age: f64| path.at(&problem, age).unwrap().coef[0];
        assert!((at(1.01 * loss) - w).abs() < 1e-13 && at(0.99 * loss).abs() < 1e-13, "{model}");
    }
}

/// Integer and one-hot columns: rows repeat, and hundreds share a kink.
fn one_hot(n: usize, seed: u64) -> (Vec<f64>, Vec<f64>, usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (levels, d) = ([3, 4, 5], 13);
    let (mut x, mut y) = (vec![0.0; n * d], Vec::with_capacity(n));
    for row in x.chunks_mut(d) {
        let mut first = 0;
        let mut score = -1.0;
        for l in levels {
            let level = rng.random_range(0..l);
            row[first + level] = 1.0;
            score += level as f64 * 0.4;
            first += l;
        }
        row[first] = rng.random_range(0..3) as f64;
        score -= 0.3 * row[first];
        let wrong = rng.random::<f64>() < 0.25;
        y.push(if (score > 0.0) != wrong { 1.0 } else { -1.0 });
    }
    (x, y, d)
}

fn check(problem: &Problem, path: &Path, title: &str) {
    assert_eq!(path.end, End::Complete, "{title}");
    assert!(path.certificate.max_kkt <= KKT, "{title}: {:e}", path.certificate.max_kkt);
    let width: f64 = path.gaps.iter().map(|gap| (gap.to / gap.from).ln().abs()).sum();
    assert!(width <= 1e-6, "{title}: gaps of {width:e}");
    for share in [0.1, 0.35, 0.6, 0.85] {
        let (low, high) = path.ages;
        let age = low * (high / low).powf(share);
        let point = path.at(problem, age).unwrap_or_else(|e| panic!("{title}: at {age}: {e}"));
        assert!(point.kkt <= KKT, "{title}: {:e} at {age}", point.kkt);
    }
    path.jumps().for_each(|jump| assert!(jump.drop >= -1e-9, "{title}: rises by {:e}", -jump.drop));
}

#[test]
fn hundreds_of_rows_at_the_kink() {
    for (seed, c) in [(1, 0.05), (2, 1.0)] {
        let (x, y, d) = one_hot(300, seed);
        for entry in pacing::REGISTRY.rows() {
            let design = Design::from_row_major(300, d, &x, true).unwrap();
            let problem = Problem::new(design, y.clone(), None, true, &spec("svm", c, entry.name)).unwrap();
            let root = matches!(entry.name, "mixture" | "huber");
            let ages = if root { (c.sqrt(), 3.0 * c.sqrt()) } else { (0.8 * c, 6.0 * c) };
            let path = follow(&problem, ages, Direction::Down);
            check(&problem, &path, &format!("{} C {c}", entry.name));
        }
    }
}

/// Weights that differ by orders of magnitude, and rows that do not count at all.
#[test]
fn sample_weights() {
    let (x, y, d) = one_hot(150, 5);
    let weights: Vec<f64> = (0..150).map(|i| [1.0, 0.0, 1e-4, 3.0, 0.2][i % 5]).collect();
    for entry in pacing::REGISTRY.rows() {
        let design = Design::from_row_major(150, d, &x, true).unwrap();
        let problem = Problem::new(design, y.clone(), Some(&weights), true, &spec("svm", 1.0, entry.name)).unwrap();
        let path = follow(&problem, (0.9, 6.0), Direction::Down);
        check(&problem, &path, entry.name);
    }
}

/// A stop is honoured at once, in fits and landings too, and leaves a certified part of the path.
#[test]
fn a_stop_is_honoured_at_once() {
    let (x, y, d) = one_hot(600, 3);
    let noisy: Vec<f64> = x.iter().enumerate().map(|(k, x)| x + 0.01 * ((k * 37 % 101) as f64 / 101.0)).collect();
    let design = Design::from_row_major(600, d, &noisy, true).unwrap();
    let problem = Problem::new(design, y, None, true, &spec("svm", 1.0, "linear")).unwrap();
    let limit = Duration::from_millis(300);
    let options = PathOptions { ages: (0.3, 6.0), time_limit: Some(limit), ..PathOptions::default() };
    let begun = Instant::now();
    match age_path(&problem, &options, &mut go) {
        Ok(path) => {
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
            assert!(path.certificate.max_kkt <= KKT, "{:e}", path.certificate.max_kkt);
        }
        Err(error) => panic!("{error}"),
    }
}
