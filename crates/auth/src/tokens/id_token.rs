//! ID tokens (OpenID Connect Core 1.0 §2): issued where `openid` was granted, and accepted as `id_token_hint`.

use aws_lc_rs::digest::{SHA256, SHA384, SHA512, digest};
use serde_json::json;

use crate::{
    ceiling::GrantedScopes,
    crypto::b64,
    keys::{Algorithm, Claims, SigningKey, Token, TokenError, sign},
    records::Grant,
};

use super::access::Tokens;

/// Type of ID tokens. Access tokens are `at+jwt`, so that neither passes for the other.
const ID_TOKEN_TYPE: &str = "JWT";

/// An ID token of this server that a client sends as a hint.
pub(crate) struct IdTokenHint {
    pub(crate) sub: String,
    pub(crate) client: String,
}

impl Tokens {
    /// Returns the claims of an ID token; `None` where nobody signed in or `openid` was not granted.
    ///
    /// A refreshed grant has no `nonce` and keeps its `auth_time` (OpenID Connect Core §12.2).
    pub(super) fn id_claims(
        &self,
        grant: &Grant,
        scopes: &GrantedScopes,
        nonce: Option<&str>,
    ) -> Option<Claims> {
        if grant.auth_s == 0 || !scopes.contains("openid") {
            return None;
        }
        let now = self.ctx.clock.now_s();
        let mut claims = Claims::new();
        let mut set = |name: &str, value| claims.insert(name.to_owned(), value);
        set("iss", json!(self.ctx.deployment.public_url));
        set("sub", json!(grant.sub));
        // There is one audience, so `azp` would add nothing (OpenID Connect Core §2).
        set("aud", json!(grant.client));
        set("exp", json!(now + self.ctx.config.refresh.access_token_ttl));
        set("iat", json!(now));
        set("auth_time", json!(grant.auth_s));
        if let Some(nonce) = nonce {
            set("nonce", json!(nonce));
        }
        Some(claims)
    }

    /// Verifies an `id_token_hint`. It may have expired (OpenID Connect Core §3.1.2.1).
    pub(crate) async fn id_token_hint(&self, text: &str) -> Result<IdTokenHint, TokenError> {
        let token = Token::parse(text)?;
        let kid = token.header.kid.clone().unwrap_or_default();
        let ring = self.keys.snapshot_knowing(&kid).await;
        let claims = token.verify(ring.verifying(&kid).ok_or(TokenError::UnknownKey)?)?;
        if !token.header.typ.as_deref().is_some_and(|typ| typ.eq_ignore_ascii_case(ID_TOKEN_TYPE)) {
            return Err(TokenError::Type);
        }
        let text = |name: &str| claims.get(name).and_then(|value| value.as_str()).map(str::to_owned);
        if text("iss").as_deref() != Some(&self.ctx.deployment.public_url) {
            return Err(TokenError::Issuer);
        }
        let client = text("aud").ok_or(TokenError::Audience)?;
        Ok(IdTokenHint { sub: text("sub").ok_or(TokenError::Malformed)?, client })
    }
}

/// Signs an ID token with the hash of the access token it accompanies.
pub(super) fn sign_id_token(key: &SigningKey, mut claims: Claims, access_token: &str) -> String {
    claims.insert("at_hash".to_owned(), json!(half_hash(key.algorithm(), access_token)));
    sign(key, ID_TOKEN_TYPE, &claims)
}

/// Returns the left half of the hash of an algorithm (OpenID Connect Core §3.1.3.6; Ed25519 uses SHA-512).
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
