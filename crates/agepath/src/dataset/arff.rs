//! ARFF: `@attribute name type` lines, then `@data` and delimited rows; dense or sparse (`{index value, …}`).
//! Attributes of type numeric, real and integer are numbers; nominal ones and strings are categories.

use super::DataError;
use super::column::Column;
use super::encode::Raw;
use super::pick::check_names;
use super::read::{Place, clip, is_missing};

/// Whether a text begins like ARFF.
pub(super) fn looks_like(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('%'));
    first.is_some_and(|l| starts_with(l, "@relation"))
}

fn starts_with(line: &str, word: &str) -> bool {
    line.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

struct Attribute {
    name: String,
    numeric: bool,
    /// The declared values of a nominal attribute; the first is what a sparse row leaves out.
    levels: Vec<String>,
}

/// Reads the whole text.
pub(super) fn parse(text: &str, file: &str) -> Result<Raw, DataError> {
    let mut attributes: Vec<Attribute> = Vec::new();
    let (mut rows, mut lines) = (Vec::<Vec<String>>::new(), Vec::new());
    let mut data = false;
    for (k, line) in text.lines().enumerate() {
        let (number, line) = (k as u64 + 1, line.trim());
        let wrong = || DataError::NotEntry { file: file.into(), line: number, value: clip(line) };
        if line.is_empty() || line.starts_with('%') {
        } else if data {
            let fields = row(line, &attributes).ok_or_else(wrong)?;
            let fields =
                fields.map_err(|index| DataError::DuplicateIndex { file: file.into(), line: number, index })?;
            rows.push(fields);
            let (expected, found) = (attributes.len(), rows.last().map_or(0, Vec::len));
            if found != expected {
                return Err(DataError::Ragged { file: file.into(), line: number, expected, found });
            }
            lines.push(number);
        } else if starts_with(line, "@attribute") {
            attributes.push(attribute(line["@attribute".len()..].trim()).ok_or_else(wrong)?);
        } else if starts_with(line, "@data") {
            data = true;
        } else if !starts_with(line, "@relation") {
            return Err(wrong());
        }
    }
    if attributes.is_empty() || rows.is_empty() {
        return Err(DataError::Empty { file: file.into() });
    }
    check_names(file, &attributes.iter().map(|a| a.name.clone()).collect::<Vec<_>>())?;
    let columns = attributes.iter().enumerate().map(|(j, a)| column(file, a, j, &rows, &lines));
    let columns = columns.collect::<Result<_, _>>()?;
    Ok(Raw { file: file.into(), columns, target: None, lines, notices: Vec::new(), picked: false })
}

/// A name, possibly quoted, and a type.
fn attribute(text: &str) -> Option<Attribute> {
    let (name, kind) = match text.chars().next()? {
        quote @ ('\'' | '"') => text[1..].split_once(quote)?,
        _ => text.split_once(char::is_whitespace)?,
    };
    let (name, kind) = (name.to_owned(), kind.trim());
    let numeric = ["numeric", "real", "integer"].iter().any(|w| kind.eq_ignore_ascii_case(w));
    let levels = match kind.strip_prefix('{') {
        Some(list) => fields(list.strip_suffix('}')?)?,
        None => Vec::new(),
    };
    let known = numeric || kind.starts_with('{') || kind.eq_ignore_ascii_case("string");
    known.then_some(Attribute { name, numeric, levels })
}

/// Fields between commas, quoted or not.
fn fields(line: &str) -> Option<Vec<String>> {
    let (mut out, mut field, mut quote) = (Vec::new(), String::new(), None);
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (_, '\\') => field.push(characters.next()?),
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') if field.trim().is_empty() => {
                field.clear();
                quote = Some(c);
            }
            (None, ',') => out.push(std::mem::take(&mut field).trim().to_owned()),
            (_, c) => field.push(c),
        }
    }
    out.push(field.trim().to_owned());
    quote.is_none().then_some(out)
}

/// The fields of a row; the index that a sparse row names twice; nothing if it is not understood.
fn row(line: &str, attributes: &[Attribute]) -> Option<Result<Vec<String>, usize>> {
    let Some(sparse) = line.strip_prefix('{') else { return fields(line).map(Ok) };
    let zero = |a: &Attribute| if a.numeric { "0".into() } else { a.levels.first().cloned().unwrap_or_default() };
    let mut out: Vec<String> = attributes.iter().map(zero).collect();
    let body = sparse.strip_suffix('}')?.trim();
    let mut named = vec![false; out.len()];
    for entry in fields(body)?.iter().filter(|_| !body.is_empty()) {
        let (index, value) = entry.split_once(char::is_whitespace)?;
        let index = index.parse::<usize>().ok()?;
        *out.get_mut(index)? = value.trim().trim_matches(['\'', '"']).to_owned();
        if std::mem::replace(&mut named[index], true) {
            return Some(Err(index));
        }
    }
    Some(Ok(out))
}

fn column(file: &str, a: &Attribute, j: usize, rows: &[Vec<String>], lines: &[u64]) -> Result<Column, DataError> {
    let missing = rows.iter().position(|r| is_missing(&r[j])).map(|i| (i, rows[i][j].clone()));
    let name = a.name.clone();
    if !a.numeric {
        let declared = |value: &String| a.levels.is_empty() || is_missing(value) || a.levels.contains(value);
        if let Some(i) = rows.iter().position(|r| !declared(&r[j])) {
            let (line, value, levels) = (lines[i], clip(&rows[i][j]), a.levels.join(", "));
            return Err(DataError::Undeclared { file: file.into(), line, column: name, value, levels });
        }
        let text = rows.iter().map(|r| (!is_missing(&r[j])).then(|| r[j].clone())).collect();
        return Ok(Column { missing, ..Column::text(name, text) });
    }
    let number = |(r, &line): (&Vec<String>, &u64)| {
        let place = Place { file, line, column: &a.name };
        if is_missing(&r[j]) { Ok(f64::NAN) } else { place.number(&r[j]) }
    };
    let values = rows.iter().zip(lines).map(number).collect::<Result<_, _>>()?;
    Ok(Column { missing, ..Column::numbers(name, values) })
}
