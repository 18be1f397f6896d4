//! Spaces: how the predictors z depend on the parameters.

mod linear;

pub use linear::{Csr, Dense, Design};
