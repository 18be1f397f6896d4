//! A path that is stopped wherever its caller is asked, in the middle of a landing too, is the beginning of the whole one.

use agepath::Problem;
use agepath::dataset::{ReadOptions, builtin};
use agepath::decide::follow;
use agepath::pacing::PacingSpec;
use agepath::path::{Direction, End, Kind, Path, PathOptions, Progress, age_path};
use agepath::prepare::{PrepareOptions, Validation, default_ages, prepare};
use agepath::registry::Values;
use agepath::space::KernelChoice;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

const KKT: f64 = 1e-9;
/// Stops tried over the whole path.
const STOPS: usize = 20;

fn problem(model: &str, pacing: &str, kernel: KernelChoice) -> Problem {
    let table = builtin("breast_cancer", &ReadOptions::default()).unwrap();
    let options = PrepareOptions {
        model: Some(model.into()),
        kernel,
        pacing: PacingSpec::by_name(pacing, &Values::default()).unwrap(),
        noise: Some("flip:0.2".parse().unwrap()),
        validation: Validation::Fraction(0.5),
        ..PrepareOptions::default()
    };
    prepare(&table, &options).unwrap().problem
}

/// The path up to the ask that `stop` says no to, and what was said at every ask.
fn asked(problem: &Problem, direction: Direction, stop: usize) -> (Path, Vec<Progress>) {
    let options =
        PathOptions { direction, ages: default_ages(problem).unwrap(), certify: Some(50), ..PathOptions::default() };
    let mut told = Vec::new();
    let path = age_path(problem, &options, &mut |progress| {
        told.push(*progress);
        if told.len() > stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (path.unwrap(), told)
}

fn stops_anywhere(problem: &Problem, title: &str) {
    for direction in [Direction::Down, Direction::Up] {
        let (whole, told) = asked(problem, direction, usize::MAX);
        assert_eq!(whole.end, End::Complete, "{title}");
        for k in 0..STOPS {
            let (part, _) = asked(problem, direction, k * told.len() / STOPS);
            let title = format!("{title} {direction:?} stopped at ask {} of {}", k * told.len() / STOPS, told.len());
            // Who is asked by the clock may not be asked that often again.
            assert!(matches!(part.end, End::Interrupted | End::Complete), "{title}: {}", part.end);
            assert!(part.certificate.max_kkt <= KKT, "{title}: {:e}", part.certificate.max_kkt);
            assert!(part.events.len() <= whole.events.len(), "{title}");
            for (a, b) in part.events.iter().zip(&whole.events) {
                assert_eq!((a.kind, &a.cause), (b.kind, &b.cause), "{title}");
            }
        }
    }
}

#[test]
fn a_stopped_path_in_linear_space_is_the_beginning_of_the_whole() {
    for pacing in ["linear", "mixture", "log"] {
        stops_anywhere(&problem("logistic", pacing, KernelChoice::None), pacing);
    }
}

#[test]
fn a_stopped_path_in_kernel_space_is_the_beginning_of_the_whole() {
    for pacing in ["hard", "linear", "mixture", "log"] {
        stops_anywhere(&problem("svm", pacing, KernelChoice::OfModel), pacing);
    }
}

/// Linear space asks at every ACS step: between two events there are asks at the age of a jump.
#[test]
fn a_landing_asks_on_its_way() {
    let problem = problem("logistic", "mixture", KernelChoice::None);
    let (path, told) = asked(&problem, Direction::Down, usize::MAX);
    let jumps: Vec<f64> = path.events.iter().filter(|e| e.kind == Kind::Jump).map(|e| e.age).collect();
    let during = |age: &f64| told.iter().filter(|p| (p.age / age - 1.0).abs() < 1e-12).count() >= 2;
    assert!(!jumps.is_empty() && jumps.iter().all(during), "{} jumps, {} asks", jumps.len(), told.len());
}

#[test]
fn no_time_is_no_reason_to_try_other_ages() {
    for kernel in [KernelChoice::OfModel, KernelChoice::None] {
        let problem = problem("squared-svm", "linear", kernel);
        let options = PathOptions { time_limit: Some(Duration::ZERO), ..PathOptions::default() };
        let mut told = Vec::new();
        let begun = Instant::now();
        let found = follow(&problem, &options, None, &mut |ages| told.push(ages), &mut |_| ControlFlow::Continue(()));
        assert_eq!(told.len(), 1);
        match found {
            Ok((path, _)) => assert_eq!(path.end, End::TimeLimit),
            Err(error) => assert!(error.to_string().contains("time limit"), "{error}"),
        }
        // The fit for the default ages, and a moment's grace for a first point; a loaded machine gets ten times that.
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}
