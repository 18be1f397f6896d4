//! Runs the command in a scratch directory.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What the command did.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code().expect("ended by a signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// `agepath` in `dir`, ready to be started.
pub fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agepath"));
    command.current_dir(dir).args(arguments);
    command
}

/// Runs `agepath` in `dir` with `input` on standard input.
pub fn agepath(dir: &Path, arguments: &[&str], input: &[u8]) -> Ran {
    let mut child =
        command(dir, arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that refuses its options does not wait for input.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().unwrap().into()
}
