//! The `logging` section.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `logging` section of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LoggingConfig {
    /// Least severe level that is logged. Default `info`. `--log-level` and RUST_LOG take precedence.
    pub level: Option<Level>,
    /// Names of fields whose values are masked in every line, besides those that always are: tokens, secrets, passwords, cookies.
    pub redact: Vec<String>,
}

impl Default for LoggingConfig {
    fn default() -> Self {
        let redact = ["access_token", "refresh_token", "client_secret"].map(str::to_owned).to_vec();
        Self { level: None, redact }
    }
}

/// Severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Something does not work.
    Error,
    /// Something will not work, or is not safe.
    Warn,
    /// Events that an operator follows.
    Info,
    /// Details for developers of Gatewright.
    Debug,
    /// Everything.
    Trace,
}
