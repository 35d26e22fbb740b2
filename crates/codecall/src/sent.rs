//! Texts that a caller sent, and the roots of its client. Errors may repeat the paths in them; all others are replaced.

use std::{cell::Cell, sync::Arc};

use gatewright_agentscript::Sanitizer;
use gatewright_core::{
    App, Caller, OwnPaths, Roots,
    rmcp::{RoleServer, model::JsonObject, service::Peer},
};
use serde_json::Value;

/// The beginnings of texts that may have paths in them, one a line, with plain separators; the roots of the client, and the folders of the app that was called.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentTexts {
    texts: String,
    roots: Arc<Roots>,
    folders: Arc<Roots>,
}

/// Bytes that are kept in all, and of one text.
const MOST_BYTES: usize = 64 * 1024;
const MOST_TEXT_BYTES: usize = 32 * 1024;
/// Longest text that is taken for the name of a file.
const MOST_NAME_BYTES: usize = 128;
/// Values of an input that are looked at.
const MOST_VALUES: usize = 2_000;
/// Last parts of a path that are looked for alone.
const MOST_TAIL: usize = 4;
/// Paths of one message that are looked for; those behind are replaced.
const MOST_PATHS: usize = 20;
const SEPARATORS: [char; 2] = ['/', '\\'];

impl SentTexts {
    /// The texts of the input of a call.
    pub(crate) fn of_input(input: &JsonObject) -> Self {
        let mut sent = Self::default();
        sent.add_input(input);
        sent
    }

    /// Adds as much of `text` as there is room for.
    pub(crate) fn add(&mut self, text: &str) {
        let room = MOST_BYTES.saturating_sub(self.texts.len()).min(MOST_TEXT_BYTES);
        let text = &text[..text.floor_char_boundary(room)];
        let is_name = text.len() <= MOST_NAME_BYTES && !text.contains(char::is_whitespace);
        if !text.is_empty() && (is_name || text.contains(SEPARATORS)) {
            self.texts += &plain(text.strip_prefix("./").unwrap_or(text));
            self.texts.push('\n');
        }
    }

    fn add_input(&mut self, input: &JsonObject) {
        let mut left = MOST_VALUES;
        self.add_members(input, &mut left);
    }

    fn add_members(&mut self, members: &JsonObject, left: &mut usize) {
        for (name, member) in members.iter().take(*left) {
            self.add(name);
            self.add_value(member, left);
        }
    }

    fn add_value(&mut self, value: &Value, left: &mut usize) {
        if *left == 0 {
            return;
        }
        *left -= 1;
        match value {
            Value::String(text) => self.add(text),
            Value::Array(items) => items.iter().take(*left).for_each(|item| self.add_value(item, left)),
            Value::Object(members) => self.add_members(members, left),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Adds what another has, as far as there is room.
    pub(crate) fn extend(&mut self, other: &Self) {
        let room = MOST_BYTES.saturating_sub(self.texts.len());
        self.texts += &other.texts[..other.texts.floor_char_boundary(room)];
        if self.roots != other.roots && *other.roots != Roots::default() {
            self.roots = other.roots.clone();
        }
        if *other.folders != Roots::default() {
            self.folders = other.folders.clone();
        }
    }

    /// Adds the folders of `app`, which was called, and the roots of the client of `caller`, which is asked for them, if `message` may have a path that they
    /// matter for.
    pub(crate) async fn add_roots(
        &mut self,
        sanitizer: Sanitizer,
        message: &str,
        caller: &Caller,
        peer: &Peer<RoleServer>,
        own: &OwnPaths,
        app: Option<&dyn App>,
    ) {
        if sanitizer.remove_file_paths && message.contains(SEPARATORS) {
            self.roots = caller.roots(peer, own).await;
            self.folders =
                Arc::new(app.map_or_else(Roots::default, |app| Roots::of_paths(&app.folders(), own)));
        }
    }

    /// The place of the separator in `path` behind which it ends as a whole text does: one that a server made absolute.
    fn tail(&self, path: &str) -> Option<usize> {
        let starts = path.rmatch_indices(SEPARATORS).take(MOST_TAIL).map(|(at, _)| at);
        let is_text = |at: &usize| {
            let tail = path[at + 1..].trim_end_matches(SEPARATORS);
            !tail.is_empty() && self.texts.lines().any(|text| text.trim_end_matches(SEPARATORS) == tail)
        };
        starts.filter(is_text).last()
    }

    /// Tests for a path that stands in the texts, whole or as the beginning of a longer one.
    fn has(&self, path: &str) -> bool {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let begins = |before: &str| {
            let goes_on =
                |c: char| is_name(c) || SEPARATORS.contains(&c) || matches!(c, '.' | '~' | '$' | '%');
            before.ends_with("://") || !before.ends_with(goes_on)
        };
        let mut found = self.texts.match_indices(path);
        found.any(|(at, _)| begins(&self.texts[..at]) && !self.texts[at + path.len()..].starts_with(is_name))
    }
}

/// The text with separators that are not escaped.
fn plain(text: &str) -> String {
    text.replace("\\\\", "\\").replace("\\/", "/")
}

/// Cleans a message for the caller who sent these texts.
pub(crate) fn clean(sanitizer: Sanitizer, message: &str, sent: &SentTexts) -> String {
    let left = Cell::new(MOST_PATHS);
    let knows = |path: &str| {
        left.set(left.get().checked_sub(1)?);
        let whole = plain(path.strip_prefix("file://").unwrap_or(path));
        let whole = whole.trim_end_matches(SEPARATORS);
        match !whole.is_empty()
            && (sent.has(whole) || sent.roots.contain(whole) || sent.folders.contain(whole))
        {
            true => Some(0),
            false => sent.tail(path),
        }
    };
    sanitizer.text_knowing(message, &knows).into_owned()
}

#[cfg(test)]
#[path = "../../../tests/growth/mod.rs"]
mod growth;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        growth::{SHAPES, assert_linear, assert_linear_up_to, repeated},
        *,
    };

