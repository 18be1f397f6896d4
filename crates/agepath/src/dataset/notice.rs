//! What the user should know about data besides errors: whatever could have been decided otherwise is said.

/// Something the user should know that is no error.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// The first line holds numbers, so columns were given names.
    NoHeader {
        /// The file.
        file: String,
    },
    /// A robust scale of 0 was replaced.
    TargetScaleFallback {
        /// The target column.
        column: String,
        /// What the target is divided by instead.
        scale: f64,
    },
    /// Columns of words became one column per category.
    Categories {
        /// The file.
        file: String,
        /// Their names.
        columns: Vec<String>,
    },
    /// Missing values were filled in.
    Imputed {
        /// The file.
        file: String,
        /// The columns' names.
        columns: Vec<String>,
    },
    /// Rows without a target were left out.
    MissingTargets {
        /// The file.
        file: String,
        /// The target column.
        column: String,
        /// How many rows.
        count: usize,
        /// The first such line.
        line: u64,
    },
    /// A target of few whole numbers was taken as classes.
    IntegerClasses {
        /// The target column.
        column: String,
        /// How many different numbers.
        count: usize,
        /// Rows.
        rows: usize,
    },
    /// A column that numbers the rows.
    Identifier {
        /// The file.
        file: String,
        /// The column.
        column: String,
    },
    /// Dates became days since 1970.
    Dates {
        /// The file.
        file: String,
        /// The columns' names.
        columns: Vec<String>,
    },
    /// Commas in numbers were understood.
    Commas {
        /// The file.
        file: String,
        /// Whether they are decimal; else they separate thousands.
        decimal: bool,
    },
    /// Categories that the training rows do not have.
    UnknownLevels {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// One of them.
        value: String,
        /// The first such line.
        line: u64,
        /// How many rows have one.
        count: usize,
    },
    /// Columns without any information.
    ConstantColumns {
        /// Their names.
        columns: Vec<String>,
    },
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Notice::NoHeader { file } => write!(
                f,
                "{file}: the first line holds numbers, so it is read as data and the columns are called x0, x1, …, target"
            ),
            Notice::TargetScaleFallback { column, scale } => write!(
                f,
                "at least half of the values of \"{column}\" are equal (median absolute deviation 0): \
                 the target is scaled by mean and standard deviation ({scale}) instead"
            ),
            Notice::Categories { file, columns } => {
                write!(f, "{file}: each category of {} became a column of 0 and 1", columns.join(", "))
            }
            Notice::Imputed { file, columns } => {
                write!(f, "{file}: missing values were filled in, in {}", columns.join(", "))
            }
            Notice::MissingTargets { file, column, count, line } => {
                write!(f, "{file}: {count} rows without a \"{column}\" were left out, the first in line {line}")
            }
            Notice::IntegerClasses { column, count, rows } => write!(
                f,
                "the target \"{column}\" has {count} different whole numbers in {rows} rows and is taken as {count} classes; \
                 --task numbers fits it as a number"
            ),
            Notice::Identifier { file, column } => write!(
                f,
                "{file}: the column \"{column}\" looks like a number given to each row; leave it out with --drop {column}"
            ),
            Notice::Dates { file, columns } => {
                write!(f, "{file}: dates became days since 1970-01-01, in {}", columns.join(", "))
            }
            Notice::Commas { file, decimal: true } => {
                write!(f, "{file}: commas in numbers are decimal commas: 1,5 is one and a half")
            }
            Notice::Commas { file, decimal: false } => {
                write!(f, "{file}: commas in numbers separate thousands: 1,000 is a thousand")
            }
            Notice::UnknownLevels { file, column, value, line, count } => write!(
                f,
                "{file}: {count} rows have a \"{column}\" that the training rows do not have, such as \"{value}\" in line {line}; \
                 they are predicted as none of the known ones"
            ),
            Notice::ConstantColumns { columns } => {
                write!(f, "constant columns carry no information: {}", columns.join(", "))
            }
        }
    }
}
