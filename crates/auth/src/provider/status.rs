//! The status of a user at the provider, asked with the refresh token it gave us each time one of ours is used.
//!
//! The provider's tokens belong to the session that the login began. All clients that the user let in from that session share them.

use gatewright_core::Groups;

use super::{
    client::{LoginError, Provider},
    tokens::{ProviderTokens, renew_tokens},
};
use crate::{
    context::{Context, SealedRecord},
    grants::{Grants, Revocation},
    records::Grant,
    store::{Key, StoreError},
    tuning::{REFRESH_LOCK, REFRESH_POLL},
    users::PROVIDER_PREFIX,
};

/// Status of a user at the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProviderStatus {
    /// The provider confirmed the user, now or a moment ago; with the groups that it then named, if it named the user again.
    Confirmed(Option<Groups>),
    /// It refuses to, or cannot be asked any more: the user has to sign in again.
    Refused,
    /// It does not answer.
    Unavailable,
}

/// Returns the status of a grant's user at the provider they signed in at; users of this server are always confirmed.
pub(crate) async fn status_of(
    ctx: &Context,
    grants: &Grants,
    provider: Option<&Provider>,
    grant: &Grant,
) -> Result<ProviderStatus, StoreError> {
    if !grant.sub.starts_with(PROVIDER_PREFIX) {
        return Ok(ProviderStatus::Confirmed(None));
    }
    // A provider that is not configured any more confirms nobody.
    let Some(provider) = provider.filter(|provider| provider.issued(&grant.sub)) else {
        return Ok(ProviderStatus::Refused);
    };
    let Some(session) = &grant.session else { return Ok(status_by_age(ctx, grant)) };
    let key = Key::of_digest("vault", session);
    let lock = Key::named("vaultlock", &[key.as_str()]);
    let (pause, tries) = REFRESH_POLL;
    for attempt in 0..tries {
        // Most of the time the provider need not be asked, and nobody has to wait for the lock.
        let has_lock = attempt > 0 && ctx.store.put_new(&lock, b"1", REFRESH_LOCK).await?;
        let stored: Option<SealedRecord<ProviderTokens>> = ctx.read_sealed(&key).await?;
        let status = match &stored {
            None => Some(ProviderStatus::Refused),
            Some(SealedRecord { value, .. }) if value.refresh_token.is_none() => {
                Some(status_by_age(ctx, grant))
            }
            Some(SealedRecord { value, .. }) if value.is_recent(ctx) => {
                Some(ProviderStatus::Confirmed(value.groups.clone()))
            }
            Some(stored) if has_lock => {
                Some(ask_provider(ctx, grants, provider, grant, session, stored).await?)
            }
            Some(_) => None,
        };
        if has_lock {
            ctx.store.remove(&lock).await?;
        }
        if let Some(status) = status {
            return Ok(status);
        }
        if attempt > 0 {
            tokio::time::sleep(pause).await;
        }
    }
    Ok(ProviderStatus::Unavailable)
}

/// Returns the status of a user whom the provider cannot be asked about: the login counts as long as a session does.
fn status_by_age(ctx: &Context, grant: &Grant) -> ProviderStatus {
    let end_ms = grant.issued_ms + ctx.config.session.absolute_ttl * 1000;
    if ctx.clock.now_ms() < end_ms { ProviderStatus::Confirmed(None) } else { ProviderStatus::Refused }
}

async fn ask_provider(
    ctx: &Context,
    grants: &Grants,
    provider: &Provider,
    grant: &Grant,
    session: &str,
    stored: &SealedRecord<ProviderTokens>,
) -> Result<ProviderStatus, StoreError> {
    let (sub, client) = (Some(grant.sub.as_str()), Some(grant.client.as_str()));
    match provider.refresh(&grant.sub, &stored.value).await {
        Ok(new) => {
            if !renew_tokens(ctx, session, stored, &new).await? {
                // The user has signed out meanwhile.
                return Ok(ProviderStatus::Refused);
            }
            ctx.record_event("provider.confirmed", sub, client, None, None);
            Ok(ProviderStatus::Confirmed(new.groups))
        }
        Err(RefreshError::Refused(why)) => {
            tracing::info!(why, "the identity provider does not confirm a user any more");
            ctx.store.remove(&Key::of_digest("vault", session)).await?;
            ctx.store.remove(&Key::of_digest("session", session)).await?;
            grants.revoke(Revocation::Session(session)).await?;
            ctx.record_event("provider.refused", sub, client, None, None);
            Ok(ProviderStatus::Refused)
        }
        Err(RefreshError::Failed(why)) => {
            tracing::error!(why, "the identity provider cannot be asked about a user");
            Ok(ProviderStatus::Unavailable)
        }
    }
}

/// A refresh at the provider that failed.
enum RefreshError {
    /// The provider does not accept the refresh token any more, or answers about somebody else.
    Refused(String),
    Failed(String),
}

impl ProviderTokens {
    /// Returns whether the provider confirmed the user a moment ago.
    fn is_recent(&self, ctx: &Context) -> bool {
        ctx.clock.now_s() < self.checked_s.saturating_add(ctx.config.refresh.skew_seconds)
    }
}

impl Provider {
    /// Returns whether a subject is that of a user of this provider.
    fn issued(&self, sub: &str) -> bool {
        sub.strip_prefix(PROVIDER_PREFIX)
            .and_then(|rest| rest.strip_prefix(self.issuer()))
            .is_some_and(|rest| rest.starts_with('#'))
    }

    async fn refresh(&self, sub: &str, stored: &ProviderTokens) -> Result<ProviderTokens, RefreshError> {
        let metadata = self.metadata().await.map_err(RefreshError::Failed)?;
        let token = stored.refresh_token.as_deref().unwrap_or_default();
        let pairs = vec![("grant_type", "refresh_token"), ("refresh_token", token)];
        let answer = match self.request(metadata, pairs).await {
            Ok(answer) => answer,
            Err(error) if error.ends_grant() => return Err(RefreshError::Refused(error.to_string())),
            Err(error) => return Err(RefreshError::Failed(error.to_string())),
        };
        let new = answer.tokens(&self.ctx).map_err(RefreshError::Failed)?;
        let mut groups = stored.groups.clone();
        if let Some(id_token) = &answer.id_token {
            // The same user at the same issuer (OpenID Connect Core §12.2).
            let claims = self.verify_id_token(id_token, None).await.map_err(|why| match why {
                LoginError::Unavailable(why) => RefreshError::Failed(why),
                LoginError::Refused(why) => RefreshError::Refused(why),
            })?;
            let named = claims.get("sub").and_then(serde_json::Value::as_str).unwrap_or_default();
            if self.subject(named) != sub {
                return Err(RefreshError::Refused("its answer is about somebody else".to_owned()));
            }
            groups = Some(self.ctx.config.provider.groups(&claims));
        }
        // A provider that does not rotate leaves the field out (RFC 6749 §6).
        Ok(ProviderTokens {
            refresh_token: new.refresh_token.or_else(|| stored.refresh_token.clone()),
            groups,
            ..new
        })
    }
}
