//! Signed tokens: how they are written and how strictly they are read (RFC 7519, RFC 8725, RFC 9068).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    jwk::{Algorithm, SigningKey, VerifyingKey},
    ring::RingSnapshot,
};
use crate::crypto::{b64, unb64};

/// How far two clocks may be apart, in seconds.
pub const SKEW_S: u64 = 60;

/// Longer tokens are refused unread.
pub(crate) const MOST_TOKEN_BYTES: usize = 16 * 1024;

/// The claims of a token.
pub type Claims = Map<String, Value>;

#[derive(Serialize)]
struct Written<'a> {
    alg: Algorithm,
    typ: &'a str,
    kid: &'a str,
}

/// Signs `claims` as a token of type `typ` (`at+jwt` for access tokens).
pub fn sign(key: &SigningKey, typ: &str, claims: &Claims) -> String {
    let header = Written { alg: key.algorithm(), typ, kid: key.kid() };
    let json = "claims and headers are plain JSON";
    let mut token = b64(serde_json::to_vec(&header).expect(json));
    token.push('.');
    token.push_str(&b64(serde_json::to_vec(claims).expect(json)));
    let signature = key.sign(token.as_bytes());
    token.push('.');
    token.push_str(&b64(signature));
    token
}

/// Why a token is refused. Shown to nobody but the log: every one is `invalid_token` outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says it")]
pub enum Refused {
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
    #[error("it names nobody (`sub`)")]
    Subject,
}

/// What a token's header says. Keys and key addresses in a header (`jwk`, `jku`, `x5u`, `x5c`) are never looked at.
#[derive(Debug, Clone, Deserialize)]
pub struct Header {
    alg: String,
    /// The type.
    pub typ: Option<String>,
    /// The key's name.
    pub kid: Option<String>,
    crit: Option<Value>,
}

/// A token that was taken apart but not yet believed.
#[derive(Debug)]
pub struct Token<'a> {
    /// Its header.
    pub header: Header,
    algorithm: Algorithm,
    signed: &'a str,
    payload: &'a str,
    signature: Vec<u8>,
}

/// What must hold of a token's claims.
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
    /// Takes a token apart.
    ///
    /// # Errors
    /// When it is not a JWS in compact form with an accepted algorithm, or has `crit`.
    pub fn parse(text: &'a str) -> Result<Self, Refused> {
        if text.len() > MOST_TOKEN_BYTES {
            return Err(Refused::TooLong);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(Refused::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(Refused::Malformed)?;
        if payload.contains('.') {
            return Err(Refused::Malformed);
        }
        let header = unb64(header).ok_or(Refused::Malformed)?;
        let header: Header = serde_json::from_slice(&header).map_err(|_| Refused::Malformed)?;
        if header.crit.is_some() {
            return Err(Refused::Critical);
        }
        let algorithm =
            serde_json::from_value(Value::String(header.alg.clone())).map_err(|_| Refused::Algorithm)?;
        let signature = unb64(signature).ok_or(Refused::Malformed)?;
        Ok(Self { header, algorithm, signed, payload, signature })
    }

    /// The algorithm it says it is signed with.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The claims, unverified: to find out which issuer or client to verify against.
    ///
    /// # Errors
    /// When the payload is not a JSON object.
    pub fn unverified(&self) -> Result<Claims, Refused> {
        let payload = unb64(self.payload).ok_or(Refused::Malformed)?;
        serde_json::from_slice(&payload).map_err(|_| Refused::Malformed)
    }

    /// The claims, when `key` signed them.
    ///
    /// # Errors
    /// When the key is for another algorithm or did not make the signature.
    pub fn verify(&self, key: &VerifyingKey) -> Result<Claims, Refused> {
        if !key.serves(self.algorithm) {
            return Err(Refused::Algorithm);
        }
        if !key.verify(self.signed.as_bytes(), &self.signature) {
            return Err(Refused::Signature);
        }
        self.unverified()
    }

    /// The claims, when a key of `ring` signed them and they are as `expected`.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn verify_in(&self, ring: &RingSnapshot, expected: &Expected<'_>) -> Result<Claims, Refused> {
        let kid = self.header.kid.as_deref().ok_or(Refused::UnknownKey)?;
        let claims = self.verify(ring.verifying(kid).ok_or(Refused::UnknownKey)?)?;
        expected.check(&self.header, &claims)?;
        Ok(claims)
    }
}

impl Expected<'_> {
    /// Checks type, issuer, audience and times.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn check(&self, header: &Header, claims: &Claims) -> Result<(), Refused> {
        if !self.types.is_empty() {
            let typ = header.typ.as_deref().unwrap_or_default().to_ascii_lowercase();
            let typ = typ.strip_prefix("application/").unwrap_or(&typ);
            if !self.types.contains(&typ) {
                return Err(Refused::Type);
            }
        }
        if claims.get("iss").and_then(Value::as_str) != Some(self.issuer) {
            return Err(Refused::Issuer);
        }
        let named = |value: &Value| value.as_str().is_some_and(|aud| self.audiences.contains(&aud));
        let meant = match claims.get("aud") {
            Some(Value::Array(list)) => list.iter().any(named),
            Some(one) => named(one),
            None => false,
        };
        if !meant {
            return Err(Refused::Audience);
        }
        times(claims, self.now_s)
    }
}

/// Checks `exp` (which must be there), `nbf` and `iat`.
pub(crate) fn times(claims: &Claims, now_s: u64) -> Result<(), Refused> {
    let time = |name: &str| match claims.get(name) {
        None => Ok(None),
        Some(value) => value
            .as_u64()
            .or_else(|| value.as_f64().filter(|t| *t >= 0.0).map(|t| t as u64))
            .map(Some)
            .ok_or(Refused::Malformed),
    };
    let expires = time("exp")?.ok_or(Refused::Expired)?;
    if expires.saturating_add(SKEW_S) <= now_s {
        return Err(Refused::Expired);
    }
    let early = |at: Option<u64>| at.is_some_and(|at| at > now_s + SKEW_S);
    if early(time("nbf")?) || early(time("iat")?) {
        return Err(Refused::NotYet);
    }
    Ok(())
}
