//! Text of others as a terminal can show it: no control characters, and nothing that changes the order of what is read.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
};

use serde::Serializer;

/// Returns one line of at most `most` characters, with control characters escaped.
pub fn printable(text: &str, most: usize) -> String {
    let (end, is_cut) = match text.char_indices().nth(most) {
        Some((end, _)) => (end, true),
        None => (text.len(), false),
    };
    let mut line = String::with_capacity(end);
    // A `String` takes everything.
    let _ = write_printable(&text[..end], &mut line);
    if is_cut {
        line.push('…');
    }
    line
}

/// Returns the text with control characters but line breaks and tabs escaped.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| matches!(c, '\n' | '\t') || !must_be_escaped(c);
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut lines = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // A `String` takes everything.
        let _ = if is_plain(c) { lines.write_char(c) } else { push(&mut lines, c) };
    }
    Cow::Owned(lines)
}

/// Writes the text as one line, with control characters escaped.
///
/// # Errors
/// Those of `to`.
pub fn write_printable(text: &str, to: &mut dyn fmt::Write) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(must_be_escaped) {
        let (plain, escaped) = rest.split_at(at);
        to.write_str(plain)?;
        let mut escaped = escaped.chars();
        escaped.next().map_or(Ok(()), |c| push(to, c))?;
        rest = escaped.as_str();
    }
    to.write_str(rest)
}

/// Serializes a text as [`printable`] returns it.
pub(crate) fn serialize<S: Serializer, const MOST: usize>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&printable(text, MOST))
}

fn push(line: &mut dyn fmt::Write, c: char) -> fmt::Result {
    match c {
        '\n' => line.write_str("\\n"),
        '\t' => line.write_str("\\t"),
        '\r' => line.write_str("\\r"),
        c => write!(line, "{}", c.escape_unicode()),
    }
}

/// Returns `true` for control characters, and for those that direct the order of text (Unicode Technical Report 36 §2.10).
pub fn must_be_escaped(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_letters_stay() {
        assert_eq!(printable("\u{1b}[2Jé\r\n\t\u{9b}\u{202e}日", 80), r"\u{1b}[2Jé\r\n\t\u{9b}\u{202e}日");
        assert_eq!(printable("日本語", 2), "日本…");
        assert_eq!(printable_lines("a\n\tb\u{7}\r"), "a\n\tb\\u{7}\\r");
        assert!(matches!(printable_lines("a\n\té"), Cow::Borrowed(_)));
    }
}
