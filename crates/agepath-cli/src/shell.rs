//! `agepath completions` and `agepath man`: what shells and `man` want to know, from the same definitions as `--help`.

use crate::output::{emit, note};
use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;
use std::fs;
use std::path::{Path, PathBuf};

/// Options of `agepath completions`.
#[derive(Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Options of `agepath man`.
#[derive(Args)]
pub struct ManArgs {
    /// Directory for one page per subcommand [default: the page of agepath itself, on standard output]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Prints the completions of a shell.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "agepath", &mut text);
    Ok(emit(|out| out.write_all(&text))?)
}

/// Prints a manual page, or writes all of them.
pub fn man(args: &ManArgs, mut command: Command) -> Result<()> {
    command.build();
    let Some(dir) = &args.output else {
        let page = page(command)?;
        return Ok(emit(|out| out.write_all(&page))?);
    };
    fs::create_dir_all(dir).with_context(|| format!("cannot write {}", dir.display()))?;
    let subcommands: Vec<Command> = command.get_subcommands().filter(|c| !c.is_hide_set()).cloned().collect();
    write(dir, "agepath", command)?;
    for subcommand in subcommands.into_iter().filter(|c| c.get_name() != "help") {
        let name = format!("agepath-{}", subcommand.get_name());
        write(dir, &name, subcommand)?;
    }
    note(&format!("man pages are in {}", dir.display()));
    Ok(())
}

fn write(dir: &Path, name: &str, command: Command) -> Result<()> {
    let file = dir.join(format!("{name}.1"));
    fs::write(&file, page(command)?).with_context(|| format!("cannot write {}", file.display()))
}

fn page(command: Command) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok(text)
}
