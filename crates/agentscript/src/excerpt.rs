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
/// Times that much is looked at for the parts of one path.
const WINDOWS: usize = 3;
/// Separators between the parts of a path, also encoded.
const SEPARATORS: [char; 3] = ['/', '\\', '%'];
/// Stands for the rest of a name.
const MORE: char = '…';

/// At most [`MESSAGE_BYTES`] bytes of a message, and a note of how many were left out when it was longer.
pub fn message(text: &str) -> Cow<'_, str> {
    if text.len() <= MESSAGE_BYTES {
        return Cow::Borrowed(text);
    }
    let head = whole_end(&text[..text.floor_char_boundary(MESSAGE_BYTES - TAIL_BYTES - WORD_BYTES)]);
    let tail = whole_start(&text[text.ceil_char_boundary(text.len() - TAIL_BYTES)..]);
    let left_out = text.len() - head.len() - tail.len();
    Cow::Owned(format!("{head}… [{left_out} bytes left out] …{tail}"))
}

/// Leaves out the last word, and a path, spaces included, that may go on behind the end.
fn whole_end(text: &str) -> &str {
    let mut end = text.len();
    for _ in 0..WINDOWS {
        let near = text.floor_char_boundary(end.saturating_sub(WORD_BYTES));
        // A path may have spaces in it, but no line breaks.
        let line = text[near..end].rfind('\n').map_or(near, |at| near + at);
        let Some(at) = text[line..end].find(SEPARATORS) else { break };
        end = text[..line + at].rfind(char::is_whitespace).unwrap_or(0);
    }
    if end < text.len() {
        return &text[..end];
    }
    let near = text.floor_char_boundary(end.saturating_sub(WORD_BYTES));
    text[near..].rfind(char::is_whitespace).map_or(text, |at| &text[..near + at])
}

/// Leaves out the first word, and a path, spaces included, that may have begun before the start.
fn whole_start(text: &str) -> &str {
    let mut start = 0;
    for _ in 0..WINDOWS {
        let near = &text[start..text.floor_char_boundary(start + WORD_BYTES)];
        let line = near.find('\n').map_or(near, |at| &near[..at]);
        let Some(at) = line.rfind(SEPARATORS).map(|at| start + at) else { break };
        start = text[at..].find(char::is_whitespace).map_or(text.len(), |len| at + len);
    }
    if start > 0 {
        return &text[start..];
    }
    text[..text.floor_char_boundary(WORD_BYTES)].find(char::is_whitespace).map_or(text, |at| &text[at..])
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

    #[test]
    fn no_cut_leaves_part_of_a_path() {
        let long = format!("/home/ann/{}", "secret/".repeat(400));
        for path in [
            r"C:\Program Files\secret plans of ann\secret notes.txt",
            "'/home/ann/secret plans/secret x'",
            &long,
        ] {
            for before in 5_000..5_700 {
                let text = format!("{} {path} {}", "x ".repeat(before / 2), "y ".repeat(6_000));
                assert!(!message(&text).replace(path, "").contains("secret"), "{path} after {before}");
            }
            for after in 1_400..2_100 {
                let text = format!("{} {path} {}", "x ".repeat(6_000), "y ".repeat(after / 2));
                assert!(!message(&text).replace(path, "").contains("secret"), "{path} before {after}");
            }
        }
    }
}
