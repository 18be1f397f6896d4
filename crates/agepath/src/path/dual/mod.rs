//! The path in kernel space, and in linear space that of losses with pieces: a curve in (β, b, z).
//!
//! With everything divided by α, sample i either lies on a smooth piece (a zone of the pacing on one side of each kink),
//! where β = −ψ(z; u), or is *pinned* at a kink, where z is known and β is free between the two one-sided values. Samples
//! whose β can move (pinned, or ψ varies) are *active*; all others have a constant β. Newton and tangent solve, over the
//! active samples and b,
//!
//! M = [ 0  1ᵀ ; 1  K + D ],  D = 1/h for ψ that varies and 0 for pinned samples,
//!
//! and the inertia of M tells whether a point is a local minimiser (`factor.rs`). z is part of the point: it is linear in
//! (β, b), so every step carries its own dz. In linear space K = XXᵀ, and θ = (w, b) with w = Xᵀβ.

mod curve;
mod factor;
mod fit;
mod land;
mod states;
mod system;
mod track;

pub(crate) use track::{acs, fit};
pub(super) use track::{at, dual_path, slope};

use super::chart::Chart;
use super::patch::Counters;
use super::twins::Twins;
use crate::loss::{Kinks, LossAt};
use crate::pacing::{Cuts, WeightAt};
use crate::problem::Problem;
use crate::solver::smo::Columns;
use crate::space::Products;
use factor::Factor;
use std::cell::Cell;

/// Where a sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between kinks, in a zone.
    Smooth { piece: u8, zone: u8 },
    /// At a kink.
    Pinned { kink: u8 },
    /// At a kink that other pinned samples hold it to (an equal row, say): β stays until one of them goes.
    Held { kink: u8 },
}

/// The samples that can move, and where everybody is.
#[derive(Debug, Clone, Default)]
struct Membership {
    state: Vec<State>,
    /// Rows of M after the intercept's, in its order.
    active: Vec<usize>,
    /// Where a sample stands in `active`.
    place: Vec<Option<usize>>,
}

/// Everything known at the last evaluated point.
#[derive(Debug, Clone, Default)]
struct Evaluation {
    t: f64,
    u: f64,
    /// du/dt
    speed: f64,
    x: Vec<f64>,
    cuts: Cuts,
    loss: Vec<LossAt>,
    weight: Vec<WeightAt>,
    psi: Vec<f64>,
    h: Vec<f64>,
    /// ∂ψ/∂u
    q: Vec<f64>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Dual<'p> {
    problem: &'p Problem,
    products: &'p Products,
    twins: Twins,
    /// s/α; a row that stands for others has theirs too, and they have none.
    scale: Vec<f64>,
    kinks: Vec<Kinks>,
    /// The unit of β: violations are relative to it.
    unit: f64,
    chart: Chart,
    members: Membership,
    marked: Membership,
    marked_at: f64,
    at: Evaluation,
    /// M⁻¹ with the curvatures it was made for.
    factor: Factor<'p>,
    /// Whether `factor` belongs to the members at all.
    stale: bool,
    /// Whether it was made at the last evaluated point.
    fresh: bool,
    /// How large M₀⁻¹Δ was in the last solve, Δ being what M has drifted since.
    drifted: f64,
    updates_since_fresh: usize,
    events_since_refresh: Cell<usize>,
    columns: Columns<'p>,
    guards: Vec<(f64, f64)>,
    pub counters: Counters,
    /// Largest number of active samples.
    pub largest: usize,
}

impl<'p> Dual<'p> {
    pub fn new(problem: &'p Problem, products: &'p Products, chart: Chart) -> Self {
        let n = products.len();
        let twins = Twins::of(problem);
        let mut scale: Vec<f64> = problem.scale.iter().map(|s| s / problem.ridge).collect();
        twins.merge(&mut scale);
        Dual {
            problem,
            products,
            kinks: problem.target.iter().map(|&y| problem.loss.kinks(y)).collect(),
            unit: problem.slope_unit() / problem.ridge,
            twins,
            scale,
            chart,
            members: Membership {
                state: vec![State::Smooth { piece: 0, zone: 0 }; n],
                active: Vec::new(),
                place: vec![None; n],
            },
            marked: Membership::default(),
            marked_at: f64::INFINITY,
            at: Evaluation::default(),
            factor: Factor::new(products, usize::from(problem.has_intercept())),
            stale: true,
            fresh: false,
            drifted: 0.0,
            updates_since_fresh: 0,
            events_since_refresh: Cell::new(0),
            columns: Columns::new(products),
            guards: Vec::new(),
            counters: Counters::default(),
            largest: 0,
        }
    }

    fn n(&self) -> usize {
        self.scale.len()
    }

    /// 1 if there is an intercept: the rows of M before the samples'.
    fn border(&self) -> usize {
        usize::from(self.problem.has_intercept())
    }

    // A point is (β, b, z); these are its parts.

