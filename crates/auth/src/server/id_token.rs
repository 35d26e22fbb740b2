//! ID tokens (OpenID Connect Core 1.0 §2): told to a client that was granted `openid`, and read again as hints.

use aws_lc_rs::digest::{SHA256, SHA384, SHA512, digest};
use serde_json::json;

use super::Core;
use crate::{
    ceiling::GrantedScopes,
    crypto::b64,
    keys::{Algorithm, Claims, Refused, SigningKey, Token, sign},
    records::Grant,
};

/// The type of our ID tokens; access tokens are `at+jwt`, so neither passes for the other.
const TYPE: &str = "JWT";

/// Whom an ID token of ours was about, and which client it was for.
pub(super) struct Hinted {
    pub(super) sub: String,
    pub(super) client: String,
}

impl Core {
    /// What the client learns about a login; `None` where nobody logged in or `openid` was not granted.
    ///
    /// A refreshed grant has no `nonce` and keeps its `auth_time` (OpenID Connect Core §12.2).
    pub(super) fn identity(
        &self,
        grant: &Grant,
        scopes: &GrantedScopes,
        nonce: Option<&str>,
    ) -> Option<Claims> {
        if grant.auth_s == 0 || !scopes.contains("openid") {
            return None;
        }
        let now = self.clock.now_s();
        let mut claims = Claims::new();
        let mut set = |name: &str, value| claims.insert(name.to_owned(), value);
        set("iss", json!(self.deployment.public_url));
        set("sub", json!(grant.sub));
        // One audience: `azp` would say nothing more (OpenID Connect Core §2).
        set("aud", json!(grant.client));
        set("exp", json!(now + self.config.refresh.access_token_ttl));
        set("iat", json!(now));
        set("auth_time", json!(grant.auth_s));
        if let Some(nonce) = nonce {
            set("nonce", json!(nonce));
        }
        Some(claims)
    }

    /// Reads an ID token that comes back as a hint. It may have expired (OpenID Connect Core §3.1.2.1).
    pub(super) async fn hinted(&self, text: &str) -> Result<Hinted, Refused> {
        let token = Token::parse(text)?;
        let kid = token.header.kid.clone().unwrap_or_default();
        let ring = self.ring.snapshot_knowing(&kid).await;
        let claims = token.verify(ring.verifying(&kid).ok_or(Refused::UnknownKey)?)?;
        if !token.header.typ.as_deref().is_some_and(|typ| typ.eq_ignore_ascii_case(TYPE)) {
            return Err(Refused::Type);
        }
        let text = |name: &str| claims.get(name).and_then(|value| value.as_str()).map(str::to_owned);
        if text("iss").as_deref() != Some(&self.deployment.public_url) {
            return Err(Refused::Issuer);
        }
        let client = text("aud").ok_or(Refused::Audience)?;
        Ok(Hinted { sub: text("sub").ok_or(Refused::Malformed)?, client })
    }
}

/// Signs an ID token for the access token it comes with.
pub(super) fn sign_identity(key: &SigningKey, mut claims: Claims, access_token: &str) -> String {
    claims.insert("at_hash".to_owned(), json!(half_hash(key.algorithm(), access_token)));
    sign(key, TYPE, &claims)
}

/// The left half of the hash that belongs to an algorithm (OpenID Connect Core §3.1.3.6; Ed25519 hashes with SHA-512).
fn half_hash(algorithm: Algorithm, text: &str) -> String {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    let with = match algorithm {
        RS256 | PS256 | ES256 => &SHA256,
        RS384 | PS384 | ES384 => &SHA384,
        RS512 | PS512 | EdDSA => &SHA512,
    };
    let hash = digest(with, text.as_bytes());
    b64(&hash.as_ref()[..hash.as_ref().len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_an_access_token_is_that_of_the_specifications_example() {
        // OpenID Connect Core §A.3: an RS256 ID token with this access token.
        let hash = half_hash(Algorithm::RS256, "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y");
        assert_eq!(hash, "77QmUPtjPfzWtF2AnpK9RQ");
        assert_eq!(half_hash(Algorithm::EdDSA, "x").len(), 43);
    }
}
