//! Issue of codes and tokens.

use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    ceiling::GrantedScopes,
    crypto::mint,
    error::{OAuthError, no_store},
    grants::Grants,
    keys::{Claims, sign},
    net::ClientAddress,
    records::Grant,
    store::{CodeLife, Digest, FamilyId, StoreError},
    tuning::CODE_LIFETIME,
};

use super::{access::Tokens, id_token::sign_id_token};

/// A grant to issue tokens for.
pub(crate) struct TokenGrant<'a> {
    pub(crate) grant: &'a Grant,
    pub(crate) family: &'a FamilyId,
    pub(crate) scopes: GrantedScopes,
    /// Thumbprint of the DPoP key to bind the access token to.
    pub(crate) jkt: Option<&'a str>,
    /// The refresh token to return.
    pub(crate) refresh: Option<String>,
    /// `nonce` of the ID token.
    pub(crate) nonce: Option<&'a str>,
}

impl Tokens {
    /// Issues an authorization code for `scopes`.
    pub(crate) async fn issue_code(
        &self,
        grant: &Grant,
        scopes: &GrantedScopes,
        at_ms: u64,
    ) -> Result<String, StoreError> {
        let ctx = &self.ctx;
        let grant = Grant {
            scopes: scopes.record(),
            issued_ms: at_ms,
            code_expires_ms: ctx.clock.now_ms() + CODE_LIFETIME.as_millis() as u64,
            ..grant.clone()
        };
        let refresh = std::time::Duration::from_secs(ctx.config.refresh.refresh_token_ttl);
        let life = CodeLife {
            code: CODE_LIFETIME,
            family: ctx.family_lifetime(grant.refreshes),
            refresh: grant.refreshes.then_some(refresh),
        };
        let family = FamilyId::mint(&*ctx.entropy);
        let code = format!("{}.{}", family.as_str(), ctx.new_secret());
        let record = serde_json::to_vec(&grant).unwrap_or_default();
        ctx.store.put_code(&Digest::of(&code), &record, life, &Grants::revocation_keys(&grant)).await?;
        Ok(code)
    }

    /// Issues an access token that no code came before.
    pub(crate) async fn issue_without_code(
        &self,
        mut grant: Grant,
        scopes: GrantedScopes,
        jkt: Option<&str>,
        ip: ClientAddress,
    ) -> Result<Response, OAuthError> {
        let family = FamilyId::mint(&*self.ctx.entropy);
        grant.scopes = scopes.record();
        grant.issued_ms = self.ctx.clock.now_ms();
        let lifetime = self.ctx.family_lifetime(false);
        let record = serde_json::to_vec(&grant).unwrap_or_default();
        self.ctx.store.put_family(&family, &record, lifetime).await?;
        let issue = TokenGrant { grant: &grant, family: &family, scopes, jkt, refresh: None, nonce: None };
        self.issue("token.issued", issue, ip).await
    }

    /// Issues an access token, and an ID token where `openid` was granted.
    pub(crate) async fn issue(
        &self,
        event: &'static str,
        issue: TokenGrant<'_>,
        ip: ClientAddress,
    ) -> Result<Response, OAuthError> {
        let jti = mint::<16>(&*self.ctx.entropy);
        let claims = self.access_claims(&issue, &jti);
        let TokenGrant { grant, scopes, jkt, refresh, nonce, .. } = issue;
        let key = self.keys.snapshot().await.signing().clone();
        let id_claims = self.id_claims(grant, &scopes, nonce);
        let is_slow = key.is_slow();
        let make = move || {
            let token = sign(&key, "at+jwt", &claims);
            let id_token = id_claims.map(|claims| sign_id_token(&key, claims, &token));
            (token, id_token)
        };
        let (token, id_token) = if is_slow {
            tokio::task::spawn_blocking(make)
                .await
                .map_err(|failed| OAuthError::from(StoreError::Unavailable(failed.into())))?
        } else {
            make()
        };
        self.ctx.record_event(event, Some(&grant.sub), Some(&grant.client), Some(ip), Some(&jti));
        let mut body = json!({
            "access_token": token,
            "token_type": if jkt.is_some() { "DPoP" } else { "Bearer" },
            "expires_in": self.ctx.config.refresh.access_token_ttl,
            "scope": scopes.to_text(),
        });
        if let Some(refresh) = refresh {
            body["refresh_token"] = json!(refresh);
        }
        if let Some(id_token) = id_token {
            body["id_token"] = json!(id_token);
        }
        Ok(no_store(StatusCode::OK, &body))
    }

    /// Returns the claims of an access token (RFC 9068 §2.2).
    fn access_claims(&self, issue: &TokenGrant<'_>, jti: &str) -> Claims {
        let TokenGrant { grant, family, scopes, jkt, .. } = issue;
        let now = self.ctx.clock.now_s();
        let aud = match grant.resources.as_slice() {
            [only] => json!(only),
            all => json!(all),
        };
        let mut claims = Claims::new();
        let mut set = |name: &str, value: Value| claims.insert(name.to_owned(), value);
        set("iss", json!(self.ctx.deployment.public_url));
        set("sub", json!(grant.sub));
        set("aud", aud);
        set("exp", json!(now + self.ctx.config.refresh.access_token_ttl));
        set("iat", json!(now));
        set("jti", json!(jti));
        set("client_id", json!(grant.client));
        set("scope", json!(scopes.to_text()));
        set("family", json!(family.as_str()));
        if grant.auth_s > 0 {
            set("auth_time", json!(grant.auth_s));
        }
        if let Some(jkt) = jkt {
            set("cnf", json!({"jkt": jkt}));
        }
        claims
    }
}
