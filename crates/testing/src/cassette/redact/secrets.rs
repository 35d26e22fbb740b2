//! Values of secrets, removed wherever they appear in the cassette.

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::{Engine, engine::general_purpose::STANDARD};

use super::{REDACTED, places};

/// Number of values that are remembered.
const MOST_VALUES: usize = 1000;
/// Length from which a value is removed within longer words, too.
const LONG: usize = 16;

/// Secrets that one recording has seen, in their plain, percent-encoded and JSON-escaped forms.
#[derive(Default)]
pub(crate) struct Secrets {
    values: BTreeSet<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.values.len())
    }
}

impl Secrets {
    /// Remembers a value, unless it is too common a text to be told apart elsewhere.
    pub(crate) fn learn(&mut self, value: &str) {
        let value = value.trim();
        if !is_distinctive(value) || value.contains(REDACTED) || self.values.len() >= MOST_VALUES {
            return;
        }
        let encoded: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
        let escaped = serde_json::Value::from(value).to_string();
        let decoded = percent_decoded(value);
        self.values.extend([value.to_owned(), encoded, escaped.trim_matches('"').to_owned(), decoded]);
    }

    /// Remembers the credentials in `Authorization`: the token, and the password of HTTP Basic.
    pub(crate) fn learn_authorization(&mut self, value: &str) {
        let (scheme, credentials) = value.trim().split_once(' ').unwrap_or(("", value));
        let is_scheme =
            ["bearer", "basic", "dpop", "token"].iter().any(|one| scheme.eq_ignore_ascii_case(one));
        self.learn(if is_scheme { credentials } else { value });
        if scheme.eq_ignore_ascii_case("basic")
            && let Some(text) =
                STANDARD.decode(credentials.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok())
            && let Some((_, password)) = text.split_once(':')
        {
            self.learn(password);
        }
    }

    /// A function that replaces the values in a text.
    pub(crate) fn scrubber(&self) -> impl Fn(&str) -> String {
        let finder = (!self.values.is_empty())
            .then(|| AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&self.values).ok())
            .flatten();
        move |text: &str| {
            let Some(finder) = &finder else { return text.to_owned() };
            let (mut clean, mut end) = (String::new(), 0);
            for found in finder.find_iter(text) {
                let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
                let inside = word(text[..found.start()].chars().next_back())
                    || word(text[found.end()..].chars().next());
                if inside && found.len() < LONG {
                    continue;
                }
                clean.push_str(&text[end..found.start()]);
                clean.push_str(REDACTED);
                end = found.end();
            }
            clean.push_str(&text[end..]);
            clean
        }
    }
}

fn percent_decoded(value: &str) -> String {
    let pair = format!("x={}", value.replace('&', "%26").replace('+', "%2B"));
    url::form_urlencoded::parse(pair.as_bytes())
        .next()
        .map_or_else(String::new, |(_, value)| value.into_owned())
}

/// True if a text can be told apart from others: replacing `test` or `true` everywhere would corrupt a recording.
fn is_distinctive(value: &str) -> bool {
    let letters = value.chars().count();
    let lower = value.chars().any(char::is_lowercase);
    let upper = value.chars().skip(1).any(char::is_uppercase);
    let is_word = value.chars().all(char::is_alphabetic) && !(lower && upper);
    let long_enough = if is_word { letters >= 8 } else { letters >= 5 };
    long_enough && !places::is_name(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubbed(secrets: &[&str], text: &str) -> String {
        let mut all = Secrets::default();
        secrets.iter().for_each(|one| all.learn(one));
        all.scrubber()(text)
    }

    #[test]
    fn a_short_value_is_removed_as_a_word_and_a_long_one_anywhere() {
        assert_eq!(scrubbed(&["k-123"], "key k-123, not ak-1234"), "key [redacted], not ak-1234");
        let long = "0123456789abcdef";
        assert_eq!(scrubbed(&[long], &format!("x{long}y")), "x[redacted]y");
        assert_eq!(scrubbed(&["a b&c\"1"], "a+b%26c%221 and a b&c\\\"1"), "[redacted] and [redacted]");
    }

    #[test]
    fn common_words_stay() {
        for word in ["test", "string", "x", "password", "true"] {
            assert_eq!(scrubbed(&[word], &format!("a {word}")), format!("a {word}"));
        }
        assert_eq!(scrubbed(&["swordfish"], "the swordfish"), "the [redacted]");
    }

    #[test]
    fn the_password_of_http_basic_is_known_by_itself() {
        let mut all = Secrets::default();
        all.learn_authorization(&format!("Basic {}", STANDARD.encode("ada:hunter2")));
        assert_eq!(all.scrubber()("hunter2 YWRhOmh1bnRlcjI="), "[redacted] [redacted]");
    }
}
