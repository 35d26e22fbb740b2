//! Names of object members: those that read like names of fields.

/// Longest name that is kept, in bytes.
pub const LONGEST_NAME: usize = 40;
/// Digits in a name that is kept, at most. Ids and dates have more.
const MOST_DIGITS: usize = 3;

/// Returns `true` for a short identifier with few digits. Everything else is data: ids, dates, addresses, paths, sentences.
pub(crate) fn is_field_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let Some(first) = bytes.first() else { return false };
    // A script that builds objects from such names must not change what objects are.
    if matches!(name, "__proto__" | "constructor" | "prototype") {
        return false;
    }
    bytes.len() <= LONGEST_NAME
        && (first.is_ascii_alphabetic() || matches!(first, b'_' | b'$'))
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-'))
        && bytes.iter().filter(|byte| byte.is_ascii_digit()).count() <= MOST_DIGITS
        && !is_hex_id(bytes)
}

/// Returns `true` for eight or more hexadecimal digits and hyphens of which one is a digit, such as the beginning of a hash.
fn is_hex_id(bytes: &[u8]) -> bool {
    bytes.len() >= 8
        && bytes.iter().any(u8::is_ascii_digit)
        && bytes.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_names_of_fields_and_ids_dates_and_addresses_are_data() {
        for name in
            ["id", "created_at", "htmlUrl", "_id", "$type", "content-type", "x1", "sha256", "address2"]
        {
            assert!(is_field_name(name), "{name}");
        }
        for data in [
            "",
            "42",
            "2026-11-22",
            "ada@example.com",
            "Ada Lovelace",
            "a/b",
            "users.0",
            "user_10042",
            "é",
            "0f3a9c1d",
            "abc1-dead",
            "__proto__",
            "constructor",
            &"a".repeat(LONGEST_NAME + 1),
        ] {
            assert!(!is_field_name(data), "{data}");
        }
    }
}
