//! Scopes of resources by URI pattern, and of prompts by name.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    net::{Ipv4Addr, Ipv6Addr},
};

use serde::{Deserialize, Serialize};

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
pub struct UriPattern(Vec<String>);

impl UriPattern {
    /// Parses a pattern. Every text is one.
    pub fn new(pattern: &str) -> Self {
        let mut pattern = pattern.to_ascii_lowercase();
        let path = pattern.strip_prefix("file://localhost/").or_else(|| pattern.strip_prefix("file:/"));
        if let Some(path) = path.filter(|path| !path.starts_with('/')) {
            pattern = format!("file:///{path}");
        }
        Self(pattern.split('*').map(|literal| decode(literal).into_owned()).collect())
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
        let [first, rest @ ..] = &self.0[..] else { return false };
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

/// Scopes for `uri` by every pattern that matches it. A URI that servers may read as another one than it spells needs those
/// of all patterns.
pub(crate) fn scopes_of_uri<'r>(rules: &'r [(UriPattern, ScopeRule)], uri: &str) -> Vec<&'r str> {
    if rules.is_empty() {
        return Vec::new();
    }
    let (ambiguous, lowercase) = (is_ambiguous(uri), uri.to_ascii_lowercase());
    let matching = rules.iter().filter(|(pattern, _)| ambiguous || pattern.matches_lowercase(&lowercase));
    matching.flat_map(|(_, rule)| rule.scopes.iter().map(String::as_str)).collect()
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

/// Returns `true` if the part of `uri` before its path has another usual spelling: schemes of the web and `file` without `//`
/// (WHATWG URL §4.4), a file on a host (RFC 8089 §2), user information, a port that could be left out (RFC 3986 §6.2.3), and hosts
/// that are not written as a parser would print them.
fn has_ambiguous_authority(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else { return false };
    let scheme = scheme.to_ascii_lowercase();
    let default_port = match scheme.as_str() {
        "file" => return !rest.starts_with("///"),
        "http" | "ws" => Some("80"),
        "https" | "wss" => Some("443"),
        "ftp" => Some("21"),
        _ => None,
    };
    let Some(rest) = rest.strip_prefix("//") else { return default_port.is_some() };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let after_bracket = authority.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match authority[after_bracket..].find(':') {
        Some(at) => (&authority[..after_bracket + at], Some(&authority[after_bracket + at + 1..])),
        None => (authority, None),
    };
    authority.contains('@')
        || !authority.is_ascii()
        || port.is_some_and(|port| port.is_empty() || port.starts_with('0') || Some(port) == default_port)
        || host.is_empty() && default_port.is_some()
        || host.ends_with('.')
        || !is_canonical_address(host)
}

/// Returns `false` for an IP address that is written otherwise than a parser prints it, such as `127.1` or `[0:0:0:0:0:0:0:1]`.
fn is_canonical_address(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok_and(|read| read.to_string() == address);
    }
    let last = host.rsplit('.').next().unwrap_or(host);
    let is_number = last.starts_with(|first: char| first.is_ascii_digit())
        && last.trim_start_matches("0x").bytes().all(|byte| byte.is_ascii_hexdigit());
    !is_number || host.parse::<Ipv4Addr>().is_ok()
}

/// Returns `true` if a server may read `uri` as another one than a comparison of texts does: an authority with several spellings, dot
/// segments, empty segments, backslashes, control characters, and percent-encoded characters that need no encoding (RFC 3986 §6.2.2)
/// or delimit parts.
pub(crate) fn is_ambiguous(uri: &str) -> bool {
    if has_ambiguous_authority(uri) {
        return true;
    }
    let end = uri.find(['?', '#']).unwrap_or(uri.len());
    let path = uri[..end].split_once(':').map_or(&uri[..end], |(_, rest)| rest);
    let path = path.strip_prefix("//").unwrap_or(path);
    // `file:///a` has an empty authority: the segment before the first slash.
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let empty_inside = segment.is_empty() && segments.peek().is_some();
        if empty_inside || matches!(segment, "." | "..") {
            return true;
        }
    }
    let bytes = uri.as_bytes();
    bytes.iter().enumerate().any(|(at, byte)| match byte {
        b'\\' => true,
        byte if byte.is_ascii_control() => true,
        b'%' => {
            let hex = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
            match (hex(at + 1), hex(at + 2)) {
                (Some(high), Some(low)) => {
                    let byte = (high * 16 + low) as u8;
                    byte.is_ascii_alphanumeric()
                        || byte.is_ascii_control()
                        || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/' | b'\\' | b'%' | b'?' | b'#')
                }
                _ => true,
            }
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

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

    #[test]
    fn a_uri_that_could_mean_another_one_needs_the_scopes_of_every_pattern() {
        let rule = |scope: &str| ScopeRule { scopes: vec![scope.to_owned()] };
        let rules = [
            (UriPattern::new("file:///secret/*"), rule("secret")),
            (UriPattern::new("file:///other/*"), rule("other")),
        ];
        for plain in [
            "file:///public/a",
            "file:///public/a%20b",
            "notes://x",
            "file:///public/",
            "https://host:8443/a",
            "https://127.0.0.1/a",
            "https://[::1]:8443/a",
            "https://1.example/a",
            "notes:a",
            "notes:/a",
            "urn:x:a@b",
            "notes://cafe/a",
        ] {
            assert_eq!(scopes_of_uri(&rules, plain), Vec::<&str>::new(), "{plain}");
        }
        assert_eq!(scopes_of_uri(&rules, "file:///secret/a"), ["secret"]);
        for other_spelling in [
            "file:///public/../secret/a",
            "file:////secret/a",
            "file:///./secret/a",
            "file:///%73ecret/a",
            "file:///public%2f..%2fsecret/a",
            "file:///public\\..\\secret/a",
            "file:///secre%",
            "file:///sec\tret/a",
            "file:/secret/a",
            "FILE:secret/a",
            "file:a",
            "file://localhost/secret/a",
            "file://LOCALHOST:0/secret/a",
            "file://ada@localhost/secret/a",
            "file://127.0.0.1/secret/a",
            "file://",
            "http:host/a",
            "https:/host/a",
            "https:///host/a",
            "https://host:443/a",
            "https://host:/a",
            "https://host:08443/a",
            "https://host./a",
            "https://ada@host/a",
            "https://127.1/a",
            "https://0x7f.0.0.1/a",
            "https://2130706433/a",
            "https://[0:0:0:0:0:0:0:1]/a",
            "https://h\u{f6}st/a",
            "notes://ada@host/a",
        ] {
            assert_eq!(scopes_of_uri(&rules, other_spelling), ["secret", "other"], "{other_spelling}");
        }
    }

    #[test]
    fn matching_takes_time_that_grows_with_the_length_only() {
        let pattern = UriPattern::new("x*aab*aab*aab*aac");
        let time = |length: usize| {
            let uri = format!("x{}", "a".repeat(length));
            let best = (0..5).map(|_| {
                let start = Instant::now();
                assert!(!pattern.matches(&uri) && !is_ambiguous(&uri));
                start.elapsed()
            });
            best.min().unwrap_or_default()
        };
        let (short, long) = (time(400_000), time(1_600_000));
        assert!(long < short * 10 + std::time::Duration::from_millis(5), "{short:?} {long:?}");
    }
}