    fn cleaned(sent: &SentTexts, message: &str) -> String {
        clean(Sanitizer::default(), message, sent)
    }

    #[test]
    fn paths_that_were_sent_stay_in_any_spelling_and_others_go() {
        let input = json!({"files": [{"at": "/srv/files/a.txt"}], "/etc/hosts": r"C:\Users\ann\x", "uri": "file:///opt/x/y"});
        let sent = SentTexts::of_input(input.as_object().unwrap());
        for (message, expected) in [
            ("/srv/files/a.txt not in /srv/data", "/srv/files/a.txt not in [path]"),
            ("no '/srv/files/' or /etc/hosts", "no '/srv/files/' or /etc/hosts"),
            (r"no C:\Users\ann\x or D:\Users\ann\x", r"no C:\Users\ann\x or [path]"),
            (r#"{"at":"C:\\Users\\ann\\x"}"#, r#"{"at":"C:\\Users\\ann\\x"}"#),
            ("no /opt/x/y, file:///srv/files/a.txt", "no /opt/x/y, file:///srv/files/a.txt"),
            ("/srv/file and /srv/files/a.txt/b", "[path] and [path]"),
        ] {
            assert_eq!(cleaned(&sent, message), expected);
        }
    }

    #[test]
    fn of_a_path_that_a_server_made_absolute_the_part_stays_that_was_sent() {
        let input = json!({"repo_path": "repo", "file": "./docs/a b.md", "label": "ann"});
        let sent = SentTexts::of_input(input.as_object().unwrap());
        for (message, expected) in [
            ("/work/x/repo", "[path]/repo"),
            ("no such file: '/srv/files/docs/a b.md'", "no such file: '[path]/docs/a b.md'"),
            ("/srv/docs/b.md, /srv/myrepo and /srv/repo/x", "[path], [path] and [path]"),
            ("/home/ann/secret", "[path]"),
        ] {
            assert_eq!(cleaned(&sent, message), expected);
        }
    }

    #[test]
    fn paths_below_the_roots_of_the_client_stay() {
        let own =
            OwnPaths { home: Some("/root/ann".to_owned()), others: vec!["/data/gateway.yaml".to_owned()] };
        let of = |uri: &str| SentTexts { roots: Arc::new(Roots::new([uri], &own)), ..SentTexts::default() };
        for (root, message, expected) in [
            ("file:///data", "no /data/a.txt in /srv/data", "no /data/a.txt in [path]"),
            (
                "file:///data",
                "no file:///data/a.txt, '/data/my files/x'",
                "no file:///data/a.txt, '/data/my files/x'",
            ),
            ("file:///data", "cannot read /data/gateway.yaml", "cannot read [path]"),
            ("file:///data", "no '/data/x and /etc/passwd'", "no '/data/x and [path]'"),
            ("file:///data", "no /data/../etc/passwd", "no [path]"),
            (
                "file:///c%3A/Users/ann",
                r"no C:\Users\ann\x or c:\Users\ann\x",
                r"no [path] or c:\Users\ann\x",
            ),
            ("file:///", "no /data/a.txt", "no [path]"),
            ("file:///root", "no /root/ann/.ssh/id_rsa", "no [path]"),
        ] {
            assert_eq!(cleaned(&of(root), message), expected, "{root}");
        }
        let of_app = Roots::of_paths(&["/data/100%".to_owned(), "/root/ann/files".to_owned()], &own);
        let sent = SentTexts { folders: Arc::new(of_app), ..SentTexts::default() };
        assert_eq!(
            cleaned(&sent, "/etc/passwd not in /data/100%, /data/gateway.yaml"),
            "[path] not in /data/100%, [path]"
        );
        assert_eq!(
            cleaned(&sent, "no /root/ann/files/x, no /root/ann/.ssh/x"),
            "no /root/ann/files/x, no [path]"
        );
        let mut both = SentTexts::default();
        both.extend(&of("file:///data"));
        both.extend(&SentTexts::default());
        assert_eq!(cleaned(&both, "no /data/x"), "no /data/x");
    }

    #[test]
    fn what_is_kept_and_looked_for_is_bounded() {
        let input: JsonObject = (0..9).map(|n| (n.to_string(), json!("/a".repeat(MOST_BYTES)))).collect();
        let mut sent = SentTexts::of_input(&input);
        sent.extend(&sent.clone());
        assert!(sent.texts.len() <= MOST_BYTES + 9, "{} bytes", sent.texts.len());
        let many: JsonObject = (0..9_000).map(|n| (format!("/home/{n}"), json!(null))).collect();
        let sent = SentTexts::of_input(&many);
        let message = cleaned(&sent, &"/home/1 ".repeat(100));
        assert_eq!(message.matches("/home/1").count(), MOST_PATHS);
        for piece in SHAPES {
            let sent = |len| repeated(piece, len);
            let look = |text: &str| {
                let mut sent = SentTexts::default();
                sent.add(text);
                drop(std::hint::black_box(cleaned(&sent, "no /home/ann/x here")));
            };
            assert_linear(piece, sent, look);
            // Both as long as they may be.
            assert_linear_up_to(8 * 1024, piece, sent, |text| {
                let mut sent = SentTexts::default();
                sent.add(text);
                drop(std::hint::black_box(cleaned(&sent, text)));
            });
        }
    }
}
