//! Scopes of resources by URI pattern, and of prompts by name.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};

use super::plain::is_plain;

/// Scopes that a caller needs, all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ScopeRule {
    /// Scopes a caller needs, all of them, besides those of the app.
    pub scopes: Vec<String>,
}

/// A pattern of URIs, in which `*` stands for any text, `/` included. Letter case is ignored.
///
/// A URI is also matched without its fragment, and without its query. Percent-encoded characters are equal to plain ones, and
/// `file:/a` and `file://localhost/a` in a pattern to `file:///a` (RFC 8089 appendix B).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriPattern {
    /// The texts between the stars.
    literals: Vec<String>,
    /// `None` if a star stands for it.
    scheme: Option<String>,
    names_port: bool,
}

impl UriPattern {
    /// Parses a pattern. Every text is one.
    pub fn new(pattern: &str) -> Self {
        let mut pattern = pattern.to_ascii_lowercase();
        let path = pattern.strip_prefix("file://localhost/").or_else(|| pattern.strip_prefix("file:/"));
        if let Some(path) = path.filter(|path| !path.starts_with('/')) {
            pattern = format!("file:///{path}");
        }
        let (scheme, rest) = pattern.split_once("://").unwrap_or((&pattern, ""));
        let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
        let port = authority.rsplit_once(':').map(|(_, port)| port).unwrap_or_default();
        Self {
            literals: pattern.split('*').map(|literal| decode(literal).into_owned()).collect(),
            scheme: (!scheme.contains('*')).then(|| scheme.split(':').next().unwrap_or_default().to_owned()),
            names_port: !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()),
        }
    }

    /// Returns `true` if `uri` fits, in time that grows with its length and that of the pattern.
    pub fn matches(&self, uri: &str) -> bool {
        self.matches_lowercase(&uri.to_ascii_lowercase())
    }

    fn matches_lowercase(&self, uri: &str) -> bool {
        let cut = |at: char| uri.find(at).map(|at| &uri[..at]);
        [Some(uri), cut('#'), cut('?')].into_iter().flatten().any(|uri| self.fits(&decode(uri)))
    }

    fn fits(&self, text: &str) -> bool {
        let [first, rest @ ..] = &self.literals[..] else { return false };
        let Some([middle @ .., last]) = (!rest.is_empty()).then_some(rest) else { return text == first };
        let Some(mut text) = text.strip_prefix(first.as_str()) else { return false };
        for literal in middle {
            // The leftmost place leaves most for what follows.
            let Some(at) = text.find(literal.as_str()) else { return false };
            text = &text[at + literal.len()..];
        }
        text.ends_with(last.as_str())
    }
}

/// Scopes for `uri` by every pattern that matches it, for a URI that the app lists in these words (`is_listed`) or that has one
/// spelling. Every other URI may name to its server what another one names here: it needs those of all patterns.
pub(crate) fn scopes_of_uri<'r>(
    rules: &'r [(UriPattern, ScopeRule)],
    uri: &str,
    is_listed: bool,
) -> Vec<&'r str> {
    if rules.is_empty() {
        return Vec::new();
    }
    let is_clear = is_listed || plain_port(rules, uri).is_some_and(|with_port| is_plain(uri, with_port));
    let lowercase = if is_clear { uri.to_ascii_lowercase() } else { String::new() };
    let matching = rules.iter().filter(|(pattern, _)| !is_clear || pattern.matches_lowercase(&lowercase));
    matching.flat_map(|(_, rule)| rule.scopes.iter().map(String::as_str)).collect()
}

/// Returns `true` if a plain URI of the scheme of `uri` has a port, as all patterns of that scheme do; `false` if none of them has
/// one, and `None` if they differ.
fn plain_port(rules: &[(UriPattern, ScopeRule)], uri: &str) -> Option<bool> {
    let scheme = uri.split_once(':')?.0;
    let mut of_scheme = rules
        .iter()
        .map(|(pattern, _)| pattern)
        // A lone star matches with and without.
        .filter(|pattern| pattern.literals.iter().any(|literal| !literal.is_empty()))
        .filter(|pattern| pattern.scheme.as_deref().is_none_or(|own| own == scheme))
        .map(|pattern| pattern.names_port);
    let first = of_scheme.next().unwrap_or(false);
    of_scheme.all(|names_port| names_port == first).then_some(first)
}

