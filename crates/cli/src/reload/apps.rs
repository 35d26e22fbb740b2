//! Apps that come, go and change while the gateway serves.

use std::{sync::Arc, time::Duration};

use gatewright::{App, AppHealth};
use gatewright_core::{AppEntry, Gateway};
use indexmap::IndexMap;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{assemble::AppStarter, config::AppConfig};

/// Longest wait for new apps to be up before they are offered. They are offered either way.
const READY: Duration = Duration::from_secs(10);

/// The apps of the configuration that holds.
pub(super) struct Apps {
    gateway: Arc<Gateway>,
    starter: AppStarter,
    config: IndexMap<String, AppConfig>,
    /// Apps that were taken out and are answering their last calls.
    leaving: TaskTracker,
    hurry: CancellationToken,
}

/// Ids of apps.
#[derive(Debug, Default)]
pub(super) struct Differences {
    pub(super) added: Vec<String>,
    pub(super) changed: Vec<String>,
    pub(super) removed: Vec<String>,
}

impl Differences {
    pub(super) fn any(&self) -> bool {
        !(self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty())
    }
}

impl Apps {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        starter: AppStarter,
        config: IndexMap<String, AppConfig>,
    ) -> Self {
        Self { gateway, starter, config, leaving: TaskTracker::new(), hurry: CancellationToken::new() }
    }

    /// Makes `new` the apps that are offered, in one step. An app whose connection is configured as before goes on; another
    /// is started beside the old one, which is ended once its last call is answered.
    ///
    /// # Errors
    /// When an app cannot be started: then everything stays as it was.
    pub(super) async fn take_over(
        &mut self,
        new: &IndexMap<String, AppConfig>,
    ) -> anyhow::Result<Differences> {
        let mut differences = Differences::default();
        let registry = self.gateway.registry();
        let snapshot = registry.operator_snapshot();
        // Ended when they are dropped before they are offered.
        let mut fresh = Fresh { apps: Vec::new(), ending: self.leaving.clone() };
        let mut apps: Vec<(String, Arc<dyn App>, _)> = Vec::new();
        for (id, config) in new {
            let old = self.config.get(id).zip(snapshot.app(id));
            let options = config.options();
            let app = match old {
                Some((old, running)) if old.kind == config.kind => {
                    if old.options() != options {
                        differences.changed.push(id.clone());
                    }
                    running.app.clone()
                }
                _ => {
                    let app = self.starter.start(id, config).await?;
                    fresh.apps.push(app.clone());
                    if old.is_some() { &mut differences.changed } else { &mut differences.added }
                        .push(id.clone());
                    app
                }
            };
            apps.push((id.clone(), app, options));
        }
        differences.removed = self.config.keys().filter(|id| !new.contains_key(*id)).cloned().collect();
        if !differences.any() && self.config.keys().eq(new.keys()) {
            return Ok(differences);
        }
        fresh.ready().await;
        fresh.apps.clear();
        for gone in registry.set(apps) {
            self.retire(gone);
        }
        self.config = new.clone();
        self.gateway.follow_again().await;
        Ok(differences)
    }

    fn retire(&self, gone: AppEntry) {
        // Each call ends within the app's timeout; scripts and prompts get a little more.
        let longest = gone.options.timeout + Duration::from_secs(1);
        let hurry = self.hurry.clone();
        self.leaving.spawn(async move {
            let id = gone.id.clone();
            let now = async {
                tokio::select! {
                    () = tokio::time::sleep(longest) => {}
                    () = hurry.cancelled() => {}
                }
            };
            gone.retire(now).await;
            tracing::info!(app.id = %id, "an app that was taken out has ended");
        });
    }

    /// Ends the apps that were taken out, calls or not.
    pub(super) async fn end(&self) {
        self.hurry.cancel();
        self.leaving.close();
        self.leaving.wait().await;
    }
}

/// Apps that were started and are not offered yet.
struct Fresh {
    apps: Vec<Arc<dyn App>>,
    ending: TaskTracker,
}

impl Fresh {
    /// Waits until each is up or has failed once, so that nobody sees its tools go and come.
    async fn ready(&self) {
        let each = self.apps.iter().map(|app| async move {
            let mut events = app.events();
            while app.health() == AppHealth::Starting {
                if let Err(tokio::sync::broadcast::error::RecvError::Closed) = events.recv().await {
                    return;
                }
            }
        });
        let all = async {
            for one in each {
                one.await;
            }
        };
        let _ = tokio::time::timeout(READY, all).await;
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        for app in self.apps.drain(..) {
            self.ending.spawn(async move { app.shutdown().await });
        }
    }
}
