//! From a point that is no minimiser down to the next one. ACS chooses the way: fits with the weights of the losses before, each
//! a pull r → 0 on a convex problem. Where it crawls, the same pull on the problem itself finishes.

use super::basis::Shape;
use super::drive::{Drive, Exit, Observer, Outcome, mixed};
use super::engine::{Engine, Law, Place};
use crate::linalg::{axpy, dot};

/// ACS steps before giving up.
const MAX_STEPS: usize = 1000;
/// The pull on the problem itself is tried once an ACS step is this share of the distance gone ...
const CRAWL: f64 = 0.1;
/// ... or this small, in units of z ...
const SETTLED: f64 = 1e-6;
/// ... and after a failure only when the steps have shrunk by this factor,
const AGAIN: f64 = 0.3;
/// or after so many more.
const RETRY: usize = 4;
/// It may end at most this share of the distance gone away from where ACS was, or this far, in units of z.
const BASIN: f64 = 0.5;
const IN_PLACE: f64 = 1e-6;
/// ACS rests when a step is this small, in units of z.
const AT_REST: f64 = 1e-13;
/// An ACS step is lengthened up to so many times.
const LONGEST: f64 = 64.0;
/// First trial length along an exit, in units of z, and where the descent is left to ACS.
const FIRST_EXIT: f64 = 1e-8;
const MICROSCOPIC: f64 = 0.01;
/// Where a fit without a start begins, in units of z ...
const SOMEWHERE: f64 = 0.3;
/// ... and the room of pinned rows there, as a share of their interval.
const ROOM: f64 = 1e-3;
/// How often a landing may leave a saddle.
const MAX_EXITS: usize = 20;
/// Sums are right to this share of what they add up.
const NOISE: f64 = 1e-13;

/// Why a landing or a fit did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    Stopped,
    Unbounded,
    Stuck,
}

/// Asks the observer, and tells it nothing.
struct Quiet<'o>(&'o mut dyn Observer);

impl Observer for Quiet<'_> {
    fn go_on(&mut self, t: f64) -> bool {
        self.0.go_on(t)
    }
}

impl Engine<'_, '_> {
    /// Root mean square of the predictors of a θ, in units of z.
    pub fn size(&self, theta: &[f64]) -> f64 {
        let mut z = vec![0.0; self.space.n()];
        self.space.design.predict(theta, &mut z);
        (dot(&z, &z) / z.len().max(1) as f64).sqrt() / self.space.problem.predictor_scale
    }

