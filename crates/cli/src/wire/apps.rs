//! Apps of the configuration: the built-in ones, and upstream servers.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use anyhow::Context as _;
use gatewright::{App, LocalApp, UpstreamApp, UserTokens};
use gatewright_codecall::{CodeCall, CodeCallConfig, PlanChanges, PlanSources, SavedPlans};
use gatewright_demo::{App as DemoApp, Dataset, Everything};
use gatewright_openapi::OpenapiApp;
use gatewright_upstream::{PerCallerApp, UpstreamAuth};

use crate::{
    config::{AppConfig, AppKind, Builtin, Config},
    environment::environment,
};

/// Starts apps. The built-in ones share one set of sample data.
pub struct AppStarter {
    dataset: Arc<Dataset>,
    environment: HashMap<String, String>,
    /// Users' tokens at upstreams with `auth.type: oauth`.
    tokens: UserTokens,
    plans: Mutex<PlanApps>,
}

/// Apps of saved plans with their ids, and what runs their plans, once it is there.
#[derive(Default)]
struct PlanApps {
    apps: Vec<(String, Arc<SavedPlans>)>,
    code_call: Weak<CodeCall>,
}

impl AppStarter {
    /// A starter whose upstream processes see the environment of this process, and whose upstreams with `auth.type: oauth` get `tokens`.
    pub fn new(tokens: UserTokens) -> Self {
        Self { dataset: Dataset::seeded(), environment: environment(), tokens, plans: Mutex::default() }
    }

    /// Starts one app. An upstream connects in the background.
    ///
    /// # Errors
    /// A built-in app does not start, or no client for the users' tokens can be made.
    pub async fn start(
        &self,
        id: &str,
        app: &AppConfig,
        code: &CodeCallConfig,
    ) -> anyhow::Result<Arc<dyn App>> {
        let started = match &app.kind {
            AppKind::Plans(sources) => self.start_plans(id, sources, code).await,
            kind => self.start_kind(id, kind).await,
        };
        started.with_context(|| format!("app `{id}` cannot start"))
    }

    /// Runs saved plans with `code_call`: those of the apps that were started, and of those that will be.
    pub fn run_plans(&self, code_call: &Arc<CodeCall>) {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.code_call = Arc::downgrade(code_call);
        plans.apps.iter().for_each(|(_, app)| code_call.run_plans_of(app));
    }

    /// Reads the saved plans of `config` again. Returns the ids of apps whose plans differ.
    pub async fn reload_plans(&self, config: &Config) -> Vec<String> {
        let apps = {
            let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
            let sources = |id: &String| config.apps.get(id).and_then(AppConfig::plan_sources);
            plans.apps.retain(|(id, app)| sources(id) == Some(app.sources()));
            plans.apps.clone()
        };
        let mut differing = Vec::new();
        for (id, app) in apps {
            let code = config.codecall.clone();
            let read = tokio::task::spawn_blocking(move || app.reload(&code)).await;
            match read.unwrap_or_else(|_| Err("reading them failed".to_owned())) {
                Ok(changes) => {
                    log_plans(&id, &changes);
                    differing.extend(changes.any().then_some(id));
                }
                Err(problem) => {
                    tracing::error!(app.id = %id, "saved plans cannot be read, those from before stay: {problem}");
                }
            }
        }
        differing
    }

    async fn start_plans(
        &self,
        id: &str,
        sources: &PlanSources,
        code: &CodeCallConfig,
    ) -> anyhow::Result<Arc<dyn App>> {
        let (own_id, sources, code) = (id.to_owned(), sources.clone(), code.clone());
        let opened = tokio::task::spawn_blocking(move || SavedPlans::open(&own_id, sources, &code)).await?;
        let (app, findings) = opened.map_err(anyhow::Error::msg)?;
        log_plans(id, &PlanChanges { findings, ..PlanChanges::default() });
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(code_call) = plans.code_call.upgrade() {
            code_call.run_plans_of(&app);
        }
        plans.apps.push((id.to_owned(), app.clone()));
        Ok(app)
    }

    async fn start_kind(&self, id: &str, kind: &AppKind) -> anyhow::Result<Arc<dyn App>> {
        let data = || self.dataset.clone();
        Ok(match kind {
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
            AppKind::Openapi(openapi) => {
                OpenapiApp::start_for(id, (**openapi).clone(), Some(Arc::new(self.tokens.clone())))
            }
            AppKind::Plans(_) => unreachable!("plans are started where the limits of scripts are known"),
            AppKind::Upstream(upstream) => {
                UpstreamApp::start(id, (**upstream).clone(), self.environment.clone())
            }
        })
    }
}

/// Logs new, changed and removed plans, and the problems of those that are not served as their files are now.
fn log_plans(app: &str, changes: &PlanChanges) {
    for finding in &changes.findings {
        tracing::error!(app.id = %app, "a saved plan is not used as it is in its file: {finding}");
    }
    if changes.any() {
        let [added, changed, removed] =
            [&changes.added, &changes.changed, &changes.removed].map(|names| names.join(", "));
        tracing::info!(app.id = %app, "saved plans: added [{added}], changed [{changed}], removed [{removed}]");
    }
}
