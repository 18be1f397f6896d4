//! Numbers as people write them: `1234.5`, `1,234.5` or `1.234,5`. Which of the last two a file means is decided once for the
//! file, by the numbers that can mean one thing only, and said.

use std::str::FromStr;

/// How the numbers of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Notation {
    /// `1234.5`.
    #[default]
    Plain,
    /// `1,234.5`.
    ThousandsComma,
    /// `1.234,5` or `1234,5`.
    DecimalComma,
}

impl Notation {
    /// What the fields of a file say; `delimiter` decides what `1,234` alone means: where it does not separate fields, commas
    /// are decimal. None if they contradict each other.
    pub fn of<'a>(fields: impl Iterator<Item = &'a str>, delimiter: u8) -> Option<Notation> {
        let (mut thousands, mut decimal, mut either) = (false, false, false);
        for field in fields.filter(|f| f.contains(',')) {
            match (grouped(field, ',', '.'), decimal_comma(field)) {
                (Some(_), Some(_)) => either = true,
                (Some(_), None) => thousands = true,
                (None, Some(_)) => decimal = true,
                (None, None) => {}
            }
        }
        match (thousands, decimal) {
            (true, true) => None,
            (true, false) => Some(Notation::ThousandsComma),
            (false, true) => Some(Notation::DecimalComma),
            (false, false) if either && delimiter == b',' => Some(Notation::ThousandsComma),
            (false, false) if either => Some(Notation::DecimalComma),
            (false, false) => Some(Notation::Plain),
        }
    }

    /// The number in the plain form; none if it is none in this notation.
    pub fn plain(self, field: &str) -> Option<String> {
        match self {
            Notation::Plain => f64::from_str(field).is_ok().then(|| field.to_owned()),
            Notation::ThousandsComma if field.contains(',') => grouped(field, ',', '.'),
            Notation::DecimalComma if field.contains(',') => decimal_comma(field),
            _ => f64::from_str(field).is_ok().then(|| field.to_owned()),
        }
    }

    /// Whether dots separate thousands in a column: where commas are decimal, and every dot stands before three digits.
    pub fn dots_group<'a>(self, mut fields: impl Iterator<Item = &'a str> + Clone) -> bool {
        let dotted = fields.clone().any(|f| f.contains('.'));
        self == Notation::DecimalComma && dotted && fields.all(|f| !f.contains('.') || grouped(f, '.', ',').is_some())
    }
}

/// `1.234,5` or `1234,5` in plain form.
fn decimal_comma(field: &str) -> Option<String> {
    if field.contains('.') {
        return grouped(field, '.', ',');
    }
    let (whole, fraction) = field.split_once(',')?;
    let number = format!("{whole}.{fraction}");
    let good = fraction.starts_with(|c: char| c.is_ascii_digit()) && whole.ends_with(|c: char| c.is_ascii_digit());
    (good && f64::from_str(&number).is_ok()).then_some(number)
}

/// Digits in groups of three, `separator` between them, then perhaps `point` and more digits; in plain form.
pub(super) fn grouped(field: &str, separator: char, point: char) -> Option<String> {
    let (whole, fraction) = field.split_once(point).map_or((field, None), |(w, f)| (w, Some(f)));
    let unsigned = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let mut groups = unsigned.split(separator);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let first = groups.next().filter(|g| digits(g) && g.len() <= 3 && !(g.len() > 1 && g.starts_with('0')))?;
    let rest: Vec<&str> = groups.collect();
    let good = !rest.is_empty() && first != "0" && rest.iter().all(|g| digits(g) && g.len() == 3);
    let good = good && fraction.is_none_or(digits);
    let plain = whole.replace(separator, "") + &fraction.map(|f| format!(".{f}")).unwrap_or_default();
    good.then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notation(fields: &[&str], delimiter: u8) -> Option<Notation> {
        Notation::of(fields.iter().copied(), delimiter)
    }

    #[test]
    fn clear_numbers_decide_for_the_file() {
        assert_eq!(notation(&["1.5", "red"], b','), Some(Notation::Plain));
        assert_eq!(notation(&["1,5", "1,234"], b';'), Some(Notation::DecimalComma));
        assert_eq!(notation(&["1,234.5", "1,234"], b';'), Some(Notation::ThousandsComma));
        assert_eq!(notation(&["1.234,5"], b';'), Some(Notation::DecimalComma));
        assert_eq!(notation(&["1,234"], b','), Some(Notation::ThousandsComma));
        assert_eq!(notation(&["1,234"], b'\t'), Some(Notation::DecimalComma));
        assert_eq!(notation(&["1,234,567", "1,5"], b';'), None);
        assert_eq!(notation(&["Smith, John", "a,b"], b';'), Some(Notation::Plain));
    }

    #[test]
    fn numbers_become_plain() {
        use Notation::{DecimalComma, Plain, ThousandsComma};
        for (notation, field, plain) in [
            (Plain, "1e3", Some("1e3")),
            (Plain, "1,5", None),
            (ThousandsComma, "-1,234,567.25", Some("-1234567.25")),
            (ThousandsComma, "12,34", None),
            (ThousandsComma, "0,123", None),
            (ThousandsComma, "5", Some("5")),
            (DecimalComma, "-1,5", Some("-1.5")),
            (DecimalComma, "1,5e-3", Some("1.5e-3")),
            (DecimalComma, "1.234.567,5", Some("1234567.5")),
            (DecimalComma, "0,5", Some("0.5")),
            (DecimalComma, "1,2,3", None),
            (DecimalComma, ",5", None),
            (DecimalComma, "1,inf", None),
        ] {
            assert_eq!(notation.plain(field).as_deref(), plain, "{field}");
        }
        assert!(DecimalComma.dots_group(["1.234", "999"].into_iter()));
        assert!(!DecimalComma.dots_group(["1.5", "999"].into_iter()));
        assert!(!Plain.dots_group(["1.234"].into_iter()));
    }
}
