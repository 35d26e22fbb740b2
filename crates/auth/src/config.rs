//! The `auth` section of the configuration.
//!
//! What breaks in production is told by `production`; building a server from a configuration is `server`.

use std::{collections::BTreeMap, path::PathBuf};

use gatewright_core::Scopes;
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::Value;

use crate::keys::{Algorithm, Jwk, JwkSet};

pub(crate) mod passkeys;
mod production;
mod storage;
mod validate;

pub use passkeys::PasskeyConfig;
pub use production::{Deployment, Finding};
pub use validate::Problem;

/// Who issues tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Nobody: authentication is off.
    #[default]
    Public,
    /// The built-in authorization server.
    Orchestrated,
    /// An external provider; its tokens are validated.
    Transparent,
}

/// How users log in to the built-in authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
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
    /// A browser that logged in is remembered.
    #[default]
    Stateful,
    /// Every authorization asks for the login again.
    Stateless,
}

/// The `auth` section. Unknown fields are refused.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AuthConfig {
    /// Who issues tokens.
    pub mode: Mode,
    /// How users log in.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Whether a browser that logged in is remembered.
    pub session_mode: SessionMode,
    /// Where pending authorizations, codes, tokens, sessions and vaults live.
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
    /// Scopes that can be granted, with what each means in words. When empty there is one, `mcp`, which opens whatever asks for no other scope;
    /// clients that name no scope get it, and so do anonymous callers without `anonymousScopes`.
    pub scopes: BTreeMap<String, String>,
    /// Scopes of an authorization that names none; all of `scopes` when empty.
    pub default_scopes: Vec<String>,
    /// Browser sessions.
    pub session: SessionConfig,
    /// Uses a minute.
    pub limits: LimitsConfig,
    /// Addresses or networks (`10.0.0.0/8`) of proxies whose `X-Forwarded-For`, `X-Forwarded-Proto` and `Forwarded` are believed.
    pub trusted_proxies: Vec<String>,
    /// Whether authorization requests must be pushed (RFC 9126).
    pub require_par: bool,
    /// Whether DPoP proofs must carry our nonce (RFC 9449 §8).
    pub require_dpop_nonce: bool,
    /// Secret that encrypts vaults and stored keys. Derived from `local.signKey` when absent.
    #[schemars(with = "Option<String>")]
    pub encryption_key: Option<SecretString>,
}

/// `tokenStorage`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TokenStorage {
    /// Which store.
    #[serde(rename = "type")]
    pub kind: StorageKind,
    /// Where it is.
    pub config: StorageConfig,
}

/// Which store.
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
    /// Some nodes of a cluster, as `host:port`; default port 6379. `keyPrefix` must then hold a hash tag, and is `{gw}:` when absent.
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
    /// What the sentinels call the master.
    pub master: String,
    /// The sentinels, as `host:port`.
    pub nodes: Vec<String>,
    /// ACL user at the sentinels.
    pub username: Option<String>,
    /// Password at the sentinels.
    #[schemars(with = "Option<String>")]
    pub password: Option<SecretString>,
}

/// A signing key as it is written: a JWK, a set of them, or either as JSON text.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SignKey(Value);

impl std::fmt::Debug for SignKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignKey(..)")
    }
}

impl SignKey {
    /// A key given as JSON text.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(Value::String(text.into()))
    }

    /// The keys.
    ///
    /// # Errors
    /// When it is neither a JWK nor a set.
    pub fn keys(&self) -> Result<Vec<Jwk>, crate::keys::KeyError> {
        match &self.0 {
            Value::String(text) => JwkSet::parse(text),
            value => JwkSet::parse(&value.to_string()),
        }
        .map(|set| set.keys)
    }
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
    /// How users prove who they are.
    pub login: Login,
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
            login: Login::Password,
            users: Vec::new(),
            passkeys: PasskeyConfig::default(),
        }
    }
}

