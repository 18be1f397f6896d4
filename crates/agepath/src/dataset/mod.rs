//! Data sets.

/// What is wrong with a data set.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// Too few rows.
    #[error("{rows} rows; at least 2 are needed")]
    TooFewRows {
        /// How many there are.
        rows: usize,
    },
}
