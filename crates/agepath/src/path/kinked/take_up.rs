//! Points from outside: the solution at any age, its slope, fits and ACS steps.

use super::super::chart::Chart;
use super::super::trace::{Trace, Watch};
use super::super::types::Knot;
use super::drive::Drive;
use super::engine::{Engine, Place, TIED};
use super::land::Halt;
use super::space::Space;
use super::{Alone, Log, Tracker, theta};
use crate::error::{Breakdown, Error, Result};
use crate::problem::Problem;
use crate::space::Rows;
use std::ops::ControlFlow;
use std::time::Instant;

/// Predictors of a point from outside are right to this, in units of z.
const REACH: f64 = 1e-9;

impl Engine<'_, '_> {
    /// Takes up the solution θ of the problem at time t. Rows at a kink have the ψ that the conditions ask for; of these as many
    /// are pinned as are independent, those with most room first.
    fn take_up(&mut self, rows: &Rows, t: f64, theta: &[f64]) {
        self.set_time(t);
        let problem = self.space.problem;
        let (beta, _) = problem.dual_of_rows(rows, theta, self.at.u);
        let mut psi: Vec<f64> = beta.into_iter().map(|b| -b).collect();
        self.space.twins.merge(&mut psi);
        let psi: Vec<f64> = self.space.ids.iter().map(|&i| psi[i]).collect();
        self.theta = self.space.inside(theta);
        let mut z = vec![0.0; self.space.n()];
        self.space.design.predict(&self.theta, &mut z);
        let mut pins: Vec<(f64, (usize, u8, f64))> = Vec::new();
        for i in 0..z.len() {
            self.place[i] = self.place_of(i, z[i], psi[i]);
            let kinks = self.space.kinks[i].as_slice();
            let near = REACH * (problem.predictor_scale + z[i].abs());
            for (k, _) in kinks.iter().enumerate().filter(|(_, kink)| (z[i] - **kink).abs() <= near) {
                let [(low, _), (high, _)] = self.ends(i, k as u8);
                let room = (psi[i] - low).min(high - psi[i]) / (high - low);
                if high > low && room > -REACH {
                    pins.push((room, (i, k as u8, psi[i])));
                }
            }
        }
        pins.sort_by(|a, b| b.0.total_cmp(&a.0));
        let pins: Vec<(usize, u8, f64)> = pins.into_iter().map(|pin| pin.1).collect();
        self.settle_within(&pins, &z, REACH / TIED);
        if self.correct(None) {
            return;
        }
        // Not a solution of these places: by value.
        let theta = self.space.inside(theta);
        self.settle(&theta, &pins);
        self.correct(None);
    }

    /// The piece and the zone of a row whose ψ is known: at a kink or a threshold ψ says on which side.
    fn place_of(&self, i: usize, z: f64, psi: f64) -> Place {
        let problem = self.space.problem;
        let (kinks, y) = (&self.space.kinks[i], self.space.target[i]);
        let near = REACH * (problem.predictor_scale + z.abs());
        let beside = kinks.as_slice().iter().position(|kink| (z - kink).abs() <= near);
        let pieces: Vec<u8> = beside.map_or(vec![kinks.piece(z)], |k| vec![k as u8, k as u8 + 1]);
        let zones = |loss: f64| {
            let sides = if problem.pacing.is_continuous() { vec![0.0] } else { vec![REACH, -REACH] };
            sides.into_iter().map(move |side| self.at.cuts.zone(loss * (1.0 + side)))
        };
        let mut best = (f64::INFINITY, Place::Piece { piece: pieces[0], zone: 0 });
        for piece in pieces {
            let l = problem.loss.at_piece(piece, z, y);
            for zone in zones(l.value.max(0.0)) {
                let weight = problem.pacing.at(zone, l.value.max(0.0), self.at.u).value;
                let off = (self.space.scale[i] * weight * l.slope - psi).abs();
                if off < best.0 {
                    best = (off, Place::Piece { piece, zone });
                }
            }
        }
        best.1
    }
}

fn broken(age: f64, halt: Halt) -> Error {
    let reason = if halt == Halt::Unbounded { Breakdown::Unbounded } else { Breakdown::Stalled };
    Error::NoSolution { age, reason }
}

/// θ at `age`, followed from `knot`.
pub(in super::super) fn at(
    problem: &Problem,
    rows: &Rows,
    high: f64,
    knot: &Knot,
    (age, deadline): (f64, Option<Instant>),
) -> Result<Vec<f64>> {
    let chart = Chart::new(high);
    let space = Space::new(problem);
    let (begin, stop) = (chart.time(knot.age), chart.time(age));
    let mut callback = |_: &super::super::Progress| ControlFlow::Continue(());
    let watch = Watch {
        callback: &mut callback,
        chart,
        start: begin,
        stop,
        deadline,
        max_events: None,
        end: None,
        asked: Instant::now(),
    };
    let log = Log { space: &space, trace: Trace::default(), watch, part: 1.0 };
    let mut tracker = Tracker { engine: Engine::new(&space, chart), log };
    tracker.engine.take_up(rows, begin, &theta(problem, knot));
    if begin != stop {
        tracker.follow(stop).map_err(|halt| broken(age, halt))?;
    }
    Ok(space.outside(&tracker.engine.theta))
}

/// dθ/dλ at the solution `point` at its age.
pub(in super::super) fn slope(problem: &Problem, rows: &Rows, high: f64, point: &Knot) -> Result<Vec<f64>> {
    let chart = Chart::new(high);
    let space = Space::new(problem);
    let mut engine = Engine::new(&space, chart);
    let t = chart.time(point.age);
    engine.take_up(rows, t, &theta(problem, point));
    // λ = 1/u, so dλ/dt = −λ² du/dt.
    let clock = -point.age * point.age * chart.speed(t);
    let motion = engine.tangent(&Drive::Age(t + 1.0)).ok_or(broken(point.age, Halt::Stuck))?;
    Ok(space.outside(&motion).into_iter().map(|by_time| by_time / clock).collect())
}

/// θ of the weighted convex fit.
pub(crate) fn fit(problem: &Problem, weights: &[f64]) -> std::result::Result<Vec<f64>, Breakdown> {
    let space = Space::new(problem);
    let mut c: Vec<f64> = problem.scale.iter().zip(weights).map(|(s, v)| s * v / problem.ridge).collect();
    space.twins.merge(&mut c);
    let mut engine = Engine::new(&space, Chart::new(1.0));
    engine.fit(space.ids.iter().map(|&i| c[i]).collect(), &mut Alone).map_err(reason)?;
    Ok(space.outside(&engine.theta))
}

/// One step of plain ACS: θ of the fit with the weights of the losses at `theta`.
pub(crate) fn acs(problem: &Problem, age: f64, theta: &[f64]) -> std::result::Result<Vec<f64>, Breakdown> {
    let space = Space::new(problem);
    let chart = Chart::new(age);
    let mut engine = Engine::new(&space, chart);
    engine.set_time(chart.time(age));
    let losses = problem.losses(theta);
    let weight = |(&i, s): (&usize, &f64)| s * problem.pacing.weight(losses[i], 1.0 / age);
    let c = space.ids.iter().zip(&space.scale).map(weight).collect();
    engine.theta = space.inside(theta);
    engine.fit(c, &mut Alone).map_err(reason)?;
    Ok(space.outside(&engine.theta))
}

fn reason(halt: Halt) -> Breakdown {
    if halt == Halt::Unbounded { Breakdown::Unbounded } else { Breakdown::Stalled }
}
