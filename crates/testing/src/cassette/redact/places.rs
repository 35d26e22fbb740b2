//! Places of secrets: headers, query parameters, form fields and JSON keys by their whole name, and a few formats that say what they are.

use std::collections::HashSet;

use regex::{Captures, Regex};
use serde_json::Value;

use super::{super::options::Redaction, REDACTED, secrets::Secrets};

/// Names of headers. Each is compared whole.
const HEADERS: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "dpop",
    "api-key",
    "x-api-key",
    "x-api-token",
    "x-auth-token",
    "x-access-token",
    "x-session-token",
    "x-refresh-token",
    "x-csrf-token",
    "x-xsrf-token",
    "x-amz-security-token",
    "x-goog-api-key",
    "x-functions-key",
    "x-vault-token",
    "x-github-token",
    "x-shopify-access-token",
    "x-subscription-token",
    "ocp-apim-subscription-key",
    "private-token",
    "job-token",
];

/// Names of JSON keys, query parameters and form fields; `_` is optional and may be `-`.
const NAMES: &[&str] = &[
    "access_token",
    "refresh_token",
    "id_token",
    "auth_token",
    "api_token",
    "session_token",
    "security_token",
    "bearer_token",
    "csrf_token",
    "registration_access_token",
    "token",
    "api_key",
    "api_secret",
    "x_api_key",
    "secret_key",
    "secret_access_key",
    "private_key",
    "secret",
    "client_secret",
    "client_assertion",
    "code_verifier",
    "device_code",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "authorization",
    "proxy_authorization",
    "set_cookie",
    "cookie",
];

/// Further names of query parameters: those of signed URLs.
const QUERY: &[&str] =
    &["sig", "signature", "x_amz_signature", "x_amz_credential", "x_amz_security_token", "x_goog_signature"];

/// Formats that only credentials have: JWTs, and tokens whose vendor marks them with a prefix.
const FORMATS: &str = r"\b(?:eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*|gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}|glpat-[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9_-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35})";

