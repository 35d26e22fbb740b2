//! Descriptions cut to what a reader needs first.

use serde_json::Value;

/// Bytes of a text that are looked at, for each character asked for.
const LOOKED_AT: usize = 8;

/// Returns `true` for a control character, and for one that changes or hides what stands around it: marks of direction, invisible ones and
/// tags.
pub(crate) fn misleads(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Removes characters that mislead from the descriptions and titles in `value`, such as a schema. Line ends and tabs stay.
pub(crate) fn clean_descriptions(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(clean_descriptions),
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if matches!(name.as_str(), "description" | "title") => {
                        if text.contains(|c: char| misleads(c) && !"\n\r\t".contains(c)) {
                            text.retain(|c| !misleads(c) || "\n\r\t".contains(c));
                        }
                    }
                    member => clean_descriptions(member),
                }
            }
        }
        _ => {}
    }
}

/// `text` on one line and in at most `most` characters: whole if it fits, else its first sentence, else cut after a word.
pub(crate) fn short(text: &str, most: usize) -> String {
    let line = one_line(text, most);
    if line.chars().count() <= most {
        return line;
    }
    match first_sentence(&line).filter(|sentence| sentence.chars().count() <= most) {
        Some(sentence) => sentence.to_owned(),
        None => cut(&line, most),
    }
}

/// Returns `true` for a tool that its description advises against.
pub(crate) fn is_deprecated(about: &str) -> bool {
    let start = &about[..about.floor_char_boundary(512)];
    start.split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case("deprecated"))
}

/// The first sentence of `text` on one line, cut after a word to at most `most` characters.
pub(crate) fn sentence(text: &str, most: usize) -> String {
    let line = one_line(text, most);
    let sentence = first_sentence(&line).unwrap_or(&line);
    if sentence.chars().count() <= most { sentence.to_owned() } else { cut(sentence, most) }
}

/// The beginning of a text without line breaks, control characters and marks of headings.
fn one_line(text: &str, most: usize) -> String {
    let text = &text[..text.floor_char_boundary(most.saturating_mul(LOOKED_AT).saturating_add(64))];
    let mut line = String::with_capacity(text.len().min(most * 2));
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() || (line.is_empty() && word.chars().all(|c| "#*-=_".contains(c))) {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().filter(|c| !is_invisible(*c)));
    }
    line
}

fn first_sentence(line: &str) -> Option<&str> {
    // A short beginning is an abbreviation ("e.g. ", "No. ") and no sentence.
    const LEAST: usize = 6;
    let ends = line.match_indices(". ").map(|(at, _)| at).find(|at| {
        let before = &line[..*at];
        *at >= LEAST && !["e.g", "i.e", "etc", "vs", "approx"].iter().any(|short| before.ends_with(short))
    });
    ends.map(|at| &line[..at])
}

fn cut(line: &str, most: usize) -> String {
    let end = line.char_indices().nth(most.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
    let whole = if line[end..].starts_with(' ') { end } else { line[..end].rfind(' ').unwrap_or(end) };
    // A single word without an end is cut where it is.
    let end = if whole * 2 < end { end } else { whole };
    format!("{}…", line[..end].trim_end_matches([' ', ',', ';', ':', '.', '(', '-']))
}

/// A description without a beginning that says no more than the mark of an optional property.
pub(super) fn to_the_point(about: &str) -> &str {
    const FILLERS: [&str; 8] = [
        "if provided, ",
        "if specified, ",
        "if set, ",
        "if given, ",
        "optional. ",
        "optional: ",
        "(optional) ",
        "optional ",
    ];
    let about = about.trim_start();
    let begins =
        |filler: &&str| about.get(..filler.len()).is_some_and(|start| start.eq_ignore_ascii_case(filler));
    FILLERS.iter().find(|filler| begins(filler)).map_or(about, |filler| &about[filler.len()..])
}

/// Returns `true` if a short description says no more than the name it describes, such as "Issue number" of `issue_number`, and `known`,
/// a text in lower case that stands beside it.
pub(super) fn only_repeats(about: &str, name: &str, known: &str) -> bool {
    const LONGEST: usize = 40;
    if about.len() > LONGEST {
        return false;
    }
    let name = name.to_lowercase();
    let mut words = about.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.all(|word| {
        let word = word.to_lowercase();
        let small = ["the", "a", "an", "of", "to", "for", "in", "this", "is"].contains(&word.as_str());
        let stem = word.trim_end_matches('s');
        small || name.contains(stem) || known.contains(stem) || (name.len() > 2 && word.contains(&name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_fits_stays_and_a_longer_one_is_cut_to_its_first_sentence_or_after_a_word() {
        assert_eq!(short("List issues.  Newest\nfirst.", 40), "List issues. Newest first.");
        assert_eq!(short("List open issues. Newest first, and more of them.", 30), "List open issues");
        assert_eq!(short("List the issues of a repository that are open", 30), "List the issues of a…");
        assert_eq!(short(&"x".repeat(100_000), 10), format!("{}…", "x".repeat(9)));
        assert_eq!(short("Größe; \u{7}Länge", 20), "Größe; Länge");
        assert_eq!(short("", 10), "");
    }

    #[test]
    fn marks_of_direction_and_invisible_characters_are_not_in_descriptions() {
        assert_eq!(sentence("Lists\u{202e} pay\u{200b}ments\u{e0041}. More", 160), "Lists payments");
        let mut schema = serde_json::json!({"description": "a\u{202e}b\nc", "properties": {
            "x": {"title": "\u{2066}t", "enum": ["\u{202e}"], "description": {"description": "\u{feff}d"}}}});
        clean_descriptions(&mut schema);
        let expected = serde_json::json!({"description": "ab\nc", "properties": {
            "x": {"title": "t", "enum": ["\u{202e}"], "description": {"description": "d"}}}});
        assert_eq!(schema, expected);
    }

    #[test]
    fn a_sentence_ends_at_its_full_stop_and_not_at_an_abbreviation() {
        assert_eq!(sentence("## Finds e.g. users. Then more.", 160), "Finds e.g. users");
        assert_eq!(sentence("Reads a.b.c and all. More", 160), "Reads a.b.c and all");
        assert_eq!(sentence(&"word ".repeat(100), 20), "word word word word…");
        assert!(sentence(&"word ".repeat(100_000), 160).chars().count() <= 160);
    }

    #[test]
    fn a_description_begins_behind_what_only_says_that_it_is_optional() {
        assert_eq!(to_the_point("If provided, returns only the first lines"), "returns only the first lines");
        assert_eq!(to_the_point(" Optional. Größe"), "Größe");
        assert_eq!(to_the_point("Optionally none"), "Optionally none");
        assert_eq!(to_the_point("\u{e9}\u{e9}"), "\u{e9}\u{e9}");
    }

    #[test]
    fn words_that_stand_beside_a_description_are_not_said_again() {
        let known = "read_query: execute a select query on the sqlite database";
        assert!(only_repeats("SELECT SQL query to execute", "query", known));
        assert!(!only_repeats("SELECT SQL query to explain", "query", known));
    }

    #[test]
    fn descriptions_that_repeat_the_name_are_known() {
        for (about, name) in [
            ("Issue number", "issue_number"),
            ("The repository", "repository"),
            ("", "x"),
            ("Labels", "label"),
        ] {
            assert!(only_repeats(about, name, ""), "{about}");
        }
        for (about, name) in [("Branch to merge into", "base"), ("Owner or organisation", "owner")] {
            assert!(!only_repeats(about, name, ""), "{about}");
        }
    }
}
