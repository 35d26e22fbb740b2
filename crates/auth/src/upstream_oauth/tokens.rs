//! Users' tokens for other servers: obtained with a code, stored encrypted, refreshed by one instance at a time.

use std::time::Duration;

use gatewright_core::{BearerToken, read_json};
use serde::{Deserialize, Serialize};

use super::{
    client::{ClientIdentity, IssuerTag},
    discovery::ServerMetadata,
    vault::Provider,
};
use crate::{
    context::{Context, SealedRecord},
    fetch::{FetchError, oauth_error},
    store::{Key, StoreError},
    tuning::{REFRESH_LOCK, REFRESH_POLL},
};

const MAX_BYTES: usize = 256 * 1024;

/// A user's tokens for a server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct UserTokens {
    access_token: String,
    refresh_token: Option<String>,
    /// Seconds since the epoch; 0: not known.
    expires_s: u64,
    /// Our client identity when they were issued.
    identity: ClientIdentity,
    issuer: String,
    /// The endpoint that refreshes them.
    token_endpoint: String,
    /// Scopes that were asked for. A server may grant fewer, or names of others that include them: only its refusals say what is missing.
    #[serde(default)]
    scopes: Vec<String>,
}

#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    token_type: Option<String>,
    refresh_token: Option<String>,
    expires_in: Option<u64>,
}

type Stored = SealedRecord<UserTokens>;

/// Returns the text of a record, and its lifetime.
fn record(ctx: &Context, tokens: &UserTokens) -> (Vec<u8>, Duration) {
    (serde_json::to_vec(tokens).unwrap_or_default(), Duration::from_secs(ctx.config.refresh.absolute_ttl))
}

/// A refresh that failed.
enum RefreshError {
    /// The authorization server does not accept the refresh token any more.
    Refused,
    Failed(String),
}

fn store(error: StoreError) -> String {
    error.to_string()
}

impl UserTokens {
    fn from_response(
        body: &[u8],
        now_s: u64,
        (identity, scopes): (ClientIdentity, Vec<String>),
        server: (&str, &str),
    ) -> Result<Self, String> {
        let answer: TokenResponse =
            read_json(body).map_err(|_| "the token answer cannot be read".to_owned())?;
        if !answer.token_type.as_deref().unwrap_or("bearer").eq_ignore_ascii_case("bearer") {
            return Err("the token is of a type the gateway cannot use".to_owned());
        }
        let visible = |c: u8| (0x21..=0x7e).contains(&c);
        if answer.access_token.is_empty() || !answer.access_token.bytes().all(visible) {
            return Err("the token cannot be sent".to_owned());
        }
        Ok(Self {
            access_token: answer.access_token,
            refresh_token: answer.refresh_token,
            expires_s: answer.expires_in.map_or(0, |seconds| now_s.saturating_add(seconds)),
            identity,
            issuer: server.0.to_owned(),
            token_endpoint: server.1.to_owned(),
            scopes,
        })
    }

    fn is_due(&self, now_s: u64, skew_s: u64) -> bool {
        self.expires_s != 0 && now_s.saturating_add(skew_s) >= self.expires_s
    }

    fn bearer(&self) -> BearerToken {
        BearerToken::new(self.access_token.as_str())
    }
}

impl Provider {
    /// Returns the record of a user. The server's address is part of its name: a token is never sent to another server.
    pub(super) fn key(&self, sub: &str) -> Key {
        let (app, resource) = (&self.settings.app, &self.settings.resource);
        Key::secret("vault", &format!("{}:{app}{}:{resource}{sub}", app.len(), resource.len()))
    }

    async fn read(&self, ctx: &Context, key: &Key) -> Result<Option<Stored>, String> {
        ctx.read_sealed(key).await.map_err(store)
    }

    async fn ask(
        &self,
        identity: &ClientIdentity,
        token_endpoint: &str,
        mut pairs: Vec<(&str, &str)>,
    ) -> Result<Vec<u8>, FetchError> {
        let basic = identity.secret.as_deref().filter(|_| !identity.in_form);
        if basic.is_none() {
            pairs.push(("client_id", &identity.id));
        }
        if let (Some(secret), true) = (&identity.secret, identity.in_form) {
            pairs.push(("client_secret", secret));
        }
        let basic = basic.map(|secret| (identity.id.as_str(), secret));
        let body = self.fetcher.post_form(token_endpoint, &pairs, basic, MAX_BYTES).await?.body;
        // Some servers refuse with the status of a success.
        match oauth_error(&body) {
            Some(code) => Err(FetchError::OAuth(200, code)),
            None => Ok(body),
        }
    }

