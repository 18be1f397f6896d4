//! Dates and timestamps as numbers: days since the first of January 1970, fractions for the time of day.
//! Read are `2024-03-31`, `2024/03/31`, `31.03.2024`, each with or without ` 14:05`, `T14:05:59.5`, `Z` or `+02:00` after it.
//! Dates like `03/04/2024` are not: nobody can tell the day from the month.

/// Seconds of a day.
const DAY: f64 = 86400.0;
/// Years outside of these are typing errors.
const YEARS: std::ops::RangeInclusive<i64> = 1000..=9999;

/// The day of a text; none if it is no date.
pub(super) fn parse_date(text: &str) -> Option<f64> {
    let (date, time) = match text.find(['T', ' ']) {
        Some(at) => (&text[..at], Some(text[at + 1..].trim())),
        None => (text, None),
    };
    let day = day_number(date)?;
    let seconds = time.map_or(Some(0.0), seconds)?;
    Some(day as f64 + seconds / DAY)
}

/// Days since 1970-01-01.
fn day_number(date: &str) -> Option<i64> {
    let separator = date.find(['-', '/', '.']).map(|at| &date[at..at + 1])?;
    let mut parts = date.split(separator);
    let (a, b, c) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, month, day) = match (separator, parts.next()) {
        (_, Some(_)) => return None,
        (".", None) => (c, b, a),
        _ => (a, b, c),
    };
    if year.len() != 4 || month.len() > 2 || day.len() > 2 {
        return None;
    }
    let (year, month, day) = (digits(year)?, digits(month)?, digits(day)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !YEARS.contains(&year) || !(1..=last).contains(&day) {
        return None;
    }
    // Years from March on have their leap day at the end: 153 days in five months from March, 146097 in 400 years.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    Some(365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468)
}

/// Seconds since midnight, in UTC if there is an offset.
fn seconds(text: &str) -> Option<f64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (clock, offset) = match text.rfind(['+', '-']) {
        Some(at) => {
            let sign = if text[at..].starts_with('+') { -1.0 } else { 1.0 };
            let zone = text[at + 1..].replace(':', "");
            let zone = if zone.len() == 2 { zone + "00" } else { zone };
            let minutes = (zone.len() == 4).then(|| digits(&zone)).flatten()?;
            (&text[..at], sign * 60.0 * (60 * (minutes / 100) + minutes % 100) as f64)
        }
        None => (text, 0.0),
    };
    let mut parts = clock.split(':');
    let (hours, minutes) = (digits(parts.next()?)?, digits(parts.next()?)?);
    let seconds = match parts.next() {
        Some(text) if text.starts_with(|c: char| c.is_ascii_digit()) => text.parse::<f64>().ok()?,
        Some(_) => return None,
        None => 0.0,
    };
    let good = parts.next().is_none() && hours < 24 && minutes < 60 && (0.0..61.0).contains(&seconds);
    good.then(|| offset + seconds + (60 * (60 * hours + minutes)) as f64)
}

fn digits(text: &str) -> Option<i64> {
    let good = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    good.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::parse_date;

    #[test]
    fn dates_are_days() {
        for (text, day) in [
            ("1970-01-01", 0.0),
            ("1970-01-02", 1.0),
            ("2000-02-29", 11_016.0),
            ("2000-03-01", 11_017.0),
            ("1969-12-31", -1.0),
            ("2024/12/31", 20_088.0),
            ("31.12.2024", 20_088.0),
            ("1970-01-01T12:00", 0.5),
            ("1970-01-01 06:00:00", 0.25),
            ("1970-01-01T00:00:00.000Z", 0.0),
            ("1970-01-01T02:00:00+02:00", 0.0),
            ("1970-01-01T00:00-0600", 0.25),
        ] {
            assert_eq!(parse_date(text), Some(day), "{text}");
        }
        for text in [
            "",
            "2024",
            "2024-13-01",
            "2023-02-29",
            "1900-02-29",
            "03/04/2024",
            "2024-01",
            "2024-1-1-1",
            "24-01-01",
            "1.2.3",
            "1.5",
            "2024-01-01T25:00",
            "2024-01-01Tx",
            "2024-01-01T10:00:-5",
            "2024-é1-01",
            "1-2-2024",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }
}
