//! Redacts secrets before a cassette is written.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

const REDACTED: &str = "[redacted]";

/// Returns true if a header, JSON key or query parameter of this name holds a secret.
fn is_secret(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let parts = [
        "token",
        "secret",
        "password",
        "passwd",
        "apikey",
        "authorization",
        "cookie",
        "credential",
        "privatekey",
    ];
    // A progress token is not a secret, and matches progress with its request.
    name != "progresstoken" && parts.iter().any(|part| name.contains(part))
}

/// The value without secrets: values of secret keys, and tokens within text.
pub(crate) fn redacted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(redacted).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| match value {
                Value::String(_) | Value::Number(_) if is_secret(key) => (key.clone(), REDACTED.into()),
                value => (key.clone(), redacted(value)),
            })
            .collect(),
        Value::String(text) => redacted_text(text).into(),
        plain => plain.clone(),
    }
}

/// Text without anything that looks like a token: a JWT, or the word after `Bearer`.
fn redacted_text(text: &str) -> String {
    static TOKENS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}|()\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*",
        )
        .expect("the pattern is valid")
    });
    TOKENS
        .replace_all(text, |found: &Captures<'_>| {
            format!("{}{REDACTED}", found.get(1).map_or("", |m| m.as_str()))
        })
        .into_owned()
}

/// A body: JSON and forms are redacted by key, other text by pattern.
#[cfg(feature = "http-mock")]
pub(crate) fn redacted_body(text: &str) -> String {
    if let Ok(json @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str::<Value>(text) {
        return redacted(&json).to_string();
    }
    let is_form = !text.contains(char::is_whitespace) && text.split('&').all(|pair| pair.contains('='));
    if is_form && !text.is_empty() { redacted_pairs(text) } else { redacted_text(text) }
}

#[cfg(feature = "http-mock")]
fn redacted_pairs(text: &str) -> String {
    let pairs = url::form_urlencoded::parse(text.as_bytes());
    let mut clean = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs {
        clean.append_pair(&name, if is_secret(&name) { REDACTED } else { &value });
    }
    clean.finish()
}

#[cfg(feature = "http-mock")]
pub(crate) fn redacted_url(text: &str) -> String {
    let Ok(mut url) = url::Url::parse(text) else { return text.to_owned() };
    if let Some(query) = url.query() {
        let clean = redacted_pairs(query);
        url.set_query(Some(&clean));
    }
    if url.password().is_some() {
        let _ = url.set_password(Some("redacted"));
    }
    url.into()
}

#[cfg(feature = "http-mock")]
pub(crate) fn redacted_headers(headers: &[(String, String)]) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| {
            (name.clone(), if is_secret(name) { REDACTED.to_owned() } else { value.clone() })
        })
        .collect()
}

#[cfg(all(test, feature = "http-mock"))]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_redacted_in_bodies_urls_headers_and_text() {
        let value = json!({"access_token": "a", "deep": [{"apiKey": "b", "name": "n"}], "progressToken": 7});
        assert_eq!(
            redacted(&value),
            json!({"access_token": REDACTED, "deep": [{"apiKey": REDACTED, "name": "n"}], "progressToken": 7})
        );
        assert_eq!(
            redacted_body("grant_type=x&client_secret=y"),
            "grant_type=x&client_secret=%5Bredacted%5D"
        );
        assert_eq!(
            redacted_url("https://a.example/?api_key=1&q=2"),
            "https://a.example/?api_key=%5Bredacted%5D&q=2"
        );
        assert_eq!(
            redacted(
                &json!({"text": "use eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln or Bearer abcdefgh12345 now"})
            ),
            json!({"text": format!("use {REDACTED} or Bearer {REDACTED} now")})
        );
        assert_eq!(redacted_body("the bearer of news"), "the bearer of news");
        let cookie = [("set-cookie".to_owned(), "s=1".to_owned())];
        assert_eq!(redacted_headers(&cookie)[0].1, REDACTED);
    }
}
