//! Plausible values for what a schema leaves open, by description, format and name.

use super::{
    intent::{is_verb, words},
    told::{MOMENT, clipped, told},
};

/// A text that is asked for.
pub(super) struct Asked<'a> {
    pub(super) name: &'a str,
    pub(super) about: &'a str,
    pub(super) format: &'a str,
    /// The tool's own name, and its description.
    pub(super) tool: &'a str,
    pub(super) tool_about: &'a str,
    /// Id of its app.
    pub(super) app: &'a str,
}

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
    (&["date", "day", "birth", "birthday"], "2026-01-15"),
    (&["timestamp", "datetime", "time", "since", "until", "before", "after"], MOMENT),
    (&["regex", "regexp", "pattern"], ".*"),
    (&["glob"], "**/*"),
    (&["directory", "dir", "folder", "cwd", "dirname"], "docs"),
    (&["path", "file", "filename"], "notes.txt"),
    (&["owner", "org", "organization"], "octocat"),
    (&["repo", "repository"], "hello-world"),
    (&["branch", "ref", "sha", "commit", "base", "head"], "main"),
    (&["revision", "rev"], "HEAD"),
    (&["symbol", "ticker", "stock"], "AAPL"),
    (&["zip", "zipcode", "postcode", "postal_code"], "94016"),
    (&["airport"], "SFO"),
    (&["unit", "units"], "meters"),
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

/// Words of descriptions, in lower case, and examples of what they speak of. The first that fits counts.
const SUBJECTS: &[(&str, &str)] = &[
    ("absolute path to the directory", "/srv/docs"),
    ("absolute path to a directory", "/srv/docs"),
    ("absolute path", "/srv/docs/notes.txt"),
    ("time zone", "Europe/Berlin"),
    ("timezone", "Europe/Berlin"),
    ("currency code", "EUR"),
    ("iso 4217", "EUR"),
    ("country code", "DE"),
    ("iso 3166", "DE"),
    ("language code", "en"),
    ("iso 639", "en"),
    ("airport", "SFO"),
    ("zipcode", "94016"),
    ("zip code", "94016"),
    ("postal code", "94016"),
    ("stock symbol", "AAPL"),
    ("ticker", "AAPL"),
    ("glob pattern", "**/*.md"),
    ("glob-style", "**/*.md"),
    ("regular expression", "TODO"),
    ("regex", "TODO"),
    ("email address", "ada@example.com"),
    ("uuid", UUID),
    ("name of the file", "notes.txt"),
    ("file name", "notes.txt"),
    ("name of the city", "Berlin"),
    ("unit of", "m"),
    ("unit to convert", "km"),
];

/// The counterparts of examples, for the second of two things: the currency to convert to, the time zone of the other place.
const OTHERS: &[(&str, &str)] = &[
    ("Europe/Berlin", "Asia/Tokyo"),
    ("EUR", "USD"),
    ("USD", "EUR"),
    ("SFO", "LAX"),
    ("94016", "10001"),
    ("Berlin", "Paris"),
    ("notes.txt", "archive.txt"),
    ("report.xlsx", "archive.xlsx"),
    ("data.csv", "archive.csv"),
    ("docs", "archive"),
    ("en", "de"),
    ("meters", "kilometers"),
];

/// Words of names and descriptions, and a file of the kind that they speak of: its name, and its path.
const FILES: &[(&[&str], [&str; 2])] = &[
    (
        &[
            "excel",
            "xlsx",
            "workbook",
            "workbooks",
            "spreadsheet",
            "spreadsheets",
            "worksheet",
            "sheet",
            "sheets",
        ],
        ["report.xlsx", "/srv/docs/report.xlsx"],
    ),
    (&["csv"], ["data.csv", "/srv/docs/data.csv"]),
    (&["pdf"], ["report.pdf", "/srv/docs/report.pdf"]),
    (&["docx"], ["report.docx", "/srv/docs/report.docx"]),
    (
        &["image", "images", "png", "photo", "picture", "screenshot", "media"],
        ["photo.png", "/srv/docs/photo.png"],
    ),
    (&["json"], ["data.json", "/srv/docs/data.json"]),
    (&["markdown", "md"], ["notes.md", "/srv/docs/notes.md"]),
];
/// The file where nothing tells of another kind.
const TEXT_FILE: [&str; 2] = ["notes.txt", "/srv/docs/notes.txt"];

