//! DPoP proofs of possession (RFC 9449).

use std::time::Duration;

use gatewright_core::Claimant;
use http::{StatusCode, request::Parts};
use serde_json::Value;

use crate::{
    context::Context,
    crypto::{b64, same, sha256, unb64},
    error::OAuthError,
    error_codes::Code,
    json::object,
    keys::{Jwk, MAX_TOKEN_BYTES, Token, VerifyingKey, check_end, check_start},
    quota::Quota,
    store::Key,
    tuning::{DPOP_NONCE_PERIOD_S, DPOP_WINDOW_S},
};

/// Time for which a proof is remembered.
const MEMORY: Duration = Duration::from_secs(2 * DPOP_WINDOW_S + 1);

/// Returns the quota of remembered proofs. One caller may send some 800 in a second.
pub(crate) fn quota() -> Quota {
    Quota::new(500_000)
}

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
        Some(proof) => {
            let request = ProvedRequest { method: parts.method.as_str(), url: &ctx.url(path), token: None };
            check(ctx, proof, request, Claimant::at(ctx.caller(parts).0)).await.map(Some)
        }
        None => Ok(None),
    }
}

/// Returns the same at the resource `url`, for the access token `token` of `subject`. Errors about the proof are challenges with status 401.
pub(crate) async fn of_resource(
    ctx: &Context,
    parts: &Parts,
    url: &str,
    (token, subject): (&str, &str),
) -> Result<Option<String>, OAuthError> {
    let thumbprint = match only_proof(parts) {
        Ok(None) => return Ok(None),
        Ok(Some(proof)) => {
            let request = ProvedRequest { method: parts.method.as_str(), url, token: Some(token) };
            check(ctx, proof, request, Claimant::new(Some(subject.into()), None, &[])).await
        }
        Err(error) => Err(error),
    };
    thumbprint.map(Some).map_err(|error| match error.status {
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => error,
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

/// A request that a proof is for.
struct ProvedRequest<'a> {
    method: &'a str,
    url: &'a str,
    /// The access token, at a resource.
    token: Option<&'a str>,
}

/// Checks a proof, which counts for `claimant`, and returns its key's thumbprint.
async fn check(
    ctx: &Context,
    proof: &str,
    ProvedRequest { method, url, token }: ProvedRequest<'_>,
    claimant: Claimant,
) -> Result<String, OAuthError> {
    if proof.len() > MAX_TOKEN_BYTES {
        return Err(invalid("the proof is too long"));
    }
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
    if !ctx.proofs.reserve(claimant, 1, ctx.clock.now_ms(), MEMORY) {
        return Err(OAuthError::too_many(MEMORY));
    }
    if !ctx.store.put_new(&once, b"1", MEMORY).await? {
        return Err(invalid("the proof was used before"));
    }
    Ok(thumbprint)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::Request;
    use serde_json::json;

    use super::*;
    use crate::{
        AuthorizationServer, Deployment, LogAudit, ManualClock, ServerParts, SystemEntropy,
        keys::{Algorithm, SigningKey},
        store::MemoryStore,
    };

    const URL: &str = "https://mcp.example/mcp";

    fn proof(key: &Jwk, jti: u64, now_s: u64) -> Parts {
        let header = json!({"typ": "dpop+jwt", "alg": "ES256", "jwk": key.public()});
        let ath = b64(sha256("token"));
        let claims = json!({"jti": jti.to_string(), "htm": "POST", "htu": URL, "iat": now_s, "ath": ath});
        let signed = format!("{}.{}", b64(header.to_string()), b64(claims.to_string()));
        let signature = b64(SigningKey::from_jwk(key).unwrap().sign(signed.as_bytes()));
        let request = Request::post("/mcp").header("dpop", format!("{signed}.{signature}"));
        request.body(()).unwrap().into_parts().0
    }

    #[tokio::test]
    async fn a_subject_that_sends_too_many_proofs_waits_and_others_do_not() {
        let clock = Arc::new(ManualClock::from_system());
        let parts = ServerParts {
            store: Arc::new(MemoryStore::new(clock.clone())),
            clock: clock.clone(),
            entropy: Arc::new(SystemEntropy),
            audit: Arc::new(LogAudit),
        };
        let config = json!({"mode": "orchestrated", "type": "local"});
        let config = serde_json::from_value(config).unwrap();
        let deployment = Deployment::new("https://mcp.example", "/mcp", "x");
        let server = AuthorizationServer::with_parts(config, deployment, parts).await.unwrap();
        let ctx = &server.services().ctx;
        let key = Jwk::generate(Algorithm::ES256).unwrap();
        let send = async |subject: &str, jti: u64| {
            let parts = proof(&key, jti, ctx.clock.now_s());
            of_resource(ctx, &parts, URL, ("token", subject)).await.map_err(|error| error.status.as_u16())
        };
        assert_eq!(send("user:alice", 1).await, Ok(Some(key.thumbprint())));
        assert_eq!(send("user:alice", 1).await, Err(401), "used before");
        let alice = Claimant::new(Some("user:alice".into()), None, &[]);
        let mut reserved = 0;
        while ctx.proofs.reserve(alice.clone(), 1, ctx.clock.now_ms(), MEMORY) {
            reserved += 1;
        }
        assert!((50_000..=100_000).contains(&reserved), "{reserved}");
        assert_eq!(send("user:alice", 2).await, Err(429));
        assert!(send("user:bob", 3).await.is_ok());
        clock.advance(MEMORY + Duration::from_secs(1));
        assert!(send("user:alice", 4).await.is_ok());
    }
}
