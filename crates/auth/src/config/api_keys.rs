//! `apiKeys`: static API keys in the configuration.

use std::{collections::HashSet, time::UNIX_EPOCH};

use data_encoding::HEXLOWER;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{AuthConfig, Mode};
use crate::{api_keys::check_name, scopes::USER_SCOPES};

/// An API key that the configuration gives.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiKeyConfig {
    /// Its name: 1 to 64 letters, digits, `.`, `_` and `-`. Subject and client of its caller are `key:` and this name.
    pub name: String,
    /// `sha256:` and the SHA-256 of the key in 64 hexadecimal digits, as `gatewright api-key generate` prints it.
    #[schemars(with = "String")]
    pub hash: ApiKeyHash,
    /// Scopes that it grants, of `auth.scopes`. What is taken out there is taken from the key, too.
    pub scopes: Vec<String>,
    /// Endpoints that it opens, by name; `main` is the main one. Default: the main one, and those with `audience: shared`.
    #[serde(default)]
    pub endpoints: Vec<String>,
    /// Time from which it is refused, in UTC: `2027-01-31`, or `2027-01-31T12:00:00Z`. Never when absent.
    #[schemars(with = "Option<String>")]
    pub expires: Option<Expiry>,
}

/// The SHA-256 of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct ApiKeyHash(pub(crate) [u8; 32]);

impl TryFrom<String> for ApiKeyHash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let digits = text.strip_prefix("sha256:").map(str::to_ascii_lowercase);
        let bytes = digits.and_then(|digits| HEXLOWER.decode(digits.as_bytes()).ok());
        let hash = bytes.and_then(|bytes| bytes.try_into().ok()).map(Self);
        hash.ok_or("must be `sha256:` and 64 hexadecimal digits; `gatewright api-key generate` makes a key and prints its hash")
    }
}

impl std::fmt::Display for ApiKeyHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sha256:{}", HEXLOWER.encode(&self.0))
    }
}

/// A time from which something is no longer accepted, in seconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Expiry(pub u64);

impl TryFrom<String> for Expiry {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let whole = if text.len() == "2027-01-31".len() { format!("{text}T00:00:00Z") } else { text };
        let time = humantime::parse_rfc3339_weak(&whole)
            .map_err(|error| format!("{error}; write 2027-01-31, or 2027-01-31T12:00:00Z"))?;
        Ok(Self(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()))
    }
}

impl AuthConfig {
    pub(super) fn check_api_keys(&self, say: &mut impl FnMut(&str, String)) {
        if self.mode == Mode::Public && !self.api_keys.is_empty() {
            let problem = "have no effect: authentication is off (`auth.mode: public`); set `orchestrated` or `transparent`, or remove the keys";
            say("apiKeys", problem.into());
            return;
        }
        let config = self.clone().with_default_scope();
        // The scopes of a provider's tokens need not be listed here.
        let known = |scope: &String| {
            config.scopes.contains_key(scope) || (self.mode == Mode::Transparent && self.scopes.is_empty())
        };
        let (mut names, mut hashes) = (HashSet::new(), HashSet::new());
        for (at, key) in self.api_keys.iter().enumerate() {
            let path = |field: &str| format!("apiKeys[{at}].{field}");
            if let Err(problem) = check_name(&key.name) {
                say(&path("name"), problem.into());
            }
            if !names.insert(&key.name) {
                say(&path("name"), "is used twice".into());
            }
            if !hashes.insert(key.hash) {
                say(&path("hash"), "is that of another key: make a key for each machine".into());
            }
            for (n, scope) in key.scopes.iter().enumerate() {
                if USER_SCOPES.contains(&scope.as_str()) {
                    say(
                        &path(&format!("scopes[{n}]")),
                        "is about a user, and a key is of none; remove it".into(),
                    );
                } else if !known(scope) {
                    say(&path(&format!("scopes[{n}]")), "is not one of `auth.scopes`; add it there".into());
                }
            }
        }
    }
}
