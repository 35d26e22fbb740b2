//! Log output: to standard error, so that stdio transports and `--json` stay clean.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::args::{LogArgs, LogFormat};

/// `rmcp` logs three lines at INFO for each stateless request; only its warnings concern an operator.
const QUIET: &str = "rmcp=warn,hyper=warn,reqwest=warn,h2=warn";

/// Starts logging. `RUST_LOG` wins over `--log-level`.
pub fn start(args: &LogArgs) -> anyhow::Result<()> {
    let filter = match std::env::var_os("RUST_LOG").and_then(|text| text.into_string().ok()) {
        Some(text) if !text.trim().is_empty() => {
            EnvFilter::try_new(&text).with_context(|| format!("RUST_LOG `{text}` does not parse"))?
        }
        _ => EnvFilter::new(format!("{},{QUIET}", args.log_level)),
    };
    let registry = tracing_subscriber::registry().with(filter);
    match args.log_format {
        LogFormat::Text => {
            let colours = std::io::stderr().is_terminal();
            registry
                .with(fmt::layer().with_ansi(colours).with_writer(std::io::stderr).with_target(false))
                .init();
        }
        LogFormat::Json => {
            registry.with(fmt::layer().json().flatten_event(true).with_writer(std::io::stderr)).init()
        }
    }
    Ok(())
}
