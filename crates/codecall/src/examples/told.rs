//! Values in the words of a description: examples, lists of allowed values, defaults and formats.
//!
//! Descriptions come from servers: their beginning is looked at, once for each mark.

/// Bytes of a description that are looked at.
const LOOKED_AT: usize = 2_000;
/// Longest value that is taken out of a description, in characters.
const LONGEST: usize = 80;

pub(super) const MOMENT: &str = "2026-01-15T09:30:00Z";

/// Words in front of a list of the allowed values.
const LISTS: [&str; 13] = [
    "[Enum]:",
    "[enum]:",
    "one of:",
    "One of:",
    "one of the following:",
    "ptions are:",
    "the options:",
    "ptions:",
    "alid values:",
    "llowed values:",
    "ossible values:",
    "upported values:",
    "alues are:",
];
/// ... and in front of one in quotes.
const CHOICES: [&str; 4] = ["one of ", "either ", "an be ", "ust be "];
/// Words in front of an example.
const EXAMPLES: [&str; 9] =
    ["e.g.", "E.g.", "eg.", "(ex.", "(ex:", "xample:", "xamples:", "or example", "such as"];
/// ... and in front of a default.
const DEFAULTS: [&str; 4] = ["efault is", "efaults to", "efault:", "(default"];

/// Formats of dates and times, the longer ones first.
const FORMATS: [(&str, &str); 13] = [
    ("YYYY-MM-DDTHH:MM:SSZ", MOMENT),
    ("YYYY-MM-DDTHH:MM", "2026-01-15T09:30:00"),
    ("YYYY-MM-DD HH:MM:SS", "2026-01-15 09:30:00"),
    ("YYYY-MM-DD HH:MM", "2026-01-15 09:30"),
    ("YYYY-MM-DD", "2026-01-15"),
    ("YYYY/MM/DD", "2026/01/15"),
    ("MM/DD/YYYY", "01/15/2026"),
    ("DD/MM/YYYY", "15/01/2026"),
    ("DD.MM.YYYY", "15.01.2026"),
    ("MM/YYYY", "01/2026"),
    ("YYYY-MM", "2026-01"),
    ("HH:MM:SS", "09:30:00"),
    ("HH:MM", "09:30"),
];

/// The values that a description gives, the likeliest first.
pub(super) fn told(about: &str) -> impl Iterator<Item = &str> {
    let about = clipped(about);
    examples(about).chain(listed(about)).chain(defaults(about)).chain(format(about))
}

/// The beginning of a description.
pub(super) fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(LOOKED_AT)]
}

fn after<'t>(text: &'t str, marks: &'static [&'static str]) -> impl Iterator<Item = &'t str> {
    marks.iter().flat_map(move |mark| text.split(mark).skip(1))
}

/// `e.g. "octocat/hello-world"`, `Example: 2026-01-15`.
fn examples(about: &str) -> impl Iterator<Item = &str> {
    after(about, &EXAMPLES).filter_map(|text| value_at_start(text, false))
}

/// `one of: a, b`, `[A|B]`, `(Buy/Sell)`, `can be 'a' or 'b'`.
fn listed(about: &str) -> impl Iterator<Item = &str> {
    let lists = after(about, &LISTS).filter_map(|text| value_at_start(text, true));
    let choices = after(about, &CHOICES).filter(|text| text.starts_with(['`', '"', '\'']));
    let brackets = about.split(['[', '(']).skip(1).filter_map(|text| {
        let inner = text.split([']', ')']).next()?;
        let first = inner.split(['|', '/']).next().filter(|first| first.len() < inner.len())?.trim();
        let is_word =
            !first.is_empty() && inner.chars().all(|c| c.is_alphanumeric() || "|/_- \"'`".contains(c));
        // Three words between slashes are prose.
        let is_list = is_word && !first.contains(' ') && (inner.contains('|') || !inner.contains(' '));
        is_list.then(|| first.trim_matches(['"', '\'', '`']))
    });
    lists.chain(choices.filter_map(|text| value_at_start(text, false))).chain(brackets)
}

/// `defaults to main`, `Default: 'asc'`.
fn defaults(about: &str) -> impl Iterator<Item = &str> {
    let values = after(about, &DEFAULTS).filter_map(|text| value_at_start(text, true));
    values.filter(|value| {
        !["none", "null", "the", "a", "an", "to", "current", "all", "empty"]
            .contains(&value.to_lowercase().as_str())
    })
}

fn format(about: &str) -> Option<&'static str> {
    let upper = about.to_uppercase();
    let named = FORMATS.iter().find(|(format, _)| upper.contains(format)).map(|(_, value)| *value);
    named.or_else(|| {
        (upper.contains("ISO 8601") || upper.contains("RFC 3339") || upper.contains("RFC3339"))
            .then_some(MOMENT)
    })
}

/// The value at the start of a text: one in quotes, or one word. Without `any_word` it is a word that no sentence has.
fn value_at_start(text: &str, any_word: bool) -> Option<&str> {
    let text = text.trim_start_matches([' ', ':', ',', '(', '=', '[']);
    let first = text.chars().next()?;
    let rest = &text[first.len_utf8()..];
    let value = match first {
        '`' | '"' | '\'' => rest.split(first).next().filter(|value| value.len() < rest.len())?,
        _ => {
            let word = text.split([' ', ',', ';', ')', ']', '|', '\n', '"', '\'', '`']).next()?;
            let word = word.trim_end_matches('.');
            let has = |c: char| c.is_ascii_digit() || "/_@#:-".contains(c);
            let is_value = any_word || word.contains(has);
            Some(word).filter(|word| {
                is_value && !word.ends_with(':') && word.starts_with(|c: char| c.is_alphanumeric())
            })?
        }
    };
    let is_plain =
        !value.trim().is_empty() && !value.contains(['\n', '<', '{', '…']) && !value.contains("...");
    (is_plain && value.chars().count() <= LONGEST).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(about: &str) -> Option<&str> {
        told(about).next()
    }

    #[test]
    fn a_value_that_the_description_gives_is_taken() {
        for (about, value) in [
            ("Repository (e.g. \"octocat/hello-world\")", "octocat/hello-world"),
            ("The day, for example `2024-02-29`.", "2024-02-29"),
            ("Example: proj/sub-1, another", "proj/sub-1"),
            ("A language such as 'de-DE' or 'en'", "de-DE"),
            ("The time (HH:MM)", "09:30"),
            ("Day in the format YYYY-MM-DD", "2026-01-15"),
            ("Since, as an ISO 8601 time", MOMENT),
            ("The order [asc|desc]", "asc"),
            ("Type of the order (Buy/Sell).", "Buy"),
            ("The class. Options are: economy, business, first.", "economy"),
            ("The mode. [Enum]: [\"engage\", \"release\"]", "engage"),
            ("Base currency. [Enum]: USD, EUR", "USD"),
            ("Can be 'key' or 'credential'", "key"),
            ("Must be one of: a, b", "a"),
            ("Branch, defaults to main", "main"),
        ] {
            assert_eq!(first(about), Some(value), "{about}");
        }
    }

    #[test]
    fn prose_is_no_value() {
        for about in [
            "e.g. the usual",
            "for example one that <b>ends",
            "such as \"never closed",
            "e.g. {id}",
            "e.g.",
            "such as '…'",
            "One of the users",
            "Defaults to the current directory",
            "The name (first and/or last of it)",
            "",
        ] {
            assert_eq!(first(about), None, "{about}");
        }
        let long = "e.g. ".repeat(100_000);
        assert_eq!(first(&long), None);
    }
}
