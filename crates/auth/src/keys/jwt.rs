//! Signed tokens (RFC 7519, RFC 9068), parsed as strictly as RFC 8725 asks.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::jwk::{Algorithm, SigningKey, VerifyingKey};
use crate::{
    crypto::{b64, unb64},
    json::object,
};

/// Greatest difference between two clocks, in seconds.
pub const SKEW_S: u64 = 60;

/// Longest token that is parsed.
pub(crate) const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// The claims of a token.
pub type Claims = Map<String, Value>;

#[derive(Serialize)]
struct JoseHeader<'a> {
    alg: Algorithm,
    typ: &'a str,
    kid: &'a str,
}

/// Signs `claims` as a token of type `typ` (`at+jwt` for access tokens).
pub fn sign(key: &SigningKey, typ: &str, claims: &Claims) -> String {
    let header = JoseHeader { alg: key.algorithm(), typ, kid: key.kid() };
    let json = "claims and headers are plain JSON";
    let mut token = b64(serde_json::to_vec(&header).expect(json));
    token.push('.');
    token.push_str(&b64(serde_json::to_vec(claims).expect(json)));
    let signature = key.sign(token.as_bytes());
    token.push('.');
    token.push_str(&b64(signature));
    token
}

/// A token that is refused. The reason is only logged: clients get `invalid_token`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says it")]
pub enum TokenError {
    #[error("it is too long")]
    TooLong,
    #[error("it is not a signed JSON Web Token")]
    Malformed,
    #[error("its algorithm is not accepted")]
    Algorithm,
    #[error("it names extensions that must be understood")]
    Critical,
    #[error("it is of another type")]
    Type,
    #[error("its key is not known")]
    UnknownKey,
    #[error("its signature does not fit")]
    Signature,
    #[error("it is of another issuer")]
    Issuer,
    #[error("it is meant for another audience")]
    Audience,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    NotYet,
    #[error("it was issued to another client")]
    Client,
    #[error("it was revoked")]
    Revoked,
    #[error("it is bound to a key the caller did not show")]
    Binding,
    #[error("it names nobody (`sub`), or somebody else")]
    Subject,
    #[error("it is no API key of this server")]
    UnknownApiKey,
}

/// The header of a token. Keys and key addresses in it (`jwk`, `jku`, `x5u`, `x5c`) are ignored.
#[derive(Debug, Clone, Deserialize)]
pub struct Header {
    alg: String,
    /// The type.
    pub typ: Option<String>,
    /// The key's name.
    pub kid: Option<String>,
    crit: Option<Value>,
    b64: Option<Value>,
}

/// A token that was parsed but not verified.
#[derive(Debug)]
pub struct Token<'a> {
    /// Its header.
    pub header: Header,
    algorithm: Algorithm,
    signed: &'a str,
    payload: &'a str,
    signature: Vec<u8>,
}

/// Requirements for the claims of a token.
#[derive(Debug, Clone)]
pub struct Expected<'a> {
    /// Types accepted, compared without regard to case; `application/` before them is ignored. Empty: any.
    pub types: &'a [&'a str],
    /// The issuer, byte for byte.
    pub issuer: &'a str,
    /// One of these must be in `aud`, byte for byte.
    pub audiences: &'a [&'a str],
    /// Seconds since the epoch.
    pub now_s: u64,
}

impl<'a> Token<'a> {
    /// Parses a token.
    ///
    /// # Errors
    /// It is not a JWS in compact form with an accepted algorithm, or has `crit`.
    pub fn parse(text: &'a str) -> Result<Self, TokenError> {
        if text.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::TooLong);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        if payload.contains('.') {
            return Err(TokenError::Malformed);
        }
        let header = unb64(header).ok_or(TokenError::Malformed)?;
        let header: Header =
            serde_json::from_value(read(&header)?.into()).map_err(|_| TokenError::Malformed)?;
        // The payload of a JSON Web Token is always encoded (RFC 7797 §7).
        if header.crit.is_some() || header.b64.as_ref().is_some_and(|encoded| *encoded != Value::Bool(true)) {
            return Err(TokenError::Critical);
        }
        let algorithm =
            serde_json::from_value(Value::String(header.alg.clone())).map_err(|_| TokenError::Algorithm)?;
        let signature = unb64(signature).ok_or(TokenError::Malformed)?;
        Ok(Self { header, algorithm, signed, payload, signature })
    }

    /// Returns the algorithm of its header.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the claims without verification, to find the issuer or client to verify them with.
    ///
    /// # Errors
    /// The payload is not a JSON object.
    pub fn unverified(&self) -> Result<Claims, TokenError> {
        let payload = unb64(self.payload).ok_or(TokenError::Malformed)?;
        read(&payload)
    }

    /// Returns the claims, when `key` signed them.
    ///
    /// # Errors
    /// The key is for another algorithm or did not make the signature.
    pub fn verify(&self, key: &VerifyingKey) -> Result<Claims, TokenError> {
        if !key.serves(self.algorithm) {
            return Err(TokenError::Algorithm);
        }
        if !key.verify(self.signed.as_bytes(), &self.signature) {
            return Err(TokenError::Signature);
        }
        self.unverified()
    }
}

