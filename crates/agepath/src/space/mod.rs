//! Spaces: how the predictors z depend on the parameters.

mod kernel;
mod linear;
mod products;

pub use kernel::{Gamma, Gram, KERNELS, Kernel, KernelChoice, KernelEntry, KernelParameters, ScaleWord};
pub use linear::{Csr, Dense, Design};
pub(crate) use products::{Products, Rows};
