//! Parts of ECMAScript's regular expressions that the syntax of the `regex` crate lacks or reads otherwise, in that syntax.

use std::{borrow::Cow, iter::Peekable, str::CharIndices};

/// Characters that `.` does not match (ECMA-262 §12.3).
const NOT_DOT: &str = "[^\n\r\u{2028}\u{2029}]";
const ANY: &str = "[\0-\u{10ffff}]";
const NONE: &str = "[^\0-\u{10ffff}]";

/// Rewrites `.`, `[^]`, `[]`, `\0`, `[\b]` and surrogate pairs, as characters and not as escapes, of which each takes another pass later.
pub(super) fn rewritten(expression: &str) -> Cow<'_, str> {
    if !expression.contains(['.', '[', '\\']) {
        return Cow::Borrowed(expression);
    }
    let mut written = String::with_capacity(expression.len() + 16);
    // Modifiers change what `.` matches, and whether spaces have a meaning, from there on.
    let (mut in_class, mut has_dots) = (false, true);
    let mut chars = expression.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        let rest = &expression[at..];
        match char {
            '\\' => escape(rest, in_class, &mut chars, &mut written),
            '[' if !in_class => {
                let whole = [("[^]", ANY), ("[]", NONE)].into_iter().find(|(from, _)| rest.starts_with(from));
                match whole {
                    Some((from, to)) => {
                        written.push_str(to);
                        skip(&mut chars, from.len() - 1);
                    }
                    None => {
                        in_class = true;
                        written.push('[');
                    }
                }
            }
            ']' => {
                in_class = false;
                written.push(']');
            }
            '(' if !in_class && changes_dots(rest) => {
                has_dots = false;
                written.push('(');
            }
            '.' if !in_class && has_dots => written.push_str(NOT_DOT),
            char => written.push(char),
        }
    }
    Cow::Owned(written)
}

/// Returns `true` for a group that begins with the modifier `s` or `x`.
fn changes_dots(group: &str) -> bool {
    let flags = group.strip_prefix("(?").unwrap_or_default();
    flags
        .chars()
        .take_while(|char| char.is_ascii_alphabetic() || *char == '-')
        .any(|flag| matches!(flag, 's' | 'x'))
}

/// Writes the escape at the beginning of `rest`.
fn escape(rest: &str, in_class: bool, chars: &mut Peekable<CharIndices<'_>>, written: &mut String) {
    let digit_follows = rest.as_bytes().get(2).is_some_and(u8::is_ascii_digit);
    let (char, length) = match rest.as_bytes().get(1) {
        Some(b'0') if !digit_follows => (Some('\0'), 2),
        Some(b'b') if in_class => (Some('\u{8}'), 2),
        Some(b'u') => (pair(rest), 12),
        _ => (None, 2),
    };
    if let Some(char) = char {
        written.push(char);
        skip(chars, length - 1);
        return;
    }
    written.push('\\');
    written.extend(chars.next().map(|(_, escaped)| escaped));
}

/// The character whose surrogates are written as `\uD83D\uDE00`.
fn pair(text: &str) -> Option<char> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
    };
    char::decode_utf16([unit(0)?, unit(6)?]).next()?.ok().filter(|char| u32::from(*char) > 0xffff)
}

fn skip(chars: &mut Peekable<CharIndices<'_>>, number: usize) {
    for _ in 0..number {
        chars.next();
    }
}
