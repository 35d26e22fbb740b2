//! JSON texts that a stranger chose, measured in one pass before anything is built from them.
//!
//! A text as long as a limit allows can hold far more values than its length suggests, and `serde_json` gives one key a meaning of
//! its own that nests without end. Whoever builds values from the text of a script, a client or another server asks here first.
#![forbid(unsafe_code)]

mod unique;

use serde::{Deserialize, de::Error as _};
pub use unique::read_unique;

/// The key to which `serde_json` gives a meaning of its own: the text beside it is read as JSON in place of the object, as deep
/// again as a whole text may be.
const RESERVED_KEY: &str = "$serde_json::private::RawValue";
/// Most bytes of the reserved key in a JSON text, each of its characters escaped.
const LONGEST_SPELLING: usize = 6 * RESERVED_KEY.len();

/// Why nothing is built from a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It has more keys and values than the limit.
    #[error("the JSON has too many keys and values")]
    TooMany,
    /// It is nested deeper than [`MAX_DEPTH`].
    #[error("the JSON is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// An object has a key with a private meaning of `serde_json`.
    #[error("the JSON has an object with the key `{RESERVED_KEY}`, which is reserved: choose another name")]
    ReservedKey,
}

/// Counts the values and the keys of a JSON text in one pass, before anything is built from it. An empty array or object counts as
/// two. A text that is not JSON has a count as well: its structural characters outside strings.
///
/// # Errors
/// There are more than `most`, which ends the pass, or a key is reserved.
pub fn count_values(json: &[u8], most: usize) -> Result<usize, Unreadable> {
    let (mut count, mut bytes, mut last) = (1usize, json.iter(), &json[..0]);
    while let Some(byte) = bytes.next() {
        match byte {
            b':' if is_reserved(last) => return Err(Unreadable::ReservedKey),
            b'{' | b'[' | b',' | b':' => count += 1,
            b'"' => last = string(&mut bytes),
            _ => continue,
        }
        if count > most {
            return Err(Unreadable::TooMany);
        }
    }
    Ok(count)
}

/// Returns the number of digits of the first integer in a JSON text that has no exact value in 64 bits: whoever reads it rounds it.
pub fn rounded_integer(json: &[u8]) -> Option<usize> {
    /// Digits of the longest integer that certainly fits.
    const FIT: usize = 18;
    let mut rest = json.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => drop(string(&mut rest)),
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                let length = rest.as_slice().iter().take_while(|byte| is_part(byte)).count();
                let start = json.len() - rest.len() - 1;
                let number = &json[start..=start + length];
                rest = json[start + 1 + length..].iter();
                let digits = number.strip_prefix(b"-").unwrap_or(number);
                if digits.len() > FIT && digits.iter().all(u8::is_ascii_digit) {
                    let text = std::str::from_utf8(number).unwrap_or_default();
                    if text.parse::<i64>().is_err() && text.parse::<u64>().is_err() {
                        return Some(digits.len());
                    }
                }
            }
            _ => {}
        }
    }
    None
}

/// Reads a JSON text that a stranger chose: a script, an upstream or another server.
///
/// # Errors
/// The text is not a `T`, or a key is reserved.
pub fn read_json<'t, T: Deserialize<'t>>(text: &'t (impl AsRef<[u8]> + ?Sized)) -> serde_json::Result<T> {
    count_values(text.as_ref(), usize::MAX).map_err(serde_json::Error::custom)?;
    serde_json::from_slice(text.as_ref())
}

/// Deepest nesting of JSON text that passes between a run and its host.
pub const MAX_DEPTH: usize = 100;

/// Memory of one JSON value once it is read, in bytes, its text apart.
const VALUE_BYTES: u64 = 80;
/// Memory of an object and an array beside that of their values, unless they are empty: they have room for several.
const OBJECT_BYTES: u64 = 400;
const ARRAY_BYTES: u64 = 240;

