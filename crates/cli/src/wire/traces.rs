//! Export of traces to an OpenTelemetry collector.

use std::time::Duration;

use anyhow::Context as _;
use gatewright_operator::telemetry::{OtlpConfig, Sending, Traces};

use crate::{config::Config, environment::environment, exit::BadConfig};

/// Longest wait for the last traces to be sent.
const FLUSH: Duration = Duration::from_secs(5);

/// Variable with the collector's address, used without `telemetry.otlp` (OpenTelemetry specification, OTLP exporter).
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Starts to send traces if the configuration or the environment names a collector.
///
/// # Errors
/// The address is bad, or no client for it can be made.
pub fn start(config: &Config) -> anyhow::Result<Option<(Traces, Sending)>> {
    let otlp = match &config.telemetry.otlp {
        Some(otlp) => otlp.clone(),
        None => match environment().remove(ENDPOINT).filter(|text| !text.is_empty()) {
            Some(text) => from_environment(&text)?,
            None => return Ok(None),
        },
    };
    Traces::start(&otlp, &config.info.version).map(Some).context("traces cannot be sent")
}

fn from_environment(text: &str) -> anyhow::Result<OtlpConfig> {
    let parsed = text.parse().map_err(|error| BadConfig(format!("{ENDPOINT} is not an address: {error}")))?;
    let otlp = OtlpConfig::new(parsed);
    match otlp.problems().first() {
        Some((_, problem)) => Err(BadConfig(format!("{ENDPOINT} {problem}")).into()),
        None => Ok(otlp),
    }
}

/// Sends the last traces, for a few seconds at most.
pub async fn finish(sending: Sending) {
    if tokio::time::timeout(FLUSH, sending.finish()).await.is_err() {
        tracing::warn!("stopping without the last traces: the collector did not accept them in time");
    }
}