    fn beta<'x>(&self, x: &'x [f64]) -> &'x [f64] {
        &x[..self.n()]
    }

    fn z<'x>(&self, x: &'x [f64]) -> &'x [f64] {
        &x[self.n() + 1..]
    }

    /// The point with given β and b.
    fn point_of(&self, beta: &[f64], b: f64) -> Vec<f64> {
        let n = self.n();
        let mut x = vec![0.0; 2 * n + 1];
        x[..n].copy_from_slice(beta);
        x[n] = b;
        self.refresh(&mut x);
        x
    }

    /// z = Kβ + b from scratch.
    fn refresh(&self, x: &mut [f64]) {
        let n = self.n();
        let support: Vec<usize> = (0..n).filter(|&i| x[i] != 0.0).collect();
        let coef: Vec<f64> = support.iter().map(|&i| x[i]).collect();
        let b = x[n];
        let z = &mut x[n + 1..];
        z.fill(b);
        self.products.accumulate(&support, &coef, z);
    }

    /// θ of a point.
    pub fn theta(&self, x: &[f64]) -> Vec<f64> {
        self.theta_shared(x, &self.problem.scale)
    }

    /// θ of a point, equal rows dividing their β in proportion to `shares`.
    fn theta_shared(&self, x: &[f64], shares: &[f64]) -> Vec<f64> {
        let mut beta = self.beta(x).to_vec();
        self.twins.divide(&mut beta, shares);
        self.problem.theta_of(self.products, &beta, x[self.n()])
    }

    /// The point of a solution θ at inverse age u.
    pub fn point_at(&self, theta: &[f64], u: f64) -> Vec<f64> {
        let (mut beta, b) = self.problem.dual_of(self.products, theta, u);
        self.twins.merge(&mut beta);
        self.point_of(&beta, b)
    }

    /// Sets t and everything that hangs on it alone.
    fn set_time(&mut self, t: f64) {
        self.at.t = t;
        self.at.u = self.chart.inverse_age(t);
        self.at.speed = self.chart.speed(t);
        self.at.cuts = self.problem.pacing.cuts(self.at.u);
    }

    /// Loss, weight, ψ, h and q of one sample on its piece.
    fn look(&mut self, i: usize) {
        let (piece, zone) = match self.members.state[i] {
            State::Smooth { piece, zone } => (piece, zone),
            // Its ψ is β; the piece below is as good as any.
            State::Pinned { kink } | State::Held { kink } => (kink, 0),
        };
        let at = &mut self.at;
        let l = self.problem.loss.at_piece(piece, at.x[self.scale.len() + 1 + i], self.problem.target[i]);
        let v = self.problem.pacing.at(zone, l.value, at.u);
        let s = self.scale[i];
        at.loss[i] = l;
        at.weight[i] = v;
        at.psi[i] = s * v.value * l.slope;
        at.h[i] = s * (v.value * l.curvature + v.by_loss * l.slope * l.slope);
        at.q[i] = s * v.by_inverse_age * l.slope;
    }

    /// Evaluates at (t, x) under the current membership.
    fn evaluate_at(&mut self, t: f64, x: &[f64]) {
        let n = self.n();
        self.counters.evaluations += 1;
        self.fresh = false;
        self.set_time(t);
        let at = &mut self.at;
        at.x.clear();
        at.x.extend_from_slice(x);
        at.loss.resize(n, LossAt::default());
        at.weight.resize(n, WeightAt::default());
        at.psi.resize(n, 0.0);
        at.h.resize(n, 0.0);
        at.q.resize(n, 0.0);
        (0..n).for_each(|i| self.look(i));
    }

    /// G/α at (t, x).
    fn merit(&self, t: f64, x: &[f64]) -> f64 {
        let u = self.chart.inverse_age(t);
        let (beta, z, b) = (self.beta(x), self.z(x), x[self.n()]);
        let penalty: f64 = beta.iter().zip(z).map(|(beta, z)| beta * (z - b)).sum();
        let loss = |i: usize| {
            let l = self.problem.loss.at(z[i], self.problem.target[i]).value;
            self.scale[i] * self.problem.pacing.primitive(l, u)
        };
        0.5 * penalty + (0..z.len()).map(loss).sum::<f64>()
    }

    /// The two ends of a pinned sample's β, smaller first, and their rates in u.
    fn ends(&self, i: usize, kink: u8) -> [(f64, f64); 2] {
        let zone = self.at.cuts.zone(0.0);
        let v = self.problem.pacing.at(zone, 0.0, self.at.u);
        let (z, y, s) = (self.kinks[i].as_slice()[usize::from(kink)], self.problem.target[i], self.scale[i]);
        [kink + 1, kink].map(|piece| {
            let slope = self.problem.loss.at_piece(piece, z, y).slope;
            (-s * v.value * slope, -s * v.by_inverse_age * slope)
        })
    }

    fn kink(&self, i: usize, kink: u8) -> f64 {
        self.kinks[i].as_slice()[usize::from(kink)]
    }
}
