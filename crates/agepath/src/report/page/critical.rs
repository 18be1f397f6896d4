//! Critical points as a page or a plot shows them: counted along the age axis, and the jumps one by one.

use super::encode::Packed;
use crate::path::{Cause, Kind, Path};
use serde::Serialize;

/// Bars of the histogram.
const BINS: usize = 60;

/// How critical points are told apart, in the order of [`Histogram::counts`].
pub(in crate::report) const KINDS: [&str; 3] = ["a row turns", "a coefficient turns", "jump"];

/// Critical points counted between `edges`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::report) struct Histogram {
    /// One more than there are bars.
    pub edges: Vec<f64>,
    /// Per kind, per bar.
    pub counts: [Vec<usize>; 3],
}

/// One jump.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Jump {
    age: f64,
    size: f64,
    drop: f64,
    cause: String,
}

/// Everything about them.
#[derive(Debug, Serialize)]
pub(super) struct Critical {
    kinds: [&'static str; 3],
    /// Bars evenly spaced in ln λ.
    log: Histogram,
    /// Bars evenly spaced in λ.
    linear: Histogram,
    /// Ages of the turning points; for the marks on the age axis.
    turning: Packed,
    jumps: Vec<Jump>,
}

impl Critical {
    /// `name` says what a row or a column is called.
    pub fn new(path: &Path, rows: &[usize], features: &[String]) -> Critical {
        let turning = path.events.iter().filter(|e| e.kind == Kind::Turning);
        Critical {
            kinds: KINDS,
            log: Histogram::log(path),
            linear: Histogram::count(path, |share, (low, high)| low + share * (high - low)),
            turning: Packed::f64(turning.map(|e| e.age)),
            jumps: path.jumps().map(|e| jump(e.age, e.size, e.drop, &e.cause, rows, features)).collect(),
        }
    }
}

fn jump(age: f64, size: f64, drop: f64, cause: &Cause, rows: &[usize], features: &[String]) -> Jump {
    let cause = match *cause {
        Cause::Sample { index, from, to } => format!("row {} from {from} to {to}", rows[index]),
        Cause::Feature { index, from, to } => format!("coefficient of {} from {from} to {to}", features[index]),
        Cause::Fold => "fold: the solution ceased to exist".into(),
    };
    Jump { age, size, drop, cause }
}

impl Histogram {
    /// Bars evenly spaced in ln λ.
    pub fn log(path: &Path) -> Histogram {
        Histogram::count(path, |share, (low, high)| low * (high / low).powf(share))
    }

    fn count(path: &Path, edge: impl Fn(f64, (f64, f64)) -> f64) -> Histogram {
        let edges: Vec<f64> = (0..=BINS).map(|k| edge(k as f64 / BINS as f64, path.ages)).collect();
        let mut counts = [(); 3].map(|()| vec![0; BINS]);
        for event in &path.events {
            let kind = match (event.kind, event.cause) {
                (Kind::Jump, _) => 2,
                (Kind::Turning, Cause::Feature { .. }) => 1,
                (Kind::Turning, _) => 0,
            };
            let bin = edges.partition_point(|&e| e <= event.age).clamp(1, BINS) - 1;
            counts[kind][bin] += 1;
        }
        Histogram { edges, counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{Certificate, Direction, End, Event, Work};

    #[test]
    fn every_event_is_counted_once() {
        let event = |age, kind, cause| Event { age, kind, cause, size: 0.0, drop: 0.0 };
        let row = Cause::Sample { index: 0, from: "E", to: "D" };
        let column = Cause::Feature { index: 0, from: "zero", to: "active" };
        let path = Path {
            ages: (1.0, 100.0),
            direction: Direction::Down,
            knots: Vec::new(),
            events: vec![
                event(100.0, Kind::Turning, row),
                event(10.0, Kind::Turning, column),
                event(1.0, Kind::Jump, Cause::Fold),
            ],
            gaps: Vec::new(),
            notes: Vec::new(),
            certificate: Certificate::default(),
            work: Work::default(),
            end: End::Complete,
        };
        let log = Histogram::log(&path);
        let filled = |k: usize| -> Vec<usize> { (0..BINS).filter(|&b| log.counts[k][b] > 0).collect() };
        assert_eq!((filled(0), filled(2)), (vec![BINS - 1], vec![0]));
        assert_eq!(log.counts.iter().flatten().sum::<usize>(), 3);
        assert!(filled(1)[0].abs_diff(BINS / 2) <= 1);
    }
}
