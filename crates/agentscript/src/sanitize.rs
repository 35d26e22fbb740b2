//! Takes stack traces and file paths out of text that leaves the process.
//!
//! A path is: a `file:` URL; a drive path (`C:\dir\file`, `C:/dir/file`); a share (`\\host\share`); an absolute Unix path below one of
//! [`ROOTS`], or any absolute Unix path of two or more parts whose last part has a file extension; one below `~/`. Separators may be
//! written `%2F`, `%5C` or `\/`. Paths may have spaces in them: Windows paths and Unix paths where the next word goes on with a
//! separator, Unix paths also as `\ ` and between quotes. The path of a URL (`https://host/a/b.json`) and routes such as
//! `/users/1` stay.

use std::borrow::Cow;

use serde_json::Value;

/// What stands in for a path.
const PATH: &str = "[path]";

/// First parts of absolute Unix paths that never are routes.
const ROOTS: [&str; 28] = [
    "home",
    "root",
    "usr",
    "var",
    "tmp",
    "etc",
    "opt",
    "srv",
    "mnt",
    "media",
    "Users",
    "private",
    "app",
    "work",
    "workspace",
    "proc",
    "sys",
    "dev",
    "run",
    "bin",
    "sbin",
    "lib",
    "lib64",
    "boot",
    "nix",
    "snap",
    "Library",
    "Applications",
];

/// Cleans messages before a caller sees them. Both parts are on by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sanitizer {
    /// Drop the lines of a stack trace (V8, QuickJS, Python, Rust, Java).
    pub remove_stack_traces: bool,
    /// Replace file paths with `[path]`.
    pub remove_file_paths: bool,
}

impl Default for Sanitizer {
    fn default() -> Self {
        Self { remove_stack_traces: true, remove_file_paths: true }
    }
}

impl Sanitizer {
    /// `text` without what the settings remove; borrowed when nothing was.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut clean = Cow::Borrowed(text);
        if self.remove_stack_traces
            && let Some(shorter) = without_traces(&clean)
        {
            clean = Cow::Owned(shorter);
        }
        if self.remove_file_paths
            && let Some(shorter) = without_paths(&clean)
        {
            clean = Cow::Owned(shorter);
        }
        clean
    }

    /// Cleans every string of `value`, keys left alone, and drops members named `stack` when stack traces go.
    pub fn json(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item)),
            Value::Object(members) => {
                if self.remove_stack_traces {
                    members.retain(|name, _| name != "stack" && name != "stackTrace");
                }
                members.values_mut().for_each(|member| self.json(member));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// The text without the lines of stack traces, if it has any.
fn without_traces(text: &str) -> Option<String> {
    let mut kept: Vec<&str> = Vec::new();
    let mut dropped = false;
    let mut python = false;
    for line in text.split('\n') {
        let bare = line.trim();
        if bare.starts_with("Traceback (most recent call last)") || bare == "stack backtrace:" {
            (python, dropped) = (bare.starts_with("Traceback"), true);
            continue;
        }
        // Below a Python traceback everything indented belongs to it; the line after it is the error itself.
        if python && (line.starts_with(' ') || line.starts_with('\t')) {
            continue;
        }
        python = false;
        if is_frame(bare) {
            dropped = true;
        } else {
            kept.push(line);
        }
    }
    dropped.then(|| kept.join("\n").trim_end().to_owned())
}

fn is_frame(line: &str) -> bool {
    if let Some(rest) = line.strip_prefix("at ") {
        return rest == "<anonymous>"
            || rest == "native"
            || rest.ends_with("(native)")
            || ends_in_position(rest)
            || rest.ends_with("(<anonymous>)");
    }
    if line.starts_with("File \"") && line.contains("\", line ") {
        return true;
    }
    // Rust's `  12: crate::function`, Firefox's `name@file:1:2`.
    if let Some((number, name)) = line.split_once(": ") {
        return !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && name.contains("::")
            && !name.contains(' ');
    }
    line.split_once('@').is_some_and(|(name, place)| {
        !name.contains(' ') && place.contains(['/', '<']) && ends_in_position(place)
    })
}

/// Whether the text ends like `file.js:12`, `file.js:12:3` or `(file.js:12:3)`.
fn ends_in_position(text: &str) -> bool {
    let text = text.strip_suffix(')').unwrap_or(text);
    text.rsplit_once(':').is_some_and(|(place, number)| {
        !place.is_empty() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The text with every path replaced, if it has any.
fn without_paths(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut done = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find(['/', '\\', ':', '%']) {
        let mark = at + found;
        let path = path_around(text, mark);
        match path {
            Some((start, end)) if start >= done => {
                out.push_str(&text[done..start]);
                out.push_str(PATH);
                done = end;
                at = end;
            }
            _ => at = skip_url(text, mark),
        }
    }
    if done == 0 && out.is_empty() {
        return None;
    }
    out.push_str(&text[done..]);
    Some(out)
}

/// Start and end of the path whose first separator is at `mark`.
fn path_around(text: &str, mark: usize) -> Option<(usize, usize)> {
    let (before, rest) = text.split_at(mark);
    let word = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '+').next().unwrap_or("");
    if (rest.starts_with(":/") || rest.starts_with(":\\") || is_encoded(&rest[1..]))
        && rest.starts_with(':')
        && word.eq_ignore_ascii_case("file")
    {
        return Some((mark - word.len(), mark + path_len(rest)));
    }
    let starts_word = |at: usize| {
        text[..at]
            .chars()
            .next_back()
            .is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '/' | '\\' | '.' | '-' | '_' | '~' | '%')))
    };
    if word.len() == 1 && word.as_bytes()[0].is_ascii_alphabetic() && starts_word(mark - 1) {
        let behind =
            rest.strip_prefix(':').or_else(|| rest.strip_prefix("%3A")).or_else(|| rest.strip_prefix("%3a"));
        let url = rest.starts_with("://");
        if let Some(path) = behind
            && !url
            && (path.starts_with(['\\', '/']) || is_encoded(path))
            && path.len() > 1
        {
            return Some((mark - 1, mark + (rest.len() - path.len()) + windows_len(path)));
        }
    }
    if rest.starts_with("\\\\") && starts_word(mark) {
        let len = windows_len(rest);
        let parts = rest[..len].split('\\').filter(|part| !part.is_empty()).count();
        return (parts >= 2).then_some((mark, mark + len));
    }
    if rest.starts_with('/') && before.ends_with('~') && starts_word(mark - 1) && path_len(rest) > 1 {
        return Some((mark - 1, mark + unix_len(rest, before[..mark - 1].chars().next_back())));
    }
    if !starts_word(mark) {
        return None;
    }
    if rest.starts_with('/') && !rest.starts_with("//") {
        return is_unix_path(&rest[..path_len(rest)])
            .then(|| (mark, mark + unix_len(rest, before.chars().next_back())));
    }
    if rest.starts_with("\\/") || is_encoded(rest) {
        let len = path_len(rest);
        let plain = rest[..len].replace("\\/", "/").replace("%2F", "/").replace("%2f", "/");
        return is_unix_path(&plain).then_some((mark, mark + len));
    }
    None
}

