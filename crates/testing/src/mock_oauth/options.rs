//! Options of the authorization server.

use serde_json::{Map, Value};

use super::clients::MockOAuthClient;

/// Options of a [`MockOAuthServer`](super::MockOAuthServer).
#[derive(Debug, Clone)]
pub struct MockOAuthServerOptions {
    /// The port. Default: a free one.
    pub port: Option<u16>,
    /// Logs in `test_user` without a login page. Default false.
    pub auto_approve: bool,
    /// The user to log in. Default: none; the login page asks for a subject.
    pub test_user: Option<MockTestUser>,
    /// A client, with any of the valid redirect URIs. Default: none. Clients that register themselves, and clients with a metadata
    /// document, are known as well.
    pub client_id: Option<String>,
    /// The secret of that client. Default: none is required.
    pub client_secret: Option<String>,
    /// Further clients, each with its own redirect URIs.
    pub clients: Vec<MockOAuthClient>,
    /// Accepts clients that nobody registered, as public ones. Default false: they are refused, as by a real server.
    pub accept_any_client: bool,
    /// Valid redirect URIs of that client and of clients that register themselves; `*` matches any characters except `/`, `?` and `#`.
    /// Default: any http URL of this machine.
    pub valid_redirect_uris: Vec<String>,
    /// Resources that tokens can be requested for (RFC 8707), listed in the metadata (RFC 9728 §4). Default: any.
    pub protected_resources: Vec<String>,
    /// Lifetime of access tokens. Default 3600.
    pub access_token_ttl_seconds: i64,
    /// Lifetime of refresh tokens. Default 2592000, 30 days.
    pub refresh_token_ttl_seconds: i64,
    /// Serves https with a certificate of a private authority: see [`MockOAuthServer::ca_pem`](super::MockOAuthServer::ca_pem). Default
    /// false.
    pub https: bool,
    /// Certificates of authorities, as PEM, to trust when client metadata documents are fetched, such as that of a
    /// [`MockCimdServer`](super::MockCimdServer).
    pub trusted_ca_pem: Vec<String>,
    /// The nonce that DPoP proofs must have (RFC 9449 §8). Default: none.
    pub dpop_nonce: Option<String>,
    /// Prints every request to standard error. Default false.
    pub debug: bool,
}

impl Default for MockOAuthServerOptions {
    fn default() -> Self {
        Self {
            port: None,
            auto_approve: false,
            test_user: None,
            client_id: None,
            client_secret: None,
            clients: Vec::new(),
            accept_any_client: false,
            valid_redirect_uris: Vec::new(),
            protected_resources: Vec::new(),
            access_token_ttl_seconds: 3600,
            refresh_token_ttl_seconds: 2_592_000,
            https: false,
            trusted_ca_pem: Vec::new(),
            dpop_nonce: None,
            debug: false,
        }
    }
}

/// A user of the authorization server.
#[derive(Debug, Clone, PartialEq)]
pub struct MockTestUser {
    /// The subject.
    pub sub: String,
    /// The e-mail address.
    pub email: Option<String>,
    /// The name.
    pub name: Option<String>,
    /// The URL of a picture.
    pub picture: Option<String>,
    /// Further claims of tokens and of `/userinfo`.
    pub claims: Map<String, Value>,
}

impl MockTestUser {
    /// A user with this subject and no other claims.
    pub fn new(sub: impl Into<String>) -> Self {
        Self { sub: sub.into(), email: None, name: None, picture: None, claims: Map::new() }
    }

    pub(super) fn claims(&self) -> Map<String, Value> {
        let mut claims = self.claims.clone();
        for (name, value) in [("email", &self.email), ("name", &self.name), ("picture", &self.picture)] {
            if let Some(value) = value {
                claims.insert(name.into(), value.as_str().into());
            }
        }
        claims
    }
}

/// The address of a running [`MockOAuthServer`](super::MockOAuthServer).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct MockOAuthServerInfo {
    /// The base URL, such as `http://127.0.0.1:40123`.
    pub base_url: String,
    /// The port.
    pub port: u16,
    /// The `iss` of its tokens: the base URL.
    pub issuer: String,
    /// The URL of its key set.
    pub jwks_url: String,
}
