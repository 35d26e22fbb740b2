//! Measures a JSON text in one pass that builds nothing.

use crate::{
    Unreadable, is_reserved,
    memory::{TEXT, VALUE, array, object},
    string,
};

/// Levels whose memory is counted. Deeper JSON is not parsed.
const DEEPEST: usize = 128;
/// Digits of the longest integer that certainly fits 64 bits.
const FIT: usize = 18;

/// Properties of a JSON text. One that is not JSON has some as well, by its structural characters outside strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Keys and values. An empty array or object counts as two.
    pub values: usize,
    /// Memory of the values once they are parsed, in bytes.
    pub bytes: u64,
    /// Digits of the first integer that has no exact value in 64 bits: whoever reads it rounds it.
    pub rounded_integer: Option<usize>,
}

/// Bytes that each key and value takes, twice, while `rmcp` finds out what kind of message it belongs to.
const BUFFERED: u64 = 2 * 32;

impl Measured {
    /// Memory of the values while `rmcp` reads them as a message, in bytes: those that it makes, and those that it buffers for that.
    pub fn bytes_of_message(&self) -> u64 {
        self.bytes.saturating_add(BUFFERED.saturating_mul(self.values as u64))
    }
}

/// Measures a JSON text, before anything is built from it.
///
/// # Errors
/// There are more than `most` keys and values, which ends the pass, or a key is reserved.
pub fn measure(json: &[u8], most: usize) -> Result<Measured, Unreadable> {
    let mut found = Measured { values: 1, bytes: VALUE, rounded_integer: None };
    // Commas of the open arrays and objects.
    let (mut commas, mut depth) = ([0_u64; DEEPEST], 0_usize);
    let (mut last, mut is_empty, mut at) = (&json[..0], false, 0);
    while let Some(byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => {
                last = string(&json[at..]);
                found.bytes += last.len() as u64 + TEXT;
                at += last.len() + 1;
            }
            b':' if is_reserved(last) => return Err(Unreadable::ReservedKey),
            b':' => found.values += 1,
            b',' => {
                found.values += 1;
                if let Some(commas) = depth.checked_sub(1).and_then(|depth| commas.get_mut(depth)) {
                    *commas += 1;
                }
            }
            b'[' | b'{' => {
                found.values += 1;
                if let Some(commas) = commas.get_mut(depth) {
                    *commas = 0;
                }
                depth += 1;
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if let Some(commas) = commas.get(depth) {
                    let parts = if is_empty { 0 } else { commas + 1 };
                    found.bytes += if *byte == b']' { array(parts) } else { object(parts) };
                }
            }
            b'-' | b'0'..=b'9' => {
                let number = number(&json[at - 1..]);
                at += number.len() - 1;
                if number.len() > FIT && found.rounded_integer.is_none() {
                    found.rounded_integer = rounded(number);
                }
            }
            b' ' | b'\n' | b'\r' | b'\t' => continue,
            _ => {}
        }
        is_empty = matches!(byte, b'[' | b'{');
        if found.values > most {
            return Err(Unreadable::TooMany);
        }
    }
    Ok(found)
}

/// Counts the values and the keys of a JSON text.
///
/// # Errors
/// As those of [`measure`].
pub fn count_values(json: &[u8], most: usize) -> Result<usize, Unreadable> {
    measure(json, most).map(|found| found.values)
}

/// The number that a text begins with.
fn number(text: &[u8]) -> &[u8] {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let rest = text[1..].iter().take_while(|byte| is_part(byte)).count();
    &text[..=rest]
}

/// The digits of a number that is an integer and does not fit 64 bits.
fn rounded(number: &[u8]) -> Option<usize> {
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    if digits.len() <= FIT || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let text = std::str::from_utf8(number).ok()?;
    (text.parse::<i64>().is_err() && text.parse::<u64>().is_err()).then_some(digits.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::value_bytes;

    fn bytes(text: &str) -> u64 {
        measure(text.as_bytes(), usize::MAX).unwrap().bytes
    }

    #[test]
    fn a_text_weighs_what_its_values_do() {
        for value in [
            json!(7),
            json!(-1.5e300),
            json!("text, [with] {brackets}"),
            json!([]),
            json!({}),
            json!([1, [2, []], {}, {"a": 1}]),
            json!({"rows": vec![json!({"id": 1, "name": "a", "tags": ["x", null]}); 100]}),
            (0..1_000).map(|n| (format!("k{n}"), json!(n))).collect(),
        ] {
            let texts = [value.to_string(), serde_json::to_string_pretty(&value).unwrap()];
            for text in texts {
                assert_eq!(bytes(&text), value_bytes(&value), "{text}");
            }
        }
    }

    #[test]
    fn texts_that_are_not_json_weigh_something() {
        for text in ["", "]]}", "\"", "\"\\", "[[[", "{]", ",,", "-", "1-"] {
            assert!(bytes(text) >= VALUE, "{text}");
        }
        bytes(&"[".repeat(1_000_000));
        bytes(&format!("{}{}", "[".repeat(200), "]".repeat(300)));
    }

    #[test]
    fn keys_and_values_are_counted_and_what_stands_in_strings_is_not() {
        let count = |text: &str| count_values(text.as_bytes(), 100);
        for (text, values) in [
            ("7", 1),
            (r#"{"a":1}"#, 3),
            (r#"{"a":1,"b":[1,2,3]}"#, 8),
            ("[1,2,3]", 4),
            ("[[],{}]", 5),
            (r#""{[,:\",:{\\""#, 1),
            (r#"["a,b\"c",":"]"#, 3),
            (r#"{"a:b"#, 2),
            ("", 1),
        ] {
            assert_eq!(count(text), Ok(values), "{text}");
        }
        assert_eq!(count(&",".repeat(99)), Ok(100));
        assert_eq!(count(&",".repeat(100)), Err(Unreadable::TooMany));
    }
}
