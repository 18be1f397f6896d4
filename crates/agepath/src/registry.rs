//! Registries: the members of a factor by name, each a row with its parameters.
//!
//! A row says everything that is known about a member: name, one line about it, parameters with default, range and help, and
//! how it is built. The command's options, the Python parameters, help, errors and files are made of the rows, so a new
//! member is its own file and its row. Other crates add rows with [`Registry::register`].

use crate::error::{Error, Result};
use std::sync::{PoisonError, RwLock};

/// Numbers that a parameter may be.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Range {
    /// Finite and above this.
    Above(f64),
    /// Finite and this or more.
    AtLeast(f64),
    /// Above the first and below the second.
    Between(f64, f64),
}

impl Range {
    /// Whether `value` is one of them.
    pub fn contains(&self, value: f64) -> bool {
        match *self {
            Range::Above(low) => value > low && value.is_finite(),
            Range::AtLeast(low) => value >= low && value.is_finite(),
            Range::Between(low, high) => value > low && value < high,
        }
    }

    /// Some of them, for tests that want more than the default.
    pub fn examples(&self) -> [f64; 2] {
        match *self {
            Range::Above(low) | Range::AtLeast(low) => [low + 0.3, low + 2.0],
            Range::Between(low, high) => [0.7 * low + 0.3 * high, 0.2 * low + 0.8 * high],
        }
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Range::Above(low) => write!(f, "a finite number above {low}"),
            Range::AtLeast(low) => write!(f, "a finite number, {low} or more"),
            Range::Between(low, high) => write!(f, "a number above {low} and below {high}"),
        }
    }
}

/// One number that a member takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Its name in files: `gamma`.
    pub name: &'static str,
    /// Its name among all options: `pacing-gamma`, in Python `pacing_gamma`. Members of one registry may share a parameter.
    pub option: &'static str,
    /// Its value unless told otherwise.
    pub default: f64,
    /// What it may be.
    pub range: Range,
    /// One line for `--help` and the documentation.
    pub help: &'static str,
}

impl Parameter {
    /// Refuses a value outside the range.
    pub fn check(&self, value: f64) -> Result<f64> {
        match self.range.contains(value) {
            true => Ok(value),
            false => {
                Err(Error::Option { name: self.option, value: value.to_string(), expected: self.range.to_string() })
            }
        }
    }
}

/// Values of parameters by name; what is not there has its default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values(Vec<(&'static str, f64)>);

impl Values {
    /// These values.
    pub fn of(list: &[(&'static str, f64)]) -> Values {
        list.iter().fold(Values::default(), |values, &(name, value)| values.with(name, value))
    }

    /// With another value.
    pub fn with(mut self, name: &'static str, value: f64) -> Values {
        self.set(name, value);
        self
    }

    /// Gives `name` a value.
    pub fn set(&mut self, name: &'static str, value: f64) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// The value of `name`, if it was given one.
    pub fn given(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// The value of a parameter, given or not.
    pub fn get(&self, parameter: &Parameter) -> f64 {
        self.given(parameter.name).unwrap_or(parameter.default)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        self.0.iter().copied()
    }

    /// Exactly these parameters, defaults filled in.
    pub(crate) fn over(&self, parameters: &[Parameter]) -> Values {
        Values(parameters.iter().map(|p| (p.name, self.get(p))).collect())
    }
}

/// Builds a member of its parameters' values.
pub type Build<T> = &'static (dyn Fn(&Values) -> Box<T> + Sync);

/// One member.
pub struct Row<T: ?Sized + 'static> {
    /// The name users type.
    pub name: &'static str,
    /// One line for `--help` and the documentation.
    pub summary: &'static str,
    /// The numbers it takes.
    pub parameters: &'static [Parameter],
    /// Builds it; the values are in their ranges, and read with [`Values::get`].
    pub build: Build<T>,
}

impl<T: ?Sized> Clone for Row<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Row<T> {}

impl<T: ?Sized> std::fmt::Debug for Row<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Row").field("name", &self.name).field("parameters", &self.parameters).finish_non_exhaustive()
    }
}

impl<T: ?Sized> Row<T> {
    /// The member with these values; other values are refused, those of other members are passed over.
    pub fn build(&self, values: &Values) -> Result<Box<T>> {
        for parameter in self.parameters {
            parameter.check(values.get(parameter))?;
        }
        Ok((self.build)(values))
    }
}

/// All members of a factor: those of this crate, and what the process has registered.
#[derive(Debug)]
pub struct Registry<T: ?Sized + 'static> {
    what: &'static str,
    own: &'static [Row<T>],
    added: RwLock<Vec<Row<T>>>,
}

impl<T: ?Sized + 'static> Registry<T> {
    pub(crate) const fn new(what: &'static str, own: &'static [Row<T>]) -> Registry<T> {
        Registry { what, own, added: RwLock::new(Vec::new()) }
    }

    /// Every row, this crate's first.
    pub fn rows(&self) -> Vec<Row<T>> {
        // Nobody panics between taking the lock and a whole row.
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        self.own.iter().copied().chain(added.iter().copied()).collect()
    }

    /// The row of a name.
    pub fn row(&self, name: &str) -> Result<Row<T>> {
        self.rows().into_iter().find(|row| row.name == name).ok_or_else(|| Error::UnknownName {
            what: self.what,
            name: name.into(),
            choices: self.rows().iter().map(|row| row.name).collect::<Vec<_>>().join(", "),
        })
    }

    /// Adds a row for the rest of the process: its name then works in options, in files and when results are read back.
    /// Refused are a name that is taken, a default outside its range, and a parameter that another row has with another default or
    /// range.
    pub fn register(&self, row: Row<T>) -> Result<()> {
        let refuse = |value: &str, expected: &str| {
            Err(Error::Option { name: self.what, value: value.into(), expected: expected.into() })
        };
        if self.rows().iter().any(|known| known.name == row.name) {
            return refuse(row.name, "a name that is not taken");
        }
        for parameter in row.parameters {
            parameter.check(parameter.default)?;
            let same = |p: &Parameter| {
                (p.option, p.default, p.range) == (parameter.option, parameter.default, parameter.range)
            };
            if self.parameters().iter().any(|p| p.name == parameter.name && !same(p)) {
                return refuse(parameter.name, "another name: this one is a parameter with another default or range");
            }
        }
        self.added.write().unwrap_or_else(PoisonError::into_inner).push(row);
        Ok(())
    }

    /// Every parameter of any row, once.
    pub fn parameters(&self) -> Vec<Parameter> {
        let mut out: Vec<Parameter> = Vec::new();
        for parameter in self.rows().iter().flat_map(|row| row.parameters) {
            if out.iter().all(|p| p.name != parameter.name) {
                out.push(*parameter);
            }
        }
        out
    }
}
