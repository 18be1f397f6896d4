//! What every training row is doing at the stored ages.

use super::encode::Packed;
use super::frames::Frame;
use crate::loss::LossAt;
use crate::path::{NO_LOSS, PINNED};
use crate::problem::Problem;
use rayon::prelude::*;
use serde::Serialize;

/// At most this many rows are drawn; more would not be told apart in a plot some hundred pixels high.
const DRAWN: usize = 600;

/// A predictor this close to a kink, relatively, is on it: solutions are exact to a few roundings.
const AT_KINK: f64 = 1e-9;

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
    /// Names of the zones; with a loss in pieces, also of what is left of the pacing's first one.
    pub zones: Vec<&'static str>,
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
            zones: zone_names(problem),
            counts: Packed::u32(states.iter().flat_map(|s| &s.counts).copied()),
            trusted: Packed::f64(states.iter().map(|s| s.trusted)),
        }
    }
}

/// The pacing's zones; rows without loss and rows at a kink are counted apart where the loss has pieces or kinks.
fn zone_names(problem: &Problem) -> Vec<&'static str> {
    let mut names = problem.pacing().zones().to_vec();
    names.extend(problem.loss().has_pieces().then_some(NO_LOSS));
    names.extend(problem.loss().is_kinked().then_some(PINNED));
    names
}

/// The place among [`zone_names`] of a row without loss or at a kink; none for any other row.
fn place(problem: &Problem, z: f64, y: f64, loss: &LossAt) -> Option<usize> {
    let (zones, kinks) = (problem.pacing().zones().len(), problem.loss().kinks(y));
    let at_kink = || kinks.as_slice().iter().any(|k| (z - k).abs() <= AT_KINK * (1.0 + k.abs()));
    if problem.loss().is_kinked() && at_kink() {
        Some(zones + 1)
    } else {
        (problem.loss().has_pieces() && loss.slope == 0.0).then_some(zones)
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
    let losses: Vec<LossAt> = z.iter().zip(problem.target()).map(|(&z, &y)| problem.loss().at(z, y)).collect();
    let (pacing, u) = (problem.pacing(), 1.0 / frame.age);
    let cuts = pacing.cuts(u);
    let mut counts = vec![0; zone_names(problem).len()];
    for (i, loss) in losses.iter().enumerate() {
        counts[place(problem, z[i], problem.target()[i], loss).unwrap_or(usize::from(cuts.zone(loss.value)))] += 1;
    }
    let weights: Vec<f64> = losses.iter().map(|l| pacing.weight(l.value, u)).collect();
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
