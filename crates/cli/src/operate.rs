//! What operators see: the admin listener with metrics and the console.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use gatewright::{
    Observer, Running,
    server::{Occupancy, ServerBuilder},
};
use gatewright_auth::Metrics as AuthMetrics;
use gatewright_console::{Console, ConsoleOptions, ExecutionHistory};
use gatewright_operator::{
    admin::{Admin, AdminConfig},
    limits::Limits,
    telemetry::{
        HttpMetrics, Metrics, OpenCounts, OtlpConfig, Sending, Traces, WorkerCounts, counter, process_metrics,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Config, environment},
    reload,
};

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
    http: Arc<HttpMetrics>,
    journal: Option<Arc<ExecutionHistory>>,
}

/// What there is to count besides calls.
pub struct Counted {
    /// The port for clients; none over stdio.
    pub http: Option<Occupancy>,
    /// The door, with authentication on.
    pub auth: Option<Arc<AuthMetrics>>,
    /// Who counts calls.
    pub limits: Arc<Limits>,
    /// Where reloading stands.
    pub config: watch::Receiver<reload::Status>,
}

impl Watching {
    /// What the configuration asks for; nothing without `admin`.
    pub fn of(config: &Config) -> anyhow::Result<Option<Self>> {
        let Some(config) = config.admin.clone() else { return Ok(None) };
        let metrics = Arc::new(Metrics::new().context("the metrics cannot be set up")?);
        let http = Arc::new(HttpMetrics::new().context("the metrics cannot be set up")?);
        let journal = config.console.then(|| ExecutionHistory::new(KEPT));
        Ok(Some(Self { config, metrics, http, journal }))
    }

    /// Counts what `server` answers.
    pub fn hear(&self, server: ServerBuilder) -> ServerBuilder {
        let http = self.http.clone();
        server.answered(move |method, route, status| http.answered(method, route, status.as_str()))
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
        counted: Counted,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let registry = running.gateway().registry().clone();
        let (metrics, pool) = (self.metrics, running.pool().cloned());
        let served = registry.clone();
        let mut admin = Admin::new(self.config.clone(), registry).metrics(move || {
            let workers = pool.as_ref().map(|pool| pool.stats()).map(|stats| WorkerCounts {
                idle: stats.idle,
                waiting: stats.waiting,
                running: stats.running,
                replaced: stats.replaced,
            });
            metrics.render(&served, workers)
        });
        let Counted { http, auth, limits, config } = counted;
        if let Some(occupancy) = http {
            let answers = self.http;
            admin = admin.metrics(move || {
                let now = occupancy.now();
                answers.render(OpenCounts {
                    connections: now.connections,
                    requests: now.requests,
                    streams: now.streams,
                    sessions: now.sessions,
                })
            });
        }
        if let Some(auth) = auth {
            admin = admin.metrics(move || auth.prometheus());
        }
        admin = admin.metrics(reload::metrics(config)).metrics(process_metrics).metrics(move || {
            let name = "gatewright_rate_limit_store_errors_total";
            let help = "Calls that the store shared by all instances did not count";
            counter(name, help, limits.shared_failures() as f64)
        });
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