/// The rules of a configuration, with their patterns read.
pub(crate) fn all_scopes(rules: &BTreeMap<String, ScopeRule>) -> Vec<(UriPattern, ScopeRule)> {
    rules.iter().map(|(pattern, rule)| (UriPattern::new(pattern), rule.clone())).collect()
}

/// Percent-decodes `text` and lowers its ASCII letters. What is not UTF-8 afterwards becomes U+FFFD.
fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (byte, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(((high * 16 + low) as u8).to_ascii_lowercase());
                rest = &after[2..];
            }
            _ => bytes.push(*byte),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
#[path = "../../../../tests/growth/mod.rs"]
mod growth;

#[cfg(test)]
mod tests {
    use super::{
        growth::{SHAPES, assert_linear, repeated},
        *,
    };

    #[test]
    fn a_star_stands_for_any_text_and_everything_else_for_itself() {
        for (pattern, uri, fits) in [
            ("file:///secret/*", "file:///secret/a/b.txt", true),
            ("file:///secret/*", "FILE:///Secret/a", true),
            ("file:///secret/*", "file:///public/a", false),
            ("*", "any://thing", true),
            ("notes://{user}/private", "notes://{user}/private", true),
            ("notes://*/private", "notes://ada/private", true),
            ("notes://*/private", "notes://ada/private/more", false),
            ("notes://a*b*c", "notes://a-b-b-c", true),
            ("notes://a*a", "notes://a", false),
            ("notes://one", "notes://one#part", true),
            ("notes://one", "notes://one?x=1", true),
            ("notes://one", "notes://one/two", false),
            ("file:///my files/*", "file:///my%20files/a", true),
            ("file:///my%20files/*", "file:///my files/a", true),
            ("file:///caf\u{e9}/*", "file:///caf%C3%A9/a", true),
            ("file:///%41*", "file:///a", true),
            ("file:/secret/*", "file:///secret/a", true),
            ("file://localhost/secret/*", "file:///secret/a", true),
        ] {
            assert_eq!(UriPattern::new(pattern).matches(uri), fits, "{pattern} {uri}");
        }
    }

    fn rules(patterns: &[(&str, &str)]) -> Vec<(UriPattern, ScopeRule)> {
        let rule = |(pattern, scope): &(&str, &str)| {
            (UriPattern::new(pattern), ScopeRule { scopes: vec![(*scope).to_owned()] })
        };
        patterns.iter().map(rule).collect()
    }

    #[test]
    fn a_plain_uri_is_judged_by_the_patterns_that_match_it_and_every_other_needs_all_scopes() {
        let rules = rules(&[("file:///secret/*", "secret"), ("https://host/other/*", "other")]);
        for plain in [
            "file:///public/a",
            "file:///public/a%20b",
            "file:///public/.hidden/a..b",
            "notes://x",
            "notes://7/a",
            "https://host/a/B~c(1),d=e!",
            "https://host/%7Bid%7D",
            "https://127.0.0.1/a",
            "https://1.example/a",
            "postgres://my_db/table",
        ] {
            assert_eq!(scopes_of_uri(&rules, plain, false), Vec::<&str>::new(), "{plain}");
        }
        assert_eq!(scopes_of_uri(&rules, "file:///secret/a", false), ["secret"]);
        assert_eq!(scopes_of_uri(&rules, "https://host/OTHER/a", false), ["other"]);
        for other_spelling in [
            "file:///public/../secret/a",
            "file:////secret/a",
            "file:///./secret/a",
            "file:///secret./a",
            "file:///secret%20/a",
            "file:///public/",
            "file:///",
            "file:///%73ecret/a",
            "file:///public/a%c3%a9",
            "file:///public/%C3%A9",
            "file:///public/\u{e9}",
            "file:///public/a b",
            "file:///public%2f..%2fsecret/a",
            "file:///public%2F..%2Fsecret/a",
            "file:///public/%252E%252E/secret/a",
            "file:///public\\..\\secret/a",
            "file:///public%5Csecret",
            "file:///public/a%7b",
            "file:///secre%",
            "file:///secre%5",
            "file:///sec\tret/a",
            "file:///a;x/b",
            "file:///srv/?/../secret/x.txt",
            "file:///srv/a.txt#/../secret/x.txt",
            "file:///srv/a?x=1",
            "file:/secret/a",
            "FILE:secret/a",
            "FILE:///secret/a",
            " file:///secret/a",
            "file:a",
            "file://localhost/secret/a",
            "file://127.0.0.1/secret/a",
            "file://",
            "http:host/a",
            "https:/host/a",
            "https:///host/a",
            "https://host",
            "https://Host/a",
            "https://host:443/a",
            "https://host:444/a",
            "https://host:/a",
            "https://host:08443/a",
            "https://host./a",
            "https://.host/a",
            "https://ada@host/a",
            "https://127.1/a",
            "https://0x7f.0.0.1/a",
            "https://127.0.0.0x1/a",
            "https://2130706433/a",
            "https://[::1]/a",
            "https://h\u{f6}st/a",
            "https://ho%E2%80%8Bst/a",
            "https://xn--hst-sna/a",
            "notes://ada@host/a",
            "notes:a",
            "notes:/a",
            "notes:///a",
            "notes://x/",
            "urn:x:a",
            "a",
            "",
        ] {
            assert_eq!(scopes_of_uri(&rules, other_spelling, false), ["secret", "other"], "{other_spelling}");
        }
    }

