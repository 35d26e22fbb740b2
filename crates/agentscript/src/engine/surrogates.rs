//! Halves of surrogate pairs in JSON text.

use std::borrow::Cow;

/// JSON text with U+FFFD instead of every half of a surrogate pair. `JSON.stringify` writes halves, and nothing else, as `\\ud…`: a text that
/// most readers of JSON refuse.
pub(super) fn without_halves(json: Cow<'_, str>) -> Cow<'_, str> {
    if !json.contains("\\ud") {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = &*json;
    while let Some(at) = rest.find('\\') {
        let half = rest[at..].starts_with("\\ud")
            && matches!(rest.as_bytes().get(at + 3), Some(b'8'..=b'9' | b'a'..=b'f'));
        // Any other escape: its backslash and what it escapes, which may be a backslash.
        let len = if half { 6 } else { 2 };
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        out.push_str(if half { "\u{fffd}" } else { escape.get(..len).unwrap_or(escape) });
        rest = escape.get(len..).unwrap_or_default();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_surrogate_pairs_become_replacement_characters() {
        for (json, expected) in [
            (r#"{"a":"\ud83dx","\udead":"\ud800"}"#, "{\"a\":\"\u{fffd}x\",\"\u{fffd}\":\"\u{fffd}\"}"),
            (r#""\\ud83d \" \n \u0001""#, r#""\\ud83d \" \n \u0001""#),
            (r#""\\\ud83d""#, "\"\\\\\u{fffd}\""),
            ("\"\u{1f600}\"", "\"\u{1f600}\""),
        ] {
            assert_eq!(without_halves(json.into()), expected);
        }
    }
}
