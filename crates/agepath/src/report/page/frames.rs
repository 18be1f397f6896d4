//! The ages a report stores: enough that straight lines between them look like the path.
//!
//! Every stored solution is exact: a knot of the path, or solved anew. The age axis is divided evenly in ln λ and each part gets a
//! solution; both sides of jumps are added; then gaps are halved where the path bends, as far as that is cheap.

use crate::error::{Error, Result};
use crate::path::{Path, Point};
use crate::problem::Problem;
use crate::select::theta;
use rayon::prelude::*;

/// Parts of the age axis: four or five pixels each on a usual screen.
const PARTS: usize = 160;
/// At most this many solutions are stored.
const MAX_FRAMES: usize = 320;
/// Both sides of at most this many jumps, the largest, are stored.
const MAX_JUMPS: usize = 40;
/// A line may miss the path by this share of the range of all lines: a pixel of a plot 300 pixels high.
const VISIBLE: f64 = 1.0 / 300.0;
/// Times that all gaps that bend are halved.
const ROUNDS: usize = 4;
/// A picture is worth so many operations of linear algebra, a second or two: where one solution takes many of them, fewer are solved
/// anew ...
const EFFORT: f64 = 5e8;
/// ... but so many at least.
const LEAST_SOLVED: usize = 8;

/// One stored solution.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::report) struct Frame {
    /// Its age.
    pub age: f64,
    /// Coefficients, then the intercept if there is one.
    pub theta: Vec<f64>,
    /// What the first panel draws: the coefficients, or in kernel space the decision values of some rows.
    pub trace: Vec<f64>,
}

/// Stored solutions, smallest age first. A jump's age occurs twice in a row.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::report) struct Frames {
    pub list: Vec<Frame>,
    /// The largest distance seen between a solution and the line through its neighbours, as a share of the range of all
    /// lines.
    pub deviation: f64,
}

impl Frames {
    /// The frames of a path, `wanted` ages among them; in kernel space `rows` are the ones that are traced.
    pub fn choose(problem: &Problem, path: &Path, wanted: &[f64], rows: &[usize]) -> Result<Frames> {
        let mut knots: Vec<Frame> =
            path.knots.par_iter().map(|k| frame(problem, k.age, &k.coef, k.intercept, rows)).collect();
        if knots.first().zip(knots.last()).is_some_and(|(a, b)| a.age > b.age) {
            knots.reverse();
        }
        let Some(ends) = knots.first().zip(knots.last()).map(|(a, b)| (a.age, b.age)) else {
            return Ok(Frames { list: knots, deviation: 0.0 });
        };
        let range = range(&knots);
        let (kept, missing) = cover(&knots, ends);
        let mut list: Vec<Frame> = kept.into_iter().map(|k| knots[k].clone()).collect();
        let wanted = wanted.iter().copied().filter(|a| list.iter().all(|f| f.age != *a));
        let mut solver = Solver { problem, path, rows, left: solvable(problem) };
        list.extend(solver.exact(wanted)?);
        list.extend(solver.some(&missing)?);
        // Stable, so both sides of a jump stay in order.
        list.sort_by(|a, b| a.age.total_cmp(&b.age));
        let mut frames = Frames { list, deviation: 0.0 };
        frames.refine(range, |ages| solver.some(ages))?;
        Ok(frames)
    }

    /// Halves the gaps at which the path bends visibly.
    fn refine(&mut self, range: f64, mut solve: impl FnMut(&[f64]) -> Result<Vec<Frame>>) -> Result<()> {
        let mut suspicious = self.bends(range);
        for _ in 0..ROUNDS {
            suspicious.truncate(MAX_FRAMES.saturating_sub(self.list.len()));
            let middles: Vec<f64> =
                suspicious.iter().map(|&k| (self.list[k].age * self.list[k + 1].age).sqrt()).collect();
            let found = solve(&middles)?;
            if found.is_empty() {
                break;
            }
            let mut bent = Vec::new();
            for frame in found {
                // Between both sides of a jump there is nothing, so the place is unique.
                let k = self.list.partition_point(|f| f.age < frame.age);
                let Some([a, b]) = k.checked_sub(1).and_then(|k| self.list.get(k..k + 2)) else { continue };
                let off = distance(a, &frame, b) / range;
                if off > VISIBLE {
                    bent.push(frame.age);
                } else {
                    self.deviation = self.deviation.max(off);
                }
                self.list.insert(k, frame);
            }
            let is_bent = |k: &usize| bent.iter().any(|a| *a == self.list[*k].age || *a == self.list[k + 1].age);
            suspicious = (0..self.list.len().saturating_sub(1)).filter(is_bent).collect();
        }
        Ok(())
    }

    /// Gaps beside frames that lie off the line through their neighbours by more than bending within a gap may hide.
    fn bends(&self, range: f64) -> Vec<usize> {
        let list = &self.list;
        let bent =
            |k: usize| k > 0 && k + 1 < list.len() && distance(&list[k - 1], &list[k], &list[k + 1]) > VISIBLE * range;
        (0..list.len().saturating_sub(1))
            .filter(|&k| list[k].age < list[k + 1].age && (bent(k) || bent(k + 1)))
            .collect()
    }
}

