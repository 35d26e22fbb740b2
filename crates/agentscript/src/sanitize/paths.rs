//! File paths in a text.
//!
//! A path is: a `file:` URL; a drive path (`C:\dir\file`, `C:/dir/file`); a share (`\\host\share`); an absolute Unix path below one of
//! [`ROOTS`], or one of [`SYSTEM`] alone, or any absolute Unix path of two or more parts whose last part has a file extension; one below `~/`,
//! `./` or `../`; a relative path to a file of source code or to a line (`src/main.rs`, `lib\main.conf:3`). Separators may be
//! written `%2F`, `%5C` or `\/`. Paths may have spaces in them: Windows paths and Unix paths where the next word goes on with a
//! separator, Unix paths also as `\ ` and between quotes. The path of a URL (`https://host/a/b.json`) and routes such as
//! `/users/1` stay.

/// Replacement for a path.
const PATH: &str = "[path]";

/// First parts of absolute Unix paths that never are routes.
const ROOTS: [&str; 30] = [
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
    "data",
    "builds",
];

/// Those of them that are paths without anything below them.
const SYSTEM: [&str; 12] =
    ["root", "usr", "var", "tmp", "etc", "opt", "mnt", "proc", "sys", "sbin", "lib64", "boot"];

/// Extensions of source code and of programs.
const SOURCES: [&str; 22] = [
    "rs", "js", "mjs", "cjs", "jsx", "ts", "mts", "tsx", "py", "rb", "go", "java", "kt", "cs", "c", "cc",
    "cpp", "h", "php", "sh", "so", "dll",
];

