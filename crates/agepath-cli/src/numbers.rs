//! Options that are made of the library's registries: one per parameter of any loss or pacing, with its default and its help.

use agepath::registry::{Parameter, Values};
use agepath::{loss, pacing};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};

/// A group of such options.
pub trait Numbers: Sized {
    /// The parameters.
    fn list() -> Vec<Parameter>;

    /// The group with the values that were typed.
    fn new(values: Values) -> Self;
}

/// Numbers of the losses, the factor C apart: it can be tuned, and has an option of its own.
pub struct LossNumbers(pub Values);

impl Numbers for LossNumbers {
    fn list() -> Vec<Parameter> {
        loss::REGISTRY.parameters().into_iter().filter(|p| p.name != "c").collect()
    }

    fn new(values: Values) -> Self {
        LossNumbers(values)
    }
}

/// Numbers of the pacings.
pub struct PacingNumbers(pub Values);

impl Numbers for PacingNumbers {
    fn list() -> Vec<Parameter> {
        pacing::REGISTRY.parameters()
    }

    fn new(values: Values) -> Self {
        PacingNumbers(values)
    }
}

fn option(parameter: &Parameter) -> Arg {
    Arg::new(parameter.option)
        .long(parameter.option)
        .help(parameter.help)
        .value_name(parameter.option.to_uppercase().replace('-', "_"))
        .default_value(parameter.default.to_string())
        .value_parser(value_parser!(f64))
        .allow_negative_numbers(true)
}

fn typed(parameters: &[Parameter], matches: &ArgMatches) -> Values {
    let mut values = Values::default();
    for parameter in parameters {
        if let Some(value) = matches.get_one::<f64>(parameter.option) {
            values.set(parameter.name, *value);
        }
    }
    values
}

/// The two traits that clap wants of a group of options.
macro_rules! group {
    ($group:ty) => {
        impl FromArgMatches for $group {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self::new(typed(&Self::list(), matches)))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }

        impl Args for $group {
            fn augment_args(command: Command) -> Command {
                command.args(Self::list().iter().map(option))
            }

            fn augment_args_for_update(command: Command) -> Command {
                Self::augment_args(command)
            }
        }
    };
}

group!(LossNumbers);
group!(PacingNumbers);
