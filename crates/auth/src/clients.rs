//! OAuth clients: static ones, registered ones and documents, all in one form.

use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};

use crate::{
    config::ClientConfig,
    crypto::sha256_hex,
    keys::{JwkSet, VerifyingKey},
    net,
};

/// How a client proves who it is at the token endpoint.
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

/// Where a client comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Origin {
    Static,
    Registered,
    Document,
}

/// A client as the server knows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OAuthClient {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) redirect_uris: Vec<String>,
    #[serde(default)]
    pub(crate) post_logout_redirect_uris: Vec<String>,
    pub(crate) method: AuthMethod,
    /// SHA-256 of the secret; secrets are 256 random bits or chosen by the operator, and never stored.
    pub(crate) secret: Option<String>,
    pub(crate) grants: Vec<String>,
    pub(crate) scopes: Option<Vec<String>>,
    pub(crate) jwks: Option<JwkSet>,
    pub(crate) client_uri: Option<String>,
    pub(crate) introspects: Option<String>,
    pub(crate) origin: Origin,
    /// SHA-256 of the registration access token (RFC 7592).
    pub(crate) management: Option<String>,
    pub(crate) issued_s: u64,
    /// When a registered client got tokens last, give or take a day.
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
            origin: Origin::Static,
            management: None,
            issued_s: 0,
            used_s: 0,
        })
    }

    pub(crate) fn is_public(&self) -> bool {
        self.method == AuthMethod::None
    }

    pub(crate) fn may(&self, grant: &str) -> bool {
        self.grants.iter().any(|held| held == grant)
    }

    /// Whether answers may go to `uri`: it is acceptable and registered.
    pub(crate) fn redirects_to(&self, uri: &str) -> bool {
        net::check_redirect(uri).is_ok()
            && self.redirect_uris.iter().any(|registered| net::redirect_matches(registered, uri))
    }

    /// Where the answer to a request that asks for `asked` goes; the only registered address when it names none.
    pub(crate) fn target(&self, asked: Option<&str>) -> Option<String> {
        match (asked, self.redirect_uris.as_slice()) {
            (Some(asked), _) if self.redirects_to(asked) => Some(asked.to_owned()),
            (None, [only]) => Some(only.clone()),
            _ => None,
        }
    }

    /// Whether another program could take this client's place: nothing proves who it is, and its answers go to an address that any program
    /// on the user's machine may claim (RFC 8252 §8.6).
    pub(crate) fn could_be_another(&self, redirect: &str) -> bool {
        let claimable =
            url::Url::parse(redirect).is_ok_and(|url| url.scheme() != "https" || net::is_loopback_host(&url));
        self.is_public() && claimable
    }

    /// What a remembered consent was given to: another name, host or key asks again.
    pub(crate) fn fingerprint(&self) -> String {
        sha256_hex(serde_json::to_vec(&(&self.id, &self.name, &self.redirect_uris)).unwrap_or_default())
    }
}

/// Client metadata (RFC 7591 §2) as a client or its document states it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Metadata {
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret: Option<serde_json::Value>,
    pub(crate) client_name: Option<String>,
    pub(crate) client_uri: Option<String>,
    pub(crate) logo_uri: Option<String>,
    pub(crate) redirect_uris: Option<Vec<String>>,
    pub(crate) post_logout_redirect_uris: Option<Vec<String>>,
    pub(crate) token_endpoint_auth_method: Option<String>,
    pub(crate) grant_types: Option<Vec<String>>,
    pub(crate) response_types: Option<Vec<String>>,
    pub(crate) scope: Option<String>,
    pub(crate) jwks: Option<JwkSet>,
    pub(crate) jwks_uri: Option<String>,
    pub(crate) application_type: Option<String>,
    pub(crate) software_statement: Option<serde_json::Value>,
    pub(crate) id_token_signed_response_alg: Option<String>,
}

/// Why metadata is refused: an RFC 7591 §3.2.2 code and a reason.
pub(crate) type MetadataError = (&'static str, &'static str);

