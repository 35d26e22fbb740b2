//! Plausible values for what a schema leaves open, by description, format and name.

use super::intent::{is_verb, words};

/// A text that is asked for.
pub(super) struct Asked<'a> {
    pub(super) name: &'a str,
    pub(super) about: &'a str,
    pub(super) format: &'a str,
    /// The tool's own name.
    pub(super) tool: &'a str,
}

const MOMENT: &str = "2026-01-15T09:30:00Z";
const UUID: &str = "123e4567-e89b-12d3-a456-426614174000";

/// Texts that many patterns take.
pub(super) const COMMON: &[&str] = &[
    "example",
    "Example",
    "EXAMPLE",
    "1",
    "10",
    "a1",
    "A1",
    "en",
    "US",
    "main",
    UUID,
    "2026-01-15",
    MOMENT,
    "09:30",
    "https://example.com/",
    "ada@example.com",
    "192.0.2.1",
    "192.0.2.0/24",
    "#336699",
    "+15550100",
    "1.0.0",
    "owner/name",
    "0123456789abcdef0123456789abcdef",
    "0123456789abcdef01234567",
    "0123456789abcdef0123456789abcdef01234567",
    "PROJ-1",
    "/example",
    "/",
    "a",
    "A",
    "0",
    "{}",
    "EUR",
    "1h",
    "true",
];

const FORMATS: &[(&str, &str)] = &[
    ("date-time", MOMENT),
    ("date", "2026-01-15"),
    ("time", "09:30:00Z"),
    ("duration", "PT1H"),
    ("email", "ada@example.com"),
    ("idn-email", "ada@example.com"),
    ("uri", "https://example.com/"),
    ("url", "https://example.com/"),
    ("iri", "https://example.com/"),
    ("uri-reference", "/example"),
    ("uuid", UUID),
    ("ipv4", "192.0.2.1"),
    ("ipv6", "2001:db8::1"),
    ("cidrv4", "192.0.2.0/24"),
    ("hostname", "example.com"),
    ("regex", ".*"),
    ("json-pointer", "/example"),
    ("byte", "SGVsbG8="),
    ("binary", "SGVsbG8="),
    ("json", "{}"),
    ("color", "#336699"),
    ("phone", "+15550100"),
    ("int32", "1"),
    ("int64", "1"),
];

/// Endings of names, and examples of such texts. The first that fits counts.
const NAMES: &[(&[&str], &str)] = &[
    (&["email", "mail", "recipient"], "ada@example.com"),
    (&["url", "uri", "link", "href", "website", "endpoint"], "https://example.com/"),
    (&["uuid", "guid"], UUID),
    (&["timezone", "time_zone", "tz"], "Europe/Berlin"),
    (&["date", "day"], "2026-01-15"),
    (&["timestamp", "datetime", "time", "since", "until", "before", "after"], MOMENT),
    (&["regex", "regexp", "pattern"], ".*"),
    (&["glob"], "**/*"),
    (&["directory", "dir", "folder", "cwd"], "docs"),
    (&["path", "file", "filename"], "notes.txt"),
    (&["owner", "org", "organization"], "octocat"),
    (&["repo", "repository"], "hello-world"),
    (&["branch", "ref", "sha", "commit", "base", "head"], "main"),
    (&["language", "locale", "lang"], "en"),
    (&["country"], "DE"),
    (&["currency"], "EUR"),
    (&["color", "colour"], "#336699"),
    (&["phone"], "+15550100"),
    (&["host", "hostname", "domain"], "example.com"),
    (&["ip"], "192.0.2.1"),
    (&["version"], "1.0.0"),
    (&["username", "user", "login", "author", "assignee"], "ada"),
    (&["city", "location", "place", "address"], "Berlin"),
    (&["command", "cmd"], "ls"),
    (&["expression", "code", "script"], "1 + 1"),
    (&["json"], "{}"),
    (&["title", "subject", "summary", "topic"], "Quarterly review"),
    (&["name", "label"], "Example"),
    (
        &["message", "body", "text", "content", "description", "comment", "note", "prompt", "markdown"],
        "Hello",
    ),
    (&["id", "ids", "key"], "1"),
];

/// A text that is likely to be accepted.
pub(super) fn likely<'a>(asked: &Asked<'a>) -> &'a str {
    let lower = asked.name.to_lowercase();
    if let Some((_, text)) = FORMATS.iter().find(|(format, _)| *format == asked.format) {
        return text;
    }
    if let Some(text) = told(asked.about).next() {
        return text;
    }
    let is_query = ["query", "search", "q", "keyword", "keywords", "term", "statement", "sql"]
        .iter()
        .any(|end| lower.ends_with(end));
    if is_query {
        return query(asked, &lower);
    }
    let words = words(asked.name);
    let ends =
        |end: &&str| words.last().is_some_and(|word| word == end) || lower.ends_with(*end) && end.len() > 3;
    NAMES.iter().find(|(ends_with, _)| ends_with.iter().any(&ends)).map_or("example", |(_, text)| text)
}

