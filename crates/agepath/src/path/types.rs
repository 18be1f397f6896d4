//! What a computed path is made of.

use super::Direction;
use crate::error::Breakdown;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// A computed solution at one age.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Knot {
    /// The age.
    pub age: f64,
    /// Coefficients, in the units the solver saw.
    pub coef: Vec<f64>,
    /// Intercept; 0 when the model has none.
    pub intercept: f64,
}

/// What events call a sample on a piece of its loss without slope: no loss, whatever the pacing.
pub const NO_LOSS: &str = "N";
/// What events call a sample that is pinned at a kink of its loss.
pub const PINNED: &str = "Z";

/// What kind of critical point an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A membership changes, the solution is continuous.
    Turning,
    /// The solution itself changes.
    Jump,
}

/// What made a critical point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A sample moved from one zone to another.
    Sample {
        /// Row of the problem.
        index: usize,
        /// Zone it left.
        from: &'static str,
        /// Zone it entered.
        to: &'static str,
    },
    /// A coefficient became active or zero.
    Feature {
        /// Column of the problem.
        index: usize,
        /// "zero" or "active".
        from: &'static str,
        /// "zero" or "active".
        to: &'static str,
    },
    /// The local minimiser ceased to exist with no membership change.
    Fold,
}

/// A critical point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// Its age.
    pub age: f64,
    /// Turning point or jump.
    pub kind: Kind,
    /// What made it.
    pub cause: Cause,
    /// ‖Δθ‖ across a jump; 0 at a turning point.
    pub size: f64,
    /// By how much the objective falls across a jump; 0 at a turning point.
    pub drop: f64,
}

/// Evidence that what was computed is a solution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Largest relative KKT residual seen.
    pub max_kkt: f64,
    /// Knots checked: all of them, those at random ages not counted.
    pub knots_checked: usize,
    /// Random ages between knots checked.
    pub between_checked: usize,
}

/// A stretch of ages that could not be certified. The path goes on behind it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// The age where it begins, the way the path runs.
    pub from: f64,
    /// The age where the path goes on.
    pub to: f64,
    /// The relative KKT residual where it goes on.
    pub residual: f64,
}

impl Gap {
    /// Its width in log age.
    pub fn width(&self) -> f64 {
        (self.from / self.to).ln().abs()
    }
}

/// A path with no gap wider than this, in log age, is complete.
pub const WIDEST_GAP: f64 = 1e-6;

/// How much work the path took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Passes over all rows: Newton iterations and checks.
    pub newton: usize,
    /// Factorisations of a reduced Hessian, of any size.
    pub factorizations: usize,
    /// Rank-one updates of a factor.
    pub updates: usize,
    /// Windows that were rejected and tried again smaller.
    pub restarts: usize,
    /// Weighted convex fits made by ACS, at the start and after jumps.
    pub acs_fits: usize,
    /// Windows accepted over all rows.
    pub windows: usize,
    /// Kernel space: the largest number of samples whose dual coefficient could move at once.
    #[serde(default)]
    pub active: usize,
    /// Wall-clock seconds for the path; the certificate's checks are not counted.
    pub seconds: f64,
}

/// Why a path ends where it ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// The whole interval was covered, with no gap wider than [`WIDEST_GAP`].
    Complete,
    /// The whole interval was covered but for wider gaps.
    Gaps,
    /// The event budget was used up.
    EventLimit,
    /// The time budget was used up.
    TimeLimit,
    /// The caller asked to stop.
    Interrupted,
    /// There is nothing to follow beyond this age.
    Degenerate {
        /// Where.
        age: f64,
        /// Why.
        reason: Breakdown,
    },
}

impl End {
    /// Whether the caller stopped it, by a limit or by hand.
    pub fn is_a_limit(&self) -> bool {
        matches!(self, End::TimeLimit | End::EventLimit | End::Interrupted)
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Complete => write!(f, "complete"),
            End::Gaps => write!(f, "gaps"),
            End::EventLimit => write!(f, "event limit"),
            End::TimeLimit => write!(f, "time limit"),
            End::Interrupted => write!(f, "interrupted"),
            End::Degenerate { age, reason: reason @ Breakdown::Unbounded } => {
                write!(f, "unbounded at age {age}: {reason}")
            }
            End::Degenerate { age, reason } => write!(f, "degenerate at age {age}: {reason}"),
        }
    }
}

/// A solution path.
#[derive(Debug, Clone)]
pub struct Path {
    /// The ages covered, smallest first. Shorter than asked for when the path ended early.
    pub ages: (f64, f64),
    /// The way it was followed; knots and events are in this order.
    pub direction: Direction,
    /// Solutions, in the order they were reached. A jump's age occurs twice in a row: before it and after it.
    pub knots: Vec<Knot>,
    /// Critical points, in the order they were reached.
    pub events: Vec<Event>,
    /// Stretches that could not be certified, in the order they were passed.
    pub gaps: Vec<Gap>,
    /// What the user should know of how it was followed.
    pub notes: Vec<String>,
    /// Residuals checked.
    pub certificate: Certificate,
    /// Work done.
    pub work: Work,
    /// Why it ended.
    pub end: End,
}

/// The exact solution at one age.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The age.
    pub age: f64,
    /// Coefficients, in the units the solver saw.
    pub coef: Vec<f64>,
    /// Intercept; 0 when the model has none.
    pub intercept: f64,
    /// Relative KKT residual.
    pub kkt: f64,
    /// v_i per row.
    pub weights: Vec<f64>,
    /// Zone of each row, as an index into the pacing's zone names.
    pub zones: Vec<u8>,
    /// ℓ_i per row.
    pub losses: Vec<f64>,
}

impl Point {
    /// The parameters θ: coefficients, then the intercept if the problem has one.
    pub fn theta(&self, problem: &Problem) -> Vec<f64> {
        let mut theta = self.coef.clone();
        theta.extend(problem.has_intercept().then_some(self.intercept));
        theta
    }
}

impl Path {
    /// The jumps among the events.
    pub fn jumps(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(|e| e.kind == Kind::Jump)
    }
}
