//! The gateway with its apps, its workers and its search index.

use std::{path::PathBuf, time::Duration};

use anyhow::Context as _;
use gatewright::{AppHealth, Builder, Running, UserTokens};
use gatewright_codecall::Strategy;
use gatewright_core::Registry;
use gatewright_embedding::SemanticSearch;

use super::{apps::AppStarter, embedding, own_paths::own_paths, policies};
use crate::config::Config;

/// Longest wait for the registry to have the tools of apps that are up: of an app that has all of them left out, none ever come.
const LISTED: Duration = Duration::from_secs(5);

/// Starts the apps, the workers and the gateway. Upstream apps connect in the background.
///
/// # Errors
/// An app, the sandbox or a required model cannot start.
pub async fn start(config: &Config) -> anyhow::Result<Running> {
    let builder = Builder::new(&config.info.name, &config.info.version);
    start_with(config, &AppStarter::new(UserTokens::default()), builder, &[]).await
}

/// Like [`start`], with the `builder` of a guard, a starter that the caller keeps for apps added later, and files whose paths no client may see.
///
/// # Errors
/// An app, the sandbox or a required model cannot start.
pub async fn start_with(
    config: &Config,
    apps: &AppStarter,
    builder: Builder,
    own_files: &[PathBuf],
) -> anyhow::Result<Running> {
    let mut builder = builder.tool_names(config.tool_names).endpoints(config.endpoints.clone());
    builder = builder.pins(config.pin_file.pins.clone());
    for (id, app) in &config.apps {
        builder = builder.app_with(id, apps.start(id, app, &config.codecall).await?, app.options());
    }
    if config.codecall.enabled {
        builder = builder.code_mode(config.codecall.clone());
    }
    if let Some(size) = config.page_size {
        builder = builder.page_size(size);
    }
    // Opened before the workers start, so that a missing model that is required fails early.
    let required = required_model(config).await?;
    let running = builder.build().context("the sandbox for scripts cannot start")?;
    running.gateway().registry().set_policies(policies::of(config));
    add_semantic_search(&running, config, required);
    if let Some(code_call) = running.code_call() {
        code_call.hide_paths(own_paths(own_files));
        apps.run_plans(code_call);
    }
    Ok(running)
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
        let listed = async {
            while !are_listed(registry) {
                let _ = changes.recv().await;
            }
        };
        let _ = tokio::time::timeout(LISTED, listed).await;
        while running.code_call().is_some_and(|code_call| is_indexing(code_call.index_status())) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let _ = tokio::time::timeout(longest, settled).await;
}

/// Returns true once the registry has the tools of apps that are up. Thousands of tools take a moment. Pinned tools may all wait for an approval, so they
/// are not waited for.
fn are_listed(registry: &Registry) -> bool {
    let snapshot = registry.operator_snapshot();
    let mut with_tools = snapshot
        .apps
        .iter()
        .filter(|entry| entry.app.health() == AppHealth::Up && !entry.options.pin)
        .filter(|entry| !entry.app.catalog().tools.is_empty());
    with_tools.all(|entry| snapshot.tools.iter().any(|tool| *tool.app_id == *entry.id))
}

/// Returns true while vectors are still being computed. An unavailable index is not waited for.
fn is_indexing(status: Option<serde_json::Value>) -> bool {
    status.is_some_and(|status| status["state"] != "unavailable")
}
