//! What operators see: the admin listener with metrics and the console.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use gatewright::{Observer, Running};
use gatewright_admin::{Admin, AdminConfig};
use gatewright_auth::Metrics as AuthMetrics;
use gatewright_console::{Console, ConsoleOptions, Journal};
use gatewright_telemetry::{Metrics, OtlpConfig, Sending, Traces, WorkerCounts};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, environment};

/// Executions that the console can show.
const KEPT: usize = 500;
/// How long the last traces may take.
const FLUSH: Duration = Duration::from_secs(5);

/// The `telemetry` section.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// Where traces go. Without it `OTEL_EXPORTER_OTLP_ENDPOINT` of the environment says so; without both there are none.
    pub otlp: Option<OtlpConfig>,
}

/// Begins to send traces, when a collector is named.
pub fn traces(config: &Config) -> anyhow::Result<Option<(Traces, Sending)>> {
    const FROM: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    let named = || environment().remove(FROM).filter(|text| !text.is_empty());
    let otlp = match (&config.telemetry.otlp, named()) {
        (Some(otlp), _) => otlp.clone(),
        (None, None) => return Ok(None),
        (None, Some(text)) => {
            let parsed = text.parse().with_context(|| format!("{FROM} is not an address"))?;
            let otlp = OtlpConfig::new(parsed);
            if let Some((_, problem)) = otlp.problems().first() {
                anyhow::bail!("{FROM} {problem}");
            }
            otlp
        }
    };
    Traces::start(&otlp, &config.info.version).map(Some).context("traces cannot be sent")
}

/// Waits a moment for the last traces to be sent.
pub async fn finish(sending: Sending) {
    if tokio::time::timeout(FLUSH, sending.finish()).await.is_err() {
        tracing::warn!("stopping without the last traces: the collector did not take them in time");
    }
}

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
