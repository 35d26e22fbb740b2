//! Removes stack traces, file paths from text that leaves the process.
//!
//! `paths` defines and finds paths; `placeholders` says which of them are examples.

mod paths;
mod placeholders;

use std::borrow::Cow;

use paths::without_paths;

use crate::excerpt;

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
    /// Returns `text` without the parts that the settings remove. Of a text longer than [`MESSAGE_BYTES`](crate::excerpt::MESSAGE_BYTES) the middle is left out
    /// before anything is looked for; time grows no faster than the length of what is left.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.text_knowing(text, &|_| None)
    }

    /// As [`Sanitizer::text`], but a path stays that the reader knows anyway, such as one that the reader sent: from the byte of it that `knows` returns.
    pub fn text_knowing<'t>(&self, text: &'t str, knows: &dyn Fn(&str) -> Option<usize>) -> Cow<'t, str> {
        let mut clean = excerpt::message(text);
        if self.remove_stack_traces
            && let Some(shorter) = without_traces(&clean)
        {
            clean = Cow::Owned(shorter);
        }
        if self.remove_file_paths
            && let Some(shorter) = without_paths(&clean, knows)
        {
            clean = Cow::Owned(shorter);
        }
        clean
    }
}

/// Returns the text without the lines of stack traces, if it has any.
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
        // A line such as `at noon` is a frame only where a trace goes on or is set off.
        let set_off = line.starts_with('\t') || line.starts_with("  ");
        if is_frame(bare) || (set_off && is_bare_frame(bare)) {
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
            || rest.ends_with("(<anonymous>)")
            || names_a_place(rest);
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

/// Tests for a frame without a file: `at Object.method`, `at new Client [as open]`, `at a.B.c(Native Method)`.
fn is_bare_frame(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("at ") else { return false };
    let rest = rest.strip_prefix("async ").or_else(|| rest.strip_prefix("new ")).unwrap_or(rest);
    let function = rest.split_once(['(', '[']).map_or(rest, |(function, _)| function).trim_end();
    let closed = rest == function || rest.ends_with([')', ']']);
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '$' | '<' | '>' | '#' | '/');
    let is_code = rest != function || function.contains(|c: char| c == '.' || c.is_uppercase());
    closed && is_code && function.starts_with(char::is_alphabetic) && function.chars().all(is_part)
}

/// Tests for what follows `at` in a frame: `f (file.js:1:2)` or `file.js:1:2`, and not a time (`Berlin (12:30:00)`) or words (`line 3:4`).
fn names_a_place(frame: &str) -> bool {
    let place = match frame.strip_suffix(')') {
        Some(inner) => inner.rsplit_once('(').map_or("", |(_, place)| place),
        None => frame.strip_prefix("async ").unwrap_or(frame),
    };
    let file = place.trim_end_matches(|c: char| c == ':' || c.is_ascii_digit());
    ends_in_position(place)
        && file.contains(|c: char| c.is_alphabetic() || c == '<')
        && (!file.contains(' ') || file.contains(['/', '\\']))
}