/// Whether the text begins with a separator as URLs write it.
fn is_encoded(text: &str) -> bool {
    text.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("%2f") || start.eq_ignore_ascii_case("%5c"))
}

fn is_unix_path(path: &str) -> bool {
    let parts: Vec<&str> = path.trim_end_matches('/').split('/').skip(1).collect();
    let rooted = parts.len() >= 2 && ROOTS.contains(&parts[0]);
    let named = parts.len() >= 2 && parts.last().is_some_and(|last| has_extension(last));
    rooted || named
}

/// As [`path_len`], but a space belongs to the path when the word behind it has a `\` inside.
fn windows_len(text: &str) -> usize {
    let mut len = path_len(text);
    while let Some(more) = text[len..].strip_prefix(' ') {
        let word = path_len(more);
        match more[..word].find('\\') {
            Some(at) if at > 0 => len += 1 + word,
            _ => break,
        }
    }
    len
}

/// As [`path_len`], but a space belongs to the path when it is escaped, when the word behind it is the rest of a path to a file, or
/// when the path stands behind the quote `opened` and what is left before the closing one is a word or goes on as a path.
fn unix_len(text: &str, opened: Option<char>) -> usize {
    let mut len = path_len(text);
    if let Some(quote) = opened.filter(|c| matches!(c, '"' | '\'' | '`'))
        && let Some(end) = text.find(quote)
        && let Some(rest) = text.get(len..end)
        && rest.starts_with(' ')
        && !rest.contains(['\n', '\r', '"'])
    {
        let last = rest.rsplit([' ', '/']).next().unwrap_or_default();
        let one_word = !rest[1..].contains(' ') && !rest.ends_with(['.', ':', '!', '?']);
        if one_word || has_extension(last) {
            return end;
        }
    }
    loop {
        let rest = &text[len..];
        if text[..len].ends_with('\\') && rest.starts_with(' ') {
            len += 1 + path_len(&rest[1..]);
            continue;
        }
        let Some(more) = rest.strip_prefix(' ') else { return len };
        let word = path_len(more);
        match more[..word].rsplit_once('/') {
            Some((first, last)) if !first.is_empty() && has_extension(last) && !first.contains(':') => {
                len += 1 + word
            }
            _ => return len,
        }
    }
}

/// Behind a URL or a separator that begins no path.
fn skip_url(text: &str, mark: usize) -> usize {
    let Some(address) = text[mark..].strip_prefix("://") else { return mark + 1 };
    let end = address.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`'));
    mark + 3 + end.unwrap_or(address.len())
}

/// Length of the path at the start of `text`: up to white space, a quote or a bracket; a closing mark of the sentence stays.
fn path_len(text: &str) -> usize {
    let stop = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '"' | '\'' | '`' | '<' | '>' | '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' | '|')
    };
    let path = &text[..text.find(stop).unwrap_or(text.len())];
    path.trim_end_matches(['.', ':', '!', '?']).len()
}

