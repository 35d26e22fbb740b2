//! Records that instances share in the token store besides tokens: shapes of results, use of tools after searches, executions, and approvals.

use std::{net::SocketAddr, sync::Arc};

use gatewright_auth::{
    AuthConfig, SystemClock,
    config::StorageKind,
    open_store,
    store::{StoreError, StoreRecords},
};
use gatewright_console::SharedConsole;
use gatewright_core::{ApprovalStore, InvalidField, SealKey};
use gatewright_executions::{ExecutionStore, Executions, ExecutionsConfig};

use super::{GuardConfig, GuardError};
use crate::Running;

/// Shares the shapes that `running` learns in `auth.tokenStorage`, if that is Redis. Without it each instance learns for itself.
pub(super) async fn share_shapes(config: &GuardConfig, running: &Running) {
    let Some(code_call) = running.code_call() else { return };
    if config.auth.token_storage.kind != StorageKind::Redis {
        return;
    }
    match open(&config.auth, "shape").await {
        Ok(records) => code_call.share_shapes(Arc::new(records)),
        Err(error) => tracing::warn!("shapes of results are not shared with other instances: {error}"),
    }
}

/// Shares the calls that `running` counts after searches, if it does, in `auth.tokenStorage`. Without it each instance counts for itself, until it
/// stops.
pub(super) async fn share_usage(config: &GuardConfig, running: &Running) {
    let Some(code_call) = running.code_call().filter(|code_call| code_call.counts_usage()) else { return };
    if config.auth.token_storage.kind == StorageKind::Memory {
        return;
    }
    match open(&config.auth, "usage").await {
        Ok(records) => code_call.share_usage(Arc::new(records)),
        Err(error) => tracing::warn!("use of tools after searches is not shared: {error}"),
    }
}

/// The store through which the consoles of all instances know of each other: `auth.tokenStorage`, if that is Redis and they share a key.
pub(super) async fn console(config: &GuardConfig, address: SocketAddr) -> Option<SharedConsole> {
    let key = config.seal_key().filter(|_| config.auth.token_storage.kind == StorageKind::Redis)?;
    match open(&config.auth, "console").await {
        // Containers share addresses: the number tells them apart.
        Ok(records) => {
            let number = SealKey::random().digest("instance", b"")[0..3]
                .iter()
                .fold(0, |all, byte| (all << 8) | u32::from(*byte));
            Some(SharedConsole {
                records: Arc::new(records),
                key,
                instance: format!("{address} {number:06x}"),
            })
        }
        Err(error) => {
            tracing::warn!("the console does not know of other instances: {error}");
            None
        }
    }
}

async fn open(auth: &AuthConfig, kind: &'static str) -> Result<StoreRecords, StoreError> {
    let store = open_store(auth, Arc::new(SystemClock)).await?;
    Ok(StoreRecords::new(store, kind))
}

/// Returns `true` if the executions of `config` are kept in the token store of `auth`, which they can be if the gateway has a key that outlives the process.
///
/// # Errors
/// `executions.store` names a store that cannot be used.
pub fn executions_are_stored(
    config: &ExecutionsConfig,
    auth: &AuthConfig,
    has_key: bool,
) -> Result<bool, InvalidField> {
    let (name, kind) = match config.store {
        Some(ExecutionStore::Memory) => return Ok(false),
        None => return Ok(has_key && auth.token_storage.kind != StorageKind::Memory),
        Some(ExecutionStore::Sqlite) => ("sqlite", StorageKind::Sqlite),
        Some(ExecutionStore::Redis) => ("redis", StorageKind::Redis),
    };
    if auth.token_storage.kind != kind {
        let problem = format!("needs `auth.tokenStorage.type: {name}`, whose connection executions use");
        return Err(InvalidField::new("store", problem));
    }
    if !has_key {
        let problem =
            "needs `auth.encryptionKey`, for what is stored is encrypted with a key derived from it";
        return Err(InvalidField::new("store", problem));
    }
    Ok(true)
}

impl GuardConfig {
    /// Opens the executions that running servers of this configuration share, for commands on them; `None` if each server keeps them in its memory.
    ///
    /// # Errors
    /// The section `executions` or the token store cannot be used.
    pub async fn stored_executions(&self) -> Result<Option<Executions>, GuardError> {
        let key = self.seal_key();
        let stored = executions_are_stored(&self.executions, &self.auth, key.is_some())
            .map_err(|problem| GuardError::Config(problem.below("executions").to_string()))?;
        let Some(key) = key.filter(|_| stored) else { return Ok(None) };
        let records = open(&self.auth, "execution").await.map_err(GuardError::Executions)?;
        let instance = format!("{} {}", self.name, std::process::id());
        Ok(Some(Executions::shared(self.executions.clone(), Arc::new(records), &key, instance)))
    }
}

/// The approvals of the configuration: where its executions are, in the token store or in memory.
pub(super) async fn approvals(config: &GuardConfig) -> Arc<ApprovalStore> {
    let key = config.seal_key();
    let stored = executions_are_stored(&config.executions, &config.auth, key.is_some()).unwrap_or(false);
    let in_memory = || Arc::new(ApprovalStore::in_memory());
    let Some(key) = key.filter(|_| stored) else { return in_memory() };
    match open(&config.auth, "approval").await {
        Ok(records) => Arc::new(ApprovalStore::new(Arc::new(records), key)),
        Err(error) => {
            tracing::warn!("approvals are kept in memory, as `auth.tokenStorage` cannot be used: {error}");
            in_memory()
        }
    }
}

/// The executions of the configuration, in the token store or in memory.
///
/// # Errors
/// The configuration names the store, and it cannot be used.
pub(super) async fn executions(config: &GuardConfig) -> Result<Executions, GuardError> {
    let in_memory = || Executions::in_memory(config.executions.clone());
    match config.stored_executions().await {
        Ok(Some(stored)) => Ok(stored),
        Ok(None) => {
            if config.executions.store.is_none() && config.auth.token_storage.kind != StorageKind::Memory {
                tracing::info!(
                    "executions are kept in memory: they need `auth.encryptionKey` to be kept in `auth.tokenStorage`"
                );
            }
            Ok(in_memory())
        }
        // Nothing says that it has to be used.
        Err(GuardError::Executions(error)) if config.executions.store.is_none() => {
            tracing::warn!("executions are kept in memory, as `auth.tokenStorage` cannot be used: {error}");
            Ok(in_memory())
        }
        Err(error) => Err(error),
    }
}
