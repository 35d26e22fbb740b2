//! Texts of documents, which are Markdown with HTML in it, as plain text of a bounded length.

/// Bytes of a text that are looked at.
const LOOKED_AT: usize = 4_000;
/// Bytes ahead in which the end of a link or a tag is looked for.
const AHEAD: usize = 1_000;

/// The text without marks of Markdown and HTML, on one line.
pub(super) fn plain(text: &str) -> String {
    plain_start(text, LOOKED_AT)
}

/// The first `bytes` of a text without marks.
pub(super) fn plain_start(text: &str, bytes: usize) -> String {
    let text = &text[..text.floor_char_boundary(bytes)];
    let mut out = String::with_capacity(text.len().min(400));
    let mut fenced = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        let is_rule = line.len() >= 3 && line.bytes().all(|byte| b"-=*_|: ".contains(&byte));
        if fenced || is_rule {
            continue;
        }
        let line = line.trim_start_matches(['#', '>']).trim_start();
        let line = line.strip_prefix("* ").or_else(|| line.strip_prefix("+ ")).unwrap_or(line);
        if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
        match line.contains(['<', '&', '[', '*', '`', '\\', '_', '|', '\t']) || line.contains("  ") {
            true => unmark(line, &mut out),
            false => out.push_str(line),
        }
    }
    out.truncate(out.trim_end().len());
    out.shrink_to_fit();
    out
}

/// Appends a line without its marks.
fn unmark(line: &str, out: &mut String) {
    let mut rest = line;
    let mut before = ' ';
    // Emphases with `_` that are open.
    let mut open = 0_usize;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        let ahead = &after[..after.floor_char_boundary(AHEAD)];
        let next = after.chars().next().unwrap_or(' ');
        rest = after;
        let push = |out: &mut String, text: &str| {
            for word in text.split_inclusive(char::is_whitespace) {
                let is_space = word.trim().is_empty();
                if !(is_space && (out.is_empty() || out.ends_with(' '))) {
                    out.push_str(if is_space { " " } else { word });
                }
            }
        };
        match first {
            '<' if next.is_ascii_alphabetic() || matches!(next, '/' | '!') => match ahead.find('>') {
                // `<https://example.com>`
                Some(end) if after[..end].contains("://") && !after[..end].contains(' ') => {
                    push(out, &after[..end]);
                    rest = &after[end + 1..];
                }
                Some(end) => {
                    rest = &after[end + 1..];
                    let is_inline = ["b", "i", "em", "strong", "code", "a", "span", "u", "tt"]
                        .contains(&after[..end].trim_start_matches('/').split(' ').next().unwrap_or(""));
                    if !is_inline {
                        push(out, " ");
                    }
                }
                None => out.push('<'),
            },
            '&' => {
                let entities = [
                    ("amp;", "&"),
                    ("lt;", "<"),
                    ("gt;", ">"),
                    ("quot;", "\""),
                    ("#39;", "'"),
                    ("apos;", "'"),
                    ("nbsp;", " "),
                ];
                match entities.iter().find(|(name, _)| after.starts_with(name)) {
                    Some((name, text)) => {
                        push(out, text);
                        rest = &after[name.len()..];
                    }
                    None => out.push('&'),
                }
            }
            // `![alt](url)`, `[text](url)`, `[text][name]`, `[!NOTE]`
            '!' if next == '[' && link(&after[1..]).is_some() => {
                rest = link(&after[1..]).map_or("", |(_, rest)| rest);
            }
            '[' if next == '!' => rest = ahead.find(']').map_or(after, |end| &after[end + 1..]),
            '[' => match link(after) {
                Some((text, beyond)) => {
                    rest = beyond;
                    let text = text.replace(['`', '*'], "");
                    push(out, &text);
                }
                None => out.push('['),
            },
            '`' => {}
            '*' if !(before == ' ' && next == ' ') => {}
            '_' if next == '_' || before == '_' => {}
            // Emphasis stands at the edges of words, and names have `_` in them.
            '_' if !before.is_alphanumeric() && next.is_alphanumeric() && closes(after) => open += 1,
            '_' if open > 0 && !next.is_alphanumeric() => open -= 1,
            '\\' if next.is_ascii_punctuation() => {
                out.push(next);
                rest = &after[1..];
            }
            '|' => push(out, " "),
            other if other.is_whitespace() => push(out, " "),
            other => out.push(other),
        }
        before = if first.is_whitespace() { ' ' } else { first };
    }
}

/// Returns `true` if a `_` follows that ends a word.
fn closes(after: &str) -> bool {
    let ends = |at: usize| {
        let next = after[at + 1..].chars().next();
        !after[..at].ends_with('_') && next.is_none_or(|next| !next.is_alphanumeric() && next != '_')
    };
    after.match_indices('_').take(20).any(|(at, _)| ends(at))
}

