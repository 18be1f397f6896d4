//! What the tracker knows of a problem: a piecewise-smooth curve F(t, x) = 0.
//!
//! A *membership* (zones of samples, active coefficients) selects the smooth piece; *guards* are numbers that are
//! positive while the membership is right. Nothing here knows of rows, losses or ages.

use super::types::Cause;
use crate::error::Breakdown;

/// Whether the Jacobian of F describes a local minimiser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stability {
    Stable,
    Unstable,
}

/// A guard that will reach zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Crossing {
    pub guard: usize,
    /// How far ahead, in |t|.
    pub after: f64,
}

/// What came of changing a membership.
#[derive(Debug)]
pub(crate) struct Flip {
    pub cause: Cause,
    /// The path goes on continuously, or where to go from here.
    pub verdict: Verdict,
}

/// The stability test's answer.
#[derive(Debug)]
pub(crate) enum Verdict {
    Turning,
    /// The minimiser ceases to exist. `exit`: the direction in which the objective falls, unless falling is immediate.
    Jump {
        exit: Option<Vec<f64>>,
    },
}

/// Where a descent ended.
#[derive(Debug)]
pub(crate) struct Landing {
    pub x: Vec<f64>,
    pub size: f64,
    pub drop: f64,
}

/// Why a curve cannot be followed where it was asked to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Halt {
    /// The point left the region where this curve stands for the true one.
    Escaped,
    /// There is nothing to follow.
    Broken(Breakdown),
    /// The caller or a budget said stop.
    Stopped,
}

impl Halt {
    /// Why there is no solution, for whoever has no other way to go on.
    pub fn reason(self) -> Breakdown {
        match self {
            Halt::Broken(reason) => reason,
            Halt::Escaped => Breakdown::Stalled,
            Halt::Stopped => Breakdown::OutOfTime,
        }
    }
}

/// Answers whether to go on.
pub(crate) type GoOn<'a> = &'a mut dyn FnMut() -> bool;

/// Where a guard that is violated at the end of a step, `now`, must have vanished first, given its value and rate at the
/// step's beginning. Moving outward all along: the chord's zero. Inward at first: the parabola's way back.
pub(crate) fn first_zero((value, rate): (f64, f64), now: f64, step: f64) -> f64 {
    let value = value.max(0.0);
    let after = if rate > 0.0 {
        let bend = (now - value - rate * step) / (step * step);
        (-rate - (rate * rate - 4.0 * bend * value).sqrt()) / (2.0 * bend)
    } else {
        step * value / (value - now)
    };
    if after.is_finite() { after.clamp(0.0, step.max(0.0)) } else { 0.5 * step.max(0.0) }
}

/// A piecewise-smooth curve with its linear algebra. `evaluate` comes first; all other methods speak of the point it
/// was last given and of the current membership.
pub(crate) trait Curve {
    /// Computes everything at (t, x) under the current membership, right or wrong.
    fn evaluate(&mut self, t: f64, x: &[f64]);

    /// The x of the last evaluation; a flip may set a coordinate that has just reached its bound.
    fn point(&self) -> &[f64];

    /// ‖F‖, relative to the size of what cancels in it.
    fn residual(&self) -> f64;

    /// Factors ∂F/∂x here. Until the next call, solves use this factor (kept up to date by flips).
    fn refactor(&mut self) -> Stability;

    /// Steps have gained less than they should: a factor that is kept up to date is no longer to be trusted.
    fn distrust(&mut self) {}

    /// −J⁻¹F with the kept factor.
    fn newton_step(&mut self) -> Vec<f64>;

    /// dx/dt = −J⁻¹ ∂F/∂t with the kept factor.
    fn tangent(&mut self) -> Vec<f64>;

    /// The first guard that vanishes within `horizon` when (t, x) moves on along `direction`·(1, tangent).
    /// Remembers guards and rates for [`Curve::violation`].
    fn crossing(&mut self, tangent: &[f64], direction: f64, horizon: f64) -> Option<Crossing>;

    /// After a move by `step` from the point where `crossing` was asked, without a flip: the guard that must have
    /// vanished first, if any is violated now. `except` is a guard known to be zero here.
    fn violation(&mut self, step: f64, except: Option<usize>) -> Option<Crossing>;

    /// A guard's value.
    fn guard(&self, guard: usize) -> f64;

    /// A guard's rate of change along (dt, dx).
    fn guard_rate(&self, guard: usize, dt: f64, dx: &[f64]) -> f64;

    /// Changes the membership that `guard` protects, updates the factor and judges the new side.
    fn flip(&mut self, guard: usize) -> Flip;

    /// Moves coordinates that rounding has put on the wrong side of their bound onto it.
    fn snap(&self, x: &mut [f64]);

    /// Remembers the membership, for `undo`.
    fn mark(&mut self);

    /// Goes back to the membership at the last `mark`.
    fn undo(&mut self);

    /// Descends from the current point, which has ceased to be a minimiser, to the local minimiser at the same t that a descent
    /// `behind` it, a hair later, leads to; sets the membership. Where that may take long, `go_on` is asked on the way.
    fn land(&mut self, behind: f64, exit: Option<&[f64]>, go_on: GoOn<'_>) -> Result<Landing, Halt>;

    /// Descends from `x` at time `t`, by the losses there; sets the membership.
    fn land_at(&mut self, t: f64, x: &[f64], go_on: GoOn<'_>) -> Result<Landing, Halt>;

    /// How far it is from `from` to `to`, and by how much the objective at time `t` falls on the way.
    fn measure(&self, t: f64, from: &[f64], to: &[f64]) -> (f64, f64);

    /// The fit that trusts every row, if there is one and `go_on` lets it be found.
    fn ordinary(&mut self, go_on: GoOn<'_>) -> Option<Vec<f64>>;

    /// What the membership differs in from that at the last `mark`.
    fn changes(&self) -> Vec<Cause>;

    /// Whether x has coordinates that F does not determine: they only follow from the others, by sums that pile up.
    fn has_unchecked_coordinates(&self) -> bool {
        false
    }

    /// The size of a displacement, relative to the size of predictors.
    fn norm(&self, dx: &[f64]) -> f64;

    /// Whether this is the true curve, not one that stands for it.
    fn is_whole(&self) -> bool {
        true
    }

    /// Whether x still lies where this curve stands for the true one.
    fn within_trust(&self) -> bool;
}
