//! Values whose leak is an incident.

use std::{borrow::Cow, collections::HashSet, fmt};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::read_json;

/// A token, key, environment value, or an address that may hold a password. It has no `Display` and no `Serialize`, and its `Debug` hides it.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Secret(SecretString);

impl Secret {
    /// Hides `value`.
    pub fn new(value: impl Into<String>) -> Self {
        Self(SecretString::from(value.into()))
    }

    /// The value, for the one place that hands it on.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// The secret itself, and the credentials in it if it is the value of the header `name`, or one like it: what is behind a scheme such as `Bearer`, the
    /// password that `Basic` encodes or that an address has, values of `name=value` as in cookies, keys in JSON, and other words with letters and digits, percent-decoded as well.
    /// Whoever repeats a credential rarely repeats all of the header.
    pub fn with_parts(&self, name: &str) -> Vec<Self> {
        let mut all = vec![self.clone()];
        if !WITHOUT_CREDENTIALS.iter().any(|header| name.eq_ignore_ascii_case(header)) {
            let mut parts = parts(self.expose());
            let decoded = |part: &String| match percent_decode_str(part).decode_utf8() {
                Ok(Cow::Owned(decoded)) => Some(decoded),
                _ => None,
            };
            parts.extend(parts.iter().filter_map(decoded).collect::<Vec<_>>());
            all.extend(parts.into_iter().map(Self::new));
        }
        all
    }

    /// The text as it is, and as it stands in a URL, in a JSON text, and in Base64.
    pub fn spellings(&self) -> [String; 4] {
        let text = self.expose();
        let json = Value::from(text).to_string();
        let escaped = utf8_percent_encode(text, RESERVED).to_string();
        [text.to_owned(), escaped, json[1..json.len() - 1].to_owned(), STANDARD.encode(text)]
    }
}

/// Headers whose values are words, of which no part is a credential.
const WITHOUT_CREDENTIALS: [&str; 10] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "content-type",
    "origin",
    "pragma",
    "referer",
    "user-agent",
];
/// Characters that stand for themselves nowhere in a URL.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Longest name of a scheme of `Authorization`.
const LONGEST_SCHEME: usize = 32;
/// Shortest text in JSON that is taken for a key, if it has a digit.
const SHORTEST_KEY: usize = 12;
/// Shortest word with letters and digits that is taken for a key.
const SHORTEST_WORD: usize = 8;

fn parts(header: &str) -> Vec<String> {
    let header = header.trim();
    let mut parts = Vec::new();
    if let Ok(json @ (Value::Object(_) | Value::Array(_))) = read_json(header) {
        keys_of(&json, &mut parts);
        return parts;
    }
    let is_scheme = |word: &str| {
        word.len() <= LONGEST_SCHEME && word.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-')
    };
    let credential = match header.split_once(' ') {
        Some((scheme, rest)) if is_scheme(scheme) => {
            let rest = rest.trim();
            parts.push(rest.to_owned());
            let decoded = scheme.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(rest).ok()).flatten();
            if let Some(pair) = decoded.and_then(|pair| String::from_utf8(pair).ok()) {
                parts.extend(pair.split_once(':').map(|(_, password)| password.to_owned()));
                parts.push(pair);
            }
            rest
        }
        _ => header,
    };
    let values = credential.split([';', ',']).filter_map(|pair| pair.split_once('='));
    let values = values.map(|(_, value)| value.trim().trim_matches(['"', '=']).to_owned());
    parts.extend(values.filter(|value| !value.is_empty()));
    for piece in header.split(|c: char| c.is_whitespace() || "\"';,&".contains(c)) {
        if let Some(password) = Url::parse(piece).ok().and_then(|url| url.password().map(str::to_owned)) {
            parts.push(password);
        }
        let behind =
            [piece.split_once('='), piece.split_once(':')].into_iter().flatten().map(|(_, rest)| rest);
        let words = std::iter::once(piece).chain(behind).filter(|word| *word != header && is_key(word));
        parts.extend(words.map(str::to_owned));
    }
    let mut known = HashSet::new();
    parts.retain(|part| known.insert(part.clone()));
    parts
}

fn is_key(word: &str) -> bool {
    word.len() >= SHORTEST_WORD
        && word.bytes().any(|c| c.is_ascii_digit())
        && word.bytes().any(|c| c.is_ascii_alphabetic())
        && !word.contains("://")
}

/// Texts of `json` that look like keys.
fn keys_of(json: &Value, keys: &mut Vec<String>) {
    match json {
        Value::String(text) if text.len() >= SHORTEST_KEY && text.bytes().any(|c| c.is_ascii_digit()) => {
            keys.push(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| keys_of(item, keys)),
        Value::Object(fields) => fields.values().for_each(|value| keys_of(value, keys)),
        _ => {}
    }
}

/// For comparing two configurations. Not in constant time: an attacker chooses neither side.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown_by_debug() {
        assert_eq!(format!("{:?}", Secret::new("hunter2-hunter2")), "[redacted]");
    }

    #[test]
    fn credentials_in_the_value_of_a_header_are_its_parts() {
        let parts = |name: &str, value: &str| {
            let all = Secret::new(value).with_parts(name);
            assert_eq!(all[0].expose(), value);
            all[1..].iter().map(|part| part.expose().to_owned()).collect::<Vec<_>>()
        };
        for (value, expected) in [
            ("Bearer abc-1", &["abc-1"][..]),
            ("bearer  abc-1", &["abc-1"]),
            ("Basic dXNlcjpwYXNz", &["dXNlcjpwYXNz", "pass", "user:pass"]),
            ("Token token=\"abc\", nonce=1", &["token=\"abc\", nonce=1", "abc", "1"]),
            ("sid=abc; theme=dark", &["abc", "dark"]),
            (r#"{"type": "service_account", "keys": ["abcdefgh1234"]}"#, &["abcdefgh1234"]),
            ("abc-1", &[]),
            ("YWJjZA==", &[]),
            ("sid=a%2Bb", &["a%2Bb", "a+b"]),
            ("a=1&secret=abcd1234", &["1&secret=abcd1234", "secret=abcd1234", "abcd1234"]),
            ("redis://:pass@cache", &["pass"]),
            ("svc:abcd1234", &["abcd1234"]),
            ("abcd1234,efgh5678", &["abcd1234", "efgh5678"]),
            ("Token api key abcd1234", &["api key abcd1234", "abcd1234"]),
            ("", &[]),
        ] {
            assert_eq!(parts("X-Any", value), expected, "{value}");
        }
        assert!(parts("accept", "text/html; charset=utf-8").is_empty());
    }

    #[test]
    fn a_secret_is_spelled_as_in_urls_json_and_base64() {
        assert_eq!(Secret::new("a \"b~").spellings(), ["a \"b~", "a%20%22b~", "a \\\"b~", "YSAiYn4="]);
    }
}
