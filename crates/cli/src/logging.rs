//! Logging to standard error, so that stdio transports and `--json` stay clean, without secrets (`redact`), and without
//! control characters (`fields`). No place in the code fills it (`floods`).

mod fields;
mod floods;
pub(crate) mod redact;

use std::{io::IsTerminal as _, sync::OnceLock};

use tracing_subscriber::{
    EnvFilter, Layer as _, Registry, fmt, layer::SubscriberExt as _, reload, util::SubscriberInitExt as _,
};

use crate::{
    args::{LogArgs, LogFormat},
    config::{Level, LoggingConfig},
    exit::BadConfig,
};
use floods::Floods;
use redact::RedactedStderr;

/// Changes the level while the program runs.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Applies the `logging` section, at the start and when it changes.
pub fn apply(config: &LoggingConfig) {
    redact::set_fields(&config.redact);
    let Some(filter) = FILTER.get() else { return };
    let level = format!("{:?}", config.level.unwrap_or(Level::Info)).to_lowercase();
    if let Err(error) = filter.reload(EnvFilter::new(format!("{level},{QUIET}"))) {
        tracing::error!(%error, "the log level cannot be changed");
    }
}

/// Silences the client library, unless a level was chosen: for commands that report its errors themselves.
pub fn without_client_library() {
    if let Some(filter) = FILTER.get() {
        // Fails only once the subscriber is gone, which lives as long as the process.
        let _ = filter.reload(EnvFilter::new(format!("info,{QUIET},rmcp=off")));
    }
}

/// Logs errors only, unless a level was chosen: for commands whose answer has all that the log would warn of.
pub fn errors_only() {
    if let Some(filter) = FILTER.get() {
        let _ = filter.reload(EnvFilter::new(format!("error,{QUIET},rmcp=off")));
    }
}

/// `rmcp` logs three lines at INFO for each stateless request; only its warnings concern an operator. The end of its transports is logged
/// by the app or the command that they belong to. Its service logs a line for each request that is answered with an error, as many as a client
/// or an app likes to send.
const QUIET: &str = "rmcp=warn,rmcp::service=off,rmcp::transport::worker=off,hyper=warn,reqwest=warn,h2=warn";

/// Starts logging. `RUST_LOG` takes precedence over `--log-level`.
///
/// # Errors
/// `RUST_LOG` does not parse.
pub fn start(args: &LogArgs) -> anyhow::Result<()> {
    let mut chosen = args.log_level.is_some();
    let filter = match std::env::var_os("RUST_LOG").and_then(|text| text.into_string().ok()) {
        Some(text) if !text.trim().is_empty() => {
            chosen = true;
            EnvFilter::try_new(&text)
                .map_err(|error| BadConfig(format!("RUST_LOG `{text}` does not parse: {error}")))?
        }
        _ => EnvFilter::new(format!("{},{QUIET}", args.log_level.as_deref().unwrap_or("info"))),
    };
    let (filter, handle) = reload::Layer::new(filter);
    if !chosen {
        // The configuration may choose a level later.
        let _ = FILTER.set(handle);
    }
    let registry = tracing_subscriber::registry().with(filter);
    match args.log_format {
        LogFormat::Text => {
            let colours = std::io::stderr().is_terminal();
            let layer = fields::text_layer(RedactedStderr::Text).with_ansi(colours);
            registry.with(layer.with_filter(Floods)).init();
        }
        LogFormat::Json => {
            let layer = fmt::layer().json().flatten_event(true).with_writer(RedactedStderr::Json);
            registry.with(layer.with_filter(Floods)).init();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tracing::{Level, enabled};

    use super::*;

    #[test]
    fn refused_requests_write_no_lines_of_the_protocol_library() {
        let quiet = tracing_subscriber::registry().with(EnvFilter::new(format!("info,{QUIET}")));
        tracing::subscriber::with_default(quiet, || {
            assert!(!enabled!(target: "rmcp::service", Level::WARN));
            assert!(enabled!(target: "rmcp::transport::auth", Level::WARN));
        });
    }
}
