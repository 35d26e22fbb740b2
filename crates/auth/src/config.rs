//! The `auth` section of the configuration.
//!
//! Production requirements are in `production`, the check at start in `validate`, and building a server is in `server`.

use std::{collections::BTreeMap, path::PathBuf};

use gatewright_core::Scopes;
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::Value;

use crate::keys::{Algorithm, JwkSet};

mod api_keys;
mod environment;
pub(crate) mod passkeys;
mod production;
mod sign_key;
mod storage;
mod validate;

pub use api_keys::{ApiKeyConfig, ApiKeyHash, Expiry};
pub use passkeys::PasskeyConfig;
pub use production::{Deployment, Finding, is_guessable, trusts_everybody};
pub use sign_key::SignKey;
pub use validate::Problem;

/// Issuer of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// None: authentication is off.
    #[default]
    Public,
    /// The built-in authorization server.
    Orchestrated,
    /// An external provider; its tokens are validated.
    Transparent,
}

/// Login of users at the built-in authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LoginSource {
    /// With a password, at the built-in login page.
    #[default]
    Local,
    /// At an OpenID provider.
    Remote,
}

/// Session handling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionMode {
    /// Browsers that logged in are remembered.
    #[default]
    Stateful,
    /// Every authorization asks for the login again.
    Stateless,
}

/// The `auth` section. Unknown fields are refused.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AuthConfig {
    /// Issuer of tokens.
    pub mode: Mode,
    /// Login of users.
    #[serde(rename = "type")]
    pub kind: LoginSource,
    /// Handling of browsers that logged in.
    pub session_mode: SessionMode,
    /// Store of pending authorizations, codes, tokens, sessions and vaults.
    pub token_storage: TokenStorage,
    /// Built-in server.
    pub local: LocalConfig,
    /// The external provider (`transparent`, or `type: remote`). The `IDP_*` variables fill it.
    pub provider: ProviderConfig,
    /// Lifetimes and rotation.
    pub refresh: RefreshConfig,
    /// Consent page.
    pub consent: ConsentConfig,
    /// Audience that tokens of the external provider must have (`transparent`).
    pub expected_audience: Option<String>,
    /// Anonymous access: requests without a token pass as `anonymous`, and the `anonymous` grant works.
    pub allow_default_public: bool,
    /// Scopes of anonymous callers.
    pub anonymous_scopes: Vec<String>,
    /// Dynamic client registration (RFC 7591).
    pub dcr_enabled: bool,
    /// Limits of dynamic client registration.
    pub dcr: DcrConfig,
    /// Client ID metadata documents.
    pub cimd: CimdConfig,
    /// Clients known in advance.
    pub clients: Vec<ClientConfig>,
    /// Static keys of machines that cannot do OAuth, sent as bearer tokens (`gatewright api-key generate`). Changes apply without a restart.
    pub api_keys: Vec<ApiKeyConfig>,
    /// Scopes that can be granted, with what each means in words. When empty there is one, `mcp`, which opens whatever asks for no other scope;
    /// clients that name no scope get it, and so do anonymous callers without `anonymousScopes`.
    pub scopes: BTreeMap<String, String>,
    /// Scopes of an authorization that names none; all of `scopes` when empty.
    pub default_scopes: Vec<String>,
    /// Browser sessions.
    pub session: SessionConfig,
    /// Requests allowed per minute.
    pub limits: LimitsConfig,
    /// Addresses or networks (`10.0.0.0/8`) of proxies whose `X-Forwarded-For`, `X-Forwarded-Proto` and `Forwarded` are believed.
    pub trusted_proxies: Vec<String>,
    /// Requires pushed authorization requests (RFC 9126).
    pub require_par: bool,
    /// Lets authorization requests leave `state` out, as some MCP clients do. PKCE, which is always required, still ties the code to the client that
    /// asked. Default false.
    pub state_optional: bool,
    /// Requires the server's nonce in DPoP proofs (RFC 9449 §8).
    pub require_dpop_nonce: bool,
    /// Secret that encrypts vaults and stored keys. Derived from `local.signKey` when absent.
    #[schemars(with = "Option<String>")]
    pub encryption_key: Option<SecretString>,
}

