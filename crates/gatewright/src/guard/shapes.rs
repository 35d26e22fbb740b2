//! Shapes of results, shared by instances that have a Redis.

use std::{sync::Arc, time::Duration};

use gatewright_auth::{
    SystemClock,
    config::StorageKind,
    open_store,
    store::{Key, Store, StoreError},
};
use gatewright_codecall::{ShapeStore, ShapesUnavailable};
use gatewright_core::AppFuture;

use super::GuardConfig;
use crate::Running;

/// Time after which a shape is forgotten that nobody adds to.
const TTL: Duration = Duration::from_secs(30 * 24 * 3_600);
/// Longest wait for the store.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Keeps shapes in the token store.
struct StoreShapes(Arc<dyn Store>);

impl ShapeStore for StoreShapes {
    fn get_many<'a>(
        &'a self,
        keys: &'a [String],
    ) -> AppFuture<'a, Result<Vec<Option<Vec<u8>>>, ShapesUnavailable>> {
        Box::pin(async move {
            let keys: Vec<Key> = keys.iter().map(|key| record(key)).collect();
            in_time(self.0.get_many(&keys)).await
        })
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        before: Option<&'a [u8]>,
        after: &'a [u8],
    ) -> AppFuture<'a, Result<bool, ShapesUnavailable>> {
        Box::pin(async move {
            let key = record(key);
            match before {
                Some(before) => in_time(self.0.replace(&key, before, after, TTL)).await,
                None => in_time(self.0.put_new(&key, after, TTL)).await,
            }
        })
    }
}

fn record(key: &str) -> Key {
    Key::named("shape", &[key])
}

async fn in_time<T>(answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, ShapesUnavailable> {
    let answer = tokio::time::timeout(TIMEOUT, answer).await;
    answer.map_err(|_| ShapesUnavailable)?.map_err(|_| ShapesUnavailable)
}

/// Shares the shapes that `running` learns in `auth.tokenStorage`, if that is Redis. Without it each instance learns for itself.
pub(super) async fn share(config: &GuardConfig, running: &Running) {
    let Some(code_call) = running.code_call() else { return };
    if config.auth.token_storage.kind != StorageKind::Redis {
        return;
    }
    match open_store(&config.auth, Arc::new(SystemClock)).await {
        Ok(store) => code_call.share_shapes(Arc::new(StoreShapes(store))),
        Err(error) => tracing::warn!("shapes of results are not shared with other instances: {error}"),
    }
}
