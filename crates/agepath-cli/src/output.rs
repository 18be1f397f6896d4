//! The only place that prints. A reader that goes away is no error.

use std::io::{self, ErrorKind, Write};

/// Writes to standard output; a broken pipe ends the output, not the program's good standing.
pub fn emit(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => {
            // What is left in the buffer has no reader; dropping it would try again.
            let _ = out.into_parts();
            Ok(())
        }
        other => other,
    }
}

/// Writes a line to standard error.
pub fn note(line: &str) {
    // With standard error gone there is nobody left to tell.
    let _ = writeln!(io::stderr(), "{line}");
}
