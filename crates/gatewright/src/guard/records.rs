//! Shapes of results, shared by instances that have a Redis.

use std::sync::Arc;

use gatewright_auth::{SystemClock, config::StorageKind, open_store, store::StoreRecords};

use super::GuardConfig;
use crate::Running;

/// Shares the shapes that `running` learns in `auth.tokenStorage`, if that is Redis. Without it each instance learns for itself.
pub(super) async fn share(config: &GuardConfig, running: &Running) {
    let Some(code_call) = running.code_call() else { return };
    if config.auth.token_storage.kind != StorageKind::Redis {
        return;
    }
    match open_store(&config.auth, Arc::new(SystemClock)).await {
        Ok(store) => code_call.share_shapes(Arc::new(StoreRecords::new(store, "shape"))),
        Err(error) => tracing::warn!("shapes of results are not shared with other instances: {error}"),
    }
}
