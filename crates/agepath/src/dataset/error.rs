//! What can be wrong with data and files. Every message says where it is and what to do about it.

/// What is wrong with a data set or a file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file could not be read or written.
    #[error("cannot {action} {file}: {message}")]
    File {
        /// "read" or "write".
        action: &'static str,
        /// The file.
        file: String,
        /// The kind of failure.
        kind: std::io::ErrorKind,
        /// What the system says.
        message: String,
    },
    /// A compressed file is damaged.
    #[error("{file}: the gzip data is damaged or cut off ({message}); copy or download the file again")]
    Compression {
        /// The file.
        file: String,
        /// What the decoder says.
        message: String,
    },
    /// There is nothing in the file.
    #[error("{file}: the file is empty; expected a header line and rows of numbers")]
    Empty {
        /// The file.
        file: String,
    },
    /// There are not enough columns for a feature and a target.
    #[error(
        "{file}: only one column, \"{column}\"; expected at least one feature and a target, separated by comma, tab or semicolon"
    )]
    OneColumn {
        /// The file.
        file: String,
        /// The only column.
        column: String,
    },
    /// Two columns have the same name.
    #[error("{file}, line 1: two columns are called \"{column}\"; rename one of them")]
    DuplicateColumn {
        /// The file.
        file: String,
        /// The name.
        column: String,
    },
    /// A column that should be there is not.
    #[error("{file}: no column is called \"{column}\"; the columns are: {columns}")]
    NoColumn {
        /// The file.
        file: String,
        /// The name asked for.
        column: String,
        /// The names that exist, separated by commas.
        columns: String,
    },
    /// A line has more or fewer fields than the first.
    #[error(
        "{file}, line {line}: {found} fields, but the first line has {expected}; add or remove fields on this line"
    )]
    Ragged {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// Fields on the first line.
        expected: usize,
        /// Fields on this line.
        found: usize,
    },
    /// A line is not text.
    #[error("{file}, line {line}: {message}; save the file as UTF-8 text")]
    NotText {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// What the reader says.
        message: String,
    },
    /// A value is missing.
    #[error(
        "{file}, line {line}, column \"{column}\": missing value \"{value}\"; fill it in (--impute median does), or remove the row or the column"
    )]
    Missing {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The column.
        column: String,
        /// What stands there.
        value: String,
    },
    /// A value is not a number.
    #[error(
        "{file}, line {line}, column \"{column}\": \"{value}\" is not a number; encode it as numbers or remove the column"
    )]
    NotNumber {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The column.
        column: String,
        /// What stands there.
        value: String,
    },
    /// A value is not a date.
    #[error(
        "{file}, line {line}, column \"{column}\": \"{value}\" is not a date like the others; dates are written as 2024-12-31"
    )]
    NotDate {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The column.
        column: String,
        /// What stands there.
        value: String,
    },
    /// A column has too many categories.
    #[error(
        "{file}, column \"{column}\": {count} different words such as \"{value}\"; that looks like names or free text: remove the column"
    )]
    TooManyLevels {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// How many there are.
        count: usize,
        /// One of them.
        value: String,
    },
    /// A category that the training rows do not have.
    #[error(
        "{file}, line {line}, column \"{column}\": the category \"{value}\" is unknown; the training rows have {levels}"
    )]
    UnknownLevel {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The column.
        column: String,
        /// What stands there.
        value: String,
        /// The first few that are known.
        levels: String,
    },
    /// A line of a LIBSVM or ARFF file that cannot be understood.
    #[error(
        "{file}, line {line}: \"{value}\" is not understood; LIBSVM lines are \"label index:value …\" with increasing indices from 1, ARFF files have @attribute lines, @data and rows"
    )]
    NotEntry {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// What stands there.
        value: String,
    },
    /// An NPZ or Parquet file that cannot be used.
    #[error("{file}: {message}")]
    NotArchive {
        /// The file.
        file: String,
        /// What is wrong with it.
        message: String,
    },
    /// Numbers that do not fit in memory when written out.
    #[error(
        "{file}: {rows} rows of {columns} columns need about {:.1} GiB of memory, and {:.1} GiB may be used; choose columns with \
         --columns or --drop, or take fewer rows", gib(*.needed), gib(u128::from(*.available))
    )]
    TooLarge {
        /// The file.
        file: String,
        /// Rows.
        rows: u64,
        /// Columns.
        columns: u64,
        /// Bytes needed.
        needed: u128,
        /// Bytes free.
        available: u64,
    },
    /// More bytes than are allowed.
    #[error(
        "{file}: it holds more than {:.1} GiB when it is unpacked; if it is meant to be that large, allow more with --max-size",
        gib(u128::from(*.limit))
    )]
    TooManyBytes {
        /// The file.
        file: String,
        /// How many are allowed.
        limit: u64,
    },
    /// More columns than are allowed.
    #[error(
        "{file}: {columns} columns, and {limit} are allowed; choose some with --columns or --drop, or allow more with --max-columns"
    )]
    TooManyColumns {
        /// The file.
        file: String,
        /// How many there are, once categories are written out.
        columns: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// A field that no table has.
    #[error("{file}, line {line}: a field of {bytes} bytes that begins with \"{value}\"; is a quotation mark missing?")]
    LongField {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// Its size.
        bytes: usize,
        /// How it begins.
        value: String,
    },
    /// Most rows have no target.
    #[error(
        "{file}, line {line}, column \"{column}\": the target is missing, as in {count} of {rows} rows; a target cannot be filled \
         in: remove these rows, or name another column with --target"
    )]
    MissingTarget {
        /// The file.
        file: String,
        /// The first such line, counted from 1.
        line: u64,
        /// The target column.
        column: String,
        /// How many rows have none.
        count: usize,
        /// Rows in all.
        rows: usize,
    },
    /// A value that an ARFF file does not declare.
    #[error("{file}, line {line}, column \"{column}\": \"{value}\" is not among the declared values: {levels}")]
    Undeclared {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The column.
        column: String,
        /// What stands there.
        value: String,
        /// What is declared.
        levels: String,
    },
    /// A sparse line names a column twice.
    #[error("{file}, line {line}: the index {index} stands there twice; keep one of the two values")]
    DuplicateIndex {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The index.
        index: usize,
    },
    /// A value is infinite.
    #[error("{file}, line {line}, column \"{column}\": {value} is not a finite number; correct it or remove the row")]
    NotFinite {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The column.
        column: String,
        /// What stands there.
        value: String,
    },
    /// Too few rows.
    #[error("{file}: {rows} rows of {what}; at least {needed} are needed")]
    TooFewRows {
        /// The file.
        file: String,
        /// What the rows are for.
        what: &'static str,
        /// How many there are.
        rows: usize,
        /// How many there should be.
        needed: usize,
    },
    /// Every target value is the same.
    #[error(
        "{file}: the target \"{column}\" is {value} in every row; there is nothing to learn: choose another column with --target"
    )]
    ConstantTarget {
        /// The file.
        file: String,
        /// The target column.
        column: String,
        /// Its only value.
        value: String,
    },
    /// The target does not have two classes.
    #[error(
        "{file}: the target \"{column}\" has {count} classes ({classes}), but two are needed: keep two of them, or make it one class against the rest"
    )]
    NotTwoClasses {
        /// The file.
        file: String,
        /// The target column.
        column: String,
        /// How many classes there are.
        count: usize,
        /// Their names, the first few.
        classes: String,
    },
    /// The target looks like numbers, not like classes.
    #[error(
        "{file}: the target \"{column}\" has {count} classes ({classes}) in {rows} rows, which looks like a number: choose a model \
         for numbers, like --model lasso, or another column with --target"
    )]
    NotClasses {
        /// The file.
        file: String,
        /// The target column.
        column: String,
        /// How many different values there are.
        count: usize,
        /// How many rows.
        rows: usize,
        /// The values, the first few.
        classes: String,
    },
    /// A class that the training rows do not have.
    #[error("{file}, line {line}, column \"{column}\": class \"{value}\" is unknown; the training rows have {classes}")]
    UnknownClass {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The target column.
        column: String,
        /// What stands there.
        value: String,
        /// The classes that exist.
        classes: String,
    },
    /// The files of a result are not as one run wrote them.
    #[error("{file} is not a whole result: {message}; compute it again with `agepath path`")]
    NotWhole {
        /// The directory.
        file: String,
        /// What is wrong with it.
        message: String,
    },
    /// A directory to write to holds other things.
    #[error(
        "{file} is not empty ({names}) and holds no earlier result; name another directory, or write to it with --force"
    )]
    Occupied {
        /// The directory.
        file: String,
        /// What is in it, the first few names.
        names: String,
    },
    /// A directory or file is not what a run of this program writes.
    #[error("{file} is not a computed path: {message}; name the directory that `agepath path … -o DIR` wrote")]
    NotPath {
        /// The file.
        file: String,
        /// What is wrong with it.
        message: String,
    },
}

fn gib(bytes: u128) -> f64 {
    bytes as f64 / (1u64 << 30) as f64
}
