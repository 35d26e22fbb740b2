//! The provider's tokens, stored encrypted with the browser session that the login began.

use std::time::Duration;

use gatewright_core::Groups;
use serde::{Deserialize, Serialize};

use crate::{
    context::{Context, SealedRecord},
    store::{Key, StoreError},
};

/// A token response of the provider (RFC 6749 §5.1).
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenResponse {
    access_token: Option<String>,
    refresh_token: Option<String>,
    pub(super) id_token: Option<String>,
    expires_in: Option<u64>,
}

/// The provider's tokens for a user.
#[derive(Serialize, Deserialize)]
pub(crate) struct ProviderTokens {
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    pub(super) expires_s: u64,
    /// Time at which the provider last confirmed the user, in seconds.
    #[serde(default)]
    pub(super) checked_s: u64,
    /// Groups of the last ID token that came with a refresh. None until there was one.
    #[serde(default)]
    pub(super) groups: Option<Groups>,
}

impl TokenResponse {
    pub(super) fn tokens(&self, ctx: &Context) -> Result<ProviderTokens, String> {
        let access_token = self.access_token.clone().filter(|token| !token.is_empty());
        let now_s = ctx.clock.now_s();
        Ok(ProviderTokens {
            access_token: access_token.ok_or("the token answer has no access_token")?,
            refresh_token: self.refresh_token.clone().filter(|token| !token.is_empty()),
            expires_s: now_s.saturating_add(self.expires_in.unwrap_or(300)),
            checked_s: now_s,
            groups: None,
        })
    }
}

/// Stores the provider's tokens with the session that has this digest, for as long as what was granted in that session can live.
pub(crate) async fn save_tokens(
    ctx: &Context,
    session: &str,
    tokens: &ProviderTokens,
) -> Result<(), StoreError> {
    let (plain, lifetime) = record(ctx, tokens);
    ctx.put_sealed(&Key::of_digest("vault", session), &plain, lifetime).await
}

/// Stores `tokens` in the place of `before`; `false` if the session has ended meanwhile, and these with it.
pub(super) async fn renew_tokens(
    ctx: &Context,
    session: &str,
    before: &SealedRecord<ProviderTokens>,
    tokens: &ProviderTokens,
) -> Result<bool, StoreError> {
    let (plain, lifetime) = record(ctx, tokens);
    ctx.replace_sealed(&Key::of_digest("vault", session), before, &plain, lifetime).await
}

fn record(ctx: &Context, tokens: &ProviderTokens) -> (Vec<u8>, Duration) {
    let refresh = &ctx.config.refresh;
    let granted_s = if refresh.enabled { refresh.absolute_ttl } else { 0 };
    let lifetime = Duration::from_secs(ctx.config.session.absolute_ttl.max(granted_s));
    (serde_json::to_vec(tokens).unwrap_or_default(), lifetime)
}
