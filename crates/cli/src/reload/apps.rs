//! Adds, removes and replaces apps while the gateway serves.

use std::{sync::Arc, time::Duration};

use gatewright::{App, AppHealth};
use gatewright_core::{AppEntry, Gateway};
use indexmap::IndexMap;
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::{AppConfig, Config},
    wire::apps::AppStarter,
};

/// Longest wait for a new app to be up. It is listed afterwards either way.
const READY: Duration = Duration::from_secs(10);

/// The apps of the configuration in force.
pub(super) struct Apps {
    gateway: Arc<Gateway>,
    starter: AppStarter,
    config: IndexMap<String, AppConfig>,
    /// Apps that are not up yet. Of those that take the place of another, the other is still listed, with the new options.
    fresh: IndexMap<String, Fresh>,
    /// Work for removed apps, which answer their last calls, and for new ones.
    retiring: TaskTracker,
    /// Shuts removed apps down without waiting for their calls.
    abort: CancellationToken,
}

/// An update whose apps were started. They shut down if it is dropped.
pub(super) struct Prepared {
    differences: Differences,
    fresh: IndexMap<String, Fresh>,
    config: IndexMap<String, AppConfig>,
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

    /// Takes those of a later update in.
    pub(super) fn extend(&mut self, later: Self) {
        for (ids, later) in [
            (&mut self.added, later.added),
            (&mut self.changed, later.changed),
            (&mut self.removed, later.removed),
        ] {
            for id in later {
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
        }
    }
}

impl Apps {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        starter: AppStarter,
        config: IndexMap<String, AppConfig>,
    ) -> Self {
        Self {
            gateway,
            starter,
            config,
            fresh: IndexMap::new(),
            retiring: TaskTracker::new(),
            abort: CancellationToken::new(),
        }
    }

    /// Starts the apps of `new` whose connections are not configured as before. Nothing changes until [`Apps::apply`].
    ///
    /// # Errors
    /// An app cannot be started.
    pub(super) async fn prepare(&self, new: &Config) -> anyhow::Result<Prepared> {
        let mut differences = Differences::default();
        let snapshot = self.gateway.registry().operator_snapshot();
        let mut fresh = IndexMap::new();
        for (id, config) in &new.apps {
            let old = self.config.get(id).filter(|_| snapshot.app(id).is_some());
            match old {
                Some(old) if old.kind == config.kind => {
                    if old.options() != config.options() {
                        differences.changed.push(id.clone());
                    }
                }
                old => {
                    let app = self.starter.start(id, config, &new.codecall).await?;
                    fresh.insert(id.clone(), Fresh::new(app, self.retiring.clone()));
                    let ids = if old.is_some() { &mut differences.changed } else { &mut differences.added };
                    ids.push(id.clone());
                }
            }
        }
        let gone = self.config.keys().filter(|id| !new.apps.contains_key(*id));
        differences.removed = gone.cloned().collect();
        Ok(Prepared { differences, fresh, config: new.apps.clone() })
    }

    /// Makes the apps that were prepared the listed ones, in one step and at once: options apply from the next request on. An app of which nothing but the
    /// connection is another takes the place of the old one by [`Apps::swap`]. Where its options differ as well, or the rules for all apps
    /// (`other_rules`), the old app goes at once: it would be offered as neither configuration says.
    pub(super) fn apply(&mut self, prepared: Prepared, other_rules: bool) -> Differences {
        let Prepared { differences, fresh, config } = prepared;
        if other_rules {
            self.gateway.registry().renew_callers();
        }
        if differences.any() || other_rules || !self.config.keys().eq(config.keys()) {
            self.fresh.retain(|id, _| config.contains_key(id));
            for (id, mut fresh) in fresh {
                // One that changes again and again waits no longer for that.
                let before = self.fresh.get(&id).map_or(fresh.until, |before| before.until);
                fresh.until = fresh.until.min(before);
                self.fresh.insert(id, fresh);
            }
            for (id, fresh) in &mut self.fresh {
                let options = |apps: &IndexMap<String, AppConfig>| apps.get(id).map(AppConfig::options);
                fresh.is_due |= other_rules || options(&self.config) != options(&config);
            }
            self.config = config;
            self.list();
        }
        differences
    }

    /// Reads the saved plans of `new` again, and adds the apps whose plans differ.
    pub(super) async fn reload_plans(&self, new: &Config, differences: &mut Differences) {
        let changed = self.starter.reload_plans(new).await;
        let is_new = |id: &String| !differences.added.contains(id) && !differences.changed.contains(id);
        let changed: Vec<String> = changed.into_iter().filter(is_new).collect();
        differences.changed.extend(changed);
    }

    /// Ids of apps that were started for an update and have not taken their places.
    pub(super) fn starting(&self) -> Vec<&str> {
        self.fresh.keys().map(String::as_str).collect()
    }

    /// Waits for an app that was started for an update to be up, to have failed once, or to have taken too long; for ever if there is none.
    pub(super) async fn ready(&self) -> String {
        if self.fresh.is_empty() {
            return std::future::pending().await;
        }
        let each = self.fresh.iter().map(|(id, fresh)| {
            Box::pin(async move {
                fresh.ready().await;
                id
            })
        });
        futures::future::select_all(each).await.0.clone()
    }

    /// Lists an app that is [`Apps::ready`] in the place of the one that it was started beside, which shuts down once its last call is answered.
    pub(super) fn swap(&mut self, id: &str) {
        if let Some(fresh) = self.fresh.get_mut(id) {
            fresh.is_due = true;
        }
        self.list();
        self.fresh.shift_remove(id);
    }

    /// Lists the apps of the configuration: of one that has to wait for its place, the one that it will replace.
    fn list(&mut self) {
        let registry = self.gateway.registry();
        let snapshot = registry.operator_snapshot();
        let apps = self.config.iter().filter_map(|(id, config)| {
            let listed = snapshot.app(id).map(|entry| entry.app.clone());
            let app = match self.fresh.get_mut(id) {
                Some(fresh) if fresh.is_due || listed.is_none() => Some(fresh.list()),
                _ => listed,
            };
            app.map(|app| (id.clone(), app, config.options()))
        });
        let apps = apps.collect();
        for gone in registry.set(apps) {
            self.retire(gone);
        }
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

/// An app that was started for an update. It shuts down if it is dropped before it is listed.
struct Fresh {
    app: Arc<dyn App>,
    /// The end of the wait for it.
    until: Instant,
    /// It takes its place now.
    is_due: bool,
    is_listed: bool,
    ending: TaskTracker,
}

impl Fresh {
    fn new(app: Arc<dyn App>, ending: TaskTracker) -> Self {
        Self { app, until: Instant::now() + READY, is_due: false, is_listed: false, ending }
    }

    /// The app, which the registry has from now on.
    fn list(&mut self) -> Arc<dyn App> {
        self.is_listed = true;
        self.app.clone()
    }

    /// Waits until it is up or has failed once, so that its tools do not disappear for a moment.
    async fn ready(&self) {
        let mut events = self.app.events();
        let started = async {
            while self.app.health() == AppHealth::Starting {
                if let Err(tokio::sync::broadcast::error::RecvError::Closed) = events.recv().await {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout_at(self.until, started).await;
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if !self.is_listed {
            let app = self.app.clone();
            self.ending.spawn(async move { app.shutdown().await });
        }
    }
}
