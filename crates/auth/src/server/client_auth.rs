//! Which client a request is from, and whether it is that client.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{header, request::Parts};
use serde_json::Value;
use std::time::Duration;

use super::{
    Core,
    form::{OAuthError, Params},
};
use crate::{
    ceiling::ANONYMOUS,
    clients::{AuthMethod, OAuthClient},
    crypto::{same, sha256_hex},
    keys::{SKEW_S, Token, VerifyingKey},
    store::Key,
};

const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const MOST_ASSERTION_LIFE_S: u64 = 3600;

/// What a request shows of its client.
enum Shown {
    Nothing { id: String },
    Basic { id: String, secret: String },
    Post { id: String, secret: String },
    Assertion { id: String, token: String },
}

/// Reads `Authorization: Basic`; both parts are form-encoded (RFC 6749 §2.3.1).
fn basic(value: &str) -> Option<(String, String)> {
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (id, secret) = text.split_once(':')?;
    let decode = |part: &str| {
        let pair = format!("x={}", part.replace('&', "%26").replace('=', "%3D"));
        url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned())
    };
    Some((decode(id)?, decode(secret)?))
}

fn shown(parts: &Parts, params: &Params) -> Result<Shown, OAuthError> {
    let invalid = OAuthError::invalid_request;
    let mut headers = parts.headers.get_all(header::AUTHORIZATION).iter();
    let header = headers.next().map(|value| value.to_str().unwrap_or_default());
    if headers.next().is_some() {
        return Err(invalid("more than one Authorization header"));
    }
    let (id, secret) = (params.get("client_id"), params.get("client_secret"));
    let assertion = params.get("client_assertion");
    let ways =
        usize::from(header.is_some()) + usize::from(secret.is_some()) + usize::from(assertion.is_some());
    if ways > 1 {
        return Err(invalid("the client authenticates in more than one way"));
    }
    if let Some(value) = header {
        let (held, secret) = basic(value)
            .ok_or_else(|| OAuthError { challenge: Some(BASIC.into()), ..OAuthError::invalid_client() })?;
        if id.is_some_and(|id| id != held) {
            return Err(invalid("client_id differs from the Authorization header"));
        }
        return Ok(Shown::Basic { id: held, secret });
    }
    if let Some(token) = assertion {
        if params.get("client_assertion_type") != Some(ASSERTION) {
            return Err(invalid("client_assertion_type is not supported"));
        }
        let claims = Token::parse(token)
            .and_then(|token| token.unverified())
            .map_err(|_| OAuthError::invalid_client())?;
        let sub = claims.get("sub").and_then(Value::as_str).ok_or_else(OAuthError::invalid_client)?;
        if id.is_some_and(|id| id != sub) {
            return Err(OAuthError::invalid_client());
        }
        return Ok(Shown::Assertion { id: sub.to_owned(), token: token.to_owned() });
    }
    let id = id.ok_or_else(|| invalid("client_id is required"))?.to_owned();
    Ok(match secret {
        Some(secret) => Shown::Post { id, secret: secret.to_owned() },
        None => Shown::Nothing { id },
    })
}

/// Where a client is known from, as far as its name tells.
pub(super) enum KnownAs<'a> {
    /// It stands for callers without a login, and is no client.
    Anonymous,
    Configured(&'a OAuthClient),
    Document,
    /// It registered itself, if there is a record of this name.
    Registered(Key),
}

const BASIC: &str = "Basic realm=\"oauth\", charset=\"UTF-8\"";

impl Core {
    /// The client called `id`. Documents are fetched only when `ip` says for whom.
    pub(crate) async fn client(&self, id: &str, ip: Option<&str>) -> Result<OAuthClient, OAuthError> {
        match self.known_as(id) {
            KnownAs::Anonymous => Err(OAuthError::invalid_client()),
            KnownAs::Configured(client) => Ok(client.clone()),
            KnownAs::Document => self.documents.client(self, id, ip.map(str::to_owned)).await,
            KnownAs::Registered(key) => {
                let held = self.store.get(&key).await?.ok_or_else(OAuthError::invalid_client)?;
                serde_json::from_slice(&held).map_err(|_| crate::store::StoreError::Corrupt.into())
            }
        }
    }

