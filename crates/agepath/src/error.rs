//! One error type. Every variant carries the numbers a user needs to act on it.

const GIB: f64 = (1u64 << 30) as f64;

/// What went wrong, and where.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option has a value outside its range.
    #[error("{name} = {value}: {expected}")]
    Option {
        /// The option's name, as the user typed it.
        name: &'static str,
        /// The value given.
        value: String,
        /// What would be accepted.
        expected: String,
    },
    /// A name that no registry knows.
    #[error("unknown {what} \"{name}\"; choose one of: {choices}")]
    UnknownName {
        /// Which registry was asked: "loss", "pacing", "model" …
        what: &'static str,
        /// The name that was asked for.
        name: String,
        /// The names that exist, separated by commas.
        choices: String,
    },
    /// Two parts of the input disagree in size.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// What has the wrong size.
        what: &'static str,
        /// The size it should have.
        expected: usize,
        /// The size it has.
        found: usize,
    },
    /// A number in the data is not finite.
    #[error("row {row}, column {column}: the value {value} is not a finite number")]
    NotFinite {
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0; the target is the column after the last feature.
        column: usize,
        /// The value found.
        value: f64,
    },
    /// A kernel matrix that would not fit into memory.
    #[error(
        "a kernel matrix of {rows} x {cols} needs {:.1} GiB, and {:.1} GiB may be used: take fewer rows, or no kernel",
        *.bytes as f64 / GIB, *.limit as f64 / GIB
    )]
    KernelTooLarge {
        /// Its rows.
        rows: usize,
        /// Its columns.
        cols: usize,
        /// What it would need.
        bytes: u128,
        /// What may be used.
        limit: u128,
    },
    /// The data set cannot be learned from.
    #[error(transparent)]
    Data(#[from] crate::dataset::DataError),
    /// The age asked for is not on the computed path.
    #[error("age {age} is outside the computed path [{low}, {high}]")]
    AgeOutside {
        /// The age asked for.
        age: f64,
        /// The smallest computed age.
        low: f64,
        /// The largest computed age.
        high: f64,
    },
    /// A picture could not be drawn.
    #[error("cannot draw the plot: {message}")]
    Plot {
        /// What the drawing library says.
        message: String,
    },
    /// No solution could be found at an age.
    #[error("no solution found at age {age}: {reason}")]
    NoSolution {
        /// The age.
        age: f64,
        /// Why.
        reason: Breakdown,
    },
}

/// Why a solver gave up.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Breakdown {
    /// Newton's method did not reach the tolerance.
    #[error("Newton's method stopped at a relative residual of {residual:e}")]
    Newton {
        /// The relative residual reached.
        residual: f64,
    },
    /// The descent runs off to infinity: the objective has no minimiser there.
    #[error(
        "the objective has no minimiser there (the weighted rows no longer bound the solution, e.g. one class only)"
    )]
    Unbounded,
    /// The time limit, or the caller, came first.
    #[error("the time limit or an interrupt came before the first solution")]
    OutOfTime,
    /// The path cannot be continued and no descent direction leads away.
    #[error("the path stalls: the point is degenerate and no descent direction leads away from it")]
    Stalled,
}

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