/// A text that is likely to be accepted.
pub(super) fn likely<'a>(asked: &Asked<'a>) -> &'a str {
    let text = first_of_its_kind(asked);
    let text = TEXT_FILE.iter().position(|file| *file == text).map_or(text, |at| file(asked)[at]);
    let is_other = || words(asked.name).iter().any(|word| is_other(word)) || asked.name.ends_with(['2', 'B']);
    let other = OTHERS.iter().find(|(one, _)| *one == text).filter(|_| is_other());
    other.map_or(text, |(_, other)| other)
}

fn is_other(word: &str) -> bool {
    ["target", "to", "dest", "destination", "second", "other", "out"].contains(&word)
}

fn first_of_its_kind<'a>(asked: &Asked<'a>) -> &'a str {
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
    if let Some(path) = path(asked, &words) {
        return path;
    }
    let about = clipped(asked.about).to_lowercase();
    if let Some((_, text)) = SUBJECTS.iter().find(|(subject, _)| about.contains(subject)) {
        return text;
    }
    if words.last().is_some_and(|last| last == "pattern") && clipped(asked.tool_about).contains("glob") {
        return "**/*.md";
    }
    // `cityA`
    let last = words.iter().rfind(|word| {
        word.len() > 1 || word.starts_with(|c: char| c.is_ascii_lowercase() && c != 'a' && c != 'b')
    });
    let last = last.map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()));
    let ends = |end: &&str| last == Some(end) || lower.ends_with(*end) && end.len() > 3;
    NAMES.iter().find(|(ends_with, _)| ends_with.iter().any(&ends)).map_or("example", |(_, text)| text)
}

/// A file of the kind that the property speaks of, or else the tool's name, or else the app's.
fn file(asked: &Asked<'_>) -> [&'static str; 2] {
    let spoken = [asked.name, clipped(asked.about), asked.tool, asked.app].map(words);
    let of = |words: &Vec<String>| {
        FILES.iter().find(|(kinds, _)| words.iter().any(|word| kinds.contains(&word.as_str())))
    };
    spoken.iter().find_map(of).map_or(TEXT_FILE, |(_, file)| *file)
}

/// A path: of a repository, a directory or a file, by the words of the property and the tool.
fn path(asked: &Asked<'_>, name: &[String]) -> Option<&'static str> {
    let has = |word: &str| name.iter().any(|part| part == word);
    let is_file_name = has("file") && name.last().is_some_and(|last| last.starts_with("name"));
    if !has("path") && !has("dir") && !is_file_name {
        return None;
    }
    if has("repo") || has("repository") {
        return Some("/srv/repo");
    }
    let about = clipped(asked.about).to_lowercase();
    let tool = words(asked.tool);
    let of_tool = || {
        tool.iter().any(|word| {
            ["directory", "directories", "dir", "folder", "folders", "tree", "files"].contains(&word.as_str())
        })
    };
    let is_directory = has("dir")
        || has("directory")
        || has("folder")
        || about.contains("directory")
        || about.contains("folder");
    let is_file = about.contains("file") || has("file");
    let is_absolute = about.contains("absolute") || about.contains("full path");
    Some(match (is_directory && !about.contains("file or directory") || !is_file && of_tool(), is_absolute) {
        (true, true) => "/srv/docs",
        (true, false) => "docs",
        (false, true) => "/srv/docs/notes.txt",
        (false, false) => "notes.txt",
    })
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
        () if speaks("sql") || lower.ends_with("statement") => statement(&words(asked.tool)),
        () => {
            asked.tool.rsplit(|c: char| !c.is_alphanumeric()).find(|word| is_topic(word)).unwrap_or("report")
        }
    }
}