/// Memory that a JSON text takes together with the values it is read into, in bytes, found in one pass.
///
/// # Errors
/// The text is nested deeper than [`MAX_DEPTH`], or a key is reserved.
pub fn weight(json: &str) -> Result<u64, Unreadable> {
    let (mut depth, mut values, mut weight) = (0_usize, 1_u64, json.len() as u64);
    let (mut opened, mut last, mut bytes) = (0, &json.as_bytes()[..0], json.as_bytes().iter());
    while let Some(byte) = bytes.next() {
        if opened > 0 && !byte.is_ascii_whitespace() {
            weight += if matches!(byte, b']' | b'}') { 0 } else { opened };
            opened = 0;
        }
        match byte {
            b'"' => last = string(&mut bytes),
            b':' if is_reserved(last) => return Err(Unreadable::ReservedKey),
            b'[' | b'{' => {
                depth += 1;
                values += 1;
                opened = if *byte == b'{' { OBJECT_BYTES } else { ARRAY_BYTES };
                if depth > MAX_DEPTH {
                    return Err(Unreadable::TooDeep);
                }
            }
            b',' => values += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(weight + values * VALUE_BYTES)
}

/// Takes the rest of a string with its closing quote, and returns what stands in it.
fn string<'j>(bytes: &mut std::slice::Iter<'j, u8>) -> &'j [u8] {
    let text = bytes.as_slice();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return &text[..text.len() - bytes.as_slice().len() - 1],
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
    text
}

/// Returns `true` if a string of a JSON text is the reserved key, whatever the spelling.
fn is_reserved(string: &[u8]) -> bool {
    if string == RESERVED_KEY.as_bytes() {
        return true;
    }
    if !(RESERVED_KEY.len()..=LONGEST_SPELLING).contains(&string.len()) || !string.contains(&b'\\') {
        return false;
    }
    let quoted = [b"\"", string, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).is_ok_and(|text| text == RESERVED_KEY)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

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

    #[test]
    fn the_reserved_key_is_refused_in_every_spelling_and_accepted_where_it_is_no_key() {
        let reserved = [
            r#"{"$serde_json::private::RawValue":"1"}"#,
            r#"[{"a":{"$serde_json::private::RawValue" : "1"}}]"#,
            r#"{"\u0024serde_json::private::\u0052awValue":"1"}"#,
            r#"{"a":1,"$serde_json::private::RawValue":2}"#,
        ];
        for text in reserved {
            assert_eq!(count_values(text.as_bytes(), 100), Err(Unreadable::ReservedKey), "{text}");
            assert_eq!(weight(text), Err(Unreadable::ReservedKey), "{text}");
            let refused = read_json::<Value>(text).unwrap_err().to_string();
            assert!(refused.contains("choose another name"), "{refused}");
        }
        for text in [
            r#"["$serde_json::private::RawValue"]"#,
            r#"{"a":"$serde_json::private::RawValue","b":1}"#,
            r#"{"$serde_json::private::RawValue2":"1"}"#,
            r#"{"text":"{\"$serde_json::private::RawValue\":\"1\"}"}"#,
        ] {
            assert_eq!(read_json::<Value>(text).unwrap().to_string(), text);
            assert!(weight(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn many_small_values_weigh_more_than_one_long_text() {
        let text = format!("\"{}\"", "x,[{".repeat(1_000));
        assert_eq!(weight(&text), Ok(text.len() as u64 + VALUE_BYTES));
        let list = format!("[{}0]", "[],".repeat(1_000));
        assert!(weight(&list).unwrap() > 2_000 * VALUE_BYTES);
        let beyond_empty = |text: &str, empty: &str| weight(text).unwrap() - weight(empty).unwrap();
        assert_eq!(beyond_empty("{ }", "{}"), 1);
        assert_eq!(beyond_empty("{ \"\":1}", "{}"), OBJECT_BYTES + 5);
        assert_eq!(beyond_empty("[1]", "[]"), ARRAY_BYTES + 1);
    }

    #[test]
    fn brackets_inside_strings_are_not_nesting() {
        assert!(weight(&format!("\"{}\"", "[".repeat(500))).is_ok());
        assert!(weight(&"[".repeat(100)).is_ok());
        assert_eq!(weight(&"[".repeat(101)), Err(Unreadable::TooDeep));
    }
}
