//! Proofs of possession (DPoP, RFC 9449).

use axum::http::{HeaderMap, StatusCode};
use url::Url;

use super::{form::TokenError, state::Issuer};
use crate::{
    base::unix_now,
    token::{is_signed_by, sha256, thumbprint, unverified},
};

/// Age of a proof that is still accepted, and how far in the future it may be, in seconds.
const WINDOW: i64 = 60;

/// Checks the proof of a request, if it has one, and returns the thumbprint of its key. `token` is the access token that the request
/// presents.
pub(super) fn check(
    issuer: &mut Issuer,
    headers: &HeaderMap,
    method: &str,
    path: &str,
    token: Option<&str>,
) -> Result<Option<String>, TokenError> {
    let status = if token.is_some() { StatusCode::UNAUTHORIZED } else { StatusCode::BAD_REQUEST };
    let invalid = |description: &str| {
        let error = TokenError::new(status, "invalid_dpop_proof", description);
        if token.is_some() { error.challenge("DPoP error=\"invalid_dpop_proof\"") } else { error }
    };
    let mut all = headers.get_all("dpop").iter();
    let Some(proof) = all.next() else { return Ok(None) };
    if all.next().is_some() {
        return Err(invalid("there is more than one proof"));
    }
    let proof = proof.to_str().map_err(|_| invalid("the proof is malformed"))?;
    let (header, claims) = unverified(proof).ok_or_else(|| invalid("the proof is malformed"))?;
    let jwk = &header["jwk"];
    let thumb = thumbprint(jwk).ok_or_else(|| invalid("the proof has no public key"))?;
    let is_plain = header.get("crit").is_none() && header.get("b64").is_none();
    if header["typ"] != "dpop+jwt" || jwk.get("d").is_some() || !is_plain {
        return Err(invalid("the proof is of another type, or its key is not public"));
    }
    if !is_signed_by(proof, jwk) {
        return Err(invalid("the proof's signature does not fit"));
    }
    let url = format!("{}{path}", issuer.factory.get_issuer());
    let target = |url: &str| {
        let mut url = Url::parse(url).ok()?;
        url.set_query(None);
        url.set_fragment(None);
        Some(url)
    };
    if claims["htm"] != method || claims["htu"].as_str().and_then(target) != target(&url) {
        return Err(invalid("the proof is for another request"));
    }
    let now = unix_now();
    if claims["iat"].as_i64().is_none_or(|at| (at - now).abs() > WINDOW) {
        return Err(invalid("the proof is too old or too new"));
    }
    // Optional, but they count (RFC 7519 §4.1.4 and §4.1.5).
    let holds = |name: &str, fits: &dyn Fn(i64) -> bool| {
        claims.get(name).is_none_or(|at| at.as_i64().is_some_and(fits))
    };
    if !holds("exp", &|at| at > now - WINDOW) || !holds("nbf", &|at| at <= now + WINDOW) {
        return Err(invalid("the proof has expired, or is not valid yet"));
    }
    if token.is_some_and(|token| claims["ath"] != sha256(token).as_str()) {
        return Err(invalid("the proof is for another token"));
    }
    if let Some(nonce) = &issuer.options.dpop_nonce
        && claims["nonce"] != nonce.as_str()
    {
        let error = TokenError::new(status, "use_dpop_nonce", "the proof needs our nonce");
        return Err(error.header("dpop-nonce", nonce));
    }
    let jti = claims["jti"].as_str().filter(|jti| !jti.is_empty());
    let jti = jti.ok_or_else(|| invalid("the proof has no `jti`"))?;
    if !issuer.seen.insert(format!("proof {thumb} {jti}")) {
        return Err(invalid("the proof was used before"));
    }
    Ok(Some(thumb))
}
