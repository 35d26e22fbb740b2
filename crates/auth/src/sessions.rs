//! Browser sessions of users who signed in.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue};

use crate::{
    context::Context,
    crypto::sha256_hex,
    grants::{Grants, Revocation},
    records::{Grant, Session},
    store::{Key, StoreError},
    tuning::SESSION_UPDATE_MS,
    web::params::cookie,
};

/// The sessions.
pub(crate) struct Sessions {
    ctx: Arc<Context>,
    grants: Arc<Grants>,
}

impl Sessions {
    pub(crate) fn new(ctx: Arc<Context>, grants: Arc<Grants>) -> Self {
        Self { ctx, grants }
    }

    /// Returns the identifier of a browser's session, whether it is alive or not.
    pub(crate) fn id(&self, headers: &HeaderMap) -> Option<String> {
        cookie(headers, &self.ctx.cookie_name("session"))
    }

    /// Returns the session of the browser and its identifier, when it is alive.
    pub(crate) async fn current(&self, headers: &HeaderMap) -> Result<Option<(String, Session)>, StoreError> {
        let Some(id) = self.id(headers) else { return Ok(None) };
        let key = Key::secret("session", &id);
        let Some(stored) = self.ctx.store.get(&key).await? else { return Ok(None) };
        let mut session: Session = serde_json::from_slice(&stored).map_err(|_| StoreError::Corrupt)?;
        let (now, settings) = (self.ctx.clock.now_ms(), &self.ctx.config.session);
        let end = session.started_ms + settings.absolute_ttl * 1000;
        if now >= end || now >= session.seen_ms + settings.idle_ttl * 1000 {
            return Ok(None);
        }
        let as_grant = Grant {
            sub: session.sub.clone(),
            issued_ms: session.started_ms,
            credential: session.credential.clone(),
            session: Some(sha256_hex(&id)),
            ..Default::default()
        };
        if !self.grants.is_active(&as_grant).await? {
            return Ok(None);
        }
        if now > session.seen_ms + SESSION_UPDATE_MS {
            session.seen_ms = now;
            let left = Duration::from_millis((end - now).min(settings.idle_ttl * 1000));
            self.ctx.store.put(&key, &serde_json::to_vec(&session).unwrap_or_default(), left).await?;
        }
        Ok(Some((id, session)))
    }

    /// Starts a session under a new identifier, and returns that with its cookie. The browser's previous session ends.
    pub(crate) async fn start(
        &self,
        headers: &HeaderMap,
        session: &Session,
    ) -> Result<(String, HeaderValue), StoreError> {
        if let Some(previous) = self.id(headers) {
            self.ctx.store.remove(&Key::secret("session", &previous)).await?;
        }
        let id = self.ctx.new_secret();
        let settings = &self.ctx.config.session;
        let lifetime = Duration::from_secs(settings.idle_ttl.min(settings.absolute_ttl));
        let value = serde_json::to_vec(session).unwrap_or_default();
        self.ctx.store.put(&Key::secret("session", &id), &value, lifetime).await?;
        let cookie = self.ctx.set_cookie("session", &id, settings.absolute_ttl);
        Ok((id, cookie))
    }

    /// Ends the session `id` and everything that was granted in it, and returns the header that removes its cookie.
    pub(crate) async fn end(&self, id: &str) -> Result<HeaderValue, StoreError> {
        self.ctx.store.remove(&Key::secret("session", id)).await?;
        self.ctx.store.remove(&Key::secret("vault", id)).await?;
        self.grants.revoke(Revocation::Session(&sha256_hex(id))).await?;
        Ok(self.ctx.set_cookie("session", "", 0))
    }
}
