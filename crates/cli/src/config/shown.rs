//! The values of a configuration for people: without secrets, and without what variables filled in.

use std::collections::BTreeSet;

use gatewright_core::{CredentialPatterns, MASK};
use serde_json::Value;

/// Ends of keys whose texts are secrets.
const SECRETS: [&str; 11] = [
    "secret",
    "token",
    "password",
    "passwd",
    "passphrase",
    "hash",
    "key",
    "keys",
    "credential",
    "credentials",
    "cookie",
];
/// Keys below which every value may be a secret.
const HIDDEN: [&str; 4] = ["env", "headers", "defaults", "args"];
/// Parts that are not keys of the file: the contents of other files.
const CONTENTS: &str = "pins";

/// The keys of `value` with their values, sorted. `filled` has the pointers of values that variables filled in.
pub(super) fn shown(value: &Value, filled: &BTreeSet<String>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let walk = Walk { filled };
    if let Value::Object(keys) = value {
        for (key, value) in keys.iter().filter(|(key, _)| *key != CONTENTS) {
            walk.value(value, (key.clone(), format!("/{}", escaped(key))), is_secret(key), &mut all);
        }
    }
    all.sort();
    all
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn is_secret(key: &str) -> bool {
    let key = key.to_lowercase();
    SECRETS.iter().any(|end| key.ends_with(end))
}

struct Walk<'f> {
    filled: &'f BTreeSet<String>,
}

impl Walk<'_> {
    /// Adds what is at `path` and `pointer`. Of a secret nothing but its presence.
    fn value(
        &self,
        value: &Value,
        (path, pointer): (String, String),
        secret: bool,
        all: &mut Vec<(String, String)>,
    ) {
        match value {
            Value::Object(keys) if !keys.is_empty() => {
                for (key, value) in keys {
                    let below = (format!("{path}.{key}"), format!("{pointer}/{}", escaped(key)));
                    let hidden = path.rsplit('.').next().is_some_and(|last| HIDDEN.contains(&last));
                    self.value(value, below, secret && !value.is_object() || hidden || is_secret(key), all);
                }
            }
            Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
                for (at, item) in items.iter().enumerate() {
                    self.value(item, (format!("{path}[{at}]"), format!("{pointer}/{at}")), secret, all);
                }
            }
            Value::Array(items) => {
                let hidden = secret || path.rsplit('.').next().is_some_and(|last| HIDDEN.contains(&last));
                let shown = items.iter().enumerate().filter_map(|(at, item)| {
                    // Contents of policy files follow their names.
                    let is_content = item.as_str().is_some_and(|text| text.contains('\n'));
                    (!is_content).then(|| self.scalar(item, &format!("{pointer}/{at}"), hidden))
                });
                let shown: Vec<String> = shown.collect();
                all.push((path, if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }));
            }
            scalar => {
                let shown = self.scalar(scalar, &pointer, secret);
                all.push((path, shown));
            }
        }
    }

    fn scalar(&self, value: &Value, pointer: &str, secret: bool) -> String {
        if self.filled.contains(pointer) {
            return "[from a variable]".to_owned();
        }
        match value {
            Value::Bool(_) | Value::Null => value.to_string(),
            _ if secret => MASK.to_owned(),
            Value::String(text) => CredentialPatterns::usual().mask(&address(text)).into_owned(),
            other => other.to_string(),
        }
    }
}

/// An address without user, password and query; other texts as they are.
fn address(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_and_what_variables_filled_in_are_not_shown() {
        let value = json!({
            "auth": {"encryptionKey": "s1", "apiKeys": [{"name": "ci", "hash": "s2"}], "tokenStorage": {"url": "redis://u:s3@h:1/0?x=s4"}},
            "apps": {"crm": {"env": {"A": "s5"}, "headers": {"X": "s6"}, "args": ["--key", "s7"], "url": "https://h/mcp?key=s8",
                "tools": {"t": {"defaults": {"n": "s9", "deep": {"m": 1234}}}}, "timeout": "10s", "pin": true}},
            "admin": {"token": "s10", "host": "from-env"},
            "telemetry": {"otlp": {"headers": {"authorization": "s11"}}},
            "policies": ["a.cedar", "permit (\n s12 );"],
            "pins": "s13",
        });
        let filled = BTreeSet::from(["/admin/host".to_owned()]);
        let shown = shown(&value, &filled);
        let text = format!("{shown:?}");
        for secret in
            (1..=13).map(|number| format!("s{number}")).chain(["1234".to_owned(), "from-env".to_owned()])
        {
            assert!(!text.contains(&secret), "{secret} in {text}");
        }
        let of = |key: &str| shown.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        assert_eq!(of("apps.crm.timeout"), Some("10s"));
        assert_eq!(of("apps.crm.pin"), Some("true"));
        assert_eq!(of("apps.crm.url"), Some("https://h/mcp"));
        assert_eq!(of("auth.tokenStorage.url"), Some("redis://h:1/0"));
        assert_eq!(of("auth.apiKeys[0].name"), Some(MASK), "what is below a secret is one");
        assert_eq!(of("admin.token"), Some(MASK));
        assert_eq!(of("admin.host"), Some("[from a variable]"));
        assert_eq!(of("policies"), Some("a.cedar"));
    }
}