impl Metadata {
    /// The client this metadata describes; `default_method` when it names none.
    pub(crate) fn into_client(
        self,
        id: String,
        default_method: AuthMethod,
        origin: Origin,
    ) -> Result<OAuthClient, MetadataError> {
        const BAD: &str = "invalid_client_metadata";
        const REDIRECT: &str = "invalid_redirect_uri";
        if self.software_statement.is_some() {
            return Err(("invalid_software_statement", "software statements are not accepted"));
        }
        let method = match self.token_endpoint_auth_method.as_deref() {
            None => default_method,
            Some(text) => {
                AuthMethod::parse(text).ok_or((BAD, "token_endpoint_auth_method is not supported"))?
            }
        };
        if let Some(set) = &self.jwks {
            if self.jwks_uri.is_some() {
                return Err((BAD, "jwks and jwks_uri exclude each other"));
            }
            if set.keys.len() > 16
                || set.keys.iter().any(|key| key.has_private_part() || VerifyingKey::from_jwk(key).is_err())
            {
                return Err((BAD, "jwks must hold public signature keys only"));
            }
        }
        if method == AuthMethod::PrivateKeyJwt && self.jwks.is_none() {
            return Err((BAD, "private_key_jwt needs jwks"));
        }
        let grants = self.grant_types.unwrap_or_else(|| vec!["authorization_code".into()]);
        let known = |grant: &String| {
            ["authorization_code", "refresh_token", "client_credentials"].contains(&grant.as_str())
        };
        if !grants.iter().all(known)
            || (method == AuthMethod::None && grants.iter().any(|g| g == "client_credentials"))
        {
            return Err((BAD, "a grant type is not supported for this client"));
        }
        if self.response_types.is_some_and(|types| types.iter().any(|kind| kind != "code")) {
            return Err((BAD, "response_types may hold code only"));
        }
        let redirect_uris = self.redirect_uris.unwrap_or_default();
        if grants.iter().any(|grant| grant == "authorization_code") && redirect_uris.is_empty() {
            return Err((REDIRECT, "redirect_uris is needed for authorization_code"));
        }
        if redirect_uris.len() > 32 {
            return Err((REDIRECT, "too many redirect_uris"));
        }
        for uri in &redirect_uris {
            let url = net::check_redirect(uri).map_err(|why| (REDIRECT, why))?;
            match self.application_type.as_deref() {
                Some("web") if net::is_loopback_host(&url) || url.scheme() != "https" => {
                    return Err((REDIRECT, "a web client's redirect must be https and not loopback"));
                }
                None | Some("web" | "native") => {}
                Some(_) => return Err((BAD, "application_type must be web or native")),
            }
        }
        for uri in [&self.client_uri, &self.logo_uri].into_iter().flatten() {
            let url = url::Url::parse(uri).map_err(|_| (BAD, "client_uri and logo_uri must be addresses"))?;
            let private = match url.host() {
                Some(url::Host::Ipv4(ip)) => !net::is_public(ip.into()),
                Some(url::Host::Ipv6(ip)) => !net::is_public(ip.into()),
                Some(url::Host::Domain(name)) => name == "localhost" && origin == Origin::Registered,
                None => true,
            };
            let scheme = url.scheme() == "https" || (url.scheme() == "http" && origin == Origin::Document);
            if !scheme || (private && origin == Origin::Registered) {
                return Err((BAD, "client_uri and logo_uri must be public https addresses"));
            }
        }
        let post_logout_redirect_uris = self.post_logout_redirect_uris.unwrap_or_default();
        if post_logout_redirect_uris.iter().any(|uri| net::check_redirect(uri).is_err()) {
            return Err((BAD, "post_logout_redirect_uris holds an unacceptable address"));
        }
        Ok(OAuthClient {
            // A name of nothing that is shown is none.
            name: self
                .client_name
                .map(|name| crate::pages::plain(&name, 80))
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| "An unnamed client".to_owned()),
            id,
            redirect_uris,
            post_logout_redirect_uris,
            method,
            secret: None,
            grants,
            scopes: self.scope.map(|scope| scope.split_ascii_whitespace().map(str::to_owned).collect()),
            jwks: self.jwks,
            client_uri: self.client_uri,
            introspects: None,
            origin,
            management: None,
            issued_s: 0,
            used_s: 0,
        })
    }
}