    /// Where to look for the client called `id`.
    pub(super) fn known_as(&self, id: &str) -> KnownAs<'_> {
        if id == ANONYMOUS {
            return KnownAs::Anonymous;
        }
        if let Some(client) = self.statics.get(id) {
            return KnownAs::Configured(client);
        }
        if self.config.cimd.enabled && crate::cimd::looks_like_document(id, &self.config.cimd) {
            return KnownAs::Document;
        }
        KnownAs::Registered(Key::named("client", &[id]))
    }

    /// The configured client of a request, when the request proves it without an assertion (whose `jti` the store must see).
    pub(super) fn static_client(&self, parts: &Parts, params: &Params) -> Option<&OAuthClient> {
        let (id, method, secret) = match shown(parts, params).ok()? {
            Shown::Nothing { id } => (id, AuthMethod::None, None),
            Shown::Basic { id, secret } => (id, AuthMethod::ClientSecretBasic, Some(secret)),
            Shown::Post { id, secret } => (id, AuthMethod::ClientSecretPost, Some(secret)),
            Shown::Assertion { .. } => return None,
        };
        let client = self.statics.get(&id).filter(|client| client.method == method)?;
        let proved = match secret {
            None => true,
            Some(secret) => client.secret.as_ref().is_some_and(|held| same(held, sha256_hex(secret))),
        };
        proved.then_some(client)
    }

    /// The authenticated client of a request to the token, revocation, introspection or PAR endpoint.
    pub(super) async fn authenticate_client(
        &self,
        parts: &Parts,
        params: &Params,
        ip: &str,
    ) -> Result<OAuthClient, OAuthError> {
        let shown = shown(parts, params)?;
        let (id, method) = match &shown {
            Shown::Nothing { id } => (id, AuthMethod::None),
            Shown::Basic { id, .. } => (id, AuthMethod::ClientSecretBasic),
            Shown::Post { id, .. } => (id, AuthMethod::ClientSecretPost),
            Shown::Assertion { id, .. } => (id, AuthMethod::PrivateKeyJwt),
        };
        let refused = || OAuthError {
            challenge: (method == AuthMethod::ClientSecretBasic).then(|| BASIC.into()),
            ..OAuthError::invalid_client()
        };
        let client = self.client(id, Some(ip)).await.map_err(|error| match error.code {
            "invalid_client" => refused(),
            _ => error,
        })?;
        if client.method != method {
            return Err(refused());
        }
        match &shown {
            Shown::Nothing { .. } => {}
            Shown::Basic { secret, .. } | Shown::Post { secret, .. } => {
                if !client.secret.as_ref().is_some_and(|held| same(held, sha256_hex(secret))) {
                    return Err(refused());
                }
            }
            Shown::Assertion { token, .. } => self.check_assertion(&client, token).await?,
        }
        Ok(client)
    }

    /// Checks a client assertion (RFC 7523 §3): signed by a key of the client, for us, short-lived, and new.
    async fn check_assertion(&self, client: &OAuthClient, text: &str) -> Result<(), OAuthError> {
        let refused = |_| OAuthError::invalid_client();
        let token = Token::parse(text).map_err(refused)?;
        let keys = client.jwks.iter().flat_map(|set| &set.keys);
        let named = keys.filter(|key| token.header.kid.is_none() || key.kid == token.header.kid);
        let claims = named
            .filter_map(|key| VerifyingKey::from_jwk(key).ok()?.for_algorithm(token.algorithm()))
            .find_map(|key| token.verify(&key).ok())
            .ok_or_else(OAuthError::invalid_client)?;
        let now = self.clock.now_s();
        crate::keys::check_times(&claims, now).map_err(refused)?;
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let issuer = self.deployment.public_url.as_str();
        let token_endpoint = self.url("/oauth/token");
        let ours = |aud: &Value| aud.as_str().is_some_and(|aud| aud == issuer || aud == token_endpoint);
        let meant = match claims.get("aud") {
            Some(Value::Array(list)) => list.len() == 1 && list.iter().all(ours),
            Some(one) => ours(one),
            None => false,
        };
        let expires = claims.get("exp").and_then(Value::as_u64).unwrap_or_default();
        let jti = text("jti")
            .filter(|jti| !jti.is_empty() && jti.len() <= 256)
            .ok_or_else(OAuthError::invalid_client)?;
        let fits = text("iss") == Some(&client.id) && text("sub") == Some(&client.id) && meant;
        if !fits || expires > now + MOST_ASSERTION_LIFE_S + SKEW_S {
            return Err(OAuthError::invalid_client());
        }
        let life = Duration::from_secs(expires.saturating_sub(now) + 2 * SKEW_S);
        if !self.store.put_new(&Key::named("assertion", &[&client.id, jti]), b"1", life).await? {
            return Err(OAuthError::invalid_client());
        }
        Ok(())
    }
}
