//! A column as it was read, before it becomes features.

use super::format_number;

/// Fewer rows than this may count up by chance.
const FEWEST_IDENTIFIERS: usize = 20;

/// The values of one column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    /// Not a number where it is missing.
    Numbers(Vec<f64>),
    /// None where it is missing.
    Text(Vec<Option<String>>),
}

/// One column as it was read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub name: String,
    pub values: Values,
    /// What stands in the first row where a value is missing.
    pub missing: Option<(usize, String)>,
    /// Whether the numbers were dates.
    pub dates: bool,
}

impl Column {
    pub fn numbers(name: String, values: Vec<f64>) -> Column {
        let missing = values.iter().position(|v| v.is_nan()).map(|row| (row, "NaN".to_owned()));
        Column { name, values: Values::Numbers(values), missing, dates: false }
    }

    pub fn text(name: String, values: Vec<Option<String>>) -> Column {
        let missing = values.iter().position(Option::is_none).map(|row| (row, String::new()));
        Column { name, values: Values::Text(values), missing, dates: false }
    }

    /// Numbers that are names: one category each.
    pub fn into_categories(self) -> Column {
        let Values::Numbers(values) = self.values else { return self };
        let values = values.into_iter().map(|v| (!v.is_nan()).then(|| format_number(v))).collect();
        Column { values: Values::Text(values), dates: false, ..self }
    }

    /// The rows whose numbers are in `kept`.
    pub fn keep(&mut self, kept: &[usize]) {
        match &mut self.values {
            Values::Numbers(values) => *values = kept.iter().map(|&i| values[i]).collect(),
            Values::Text(values) => *values = kept.iter().map(|&i| values[i].take()).collect(),
        }
        let is_missing = |i: &usize| match &self.values {
            Values::Numbers(values) => values[*i].is_nan(),
            Values::Text(values) => values[*i].is_none(),
        };
        let first = (0..kept.len()).find(is_missing);
        let text = self.missing.take().map_or_else(String::new, |(_, text)| text);
        self.missing = first.map(|row| (row, text));
    }

    /// Whether it gives every row a whole number of its own: counted through, or called an identifier.
    pub fn is_identifier(&self) -> bool {
        let Values::Numbers(values) = &self.values else { return false };
        if values.len() < FEWEST_IDENTIFIERS || self.dates || values.iter().any(|v| v.fract() != 0.0) {
            return false;
        }
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let name = self.name.to_lowercase();
        let called = ["id", "index", "key"].iter().any(|word| name == *word || name.ends_with(&format!("_{word}")));
        let span = sorted[sorted.len() - 1] - sorted[0];
        sorted.windows(2).all(|pair| pair[0] < pair[1]) && (called || span == (sorted.len() - 1) as f64)
    }
}
