//! Rate limits, counted for all instances where they share a Redis.

use std::{sync::Arc, time::Duration};

use gatewright_auth::{
    SystemClock,
    config::{Mode, StorageKind},
    open_store,
    store::{Key, Store},
};
use gatewright_operator::limits::{Counted, CounterFuture, Limits, SharedCounter, Unavailable};

use super::{GuardConfig, GuardError};

/// Longest wait of a call for the shared count.
const COUNT_TIMEOUT: Duration = Duration::from_millis(500);

/// Counts calls in the token store.
struct StoreCounter(Arc<dyn Store>);

impl SharedCounter for StoreCounter {
    fn count<'a>(&'a self, key: &'a [&'a str], window: Duration) -> CounterFuture<'a> {
        Box::pin(async move {
            let key = Key::named("limit", key);
            let hit = tokio::time::timeout(COUNT_TIMEOUT, self.0.hit(&key, window)).await;
            let hit = hit.map_err(|_| Unavailable)?.map_err(|_| Unavailable)?;
            Ok(Counted { count: hit.count, resets_in: hit.resets_in })
        })
    }
}

/// The limits of `rateLimits`, counted in `auth.tokenStorage` if that is Redis, else in this process. The store is opened even
/// without rules: a reload may bring the first one.
///
/// # Errors
/// Rules exist, and their Redis does not answer.
pub(super) async fn open(config: &GuardConfig) -> Result<Arc<Limits>, GuardError> {
    let limits = Limits::new(config.rate_limits.clone());
    let auth = &config.auth;
    if auth.token_storage.kind != StorageKind::Redis {
        return Ok(Arc::new(limits));
    }
    match open_store(auth, Arc::new(SystemClock)).await {
        Ok(store) => Ok(Arc::new(limits.shared(Arc::new(StoreCounter(store))))),
        // Nothing else uses the store in this case.
        Err(error) if config.rate_limits.is_empty() && auth.mode != Mode::Orchestrated => {
            tracing::warn!(
                "`auth.tokenStorage` cannot be used, so rules of `rateLimits` that a reload brings will be counted by this instance alone: {error}"
            );
            Ok(Arc::new(limits))
        }
        Err(error) => Err(GuardError::RateLimits(error)),
    }
}
