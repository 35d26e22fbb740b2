//! Applies a changed configuration to a running server: on SIGHUP, and when a file changes.
//!
//! The file is read and checked as a whole first; a bad one changes nothing. Apps are added, removed and replaced through the
//! registry, other sections by the handlers registered with [`Reloader::live`]. An app with another connection takes its place when it is up;
//! nothing else waits for it, nor does the next update. Changes that no handler applies are logged: they
//! need a restart. Change detection is in `watch`.

mod apps;
mod certificate;
mod status;
mod watch;

use std::sync::Arc;

use gatewright::{ConfigurationView, Registry, Running};
use gatewright_findings::{Finding, first};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch as latest,
};
use tokio_util::sync::CancellationToken;

use crate::{
    args::ConfigArgs,
    config::{Config, Source},
    names,
    wire::apps::AppStarter,
};
use apps::{Apps, Differences};
pub use certificate::CertificateFiles;
use status::Status;
pub use status::{metrics, public_status};
use watch::FileWatch;

const HANGUP: &str = "SIGHUP";

/// Applies a new configuration, or returns why it cannot; then the old one stays in force.
type Handler = Box<dyn Fn(&Config) -> anyhow::Result<()> + Send>;

/// Applies changes of the configuration to a running server.
pub struct Reloader {
    args: ConfigArgs,
    /// The configuration at the start: keys that need a restart still have these values.
    started: Source,
    current: Source,
    handlers: Vec<(Vec<&'static str>, Handler)>,
    on_hangup: Vec<Box<dyn Fn() + Send>>,
    apps: Apps,
    hangup: Signal,
    files: Option<FileWatch>,
    status: latest::Sender<Status>,
    /// The configuration in force.
    config: latest::Sender<Arc<Config>>,
    /// Changes since the last report, while apps start.
    unreported: Option<Changes>,
    /// The same for people.
    shown: latest::Sender<Arc<Shown>>,
}

/// Changes that were applied and not reported.
struct Changes {
    why: &'static str,
    apps: Differences,
    keys: Vec<String>,
    config: Config,
}

/// Keys with their values, without secrets.
type Shown = Vec<(String, String)>;

/// The configuration at the start, and the watches on its files.
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    source: Source,
    args: ConfigArgs,
    hangup: Signal,
    files: Option<FileWatch>,
}

impl Loaded {
    /// Reads the configuration. From now on SIGHUP no longer ends the process. With `watch` changes of files count as well.
    pub fn read(args: ConfigArgs, watch: bool) -> anyhow::Result<Self> {
        let hangup = signal(SignalKind::hangup())?;
        // Before reading, so that no later change is missed.
        let mut files = watch.then(|| FileWatch::new(args.config.iter().chain(&args.mcp_config).cloned()));
        let (mut config, mut source) = Config::load(&args)?;
        if let Some(files) = &mut files {
            files.watch(&config);
            if !config.policy_files.watched.is_empty() || config.pin_file.path.is_some() {
                // Again, for policies and pins that changed before they were watched.
                (config, source) = Config::load(&args)?;
            }
        }
        Ok(Self { config, source, args, hangup, files })
    }

    /// The reloader of the server that was started from this configuration. It applies the limits of code mode itself.
    pub fn follow(self, running: &Running, starter: AppStarter) -> Reloader {
        let status = Status {
            generation: 1,
            refused: false,
            restart: Vec::new(),
            unknown_names: 0,
            notes: Vec::new(),
        };
        let config = latest::Sender::new(Arc::new(self.config.clone()));
        let shown = latest::Sender::new(Arc::new(self.source.shown()));
        let apps = Apps::new(running.gateway().clone(), starter, self.config.apps);
        let mut reloader = Reloader {
            args: self.args,
            started: self.source.clone(),
            current: self.source,
            handlers: Vec::new(),
            on_hangup: Vec::new(),
            apps,
            hangup: self.hangup,
            files: self.files,
            status: latest::Sender::new(status),
            config,
            unreported: None,
            shown,
        };
        if let Some(code_call) = running.code_call().cloned() {
            let paths = vec![
                "codecall.mode",
                "codecall.vm",
                "codecall.sanitization",
                "codecall.embedding.similarityThreshold",
            ];
            reloader.live(paths, move |config| {
                code_call.reconfigure(&config.codecall).map_err(anyhow::Error::from)
            });
        }
        reloader
    }
}

impl Changes {
    /// Takes those of `earlier` in.
    fn join(&mut self, earlier: Self) {
        let keys = std::mem::replace(&mut self.keys, earlier.keys);
        self.keys.extend(keys);
        self.keys.sort();
        self.keys.dedup();
        let apps = std::mem::replace(&mut self.apps, earlier.apps);
        self.apps.extend(apps);
    }
}

impl Reloader {
    /// Calls `apply` with the new configuration each time a value at or below one of `paths` differs. It must apply all of them
    /// or none.
    pub fn live(
        &mut self,
        paths: Vec<&'static str>,
        apply: impl Fn(&Config) -> anyhow::Result<()> + Send + 'static,
    ) {
        self.handlers.push((paths, Box::new(apply)));
    }

    /// Returns true if changes of files count, not only SIGHUP.
    pub fn watches_files(&self) -> bool {
        self.files.is_some()
    }

    /// Calls `run` on each SIGHUP, whether or not the configuration changed.
    pub fn on_hangup(&mut self, run: impl Fn() + Send + 'static) {
        self.on_hangup.push(Box::new(run));
    }

    /// The status of reloading, now and after each reload.
    pub fn status(&self) -> latest::Receiver<Status> {
        self.status.subscribe()
    }

