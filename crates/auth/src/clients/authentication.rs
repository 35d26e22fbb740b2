//! Client authentication (RFC 6749 §2.3, RFC 7523).

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{header, request::Parts};
use serde_json::Value;

use crate::{
    crypto::{same, sha256_hex},
    error::OAuthError,
    error_codes::Code,
    keys::{SKEW_S, Token, VerifyingKey, claim_time},
    net::ClientAddress,
    store::Key,
    tuning::MAX_ASSERTION_LIFETIME_S,
    web::params::Params,
};

use super::{
    client::{AuthMethod, OAuthClient},
    registry::Clients,
};

/// Types of client assertions; most have none.
const ASSERTION_TYPES: [&str; 3] = ["", "jwt", "client-authentication+jwt"];
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const BASIC: &str = "Basic realm=\"oauth\", charset=\"UTF-8\"";

/// Credentials of a client, as a request presents them.
enum Credentials {
    None { id: String },
    Basic { id: String, secret: String },
    Post { id: String, secret: String },
    Assertion { id: String, token: String },
}

impl Credentials {
    fn id(&self) -> &str {
        match self {
            Self::None { id }
            | Self::Basic { id, .. }
            | Self::Post { id, .. }
            | Self::Assertion { id, .. } => id,
        }
    }

    fn method(&self) -> AuthMethod {
        match self {
            Self::None { .. } => AuthMethod::None,
            Self::Basic { .. } => AuthMethod::ClientSecretBasic,
            Self::Post { .. } => AuthMethod::ClientSecretPost,
            Self::Assertion { .. } => AuthMethod::PrivateKeyJwt,
        }
    }
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

/// Reads the credentials of a request: one way to authenticate, or none.
fn credentials(parts: &Parts, params: &Params) -> Result<Credentials, OAuthError> {
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
        let (user, secret) =
            basic(value).ok_or_else(|| OAuthError::invalid_client().with_challenge(BASIC))?;
        if id.is_some_and(|id| id != user) {
            return Err(invalid("client_id differs from the Authorization header"));
        }
        return Ok(Credentials::Basic { id: user, secret });
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
        return Ok(Credentials::Assertion { id: sub.to_owned(), token: token.to_owned() });
    }
    let id = id.ok_or_else(|| invalid("client_id is required"))?.to_owned();
    Ok(match secret {
        Some(secret) => Credentials::Post { id, secret: secret.to_owned() },
        None => Credentials::None { id },
    })
}

impl Clients {
    /// Returns the configured client of a request that authenticates without an assertion, whose `jti` the store would have to see.
    pub(crate) fn authenticate_configured(&self, parts: &Parts, params: &Params) -> Option<&OAuthClient> {
        let credentials = credentials(parts, params).ok()?;
        let client = self.get_configured(credentials.id())?;
        let is_authentic = client.method == credentials.method()
            && match &credentials {
                Credentials::None { .. } => true,
                Credentials::Basic { secret, .. } | Credentials::Post { secret, .. } => {
                    client.secret.as_ref().is_some_and(|digest| same(digest, sha256_hex(secret)))
                }
                Credentials::Assertion { .. } => false,
            };
        is_authentic.then_some(client)
    }

    /// Returns the authenticated client of a request to the token, revocation, introspection or PAR endpoint.
    ///
    /// # Errors
    /// `invalid_client`, or `invalid_request` when it authenticates in more than one way.
    pub(crate) async fn authenticate(
        &self,
        parts: &Parts,
        params: &Params,
        caller: ClientAddress,
    ) -> Result<OAuthClient, OAuthError> {
        let credentials = credentials(parts, params)?;
        let method = credentials.method();
        let refused = || match method {
            AuthMethod::ClientSecretBasic => OAuthError::invalid_client().with_challenge(BASIC),
            _ => OAuthError::invalid_client(),
        };
        let client = self.find(credentials.id(), caller).await.map_err(|error| match error.code {
            Code::InvalidClient => refused(),
            _ => error,
        })?;
        if client.method != method {
            return Err(refused());
        }
        match &credentials {
            Credentials::None { .. } => {}
            Credentials::Basic { secret, .. } | Credentials::Post { secret, .. } => {
                if !client.secret.as_ref().is_some_and(|digest| same(digest, sha256_hex(secret))) {
                    return Err(refused());
                }
            }
            Credentials::Assertion { token, .. } => self.check_assertion(&client, token).await?,
        }
        Ok(client)
    }

    /// Checks a client assertion (RFC 7523 §3): signed by a key of the client, for us, short-lived, and new.
    async fn check_assertion(&self, client: &OAuthClient, text: &str) -> Result<(), OAuthError> {
        let refused = |_| OAuthError::invalid_client();
        let token = Token::parse(text).map_err(refused)?;
        // Tokens of other kinds that the key of the client signed are not for its authentication (RFC 8725 §3.11).
        if !token.header.is_of(&ASSERTION_TYPES) {
            return Err(OAuthError::invalid_client());
        }
        let keys = client.jwks.iter().flat_map(|set| &set.keys);
        let named = keys.filter(|key| token.header.kid.is_none() || key.kid == token.header.kid);
        let claims = named
            .filter_map(|key| VerifyingKey::from_jwk(key).ok()?.for_algorithm(token.algorithm()))
            .find_map(|key| token.verify(&key).ok())
            .ok_or_else(OAuthError::invalid_client)?;
        let now = self.ctx.clock.now_s();
        crate::keys::check_times(&claims, now).map_err(refused)?;
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let issuer = self.ctx.deployment.public_url.as_str();
        let token_endpoint = self.ctx.url("/oauth/token");
        let ours = |aud: &Value| aud.as_str().is_some_and(|aud| aud == issuer || aud == token_endpoint);
        let meant = match claims.get("aud") {
            Some(Value::Array(list)) => list.len() == 1 && list.iter().all(ours),
            Some(one) => ours(one),
            None => false,
        };
        let expires = claim_time(&claims, "exp").map_err(refused)?.unwrap_or_default();
        let jti = text("jti")
            .filter(|jti| !jti.is_empty() && jti.len() <= 256)
            .ok_or_else(OAuthError::invalid_client)?;
        let fits = text("iss") == Some(&client.id) && text("sub") == Some(&client.id) && meant;
        if !fits || expires > now + MAX_ASSERTION_LIFETIME_S + SKEW_S {
            return Err(OAuthError::invalid_client());
        }
        let life = Duration::from_secs(expires.saturating_sub(now) + 2 * SKEW_S);
        if !self.ctx.store.put_new(&Key::named("assertion", &[&client.id, jti]), b"1", life).await? {
            return Err(OAuthError::invalid_client());
        }
        Ok(())
    }
}
