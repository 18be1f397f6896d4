//! Arrays as base64 of little-endian numbers, and text that is safe inside a page.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};

/// Numbers that the page reads back as a typed array: `{"t": "f64", "b": "…"}`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Packed {
    kind: &'static str,
    bytes: Vec<u8>,
}

impl Packed {
    /// Exact.
    pub fn f64(values: impl IntoIterator<Item = f64>) -> Packed {
        Packed { kind: "f64", bytes: values.into_iter().flat_map(f64::to_le_bytes).collect() }
    }

    /// Counts and indices.
    pub fn u32(values: impl IntoIterator<Item = u32>) -> Packed {
        Packed { kind: "u32", bytes: values.into_iter().flat_map(u32::to_le_bytes).collect() }
    }

    /// Shares from 0 to 1 in 255 steps.
    pub fn shares(values: impl IntoIterator<Item = f64>) -> Packed {
        Packed { kind: "u8", bytes: values.into_iter().map(|v| (v.clamp(0.0, 1.0) * 255.0).round() as u8).collect() }
    }

    /// Values between `low` and `high` in 65535 steps: far finer than a plot shows.
    pub fn steps(values: impl IntoIterator<Item = f64>, (low, high): (f64, f64)) -> Packed {
        let width = if high > low { high - low } else { 1.0 };
        let step = |v: f64| ((v - low) / width * 65535.0).round().clamp(0.0, 65535.0) as u16;
        Packed { kind: "u16", bytes: values.into_iter().flat_map(|v| step(v).to_le_bytes()).collect() }
    }
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut out = serializer.serialize_struct("Packed", 2)?;
        out.serialize_field("t", self.kind)?;
        out.serialize_field("b", &STANDARD.encode(&self.bytes))?;
        out.end()
    }
}

/// JSON that cannot end the script element it stands in, nor a line of JavaScript.
pub(super) fn script_safe(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            _ => out.push(c),
        }
    }
    out
}

/// Text inside an element or a quoted attribute.
pub(in crate::report) fn html_safe(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_little_endian_base64() {
        let json = |p: Packed| serde_json::to_value(p).unwrap();
        assert_eq!(json(Packed::u32([1, 258])), serde_json::json!({"t": "u32", "b": "AQAAAAIBAAA="}));
        assert_eq!(json(Packed::f64([1.0]))["b"], "AAAAAAAA8D8=");
        assert_eq!(json(Packed::shares([0.0, 1.0, 7.0])), serde_json::json!({"t": "u8", "b": "AP//"}));
        assert_eq!(json(Packed::steps([-1.0, 1.0], (-1.0, 1.0)))["b"], "AAD//w==");
    }

    #[test]
    fn hostile_json_stays_json() {
        let hostile = "</script><script>alert(1)</script><!--\u{2028}&";
        let safe = script_safe(&serde_json::to_string(hostile).unwrap());
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), hostile);
    }

    #[test]
    fn hostile_text_stays_text() {
        assert_eq!(html_safe("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
    }
}
