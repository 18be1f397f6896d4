//! The only place that prints. A reader that goes away is no error.
//!
//! On a terminal, text is wrapped to its width and labels are coloured unless `NO_COLOR` is set; anything else gets
//! the plain text, one line per line.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use console::{Term, measure_text_width, style};
use std::io::{self, ErrorKind, Write};

/// Where the text of a labelled line begins.
const INDENT: usize = 10;
/// Narrower than this, wrapping would leave no words together.
const NARROWEST: usize = 40;

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

/// Writes what went wrong to standard error.
pub fn complain(message: &str) {
    note(&format!("{} {message}", style("error:").for_stderr().red().bold()));
}

/// Columns of the terminal on standard output; none if it is not one.
pub fn width() -> Option<usize> {
    let size = Term::stdout().features().is_attended().then(|| Term::stdout().size_checked()).flatten();
    size.map(|(_, columns)| usize::from(columns).max(NARROWEST))
}

/// Lines "label     text", wrapped to `width` with the text kept in its column, their labels coloured.
pub fn labelled(text: &str, width: Option<usize>) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let (label, rest) = line.split_at_checked(INDENT).unwrap_or((line, ""));
        for (k, piece) in wrap(rest, width.map(|w| w - INDENT)).iter().enumerate() {
            let label = match label.trim() {
                name if k == 0 && !name.is_empty() => style(label).cyan().bold().to_string(),
                _ => " ".repeat(INDENT),
            };
            out += &format!("{label}{piece}\n");
        }
    }
    out
}

/// Breaks at spaces; a word that is longer than the width stays whole.
fn wrap(text: &str, width: Option<usize>) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_inclusive(' ') {
        let used = measure_text_width(lines.last().map_or("", String::as_str));
        if width.is_some_and(|w| used > 0 && used + measure_text_width(word.trim_end()) > w) {
            lines.push(String::new());
        }
        // There is always a last line.
        if let Some(line) = lines.last_mut() {
            *line += word;
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// Rows under headers, numbers to the right, indented like the text of labelled lines.
pub fn table(headers: &[&str], rows: &[Vec<String>], width: Option<usize>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    match width {
        Some(width) => table.set_width((width - INDENT).min(usize::from(u16::MAX)) as u16),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    let is_number = |c: usize| rows.iter().all(|row| row[c].parse::<f64>().is_ok());
    let right: Vec<bool> = (0..headers.len()).map(is_number).collect();
    let cell = |c: usize, text: &str| {
        Cell::new(text).set_alignment(if right[c] { CellAlignment::Right } else { CellAlignment::Left })
    };
    let line = |row: &[&str]| -> Vec<Cell> { row.iter().enumerate().map(|(c, text)| cell(c, text)).collect() };
    table.set_header(line(headers));
    for row in rows {
        table.add_row(line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    table.lines().map(|line| format!("{}{}\n", " ".repeat(INDENT - 1), line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_keep_their_column() {
        let text = "model     one two three four five six seven eight nine ten\n          more\n";
        let wrapped = labelled(text, Some(40));
        let expected = "model     one two three four five six\n          seven eight nine ten\n          more\n";
        assert_eq!(console::strip_ansi_codes(&wrapped), expected);
        assert_eq!(console::strip_ansi_codes(&labelled(text, None)), text);
        assert_eq!(wrap("averyveryverylongword b", Some(5)), ["averyveryverylongword", "b"]);
    }

    #[test]
    fn tables_are_aligned() {
        let rows = vec![vec!["7".into(), "yes".into()], vec!["1234".into(), "no".into()]];
        let text = table(&["row", "target"], &rows, None);
        let expected = "           row  target\n             7  yes\n          1234  no\n";
        assert_eq!(text, expected, "{text}");
    }

    #[test]
    fn tables_fit_the_terminal() {
        let rows = vec![vec!["1".into(), "words ".repeat(30)]];
        let text = table(&["row", "target"], &rows, Some(50));
        assert!(text.lines().all(|line| line.chars().count() <= 50), "{text}");
        assert_eq!(text.matches("words").count(), 30);
    }
}
