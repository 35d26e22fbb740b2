//! File paths in a text.
//!
//! A path is one word: a `file:` URL; a drive path (`C:\dir`, `C:/dir/file`); a share (`\\host\share`); what begins with `~/`, `~user/`,
//! `$NAME/`, `%NAME%\`, `./` or `../`; an absolute Unix path below one of [`ROOTS`] or a directory of this process, one of [`SYSTEM`]
//! alone, or any of two or more parts whose last has a file extension; a relative one with a line (`conf/app.toml:7`) or
//! below one of [`SOURCES`]. Separators may be written `%2F`, `%5C` or `\/`. Words behind a space belong to it where they go
//! on as a path does. The paths of URLs (`https://host/a/b.json`) and routes such as `/users/1` stay.

use std::{env, sync::LazyLock};

use super::placeholders::is_example;

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

/// First parts of relative paths to source code.
const SOURCES: [&str; 9] =
    ["src", "lib", "crates", "packages", "node_modules", "dist", "build", "target", "site-packages"];

/// Directories of this process: where it runs, where its program is, and its user's home.
static OWN: LazyLock<Vec<String>> = LazyLock::new(|| {
    let program = env::current_exe().ok().and_then(|path| path.parent().map(Into::into));
    let directories = [env::current_dir().ok(), program, env::home_dir()];
    let texts = directories.into_iter().flatten().filter_map(|path| path.to_str().map(str::to_owned));
    texts.filter(|path| path.len() > 1).collect()
});

/// The text with every path replaced up to where it is `known`, if it has any that is not known from its start.
pub(super) fn without_paths(text: &str, known: &dyn Fn(&str) -> Option<usize>) -> Option<String> {
    let (mut out, mut done, mut at) = (String::new(), 0, 0);
    while let Some(start) = text[at..].find(|c| !ends_word(c)).map(|len| at + len) {
        let word = Word::at(text, start);
        at = word.stop;
        if let Some((start, end)) = word.path() {
            at = at.max(end);
            let is_own = || OWN.iter().any(|own| text[start..end].starts_with(own.as_str()));
            let tail = match is_example(text, start, end) && !is_own() {
                true => Some(0),
                false => known(&text[start..end]),
            };
            let tail = tail.filter(|tail| text[start..end].is_char_boundary(*tail));
            if tail != Some(0) {
                out.push_str(&text[done..start]);
                out.push_str(PATH);
                done = tail.map_or(end, |tail| start + tail);
            }
        }
    }
    (done > 0).then(|| out + &text[done..])
}

/// Text up to white space, a quote or a bracket.
#[derive(Clone, Copy)]
struct Word<'t> {
    text: &'t str,
    start: usize,
    /// End without the marks that close a sentence.
    end: usize,
    stop: usize,
}

impl<'t> Word<'t> {
    fn at(text: &'t str, start: usize) -> Self {
        let stop = text[start..].find(ends_word).map_or(text.len(), |len| start + len);
        let end = start + text[start..stop].trim_end_matches(['.', ':', '!', '?']).len();
        Self { text, start, end, stop }
    }

    /// Start and end of the path in this word.
    fn path(self) -> Option<(usize, usize)> {
        let word = &self.text[self.start..self.end];
        let (at, separator) = first_separator(word)?;
        let (head, below) = (&word[..at], &word[at + separator..]);
        if let Some(scheme) = head.strip_suffix(':').filter(|_| !is_drive(head)) {
            let name = scheme.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
            if name.eq_ignore_ascii_case("file") {
                return Some((self.start + at - "file:".len(), self.end));
            }
            if word[at..].starts_with("//") {
                return None;
            }
        }
        let name_len = head.chars().rev().take_while(|c| is_name(*c)).map(char::len_utf8).sum::<usize>();
        let name = &head[at - name_len..];
        let (start, first) = (self.start + at - name_len, &word[at..=at]);
        let quote = self.text[..start].chars().next_back();
        if is_drive(head) {
            // `a:/b` is a ratio or a key and its route.
            let drive = if head.ends_with(':') { 2 } else { 4 };
            let letter = head.as_bytes()[at - drive];
            let is_path = first != "/" || letter.is_ascii_uppercase() || first_separator(below).is_some();
            return (is_path && !below.is_empty()).then(|| (self.start + at - drive, self.windows_end()));
        }
        let has_letter = below.contains(char::is_alphabetic);
        let is_path = match name {
            "" if word[at..].starts_with("\\\\") => {
                return parts(below).nth(1).is_some().then(|| (start, self.windows_end()));
            }
            "" => first != "\\" || separator == 2,
            "." | ".." => return (!below.is_empty()).then_some((start, self.end)),
            name if name.starts_with('~') => {
                let is_home = has_letter && !name[1..].starts_with(|c: char| c.is_ascii_digit());
                return is_home.then(|| (start, self.unix_end(quote)));
            }
            name if is_variable(name) => {
                return (!below.is_empty()).then(|| (start, self.windows_end()));
            }
            name => return is_source(name, &word[at - name_len..]).then_some((start, self.end)),
        };
        if !is_path || word[at..].starts_with("//") {
            return None;
        }
        // `${HOME}/x`: the brace ended a word.
        let near = self.text.floor_char_boundary(start.saturating_sub(40));
        if let Some(open) = self.text[near..start].strip_suffix('}').and_then(|before| before.rfind("${")) {
            let open = near + open;
            return (!below.is_empty()).then_some((open, self.end));
        }
        let (count, root, last) = (parts(below).count(), parts(below).next(), parts(below).last());
        let is_root = root.is_some_and(|root| match count {
            1 => SYSTEM.contains(&root),
            _ => ROOTS.contains(&root) || last.is_some_and(has_extension),
        });
        let is_own = || OWN.iter().any(|own| word[at..].starts_with(own.as_str()));
        (is_root || is_own()).then(|| (start, self.unix_end(quote)))
    }

