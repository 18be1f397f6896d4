//! The age-path: a branch of local minimisers of G as the age moves, with every critical point on it.

mod options;
mod types;

pub use options::{Direction, PathOptions, Progress, Start};
pub use types::{Cause, Certificate, End, Event, Kind, Knot, Path, Point, Work};