    /// Reads the configuration in force, for the console.
    pub fn shown(&self) -> impl Fn() -> ConfigurationView + Send + Sync + use<> {
        let (status, shown) = (self.status.subscribe(), self.shown.subscribe());
        move || {
            let status = status.borrow();
            ConfigurationView {
                generation: status.generation,
                refused: status.refused,
                unknown_names: status.unknown_names,
                notes: status.notes.clone(),
                restart: status.restart.clone(),
                values: shown.borrow().to_vec(),
            }
        }
    }

    /// Logs names in the configuration of things that do not exist, now and as apps and the configuration change, until `stop`.
    pub fn watch_names(
        &self,
        registry: Arc<Registry>,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + use<> {
        let status = self.status.clone();
        let report = move |found: &[Finding]| {
            let notes: Vec<String> = first(found).0.iter().map(Finding::to_string).collect();
            status.send_if_modified(|status| {
                let differs = (status.unknown_names, &status.notes) != (found.len(), &notes);
                (status.unknown_names, status.notes) = (found.len(), notes);
                differs
            });
        };
        names::watch(registry, self.config.subscribe(), report, stop)
    }

    /// Reloads on SIGHUP and on changes, until `stop`. Returns once removed apps have shut down.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let why = tokio::select! {
                _ = self.hangup.recv() => HANGUP,
                () = changed(&mut self.files) => "a changed file",
                id = self.apps.ready() => {
                    self.apps.swap(&id);
                    self.report();
                    continue;
                }
                () = stop.cancelled() => break,
            };
            if why == HANGUP {
                self.on_hangup.iter().for_each(|run| run());
            }
            tokio::select! {
                () = self.reload(why) => {}
                () = stop.cancelled() => break,
            }
        }
        self.apps.end().await;
    }

    async fn reload(&mut self, why: &'static str) {
        if let Some(files) = &mut self.files {
            files.record().await;
        }
        // A file system may hang: neither requests nor the end of the process wait for it.
        let args = self.args.clone();
        let loading = tokio::task::spawn_blocking(move || Config::load(&args));
        let (config, source) = match loading.await.map_err(anyhow::Error::from).flatten() {
            Ok(loaded) => loaded,
            Err(error) => return self.refuse(why, &error),
        };
        if let Some(files) = &mut self.files {
            files.watch(&config);
        }
        let prepared = match self.apps.prepare(&config).await {
            Ok(prepared) => prepared,
            Err(error) => return self.refuse(why, &error),
        };
        let differing = self.current.differences(&source);
        for (paths, apply) in &self.handlers {
            if differing.iter().any(|path| covers(paths, path))
                && let Err(error) = apply(&config)
            {
                let section = paths.join(", ");
                tracing::error!(
                    section,
                    "the new {section} cannot be applied, the old one stays in force: {error:#}"
                );
            }
        }
        let other_rules = differing.iter().any(|path| !path.starts_with("apps."));
        let mut apps = self.apps.apply(prepared, other_rules);
        self.apps.reload_plans(&config, &mut apps).await;
        let live = |path: &String| path.starts_with("apps.") || self.is_live(path);
        let restart: Vec<String> =
            self.started.differences(&source).into_iter().filter(|path| !live(path)).collect();
        if !restart.is_empty() {
            let keys = restart.join(", ");
            tracing::warn!(keys, "restart to apply: {keys}");
        }
        self.shown.send_replace(Arc::new(source.shown()));
        self.current = source;
        self.status.send_modify(|status| {
            status.refused = false;
            status.restart = restart;
        });
        let mut changes = Changes { why, apps, keys: differing, config };
        if let Some(earlier) = self.unreported.take() {
            changes.join(earlier);
        }
        self.unreported = Some(changes);
        self.report();
    }

    /// Reports what changed once the apps that it started are up.
    fn report(&mut self) {
        let starting = self.apps.starting().join(", ");
        if !starting.is_empty() {
            tracing::info!(
                "a changed configuration applies; the apps [{starting}] take their places when they are up"
            );
            return;
        }
        let Some(Changes { why, apps, keys, config }) = self.unreported.take() else { return };
        self.config.send_replace(Arc::new(config));
        let changed = apps.any() || !keys.is_empty();
        self.status.send_modify(|status| status.generation += u64::from(changed));
        let generation = self.status.borrow().generation;
        if changed {
            tracing::info!(
                generation,
                "the configuration was reloaded after {why}: apps added [{}], changed [{}], removed [{}]; keys that differ [{}]",
                apps.added.join(", "),
                apps.changed.join(", "),
                apps.removed.join(", "),
                keys.join(", "),
            );
        } else {
            tracing::info!(generation, "the configuration was read again after {why}: nothing differs");
        }
    }

    fn refuse(&self, why: &'static str, error: &anyhow::Error) {
        // Set before logging, so that the status agrees with the log.
        self.status.send_modify(|status| status.refused = true);
        let text = format!("{error:#}");
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        tracing::error!("the configuration read after {why} is invalid, nothing changes: {first}");
        // Line breaks are escaped in a log: each finding is a line of its own.
        for line in lines.filter(|line| !line.trim().is_empty()) {
            tracing::error!("{line}");
        }
    }

    fn is_live(&self, path: &str) -> bool {
        self.handlers.iter().any(|(paths, _)| covers(paths, path))
    }
}

/// Returns true if `path` is one of `paths` or below it.
fn covers(paths: &[&str], path: &str) -> bool {
    paths
        .iter()
        .any(|whole| path.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

async fn changed(files: &mut Option<FileWatch>) {
    match files {
        Some(files) => files.changed().await,
        None => std::future::pending().await,
    }
}