    /// Exchanges a code and stores the tokens.
    pub(super) async fn redeem(
        &self,
        ctx: &Context,
        sub: &str,
        server: &ServerMetadata,
        (identity, scopes): (ClientIdentity, Vec<String>),
        (code, verifier): (&str, &str),
    ) -> Result<(), String> {
        let callback = IssuerTag::of(&server.issuer).callback(ctx);
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", callback.as_str()),
            ("code_verifier", verifier),
        ];
        pairs.extend(self.resource_indicator());
        let body = self
            .ask(&identity, &server.token_endpoint, pairs)
            .await
            .map_err(|error| format!("the code could not be exchanged: {error}"))?;
        let refresh = server.refresh_endpoint.as_ref().unwrap_or(&server.token_endpoint);
        let places = (server.issuer.as_str(), &**refresh);
        let vaulted = UserTokens::from_response(&body, ctx.clock.now_s(), (identity, scopes), places)?;
        let (plain, lifetime) = record(ctx, &vaulted);
        ctx.put_sealed(&self.key(sub), &plain, lifetime).await.map_err(store)
    }

    /// Returns `resource` of token requests (RFC 8707).
    fn resource_indicator(&self) -> Option<(&'static str, &str)> {
        self.settings.is_mcp.then_some(("resource", &*self.settings.resource))
    }

    /// Returns `scopes` and those that the user's token was asked for with.
    pub(super) async fn asked(
        &self,
        ctx: &Context,
        sub: &str,
        scopes: &[String],
    ) -> Result<Vec<String>, String> {
        let stored =
            self.read(ctx, &self.key(sub)).await?.map(|stored| stored.value.scopes).unwrap_or_default();
        let new = scopes.iter().filter(|scope| !stored.contains(scope)).cloned();
        Ok(stored.iter().cloned().chain(new).collect())
    }

    /// Returns the user's token, refreshed when it is about to expire; none if it was not asked for with all of `scopes`.
    pub(super) async fn bearer(
        &self,
        ctx: &Context,
        sub: &str,
        scopes: &[String],
    ) -> Result<Option<BearerToken>, String> {
        let key = self.key(sub);
        let Some(stored) = self.read(ctx, &key).await? else { return Ok(None) };
        let tokens = stored.value;
        if !scopes.iter().all(|scope| tokens.scopes.contains(scope)) {
            return Ok(None);
        }
        if !tokens.is_due(ctx.clock.now_s(), ctx.config.refresh.skew_seconds) {
            return Ok(Some(tokens.bearer()));
        }
        match self.renew(ctx, sub, &key, &tokens).await {
            // The token is still valid for a moment.
            Err(error) if !tokens.is_due(ctx.clock.now_s(), 0) => {
                tracing::warn!(app.id = self.settings.app, error, "a token of a user could not be refreshed");
                Ok(Some(tokens.bearer()))
            }
            renewed => renewed,
        }
    }

    /// Returns another token in place of `token`, which the server refused; `None` when the user must authorize again.
    pub(super) async fn refused(
        &self,
        ctx: &Context,
        sub: &str,
        token: &BearerToken,
    ) -> Result<Option<BearerToken>, String> {
        let key = self.key(sub);
        match self.read(ctx, &key).await? {
            None => Ok(None),
            Some(Stored { value, .. }) if value.bearer() != *token => Ok(Some(value.bearer())),
            Some(Stored { value, .. }) => self.renew(ctx, sub, &key, &value).await,
        }
    }

    /// Replaces a token: this instance refreshes it, or waits for the one that does.
    async fn renew(
        &self,
        ctx: &Context,
        sub: &str,
        key: &Key,
        stored: &UserTokens,
    ) -> Result<Option<BearerToken>, String> {
        let lock = Key::named("vaultlock", &[key.as_str()]);
        let (pause, tries) = REFRESH_POLL;
        for _ in 0..tries {
            let mine = ctx.store.put_new(&lock, b"1", REFRESH_LOCK).await.map_err(store)?;
            // The previous holder of the lock may have refreshed it already.
            let outcome = match self.read(ctx, key).await? {
                None => Some(Ok(None)),
                Some(Stored { value, .. }) if value.access_token != stored.access_token => {
                    Some(Ok(Some(value.bearer())))
                }
                Some(stored) if mine => Some(self.refresh(ctx, sub, key, &stored).await),
                Some(_) => None,
            };
            if mine {
                ctx.store.remove(&lock).await.map_err(store)?;
            }
            if let Some(outcome) = outcome {
                return outcome;
            }
            tokio::time::sleep(pause).await;
        }
        Err("its token is being refreshed; try again".to_owned())
    }

    async fn refresh(
        &self,
        ctx: &Context,
        sub: &str,
        key: &Key,
        stored: &Stored,
    ) -> Result<Option<BearerToken>, String> {
        let app = Some(self.settings.app.as_str());
        match self.refreshed(ctx, &stored.value).await {
            Ok(new) => {
                let (plain, lifetime) = record(ctx, &new);
                if !ctx.replace_sealed(key, stored, &plain, lifetime).await.map_err(store)? {
                    // The user has disconnected meanwhile, or connected again, perhaps as somebody else.
                    return Ok(self.read(ctx, key).await?.map(|other| other.value.bearer()));
                }
                ctx.record_event("upstream.refreshed", Some(sub), app, None, None);
                Ok(Some(new.bearer()))
            }
            Err(RefreshError::Refused) => {
                ctx.end_sealed(key, stored).await.map_err(store)?;
                ctx.record_event("upstream.lost", Some(sub), app, None, None);
                Ok(self.read(ctx, key).await?.map(|other| other.value.bearer()))
            }
            Err(RefreshError::Failed(why)) => Err(why),
        }
    }

    async fn refreshed(&self, ctx: &Context, stored: &UserTokens) -> Result<UserTokens, RefreshError> {
        let token = stored.refresh_token.as_deref().ok_or(RefreshError::Refused)?;
        let mut pairs = vec![("grant_type", "refresh_token"), ("refresh_token", token)];
        pairs.extend(self.resource_indicator());
        let body = match self.ask(&stored.identity, &stored.token_endpoint, pairs).await {
            Ok(body) => body,
            Err(error) if error.ends_grant() => return Err(RefreshError::Refused),
            Err(error) => {
                return Err(RefreshError::Failed(format!("its token could not be refreshed: {error}")));
            }
        };
        let places = (stored.issuer.as_str(), stored.token_endpoint.as_str());
        let mut new = UserTokens::from_response(
            &body,
            ctx.clock.now_s(),
            (stored.identity.clone(), stored.scopes.clone()),
            places,
        )
        .map_err(RefreshError::Failed)?;
        // A server that does not rotate leaves the field out (RFC 6749 §6).
        new.refresh_token = new.refresh_token.or_else(|| stored.refresh_token.clone());
        Ok(new)
    }
}