/// Which knots to store so that every part of the axis has one, and the ages of parts that have none.
fn cover(knots: &[Frame], ends: (f64, f64)) -> (Vec<usize>, Vec<f64>) {
    let width = (ends.1 / ends.0).ln() / PARTS as f64;
    let place = |age: f64| if width > 0.0 { (age / ends.0).ln() / width } else { 0.0 };
    let part = |age: f64| (place(age) as usize).min(PARTS - 1);
    // A path that has but one age has nothing to fill.
    let mut best: Vec<Option<usize>> = vec![None; if width > 0.0 { PARTS } else { 0 }];
    let off_centre = |k: usize| (place(knots[k].age) - part(knots[k].age) as f64 - 0.5).abs();
    for k in 0..knots.len() {
        if let Some(best) = best.get_mut(part(knots[k].age))
            && best.is_none_or(|b| off_centre(k) < off_centre(b))
        {
            *best = Some(k);
        }
    }
    let empty = best.iter().enumerate().filter(|(_, b)| b.is_none());
    let missing = empty.map(|(p, _)| ends.0 * (width * (p as f64 + 0.5)).exp()).collect();
    let mut kept: Vec<usize> =
        best.into_iter().flatten().chain([0, knots.len() - 1]).chain(jump_sides(knots)).collect();
    kept.sort_unstable();
    kept.dedup();
    (kept, missing)
}

/// Knots on both sides of the largest jumps.
fn jump_sides(knots: &[Frame]) -> Vec<usize> {
    let size =
        |k: &usize| -> f64 { knots[*k].theta.iter().zip(&knots[k + 1].theta).map(|(a, b)| (a - b).powi(2)).sum() };
    let mut jumps: Vec<usize> =
        (0..knots.len().saturating_sub(1)).filter(|&k| knots[k].age == knots[k + 1].age).collect();
    jumps.sort_by(|a, b| size(b).total_cmp(&size(a)));
    jumps.into_iter().take(MAX_JUMPS).flat_map(|k| [k, k + 1]).collect()
}

/// How many solutions may be computed.
fn solvable(problem: &Problem) -> usize {
    let rows = problem.rows() as f64;
    let parameters = if problem.products.is_some() { rows } else { problem.parameters() as f64 };
    let each = rows * parameters * parameters.min(rows);
    ((EFFORT / each) as usize).max(LEAST_SOLVED)
}

/// Exact solutions; ages at which none is found are left out, the plots only lack a point there.
struct Solver<'a> {
    problem: &'a Problem,
    path: &'a Path,
    rows: &'a [usize],
    left: usize,
}

impl Solver<'_> {
    /// At all of the ages.
    fn exact(&self, ages: impl Iterator<Item = f64>) -> Result<Vec<Frame>> {
        let solved = ages.map(|age| self.frame(age, self.path.at(self.problem, age)));
        Ok(solved.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// At as many of the ages as may still be solved, evenly.
    fn some(&mut self, ages: &[f64]) -> Result<Vec<Frame>> {
        let every = ages.len().div_ceil(self.left.max(1)).max(1);
        let ages: Vec<f64> = ages.iter().copied().step_by(every).take(self.left).collect();
        self.left -= ages.len();
        let seen = ages.into_par_iter().filter(|&age| self.path.gap_at(age).is_none());
        let solved = seen.map(|age| self.frame(age, self.path.at_a_glance(self.problem, age)));
        Ok(solved.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    fn frame(&self, age: f64, found: Result<Point>) -> Result<Option<Frame>> {
        match found {
            Ok(point) => Ok(Some(frame(self.problem, age, &point.coef, point.intercept, self.rows))),
            Err(Error::NoSolution { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }
}

fn frame(problem: &Problem, age: f64, coef: &[f64], intercept: f64, rows: &[usize]) -> Frame {
    let theta = theta(problem, coef, intercept);
    let trace = match problem.kernel() {
        Some(_) => {
            let z = problem.predict(&theta);
            rows.iter().map(|&i| z[i]).collect()
        }
        None => theta[..problem.features()].to_vec(),
    };
    Frame { age, theta, trace }
}

/// The extent of all lines; 1 where they are all 0.
fn range(frames: &[Frame]) -> f64 {
    let all = || frames.iter().flat_map(|f| &f.trace).copied();
    let (low, high) = (all().fold(0.0, f64::min), all().fold(0.0, f64::max));
    if high > low { high - low } else { 1.0 }
}

/// How far `b` is from the line through `a` and `c` in ln λ: the largest coordinate.
fn distance(a: &Frame, b: &Frame, c: &Frame) -> f64 {
    let width = (c.age / a.age).ln();
    let share = if width > 0.0 { (b.age / a.age).ln() / width } else { 0.0 };
    (0..b.trace.len()).map(|j| (a.trace[j] + share * (c.trace[j] - a.trace[j]) - b.trace[j]).abs()).fold(0.0, f64::max)
}
