//! The age-path: a branch of local minimisers of G as the age moves, with every critical point on it.

mod at;
mod certify;
pub(crate) mod chart;
mod compress;
mod cubic;
pub(crate) mod curve;
pub(crate) mod dual;
mod exact;
pub(crate) mod far;
mod follow;
mod guards;
pub(crate) mod kinked;
mod moments;
mod options;
pub(crate) mod patch;
mod slope;
mod steps;
mod trace;
mod tracker;
mod twins;
mod types;
mod window;

pub use options::{Direction, PathOptions, Progress, Start};
pub use tracker::age_path;
pub use types::{Cause, Certificate, End, Event, Gap, Kind, Knot, Path, Point, Work};
pub use types::{NO_LOSS, PINNED, WIDEST_GAP};
