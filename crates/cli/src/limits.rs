//! Rate limits, counted for all instances where they share a Redis.

use std::{sync::Arc, time::Duration};

use gatewright_auth::{
    SystemClock,
    config::{Mode, StorageKind},
    open_store,
    store::{Key, Store},
};
use gatewright_limits::{Counted, CounterFuture, Limits, SharedCounter, Unavailable};

use crate::config::Config;

/// How long a call waits for the count.
const ANSWER: Duration = Duration::from_millis(500);

/// Counts in the token store.
struct StoreCounter(Arc<dyn Store>);

impl SharedCounter for StoreCounter {
    fn count<'a>(&'a self, key: &'a [&'a str], window: Duration) -> CounterFuture<'a> {
        Box::pin(async move {
            let key = Key::named("limit", key);
            let hit = tokio::time::timeout(ANSWER, self.0.hit(&key, window)).await;
            let hit = hit.map_err(|_| Unavailable)?.map_err(|_| Unavailable)?;
            Ok(Counted { count: hit.count, resets_in: hit.resets_in })
        })
    }
}

/// The limits of `rateLimits`; counted in `auth.tokenStorage` when that is Redis, else in this process.
///
/// # Errors
/// A Redis that does not answer.
pub async fn open(config: &Config) -> anyhow::Result<Arc<Limits>> {
    let limits = Limits::new(config.rate_limits.clone());
    let auth = &config.auth;
    let shares = auth.mode == Mode::Orchestrated && auth.token_storage.kind == StorageKind::Redis;
    if !shares || config.rate_limits.is_empty() {
        return Ok(Arc::new(limits));
    }
    match open_store(auth, Arc::new(SystemClock)).await {
        Ok(store) => Ok(Arc::new(limits.shared(Arc::new(StoreCounter(store))))),
        Err(error) => Err(anyhow::Error::new(error)
            .context("`rateLimits` are counted in `auth.tokenStorage`, which cannot be used")),
    }
}
