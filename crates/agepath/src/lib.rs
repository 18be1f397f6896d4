//! Exact solution paths of self-paced learning.

pub mod dataset;
pub mod error;
mod linalg;
pub mod loss;
pub mod model;
pub mod pacing;
pub mod path;
pub mod penalty;
pub mod prepare;
mod problem;
pub mod report;
pub mod select;
pub mod solver;
pub mod space;
pub mod suspects;

pub use error::{Breakdown, Error, Result};
pub use problem::{Problem, Spec};

/// The README's example, compiled and run with the documentation's tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