/// The text with every path replaced, if it has any.
pub(super) fn without_paths(text: &str) -> Option<String> {
    let mut scan = Scan { text, word: None };
    let mut out = String::new();
    let mut done = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find(['/', '\\', ':', '%']) {
        let mark = at + found;
        match scan.path_around(mark) {
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

/// Looks for paths at one mark after another.
///
/// Every path that begins inside a word ends where the word ends, so that a word is read once, however many marks it has.
struct Scan<'t> {
    text: &'t str,
    word: Option<Word>,
}

/// Text up to white space, a quote or a bracket.
#[derive(Clone, Copy)]
struct Word {
    /// Start of the part that was read.
    start: usize,
    /// End of the word.
    stop: usize,
    /// End of a path in it: a closing mark of the sentence stays.
    end: usize,
    /// Its last part, separated by `/`.
    plain: LastPart,
    /// Its last part, separated by `/`, `\/`, `%2F` or `%5C`.
    encoded: LastPart,
    /// Its last part, separated by `/` or `\`, is a file of source code or a line of a file.
    is_code: bool,
}

/// The last part of a path that runs to the end of a word, separators behind it left out.
#[derive(Clone, Copy)]
struct LastPart {
    /// Start of the separator in front of it.
    separator: Option<usize>,
    has_extension: bool,
}

impl LastPart {
    /// The last part of `text[start..end]`; `separator_before` gives the start of a separator that ends at a place.
    fn of(text: &str, start: usize, end: usize, separator_before: fn(&str) -> Option<usize>) -> Self {
        let mut last = end;
        while let Some(at) = separator_before(&text[start..last]) {
            last = start + at;
        }
        let mut at = last;
        while at > start {
            if let Some(separator) = separator_before(&text[start..at]) {
                return Self {
                    separator: Some(start + separator),
                    has_extension: has_extension(&text[at..last]),
                };
            }
            at = text.floor_char_boundary(at - 1);
        }
        Self { separator: None, has_extension: false }
    }
}

fn plain_separator_before(text: &str) -> Option<usize> {
    text.ends_with('/').then(|| text.len() - 1)
}

fn separator_before(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    match bytes {
        [.., b'\\', b'/'] => Some(bytes.len() - 2),
        [.., b'/'] => Some(bytes.len() - 1),
        [.., b'%', b'2', b'f' | b'F'] | [.., b'%', b'5', b'c' | b'C'] => Some(bytes.len() - 3),
        _ => None,
    }
}

impl Scan<'_> {
    /// The word that `at` is in, from there on or from before.
    fn word(&mut self, at: usize) -> Word {
        if let Some(word) = self.word.filter(|word| (word.start..word.stop).contains(&at)) {
            return word;
        }
        let text = self.text;
        let stop = text[at..].find(ends_word).map_or(text.len(), |len| at + len);
        let end = at + text[at..stop].trim_end_matches(['.', ':', '!', '?']).len();
        let word = Word {
            start: at,
            stop,
            end,
            plain: LastPart::of(text, at, end, plain_separator_before),
            encoded: LastPart::of(text, at, end, separator_before),
            is_code: is_code(text[at..end].rsplit(['/', '\\']).next().unwrap_or_default()),
        };
        self.word = Some(word);
        word
    }

    /// Returns the end of a path that begins or goes on at `at`, up to a space.
    fn path_end(&mut self, at: usize) -> usize {
        self.word(at).end.max(at)
    }

    /// Start and end of the path whose first separator is at `mark`.
    fn path_around(&mut self, mark: usize) -> Option<(usize, usize)> {
        let (before, rest) = self.text.split_at(mark);
        let text = self.text;
        let in_word = |c: u8| c.is_ascii_alphanumeric() || c == b'+';
        // A longer word is neither a scheme nor a drive.
        let letters = before.bytes().rev().take(5).take_while(|c| in_word(*c)).count();
        let word = &before[mark - letters..];
        if let Some(behind) = rest.strip_prefix(':')
            && (behind.starts_with(['/', '\\']) || is_encoded(behind))
            && word.eq_ignore_ascii_case("file")
        {
            return Some((mark - word.len(), self.path_end(mark)));
        }
        let starts_word = |at: usize| {
            text[..at].chars().next_back().is_none_or(|c| {
                !(c.is_alphanumeric() || matches!(c, '/' | '\\' | '.' | '-' | '_' | '~' | '%'))
            })
        };
        if word.len() == 1 && word.as_bytes()[0].is_ascii_alphabetic() && starts_word(mark - 1) {
            let behind = rest
                .strip_prefix(':')
                .or_else(|| rest.strip_prefix("%3A"))
                .or_else(|| rest.strip_prefix("%3a"));
            if let Some(path) = behind
                && !rest.starts_with("://")
                && (path.starts_with(['\\', '/']) || is_encoded(path))
                && path.len() > 1
            {
                return Some((mark - 1, self.windows_end(mark + (rest.len() - path.len()))));
            }
        }
        if rest.starts_with("\\\\") && starts_word(mark) {
            return self.is_share(mark).then(|| (mark, self.windows_end(mark)));
        }
        if rest.starts_with('/')
            && before.ends_with('~')
            && starts_word(mark - 1)
            && self.path_end(mark) > mark + 1
        {
            return Some((mark - 1, self.unix_end(mark, before[..mark - 1].chars().next_back())));
        }
        let dots = before.len() - before.trim_end_matches('.').len();
        if matches!(dots, 1 | 2)
            && starts_word(mark - dots)
            && (rest.starts_with(['/', '\\']) || is_encoded(rest))
            && self.path_end(mark) > mark + 1
        {
            return Some((mark - dots, self.path_end(mark)));
        }
        if !starts_word(mark) {
            return self.relative(mark);
        }
        if rest.starts_with('/') && !rest.starts_with("//") {
            let end = self.path_end(mark);
            if SYSTEM.contains(&text[mark + 1..end.max(mark + 1)].trim_end_matches('/')) {
                return Some((mark, end));
            }
            let last = self.word(mark).plain;
            return is_unix_path(rest, mark, 1, last, |rest| rest.starts_with('/'))
                .then(|| (mark, self.unix_end(mark, before.chars().next_back())));
        }
        let separator = if rest.starts_with("\\/") { 2 } else { 3 };
        if separator == 2 || is_encoded(rest) {
            let last = self.word(mark).encoded;
            return is_unix_path(rest, mark, separator, last, |rest| {
                rest.starts_with('/') || rest.starts_with("\\/") || is_encoded(rest)
            })
            .then(|| (mark, self.path_end(mark)));
        }
        None
    }

    /// Start and end of the relative path whose first separator is at `mark`, when it leads to source code or to a line of a file.
    fn relative(&mut self, mark: usize) -> Option<(usize, usize)> {
        let text = self.text;
        if !text[mark..].starts_with(['/', '\\']) {
            return None;
        }
        let in_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '@' | '+');
        let before = text[..mark].trim_end_matches(in_part);
        let starts = before.chars().next_back().is_none_or(|c| ends_word(c) || c == '=');
        let is_code = before.len() < mark && starts && self.word(mark).is_code;
        is_code.then(|| (before.len(), self.path_end(mark)))
    }

    /// Tests for a share with a name below it at `at`: two parts that are not empty.
    fn is_share(&mut self, at: usize) -> bool {
        let end = self.path_end(at);
        // A word that goes on behind a space has a part in front of its separator.
        self.text[at..end].split('\\').filter(|part| !part.is_empty()).nth(1).is_some()
            || self.goes_on(end).is_some()
    }

    /// Returns the end of the word behind the space at `at`, when it has a `\` inside.
    fn goes_on(&mut self, at: usize) -> Option<usize> {
        let next = at + self.text[at..].strip_prefix(' ').map(|_| 1)?;
        let end = self.path_end(next);
        self.text[next..end].find('\\').filter(|inside| *inside > 0).map(|_| end)
    }

    /// As [`Scan::path_end`], but a space belongs to the path when the word behind it has a `\` inside.
    fn windows_end(&mut self, at: usize) -> usize {
        let mut end = self.path_end(at);
        while let Some(further) = self.goes_on(end) {
            end = further;
        }
        end
    }

    /// As [`Scan::path_end`], but a space belongs to the path when it is escaped, when the word behind it is the rest of a path to a
    /// file, or when the path stands behind the quote `opened` and what is left before the closing one is a word or goes on as a
    /// path.
    fn unix_end(&mut self, at: usize, opened: Option<char>) -> usize {
        let text = self.text;
        let mut end = self.path_end(at);
        if let Some(quote) = opened.filter(|c| matches!(c, '"' | '\'' | '`'))
            && let Some(closed) = text[at..].find(quote).map(|len| at + len)
            && let Some(rest) = text.get(end..closed)
            && rest.starts_with(' ')
            && !rest.contains(['\n', '\r', '"'])
        {
            let last = rest.rsplit([' ', '/']).next().unwrap_or_default();
            let one_word = !rest[1..].contains(' ') && !rest.ends_with(['.', ':', '!', '?']);
            if one_word || has_extension(last) {
                return closed;
            }
        }
        while text[end..].starts_with(' ') {
            let next = end + 1;
            let word = self.path_end(next);
            let escaped = text[..end].ends_with('\\');
            let is_rest = text[next..word].rsplit_once('/').is_some_and(|(first, last)| {
                !first.is_empty() && !first.contains(':') && has_extension(last)
            });
            if !escaped && !is_rest {
                break;
            }
            end = word;
        }
        end
    }
}

