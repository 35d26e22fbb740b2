//! Rate limits, counted for all instances where they share a Redis.

use std::{sync::Arc, time::Duration};

use gatewright_auth::{
    SystemClock,
    config::{Mode, StorageKind},
    open_store,
    store::{Key, Store},
};
use gatewright_operator::limits::{Counted, CounterFuture, Limits, SharedCounter, Unavailable};

use crate::config::Config;

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
pub async fn open(config: &Config) -> anyhow::Result<Arc<Limits>> {
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
        Err(error) => Err(anyhow::Error::new(error)
            .context("`rateLimits` are counted in `auth.tokenStorage`, which cannot be used")),
    }
}

/// Warns about rules for apps that do not exist, so that a misspelt name is noticed. Apps may be added later, so it is not an error.
pub fn warn_unused(config: &Config) {
    for rule in &config.rate_limits {
        let app = rule.tool.split_once(':').map_or("", |(app, _)| app);
        let is_app = app.is_empty() || app == "codecall" || config.apps.contains_key(app);
        if !is_app {
            let tool = &rule.tool;
            tracing::warn!(
                tool,
                "the rule of `rateLimits` for `{tool}` covers nothing: there is no app `{app}`"
            );
        }
    }
}