/// How users of the built-in login prove who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Login {
    /// With a password.
    #[default]
    Password,
    /// Any name passes. Only where `publicUrl` and the address listened on are loopback.
    Demo,
}

/// A user of the built-in login.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserConfig {
    /// What the user types.
    pub username: String,
    /// Argon2id hash (`gatewright user hash`). May be left out where `passkeys` are on: the user then signs in with passkeys only, and
    /// adds the first one with the link that `gatewright user enrol` prints.
    pub password_hash: Option<String>,
    /// Display name.
    pub name: Option<String>,
    /// Mail address, told to clients that may ask `userinfo` for it.
    pub email: Option<String>,
    /// Scopes the user may grant; all when absent. Tokens that they granted lose what is taken out here.
    pub scopes: Option<Vec<String>>,
    /// Whether the user is locked out.
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
    /// How long a fetched key set is fresh. Default 600 s.
    pub jwks_cache_seconds: Option<u64>,
    /// How long a key set that cannot be refreshed is still used. Default 3600 s.
    pub jwks_stale_seconds: Option<u64>,
    /// Token types accepted. Default `at+jwt` and `jwt`.
    pub token_types: Option<Vec<String>>,
    /// Client whose tokens alone are accepted (`azp` or `client_id`).
    pub pinned_client: Option<String>,
    /// Introspection endpoint for tokens that are not JWTs.
    pub introspection_uri: Option<String>,
    /// Whether the provider may be on a private or loopback address, and use plain HTTP there.
    pub allow_private: bool,
}

/// `refresh`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RefreshConfig {
    /// Whether refresh tokens are issued.
    pub enabled: bool,
    /// Seconds before expiry at which a token from the provider is refreshed. Default 60.
    pub skew_seconds: u64,
    /// Access token lifetime in seconds, 1 to 86,400. Default 900.
    pub access_token_ttl: u64,
    /// How long an unused refresh token lives, in seconds: 1 to `absoluteTtl`. Default 604,800 (7 days).
    pub refresh_token_ttl: u64,
    /// How long an authorization lives however often it is refreshed, in seconds. Default 2,592,000 (30 days).
    pub absolute_ttl: u64,
    /// Whether each use gives a new refresh token. Public clients' tokens always rotate.
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
    /// Whether users are asked. Default true. When false, `clients` get what they ask for without a page; clients that registered themselves
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
    /// Registrations a day at most. Default 1,000.
    pub most_per_day: u64,
    /// How long a registration lives that gets no tokens, in seconds. Default 2,592,000 (30 days). One in use lives on.
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
    /// Whether a client may be an `https` address of a document. Default true.
    pub enabled: bool,
    /// Hosts allowed (`example.com`, `*.example.com`); all when empty.
    pub allow_hosts: Vec<String>,
    /// Hosts refused.
    pub deny_hosts: Vec<String>,
    /// Whether documents may be on private or loopback addresses and use plain HTTP there. For development: only where `publicUrl` and the
    /// address listened on are loopback.
    pub allow_private: bool,
}

impl Default for CimdConfig {
    fn default() -> Self {
        Self { enabled: true, allow_hosts: Vec::new(), deny_hosts: Vec::new(), allow_private: false }
    }
}

/// A client known in advance.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
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
    /// How it authenticates; `client_secret_basic` with a secret, `private_key_jwt` with keys, `none` without either.
    pub token_endpoint_auth_method: Option<String>,
    /// Where codes may be sent.
    #[serde(default)]
    pub redirect_uris: Vec<String>,
    /// Where a logout may lead.
    #[serde(default)]
    pub post_logout_redirect_uris: Vec<String>,
    /// Its grants. Default `authorization_code` and `refresh_token`.
    pub grant_types: Option<Vec<String>>,
    /// Scopes it may ask for; all when absent. Tokens that it has lose what is taken out here.
    pub scopes: Option<Vec<String>>,
    /// Whether it is a resource server that may introspect tokens of this resource.
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

