//! From a configuration to a running gateway.

use std::{collections::HashMap, sync::Arc, time::Duration};

use anyhow::Context as _;
use gatewright::{App, AppHealth, Builder, LocalApp, Observer, Running, UpstreamApp};
use gatewright_codecall::Strategy;
use gatewright_core::SealKey;
use gatewright_demo::{App as DemoApp, Dataset, Everything};
use gatewright_operator::limits::Limits;
use gatewright_upstream::{PerCallerApp, UpstreamAuth};
use tokio_util::sync::CancellationToken;

use crate::config::{self, AppConfig, AppKind, Builtin, Config};
use crate::embedding;
use crate::user_tokens::UserTokens;

/// Starts the apps, the workers and the gateway. Upstream apps connect in the background.
pub async fn start(config: &Config) -> anyhow::Result<Running> {
    start_with(config, &AppStarter::new(), Attached::default()).await
}

/// What a server adds to the gateway that a single command does not need.
#[derive(Default)]
pub struct Attached {
    /// Told of every call.
    pub observers: Vec<Arc<dyn Observer>>,
    /// Counts every call.
    pub limits: Option<Arc<Limits>>,
}

/// The same, with a starter that is kept for apps to come.
pub async fn start_with(config: &Config, apps: &AppStarter, attached: Attached) -> anyhow::Result<Running> {
    let mut builder = Builder::new(&config.info.name, &config.info.version).tool_names(config.tool_names);
    for (id, app) in &config.apps {
        builder = builder.app_with(id, apps.start(id, app).await?, app.options());
    }
    if config.codecall.enabled {
        builder = builder.code_mode(config.codecall.clone());
    }
    for observer in attached.observers {
        builder = builder.observer(observer);
    }
    if let Some(limits) = attached.limits {
        builder = builder.rate_limiter(limits);
    }
    let by_cluster = config.http.cluster.as_ref().map(|cluster| cluster.key.seal_key());
    let by_auth = || config.auth.shared_secret().map(|secret| SealKey::derived(secret.as_bytes()));
    if let Some(key) = by_cluster.or_else(by_auth) {
        builder = builder.seal_key(key);
    }
    if let Some(size) = config.page_size {
        builder = builder.page_size(size);
    }
    // Before anything starts: a model that is required and missing ends it here.
    let embedding = &config.codecall.embedding;
    let semantic = config.codecall.enabled && embedding.strategy == Strategy::Embedding;
    let required = match semantic && embedding.required {
        true => Some(embedding::open(embedding).await.context("`codecall.embedding` is required")?),
        false => None,
    };
    let running = builder.build().context("the sandbox for scripts cannot start")?;
    if let Some(code_call) = running.code_call().filter(|_| semantic) {
        match required {
            Some(search) => code_call.use_semantic(search),
            None => {
                let config = embedding.clone();
                code_call.load_semantic(move || {
                    let config = config.clone();
                    async move { embedding::open(&config).await }
                });
            }
        }
    }
    Ok(running)
}

/// Starts apps. The built-in ones share one set of sample data.
pub struct AppStarter {
    dataset: Arc<Dataset>,
    environment: HashMap<String, String>,
    /// Users' tokens at upstreams with `auth.type: oauth`.
    pub tokens: UserTokens,
}

impl AppStarter {
    /// A starter that knows the environment of this process.
    pub fn new() -> Self {
        Self { dataset: Dataset::seeded(), environment: config::environment(), tokens: UserTokens::default() }
    }

    /// Starts one app. An upstream connects in the background.
    pub async fn start(&self, id: &str, app: &AppConfig) -> anyhow::Result<Arc<dyn App>> {
        self.started(id, app).await.with_context(|| format!("app `{id}` cannot start"))
    }

    async fn started(&self, id: &str, app: &AppConfig) -> anyhow::Result<Arc<dyn App>> {
        let data = || self.dataset.clone();
        Ok(match &app.kind {
            AppKind::Builtin(Builtin::Crm) => Arc::new(LocalApp::start(DemoApp::crm(data())).await?),
            AppKind::Builtin(Builtin::Billing) => Arc::new(LocalApp::start(DemoApp::billing(data())).await?),
            AppKind::Builtin(Builtin::Support) => Arc::new(LocalApp::start(DemoApp::support(data())).await?),
            AppKind::Builtin(Builtin::Everything) => Arc::new(LocalApp::start(Everything::new()).await?),
            AppKind::Upstream(upstream) if let Some(UpstreamAuth::Oauth(oauth)) = &upstream.auth => {
                self.tokens.serve(id, upstream, oauth).map_err(anyhow::Error::msg)?;
                let tokens = Arc::new(self.tokens.clone());
                PerCallerApp::start(id, (**upstream).clone(), self.environment.clone(), Some(tokens))
            }
            AppKind::Upstream(upstream) if !upstream.is_shared() => {
                PerCallerApp::start(id, (**upstream).clone(), self.environment.clone(), None)
            }
            AppKind::Upstream(upstream) => {
                UpstreamApp::start(id, (**upstream).clone(), self.environment.clone())
            }
        })
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
            // Health changes that add no tool are not announced: look again after a while as well.
            let _ = tokio::time::timeout(Duration::from_millis(20), changes.recv()).await;
        }
        while running.code_call().is_some_and(|code_call| is_indexing(code_call.index_status())) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let _ = tokio::time::timeout(longest, settled).await;
}

/// Whether vectors are still to come. What is unavailable is not waited for.
fn is_indexing(status: Option<serde_json::Value>) -> bool {
    status.is_some_and(|status| status["state"] != "unavailable")
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
