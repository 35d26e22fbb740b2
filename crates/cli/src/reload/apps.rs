//! Adds, removes and replaces apps while the gateway serves.

use std::{sync::Arc, time::Duration};

use gatewright::{App, AppHealth};
use gatewright_core::{AppEntry, Gateway};
use indexmap::IndexMap;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::{AppConfig, Config},
    wire::apps::AppStarter,
};

/// Longest wait for new apps to be up before they are listed. They are listed either way.
const READY: Duration = Duration::from_secs(10);

/// The apps of the configuration in force.
pub(super) struct Apps {
    gateway: Arc<Gateway>,
    starter: AppStarter,
    config: IndexMap<String, AppConfig>,
    /// Removed apps that are answering their last calls.
    retiring: TaskTracker,
    /// Shuts removed apps down without waiting for their calls.
    abort: CancellationToken,
}

/// Ids of the apps that an update added, changed and removed.
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
        Self { gateway, starter, config, retiring: TaskTracker::new(), abort: CancellationToken::new() }
    }

    /// Replaces the listed apps by `new` in one step. An app whose connection is configured as before keeps running; any other is
    /// started beside the old one, which shuts down once its last call is answered.
    ///
    /// # Errors
    /// An app cannot be started; then nothing changes.
    pub(super) async fn apply(&mut self, new: &Config) -> anyhow::Result<Differences> {
        let mut differences = self.apply_options(new).await?;
        for id in self.starter.reload_plans(new).await {
            if !differences.added.contains(&id) && !differences.changed.contains(&id) {
                differences.changed.push(id);
            }
        }
        Ok(differences)
    }

    async fn apply_options(&mut self, config: &Config) -> anyhow::Result<Differences> {
        let (new, code) = (&config.apps, &config.codecall);
        let mut differences = Differences::default();
        let registry = self.gateway.registry();
        let snapshot = registry.operator_snapshot();
        // Shut down if they are dropped before they are listed.
        let mut fresh = Fresh { apps: Vec::new(), ending: self.retiring.clone() };
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
                    let app = self.starter.start(id, config, code).await?;
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
        let abort = self.abort.clone();
        self.retiring.spawn(async move {
            let id = gone.id.clone();
            let now = async {
                tokio::select! {
                    () = tokio::time::sleep(longest) => {}
                    () = abort.cancelled() => {}
                }
            };
            gone.retire(now).await;
            tracing::info!(app.id = %id, "a removed app has shut down");
        });
    }

    /// Shuts down the removed apps, whether or not they have calls left.
    pub(super) async fn end(&self) {
        self.abort.cancel();
        self.retiring.close();
        self.retiring.wait().await;
    }
}

/// Apps that were started and are not listed yet.
struct Fresh {
    apps: Vec<Arc<dyn App>>,
    ending: TaskTracker,
}

impl Fresh {
    /// Waits until each is up or has failed once, so that its tools do not disappear for a moment.
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