/// `tokenStorage`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TokenStorage {
    /// Kind of store.
    #[serde(rename = "type")]
    pub kind: StorageKind,
    /// Address of the store.
    pub config: StorageConfig,
}

/// Kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StorageKind {
    /// Lost on restart.
    #[default]
    Memory,
    /// One file, one node.
    Sqlite,
    /// Shared by all instances.
    Redis,
}

/// `tokenStorage.config`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct StorageConfig {
    /// Address of the store in place of the fields below: `redis://user:password@host:6379/0`,
    /// `redis+sentinel://host:26379,host2:26379/mymaster`, `redis+cluster://host:6379,host2:6379`; `rediss` in place of `redis` for TLS.
    #[schemars(with = "Option<String>")]
    pub url: Option<SecretString>,
    /// The sentinels that know which server is the master. Default port 26379.
    pub sentinel: Option<SentinelConfig>,
    /// Some nodes of a cluster, as `host:port`; default port 6379. `keyPrefix` must then contain a hash tag, and is `{gw}:` when absent.
    pub cluster: Vec<String>,
    /// Host of the store; `REDIS_HOST`.
    pub host: Option<String>,
    /// Port, 1 to 65535; `REDIS_PORT`, else 6379.
    pub port: Option<u16>,
    /// ACL user.
    pub username: Option<String>,
    /// Password; `REDIS_PASSWORD`.
    #[schemars(with = "Option<String>")]
    pub password: Option<SecretString>,
    /// Use TLS.
    pub tls: bool,
    /// PEM file of the authority that signed the store's certificate.
    pub ca_file: Option<PathBuf>,
    /// Number of the database.
    pub database: i64,
    /// Prefix of every stored key; `gw:` when absent.
    pub key_prefix: Option<String>,
    /// File of the SQLite store.
    pub path: Option<PathBuf>,
}

/// `tokenStorage.config.sentinel`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SentinelConfig {
    /// Name of the master at the sentinels.
    pub master: String,
    /// The sentinels, as `host:port`.
    pub nodes: Vec<String>,
    /// ACL user at the sentinels.
    pub username: Option<String>,
    /// Password at the sentinels.
    #[schemars(with = "Option<String>")]
    pub password: Option<SecretString>,
}

/// `local`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LocalConfig {
    /// Persistent signing key, or a set of them: the first private key signs, the others verify what they signed before. `JWT_SIGNING_KEY`.
    /// Keys are made, kept in the store and rotated when absent.
    pub sign_key: Option<SignKey>,
    /// Days a key signs, at least 1. Default 60. A key that the servers made is then exchanged; a start with a configured one that has signed for
    /// longer logs a warning.
    pub key_rotation_days: u64,
    /// Retired keys kept for verification. Default 3. A configured set may hold one key more.
    pub max_keys: usize,
    /// Algorithm of made keys: `ES256` (default), `EdDSA` or `RS256` (2,048 bits).
    pub algorithm: Algorithm,
    /// Authentication of users.
    pub login: LoginMethod,
    /// Users of the built-in login. Without any there is one, `admin`: `gatewright serve` prints the password when it starts.
    pub users: Vec<UserConfig>,
    /// Passkeys, to sign in without a password.
    pub passkeys: PasskeyConfig,
}

impl Default for LocalConfig {
    fn default() -> Self {
        Self {
            sign_key: None,
            key_rotation_days: 60,
            max_keys: 3,
            algorithm: Algorithm::ES256,
            login: LoginMethod::Password,
            users: Vec::new(),
            passkeys: PasskeyConfig::default(),
        }
    }
}

/// Authentication of the users of the built-in login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LoginMethod {
    /// With a password.
    #[default]
    Password,
    /// Any name passes. Only where `publicUrl` and the address listened on are loopback.
    Demo,
}