/// `limits`: uses a minute, each per address (and per client where one is known).
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Token endpoint. Default 600.
    pub token: u64,
    /// Authorization endpoint. Default 120.
    pub authorize: u64,
    /// Login. Default 30.
    pub login: u64,
    /// Registration. Default 20.
    pub register: u64,
    /// Revocation and introspection. Default 600.
    pub revoke: u64,
    /// Fetches of client documents. Default 30.
    pub fetch: u64,
    /// Wrong passwords an account may see in 15 minutes. Default 5.
    pub wrong_passwords: u64,
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
        }
    }
}

/// The only scope of a configuration that names none.
pub const DEFAULT_SCOPE: &str = "mcp";

impl AuthConfig {
    /// The same with [`DEFAULT_SCOPE`] where no scope is named.
    pub(crate) fn with_default_scope(mut self) -> Self {
        if self.scopes.is_empty() {
            self.scopes.insert(DEFAULT_SCOPE.to_owned(), "Use what this server offers".to_owned());
            if self.anonymous_scopes.is_empty() {
                self.anonymous_scopes.push(DEFAULT_SCOPE.to_owned());
            }
        }
        self
    }

    /// The scopes that tokens of the built-in server can carry.
    pub fn grantable(&self) -> Scopes {
        let config = self.clone().with_default_scope();
        Scopes::Granted(config.scopes.into_keys().chain(config.anonymous_scopes).collect())
    }

    /// `encryptionKey`, for values that all instances open.
    pub fn shared_secret(&self) -> Option<&str> {
        self.encryption_key.as_ref().map(|secret| secret.expose_secret())
    }

    /// Fills what the file leaves out from the contract's environment variables, as `get` reads them; returns what is wrong with those
    /// that are used.
    pub fn fill_from(&mut self, get: impl Fn(&str) -> Option<String>) -> Vec<Problem> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let mut problems = Vec::new();
        let storage = &mut self.token_storage.config;
        storage.host = storage.host.take().or_else(|| get("REDIS_HOST"));
        let is_addressed = storage.url.is_some() || storage.sentinel.is_some() || !storage.cluster.is_empty();
        if self.token_storage.kind == StorageKind::Redis && storage.port.is_none() && !is_addressed {
            match get("REDIS_PORT").map(|text| redis_port(&text)) {
                Some(Some(port)) => storage.port = Some(port),
                Some(None) => problems.push(Problem {
                    path: "auth.tokenStorage.config.port".to_owned(),
                    message: "REDIS_PORT must be a port from 1 to 65535; set it to one, or write `port` here"
                        .to_owned(),
                }),
                None => {}
            }
        }
        storage.password = storage.password.take().or_else(|| get("REDIS_PASSWORD").map(Into::into));
        self.local.sign_key =
            self.local.sign_key.take().or_else(|| get("JWT_SIGNING_KEY").map(SignKey::from_text));
        let provider = &mut self.provider;
        provider.url = provider.url.take().or_else(|| get("IDP_PROVIDER_URL"));
        provider.client_id = provider.client_id.take().or_else(|| get("IDP_CLIENT_ID"));
        provider.client_secret =
            provider.client_secret.take().or_else(|| get("IDP_CLIENT_SECRET").map(Into::into));
        self.expected_audience = self.expected_audience.take().or_else(|| get("IDP_EXPECTED_AUDIENCE"));
        problems
    }
}

/// A port as REDIS_PORT says it: a number, or the address that Kubernetes puts there for a Service called `redis`
/// (`tcp://10.0.0.7:6379`).
fn redis_port(text: &str) -> Option<u16> {
    let text = text.trim();
    let port = match text.strip_prefix("tcp://") {
        Some(address) => address.rsplit_once(':')?.1,
        None => text,
    };
    port.parse().ok().filter(|port| *port != 0)
}