/// Reads an object. One with a member that is there twice is refused: others may have read the other one.
fn read(json: &[u8]) -> Result<Claims, TokenError> {
    object(json).map_err(|_| TokenError::Malformed)
}

impl Header {
    /// Returns `true` if the type is one of `types`, compared without regard to case; `application/` before it is ignored, and `""` is a
    /// header without a type.
    pub(crate) fn is_of(&self, types: &[&str]) -> bool {
        let typ = self.typ.as_deref().unwrap_or_default().to_ascii_lowercase();
        types.contains(&typ.strip_prefix("application/").unwrap_or(&typ))
    }
}

impl Expected<'_> {
    /// Checks type, issuer, audience and times.
    ///
    /// # Errors
    /// The first requirement that is not met.
    pub fn check(&self, header: &Header, claims: &Claims) -> Result<(), TokenError> {
        if !self.types.is_empty() && !header.is_of(self.types) {
            return Err(TokenError::Type);
        }
        if claims.get("iss").and_then(Value::as_str) != Some(self.issuer) {
            return Err(TokenError::Issuer);
        }
        let named = |value: &Value| value.as_str().is_some_and(|aud| self.audiences.contains(&aud));
        let meant = match claims.get("aud") {
            Some(Value::Array(list)) => list.iter().any(named),
            Some(one) => named(one),
            None => false,
        };
        if !meant {
            return Err(TokenError::Audience);
        }
        check_times(claims, self.now_s)
    }
}

/// Checks `exp` (which must be there), `nbf` and `iat`.
pub(crate) fn check_times(claims: &Claims, now_s: u64) -> Result<(), TokenError> {
    if !claims.contains_key("exp") {
        return Err(TokenError::Expired);
    }
    check_end(claims, now_s)?;
    check_start(claims, now_s)?;
    match claim_time(claims, "iat")? {
        Some(at) if at > now_s + SKEW_S => Err(TokenError::NotYet),
        _ => Ok(()),
    }
}

/// Checks `exp`, if it is there.
pub(crate) fn check_end(claims: &Claims, now_s: u64) -> Result<(), TokenError> {
    match claim_time(claims, "exp")? {
        Some(expires) if expires.saturating_add(SKEW_S) <= now_s => Err(TokenError::Expired),
        _ => Ok(()),
    }
}

/// Checks `nbf`, if it is there.
pub(crate) fn check_start(claims: &Claims, now_s: u64) -> Result<(), TokenError> {
    match claim_time(claims, "nbf")? {
        Some(at) if at > now_s + SKEW_S => Err(TokenError::NotYet),
        _ => Ok(()),
    }
}

/// Returns the time that a claim names, in whole seconds. It may have fractions (RFC 7519 §2, NumericDate).
pub(crate) fn claim_time(claims: &Claims, name: &str) -> Result<Option<u64>, TokenError> {
    match claims.get(name) {
        None => Ok(None),
        Some(value) => value
            .as_u64()
            .or_else(|| value.as_f64().filter(|t| *t >= 0.0).map(|t| t as u64))
            .map(Some)
            .ok_or(TokenError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_there_twice_is_refused_in_the_header_and_in_the_claims() {
        let token = |header: &str, claims: &str| format!("{}.{}.AAAA", b64(header), b64(claims));
        let (header, claims) = (r#"{"alg":"ES256","typ":"JWT"}"#, r#"{"sub":"ann","scope":{"a":1}}"#);
        assert!(Token::parse(&token(header, claims)).unwrap().unverified().is_ok());
        let twice = token(r#"{"alg":"ES256","typ":"at+jwt","typ":"JWT"}"#, claims);
        assert_eq!(Token::parse(&twice).unwrap_err(), TokenError::Malformed);
        for claims in [r#"{"sub":"ann","sub":"bob"}"#, r#"{"sub":"ann","scope":{"a":1,"a":2}}"#] {
            let twice = token(header, claims);
            assert_eq!(Token::parse(&twice).unwrap().unverified(), Err(TokenError::Malformed));
        }
    }
}
