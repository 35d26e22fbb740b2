//! The admin listener: metrics, and the console with the latest executions.

use std::sync::Arc;

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
    telemetry::{HttpMetrics, Metrics, OpenCounts, WorkerCounts, counter, process_metrics},
};
use tokio_util::sync::CancellationToken;

use crate::config::Config;

/// Executions that the console can show.
const HISTORY: usize = 500;

/// The admin listener before it serves: collects metrics and executions.
pub struct AdminListener {
    config: AdminConfig,
    metrics: Arc<Metrics>,
    http: Arc<HttpMetrics>,
    history: Option<Arc<ExecutionHistory>>,
}

/// Sources of metrics besides calls.
pub struct MetricSources {
    /// Open connections of the listener for clients; `None` over stdio.
    pub http: Option<Occupancy>,
    /// Authentication, when it is on.
    pub auth: Option<Arc<AuthMetrics>>,
    /// Rate limits.
    pub limits: Arc<Limits>,
    /// Reloads of the configuration, in the text format of Prometheus.
    pub reloads: Box<dyn Fn() -> String + Send + Sync>,
}

impl AdminListener {
    /// The listener that the configuration asks for; `None` without `admin`.
    ///
    /// # Errors
    /// The metrics cannot be registered.
    pub fn of(config: &Config) -> anyhow::Result<Option<Self>> {
        let Some(config) = config.admin.clone() else { return Ok(None) };
        let metrics = Arc::new(Metrics::new().context("the metrics cannot be set up")?);
        let http = Arc::new(HttpMetrics::new().context("the metrics cannot be set up")?);
        let history = config.console.then(|| ExecutionHistory::new(HISTORY));
        Ok(Some(Self { config, metrics, http, history }))
    }

    /// Counts the responses of `server`.
    pub fn count_responses(&self, server: ServerBuilder) -> ServerBuilder {
        let http = self.http.clone();
        server.answered(move |method, route, status| http.answered(method, route, status.as_str()))
    }

    /// Observers for the gateway: the metrics, and the history of the console.
    pub fn observers(&self) -> Vec<Arc<dyn Observer>> {
        let mut all: Vec<Arc<dyn Observer>> = vec![self.metrics.clone()];
        all.extend(self.history.clone().map(|history| history as Arc<dyn Observer>));
        all
    }

    /// Serves in the background until `stop`.
    ///
    /// # Errors
    /// The address is taken.
    pub async fn serve(
        self,
        running: &Running,
        sources: MetricSources,
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
        let MetricSources { http, auth, limits, reloads } = sources;
        if let Some(occupancy) = http {
            let responses = self.http;
            admin = admin.metrics(move || {
                let now = occupancy.now();
                responses.render(OpenCounts {
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
        admin = admin.metrics(reloads).metrics(process_metrics).metrics(move || shared_failures(&limits));
        if let Some(history) = self.history {
            let options =
                ConsoleOptions { allowed_hosts: self.config.allowed_hosts.clone(), stop: stop.clone() };
            let console =
                Console::new(running.gateway().clone(), running.code_call().cloned(), history, options);
            admin = admin.merge(console.router()).home("/console");
        }
        let address = admin.start(stop).await?;
        let shows = if self.config.console { "console and metrics" } else { "metrics" };
        tracing::info!(%address, "serving {shows} for operators on http://{address}");
        Ok(())
    }
}

/// The counter of calls that the shared store of rate limits did not count.
fn shared_failures(limits: &Limits) -> String {
    let name = "gatewright_rate_limit_store_errors_total";
    let help = "Calls that the store shared by all instances did not count";
    counter(name, help, limits.shared_failures() as f64)
}
