//! The gateway with its apps, its workers and its search index.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use gatewright::{AppHealth, Builder, Observer, Running};
use gatewright_codecall::Strategy;
use gatewright_core::SealKey;
use gatewright_embedding::SemanticSearch;
use gatewright_operator::limits::Limits;

use super::{apps::AppStarter, embedding, own_paths::own_paths};
use crate::config::Config;

/// Starts the apps, the workers and the gateway. Upstream apps connect in the background.
///
/// # Errors
/// An app, the sandbox or a required model cannot start.
pub async fn start(config: &Config) -> anyhow::Result<Running> {
    start_with(config, &AppStarter::new(), Extensions::default()).await
}

/// Parts that a server adds to the gateway and a single command does not need.
#[derive(Default)]
pub struct Extensions {
    /// Notified of every call.
    pub observers: Vec<Arc<dyn Observer>>,
    /// Rate limits.
    pub limits: Option<Arc<Limits>>,
    /// Files whose paths no client may see.
    pub own_files: Vec<PathBuf>,
}

/// Like [`start`], with the observers and limits of a server, and a starter that the caller keeps for apps added later.
///
/// # Errors
/// An app, the sandbox or a required model cannot start.
pub async fn start_with(
    config: &Config,
    apps: &AppStarter,
    extensions: Extensions,
) -> anyhow::Result<Running> {
    let mut builder = Builder::new(&config.info.name, &config.info.version).tool_names(config.tool_names);
    for (id, app) in &config.apps {
        builder = builder.app_with(id, apps.start(id, app).await?, app.options());
    }
    if config.codecall.enabled {
        builder = builder.code_mode(config.codecall.clone());
    }
    for observer in extensions.observers {
        builder = builder.observer(observer);
    }
    if let Some(limits) = extensions.limits {
        builder = builder.rate_limiter(limits);
    }
    if let Some(key) = seal_key(config) {
        builder = builder.seal_key(key);
    }
    if let Some(size) = config.page_size {
        builder = builder.page_size(size);
    }
    // Opened before the workers start, so that a missing model that is required fails early.
    let required = required_model(config).await?;
    let running = builder.build().context("the sandbox for scripts cannot start")?;
    add_semantic_search(&running, config, required);
    if let Some(code_call) = running.code_call() {
        code_call.hide_paths(own_paths(&extensions.own_files));
    }
    Ok(running)
}

/// The key that opaque ids are sealed with: that of the cluster, else one derived from the secret of `auth`.
fn seal_key(config: &Config) -> Option<SealKey> {
    let cluster = config.http.cluster.as_ref().map(|cluster| cluster.key.seal_key());
    let auth = || config.auth.shared_secret().map(|secret| SealKey::derived(secret.as_bytes()));
    cluster.or_else(auth)
}

fn is_semantic(config: &Config) -> bool {
    config.codecall.enabled && config.codecall.embedding.strategy == Strategy::Embedding
}

async fn required_model(config: &Config) -> anyhow::Result<Option<SemanticSearch>> {
    let embedding = &config.codecall.embedding;
    if !(is_semantic(config) && embedding.required) {
        return Ok(None);
    }
    embedding::open(embedding).await.map(Some).context("`codecall.embedding` is required")
}

/// Adds the search by meaning: at once when the model is `loaded`, else when it has been loaded in the background.
fn add_semantic_search(running: &Running, config: &Config, loaded: Option<SemanticSearch>) {
    let Some(code_call) = running.code_call().filter(|_| is_semantic(config)) else { return };
    match loaded {
        Some(search) => code_call.use_semantic(search),
        None => {
            let config = config.codecall.embedding.clone();
            code_call.load_semantic(move || {
                let config = config.clone();
                async move { embedding::open(&config).await }
            });
        }
    }
}

/// Waits until no app is starting any more and every tool has its vector, at most `longest`.
pub async fn settle(running: &Running, longest: Duration) {
    let registry = running.gateway().registry();
    let mut changes = registry.changes();
    let starting =
        || registry.operator_snapshot().apps.iter().any(|app| app.app.health() == AppHealth::Starting);
    let settled = async {
        while starting() {
            // A health change that adds no tool is not announced: check again after a while as well.
            let _ = tokio::time::timeout(Duration::from_millis(20), changes.recv()).await;
        }
        while running.code_call().is_some_and(|code_call| is_indexing(code_call.index_status())) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let _ = tokio::time::timeout(longest, settled).await;
}

/// Returns true while vectors are still being computed. An unavailable index is not waited for.
fn is_indexing(status: Option<serde_json::Value>) -> bool {
    status.is_some_and(|status| status["state"] != "unavailable")
}
