//! The `agepath` command: options, work, output.

mod args;
mod at;
mod classes;
mod compare;
mod demo;
mod explain;
mod numbers;
mod output;
mod path;
mod predict;
mod progress;
mod reading;
mod shell;
mod source;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Exact solution paths of self-paced learning.
#[derive(Parser)]
#[command(name = "agepath", version, about, propagate_version = true, after_help = explain::AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compute the age-path of a data set, choose an age, rank suspects, write everything to a directory
    Path(Box<args::PathArgs>),
    /// Print the exact solution at any age of a computed path, as JSON lines
    At(at::AtArgs),
    /// Predict other rows with the chosen model of a computed path, as CSV
    Predict(predict::PredictArgs),
    /// Compare the age-path with the convex model, ACS, MOSPL and robust machines on random splits
    Compare(Box<compare::CompareArgs>),
    /// Do the whole job on embedded data with corrupted rows; writes ./agepath-demo/
    Demo(demo::DemoArgs),
    /// Explain the words: age, pacing, zone, jump and others
    Explain(explain::ExplainArgs),
    /// Print completions for a shell
    Completions(shell::CompletionsArgs),
    /// Print the manual page, or write one per subcommand
    Man(shell::ManArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Path(args) => path::run(&args),
        Command::At(args) => at::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Completions(args) => shell::completions(&args, Cli::command()),
        Command::Man(args) => shell::man(&args, Cli::command()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&format!("{error:#}"));
            ExitCode::from(exit_code(&error))
        }
    }
}

/// 2 when what was typed is wrong, 1 when it could not be done.
fn exit_code(error: &anyhow::Error) -> u8 {
    use agepath::Error::{Option, UnknownName};
    match error.downcast_ref() {
        Some(Option { .. } | UnknownName { .. }) => 2,
        _ => 1,
    }
}
