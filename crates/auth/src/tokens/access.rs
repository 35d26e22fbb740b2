//! Access tokens (RFC 9068): verification, and the scopes they still grant.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    ceiling::GrantedScopes,
    clients::{ClientSource, Clients, OAuthClient, documents},
    context::Context,
    grants::Grants,
    keys::{Claims, Expected, KeyRing, Token, TokenError},
    records::Grant,
    scopes::RecordedScopes,
    store::{Digest, FamilyId, Key, StoreError},
    work_grant::WorkGrant,
};

/// Types of access tokens.
const ACCESS_TOKEN_TYPES: [&str; 1] = ["at+jwt"];

/// The tokens of this server.
pub(crate) struct Tokens {
    pub(super) ctx: Arc<Context>,
    pub(crate) keys: KeyRing,
    clients: Arc<Clients>,
    grants: Arc<Grants>,
}

/// The grant that a token was issued for.
pub(crate) struct TokenOrigin {
    pub(crate) family: FamilyId,
    pub(crate) grant: Grant,
    /// `jti` of an access token.
    pub(crate) jti: Option<String>,
}

impl Tokens {
    pub(crate) fn new(ctx: Arc<Context>, keys: KeyRing, clients: Arc<Clients>, grants: Arc<Grants>) -> Self {
        Self { ctx, keys, clients, grants }
    }

    /// Returns the claims of an access token for one of `audiences`. Its family may have ended.
    pub(crate) async fn verify(&self, text: &str, audiences: &[&str]) -> Result<Claims, TokenError> {
        let token = Token::parse(text)?;
        let ring = self.keys.snapshot_knowing(token.header.kid.as_deref().unwrap_or_default()).await;
        let issuer = self.ctx.deployment.public_url.as_str();
        let now_s = self.ctx.clock.now_s();
        ring.verify(&token, &Expected { types: &ACCESS_TOKEN_TYPES, issuer, audiences, now_s })
    }

    /// Returns the claims of an access token for any endpoint. Its family may have ended.
    pub(crate) async fn verify_any(&self, text: &str) -> Result<Claims, TokenError> {
        let resources = self.ctx.deployment.resources();
        self.verify(text, &resources.iter().map(String::as_str).collect::<Vec<_>>()).await
    }

    /// Returns the grant of an access token, when its family is alive. [`Tokens::current_scopes`] tells whether the grant still holds.
    pub(crate) async fn grant_of(&self, claims: &Claims) -> Result<Option<(FamilyId, Grant)>, StoreError> {
        let family = claims.get("family").and_then(Value::as_str).and_then(FamilyId::parse);
        let Some(family) = family else { return Ok(None) };
        Ok(self.grant_of_family(&family).await?.map(|grant| (family, grant)))
    }

    async fn grant_of_family(&self, family: &FamilyId) -> Result<Option<Grant>, StoreError> {
        let Some(record) = self.ctx.store.family(family).await? else { return Ok(None) };
        serde_json::from_slice(&record).map(Some).map_err(|_| StoreError::Corrupt)
    }

    /// Returns the scopes that an access token of `family` grants now; `None` when its grant has ended, or its client is not known any
    /// more. Takes one round trip to the store.
    pub(crate) async fn current_scopes(
        &self,
        family: &FamilyId,
        grant: &Grant,
        claims: &Claims,
    ) -> Result<Option<GrantedScopes>, StoreError> {
        self.scopes_now(Some(family), grant, &RecordedScopes::of_claims(claims)).await
    }