/// A statement of SQL that does what the name of the tool says.
fn statement(tool: &[String]) -> &'static str {
    let does = |verbs: &[&str]| tool.iter().any(|word| verbs.contains(&word.as_str()));
    match () {
        () if does(&["create"]) => "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)",
        () if does(&["write", "insert", "add"]) => "INSERT INTO notes (body) VALUES ('Hello')",
        () => "SELECT 1",
    }
}

fn is_topic(word: &str) -> bool {
    word.len() > 2 && !words(word).iter().any(|part| is_verb(part))
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
        of_app("files", name, about, tool)
    }

    fn of_app(app: &str, name: &str, about: &str, tool: &str) -> String {
        let tool_about = "Finds files by glob-style patterns";
        likely(&Asked { name, about, format: "", tool, tool_about, app }).to_owned()
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
    fn a_statement_does_what_the_tool_does() {
        let created = "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)";
        for (tool, statement) in [
            ("create_table", created),
            ("write_query", "INSERT INTO notes (body) VALUES ('Hello')"),
            ("read_query", "SELECT 1"),
        ] {
            assert_eq!(text("query", "SQL statement", tool), statement, "{tool}");
        }
    }

    #[test]
    fn files_are_of_the_kind_that_the_property_the_tool_or_the_app_speaks_of() {
        for (app, name, about, tool, file) in [
            ("excel", "filepath", "", "write_range", "report.xlsx"),
            ("excel", "file_path", "Absolute path of the file", "write_range", "/srv/docs/report.xlsx"),
            ("files", "path", "Path of the workbook", "open", "report.xlsx"),
            ("excel", "path", "File of CSV", "import", "data.csv"),
            ("files", "path", "", "read_media_file", "photo.png"),
            ("docs", "file", "", "pdf_to_text", "report.pdf"),
            ("files", "path", "", "read_file", "notes.txt"),
            ("excel", "target_file", "", "copy_sheet", "archive.xlsx"),
        ] {
            assert_eq!(of_app(app, name, about, tool), file, "{app} {name} {about} {tool}");
        }
    }

    #[test]
    fn paths_are_those_of_what_the_tool_works_on() {
        for (name, about, tool, value) in [
            ("path", "", "read_file", "notes.txt"),
            ("path", "", "list_directory", "docs"),
            ("path", "", "search_files", "docs"),
            ("repo_path", "", "git_log", "/srv/repo"),
            ("pattern", "", "search_files", "**/*.md"),
            ("path", "Absolute path of the file", "open", "/srv/docs/notes.txt"),
            ("path", "The folder", "open", "docs"),
            ("path", "Path of a file or directory", "stat", "notes.txt"),
        ] {
            assert_eq!(text(name, about, tool), value, "{name} {about} {tool}");
        }
    }

    #[test]
    fn the_second_of_two_things_differs_from_the_first() {
        for (name, about, value) in [
            ("source_timezone", "", "Europe/Berlin"),
            ("target_timezone", "", "Asia/Tokyo"),
            ("travel_from", "The airport of departure", "SFO"),
            ("travel_to", "The airport of arrival", "LAX"),
            ("target_currency", "", "USD"),
            ("file_name1", "", "notes.txt"),
            ("file_name2", "", "archive.txt"),
            ("cityA", "", "Berlin"),
            ("cityB", "The zipcode of the city", "10001"),
        ] {
            assert_eq!(text(name, about, "t"), value, "{name}");
        }
    }

    #[test]
    fn words_of_the_description_decide_where_the_name_says_nothing() {
        for (about, value) in [
            ("IANA time zone", "Europe/Berlin"),
            ("Three-letter currency code", "EUR"),
            ("A glob pattern of files", "**/*.md"),
            ("The name of the file to show", "notes.txt"),
        ] {
            assert_eq!(text("value", about, "t"), value, "{about}");
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