/// A query in the language that the property's name or description, or the tool's name, speaks of; else a word of the tool's name.
fn query<'a>(asked: &Asked<'a>, lower: &str) -> &'a str {
    let about = clipped(asked.about).to_lowercase();
    let tool = asked.tool.to_lowercase();
    let speaks = |language: &str| [lower, &about, &tool].iter().any(|text| text.contains(language));
    match () {
        () if speaks("promql") => "up",
        () if speaks("graphql") => "{ __typename }",
        () if speaks("cypher") => "MATCH (n) RETURN n LIMIT 1",
        () if speaks("jql") => "order by created DESC",
        () if speaks("jq ") => ".",
        () if speaks("sql") || lower.ends_with("statement") => "SELECT 1",
        () => {
            asked.tool.rsplit(|c: char| !c.is_alphanumeric()).find(|word| is_topic(word)).unwrap_or("report")
        }
    }
}

fn is_topic(word: &str) -> bool {
    word.len() > 2 && !words(word).iter().any(|part| is_verb(part))
}

/// Bytes of a description that are looked at.
const LOOKED_AT: usize = 2_000;
/// Longest value that is taken out of a description, in characters.
const LONGEST: usize = 80;

fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(LOOKED_AT)]
}

/// The values that a description gives as examples: `e.g. "octocat/hello-world"`, `Example: 2026-01-15`.
pub(super) fn told(about: &str) -> impl Iterator<Item = &str> {
    let about = clipped(about);
    let marks = ["e.g.", "E.g.", "xample:", "xamples:", "or example", "such as"];
    marks.into_iter().flat_map(move |mark| about.split(mark).skip(1).filter_map(value_at_start))
}

/// The value at the start of a text: one in quotes, or one word that no sentence has.
fn value_at_start(text: &str) -> Option<&str> {
    let text = text.trim_start_matches([' ', ':', ',', '(', '=']);
    let first = text.chars().next()?;
    let rest = &text[first.len_utf8()..];
    let value = match first {
        '`' | '"' | '\'' => rest.split(first).next().filter(|value| value.len() < rest.len())?,
        _ => {
            let word = text.split([' ', ',', ';', ')', '\n', '"', '\'', '`']).next()?.trim_end_matches('.');
            let has = |c: char| c.is_ascii_digit() || "/_@#:-".contains(c);
            Some(word).filter(|word| {
                word.contains(has) && !word.ends_with(':') && word.starts_with(|c: char| c.is_alphanumeric())
            })?
        }
    };
    let is_plain =
        !value.trim().is_empty() && !value.contains(['\n', '<', '{', '…']) && !value.contains("...");
    (is_plain && value.chars().count() <= LONGEST).then_some(value)
}

/// A plausible number for a property of this name.
pub(super) fn number(name: &str) -> f64 {
    match words(name).last().map(String::as_str) {
        Some("lat" | "latitude") => 52.52,
        Some("lon" | "lng" | "longitude") => 13.405,
        Some("limit" | "count" | "size" | "top" | "max" | "amount") => 10.0,
        Some("year") => 2026.0,
        Some("port") => 8080.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, about: &str, tool: &str) -> String {
        likely(&Asked { name, about, format: "", tool }).to_owned()
    }

    #[test]
    fn a_query_is_in_the_language_that_the_tool_speaks() {
        assert_eq!(text("query", "The SQL query to run", "read_query"), "SELECT 1");
        assert_eq!(text("sql", "", "execute"), "SELECT 1");
        assert_eq!(text("query", "", "run_sql"), "SELECT 1");
        assert_eq!(text("query", "GraphQL document", "call"), "{ __typename }");
        assert_eq!(text("query", "Words to look for", "repositories_search"), "repositories");
        assert_eq!(text("query", "", "search"), "report");
    }

    #[test]
    fn a_value_that_the_description_gives_as_an_example_is_taken() {
        for (about, value) in [
            ("Repository (e.g. \"octocat/hello-world\")", "octocat/hello-world"),
            ("The day, for example `2024-02-29`.", "2024-02-29"),
            ("Example: proj/sub-1, another", "proj/sub-1"),
            ("A language such as 'de-DE' or 'en'", "de-DE"),
        ] {
            assert_eq!(text("whatever", about, "t"), value, "{about}");
        }
        for about in [
            "e.g. the usual",
            "for example one that <b>ends",
            "such as \"never closed",
            "e.g. {id}",
            "e.g.",
            "such as '…'",
        ] {
            assert_eq!(text("whatever", about, "t"), "example", "{about}");
        }
    }

    #[test]
    fn names_decide_by_their_last_word() {
        for (name, value) in [
            ("userEmail", "ada@example.com"),
            ("path", "notes.txt"),
            ("start_date", "2026-01-15"),
            ("repo", "hello-world"),
            ("user_id", "1"),
            ("pathology", "example"),
            ("", "example"),
        ] {
            assert_eq!(text(name, "", "t"), value, "{name}");
        }
    }
}
