//! The provider's tokens in the vault of a session, encrypted.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Answer;
use crate::{
    server::Core,
    store::{Key, StoreError},
};

/// What the vault holds.
#[derive(Serialize, Deserialize)]
pub(super) struct Vaulted {
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    pub(super) expires_s: u64,
    /// When the provider confirmed the user last, in seconds.
    #[serde(default)]
    pub(super) checked_s: u64,
}

impl Answer {
    pub(super) fn vaulted(&self, core: &Core) -> Result<Vaulted, String> {
        let access_token = self.access_token.clone().filter(|token| !token.is_empty());
        let now_s = core.clock.now_s();
        Ok(Vaulted {
            access_token: access_token.ok_or("the token answer has no access_token")?,
            refresh_token: self.refresh_token.clone().filter(|token| !token.is_empty()),
            expires_s: now_s + self.expires_in.unwrap_or(300),
            checked_s: now_s,
        })
    }
}

impl Core {
    /// Puts the provider's tokens into the vault of the session with this digest. They are needed as long as what came of the session.
    pub(super) async fn keep_tokens(&self, session: &str, tokens: &Vaulted) -> Result<(), StoreError> {
        let key = Key::of_digest("vault", session);
        let plain = serde_json::to_vec(tokens).unwrap_or_default();
        let sealed = self.sealer.seal(&*self.entropy, key.as_str(), &plain);
        let refresh = &self.config.refresh;
        let granted_s = if refresh.enabled { refresh.absolute_ttl } else { 0 };
        let life = Duration::from_secs(self.config.session.absolute_ttl.max(granted_s));
        self.store.put(&key, &sealed, life).await
    }

    /// Those tokens. What cannot be opened was given up with its key.
    pub(super) async fn provider_tokens(&self, key: &Key) -> Result<Option<Vaulted>, StoreError> {
        let held = self.store.get(key).await?;
        let plain = held.and_then(|sealed| self.sealer.open(key.as_str(), &sealed));
        Ok(plain.and_then(|plain| serde_json::from_slice(&plain).ok()))
    }
}
