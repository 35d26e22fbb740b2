//! Browser sessions of users who signed in.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue};

use crate::{
    accounts::Accounts,
    context::Context,
    crypto::sha256_hex,
    grants::{Grants, Revocation},
    records::{Grant, Session},
    store::{Key, StoreError},
    tuning::SESSION_UPDATE_MS,
    web::params::cookie,
};

/// Sessions that one session replaced and ends with. What was granted in older ones ends when another is added.
const MOST_EARLIER: usize = 16;

/// The sessions.
pub(crate) struct Sessions {
    ctx: Arc<Context>,
    grants: Arc<Grants>,
    accounts: Arc<Accounts>,
}

impl Sessions {
    pub(crate) fn new(ctx: Arc<Context>, grants: Arc<Grants>, accounts: Arc<Accounts>) -> Self {
        Self { ctx, grants, accounts }
    }

    /// Returns the identifier of a browser's session, whether it is alive or not.
    pub(crate) fn id(&self, headers: &HeaderMap) -> Option<String> {
        cookie(headers, &self.ctx.cookie_name("session"))
    }

    /// Returns the session of the browser and its identifier, when it is alive.
    pub(crate) async fn current(&self, headers: &HeaderMap) -> Result<Option<(String, Session)>, StoreError> {
        let Some(id) = self.id(headers) else { return Ok(None) };
        let Some(mut session) = self.live(&sha256_hex(&id)).await? else { return Ok(None) };
        let now = self.ctx.clock.now_ms();
        if now > session.seen_ms + SESSION_UPDATE_MS {
            session.seen_ms = now;
            let left = self.end_of(&session).saturating_sub(now).min(self.ctx.config.session.idle_ttl * 1000);
            let value = serde_json::to_vec(&session).unwrap_or_default();
            self.ctx.store.put(&Key::secret("session", &id), &value, Duration::from_millis(left)).await?;
        }
        Ok(Some((id, session)))
    }

    /// Returns the session whose identifier has this digest, when it is alive.
    pub(crate) async fn live(&self, digest: &str) -> Result<Option<Session>, StoreError> {
        let Some(stored) = self.ctx.store.get(&Key::of_digest("session", digest)).await? else {
            return Ok(None);
        };
        let session: Session = serde_json::from_slice(&stored).map_err(|_| StoreError::Corrupt)?;
        let now = self.ctx.clock.now_ms();
        let idle_end = session.seen_ms + self.ctx.config.session.idle_ttl * 1000;
        if now >= self.end_of(&session).min(idle_end) {
            return Ok(None);
        }
        let as_grant = Grant {
            sub: session.sub.clone(),
            issued_ms: session.started_ms,
            credential: session.credential.clone(),
            session: Some(digest.to_owned()),
            ..Default::default()
        };
        Ok(self.grants.is_active(&as_grant).await?.then_some(session))
    }

    /// Returns the time at which a session ends in any case.
    fn end_of(&self, session: &Session) -> u64 {
        session.started_ms + self.ctx.config.session.absolute_ttl * 1000
    }

    /// Starts a session under a new identifier, and returns that with its cookie. The browser's previous session ends. What the same user granted in it lives
    /// on, until the new one ends.
    pub(crate) async fn start(
        &self,
        headers: &HeaderMap,
        session: &Session,
    ) -> Result<(String, HeaderValue), StoreError> {
        let mut session = session.clone();
        if let Some(previous) = self.id(headers) {
            let digest = sha256_hex(&previous);
            if let Some(before) = self.live(&digest).await?.filter(|before| before.sub == session.sub) {
                session.earlier = before.earlier;
                session.earlier.push(digest);
                while session.earlier.len() > MOST_EARLIER {
                    self.end_digest(&session.earlier.remove(0)).await?;
                }
            }
            self.ctx.store.remove(&Key::secret("session", &previous)).await?;
        }
        let id = self.ctx.new_secret();
        let settings = &self.ctx.config.session;
        let lifetime = Duration::from_secs(settings.idle_ttl.min(settings.absolute_ttl));
        let value = serde_json::to_vec(&session).unwrap_or_default();
        self.ctx.store.put(&Key::secret("session", &id), &value, lifetime).await?;
        self.accounts.add_session(&session.sub, &id, headers).await?;
        let cookie = self.ctx.set_cookie("session", &id, settings.absolute_ttl);
        Ok((id, cookie))
    }

    /// Ends the session `id` and everything that was granted in it, and returns the header that removes its cookie.
    pub(crate) async fn end(&self, id: &str) -> Result<HeaderValue, StoreError> {
        self.end_digest(&sha256_hex(id)).await?;
        Ok(self.ctx.set_cookie("session", "", 0))
    }

    /// Ends the session whose identifier has this digest, and everything that was granted in it and in those that it replaced.
    pub(crate) async fn end_digest(&self, digest: &str) -> Result<(), StoreError> {
        let stored = self.ctx.store.get(&Key::of_digest("session", digest)).await?;
        let session: Option<Session> = stored.and_then(|stored| serde_json::from_slice(&stored).ok());
        for earlier in session.into_iter().flat_map(|session| session.earlier) {
            self.grants.revoke(Revocation::Session(&earlier)).await?;
            self.ctx.store.remove(&Key::of_digest("vault", &earlier)).await?;
        }
        self.ctx.store.remove_many(&["session", "vault"].map(|kind| Key::of_digest(kind, digest))).await?;
        self.grants.revoke(Revocation::Session(digest)).await
    }
}
