//! Rejects invisible characters.

use super::violation::Violation;
use crate::outcome::IllegalKind;

/// Refuses control, invisible and direction-changing characters anywhere, string and comment included.
///
/// A zero-width joiner between two emoji is allowed. A replacement character after a backslash is not: in texts with half a surrogate pair
/// the parser marks the halves with it, takes this one for such a mark, and what follows would be printed as it is, quotes included.
pub(super) fn check(text: &str) -> Result<(), Violation> {
    // Cheap for the usual text: only ASCII, no control characters.
    if !text.bytes().any(|byte| (byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r')) || byte >= 0x7f) {
        return Ok(());
    }
    let mut before = '\0';
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let joins = c == '\u{200d}'
            && before >= '\u{2190}'
            && chars.peek().is_some_and(|&(_, next)| next >= '\u{2190}');
        if c == '\u{fffd}' && before == '\\' {
            let message =
                "a backslash before U+FFFD stands for nothing; remove it, or write \\ufffd in a string";
            return Err(Violation::new(
                IllegalKind::IllegalCharacter,
                u32::try_from(at).unwrap_or(0),
                message,
            ));
        }
        if is_hidden(c) && !joins {
            let message = format!(
                "the character U+{:04X} is invisible; remove it, or write it as \\u{{{:x}}} in a string",
                c as u32, c as u32
            );
            return Err(Violation::new(
                IllegalKind::IllegalCharacter,
                u32::try_from(at).unwrap_or(0),
                message,
            ));
        }
        before = c;
    }
    Ok(())
}

fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}
