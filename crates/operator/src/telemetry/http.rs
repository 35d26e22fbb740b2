//! Responses of the public port, and its load.

use prometheus::{IntCounterVec, IntGauge, Opts, Registry as Instruments, core::Collector};

use super::text::render;

/// Load of the public port.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenCounts {
    /// Open connections.
    pub connections: usize,
    /// Requests that are worked on.
    pub requests: usize,
    /// Open streams of notifications.
    pub streams: usize,
    /// Sessions of the older era.
    pub sessions: usize,
    /// Bytes of memory that requests take.
    pub request_bytes: usize,
    /// Bytes of answers that clients have not taken.
    pub unsent_bytes: usize,
}

/// The counts of the public port.
#[derive(Debug)]
pub struct HttpMetrics {
    all: Instruments,
    responses: IntCounterVec,
    connections: IntGauge,
    requests: IntGauge,
    streams: IntGauge,
    sessions: IntGauge,
    memory: IntGauge,
    unsent: IntGauge,
}

impl HttpMetrics {
    /// Nothing counted yet.
    ///
    /// # Errors
    /// Never in practice: a name or label that Prometheus does not allow.
    pub fn new() -> Result<Self, prometheus::Error> {
        let metrics = Self {
            all: Instruments::new(),
            responses: IntCounterVec::new(
                Opts::new(
                    "gatewright_http_responses_total",
                    "Answers of the public port, refusals before MCP included, by the names of the OpenTelemetry conventions for HTTP",
                ),
                &["http_request_method", "http_route", "http_response_status_code"],
            )?,
            connections: IntGauge::new("gatewright_http_connections_open", "Open connections")?,
            requests: IntGauge::new("gatewright_http_requests_open", "Requests that are worked on")?,
            streams: IntGauge::new("gatewright_http_streams_open", "Open streams of notifications")?,
            sessions: IntGauge::new("gatewright_sessions_open", "Sessions of the older era that are held")?,
            memory: IntGauge::new(
                "gatewright_http_request_bytes",
                "Bytes of memory that requests over 16 KiB take",
            )?,
            unsent: IntGauge::new(
                "gatewright_http_unsent_bytes",
                "Bytes of answers over 16 KiB that clients have not taken",
            )?,
        };
        let instruments: [Box<dyn Collector>; 7] = [
            Box::new(metrics.responses.clone()),
            Box::new(metrics.connections.clone()),
            Box::new(metrics.requests.clone()),
            Box::new(metrics.streams.clone()),
            Box::new(metrics.sessions.clone()),
            Box::new(metrics.memory.clone()),
            Box::new(metrics.unsent.clone()),
        ];
        instruments.into_iter().try_for_each(|one| metrics.all.register(one))?;
        Ok(metrics)
    }

    /// Counts an answer. All three must come from bounded sets: each combination is a series.
    pub fn answered(&self, method: &str, route: &str, status: &str) {
        self.responses.with_label_values(&[method, route, status]).inc();
    }

    /// The counts in Prometheus' text format, version 0.0.4.
    pub fn render(&self, open: OpenCounts) -> String {
        let size = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.connections.set(size(open.connections));
        self.requests.set(size(open.requests));
        self.streams.set(size(open.streams));
        self.sessions.set(size(open.sessions));
        self.memory.set(size(open.request_bytes));
        self.unsent.set(size(open.unsent_bytes));
        render(&self.all)
    }
}