/// A user of the built-in login.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserConfig {
    /// Name that the user types.
    pub username: String,
    /// Argon2id hash (`gatewright user hash`). May be left out where `passkeys` are on: the user then signs in with passkeys only, and
    /// adds the first one with the link that `gatewright user enrol` prints.
    pub password_hash: Option<String>,
    /// Display name.
    pub name: Option<String>,
    /// Mail address, for clients that may ask `userinfo` for it.
    pub email: Option<String>,
    /// Scopes the user may grant; all when absent. Tokens that they granted lose what is taken out here.
    pub scopes: Option<Vec<String>>,
    /// Groups that the user is in, for policies: at most 200, with names of up to 256 bytes.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Locks the user out.
    #[serde(default)]
    pub disabled: bool,
}

/// `provider`: the external identity provider.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ProviderConfig {
    /// Issuer address; `IDP_PROVIDER_URL`.
    pub url: Option<String>,
    /// Our client identifier there; `IDP_CLIENT_ID`.
    pub client_id: Option<String>,
    /// Our client secret there; `IDP_CLIENT_SECRET`.
    #[schemars(with = "Option<String>")]
    pub client_secret: Option<SecretString>,
    /// Scopes to ask for. Default `openid`.
    pub scopes: Vec<String>,
    /// Inline key set: nothing is fetched.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub jwks: Option<JwkSet>,
    /// Address of the key set; discovered when absent.
    pub jwks_uri: Option<String>,
    /// Time for which a fetched key set is fresh. Default 600 s.
    pub jwks_cache_seconds: Option<u64>,
    /// Time for which a key set that cannot be refreshed is still used. Default 3600 s.
    pub jwks_stale_seconds: Option<u64>,
    /// Token types accepted. Default `at+jwt` and `jwt`.
    pub token_types: Option<Vec<String>>,
    /// Client whose tokens alone are accepted (`azp` or `client_id`).
    pub pinned_client: Option<String>,
    /// Introspection endpoint for tokens that are not JWTs.
    pub introspection_uri: Option<String>,
    /// Claim that lists the groups of users, for policies: of access tokens (`transparent`), or of ID tokens (`type: remote`). Default `groups`.
    pub groups_claim: Option<String>,
    /// Allows a provider on a private or loopback address, and plain HTTP there.
    pub allow_private: bool,
}

/// `refresh`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RefreshConfig {
    /// Issues refresh tokens.
    pub enabled: bool,
    /// Seconds before expiry at which a token from the provider is refreshed. Default 60.
    pub skew_seconds: u64,
    /// Access token lifetime in seconds, 1 to 86,400. Default 900.
    pub access_token_ttl: u64,
    /// Lifetime of an unused refresh token, in seconds: 1 to `absoluteTtl`. Default 604,800 (7 days).
    pub refresh_token_ttl: u64,
    /// Lifetime of an authorization, however often it is refreshed, in seconds. Default 2,592,000 (30 days).
    pub absolute_ttl: u64,
    /// Rotates refresh tokens: each use gives a new one. Public clients' tokens always rotate.
    pub rotate_refresh_token: bool,
}

impl Default for RefreshConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            skew_seconds: 60,
            access_token_ttl: 900,
            refresh_token_ttl: 604_800,
            absolute_ttl: 2_592_000,
            rotate_refresh_token: true,
        }
    }
}

/// `consent`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ConsentConfig {
    /// Asks users for consent. Default true. When false, `clients` get what they ask for without a page; clients that registered themselves
    /// or are known by a document still need the user's consent.
    pub enabled: bool,
}

impl Default for ConsentConfig {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// `dcr`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DcrConfig {
    /// Token that registration asks for; anyone may register when absent.
    #[schemars(with = "Option<String>")]
    pub initial_access_token: Option<SecretString>,
    /// Registrations allowed per day. Without `initialAccessToken`, one network gets a quarter of those that are left, and as many more are for the first one of
    /// networks that come too late. Default 1,000.
    pub most_per_day: u64,
    /// Lifetime of a registration that gets no tokens, in seconds. Default 2,592,000 (30 days). One in use is kept.
    pub unused_ttl: u64,
}

impl Default for DcrConfig {
    fn default() -> Self {
        Self { initial_access_token: None, most_per_day: 1_000, unused_ttl: 2_592_000 }
    }
}