    /// Returns those of `scopes` that work has now which `client` began for `sub` at `since_ms` and which goes on without a token; `None` when
    /// everything that was granted until then has ended, or its `grant` before its time, the user may not sign in any more, or the client is not known.
    pub(crate) async fn scopes_of_work(
        &self,
        (sub, client): (&str, &str),
        scopes: &RecordedScopes,
        since_ms: u64,
        grant: Option<&WorkGrant>,
    ) -> Result<Option<GrantedScopes>, StoreError> {
        if !self.grants.may_sign_in(sub) {
            return Ok(None);
        }
        // A family that has outlived its time is gone as well.
        let Some(WorkGrant { family, .. }) = grant.filter(|grant| self.ctx.clock.now_ms() < grant.ends_ms)
        else {
            return self.scopes_now(None, &Grant::behind(sub, client, since_ms), scopes).await;
        };
        let Some(grant) = self.grant_of_family(family).await? else { return Ok(None) };
        if (&*grant.sub, &*grant.client) != (sub, client) {
            return Ok(None);
        }
        self.scopes_now(Some(family), &grant, scopes).await
    }

    /// Returns those of `scopes` that `grant` gives now; `None` when it has ended, its client is not known any more, or its `family` has ended.
    async fn scopes_now(
        &self,
        family: Option<&FamilyId>,
        grant: &Grant,
        scopes: &RecordedScopes,
    ) -> Result<Option<GrantedScopes>, StoreError> {
        let source = self.clients.source(&grant.client);
        let mut keys: Vec<Key> = family.map(Key::family).into_iter().collect();
        keys.extend(Grants::revocation_keys(grant));
        if let ClientSource::Registered(key) = &source {
            keys.push(key.clone());
        }
        let config = &self.ctx.config;
        let mut records = self.ctx.store.get_many(&keys).await?;
        let registered: OAuthClient;
        let documented;
        let client_scopes = match source {
            ClientSource::Anonymous if config.allow_default_public => None,
            ClientSource::Configured(client) => client.scopes.as_deref(),
            ClientSource::Document if documents::check(&grant.client, &config.cimd).is_some() => {
                documented = self.clients.cached_scopes(&grant.client);
                documented.as_deref()
            }
            ClientSource::Registered(_) => {
                let Some(record) = records.pop().flatten() else { return Ok(None) };
                registered = serde_json::from_slice(&record).map_err(|_| StoreError::Corrupt)?;
                registered.scopes.as_deref()
            }
            ClientSource::Anonymous | ClientSource::Document => return Ok(None),
        };
        let mut records = records.into_iter();
        let is_alive = family.is_none() || records.next().flatten().is_some();
        if !is_alive || !self.grants.is_active_given(grant, records.flatten()) {
            return Ok(None);
        }
        let ceiling = self.grants.ceiling_for(&grant.sub, &grant.client, client_scopes);
        Ok(Some(ceiling.narrow(scopes)))
    }

    /// Returns the grant of an access token and the scopes it grants now, when the grant holds.
    pub(crate) async fn current(
        &self,
        claims: &Claims,
    ) -> Result<Option<(Grant, GrantedScopes)>, StoreError> {
        let Some((family, grant)) = self.grant_of(claims).await? else { return Ok(None) };
        let scopes = self.current_scopes(&family, &grant, claims).await?;
        Ok(scopes.map(|scopes| (grant, scopes)))
    }

    /// Returns the grant of an access or refresh token; `None` when the token is not valid.
    pub(crate) async fn origin(&self, token: &str) -> Result<Option<TokenOrigin>, StoreError> {
        if let Some(family) = FamilyId::of_token(token) {
            let Some(found) = self.ctx.store.find(&Digest::of(token), &family).await? else {
                return Ok(None);
            };
            let grant = serde_json::from_slice(&found.grant).map_err(|_| StoreError::Corrupt)?;
            return Ok(Some(TokenOrigin { family, grant, jti: None }));
        }
        let Ok(claims) = self.verify_any(token).await else { return Ok(None) };
        let Some((family, grant)) = self.grant_of(&claims).await? else { return Ok(None) };
        let jti = claims.get("jti").and_then(Value::as_str).map(str::to_owned);
        Ok(Some(TokenOrigin { family, grant, jti }))
    }
}
