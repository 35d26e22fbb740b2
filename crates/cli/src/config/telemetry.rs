//! The `telemetry` section.

use gatewright_operator::telemetry::OtlpConfig;
use schemars::JsonSchema;
use serde::Deserialize;

/// The `telemetry` section.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// Collector that traces are sent to. Default: `OTEL_EXPORTER_OTLP_ENDPOINT` of the environment; without either, none are sent.
    pub otlp: Option<OtlpConfig>,
}
