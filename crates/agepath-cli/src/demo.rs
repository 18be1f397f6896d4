//! `agepath demo`: the whole job on embedded data. It is `agepath path` with these options and nothing else.

use crate::args::{PathArgs, Talk, choices};
use crate::output::note;
use crate::path;
use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Args, FromArgMatches};

/// The data sets with the noise that suits them.
const DATA: [(&str, &str, &str); 3] = [
    (
        "diabetes",
        "outliers:0.3",
        "442 patients and the progress of their disease; 30 % of the training rows become outliers",
    ),
    ("breast_cancer", "flip:0.3", "569 tumours, benign or malignant; 30 % of the training labels are flipped"),
    ("digits", "flip:0.1", "1797 handwritten digits, one path each; 10 % of the training labels are changed"),
];

/// Options of `agepath demo`.
#[derive(Args)]
pub struct DemoArgs {
    /// The data set
    #[arg(long, default_value = DATA[0].0, value_parser = data_sets())]
    data: String,
    /// Directory to write to
    #[arg(short, long, value_name = "DIR", default_value = "agepath-demo")]
    output: String,
    #[command(flatten)]
    talk: Talk,
}

fn data_sets() -> PossibleValuesParser {
    choices(DATA.iter().map(|(name, _, summary)| (*name, *summary)))
}

/// Runs the command.
pub fn run(args: &DemoArgs) -> Result<()> {
    let noise = DATA.iter().find(|data| data.0 == args.data).map_or(DATA[0].1, |data| data.1);
    let data = format!("builtin:{}", args.data);
    let typed = ["path", &data, "--noise", noise, "--output", &args.output];
    let command = PathArgs::augment_args(clap::Command::new("agepath"));
    let mut path_args = PathArgs::from_arg_matches(&command.try_get_matches_from(typed)?)?;
    path_args.talk = args.talk;
    if !args.talk.quiet {
        note(&format!("agepath {}", typed.join(" ")));
    }
    path::run(&path_args)
}