/// The text of a link whose opening bracket is gone, and what follows the link.
fn link(after: &str) -> Option<(&str, &str)> {
    let ahead = &after[..after.floor_char_boundary(AHEAD)];
    // If another bracket comes first, this one is no link.
    let end = ahead.find(['[', ']']).filter(|end| ahead[*end..].starts_with("]("))?;
    let close = ahead[end..].find(')')? + end;
    Some((&after[..end], &after[close + 1..]))
}

/// The first sentences of a plain text, at most `most` characters of them. A longer first sentence is cut between words.
pub(super) fn sentences(text: &str, most: usize) -> &str {
    let room = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    if room == text.len() {
        return text;
    }
    let mut end = 0;
    for (at, _) in text[..room].match_indices(['.', '!', '?']) {
        if is_end(text, at) {
            end = at + 1;
        }
    }
    if end > 0 {
        return &text[..end];
    }
    let cut = text[..room].rfind(' ').filter(|at| *at > room / 2).unwrap_or(room);
    text[..cut].trim_end_matches([' ', ',', ';', ':', '(', '-'])
}

/// The first sentence of a plain text.
pub(super) fn first_sentence(text: &str) -> &str {
    let end = text.match_indices(['.', '!', '?']).map(|(at, _)| at).find(|at| is_end(text, *at));
    end.map_or(text, |at| &text[..=at])
}

/// Returns `true` if the punctuation at `at` ends a sentence.
fn is_end(text: &str, at: usize) -> bool {
    let (before, after) = (&text[..at], &text[at + 1..]);
    let is_short = [" e.g", " i.e", "(e.g", "(i.e", " etc", " vs", " cf", " incl", " approx", " No"]
        .iter()
        .any(|short| before.ends_with(short));
    let mut following = after.chars();
    match (following.next(), following.next()) {
        (None, _) => true,
        (Some(' '), Some(next)) => !is_short && !next.is_lowercase(),
        _ => false,
    }
}

/// Letters and digits of a text, in lower case.
pub(super) fn letters(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

/// A description of an operation: its summary, then the first sentences of its description; at most `most` characters.
pub(super) fn about(summary: &str, description: &str, most: usize) -> String {
    let summary = plain(summary);
    let description = plain(description);
    let mut about = sentences(&summary, most).to_owned();
    if description.is_empty() {
        return about;
    }
    if about.is_empty() || letters(&description).take(letters(&about).count()).eq(letters(&about)) {
        return sentences(&description, most).to_owned();
    }
    if !about.ends_with(['.', '!', '?', ':']) {
        about.push('.');
    }
    let left = most.saturating_sub(about.chars().count() + 1);
    let more = sentences(&description, left);
    // Half a sentence says little.
    if left >= 60 || more.len() == description.len() {
        about.push(' ');
        about.push_str(more);
    }
    about
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_taken_off() {
        for (marked, text) in [
            ("Plain text", "Plain text"),
            ("**Bold** and *thin* and `code`", "Bold and thin and code"),
            ("<p>A <b>bold</b> word.</p><p>Next</p>", "A bold word. Next"),
            ("See [the docs](https://docs.example/a_b) now", "See the docs now"),
            ("a list:\n* one\n* two", "a list: one two"),
            ("# Title\n\nText", "Title Text"),
            ("snake_case_name stays, 2 * 3 too", "snake_case_name stays, 2 * 3 too"),
            ("_NOTE: only a_b and _c_ are left._", "NOTE: only a_b and c are left."),
            ("_private and __init__", "_private and init"),
            ("a &lt; b &amp;&amp; c", "a < b && c"),
            ("> [!NOTE]\n> Only for admins.", "Only for admins."),
            ("x < y and <https://a.example/b>", "x < y and https://a.example/b"),
            ("```\ncode\n```\nafter", "after"),
            ("a  lot\tof   space", "a lot of space"),
            ("![logo](x.png)Hi", "Hi"),
            ("|a|b|\n|---|---|\n|c|d|", "a b c d"),
            ("array[0] of [1, 2]", "array[0] of [1, 2]"),
            ("[[[a [b](c) ](d)", "[[[a b ](d)"),
        ] {
            assert_eq!(plain(marked).split_whitespace().collect::<Vec<_>>().join(" "), text, "{marked}");
        }
    }

    #[test]
    fn a_description_begins_with_the_summary_and_goes_on_with_sentences() {
        assert_eq!(about("List users", "", 300), "List users");
        assert_eq!(about("", "Lists all users.", 300), "Lists all users.");
        assert_eq!(about("List users", "List users.", 300), "List users.");
        assert_eq!(about("List users", "Newest first.", 300), "List users. Newest first.");
        let long =
            "The first sentence, e.g. this one. ".to_owned() + &"A second one follows here. ".repeat(20);
        let short = about("List users", &long, 90);
        assert_eq!(short, "List users. The first sentence, e.g. this one. A second one follows here.");
        assert!(about("", &"word ".repeat(100), 50).len() <= 50);
        assert_eq!(first_sentence("One, e.g. two. Three."), "One, e.g. two.");
    }
}
