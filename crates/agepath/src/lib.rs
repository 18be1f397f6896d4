//! Exact solution paths of self-paced learning.
//!
//! Self-paced learning fits a model while every sample gets a weight v ∈ [0, 1] that depends on its loss and an *age* λ:
//!
//! minimise over θ and v  R(θ) + Σ_i s_i [ v_i ℓ(z_i, y_i) + f(v_i, λ) ],  z = Xθ.
//!
//! With the best weights v*(ℓ, λ) put in, what is left is G(θ) = R(θ) + Σ s F(ℓ), F' = v*. This crate follows a branch of
//! local minimisers of G through all ages, with every point where a set changes (a *turning point*) or where the solution
//! itself changes (a *jump*).
//!
//! | symbol | name | meaning |
//! |---|---|---|
//! | λ | age | how large a loss may be and still count |
//! | u | inverse age | 1/λ; 0 where the problem is convex |
//! | t | time | the tracker's clock, u = (eᵗ − 1)/c |
//! | ℓ, v | loss, weight | of one sample |
//! | ψ, h | | ∂/∂z and ∂²/∂z² of s F(ℓ(z)) |
//! | E, M, D | zones | pieces of v* as a function of ℓ |
//! | κ | cut | 1/τ, τ being a threshold between zones |
//! | θ, w, b | parameters | coefficients and intercept |
//! | K, β | kernel, dual coefficients | z = Kβ + b in kernel space |
//!
//! Start with [`prepare::prepare`] and [`path::age_path`]; the README has an example, which is compiled and run as a test.

pub mod baseline;
pub mod dataset;
pub mod decide;
pub mod error;
pub mod judge;
pub mod laws;
mod linalg;
pub mod loss;
mod memory;
pub mod model;
pub mod one_vs_rest;
pub mod pacing;
pub mod path;
pub mod penalty;
pub mod prepare;
mod problem;
pub mod registry;
pub mod report;
pub mod select;
pub mod solver;
pub mod space;
pub mod suspects;

pub use error::{Breakdown, Error, Result};
pub use problem::{Factors, NewRows, Problem, Spec};

/// The README's example, compiled and run with the documentation's tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
