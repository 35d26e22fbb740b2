//! Log output: to standard error, so that stdio transports and `--json` stay clean, and without secrets (`redact`).

use std::{io::IsTerminal as _, sync::OnceLock};

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing_subscriber::{
    EnvFilter, Registry, fmt, layer::SubscriberExt as _, reload, util::SubscriberInitExt as _,
};

use crate::{
    args::{LogArgs, LogFormat},
    redact::{self, CleanStderr},
};

/// The `logging` section of the configuration (contract, supplemental server settings).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LoggingConfig {
    /// Least severe level shown. Default `info`. `--log-level` and RUST_LOG win.
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

/// How severe a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Something does not work.
    Error,
    /// Something will not work, or is not safe.
    Warn,
    /// What an operator follows.
    Info,
    /// What a developer of Gatewright follows.
    Debug,
    /// Everything.
    Trace,
}

/// Changes what is shown while the program runs.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Applies the configuration's section, now and when it changes.
pub fn apply(config: &LoggingConfig) {
    redact::also(&config.redact);
    let Some(filter) = FILTER.get() else { return };
    let level = format!("{:?}", config.level.unwrap_or(Level::Info)).to_lowercase();
    if let Err(error) = filter.reload(EnvFilter::new(format!("{level},{QUIET}"))) {
        tracing::error!(%error, "the log level cannot be changed");
    }
}

/// Leaves out what the client library logs, unless somebody chose a level: for commands that tell its errors themselves.
pub fn without_client_library() {
    if let Some(filter) = FILTER.get() {
        // The filter is there for as long as the program runs.
        let _ = filter.reload(EnvFilter::new(format!("info,{QUIET},rmcp=off")));
    }
}

/// `rmcp` logs three lines at INFO for each stateless request; only its warnings concern an operator.
const QUIET: &str = "rmcp=warn,hyper=warn,reqwest=warn,h2=warn";

/// Starts logging. `RUST_LOG` wins over `--log-level`.
pub fn start(args: &LogArgs) -> anyhow::Result<()> {
    let mut chosen = args.log_level.is_some();
    let filter = match std::env::var_os("RUST_LOG").and_then(|text| text.into_string().ok()) {
        Some(text) if !text.trim().is_empty() => {
            chosen = true;
            EnvFilter::try_new(&text).with_context(|| format!("RUST_LOG `{text}` does not parse"))?
        }
        _ => EnvFilter::new(format!("{},{QUIET}", args.log_level.as_deref().unwrap_or("info"))),
    };
    let (filter, handle) = reload::Layer::new(filter);
    if !chosen {
        // Nobody chose a level yet: the configuration may.
        let _ = FILTER.set(handle);
    }
    let registry = tracing_subscriber::registry().with(filter);
    match args.log_format {
        LogFormat::Text => {
            let colours = std::io::stderr().is_terminal();
            registry.with(fmt::layer().with_ansi(colours).with_writer(CleanStderr).with_target(false)).init();
        }
        LogFormat::Json => {
            registry.with(fmt::layer().json().flatten_event(true).with_writer(CleanStderr)).init()
        }
    }
    Ok(())
}
