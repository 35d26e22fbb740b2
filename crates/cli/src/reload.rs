//! A new configuration for a server that runs: on SIGHUP, and when a file changes.
//!
//! The file is read and checked as a whole first; a bad one changes nothing. Apps come, go and change through the registry,
//! and other sections through the takers registered with [`Reloader::live`]. What nobody takes is named: restart to apply.
//! Noticing that a file changed is in `watch`.

mod apps;
mod certificate;
mod watch;

use gatewright::Running;
use gatewright_operator::telemetry;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch as latest,
};
use tokio_util::sync::CancellationToken;

use crate::{
    args::ConfigArgs,
    assemble::AppStarter,
    config::{Config, Source},
};
use apps::Apps;
pub use certificate::CertificateFiles;
use watch::FileWatch;

const HANGUP: &str = "SIGHUP";

/// Where reloading stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// 1 for the configuration the server started with; one more for each that was taken over.
    pub generation: u64,
    /// Whether the file as it is now was refused; the last good configuration goes on.
    pub refused: bool,
    /// Paths that differ from what the server started with and need a restart.
    pub restart: Vec<String>,
}

impl Status {
    /// What `/readyz` says: nothing that is not for everybody.
    pub fn public(&self) -> serde_json::Value {
        serde_json::json!({
            "generation": self.generation,
            "refused": self.refused,
            "restartPending": !self.restart.is_empty(),
        })
    }
}

/// The latest status in Prometheus' text format.
pub fn metrics(status: latest::Receiver<Status>) -> impl Fn() -> String {
    move || {
        let status = status.borrow();
        [
            (
                "generation",
                "1 at the start, one more for each configuration that was taken over",
                status.generation,
            ),
            (
                "refused",
                "1 when the file as it is now is bad; the last good one goes on",
                u64::from(status.refused),
            ),
            ("restart_pending", "Keys of the file that wait for a restart", status.restart.len() as u64),
        ]
        .into_iter()
        .map(|(name, help, value)| telemetry::gauge(&format!("gatewright_config_{name}"), help, value as f64))
        .collect()
    }
}

/// Takes a new configuration over, or says why it cannot; then what it did before goes on.
type Taker = Box<dyn Fn(&Config) -> anyhow::Result<()> + Send>;

/// Keeps a running server in step with its configuration.
pub struct Reloader {
    args: ConfigArgs,
    /// What the server started with: what needs a restart still has these values.
    started: Source,
    current: Source,
    takers: Vec<(Vec<&'static str>, Taker)>,
    on_hangup: Vec<Box<dyn Fn() + Send>>,
    apps: Apps,
    hangup: Signal,
    files: Option<FileWatch>,
    status: latest::Sender<Status>,
}

/// The configuration at the start, and what is needed to follow it.
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    source: Source,
    args: ConfigArgs,
    hangup: Signal,
    files: Option<FileWatch>,
}

impl Loaded {
    /// Reads the configuration. From now on SIGHUP ends the process no more. `watch` follows the files as well.
    pub fn read(args: ConfigArgs, watch: bool) -> anyhow::Result<Self> {
        let hangup = signal(SignalKind::hangup())?;
        // Before reading, so that no change in between is missed.
        let files = watch.then(|| FileWatch::new(args.config.iter().chain(&args.mcp_config).cloned()));
        let (config, source) = Config::load(&args)?;
        Ok(Self { config, source, args, hangup, files })
    }

