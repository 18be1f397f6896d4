//! Paths in kernel space on real data, judged by residuals from scratch.

use agepath::dataset::{ReadOptions, builtin};
use agepath::loss::LossParameters;
use agepath::model::Strength;
use agepath::pacing::{self, PacingParameters};
use agepath::path::{Direction, End, PathOptions, age_path};
use agepath::prepare::{PrepareOptions, Validation, prepare};
use std::ops::ControlFlow;

#[test]
fn breast_cancer() {
    let only = std::env::var("ONLY").unwrap_or_default();
    for entry in pacing::REGISTRY.iter().filter(|e| only.is_empty() || only.contains(e.name)) {
        for direction in
            if std::env::var("DOWN").is_ok() { vec![Direction::Down] } else { vec![Direction::Down, Direction::Up] }
        {
            for c in std::env::var("CS").unwrap_or("0.2 1 2".into()).split(" ").map(|c| c.parse::<f64>().unwrap()) {
                let table = builtin("breast_cancer", &ReadOptions::default()).unwrap();
                let options = PrepareOptions {
                    model: Some("svm".into()),
                    strength: Strength { loss: LossParameters::with_c(c), ..Strength::default() },
                    pacing: (entry.spec)(&PacingParameters::default()),
                    noise: Some("flip:0.3".parse().unwrap()),
                    validation: Validation::None,
                    ..PrepareOptions::default()
                };
                let prepared = prepare(&table, &options).unwrap();
                let (low, high) = (0.25 * c, 4.0 * c);
                let ages = if entry.name == "mixture" { (low.sqrt(), high.sqrt()) } else { (low, high) };
                let options = PathOptions { ages, direction, ..PathOptions::default() };
                let path = age_path(&prepared.problem, &options, &mut |_| ControlFlow::Continue(()));
                match path {
                    Ok(path) => eprintln!(
                        "{} {direction:?} C={c}: {} events {} jumps {} knots kkt {:.1e} end {} work {:?}",
                        entry.name,
                        path.events.len(),
                        path.jumps().count(),
                        path.knots.len(),
                        path.certificate.max_kkt,
                        path.end,
                        path.work
                    ),
                    Err(e) => eprintln!("{} {direction:?} C={c}: {e}", entry.name),
                }
                let _ = End::Complete;
            }
        }
    }
}