/// Tests for a percent-encoded separator at the start of the text.
fn is_encoded(text: &str) -> bool {
    text.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("%2f") || start.eq_ignore_ascii_case("%5c"))
}

/// Tests whether the path `rest`, which begins at `mark` with a separator of `separator` bytes, is below a root or leads to a file.
fn is_unix_path(
    rest: &str,
    mark: usize,
    separator: usize,
    last: LastPart,
    is_separator: fn(&str) -> bool,
) -> bool {
    if last.separator.is_none_or(|at| at <= mark) {
        return false;
    }
    let first = &rest[separator..];
    last.has_extension || ROOTS.iter().any(|root| first.strip_prefix(root).is_some_and(is_separator))
}

/// Behind a URL or a separator that begins no path.
fn skip_url(text: &str, mark: usize) -> usize {
    let Some(address) = text[mark..].strip_prefix("://") else { return mark + 1 };
    let end = address.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`'));
    mark + 3 + end.unwrap_or(address.len())
}

fn ends_word(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '"' | '\'' | '`' | '<' | '>' | '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' | '|')
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

fn is_code(part: &str) -> bool {
    let (name, line) = part.split_once(':').unwrap_or((part, ""));
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    has_extension(name) && (SOURCES.contains(&extension) || line.starts_with(|c: char| c.is_ascii_digit()))
}
