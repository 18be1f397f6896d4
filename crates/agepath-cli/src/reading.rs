//! Options that say how a file is read, shared by the subcommands that read one.

use crate::args::{choices, models};
use agepath::dataset::{self, Impute, Limits, Pick, ReadOptions};
use agepath::loss::{self, LossParameters, TargetKind};
use agepath::model::Model;
use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

/// What is refused as too large.
#[derive(Args)]
pub struct SizeArgs {
    /// Refuse files that hold more than this when they are unpacked, like 500M or 8G [default: 4G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_size: Option<u64>,
    #[arg(long, value_name = "N", help = max_columns_help())]
    max_columns: Option<usize>,
}

impl SizeArgs {
    pub fn limits(&self) -> Limits {
        let default = Limits::default();
        Limits { bytes: self.max_size.unwrap_or(default.bytes), columns: self.max_columns.unwrap_or(default.columns) }
    }
}

fn max_columns_help() -> String {
    format!("Refuse more columns than this, each category counted [default: {}]", Limits::default().columns)
}

/// How the data is read, and by which model it is meant to be fitted.
#[derive(Args)]
pub struct ReadArgs {
    /// Target column [default: the last one]
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// What the target is [default: by the model; else classes if it has two values, no numbers, or few whole numbers]
    #[arg(long, value_parser = tasks())]
    task: Option<String>,
    /// Leave out these columns; may be given several times
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    drop: Vec<String>,
    /// Use these columns only, and the target
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    columns: Vec<String>,
    /// Take the numbers in these columns for names, like postcodes: each becomes a column of 0 and 1
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    categorical: Vec<String>,
    /// Fill in missing values of features [default: they are refused; rows without a target are left out]
    #[arg(long, value_parser = imputations())]
    impute: Option<String>,
    /// Refuse columns of categories [default: each category becomes a column of 0 and 1]
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    sizes: SizeArgs,
    /// Model [default: by the target: numbers lasso, classes logistic]
    #[arg(long, value_parser = models())]
    pub model: Option<String>,
}

impl ReadArgs {
    /// How the data is read.
    pub fn options(&self) -> Result<ReadOptions> {
        Ok(ReadOptions {
            target: self.target.clone(),
            task: self.task()?,
            pick: Pick {
                drop: self.drop.clone(),
                columns: self.columns.clone(),
                categorical: self.categorical.clone(),
            },
            impute: imputation(self.impute.as_deref())?,
            strict: self.strict,
            limits: self.sizes.limits(),
            ..ReadOptions::default()
        })
    }

    /// What the target is meant to be: as was said, or by the model.
    fn task(&self) -> Result<Option<TargetKind>> {
        let of_model = match &self.model {
            Some(name) => Some(loss::by_name(Model::by_name(name)?.loss, &LossParameters::default())?.target()),
            None => None,
        };
        let said = self.task.as_ref().and_then(|name| TASKS.iter().find(|task| task.0 == name)).map(|task| task.1);
        match (said, of_model, &self.model) {
            (Some(said), Some(other), Some(model)) if said != other => Err(agepath::Error::Option {
                name: "task",
                value: self.task.clone().unwrap_or_default(),
                expected: format!("what the model {model} is for"),
            }
            .into()),
            _ => Ok(said.or(of_model)),
        }
    }
}

const TASKS: [(&str, TargetKind, &str); 2] =
    [("numbers", TargetKind::Real, "a regression"), ("classes", TargetKind::Sign, "a classification")];

fn tasks() -> PossibleValuesParser {
    TASKS.iter().map(|(name, _, summary)| PossibleValue::new(name).help(*summary)).collect::<Vec<_>>().into()
}

/// By name, if one is given.
pub fn imputation(name: Option<&str>) -> Result<Impute> {
    Ok(name.map(Impute::by_name).transpose()?.unwrap_or_default())
}

pub fn imputations() -> PossibleValuesParser {
    choices(dataset::IMPUTATIONS.iter().map(|(name, _, summary)| (*name, *summary)))
}

/// A number of bytes with K, M or G for powers of 1024.
fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || "expected a number of bytes, like 500M or 8G".to_owned();
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit.trim().trim_end_matches(['b', 'B']).to_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(wrong()),
    };
    digits.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes() {
        for (text, bytes) in [("17", 17), ("2K", 2048), ("3mb", 3 << 20), ("8G", 8 << 30)] {
            assert_eq!(parse_size(text), Ok(bytes));
        }
        for text in ["", "G", "-1", "1.5G", "1T", "99999999999G"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
