//! Numbers whose digits a JavaScript number loses: integers beyond 2^53, and decimals such as `1.10`.

use std::borrow::Cow;

use serde_json::{Number, Value};

/// The greatest integer up to which every integer is a JavaScript number of its own.
const SAFE: u64 = (1 << 53) - 1;
/// Longest text that is looked at as a number.
const LONGEST: usize = 400;

/// Returns `true` if `number` is an integer beyond 2^53.
pub(crate) fn is_long(number: &Number) -> bool {
    match number.as_u64() {
        Some(positive) => positive > SAFE,
        None => number.as_i64().is_some_and(|negative| negative.unsigned_abs() > SAFE),
    }
}

/// Turns integers beyond 2^53 in `value` into text.
pub fn spell_long_integers(value: &mut Value) {
    match value {
        Value::Number(number) if is_long(number) => *value = Value::String(number.to_string()),
        Value::Array(items) => items.iter_mut().for_each(spell_long_integers),
        Value::Object(members) => members.values_mut().for_each(spell_long_integers),
        _ => {}
    }
}

/// Returns `true` if `text` is a JSON number that JavaScript would write with other digits. `5.0`, as Python writes a whole
/// number, and a short number with an exponent are not among them.
pub fn loses_digits(text: &str) -> bool {
    if text.len() > LONGEST
        || !text.bytes().next().is_some_and(|first| first.is_ascii_digit() || first == b'-')
    {
        return false;
    }
    let Some(literal) = Literal::read(text) else { return false };
    let Ok(value) = text.parse::<f64>() else { return true };
    if !value.is_finite() {
        return true;
    }
    if literal.exponent.is_none() && matches!(literal.fraction, None | Some("0")) {
        return literal.integer.len() > 16
            || literal.integer.parse::<u64>().is_ok_and(|integer| integer > SAFE);
    }
    let padded = literal.exponent.is_none() && literal.fraction.is_some_and(|digits| digits.ends_with('0'));
    padded || significant(text) != significant(&format!("{value:e}"))
}

/// The digits of a number without zeros at either end and without sign, point and exponent.
fn significant(number: &str) -> String {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

/// The parts of a JSON number.
struct Literal<'t> {
    integer: &'t str,
    fraction: Option<&'t str>,
    exponent: Option<&'t str>,
}

impl<'t> Literal<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (unsigned, None),
        };
        let (integer, fraction) = match mantissa.split_once('.') {
            Some((integer, fraction)) => (integer, Some(fraction)),
            None => (mantissa, None),
        };
        let fits = digits(integer)
            && (integer.len() == 1 || !integer.starts_with('0'))
            && fraction.is_none_or(digits)
            && exponent.is_none_or(|text| digits(text.strip_prefix(['+', '-']).unwrap_or(text)));
        fits.then_some(Self { integer, fraction, exponent })
    }
}

/// The numbers whose digits are kept as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digits {
    /// Every number that loses one.
    All,
    /// Integers that do, and numbers beyond the range of JavaScript. Decimals are rounded as JavaScript rounds them.
    OfIntegers,
}

impl Digits {
    /// Returns `true` if the JSON number `text` has to be text to keep its digits. One that is too long to be looked at has to.
    pub fn are_lost(self, text: &str) -> bool {
        let is_decimal = || text.contains(['.', 'e', 'E']) && text.parse().is_ok_and(f64::is_finite);
        (text.len() > LONGEST || loses_digits(text)) && (self == Self::All || !is_decimal())
    }
}

/// The valid JSON text `json` with quotes around each number that has to be text.
pub fn keep_digits(json: &str, digits: Digits) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let (mut kept, mut copied, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_text(bytes, at),
            b'-' | b'0'..=b'9' => {
                let length = bytes[at..].iter().position(|byte| !is_of_number(*byte));
                let end = length.map_or(bytes.len(), |length| at + length);
                if digits.are_lost(&json[at..end]) {
                    kept.push_str(&json[copied..at]);
                    kept.push('"');
                    kept.push_str(&json[at..end]);
                    kept.push('"');
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    kept.push_str(&json[copied..]);
    Cow::Owned(kept)
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// The place after the text that begins at `at`.
fn end_of_text(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_integers_and_padded_decimals_lose_digits_and_ordinary_numbers_do_not() {
        for lost in [
            "9007199254740992",
            "-9007199254740993",
            "12345678901234567890123",
            "1.10",
            "0.50",
            "5.00",
            "1e400",
            "0.1234567890123456789",
            "123456789012345678.5",
            "1.2345678901234567891e5",
        ] {
            assert!(loses_digits(lost), "{lost}");
        }
        for kept in [
            "0",
            "-1",
            "9007199254740991",
            "1.1",
            "5.0",
            "-0.5",
            "1e5",
            "1.5E+3",
            "0.1",
            "3.141592653589793",
            "1e-7",
            "100",
            "",
            "-",
            "1.",
            ".5",
            "007",
            "1.10.0",
            "2026-11-22",
            "1.10 EUR",
            "abc",
            "100.25",
            "0.001",
        ] {
            assert!(!loses_digits(kept), "{kept}");
        }
    }

    #[test]
    fn numbers_are_quoted_outside_of_text_only() {
        let json = r#"{"id": 12345678901234567890, "1.10": "9.50 \" 1.10", "price": [1.10, 2.5, -0.10]}"#;
        let kept = keep_digits(json, Digits::All);
        let value: Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(
            value,
            json!({"id": "12345678901234567890", "1.10": "9.50 \" 1.10", "price": ["1.10", 2.5, "-0.10"]})
        );
        assert!(matches!(keep_digits(r#"{"a": [1, 2.5, 5.0, "1.10"]}"#, Digits::All), Cow::Borrowed(_)));
        for length in [LONGEST, LONGEST + 1, 1_000] {
            let number = "9".repeat(length);
            assert_eq!(keep_digits(&number, Digits::OfIntegers), format!("\"{number}\""));
        }
    }

    #[test]
    fn integers_of_a_value_are_spelled_beyond_two_to_the_53() {
        let mut value = json!({"a": [u64::MAX, i64::MIN, 7, 1.5], "b": SAFE});
        spell_long_integers(&mut value);
        assert_eq!(value, json!({"a": ["18446744073709551615", "-9223372036854775808", 7, 1.5], "b": SAFE}));
    }

    #[test]
    fn of_integers_alone_decimals_are_rounded_unless_they_are_out_of_range() {
        let json = r#"[9007199254740993, 1.10, 0.12345678901234567890, 123456789012345678901234567890, 1e400, -1E-7]"#;
        assert_eq!(
            keep_digits(json, Digits::OfIntegers),
            r#"["9007199254740993", 1.10, 0.12345678901234567890, "123456789012345678901234567890", "1e400", -1E-7]"#
        );
    }
}
