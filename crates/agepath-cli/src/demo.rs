//! `agepath demo`: the whole job on embedded data. It is `agepath path` with these options and nothing else.

use crate::args::{PathArgs, Talk};
use crate::output::note;
use crate::path;
use anyhow::Result;
use clap::{Args, FromArgMatches};

/// What the demonstration types for you.
const TYPED: &[&str] = &["path", "builtin:diabetes", "--noise", "outliers:0.3", "--output", "agepath-demo"];

/// Options of `agepath demo`.
#[derive(Args)]
pub struct DemoArgs {
    #[command(flatten)]
    talk: Talk,
}

/// Runs the command.
pub fn run(args: &DemoArgs) -> Result<()> {
    let command = PathArgs::augment_args(clap::Command::new("agepath"));
    let mut path_args = PathArgs::from_arg_matches(&command.try_get_matches_from(TYPED)?)?;
    path_args.talk = args.talk;
    if !args.talk.quiet {
        note(&format!("agepath {}", TYPED.join(" ")));
    }
    path::run(&path_args)
}
