//! Spaces: how the predictors z depend on the parameters.

mod kernel;
mod linear;

pub use kernel::{Gamma, Gram, KERNELS, Kernel, KernelEntry, KernelParameters, ScaleWord};
pub use linear::{Csr, Dense, Design};
