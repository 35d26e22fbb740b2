//! The `telemetry` section.

use gatewright_operator::telemetry::OtlpConfig;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{environment::environment, exit::BadConfig};

/// Variable with the collector's address, used without `telemetry.otlp` (OpenTelemetry specification, OTLP exporter).
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The `telemetry` section.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// Collector that traces are sent to. Default: `OTEL_EXPORTER_OTLP_ENDPOINT` of the environment; without either, none are sent.
    pub otlp: Option<OtlpConfig>,
}

impl TelemetryConfig {
    /// The collector that the section or the environment names.
    ///
    /// # Errors
    /// The address in the environment cannot be used.
    pub fn collector(&self) -> Result<Option<OtlpConfig>, BadConfig> {
        if self.otlp.is_some() {
            return Ok(self.otlp.clone());
        }
        let Some(text) = environment().remove(ENDPOINT).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let parsed =
            text.parse().map_err(|error| BadConfig(format!("{ENDPOINT} is not an address: {error}")))?;
        let otlp = OtlpConfig::new(parsed);
        match otlp.problems().first() {
            Some((_, problem)) => Err(BadConfig(format!("{ENDPOINT} {problem}"))),
            None => Ok(Some(otlp)),
        }
    }
}
