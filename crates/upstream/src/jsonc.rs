//! JSON with comments and trailing commas, as the files of clients and editors are written.

/// The text as strict JSON of the same length: comments, a byte order mark, and commas before a closing bracket become spaces, so that every
/// value stays at its place and on its line. Text that is no JSON stays none.
pub fn strict_json(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    if text.starts_with('\u{feff}') {
        blank(&mut bytes, 0, 3);
        at = 3;
    }
    // The last two bytes that mean something, with their places.
    let (mut last, mut one_before) = ((0, 0), (0, 0));
    while let Some(&byte) = bytes.get(at) {
        let end = match (byte, bytes.get(at + 1)) {
            (b'/', Some(b'/')) => {
                let end = text[at..].find(['\n', '\r']).map_or(text.len(), |length| at + length);
                blank(&mut bytes, at, end);
                at = end;
                continue;
            }
            (b'/', Some(b'*')) => {
                let Some(length) = text[at + 2..].find("*/") else { break };
                let end = at + 2 + length + 2;
                blank(&mut bytes, at, end);
                at = end;
                continue;
            }
            (b'"', _) => end_of_string(&bytes, at),
            _ => at + 1,
        };
        if !byte.is_ascii_whitespace() {
            let is_trailing = last.0 == b',' && !matches!(one_before.0, 0 | b',' | b'[' | b'{' | b':');
            if matches!(byte, b']' | b'}') && is_trailing {
                blank(&mut bytes, last.1, last.1 + 1);
            }
            (one_before, last) = (last, (byte, at));
        }
        at = end;
    }
    // Only whole characters were replaced, each by as many spaces as it has bytes.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// The place after the string that begins at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn blank(bytes: &mut [u8], start: usize, end: usize) {
    for byte in &mut bytes[start..end] {
        if !matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn comments_and_trailing_commas_become_spaces_and_everything_else_keeps_its_place() {
        let text =
            "\u{feff}// é\n{ /* a\n, */ \"a\": [1, 2, /* x */ ], // b\r\n  \"//\": \"/* \\\" */,]\", }\n";
        let strict = strict_json(text);
        let value: Value = serde_json::from_str(&strict).unwrap();
        assert_eq!(value, json!({"a": [1, 2], "//": "/* \" */,]"}));
        assert_eq!(strict.len(), text.len());
        assert_eq!(strict.find("\"a\""), text.find("\"a\""));
        assert_eq!(strict.lines().count(), text.lines().count());
    }

    #[test]
    fn strict_json_stays_as_it_is_and_what_is_no_json_stays_none() {
        for text in ["{\"a\": \"b // c\"}", "[]", "", "{", "\"open", "\"\\"] {
            assert_eq!(strict_json(text), text);
        }
        for text in ["[,]", "{,}", "[1,,]", "{\"a\":,}", "[1 /* open", "{\"a\": 1 \"b\": 2}", "/", "[1]/"] {
            assert!(serde_json::from_str::<Value>(&strict_json(text)).is_err(), "{text}");
        }
    }
}