    /// Makes the reloader of the server that was started from this. Code mode's limits are taken live from here on.
    pub fn follow(self, running: &Running, starter: AppStarter) -> Reloader {
        let status = Status { generation: 1, refused: false, restart: Vec::new() };
        let apps = Apps::new(running.gateway().clone(), starter, self.config.apps);
        let mut reloader = Reloader {
            args: self.args,
            started: self.source.clone(),
            current: self.source,
            takers: Vec::new(),
            on_hangup: Vec::new(),
            apps,
            hangup: self.hangup,
            files: self.files,
            status: latest::Sender::new(status),
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

impl Reloader {
    /// Has `take` called with the new configuration each time something at or below one of `paths` differs. It takes all of
    /// it or nothing.
    pub fn live(
        &mut self,
        paths: Vec<&'static str>,
        take: impl Fn(&Config) -> anyhow::Result<()> + Send + 'static,
    ) {
        self.takers.push((paths, Box::new(take)));
    }

    /// Returns whether changes of files count, and not SIGHUP alone.
    pub fn watches_files(&self) -> bool {
        self.files.is_some()
    }

    /// Has `run` called on each SIGHUP, whatever the file says.
    pub fn on_hangup(&mut self, run: impl Fn() + Send + 'static) {
        self.on_hangup.push(Box::new(run));
    }

    /// Where reloading stands, now and later.
    pub fn status(&self) -> latest::Receiver<Status> {
        self.status.subscribe()
    }

    /// Reloads when asked, until `stop`. Apps that were taken out are gone when this is done.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let why = tokio::select! {
                _ = self.hangup.recv() => HANGUP,
                () = changed(&mut self.files) => "a changed file",
                () = stop.cancelled() => break,
            };
            if why == HANGUP {
                self.on_hangup.iter().for_each(|run| run());
            }
            if let Some(files) = &mut self.files {
                files.take_note().await;
            }
            tokio::select! {
                () = self.reload(why) => {}
                () = stop.cancelled() => break,
            }
        }
        self.apps.end().await;
    }

    async fn reload(&mut self, why: &'static str) {
        let (config, source) = match Config::load(&self.args) {
            Ok(loaded) => loaded,
            Err(error) => return self.refuse(why, &error),
        };
        let apps = match self.apps.take_over(&config.apps).await {
            Ok(apps) => apps,
            Err(error) => return self.refuse(why, &error),
        };
        let differing = self.current.differences(&source);
        for (paths, take) in &self.takers {
            if differing.iter().any(|path| covers(paths, path))
                && let Err(error) = take(&config)
            {
                let section = paths.join(", ");
                tracing::error!(
                    section,
                    "the new {section} cannot be taken over, the old one stays: {error:#}"
                );
            }
        }
        let live = |path: &String| path.starts_with("apps.") || self.takes(path);
        let restart: Vec<String> =
            self.started.differences(&source).into_iter().filter(|path| !live(path)).collect();
        if !restart.is_empty() {
            let keys = restart.join(", ");
            tracing::warn!(keys, "restart to apply: {keys}");
        }
        self.current = source;
        let changed = apps.any() || !differing.is_empty();
        self.status.send_modify(|status| {
            status.generation += u64::from(changed);
            status.refused = false;
            status.restart = restart;
        });
        let generation = self.status.borrow().generation;
        if changed {
            tracing::info!(
                generation,
                "the configuration was reloaded after {why}: apps added [{}], changed [{}], removed [{}]; keys that differ [{}]",
                apps.added.join(", "),
                apps.changed.join(", "),
                apps.removed.join(", "),
                differing.join(", "),
            );
        } else {
            tracing::info!(generation, "the configuration was read again after {why}: nothing differs");
        }
    }

    fn refuse(&self, why: &'static str, error: &anyhow::Error) {
        // First, so that whoever reads of it in the log finds it so.
        self.status.send_modify(|status| status.refused = true);
        tracing::error!("the configuration read after {why} is refused, nothing changes: {error:#}");
    }

    fn takes(&self, path: &str) -> bool {
        self.takers.iter().any(|(paths, _)| covers(paths, path))
    }
}

/// Whether `path` is one of `paths` or below it.
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

/// The latest status, for `/readyz`.
pub fn public_status(status: latest::Receiver<Status>) -> impl Fn() -> serde_json::Value {
    move || status.borrow().public()
}