/// `cimd`: client ID metadata documents.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CimdConfig {
    /// Accepts clients whose identifier is the `https` address of a metadata document. Default true.
    pub enabled: bool,
    /// Hosts allowed (`example.com`, `*.example.com`); all when empty.
    pub allow_hosts: Vec<String>,
    /// Hosts refused.
    pub deny_hosts: Vec<String>,
    /// Allows documents on private or loopback addresses, and plain HTTP there. For development: only where `publicUrl` and the
    /// address listened on are loopback.
    pub allow_private: bool,
}

impl Default for CimdConfig {
    fn default() -> Self {
        Self { enabled: true, allow_hosts: Vec::new(), deny_hosts: Vec::new(), allow_private: false }
    }
}

/// A client known in advance.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientConfig {
    /// Its identifier.
    pub client_id: String,
    /// Its name on the consent page.
    pub name: Option<String>,
    /// Its secret; a public client has none.
    #[schemars(with = "Option<String>")]
    pub client_secret: Option<SecretString>,
    /// Its public keys, for `private_key_jwt`.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub jwks: Option<JwkSet>,
    /// Authentication method. Default `client_secret_basic` with a secret, `private_key_jwt` with keys, `none` without either.
    pub token_endpoint_auth_method: Option<String>,
    /// Redirect URIs, to which codes may be sent.
    #[serde(default)]
    pub redirect_uris: Vec<String>,
    /// Addresses that a logout may lead to.
    #[serde(default)]
    pub post_logout_redirect_uris: Vec<String>,
    /// Its grants. Default `authorization_code` and `refresh_token`.
    pub grant_types: Option<Vec<String>>,
    /// Scopes it may ask for; all when absent. Tokens that it has lose what is taken out here.
    pub scopes: Option<Vec<String>>,
    /// Resource whose tokens it may introspect, as a resource server: the address of the MCP endpoint (`http.publicUrl` with `http.path`).
    pub introspects: Option<String>,
}

/// `session`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SessionConfig {
    /// Seconds without use after which a login is forgotten. Default 28,800 (8 h).
    pub idle_ttl: u64,
    /// Seconds after which it is forgotten in any case. Default 86,400 (24 h).
    pub absolute_ttl: u64,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self { idle_ttl: 28_800, absolute_ttl: 86_400 }
    }
}

/// `limits`: requests allowed per minute, for each address (and for each client where one is known).
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Token endpoint. Default 600.
    pub token: u64,
    /// Authorization endpoint. Default 120.
    pub authorize: u64,
    /// Submitted login pages per minute. Default 30.
    pub login: u64,
    /// Registration. Default 20.
    pub register: u64,
    /// Revocation and introspection. Default 600.
    pub revoke: u64,
    /// Fetches of client documents. Default 30.
    pub fetch: u64,
    /// Wrong passwords allowed for an account in 15 minutes. Default 5.
    pub wrong_passwords: u64,
    /// Unknown API keys of a network that the store is asked for. Default 60.
    pub unknown_keys: u64,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            token: 600,
            authorize: 120,
            login: 30,
            register: 20,
            revoke: 600,
            fetch: 30,
            wrong_passwords: 5,
            unknown_keys: 60,
        }
    }
}

/// The only scope of a configuration that names none.
pub const DEFAULT_SCOPE: &str = "mcp";

impl AuthConfig {
    /// Returns the configuration with [`DEFAULT_SCOPE`] where it names no scope.
    pub(crate) fn with_default_scope(mut self) -> Self {
        if self.scopes.is_empty() {
            self.scopes.insert(DEFAULT_SCOPE.to_owned(), "Use what this server offers".to_owned());
            if self.anonymous_scopes.is_empty() {
                self.anonymous_scopes.push(DEFAULT_SCOPE.to_owned());
            }
        }
        self
    }

    /// Returns the scopes that tokens of the built-in server can have.
    pub fn grantable(&self) -> Scopes {
        let config = self.clone().with_default_scope();
        Scopes::Granted(config.scopes.into_keys().chain(config.anonymous_scopes).collect())
    }

    /// Returns `encryptionKey`, for values that all instances decrypt.
    pub fn shared_secret(&self) -> Option<&str> {
        self.encryption_key.as_ref().map(|secret| secret.expose_secret())
    }
}
