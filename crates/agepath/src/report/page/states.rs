//! What every training row is doing at the stored ages.

use super::encode::Packed;
use super::frames::Frame;
use crate::loss::LossAt;
use crate::problem::Problem;
use rayon::prelude::*;
use serde::Serialize;

/// At most this many rows are drawn; more would not be told apart in a plot some hundred pixels high.
const DRAWN: usize = 600;

/// Rows that are drawn, and all rows counted.
#[derive(Debug, Serialize)]
pub(super) struct States {
    /// Positions of the drawn rows in the order of suspicion.
    pub rank: Packed,
    /// Row numbers of the drawn rows in the user's file.
    pub row: Packed,
    /// Targets of the drawn rows, in the user's units.
    pub target: Packed,
    /// Extent of the predictions.
    pub extent: (f64, f64),
    /// Predictions of the drawn rows in the user's units, frame by frame.
    pub prediction: Packed,
    /// Weights of the drawn rows, frame by frame.
    pub weight: Packed,
    /// Names of the zones.
    pub zones: &'static [&'static str],
    /// How many rows are in each zone, frame by frame.
    pub counts: Packed,
    /// The sum of all weights, frame by frame.
    pub trusted: Packed,
}

/// One frame.
struct State {
    prediction: Vec<f64>,
    weight: Vec<f64>,
    counts: Vec<u32>,
    trusted: f64,
}

/// What the rows are called and how their predictions are measured.
pub(super) struct Rows<'a> {
    /// Indices of the rows, most suspicious first.
    pub order: &'a [usize],
    /// Row numbers in the user's file.
    pub number: &'a [usize],
    /// Targets in the user's units.
    pub target: &'a [f64],
    /// From the solver's units to the user's.
    pub predict: &'a (dyn Fn(f64) -> f64 + Sync),
}

impl States {
    pub fn new(problem: &Problem, frames: &[Frame], rows: &Rows) -> States {
        let rank = spread(rows.order.len(), DRAWN);
        let drawn: Vec<usize> = rank.iter().map(|&k| rows.order[k]).collect();
        let states: Vec<State> = frames.par_iter().map(|f| state(problem, f, &drawn, rows.predict)).collect();
        let all = || states.iter().flat_map(|s| &s.prediction).copied();
        let extent = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
        let extent = if extent.0 <= extent.1 { extent } else { (0.0, 0.0) };
        States {
            rank: Packed::u32(rank.iter().map(|&k| k as u32)),
            row: Packed::u32(drawn.iter().map(|&i| rows.number[i] as u32)),
            target: Packed::f64(drawn.iter().map(|&i| rows.target[i])),
            extent,
            prediction: Packed::steps(all(), extent),
            weight: Packed::shares(states.iter().flat_map(|s| &s.weight).copied()),
            zones: problem.pacing().zones(),
            counts: Packed::u32(states.iter().flat_map(|s| &s.counts).copied()),
            trusted: Packed::f64(states.iter().map(|s| s.trusted)),
        }
    }
}

/// `many` positions at most, evenly from 0 to `count`, the first and the last among them.
pub(super) fn spread(count: usize, many: usize) -> Vec<usize> {
    if count <= many {
        return (0..count).collect();
    }
    (0..many).map(|k| k * (count - 1) / (many - 1)).collect()
}

fn state(problem: &Problem, frame: &Frame, drawn: &[usize], predict: &(dyn Fn(f64) -> f64 + Sync)) -> State {
    let z = problem.predict(&frame.theta);
    let mut losses = vec![LossAt::default(); z.len()];
    problem.loss().fill(&z, problem.target(), &mut losses);
    let (pacing, u) = (problem.pacing(), 1.0 / frame.age);
    let cuts = pacing.cuts(u);
    let mut counts = vec![0; pacing.zones().len()];
    let weights: Vec<f64> = losses
        .iter()
        .map(|l| {
            let zone = cuts.zone(l.value);
            counts[usize::from(zone)] += 1;
            pacing.at(zone, l.value, u).value
        })
        .collect();
    State {
        prediction: drawn.iter().map(|&i| predict(z[i])).collect(),
        weight: drawn.iter().map(|&i| weights[i]).collect(),
        counts,
        trusted: weights.iter().sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_rows_reach_both_ends() {
        assert_eq!(spread(4, 10), [0, 1, 2, 3]);
        let some = spread(20_000, 600);
        assert_eq!((some.len(), some[0], some[599]), (600, 0, 19_999));
        assert!(some.is_sorted_by(|a, b| a < b));
    }
}
