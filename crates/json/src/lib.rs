//! JSON texts that a stranger chose, measured in one pass before anything is built from them.
//!
//! A text as long as a limit allows can hold far more values than its length suggests, and `serde_json` gives one key a meaning of
//! its own that nests without end. Whoever builds values from the text of a script, a client or another server asks here first.
#![forbid(unsafe_code)]

mod measure;
mod memory;
mod unique;

pub use measure::{Measured, count_values, measure};
pub use memory::value_bytes;
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
    let json = json.as_bytes();
    let (mut depth, mut values, mut weight) = (0_usize, 1_u64, json.len() as u64);
    let (mut opened, mut last, mut at) = (0, &json[..0], 0);
    while let Some(byte) = json.get(at) {
        at += 1;
        if opened > 0 && !byte.is_ascii_whitespace() {
            weight += if matches!(byte, b']' | b'}') { 0 } else { opened };
            opened = 0;
        }
        match byte {
            b'"' => {
                last = string(&json[at..]);
                at += last.len() + 1;
            }
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

/// The rest of a string before its closing quote, or to the end of a text without one.
fn string(text: &[u8]) -> &[u8] {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &text[at..]) {
        at += found;
        if text[at] == b'"' {
            return &text[..at];
        }
        at = (at + 2).min(text.len());
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
