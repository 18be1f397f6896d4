//! A loss and a pacing that agepath does not know: their laws, a path with its certificate, and the same by name through files.
//!
//!     cargo run -p own-factor

mod log_cosh;
mod welsch;

use agepath::dataset::{ReadOptions, read_from};
use agepath::laws::{check_loss, check_pacing, check_pair};
use agepath::loss;
use agepath::model::{self, Model, SampleScale};
use agepath::pacing::{self, PacingSpec};
use agepath::path::{Direction, PathOptions, age_path};
use agepath::penalty::Penalty;
use agepath::prepare::{PrepareOptions, Validation, prepare};
use agepath::registry::{Row, Values};
use agepath::report::{Overwrite, Staging, restore, write_path};
use agepath::space::Design;
use agepath::{Factors, Problem};
use anyhow::{Result, ensure};
use log_cosh::{LogCosh, WIDTH};
use std::ops::ControlFlow;
use welsch::{FLOOR, OwnWelsch};

const ROWS: usize = 300;
/// Every fifth row is bad.
const BAD: usize = 5;
/// What the good rows say.
const TRUTH: [f64; 3] = [1.0, 0.0, -2.0];

fn main() -> Result<()> {
    let (loss, pacing) = (LogCosh { width: WIDTH.default }, OwnWelsch { floor: FLOOR.default });
    check_loss(&loss)?;
    check_pacing(&pacing)?;
    check_pair(&loss, &pacing)?;
    println!("the laws hold for {loss:?} and {pacing:?}");
    for direction in [Direction::Down, Direction::Up] {
        by_hand(loss, pacing, direction)?;
    }
    by_name()
}

/// The objects themselves, given to a problem.
fn by_hand(loss: LogCosh, pacing: OwnWelsch, direction: Direction) -> Result<()> {
    let (x, y) = rows();
    let factors = Factors {
        loss: Box::new(loss),
        pacing: Box::new(pacing),
        penalty: Penalty::L1 { alpha: 0.01 },
        scale: SampleScale::Mean,
        kernel: None,
    };
    let design = Design::from_row_major(ROWS, TRUTH.len(), &x, true)?;
    let problem = Problem::with_factors(design, y, None, true, factors)?;
    let options = PathOptions { ages: (0.05, 50.0), direction, ..PathOptions::default() };
    let path = age_path(&problem, &options, &mut |_| ControlFlow::Continue(()))?;
    let (end, worst) = (path.end.to_string(), path.certificate.max_kkt);
    println!("{direction:?}: {end}, {} knots, largest residual {worst:.1e}", path.knots.len());
    ensure!(end == "complete" && worst <= 1e-9, "the path is not certified");
    let [ordinary, robust] = [path.at(&problem, 50.0)?, path.at(&problem, 0.3)?];
    println!("  at age 50: {:.3?}; at age 0.3: {:.3?}", ordinary.coef, robust.coef);
    let wrong = |coef: &[f64]| coef.iter().zip(TRUTH).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    ensure!(wrong(&robust.coef) < 0.1, "bad rows were not seen through: {:?}", robust.coef);
    let left_out = robust.weights.iter().enumerate().filter(|(_, v)| **v <= 0.5);
    let (bad, good): (Vec<_>, Vec<_>) = left_out.map(|(i, _)| i).partition(|i| i % BAD == 0);
    println!("  left out there: {} of {} bad rows, {} good ones", bad.len(), ROWS / BAD, good.len());
    ensure!(bad.len() == ROWS / BAD && good.len() < ROWS / 20, "the wrong rows are left out");
    Ok(())
}

/// Registered, the names work in options, in files and when a result is read back.
fn by_name() -> Result<()> {
    let build = &|values: &Values| -> Box<dyn loss::Loss> { Box::new(LogCosh { width: values.get(&WIDTH) }) };
    let summary = "s^2 ln cosh((z - y)/s), regression";
    loss::REGISTRY.register(Row { name: "log-cosh", summary, parameters: &[WIDTH], build })?;
    let build = &|values: &Values| -> Box<dyn pacing::Pacing> { Box::new(OwnWelsch { floor: values.get(&FLOOR) }) };
    let summary = "v = exp(-loss/(age + floor))";
    pacing::REGISTRY.register(Row { name: "own-welsch", summary, parameters: &[FLOOR], build })?;
    model::register(Model {
        name: "log-cosh",
        summary: "(1/n) sum v s^2 ln cosh(r/s) + alpha |w|_1",
        loss: "log-cosh",
        scale: SampleScale::Mean,
        penalty: |s| Penalty::L1 { alpha: s.alpha },
        kernel: None,
    })?;
    let table = read_from(csv().as_bytes(), "made up", &ReadOptions::default())?;
    let options = PrepareOptions {
        model: Some("log-cosh".into()),
        pacing: PacingSpec::by_name("own-welsch", &Values::of(&[("floor", 0.2)]))?,
        validation: Validation::None,
        ..PrepareOptions::default()
    };
    let prepared = prepare(&table, &options)?;
    let options = PathOptions { ages: (0.05, 50.0), ..PathOptions::default() };
    let path = age_path(&prepared.problem, &options, &mut |_| ControlFlow::Continue(()))?;
    let dir = std::env::temp_dir().join(format!("own-factor-{}", std::process::id()));
    let staging = Staging::begin(&dir, Overwrite::Results)?;
    write_path(staging.dir(), &prepared, &path, &[])?;
    staging.commit()?;
    let restored = restore(&dir);
    std::fs::remove_dir_all(&dir)?;
    let restored = restored?;
    ensure!(restored.spec == prepared.spec && restored.path.knots == path.knots, "the file says something else");
    println!("by name: {} knots written and read back, pacing {:?}", path.knots.len(), restored.spec.pacing);
    Ok(())
}

/// Rows of a linear model, every fifth of which is far off; the same numbers everywhere.
fn rows() -> (Vec<f64>, Vec<f64>) {
    let mut state = 1u64;
    // A linear congruential generator (Knuth's MMIX); twelve uniform numbers add up to a nearly normal one.
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for i in 0..ROWS {
        let row: Vec<f64> = TRUTH.iter().map(|_| normal()).collect();
        let clean: f64 = row.iter().zip(TRUTH).map(|(x, w)| x * w).sum::<f64>() + 0.2 * normal();
        y.push(if i % BAD == 0 { clean + 6.0 + 2.0 * normal().abs() } else { clean });
        x.extend(row);
    }
    (x, y)
}

fn csv() -> String {
    let (x, y) = rows();
    let lines = x.chunks(TRUTH.len()).zip(y).map(|(row, y)| format!("{},{},{},{y}\n", row[0], row[1], row[2]));
    std::iter::once("a,b,c,y\n".into()).chain(lines).collect()
}