    pub fn distance(&self, a: &[f64], b: &[f64]) -> f64 {
        self.size(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
    }

    /// G/α at the clock's age.
    pub fn merit(&self, theta: &[f64]) -> f64 {
        let (space, u) = (self.space, self.chart.inverse_age(self.t));
        let mut z = vec![0.0; space.n()];
        space.design.predict(theta, &mut z);
        let loss = |i: usize| {
            let l = space.problem.loss.at(z[i], space.target[i]).value;
            space.scale[i] * space.problem.pacing.primitive(l, u)
        };
        let w = &theta[..space.penalised()];
        0.5 * dot(w, w) + (0..z.len()).map(loss).sum::<f64>()
    }

    /// The derivative of G/α at θ along a direction, and what rounding may make of it.
    fn slope_along(&self, theta: &[f64], direction: &[f64]) -> (f64, f64) {
        let (space, u) = (self.space, self.chart.inverse_age(self.t));
        let (mut z, mut dz) = (vec![0.0; space.n()], vec![0.0; space.n()]);
        space.design.predict(theta, &mut z);
        space.design.predict(direction, &mut dz);
        let m = space.penalised();
        let mut slope = dot(&theta[..m], &direction[..m]);
        let mut size = slope.abs();
        for i in 0..z.len() {
            let l = space.problem.loss.at(z[i], space.target[i]);
            let pull = space.scale[i] * space.problem.pacing.weight(l.value, u) * l.slope * dz[i];
            slope += pull;
            size += pull.abs();
        }
        (slope, NOISE * size)
    }

    /// The convex fit with weights c (s v/α), from where the engine is.
    pub fn fit(&mut self, c: Vec<f64>, observer: &mut dyn Observer) -> Result<(), Halt> {
        self.counters.acs_fits += 1;
        self.law = Law::Fixed(c);
        if self.theta[..self.space.penalised()].iter().all(|w| *w == 0.0) {
            self.theta = self.somewhere();
        }
        let (theta, pins) = (self.theta.clone(), self.pins());
        self.settle(&theta, &pins);
        self.pull_in(observer)
    }

    /// A θ that is good for nothing but that no two rows tie there: at 0 all of them do.
    fn somewhere(&self) -> Vec<f64> {
        let mut theta: Vec<f64> = (0..self.space.p).map(|j| mixed(j as u64, 1) - 0.5).collect();
        theta[self.space.penalised()..].fill(0.0);
        let share = SOMEWHERE / self.size(&theta).max(f64::MIN_POSITIVE);
        theta.iter_mut().for_each(|w| *w *= share);
        theta
    }

    /// Pinned rows whose ψ is at an end are given some room: a pull begins wherever it likes, and ties that it does not begin
    /// with it need not resolve.
    fn make_room(&mut self) {
        for (k, i) in self.basis.rows().to_vec().into_iter().enumerate() {
            let Place::Kink { kink } = self.place[i] else { continue };
            let [(low, _), (high, _)] = self.ends(i, kink);
            let room = ROOM * (high - low) * (0.5 + mixed(i as u64, 2));
            self.pinned[k] = self.pinned[k].clamp(low + room, high - room);
        }
    }

    /// Drives what the gradient is short of to 0.
    fn pull_in(&mut self, observer: &mut dyn Observer) -> Result<(), Halt> {
        self.make_room();
        self.evaluate();
        let r0 = self.gradient();
        self.left = 1.0;
        let outcome = self.drive(&Drive::Pull(r0), &mut Quiet(observer));
        self.left = 0.0;
        match outcome {
            Outcome::Arrived => Ok(()),
            Outcome::Stopped => Err(Halt::Stopped),
            Outcome::Unbounded => Err(Halt::Unbounded),
            Outcome::Jump(_) | Outcome::Stuck => Err(Halt::Stuck),
        }
    }

    /// s v/α at the present places, which are those of the pacing.
    fn weights(&self) -> Vec<f64> {
        let pacing = &self.space.problem.pacing;
        let weight = |i: usize| {
            let (zone, loss) = match self.place[i] {
                Place::Piece { zone, .. } => (zone, self.at.loss[i].max(0.0)),
                Place::Kink { .. } => (self.at.cuts.zone(0.0), 0.0),
            };
            self.space.scale[i] * pacing.at(zone, loss, self.at.u).value.max(0.0)
        };
        (0..self.space.n()).map(weight).collect()
    }

    /// Back to the pacing's weights, with places by value.
    pub fn repace(&mut self) {
        self.law = Law::Paced;
        let (theta, pins) = (self.theta.clone(), self.pins());
        self.settle(&theta, &pins);
        self.evaluate();
    }

    /// Descends to a minimiser at the clock's age from where the engine is, its law being the pacing's. Answers by how much G falls.
    pub fn descend(&mut self, exit: Option<&Exit>, observer: &mut dyn Observer) -> Result<f64, Halt> {
        let (start, from) = (self.theta.clone(), self.merit(&self.theta));
        if let Some(direction) = exit.and_then(|exit| exit.direction.as_ref()) {
            let back: Vec<f64> = direction.iter().map(|d| -d).collect();
            if let Some(theta) = self.leave(direction).or_else(|| self.leave(&back)) {
                self.theta = theta;
                self.repace();
            }
        }
        self.evaluate();
        if self.space.problem.pacing.is_continuous() {
            self.walk(&start, observer)?;
        } else {
            self.alternate(observer)?;
        }
        Ok((from - self.merit(&self.theta)) * self.space.problem.ridge)
    }

    /// Along a direction as long as G falls ever faster, and not far; none if it does not fall.
    fn leave(&self, direction: &[f64]) -> Option<Vec<f64>> {
        let unit = self.size(direction);
        if !(unit > 0.0 && unit.is_finite()) {
            return None;
        }
        let mut length = FIRST_EXIT;
        let mut best: Option<(f64, Vec<f64>)> = None;
        while length <= MICROSCOPIC {
            let mut theta = self.theta.clone();
            axpy(length / unit, direction, &mut theta);
            let (slope, noise) = self.slope_along(&theta, direction);
            let steepest = best.as_ref().map_or(-noise, |(slope, _)| *slope);
            if slope < steepest {
                best = Some((slope, theta));
            } else if best.is_some() {
                break;
            }
            length *= 2.0;
        }
        best.map(|(_, theta)| theta)
    }

    /// Weights that are 0 or 1 of what they were: ACS until they stay.
    fn alternate(&mut self, observer: &mut dyn Observer) -> Result<(), Halt> {
        let mut weights = self.weights();
        for _ in 0..MAX_STEPS {
            self.fit(weights.clone(), observer)?;
            self.repace();
            let next = self.weights();
            if next == weights {
                return if self.refresh(true) == Shape::Unstable { Err(Halt::Stuck) } else { Ok(()) };
            }
            weights = next;
        }
        Err(Halt::Stuck)
    }

    fn walk(&mut self, start: &[f64], observer: &mut dyn Observer) -> Result<(), Halt> {
        let (mut tried, mut since, mut exits) = (f64::INFINITY, 0, 0);
        for _ in 0..MAX_STEPS {
            let (before, weights) = (self.theta.clone(), self.weights());
            self.fit(weights, observer)?;
            self.repace();
            let (pace, gone) = (self.distance(&self.theta, &before), self.distance(&self.theta, start));
            let crawls = pace <= CRAWL * gone || pace <= SETTLED;
            since += 1;
            if crawls && (pace <= AGAIN * tried || since >= RETRY) {
                (tried, since) = (pace, 0);
                if self.finish(gone, observer)? {
                    return Ok(());
                }
                if pace <= AT_REST {
                    // ACS rests at a saddle as well.
                    exits += 1;
                    let theta = self.downhill().filter(|_| exits <= MAX_EXITS).ok_or(Halt::Stuck)?;
                    self.theta = theta;
                    self.repace();
                    tried = f64::INFINITY;
                    continue;
                }
            }
            self.lengthen(&before);
        }
        Err(Halt::Stuck)
    }

    /// A point downhill along the most negative curvature.
    fn downhill(&self) -> Option<Vec<f64>> {
        let direction = self.hessian.most_negative(&self.basis, mixed)?;
        let back: Vec<f64> = direction.iter().map(|d| -d).collect();
        self.leave(&direction).or_else(|| self.leave(&back))
    }

    /// The pull on the problem itself; takes it back if it leads elsewhere.
    fn finish(&mut self, gone: f64, observer: &mut dyn Observer) -> Result<bool, Halt> {
        if self.refresh(true) == Shape::Unstable {
            return Ok(false);
        }
        let here = self.point();
        let before = self.merit(&here.theta);
        match self.pull_in(observer) {
            Ok(()) => {
                let near = self.distance(&self.theta, &here.theta) <= (BASIN * gone).max(IN_PLACE);
                if near && self.merit(&self.theta) <= before + NOISE * before.abs() {
                    return Ok(true);
                }
            }
            Err(Halt::Stopped) => return Err(Halt::Stopped),
            Err(_) => {}
        }
        self.load(&here);
        self.evaluate();
        Ok(false)
    }

    /// Further along the ACS step as long as G falls.
    fn lengthen(&mut self, before: &[f64]) {
        let step: Vec<f64> = self.theta.iter().zip(before).map(|(a, b)| a - b).collect();
        let mut lowest = self.merit(&self.theta);
        let (mut factor, mut best) = (2.0, None);
        while factor <= LONGEST {
            let theta: Vec<f64> = before.iter().zip(&step).map(|(b, s)| b + factor * s).collect();
            let merit = self.merit(&theta);
            if !(merit <= lowest && self.slope_along(&theta, &step).0 < 0.0) {
                break;
            }
            lowest = merit;
            best = Some(theta);
            factor *= 2.0;
        }
        if let Some(theta) = best {
            self.theta = theta;
            self.repace();
        }
    }
}