/// Tests for a text that ends like `file.js:12`, `file.js:12:3` or `(file.js:12:3)`.
fn ends_in_position(text: &str) -> bool {
    let text = text.strip_suffix(')').unwrap_or(text);
    text.rsplit_once(':').is_some_and(|(place, number)| {
        !place.is_empty() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
#[path = "../../../tests/growth/mod.rs"]
mod growth;

#[cfg(test)]
mod tests {
    use super::{
        growth::{SHAPES, assert_linear, repeated},
        *,
    };

    #[test]
    fn looking_for_paths_and_traces_reads_each_part_of_a_text_a_few_times_however_long_it_is() {
        for piece in SHAPES {
            for (before, after) in [("", ""), ("/home/ann/", " failed"), ("'/home/ann ", "'"), ("C:\\a ", "")]
            {
                let text = |len| format!("{before}{}{after}", repeated(piece, len));
                let what = format!("{before:?} {piece:?} … {after:?}");
                assert_linear(&what, text, |text| drop(std::hint::black_box(without_paths(text, &|_| None))));
                assert_linear(&what, text, |text| drop(std::hint::black_box(without_traces(text))));
            }
        }
    }

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
        assert_eq!(clean("open /data/x and /builds/team/x"), "open [path] and [path]");
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
            ("open ../../etc/passwd: denied", "open [path]: denied"),
            (r"open '..\..\Users\ann' or ./.env", "open '[path]' or [path]"),
            ("open ..%2F..%2Fetc%2Fpasswd", "open [path]"),
            ("in /root, in /etc/, in '/tmp'.", "in [path], in [path], in '[path]'."),
            ("error at src/main.rs:3:4, conf/app.toml:7", "error at [path], [path]"),
            (r"(lib\worker.js) failed in crates/core/src/lib.rs", "([path]) failed in [path]"),
            ("open $HOME/.ssh/id_rsa or ${HOME}/.ssh/id_rsa", "open [path] or [path]"),
            (r"open %USERPROFILE%\My Files\secret.txt now", "open [path] now"),
            ("read ~root/.bashrc and ~ann/x", "read [path] and [path]"),
            ("ENOENT:/srv/x/y, --config=/opt/gw/c", "ENOENT:[path], --config=[path]"),
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
            "wait.../then ./ and ../ 1./2",
            "GET /home, POST /run, /variables, /etcetera",
            "send text/x.y or application/vnd.api+json to example.com/app.js",
            "git@host.example:org/tool.js and crm:list/all.js",
            r"the pattern \d+\.txt and a\b",
            "~/100 of them, a:/b, $./items/0, import react/jsx-runtime.js",
            "costs $5/month or $USD per 1/2",
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
        assert_eq!(clean("E: x\n    at a.B.c(B.java:12)\n    at async file:///srv/x.mjs:3:4\n"), "E: x");
        assert_eq!(clean("E: x\n    at f (C:\\Program Files\\x y.js:1:2)"), "E: x");
        assert_eq!(
            clean("Error: x\n    at Object.open\n    at new Client\n    at async a.b [as c]\nend"),
            "Error: x\nend"
        );
        assert_eq!(clean("E: x\n\tat a.b.C.d(Native Method)\n\tat a.b.C.e(Unknown Source)"), "E: x");
        for text in [
            "meet\n  at noon or later\n  at noon",
            "meet me at noon\nat 10:30 we eat",
            "Delivery\nat Berlin (12:30:00)",
            "at line 3:4",
            "Call me\n at 10:30",
        ] {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn paths_that_are_examples_stay() {
        for text in [
            "the path must be absolute, like /path/to/report.xlsx or C:\\path\\to\\report.xlsx",
            "Path 'q1.xlsx' must be absolute, e.g. '/home/me/q1.xlsx'.",
            "use a folder such as /Users/you/data/x.csv or C:\\Users\\you\\x.csv",
            "for example /absolute/path/a.txt",
        ] {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn paths_that_may_exist_go_even_behind_the_words_for_an_example() {
        for (text, expected) in [
            ("failed for some, e.g. /home/ann/me/x.txt", "failed for some, e.g. [path]"),
            ("e.g. /home/user/app/x.txt or /root/me/x", "e.g. [path] or [path]"),
            ("cannot open /home/me/x.txt", "cannot open [path]"),
            ("cannot open /path/to/x.txt", "cannot open [path]"),
            ("e.g.\n/home/me/x.txt", "e.g.\n[path]"),
            ("e.g. /path/to/../../home/ann/x.txt", "e.g. [path]"),
            ("e.g. '/path/to/x.txt /home/ann/y.txt'", "e.g. '[path]'"),
            ("e.g. /path/to/x.txt ann/y.txt", "e.g. [path]"),
            ("e.g. /path/to/x:/home/ann/y.txt", "e.g. [path]"),
            ("e.g. C:\\Reports\\q1.xlsx", "e.g. [path]"),
            ("no /srv/path/to/x.txt", "no [path]"),
        ] {
            assert_eq!(clean(text), expected, "{text}");
        }
    }

    #[test]
    fn paths_that_the_reader_knows_stay() {
        let sent = r#"{"path": "/srv/files/a.txt", "root": "/home/ann/work"}"#;
        let knows = |path: &str| sent.contains(path).then_some(0);
        let clean = |text| Sanitizer::default().text_knowing(text, &knows).into_owned();
        assert_eq!(
            clean("/srv/files/a.txt not in /home/ann/work, /opt/gateway/data"),
            "/srv/files/a.txt not in /home/ann/work, [path]"
        );
        assert_eq!(clean("cannot open '/srv/files/a.txt'"), "cannot open '/srv/files/a.txt'");
    }

    #[test]
    fn the_directories_of_this_process_are_paths_wherever_they_are() {
        let own = std::env::current_dir().unwrap();
        assert_eq!(clean(&format!("no {}/x here", own.display())), "no [path] here");
    }

    #[test]
    fn settings_that_are_off_leave_text_alone() {
        let off = Sanitizer { remove_stack_traces: false, remove_file_paths: false };
        let text = "E\n    at f (/srv/x.js:1:2)";
        assert_eq!(off.text(text), text);
    }
}
