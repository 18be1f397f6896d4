//! LIBSVM text: `label index:value index:value …` per line, indices from 1 and increasing; what is not named is 0.

use super::DataError;
use super::column::Column;
use super::encode::{Encoding, Raw};
use super::read::{Place, check_memory, clip};

/// Whether a first line looks like one of LIBSVM.
pub(super) fn looks_like(line: &str) -> bool {
    let mut tokens = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
    let label = tokens.next().is_some_and(|t| t.parse::<f64>().is_ok());
    let mut entries = tokens.peekable();
    let pair = |t: &str| t.split_once(':').is_some_and(|(i, v)| i.parse::<usize>().is_ok() && v.parse::<f64>().is_ok());
    label && entries.peek().is_some() && entries.all(|t| pair(t) || t.starts_with("qid:"))
}

/// Reads the whole text; the features are called f1, f2, … by their index, the target `target`. The last features of
/// `encoding` may be 0 in every row of this file, and then it does not name them.
pub(super) fn parse(text: &str, file: &str, encoding: Option<&Encoding>) -> Result<Raw, DataError> {
    let (mut labels, mut lines, mut entries) = (Vec::new(), Vec::new(), Vec::new());
    let known = encoding.iter().flat_map(|e| &e.0).filter_map(|code| code.column.strip_prefix('f')?.parse().ok());
    let mut d = known.max().unwrap_or(0);
    for (k, line) in text.lines().enumerate() {
        let (number, line) = (k as u64 + 1, line.split('#').next().unwrap_or_default());
        let mut tokens = line.split_ascii_whitespace();
        let Some(label) = tokens.next() else { continue };
        let wrong = |value: &str| DataError::NotEntry { file: file.into(), line: number, value: clip(value) };
        Place { file, line: number, column: "target" }.number(label)?;
        let mut last = 0;
        for token in tokens.filter(|t| !t.starts_with("qid:")) {
            let (index, value) = token.split_once(':').ok_or_else(|| wrong(token))?;
            let index: usize = index.parse().ok().filter(|&i| i > last).ok_or_else(|| wrong(token))?;
            let column = format!("f{index}");
            let value = Place { file, line: number, column: &column }.number(value)?;
            entries.push((labels.len(), index - 1, value));
            last = index;
        }
        d = d.max(last);
        labels.push(Some(label.to_owned()));
        lines.push(number);
    }
    if labels.is_empty() {
        return Err(DataError::Empty { file: file.into() });
    }
    let n = labels.len();
    check_memory(file, n as u64, d as u64, 0)?;
    let mut columns = vec![vec![0.0; n]; d];
    entries.into_iter().for_each(|(i, j, v): (usize, usize, f64)| columns[j][i] = v);
    let columns = columns.into_iter().enumerate().map(|(j, v)| Column::numbers(format!("f{}", j + 1), v)).collect();
    let target = Some(Column::text("target".into(), labels));
    Ok(Raw { file: file.into(), columns, target, lines, notices: Vec::new(), picked: false })
}
