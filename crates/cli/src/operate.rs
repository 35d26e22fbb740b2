//! What operators see: the admin listener with metrics and the console.

use std::sync::Arc;

use anyhow::Context as _;
use gatewright::{Observer, Running};
use gatewright_admin::{Admin, AdminConfig};
use gatewright_auth::Metrics as AuthMetrics;
use gatewright_console::{Console, ConsoleOptions, Journal};
use gatewright_telemetry::{Metrics, WorkerCounts};
use tokio_util::sync::CancellationToken;

use crate::config::Config;

/// Executions that the console can show.
const KEPT: usize = 500;

/// What watches the gateway for the admin listener.
pub struct Watching {
    config: AdminConfig,
    metrics: Arc<Metrics>,
    journal: Option<Arc<Journal>>,
}

impl Watching {
    /// What the configuration asks for; nothing without `admin`.
    pub fn of(config: &Config) -> anyhow::Result<Option<Self>> {
        let Some(config) = config.admin.clone() else { return Ok(None) };
        let metrics = Arc::new(Metrics::new().context("the metrics cannot be set up")?);
        let journal = config.console.then(|| Journal::new(KEPT));
        Ok(Some(Self { config, metrics, journal }))
    }

    /// What the gateway tells of its calls.
    pub fn observers(&self) -> Vec<Arc<dyn Observer>> {
        let mut all: Vec<Arc<dyn Observer>> = vec![self.metrics.clone()];
        all.extend(self.journal.clone().map(|journal| journal as Arc<dyn Observer>));
        all
    }

    /// Serves the admin listener until `stop`.
    pub async fn serve(
        self,
        running: &Running,
        auth: Option<Arc<AuthMetrics>>,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let registry = running.gateway().registry().clone();
        let (metrics, pool) = (self.metrics, running.pool().cloned());
        let counted = registry.clone();
        let mut admin = Admin::new(self.config.clone(), registry).metrics(move || {
            let workers = pool.as_ref().map(|pool| pool.stats()).map(|stats| WorkerCounts {
                idle: stats.idle,
                waiting: stats.waiting,
                running: stats.running,
                replaced: stats.replaced,
            });
            metrics.render(&counted, workers)
        });
        if let Some(auth) = auth {
            admin = admin.metrics(move || auth.prometheus());
        }
        if let Some(journal) = self.journal {
            let options =
                ConsoleOptions { allowed_hosts: self.config.allowed_hosts.clone(), stop: stop.clone() };
            let console =
                Console::new(running.gateway().clone(), running.code_call().cloned(), journal, options);
            admin = admin.merge(console.router()).home("/console");
        }
        let address = admin.start(stop).await?;
        let shows = if self.config.console { "console and metrics" } else { "metrics" };
        tracing::info!(%address, "serving {shows} for operators on http://{address}");
        Ok(())
    }
}
