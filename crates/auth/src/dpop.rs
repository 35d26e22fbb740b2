//! DPoP proofs of possession (RFC 9449).

use std::time::Duration;

use http::{StatusCode, request::Parts};
use serde_json::Value;

use crate::{
    context::Context,
    crypto::{b64, same, sha256, unb64},
    error::OAuthError,
    error_codes::Code,
    json::object,
    keys::{Jwk, Token, VerifyingKey, check_end, check_start},
    store::Key,
    tuning::{DPOP_NONCE_PERIOD_S, DPOP_WINDOW_S},
};

fn invalid(text: &'static str) -> OAuthError {
    OAuthError::new(Code::InvalidDpopProof, text)
}

/// Returns the nonce of a period.
fn nonce(ctx: &Context, period: u64) -> String {
    let derived = crate::crypto::derive(&ctx.sealer.root_for("dpop"), &period.to_be_bytes());
    b64(&derived[..18])
}

/// Returns the thumbprint of the key that a request to our endpoint `path` proves, when it has a proof.
pub(crate) async fn of_request(
    ctx: &Context,
    parts: &Parts,
    path: &str,
) -> Result<Option<String>, OAuthError> {
    match only_proof(parts)? {
        Some(proof) => check(ctx, proof, parts.method.as_str(), &ctx.url(path), None).await.map(Some),
        None => Ok(None),
    }
}

/// Returns the same at the resource `url`, for the access token `token`. Errors are challenges with status 401.
pub(crate) async fn of_resource(
    ctx: &Context,
    parts: &Parts,
    url: &str,
    token: &str,
) -> Result<Option<String>, OAuthError> {
    let thumbprint = match only_proof(parts) {
        Ok(None) => return Ok(None),
        Ok(Some(proof)) => check(ctx, proof, parts.method.as_str(), url, Some(token)).await,
        Err(error) => Err(error),
    };
    thumbprint.map(Some).map_err(|error| match error.status {
        StatusCode::SERVICE_UNAVAILABLE => error,
        _ => OAuthError {
            status: StatusCode::UNAUTHORIZED,
            challenge: Some(format!("DPoP error=\"{}\"", error.code.as_str())),
            ..error
        },
    })
}

fn only_proof(parts: &Parts) -> Result<Option<&str>, OAuthError> {
    let mut proofs = parts.headers.get_all("dpop").iter();
    let Some(proof) = proofs.next() else { return Ok(None) };
    if proofs.next().is_some() {
        return Err(invalid("more than one proof"));
    }
    proof.to_str().map(Some).map_err(|_| invalid("the proof is not text"))
}

/// Checks a proof for `method` and `url`, for the access token `token` at a resource, and returns its key's thumbprint.
async fn check(
    ctx: &Context,
    proof: &str,
    method: &str,
    url: &str,
    token: Option<&str>,
) -> Result<String, OAuthError> {
    let header = proof.split('.').next().and_then(unb64).ok_or_else(|| invalid("the proof is malformed"))?;
    let header = object(&header).map_err(|_| invalid("the proof is malformed, or has a member twice"))?;
    if header.get("typ").and_then(Value::as_str) != Some("dpop+jwt") {
        return Err(invalid("the proof is of another type"));
    }
    let jwk: Jwk = header
        .get("jwk")
        .cloned()
        .and_then(|jwk| serde_json::from_value(jwk).ok())
        .ok_or_else(|| invalid("the proof has no key"))?;
    if jwk.has_private_part() {
        return Err(invalid("the proof's key is not public"));
    }
    let parsed = Token::parse(proof).map_err(|_| invalid("the proof is malformed"))?;
    let key = VerifyingKey::from_jwk(&jwk).ok().and_then(|key| key.for_algorithm(parsed.algorithm()));
    let claims = key
        .and_then(|key| parsed.verify(&key).ok())
        .ok_or_else(|| invalid("the proof's signature does not fit"))?;
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let target = |url: &str| {
        url::Url::parse(url).ok().map(|mut url| {
            url.set_query(None);
            url.set_fragment(None);
            url
        })
    };
    if text("htm") != Some(method) || text("htu").and_then(target) != target(url) {
        return Err(invalid("the proof is for another request"));
    }
    let now = ctx.clock.now_s();
    let at = claims.get("iat").and_then(Value::as_u64).ok_or_else(|| invalid("the proof has no time"))?;
    if at.abs_diff(now) > DPOP_WINDOW_S {
        return Err(invalid("the proof is too old or too new"));
    }
    if check_end(&claims, now).is_err() || check_start(&claims, now).is_err() {
        return Err(invalid("the proof has expired, or is not valid yet (exp, nbf)"));
    }
    if let Some(token) = token
        && !text("ath").is_some_and(|ath| same(ath, b64(sha256(token))))
    {
        return Err(invalid("the proof is for another token"));
    }
    if ctx.config.require_dpop_nonce {
        let period = now / DPOP_NONCE_PERIOD_S;
        let is_current =
            |sent: &str| same(sent, nonce(ctx, period)) || same(sent, nonce(ctx, period.saturating_sub(1)));
        if !text("nonce").is_some_and(is_current) {
            let status = if token.is_some() { StatusCode::UNAUTHORIZED } else { StatusCode::BAD_REQUEST };
            return Err(OAuthError {
                status,
                dpop_nonce: Some(nonce(ctx, period)),
                ..OAuthError::new(Code::UseDpopNonce, "the proof needs our nonce")
            });
        }
    }
    let jti = text("jti")
        .filter(|jti| !jti.is_empty() && jti.len() <= 256)
        .ok_or_else(|| invalid("the proof has no jti"))?;
    let thumbprint = jwk.thumbprint();
    let once = Key::named("proof", &[&thumbprint, jti, url]);
    if !ctx.store.put_new(&once, b"1", Duration::from_secs(2 * DPOP_WINDOW_S + 1)).await? {
        return Err(invalid("the proof was used before"));
    }
    Ok(thumbprint)
}
