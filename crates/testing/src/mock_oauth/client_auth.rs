//! Client authentication at the token, revocation and introspection endpoints (RFC 6749 §2.3, RFC 7523).

use axum::http::{HeaderMap, StatusCode, header};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    clients::{AuthMethod, KnownClient, find_client},
    form::{Form, TokenError},
    state::SharedIssuer,
};
use crate::{
    base::{lock, unix_now},
    token::{is_signed_by, unverified},
};

const BASIC: &str = "Basic realm=\"mock\", charset=\"UTF-8\"";
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Credentials of a client, as a request presents them.
enum Credentials {
    None,
    Basic(String),
    Post(String),
    Assertion(String),
}

fn refused(credentials: &Credentials, description: &str) -> TokenError {
    let error = TokenError::new(StatusCode::UNAUTHORIZED, "invalid_client", description);
    match credentials {
        // RFC 6749 §5.2: the answer names the scheme that the client used.
        Credentials::Basic(_) => error.challenge(BASIC),
        _ => error,
    }
}

/// Id and secret from HTTP Basic; both are form-encoded (RFC 6749 §2.3.1).
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

/// The id of the client and its credentials: one way to authenticate, or none.
fn presented(headers: &HeaderMap, form: &Form) -> Result<(String, Credentials), TokenError> {
    let (id, secret) = (form.get("client_id"), form.get("client_secret"));
    let (header, assertion) = (headers.get(header::AUTHORIZATION), form.get("client_assertion"));
    let ways = [header.is_some(), secret.is_some(), assertion.is_some()];
    if ways.into_iter().filter(|one| *one).count() > 1 {
        return Err(TokenError::invalid_request("the client authenticates in more than one way"));
    }
    if let Some(value) = header {
        let (user, secret) = basic(value.to_str().unwrap_or_default()).ok_or_else(|| {
            refused(&Credentials::Basic(String::new()), "`Authorization` is not HTTP Basic")
        })?;
        if id.is_some_and(|id| id != user) {
            return Err(TokenError::invalid_request("`client_id` is not the one of `Authorization`"));
        }
        return Ok((user, Credentials::Basic(secret)));
    }
    if let Some(assertion) = assertion {
        if form.get("client_assertion_type") != Some(ASSERTION) {
            return Err(TokenError::invalid_request("`client_assertion_type` is not supported"));
        }
        let credentials = Credentials::Assertion(assertion.to_owned());
        let sub = unverified(assertion).and_then(|(_, claims)| claims["sub"].as_str().map(str::to_owned));
        let sub = sub.filter(|sub| id.is_none_or(|id| id == sub));
        return match sub {
            Some(sub) => Ok((sub, credentials)),
            None => Err(refused(&credentials, "the assertion is of another client, or none")),
        };
    }
    let id = id.ok_or_else(|| TokenError::invalid_request("`client_id` is missing"))?.to_owned();
    let credentials = secret.map_or(Credentials::None, |secret| Credentials::Post(secret.to_owned()));
    Ok((id, credentials))
}

/// Returns the authenticated client of a request.
pub(super) async fn authenticate(
    issuer: &SharedIssuer,
    headers: &HeaderMap,
    form: &Form,
) -> Result<KnownClient, TokenError> {
    let (id, credentials) = presented(headers, form)?;
    let client = find_client(issuer, &id).await.map_err(|problem| refused(&credentials, &problem))?;
    let has_secret = |given: &str| client.secret.as_deref() == Some(given);
    let authentic = match (client.method, &credentials) {
        (AuthMethod::Any, _) | (AuthMethod::None, Credentials::None) => true,
        (AuthMethod::Basic | AuthMethod::AnySecret, Credentials::Basic(secret))
        | (AuthMethod::Post | AuthMethod::AnySecret, Credentials::Post(secret)) => has_secret(secret),
        (AuthMethod::Assertion, Credentials::Assertion(token)) => check_assertion(issuer, &client, token),
        _ => return Err(refused(&credentials, "the client is registered for another way to authenticate")),
    };
    match authentic {
        true => Ok(client),
        false => Err(refused(&credentials, "wrong client or secret")),
    }
}

/// Checks a client assertion (RFC 7523 §3): signed by a key of the client, for this server, not expired, and new.
fn check_assertion(issuer: &SharedIssuer, client: &KnownClient, token: &str) -> bool {
    let keys = client.jwks["keys"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some((_, claims)) = unverified(token).filter(|_| keys.iter().any(|key| is_signed_by(token, key)))
    else {
        return false;
    };
    let mut issuer = lock(issuer);
    let base = issuer.factory.get_issuer().to_owned();
    let ours = |audience: &Value| {
        audience.as_str().is_some_and(|one| one == base || one == format!("{base}/oauth/token"))
    };
    let meant = match &claims["aud"] {
        Value::Array(all) => all.len() == 1 && all.iter().all(ours),
        one => ours(one),
    };
    let valid = claims["exp"].as_i64().is_some_and(|expires| expires > unix_now());
    let own = claims["iss"] == client.id.as_str() && claims["sub"] == client.id.as_str();
    let Some(jti) = claims["jti"].as_str().filter(|jti| !jti.is_empty()) else { return false };
    meant && valid && own && issuer.seen.insert(format!("assertion {} {jti}", client.id))
}
