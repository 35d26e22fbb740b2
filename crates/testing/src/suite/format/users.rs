//! The keys `auth`, `users` and `as`: the issuer of tokens, and its users.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The issuer of tokens: none, a mock, or one with options.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::suite) enum AuthSection {
    Mock(bool),
    Issuer(IssuerSection),
}

impl Default for AuthSection {
    fn default() -> Self {
        Self::Mock(false)
    }
}

/// Options of the issuer.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::suite) struct IssuerSection {
    /// `aud` of tokens. Default `test-audience`.
    pub(in crate::suite) audience: Option<String>,
    /// An issuer that is already running; no mock is started. Requires `key`.
    pub(in crate::suite) issuer: Option<String>,
    /// An RSA key in a PKCS#8 PEM file, created if it does not exist.
    pub(in crate::suite) key: Option<String>,
    /// Faults of the mock by endpoint, such as `{jwks: "slow:3000"}`; those of `gatewright mock oauth --fault`.
    #[serde(default)]
    pub(in crate::suite) faults: BTreeMap<String, String>,
}

/// A user: the claims of a token, or headers.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::suite) struct UserSection {
    /// `sub`. Without it the user has no token, only `headers`.
    pub(in crate::suite) sub: Option<String>,
    /// Headers of every HTTP request of the user, such as an API key. They replace those of `server` with the same name.
    #[serde(default)]
    pub(in crate::suite) headers: BTreeMap<String, String>,
    /// `scope`.
    #[serde(default)]
    pub(in crate::suite) scopes: Vec<String>,
    /// `email`.
    pub(in crate::suite) email: Option<String>,
    /// `name`.
    pub(in crate::suite) name: Option<String>,
    /// Further claims; they replace others of the same name.
    #[serde(default)]
    pub(in crate::suite) claims: Map<String, Value>,
    /// Lifetime of the token in seconds. Default 3600.
    pub(in crate::suite) expires_in: Option<i64>,
    /// Creates a token that expired an hour ago.
    #[serde(default)]
    pub(in crate::suite) expired: bool,
    /// Creates a token that is signed by another key.
    #[serde(default)]
    pub(in crate::suite) invalid_signature: bool,
    /// Creates a token with this defect, such as `alg-none`; those of `gatewright token --broken`.
    pub(in crate::suite) broken: Option<String>,
}

/// A literal bearer token.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::suite) struct TokenSection {
    /// The token.
    pub(in crate::suite) token: String,
}

/// The name of a user, a user, or a token.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::suite) enum User {
    Named(String),
    Token(TokenSection),
    Described(Box<UserSection>),
}