fn has_extension(part: &str) -> bool {
    // The position behind the name (`file.rs:1:2`) goes with it.
    let name = part.split(':').next().unwrap_or(part);
    name.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=5).contains(&extension.len())
            && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && extension.bytes().any(|byte| byte.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> String {
        Sanitizer::default().text(text).into_owned()
    }

    #[test]
    fn replaces_unix_windows_share_and_file_url_paths() {
        assert_eq!(clean("cannot open /home/ann/secret.txt: denied"), "cannot open [path]: denied");
        assert_eq!(clean("cannot open '/etc/passwd'."), "cannot open '[path]'.");
        assert_eq!(clean("in /data/lib/index.js:10:5"), "in [path]");
        assert_eq!(clean(r"open C:\Users\ann\x.txt failed"), "open [path] failed");
        assert_eq!(clean("open D:/data/x failed"), "open [path] failed");
        assert_eq!(clean(r"read \\server\share\file"), "read [path]");
        assert_eq!(clean("see file:///srv/app/main.rs"), "see [path]");
        assert_eq!(clean("File:///C:/x/y.ts!"), "[path]!");
    }

    #[test]
    fn replaces_paths_in_odd_spellings() {
        for (text, expected) in [
            (r"open C:\Program Files\Acme App\secret.txt: denied", "open [path]: denied"),
            (r"open \\srv\Team Share\My Docs\x.txt now", "open [path] now"),
            (r"open \\?\C:\Users\ann\x.txt", "open [path]"),
            ("at file://localhost:8080/etc/passwd.", "at [path]."),
            (r"at file:\\\C:\Users\ann", "at [path]"),
            ("at FILE:%2F%2F%2Fhome%2Fann", "at [path]"),
            ("open %2Fhome%2Fann%2Fsecret failed", "open [path] failed"),
            ("open C:%5CUsers%5Cann", "open [path]"),
            ("open C%3A%5cUsers%5cann", "open [path]"),
            (r#"{"p":"\/home\/ann\/x"}"#, r#"{"p":"[path]"}"#),
            ("read ~/.ssh/id_rsa failed", "read [path] failed"),
            ("key=/root/.ssh/id_rsa", "key=[path]"),
            ("open '/home/ann/My Documents/secret plan.txt': denied", "open '[path]': denied"),
            ("open \"/home/ann/My Documents\" failed", "open \"[path]\" failed"),
            ("open `~/My Documents/x.txt` failed", "open `[path]` failed"),
            (r"open /home/ann/My\ Documents/my\ plan.txt failed", "open [path] failed"),
            ("open /home/ann/My Documents/x.txt: denied", "open [path]: denied"),
            ("'/home/ann is not a folder' and '/etc/hosts' is", "'[path] is not a folder' and '[path]' is"),
            (
                "read /etc/hosts and/or https://example.com/a.json",
                "read [path] and/or https://example.com/a.json",
            ),
            ("copied /tmp/a to s3://bucket/x.txt", "copied [path] to s3://bucket/x.txt"),
        ] {
            assert_eq!(clean(text), expected, "{text}");
        }
    }

    #[test]
    fn leaves_urls_routes_fractions_and_times() {
        for text in [
            "GET https://api.example.com/v1/home/file.json returned 404",
            "POST /users/1 failed",
            "either/or, 3/4, 10:30, a:b, crm:users_list",
            "use `codecall:search` and/or text/html",
            r"escape \n and \\",
            "no route for /",
            "100% of 50%2 and %2F alone",
            "https://example.com/login?next=%2Fhome%2Fann",
            "a ~ b, ~/ and ~5",
        ] {
            assert!(matches!(Sanitizer::default().text(text), Cow::Borrowed(_)), "{text} -> {}", clean(text));
        }
    }

    #[test]
    fn drops_the_frames_of_stack_traces() {
        assert_eq!(clean("Error: no\n    at f (script:1:2)\n    at async run (/srv/x.js:3:4)"), "Error: no");
        assert_eq!(clean("TypeError: x\n    at <anonymous> (script:3)\nnext"), "TypeError: x\nnext");
        assert_eq!(
            clean(
                "Traceback (most recent call last):\n  File \"/a/b.py\", line 3, in f\n    g()\nValueError: bad"
            ),
            "ValueError: bad"
        );
        assert_eq!(
            clean(
                "thread 'main' panicked\nstack backtrace:\n   0: std::panicking::begin\n             at src/x.rs:1:2"
            ),
            "thread 'main' panicked"
        );
        assert_eq!(clean("meet me at noon\nat 10:30 we eat"), "meet me at noon\nat 10:30 we eat");
    }

    #[test]
    fn settings_that_are_off_leave_text_alone() {
        let off = Sanitizer { remove_stack_traces: false, remove_file_paths: false };
        let text = "E\n    at f (/srv/x.js:1:2)";
        assert_eq!(off.text(text), text);
    }

    #[test]
    fn cleans_every_string_of_a_json_value() {
        let mut value = serde_json::json!({"a": ["at /tmp/x/y"], "stack": "at f (x:1)", "n": 1});
        Sanitizer::default().json(&mut value);
        assert_eq!(value, serde_json::json!({"a": ["at [path]"], "n": 1}));
    }
}
