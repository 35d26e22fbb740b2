//! From a configuration to a running gateway.

use std::{collections::HashMap, sync::Arc, time::Duration};

use anyhow::Context as _;
use gatewright::{App, AppHealth, Builder, LocalApp, Running, UpstreamApp};
use gatewright_demo::{App as DemoApp, Dataset, Everything};
use tokio_util::sync::CancellationToken;

use crate::config::{self, AppConfig, AppKind, Builtin, Config};

/// Starts the apps, the workers and the gateway. Upstream apps connect in the background.
pub async fn start(config: &Config) -> anyhow::Result<Running> {
    let mut builder = Builder::new(&config.info.name, &config.info.version).tool_names(config.tool_names);
    let dataset = Dataset::seeded();
    let environment = config::environment();
    for (id, app) in &config.apps {
        let started = start_app(id, app, &dataset, &environment)
            .await
            .with_context(|| format!("app `{id}` cannot start"))?;
        builder = builder.app_with(id, started, app.options());
    }
    if config.codecall.enabled {
        builder = builder.code_mode(config.codecall.clone());
    }
    if let Some(size) = config.page_size {
        builder = builder.page_size(size);
    }
    builder.build().context("the sandbox for scripts cannot start")
}

async fn start_app(
    id: &str,
    app: &AppConfig,
    dataset: &Arc<Dataset>,
    environment: &HashMap<String, String>,
) -> anyhow::Result<Arc<dyn App>> {
    Ok(match &app.kind {
        AppKind::Builtin(Builtin::Crm) => Arc::new(LocalApp::start(DemoApp::crm(dataset.clone())).await?),
        AppKind::Builtin(Builtin::Billing) => {
            Arc::new(LocalApp::start(DemoApp::billing(dataset.clone())).await?)
        }
        AppKind::Builtin(Builtin::Support) => {
            Arc::new(LocalApp::start(DemoApp::support(dataset.clone())).await?)
        }
        AppKind::Builtin(Builtin::Everything) => Arc::new(LocalApp::start(Everything::new()).await?),
        AppKind::Upstream(upstream) => UpstreamApp::start(id, (**upstream).clone(), environment.clone()),
    })
}

/// Waits until no app is starting any more, at most `longest`.
pub async fn settle(running: &Running, longest: Duration) {
    let registry = running.gateway().registry();
    let mut changes = registry.changes();
    let starting = || registry.snapshot().apps.iter().any(|app| app.app.health() == AppHealth::Starting);
    let settled = async {
        while starting() {
            // Health changes that add no tool are not announced: look again after a while as well.
            let _ = tokio::time::timeout(Duration::from_millis(20), changes.recv()).await;
        }
    };
    let _ = tokio::time::timeout(longest, settled).await;
}

/// Cancelled by the first SIGINT or SIGTERM.
pub fn stop_signal() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stop.cancel();
    });
    Ok(token)
}