    #[test]
    fn what_the_app_lists_in_the_same_words_is_judged_by_the_patterns_alone() {
        let rules = rules(&[("notes://secret*", "secret"), ("notes://other/*", "other")]);
        for (uri, scopes) in [
            ("notes://search?q=caf\u{e9}", &[][..]),
            ("notes://caf%C3%A9/", &[]),
            ("notes:a", &[]),
            ("notes://secret?q=1", &["secret"]),
            ("notes://%73ecret", &["secret"]),
        ] {
            assert_eq!(scopes_of_uri(&rules, uri, true), scopes, "{uri}");
        }
    }

    #[test]
    fn a_port_is_plain_where_every_pattern_of_the_scheme_has_one() {
        let with = rules(&[("https://host:8443/secret/*", "a"), ("file:///x/*", "b")]);
        let mixed = rules(&[("https://host:8443/secret/*", "a"), ("https://other/*", "b")]);
        let without = rules(&[("note://box/secret", "a"), ("*", "b")]);
        for (rules, uri, scopes) in [
            (&with, "https://host:8443/open", &[][..]),
            (&with, "https://host:8443/secret/1", &["a"]),
            (&with, "https://host:08443/open", &["a", "b"]),
            (&with, "https://host:99999/open", &["a", "b"]),
            (&with, "https://host:+844/open", &["a", "b"]),
            (&with, "https://host/open", &["a", "b"]),
            (&with, "file:///open", &[]),
            (&mixed, "https://host:8443/open", &["a", "b"]),
            (&mixed, "https://host/open", &["a", "b"]),
            (&without, "note://box/open", &["b"]),
            (&without, "note://box:80/secret", &["a", "b"]),
        ] {
            assert_eq!(scopes_of_uri(rules, uri, false), scopes, "{uri}");
        }
    }

    #[test]
    fn matching_takes_work_in_proportion_to_the_length() {
        for pattern in ["x*aab*aab*aab*aac", "*", "file:///a*/a*/secret", "*%2f*", "x*a*a*a*a*b"] {
            let rules = rules(&[(pattern, "s"), ("https://host:8443/*", "t")]);
            for piece in SHAPES.into_iter().chain(["aab", "a", "?", "#", "a.", "1."]) {
                for prefix in ["x", "https://host:8443/"] {
                    let uri = |len: usize| format!("{prefix}{}", repeated(piece, len));
                    assert_linear(&format!("{pattern} on {prefix}{piece}"), uri, |uri| {
                        drop(std::hint::black_box(scopes_of_uri(&rules, uri, false)));
                        drop(std::hint::black_box(scopes_of_uri(&rules, uri, true)));
                        std::hint::black_box(is_plain(uri, true));
                    });
                }
            }
        }
        let long = |len: usize| "*a".repeat(len / 2);
        assert_linear("a long pattern", long, |pattern| {
            std::hint::black_box(UriPattern::new(pattern).matches("aaaaaaaaaaaaaaaab"));
        });
    }
}
