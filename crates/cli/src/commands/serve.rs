//! `gatewright serve`.

use std::process::ExitCode;

use gatewright::{Running, serve_stdio};

use crate::{args::ServeArgs, assemble, config::Config};

/// Serves until it is told to stop.
pub async fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let mut config = Config::of(&args.config)?;
    config.http.host = args.host.unwrap_or(config.http.host);
    config.http.port = args.port.unwrap_or(config.http.port);
    let stop = assemble::stop_signal()?;
    let running = assemble::start(&config).await?;
    let served = if args.stdio {
        serve_stdio(running.gateway().clone(), stop).await.map_err(anyhow::Error::from)
    } else {
        serve_http(&running, &config, stop).await
    };
    running.stop().await;
    served?;
    Ok(ExitCode::SUCCESS)
}

async fn serve_http(
    running: &Running,
    config: &Config,
    stop: tokio_util::sync::CancellationToken,
) -> anyhow::Result<()> {
    let bound = running.http(config.http.clone()).bind().await?;
    let address = bound.local_addr();
    tracing::info!(%address, path = %config.http.path, apps = config.apps.len(), "serving MCP on http://{address}{}", config.http.path);
    if !address.ip().is_loopback() {
        tracing::warn!(%address, "no authentication: whoever reaches this address may call every tool; keep it behind a proxy that authenticates");
    }
    bound.serve(stop).await;
    Ok(())
}