fn normal(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

/// True for a name of a place.
pub(super) fn is_name(text: &str) -> bool {
    let text = normal(text);
    NAMES.iter().chain(QUERY).any(|name| normal(name) == text)
}

/// Finds secrets by their place, replaces them, and remembers their values.
#[derive(Debug)]
pub(crate) struct Redactor {
    headers: HashSet<String>,
    keys: HashSet<String>,
    /// JSON pointers in parts, with `*` for any key or index.
    pointers: Vec<Vec<String>>,
    /// Patterns of text, each with the secret as its group `secret` or `number`.
    patterns: Vec<Pattern>,
}

#[derive(Debug)]
struct Pattern {
    regex: Regex,
    /// Matches only secrets with a digit: words follow `bearer` in prose, too.
    needs_digit: bool,
}

impl Redactor {
    pub(crate) fn new(more: &Redaction) -> Self {
        let keep: HashSet<String> = more.keep.iter().map(|name| normal(name)).collect();
        let all = |known: &[&[&str]], own: &[&[String]]| -> Vec<String> {
            let known = known.iter().copied().flatten().map(|name| (*name).to_owned());
            let own = own.iter().copied().flatten().filter(|name| !name.starts_with('/')).cloned();
            known.chain(own).filter(|name| !keep.contains(&normal(name))).collect()
        };
        let keys = all(&[NAMES], &[&more.json]);
        let pairs = all(&[NAMES, QUERY], &[&more.query, &more.form]);
        let (json, pair, field) = (pattern(&keys), pattern(&pairs), pattern(&pairs));
        let patterns = [
            // A pair in JSON, and in JSON within a JSON string.
            format!(r#"(?i)"{json}"\s*:\s*(?:"(?<secret>(?:[^"\\]|\\.)*)"|(?<number>-?[0-9][0-9.e+-]*))"#),
            format!(r#"(?i)\\+"{json}\\+"\s*:\s*\\+"(?<secret>[^"]*?)\\+""#),
            // A query parameter of any URL, a form field, a field of a multipart form.
            format!(r#"(?im)(?:^|[?&;\s"'(,>])(?:amp;)?{pair}=(?<secret>[^&#\s"'<>;\\]+)"#),
            format!(r#"(?i)\bname="{field}"[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n(?<secret>[^\r\n]+)"#),
            // The password of a URL.
            r#"://[^/\s:@"']*:(?<secret>[^/\s@"']+)@"#.to_owned(),
            format!("(?<secret>{FORMATS})"),
        ];
        let compile = |text: &str| Regex::new(text).expect("the names are escaped");
        let patterns = patterns.iter().map(|text| Pattern { regex: compile(text), needs_digit: false });
        // Credentials of HTTP authentication.
        let credentials = r"(?i)\b(?:bearer|basic|dpop)\s+(?<secret>[A-Za-z0-9._~+/=-]{16,})";
        let credentials = Pattern { regex: compile(credentials), needs_digit: true };
        let pointers = more.json.iter().filter_map(|path| path.strip_prefix('/'));
        let unescape = |part: &str| part.replace("~1", "/").replace("~0", "~");
        Self {
            headers: all(&[HEADERS], &[&more.headers]).iter().map(|name| name.to_lowercase()).collect(),
            keys: keys.iter().map(|name| normal(name)).collect(),
            pointers: pointers.map(|path| path.split('/').map(unescape).collect()).collect(),
            patterns: patterns.chain([credentials]).collect(),
        }
    }

    /// JSON without the secrets in it: values of secret keys, those at pointers, and those within text.
    pub(crate) fn json(&self, value: &Value, secrets: &mut Secrets) -> Value {
        self.value(value, &self.pointers.iter().map(Vec::as_slice).collect::<Vec<_>>(), secrets)
    }

    /// `here`: the rest of the pointers that lead through this value.
    fn value(&self, value: &Value, here: &[&[String]], secrets: &mut Secrets) -> Value {
        let below = |key: &str| -> Vec<&[String]> {
            let through = here.iter().filter_map(|path| path.split_first());
            through.filter(|(first, _)| *first == "*" || *first == key).map(|(_, rest)| rest).collect()
        };
        let is_secret = |rest: &[&[String]]| rest.iter().any(|path| path.is_empty());
        match value {
            Value::Array(items) => {
                let items = items.iter().enumerate().map(|(at, item)| {
                    let rest = below(&at.to_string());
                    if is_secret(&rest) { secret(item, secrets) } else { self.value(item, &rest, secrets) }
                });
                items.collect()
            }
            Value::Object(fields) => {
                let fields = fields.iter().map(|(key, value)| {
                    let rest = below(key);
                    let named = !value.is_object() && !value.is_array() && self.keys.contains(&normal(key));
                    let clean = match named || is_secret(&rest) {
                        true => secret(value, secrets),
                        false => self.value(value, &rest, secrets),
                    };
                    (key.clone(), clean)
                });
                Value::Object(fields.collect())
            }
            Value::String(text) => self.text(text, secrets).into(),
            plain => plain.clone(),
        }
    }

    /// Text of any kind without the secrets in it: URLs, forms, JSON, or prose with credentials.
    pub(crate) fn text(&self, text: &str, secrets: &mut Secrets) -> String {
        let mut clean = text.to_owned();
        for Pattern { regex, needs_digit } in &self.patterns {
            let replaced = regex.replace_all(&clean, |found: &Captures<'_>| {
                let all = &found[0];
                let (place, with) = match (found.name("secret"), found.name("number")) {
                    (Some(place), _) => (place, REDACTED.to_owned()),
                    (None, Some(place)) => (place, format!("\"{REDACTED}\"")),
                    (None, None) => return all.to_owned(),
                };
                if *needs_digit && !place.as_str().contains(|c: char| c.is_ascii_digit()) {
                    return all.to_owned();
                }
                secrets.learn(place.as_str());
                let at = place.start() - found.get(0).map_or(0, |whole| whole.start());
                format!("{}{with}{}", &all[..at], &all[at + place.len()..])
            });
            if let std::borrow::Cow::Owned(replaced) = replaced {
                clean = replaced;
            }
        }
        clean
    }

    /// True for the name of a header, a query parameter or a form field that holds a secret.
    #[cfg(feature = "http-mock")]
    pub(crate) fn is_place(&self, name: &str) -> bool {
        self.headers.contains(&name.to_lowercase()) || self.keys.contains(&normal(name)) || is_name(name)
    }

    /// A body: text, and JSON with pointers as JSON.
    #[cfg(feature = "http-mock")]
    pub(crate) fn body(&self, text: &str, secrets: &mut Secrets) -> String {
        if !self.pointers.is_empty()
            && let Ok(value) = serde_json::from_str::<Value>(text)
        {
            let clean = self.json(&value, secrets);
            // The text stays as it is written unless there is something to remove.
            return if clean == value { text.to_owned() } else { clean.to_string() };
        }
        self.text(text, secrets)
    }

    /// Headers without secrets; a cookie keeps its name.
    pub(crate) fn headers(
        &self,
        headers: &[(String, String)],
        secrets: &mut Secrets,
    ) -> Vec<(String, String)> {
        let clean = headers.iter().map(|(name, value)| {
            let lower = name.to_lowercase();
            if !self.headers.contains(&lower) {
                return (name.clone(), self.text(value, secrets));
            }
            let value = match lower.as_str() {
                "authorization" | "proxy-authorization" => {
                    secrets.learn_authorization(value);
                    REDACTED.to_owned()
                }
                "cookie" => cookies(value, "; ", secrets),
                "set-cookie" => match value.split_once(';') {
                    Some((cookie, rest)) => format!("{};{rest}", cookies(cookie, "; ", secrets)),
                    None => cookies(value, "; ", secrets),
                },
                _ => {
                    secrets.learn(value);
                    REDACTED.to_owned()
                }
            };
            (name.clone(), value)
        });
        clean.collect()
    }
}

/// A pattern of names, in which `_` is optional.
fn pattern(names: &[String]) -> String {
    let names = names.iter().map(|name| {
        let parts: Vec<String> = name.split(['_', '-']).map(regex::escape).collect();
        parts.join("[-_]?")
    });
    format!("(?:{})", names.collect::<Vec<_>>().join("|"))
}

/// Redacts a scalar, whose value is remembered. Null and booleans hide nothing.
fn secret(value: &Value, secrets: &mut Secrets) -> Value {
    match value {
        Value::String(text) => secrets.learn_authorization(text),
        Value::Number(number) => secrets.learn(&number.to_string()),
        Value::Null | Value::Bool(_) => return value.clone(),
        Value::Array(_) | Value::Object(_) => {}
    }
    REDACTED.into()
}

/// Cookies without their values.
fn cookies(text: &str, separator: &str, secrets: &mut Secrets) -> String {
    let clean = text.split(';').map(|pair| match pair.trim().split_once('=') {
        Some((name, value)) => {
            secrets.learn(value);
            format!("{name}={REDACTED}")
        }
        None => REDACTED.to_owned(),
    });
    clean.collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(text: &str) -> String {
        Redactor::new(&Redaction::default()).text(text, &mut Secrets::default())
    }

    #[test]
    fn names_are_compared_whole() {
        let value = json!({"total_tokens": 17, "progressToken": 7, "nextPageToken": "p2", "tokenizer": "bpe",
            "maxTokens": 100, "secretary": "Ada", "cookies": "sweet", "usage": {"prompt_tokens": 5}});
        assert_eq!(Redactor::new(&Redaction::default()).json(&value, &mut Secrets::default()), value);
        for same in [
            "?max_tokens=5&total_tokens=6",
            "the bearer of news-of-the-day-and-night",
            "{\"total_tokens\": 17}",
        ] {
            assert_eq!(text(same), same);
        }
    }

    #[test]
    fn secrets_are_found_by_key_in_query_strings_and_in_nested_text() {
        let mut secrets = Secrets::default();
        let value = json!({"access_token": "a", "deep": [{"apiKey": "b", "client-secret": 5, "name": "n"}],
            "text": "{\"refresh_token\": \"c\", \"n\": 1}", "see": "https://u:pw@a.example/x?api_key=d&q=2 now"});
        let clean = Redactor::new(&Redaction::default()).json(&value, &mut secrets);
        let wanted = json!({"access_token": REDACTED, "deep": [{"apiKey": REDACTED, "client-secret": REDACTED, "name": "n"}],
            "text": "{\"refresh_token\": \"[redacted]\", \"n\": 1}",
            "see": "https://u:[redacted]@a.example/x?api_key=[redacted]&q=2 now"});
        assert_eq!(clean, wanted);
        assert_eq!(text("grant_type=x&client_secret=y&n=1"), "grant_type=x&client_secret=[redacted]&n=1");
        assert_eq!(
            text(r#"{"body": "{\"password\": \"p\"}"}"#),
            r#"{"body": "{\"password\": \"[redacted]\"}"}"#
        );
        assert_eq!(text(r#"{"pwd": 1234, "n": 1}"#), r#"{"pwd": "[redacted]", "n": 1}"#);
        let part = "--x\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nhunter2\r\n--x--";
        assert_eq!(text(part), part.replace("hunter2", REDACTED));
        assert_eq!(
            text("use eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln or Bearer abcdefgh12345678 now"),
            "use [redacted] or Bearer [redacted] now"
        );
    }

    #[test]
    fn headers_are_compared_by_name_and_cookies_keep_theirs() {
        let redactor =
            Redactor::new(&Redaction { headers: vec!["X-Tenant-Key".into()], ..Redaction::default() });
        let headers = [
            ("set-cookie", "sid=abc; Path=/; HttpOnly", "sid=[redacted]; Path=/; HttpOnly"),
            ("x-tenant-key", "t", REDACTED),
            ("x-token-count", "5", "5"),
            ("location", "/next?token=abc", "/next?token=[redacted]"),
        ];
        for (name, value, wanted) in headers {
            let clean = redactor.headers(&[(name.into(), value.into())], &mut Secrets::default());
            assert_eq!(clean[0].1, wanted, "{name}");
        }
    }

    #[test]
    fn further_places_are_names_or_pointers_and_some_can_be_kept() {
        let more = Redaction {
            json: vec!["pin".into(), "/users/*/phone".into(), "/whole".into()],
            keep: vec!["token".into()],
            ..Redaction::default()
        };
        let value = json!({"pin": 1, "users": [{"phone": "1", "n": 2}], "phone": "3", "whole": {"a": 1}, "token": "word"});
        let clean = Redactor::new(&more).json(&value, &mut Secrets::default());
        let wanted = json!({"pin": REDACTED, "users": [{"phone": REDACTED, "n": 2}], "phone": "3", "whole": REDACTED, "token": "word"});
        assert_eq!(clean, wanted);
    }
}
