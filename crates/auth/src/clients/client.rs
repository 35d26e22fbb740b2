//! A client, wherever it comes from.

use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};

use crate::{
    config::ClientConfig,
    crypto::sha256_hex,
    keys::{JwkSet, VerifyingKey},
    net, redirect_uri,
};

/// Authentication method of a client at the token endpoint (OpenID Connect Core §9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuthMethod {
    None,
    ClientSecretBasic,
    ClientSecretPost,
    PrivateKeyJwt,
}

impl AuthMethod {
    pub(crate) const ALL: [&'static str; 4] =
        ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"];

    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_value(text.into()).ok()
    }
}

/// Origin of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Origin {
    /// The configuration.
    #[serde(rename = "Static")]
    Configured,
    /// Dynamic client registration.
    Registered,
    /// A metadata document.
    Document,
}

/// An OAuth client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OAuthClient {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) redirect_uris: Vec<String>,
    #[serde(default)]
    pub(crate) post_logout_redirect_uris: Vec<String>,
    pub(crate) method: AuthMethod,
    /// SHA-256 of the secret. Secrets are 256 random bits or chosen by the operator, and never stored.
    pub(crate) secret: Option<String>,
    pub(crate) grants: Vec<String>,
    pub(crate) scopes: Option<Vec<String>>,
    pub(crate) jwks: Option<JwkSet>,
    pub(crate) client_uri: Option<String>,
    pub(crate) introspects: Option<String>,
    /// Its tokens are bound to a DPoP key (RFC 9449 §5.2).
    #[serde(default)]
    pub(crate) dpop_bound: bool,
    pub(crate) origin: Origin,
    /// SHA-256 of the registration access token (RFC 7592).
    pub(crate) management: Option<String>,
    pub(crate) issued_s: u64,
    /// Time of the last tokens of a registered client, accurate to a day.
    #[serde(default)]
    pub(crate) used_s: u64,
}

const DEFAULT_GRANTS: [&str; 2] = ["authorization_code", "refresh_token"];

impl OAuthClient {
    pub(crate) fn from_config(config: &ClientConfig) -> Result<Self, String> {
        let method = match config.token_endpoint_auth_method.as_deref() {
            Some(text) => {
                AuthMethod::parse(text).ok_or_else(|| format!("`{text}` is not an authentication method"))?
            }
            None if config.client_secret.is_some() => AuthMethod::ClientSecretBasic,
            None if config.jwks.is_some() => AuthMethod::PrivateKeyJwt,
            None => AuthMethod::None,
        };
        let needs_secret = matches!(method, AuthMethod::ClientSecretBasic | AuthMethod::ClientSecretPost);
        if needs_secret != config.client_secret.is_some() {
            return Err("a `clientSecret` is needed for the client_secret methods, and for them only".into());
        }
        if let Some(set) = &config.jwks {
            set.keys
                .iter()
                .try_for_each(|key| VerifyingKey::from_jwk(key).map(drop))
                .map_err(|why| format!("a key of `jwks` {why}"))?;
        } else if method == AuthMethod::PrivateKeyJwt {
            return Err("`jwks` is needed for private_key_jwt".into());
        }
        Ok(Self {
            id: config.client_id.clone(),
            name: config.name.clone().unwrap_or_else(|| config.client_id.clone()),
            redirect_uris: config.redirect_uris.clone(),
            post_logout_redirect_uris: config.post_logout_redirect_uris.clone(),
            method,
            secret: config.client_secret.as_ref().map(|secret| sha256_hex(secret.expose_secret())),
            grants: config.grant_types.clone().unwrap_or_else(|| DEFAULT_GRANTS.map(str::to_owned).to_vec()),
            scopes: config.scopes.clone(),
            jwks: config.jwks.clone(),
            client_uri: None,
            introspects: config.introspects.clone(),
            dpop_bound: false,
            origin: Origin::Configured,
            management: None,
            issued_s: 0,
            used_s: 0,
        })
    }

    pub(crate) fn is_public(&self) -> bool {
        self.method == AuthMethod::None
    }

    /// Returns whether the client may use a grant type.
    pub(crate) fn may(&self, grant: &str) -> bool {
        self.grants.iter().any(|allowed| allowed == grant)
    }

    /// Returns whether `uri` is a redirect URI of the client.
    pub(crate) fn redirects_to(&self, uri: &str) -> bool {
        redirect_uri::parse(uri).is_ok()
            && self.redirect_uris.iter().any(|registered| redirect_uri::matches(registered, uri))
    }

    /// Returns the redirect URI of a request that names `requested`: that one, or the only registered one when it names none.
    pub(crate) fn redirect_uri(&self, requested: Option<&str>) -> Option<String> {
        match (requested, self.redirect_uris.as_slice()) {
            (Some(requested), _) if self.redirects_to(requested) => Some(requested.to_owned()),
            (None, [only]) => Some(only.clone()),
            _ => None,
        }
    }

    /// Like [`OAuthClient::redirect_uri`]. A redirect URI that is not registered is logged beside those that are.
    pub(crate) fn redirect_uri_or_log(&self, requested: Option<&str>) -> Option<String> {
        let found = self.redirect_uri(requested);
        if found.is_none() {
            log_mismatch(&self.id, requested.unwrap_or("(none)"), &self.redirect_uris);
        }
        found
    }

    /// Returns whether another program could impersonate the client: nothing proves its identity, and any program on the user's machine
    /// may claim the redirect URI (RFC 8252 §8.6).
    pub(crate) fn can_be_impersonated(&self, redirect: &str) -> bool {
        let claimable =
            url::Url::parse(redirect).is_ok_and(|url| url.scheme() != "https" || net::is_this_machine(&url));
        self.is_public() && claimable
    }

    /// Returns the fingerprint of what a consent is given to: another name or redirect URI needs a new one.
    pub(crate) fn fingerprint(&self) -> String {
        sha256_hex(serde_json::to_vec(&(&self.id, &self.name, &self.redirect_uris)).unwrap_or_default())
    }
}

/// Logs a redirect URI that differs from those that are `expected`, for whoever registers clients. Pages do not show them.
pub(crate) fn log_mismatch(client: &str, requested: &str, expected: &[String]) {
    const LONGEST: usize = 500;
    const MOST: usize = 10;
    let clipped = |text: &str| text.chars().take(LONGEST).collect::<String>();
    let expected: Vec<String> = expected.iter().take(MOST).map(|uri| clipped(uri)).collect();
    let (requested, expected) = (clipped(requested), expected.join(", "));
    tracing::info!(
        client.id = clipped(client),
        requested,
        expected,
        "redirect_uri does not match: the request has {requested}, the client {expected}"
    );
}
