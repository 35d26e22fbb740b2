//! Cuts text that a script, a tool or a caller chose to a stated length before anything looks at it.

use std::borrow::Cow;

/// Longest message of an error that is looked at, kept or sent on, in bytes. A longer one keeps its beginning and its end.
pub const MESSAGE_BYTES: usize = 8 * 1024;
/// Longest name or code that is kept or sent on, in bytes. A longer one keeps its beginning.
pub const NAME_BYTES: usize = 256;

/// Bytes of a message's end that stay when it is cut.
const TAIL_BYTES: usize = 2 * 1024;
/// Bytes in which the end of a word is looked for, so that no cut goes through a path.
const WORD_BYTES: usize = 512;
/// Stands for the rest of a name.
const MORE: char = '…';

/// At most [`MESSAGE_BYTES`] bytes of a message, and a note of how many were left out when it was longer.
pub fn message(text: &str) -> Cow<'_, str> {
    if text.len() <= MESSAGE_BYTES {
        return Cow::Borrowed(text);
    }
    let head = &text[..text.floor_char_boundary(MESSAGE_BYTES - TAIL_BYTES - WORD_BYTES)];
    let near = head.floor_char_boundary(head.len() - WORD_BYTES);
    let head = match head[near..].rfind(char::is_whitespace) {
        Some(at) => &head[..near + at],
        None => head,
    };
    let tail = &text[text.ceil_char_boundary(text.len() - TAIL_BYTES)..];
    let near = &tail[..tail.floor_char_boundary(WORD_BYTES)];
    // A path may have spaces in it, but no line breaks.
    let tail = match near.find('\n').or_else(|| near.find(char::is_whitespace)) {
        Some(at) => &tail[at..],
        None => tail,
    };
    let left_out = text.len() - head.len() - tail.len();
    Cow::Owned(format!("{head}… [{left_out} bytes left out] …{tail}"))
}

/// At most [`NAME_BYTES`] bytes of a name, and `…` when it was longer.
pub fn name(text: &str) -> Cow<'_, str> {
    if text.len() <= NAME_BYTES {
        return Cow::Borrowed(text);
    }
    let mut cut = text[..text.floor_char_boundary(NAME_BYTES - MORE.len_utf8())].to_owned();
    cut.push(MORE);
    Cow::Owned(cut)
}

/// Cuts a message in place, as [`message`] does.
pub(crate) fn cut_message(text: &mut String) {
    if let Cow::Owned(short) = message(text) {
        *text = short;
    }
}

/// Cuts a name in place, as [`name`] does.
pub(crate) fn cut_name(text: &mut String) {
    if let Cow::Owned(short) = name(text) {
        *text = short;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_keeps_its_beginning_and_its_end_and_says_how_much_is_missing() {
        let text = format!("first {} last", "x ".repeat(50_000));
        let cut = message(&text);
        assert!(
            cut.len() <= MESSAGE_BYTES && cut.starts_with("first x") && cut.ends_with("x  last"),
            "{cut}"
        );
        let (head, rest) = cut.split_once("… [").unwrap();
        let (left_out, tail) = rest.split_once(" bytes left out] …").unwrap();
        assert_eq!(head.len() + tail.len() + left_out.parse::<usize>().unwrap(), text.len());
        assert!(matches!(message(&"x".repeat(MESSAGE_BYTES)), Cow::Borrowed(_)));
    }

    #[test]
    fn no_cut_goes_through_a_character_or_a_word() {
        for text in
            ["é".repeat(9_000), "\u{1f600}".repeat(9_000), "a\u{301}".repeat(9_000), "x".repeat(9_000)]
        {
            assert!(message(&text).len() <= MESSAGE_BYTES);
            assert!(name(&text).len() <= NAME_BYTES && name(&text).ends_with('…'));
        }
        let path = format!("{}/home/ann/{} ", " ".repeat(5_550), "secret".repeat(20));
        let text = path.repeat(3);
        assert!(!message(&text).replace(path.trim(), "").contains("secret"), "{}", message(&text));
        assert_eq!(name("crm:users_list"), "crm:users_list");
    }
}
