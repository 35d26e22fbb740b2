//! The admin listener: metrics, and the console with the latest executions.

use std::{net::SocketAddr, sync::Arc};

use gatewright_auth::Metrics as AuthMetrics;
use gatewright_console::{Console, ConsoleOptions, ExecutionHistory, SharedConsole};
use gatewright_core::Observer;
use gatewright_operator::{
    admin::{Admin, AdminConfig},
    limits::Limits,
    telemetry::{HttpMetrics, Metrics, OpenCounts, WorkerCounts, counter, process_metrics},
};
use gatewright_server::{Occupancy, ServerBuilder};
use tokio_util::sync::CancellationToken;

use super::{GuardError, MetricsText, ReadConfiguration};
use crate::Running;

/// Executions that the console can show.
const HISTORY: usize = 500;

/// The admin listener before it serves: collects metrics and executions.
pub(super) struct AdminListener {
    config: AdminConfig,
    metrics: Arc<Metrics>,
    http: Arc<HttpMetrics>,
    history: Option<Arc<ExecutionHistory>>,
}

/// An admin listener that serves.
pub(super) struct AdminServer {
    pub(super) address: SocketAddr,
    has_console: bool,
}

impl AdminServer {
    /// Logs where it serves.
    pub(super) fn log(&self) {
        let (address, shows) =
            (self.address, if self.has_console { "console and metrics" } else { "metrics" });
        tracing::info!(%address, "serving {shows} for operators on http://{address}");
    }
}

/// Sources of metrics besides calls.
pub(super) struct MetricSources {
    /// Open connections of the listener for clients; `None` over stdio.
    pub(super) http: Option<Occupancy>,
    /// Authentication, when it is on.
    pub(super) auth: Option<Arc<AuthMetrics>>,
    /// Rate limits.
    pub(super) limits: Arc<Limits>,
    /// More metrics, in the text format of Prometheus.
    pub(super) more: Vec<MetricsText>,
}

/// The parts of the server that the console shows besides the gateway.
pub(super) struct ConsoleSources {
    /// The configuration in force, if there is a file.
    pub(super) configuration: Option<ReadConfiguration>,
    /// The store that instances share, if there is one.
    pub(super) shared: Option<SharedConsole>,
}

impl AdminListener {
    /// Sets up the metrics, and the history of the console, with `arguments` of calls.
    ///
    /// # Errors
    /// The metrics cannot be registered.
    pub(super) fn new(config: AdminConfig, arguments: bool) -> Result<Self, GuardError> {
        let metrics = Arc::new(Metrics::new().map_err(|error| GuardError::Metrics(error.into()))?);
        let http = Arc::new(HttpMetrics::new().map_err(|error| GuardError::Metrics(error.into()))?);
        let history = config.console.then(|| ExecutionHistory::keeping(HISTORY, arguments));
        Ok(Self { config, metrics, http, history })
    }

    /// Counts the responses of `server`.
    pub(super) fn count_responses(&self, server: ServerBuilder) -> ServerBuilder {
        let http = self.http.clone();
        server.answered(move |method, route, status| http.answered(method, route, status.as_str()))
    }

    /// Observers for the gateway: the metrics, and the history of the console.
    pub(super) fn observers(&self) -> Vec<Arc<dyn Observer>> {
        let mut all: Vec<Arc<dyn Observer>> = vec![self.metrics.clone()];
        all.extend(self.history.clone().map(|history| history as Arc<dyn Observer>));
        all
    }

    /// Serves in the background until `stop`.
    ///
    /// # Errors
    /// The address is taken.
    pub(super) async fn serve(
        self,
        running: &Running,
        sources: MetricSources,
        shown: ConsoleSources,
        stop: CancellationToken,
    ) -> Result<AdminServer, GuardError> {
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
        let MetricSources { http, auth, limits, more } = sources;
        if let Some(occupancy) = http {
            let responses = self.http;
            admin = admin.metrics(move || {
                let now = occupancy.now();
                responses.render(OpenCounts {
                    connections: now.connections,
                    requests: now.requests,
                    streams: now.streams,
                    sessions: now.sessions,
                    request_bytes: now.request_bytes,
                    unsent_bytes: now.unsent_bytes,
                })
            });
        }
        if let Some(auth) = auth {
            admin = admin.metrics(move || auth.prometheus());
        }
        for render in more {
            admin = admin.metrics(render);
        }
        admin = admin.metrics(process_metrics).metrics(move || shared_failures(&limits));
        if let Some(history) = self.history {
            let options = ConsoleOptions {
                allowed_hosts: self.config.allowed_hosts.clone(),
                stop: stop.clone(),
                configuration: shown.configuration,
                shared: shown.shared,
                contents: self.config.contents,
            };
            let console =
                Console::new(running.gateway().clone(), running.code_call().cloned(), history, options);
            admin = admin.merge(console.router()).home("/console");
        }
        let address = admin.start(stop).await?;
        Ok(AdminServer { address, has_console: self.config.console })
    }
}

/// The counter of calls that the shared store of rate limits did not count.
fn shared_failures(limits: &Limits) -> String {
    let name = "gatewright_rate_limit_store_errors_total";
    let help = "Calls that the store shared by all instances did not count";
    counter(name, help, limits.shared_failures() as f64)
}
