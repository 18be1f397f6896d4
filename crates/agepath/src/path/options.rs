//! What the tracker is asked to do.

use crate::error::{Error, Result};
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Which way the age moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From λ = ∞, where the problem is convex and its solution unique, down to the smallest age.
    Down,
    /// From the smallest age, started by ACS, up to the largest.
    Up,
}

impl Direction {
    /// The word that files and options use.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Down => "down",
            Direction::Up => "up",
        }
    }
}

/// Where ACS starts when the direction is [`Direction::Up`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// The ordinary fit: every weight 1 at first.
    Full,
    /// All parameters 0.
    Zero,
    /// A fit with weights drawn uniformly from [0, 1].
    Random,
}

/// Options of [`age_path`](super::age_path).
#[derive(Debug, Clone, PartialEq)]
pub struct PathOptions {
    /// Smallest and largest age reported: 0 < low < high, both finite. Default (0.1, 20).
    pub ages: (f64, f64),
    /// Default: down.
    pub direction: Direction,
    /// Default: full. Only read when the direction is up.
    pub start: Start,
    /// Parameters to start from instead, at the first age reported: the largest when the direction is down, the smallest when it is
    /// up. They are settled there first. Linear space only. Default: none.
    pub from: Option<Vec<f64>>,
    /// Seed of [`Start::Random`] and of the ages the certificate checks. Default 0.
    pub seed: u64,
    /// Stop after this many events. Default: no limit.
    pub max_events: Option<usize>,
    /// Stop after this long. Default: no limit.
    pub time_limit: Option<Duration>,
    /// How many random ages between the knots the certificate checks. Default: 200 in linear space; 64 in kernel space, where
    /// each is a stop on the way.
    pub certify: Option<usize>,
}

impl Default for PathOptions {
    fn default() -> Self {
        PathOptions {
            ages: (0.1, 20.0),
            direction: Direction::Down,
            start: Start::Full,
            from: None,
            seed: 0,
            max_events: None,
            time_limit: None,
            certify: None,
        }
    }
}

impl PathOptions {
    /// Refuses intervals that are empty, reversed, non-positive or not finite.
    pub fn validate(&self) -> Result<()> {
        let (low, high) = self.ages;
        if low > 0.0 && low < high && high.is_finite() {
            return Ok(());
        }
        Err(Error::Option {
            name: "ages",
            value: format!("{low}:{high}"),
            expected: "LO:HI with 0 < LO < HI, both finite".into(),
        })
    }
}

impl PathOptions {
    /// Refuses a start that does not fit the problem.
    pub(super) fn check_from(&self, problem: &Problem) -> Result<()> {
        let Some(from) = &self.from else { return Ok(()) };
        if problem.products.is_some() {
            return Err(Error::Option {
                name: "from",
                value: "parameters".into(),
                expected: "none in kernel space and for losses with several pieces".into(),
            });
        }
        match from.len() == problem.parameters() {
            true => Ok(()),
            false => Err(Error::Shape { what: "start values", expected: problem.parameters(), found: from.len() }),
        }
    }
}

/// Where the tracker is; handed to the caller's callback, which may stop it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The age reached; infinite at the start of a path that comes down.
    pub age: f64,
    /// Share of the way done, from 0 to 1.
    pub done: f64,
    /// Events so far.
    pub events: usize,
    /// Jumps among them.
    pub jumps: usize,
}
