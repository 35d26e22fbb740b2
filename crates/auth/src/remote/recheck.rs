//! Does the provider still know the user? Asked with the refresh token it gave us, each time one of ours is used.
//!
//! What the provider answers lies in the vault of the session that the login began; every client that the user let in from that session shares it.

use std::time::Duration;

use super::{Provider, Vaulted};
use crate::{
    fetch::FetchError,
    records::Grant,
    server::Core,
    store::{Key, StoreError},
};

/// How long an instance may ask before another one does: more than a request can last.
const LOCK: Duration = Duration::from_secs(15);
/// How often one that waits looks, and how often at most.
const LOOK: (Duration, usize) = (Duration::from_millis(50), 200);

/// What is known of a user at the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The provider confirmed the user, now or a moment ago.
    Fine,
    /// It does not, or cannot be asked any more: the user has to log in again.
    Over,
    /// It does not answer.
    Unknown,
}

impl Core {
    /// Whether the provider that the user of `grant` logged in at still confirms them; `Fine` for users of ours.
    pub(crate) async fn standing(&self, grant: &Grant) -> Result<Standing, StoreError> {
        if !grant.sub.starts_with("idp:") {
            return Ok(Standing::Fine);
        }
        // A provider that is configured no more vouches for nobody.
        let Some(provider) = self.provider.as_ref().filter(|provider| provider.names(&grant.sub)) else {
            return Ok(Standing::Over);
        };
        let Some(session) = &grant.session else { return Ok(self.unasked(grant)) };
        let key = Key::of_digest("vault", session);
        let lock = Key::named("vaultlock", &[key.as_str()]);
        for turn in 0..LOOK.1 {
            // Most of the time nothing has to be asked, and so nobody has to wait.
            let mine = turn > 0 && self.store.put_new(&lock, b"1", LOCK).await?;
            let held = self.provider_tokens(&key).await?;
            let standing = match &held {
                None => Some(Standing::Over),
                Some(held) if held.refresh_token.is_none() => Some(self.unasked(grant)),
                Some(held) if held.was_checked(self.clock.now_s(), self.config.refresh.skew_seconds) => {
                    Some(Standing::Fine)
                }
                Some(held) if mine => Some(self.ask_provider(provider, grant, session, held).await?),
                Some(_) => None,
            };
            if mine {
                self.store.remove(&lock).await?;
            }
            if let Some(standing) = standing {
                return Ok(standing);
            }
            if turn > 0 {
                tokio::time::sleep(LOOK.0).await;
            }
        }
        Ok(Standing::Unknown)
    }

    /// A login that nobody can be asked about counts as long as a session does.
    fn unasked(&self, grant: &Grant) -> Standing {
        let over = grant.issued_ms + self.config.session.absolute_ttl * 1000;
        if self.clock.now_ms() < over { Standing::Fine } else { Standing::Over }
    }

    async fn ask_provider(
        &self,
        provider: &Provider,
        grant: &Grant,
        session: &str,
        held: &Vaulted,
    ) -> Result<Standing, StoreError> {
        let (sub, client) = (Some(grant.sub.as_str()), Some(grant.client.as_str()));
        match provider.refresh(self, &grant.sub, held).await {
            Ok(new) => {
                self.keep_tokens(session, &new).await?;
                self.tell("provider.confirmed", sub, client, None, None);
                Ok(Standing::Fine)
            }
            Err(NotRefreshed::Over(why)) => {
                tracing::info!(why, "the identity provider does not confirm a user any more");
                self.store.remove(&Key::of_digest("vault", session)).await?;
                self.store.remove(&Key::of_digest("session", session)).await?;
                self.cut("session", session).await?;
                self.tell("provider.refused", sub, client, None, None);
                Ok(Standing::Over)
            }
            Err(NotRefreshed::Failed(why)) => {
                tracing::error!(why, "the identity provider cannot be asked about a user");
                Ok(Standing::Unknown)
            }
        }
    }
}

/// Why a refresh at the provider gave nothing.
enum NotRefreshed {
    /// The provider does not accept the refresh token any more, or answers about somebody else.
    Over(String),
    Failed(String),
}

impl Vaulted {
    fn was_checked(&self, now_s: u64, skew_s: u64) -> bool {
        now_s < self.checked_s.saturating_add(skew_s)
    }
}

impl Provider {
    /// Whether a subject of ours stands for one of this provider.
    fn names(&self, sub: &str) -> bool {
        sub.strip_prefix("idp:")
            .and_then(|rest| rest.strip_prefix(&self.issuer))
            .is_some_and(|rest| rest.starts_with('#'))
    }

    async fn refresh(&self, core: &Core, sub: &str, held: &Vaulted) -> Result<Vaulted, NotRefreshed> {
        let metadata = self.metadata().await.map_err(NotRefreshed::Failed)?;
        let token = held.refresh_token.as_deref().unwrap_or_default();
        let pairs = vec![("grant_type", "refresh_token"), ("refresh_token", token)];
        let answer = match self.ask(&metadata.token_endpoint, pairs).await {
            Ok(answer) => answer,
            Err(error) if error.ends_grant() => return Err(NotRefreshed::Over(error.to_string())),
            Err(error) => return Err(NotRefreshed::Failed(error.to_string())),
        };
        let new = answer.vaulted(core).map_err(NotRefreshed::Failed)?;
        if let Some(id_token) = &answer.id_token {
            // The same user at the same issuer (OpenID Connect Core §12.2).
            let claims = self.identity(core, id_token, None).await.map_err(|why| match why {
                super::NotConfirmed::Down(why) => NotRefreshed::Failed(why),
                super::NotConfirmed::Refused(why) => NotRefreshed::Over(why),
            })?;
            let told = claims.get("sub").and_then(serde_json::Value::as_str).unwrap_or_default();
            if self.subject(told) != sub {
                return Err(NotRefreshed::Over("its answer is about somebody else".to_owned()));
            }
        }
        // A provider that does not rotate leaves the field out (RFC 6749 §6).
        Ok(Vaulted { refresh_token: new.refresh_token.or_else(|| held.refresh_token.clone()), ..new })
    }
}

impl FetchError {
    /// Whether a token endpoint says that the grant is over, and not that something is wrong with the request or the server.
    pub(crate) fn ends_grant(&self) -> bool {
        match self {
            Self::Said(_, code) => matches!(
                code.as_str(),
                "invalid_grant"
                    | "access_denied"
                    | "login_required"
                    | "interaction_required"
                    | "consent_required"
            ),
            Self::Status(status) => matches!(status, 400 | 401 | 403),
            Self::Refused | Self::TooLarge | Self::Failed => false,
        }
    }

    /// Whether it may well work in a moment.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Failed => true,
            Self::Said(status, _) | Self::Status(status) => *status == 429 || *status >= 500,
            Self::Refused | Self::TooLarge => false,
        }
    }
}