    /// The end of a Windows path: a space belongs to it when the word behind it has a `\` inside.
    fn windows_end(self) -> usize {
        self.goes_on(|word| word.find('\\').is_some_and(|at| at > 0))
    }

    /// The end of a Unix path: a space belongs to it when it is escaped, when the word behind it is the rest of a path to a file, or when
    /// the path stands behind the quote `opened` and what is left before the closing one is a word or goes on as a path.
    fn unix_end(self, opened: Option<char>) -> usize {
        let text = self.text;
        if let Some(quote) = opened.filter(|c| matches!(c, '"' | '\'' | '`'))
            && let Some(closed) = text[self.end..].find(['\n', '\r', '"', quote]).map(|len| self.end + len)
            && text[closed..].starts_with(quote)
            && let Some(rest) = text[self.end..closed].strip_prefix(' ')
        {
            let last = rest.rsplit([' ', '/']).next().unwrap_or_default();
            if has_extension(last) || (!rest.contains(' ') && !rest.ends_with(['.', ':', '!', '?'])) {
                return closed;
            }
        }
        self.goes_on(|word| {
            word.rsplit_once('/')
                .is_some_and(|(first, last)| !first.is_empty() && !first.contains(':') && has_extension(last))
        })
    }

    /// The end of the last word of this path, of which those behind a single space are a part.
    fn goes_on(self, is_part: impl Fn(&str) -> bool) -> usize {
        let mut last = self;
        while let Some(' ') = self.text[last.end..].chars().next() {
            let next = Self::at(self.text, last.end + 1);
            if !self.text[..last.end].ends_with('\\') && !is_part(&self.text[next.start..next.end]) {
                break;
            }
            last = next;
        }
        last.end
    }
}

/// Position and length of the first separator.
fn first_separator(text: &str) -> Option<(usize, usize)> {
    text.bytes().enumerate().find_map(|(at, byte)| match byte {
        b'/' => Some((at, 1)),
        b'\\' if text[at + 1..].starts_with('/') => Some((at, 2)),
        b'\\' => Some((at, 1)),
        b'%' => {
            let code = text.get(at + 1..at + 3)?;
            ["2f", "5c"].iter().any(|it| code.eq_ignore_ascii_case(it)).then_some((at, 3))
        }
        _ => None,
    })
}

/// The parts of a path that are not empty.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(path);
    std::iter::from_fn(move || {
        let path = rest?;
        let (part, more) = match first_separator(path) {
            Some((at, len)) => (&path[..at], Some(&path[at + len..])),
            None => (path, None),
        };
        rest = more;
        Some(part)
    })
    .filter(|part| !part.is_empty())
}

/// Tests for a text that ends in the letter of a drive and a colon.
fn is_drive(head: &str) -> bool {
    let bytes = head.as_bytes();
    let letter = match bytes {
        [.., b':'] => bytes.len().checked_sub(2),
        [.., b'%', b'3', b'a' | b'A'] => bytes.len().checked_sub(4),
        _ => None,
    };
    letter.is_some_and(|at| {
        bytes[at].is_ascii_alphabetic() && head[..at].chars().next_back().is_none_or(|c| !is_name(c))
    })
}

/// Tests for `$NAME` and `%NAME%`.
fn is_variable(name: &str) -> bool {
    let inner =
        name.strip_prefix('$').or_else(|| name.strip_prefix('%').and_then(|name| name.strip_suffix('%')));
    inner.is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    })
}

/// Tests for a relative path to a line of a file, or to a file of source code below one of [`SOURCES`].
fn is_source(first: &str, path: &str) -> bool {
    let last = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let has_line =
        last.split_once(':').is_some_and(|(_, line)| line.starts_with(|c: char| c.is_ascii_digit()));
    // A host has a dot in its name.
    has_extension(last) && ((has_line && !first.contains('.')) || SOURCES.contains(&first))
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

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '~' | '%' | '$' | '+' | '@')
}

fn ends_word(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '"' | '\'' | '`' | '<' | '>' | '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' | '|')
}
