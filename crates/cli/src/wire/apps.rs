//! Apps of the configuration: the built-in ones, and upstream servers.

use std::{collections::HashMap, sync::Arc};

use anyhow::Context as _;
use gatewright::{App, LocalApp, UpstreamApp, UserTokens};
use gatewright_demo::{App as DemoApp, Dataset, Everything};
use gatewright_upstream::{PerCallerApp, UpstreamAuth};

use crate::{
    config::{AppConfig, AppKind, Builtin},
    environment::environment,
};

/// Starts apps. The built-in ones share one set of sample data.
pub struct AppStarter {
    dataset: Arc<Dataset>,
    environment: HashMap<String, String>,
    /// Users' tokens at upstreams with `auth.type: oauth`.
    tokens: UserTokens,
}

impl AppStarter {
    /// A starter whose upstream processes see the environment of this process, and whose upstreams with `auth.type: oauth` get `tokens`.
    pub fn new(tokens: UserTokens) -> Self {
        Self { dataset: Dataset::seeded(), environment: environment(), tokens }
    }

    /// Starts one app. An upstream connects in the background.
    ///
    /// # Errors
    /// A built-in app does not start, or no client for the users' tokens can be made.
    pub async fn start(&self, id: &str, app: &AppConfig) -> anyhow::Result<Arc<dyn App>> {
        self.start_kind(id, &app.kind).await.with_context(|| format!("app `{id}` cannot start"))
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
            AppKind::Upstream(upstream) => {
                UpstreamApp::start(id, (**upstream).clone(), self.environment.clone())
            }
        })
    }
}
