//! Names that servers and scripts chose, in messages.

use crate::declare::misleads;

/// Characters shown of a name.
const LONGEST: usize = 80;
/// Least likeness of a name that is suggested.
const ENOUGH: f64 = 0.85;
/// ... of which letters are in the same order and place.
const ENOUGH_IN_PLACE: f64 = 0.6;
/// Longest name that is compared, in bytes: time grows with the product of the lengths.
const COMPARED: usize = 100;
/// Most names that one name is compared with.
const MOST_COMPARED: usize = 1_000;
/// Names shown of a list.
const SHOWN: usize = 12;

/// A text without control characters and others that could mislead a reader.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if misleads(c) { '\u{fffd}' } else { c }).collect()
}

/// A name, printable and not too long.
pub(super) fn display_name(name: &str) -> String {
    let (short, more) = match name.char_indices().nth(LONGEST) {
        Some((at, _)) => (&name[..at], "…"),
        None => (name, ""),
    };
    printable(short).replace('`', "\u{fffd}") + more
}

/// The name that a misspelt one is likeliest to mean.
pub(super) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > COMPARED {
        return None;
    }
    let plain = |name: &str| name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let wanted = plain(name);
    let names: Vec<&str> = names.take(MOST_COMPARED).collect();
    let has = |other: &&&str| other.len() <= COMPARED && plain(other).contains(&wanted);
    // A part of several names is the beginning of any of them.
    let is_beginning = names.iter().filter(has).take(2).count() == 1;
    let near = |other: &&str| other.len() <= COMPARED && *other != name;
    names
        .into_iter()
        .filter(near)
        .map(|other| (likeness(&wanted, &plain(other), is_beginning), other))
        .filter(|(likeness, _)| *likeness >= ENOUGH)
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)))
        .map(|(_, other)| other)
}

/// The likeness of two names. Beginnings alone make none, such as those of `customer` and `cursor`, unless one name is the beginning of the other:
/// the wanted one only if it `is_beginning`.
fn likeness(wanted: &str, other: &str, is_beginning: bool) -> f64 {
    let is_whole = wanted.starts_with(other) || is_beginning && other.starts_with(wanted);
    if !is_whole && strsim::normalized_damerau_levenshtein(wanted, other) < ENOUGH_IN_PLACE {
        return 0.0;
    }
    strsim::jaro_winkler(wanted, other)
}

/// Names as a list, in backticks.
pub(super) fn list(names: &[&str]) -> String {
    let mut list: Vec<String> =
        names.iter().take(SHOWN).map(|name| format!("`{}`", display_name(name))).collect();
    if names.len() > SHOWN {
        list.push("…".to_owned());
    }
    list.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_outside_is_short_and_has_no_control_characters() {
        let name = format!("a\u{1b}[31m\n`\u{202e}{}", "x".repeat(1_000_000));
        let short = display_name(&name);
        assert!(short.chars().count() <= LONGEST + 1 && !short.chars().any(char::is_control), "{short}");
        assert!(!short.contains(['`', '\u{202e}']));
    }

    #[test]
    fn misspellings_and_other_conventions_are_near_and_other_words_are_not() {
        let names = ["items", "nextCursor", "total"];
        let near = |name| nearest(name, names.into_iter());
        assert_eq!(near("itmes"), Some("items"));
        assert_eq!(near("next_cursor"), Some("nextCursor"));
        assert_eq!(near("item"), Some("items"));
        assert_eq!(near("users"), None);
        assert_eq!(nearest("customer", ["cursor", "limit"].into_iter()), None);
        assert_eq!(nearest("repo", ["repository", "owner"].into_iter()), Some("repository"));
        assert_eq!(nearest("time", ["timezone", "datetime"].into_iter()), None);
        assert_eq!(near(&"items".repeat(1_000)), None);
    }
}
