//! `gatewright serve`.

use std::process::ExitCode;

use gatewright::{Running, serve_stdio};

use crate::{
    args::ServeArgs,
    assemble::{self, AppStarter},
    config::Config,
    reload::{self, Loaded, Reloader},
};

/// Serves until it is told to stop, and follows its configuration meanwhile.
pub async fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let mut loaded = Loaded::read(args.config, !args.no_watch)?;
    let http = &mut loaded.config.http;
    http.host = args.host.unwrap_or(http.host);
    http.port = args.port.unwrap_or(http.port);
    let config = loaded.config.clone();
    let stop = assemble::stop_signal()?;
    let starter = AppStarter::new();
    let running = assemble::start_with(&config, &starter).await?;
    let reloader = loaded.follow(&running, starter);
    let served = if args.stdio {
        let following = stop.child_token();
        let reloading = tokio::spawn(reloader.run(following.clone()));
        let served = serve_stdio(running.gateway().clone(), stop).await.map_err(anyhow::Error::from);
        following.cancel();
        reloading.await?;
        served
    } else {
        serve_http(&running, &config, reloader, stop).await
    };
    running.stop().await;
    served?;
    Ok(ExitCode::SUCCESS)
}

async fn serve_http(
    running: &Running,
    config: &Config,
    reloader: Reloader,
    stop: tokio_util::sync::CancellationToken,
) -> anyhow::Result<()> {
    let server = running.http(config.http.clone());
    let server = server.ready_detail("config", reload::public_status(reloader.status()));
    let bound = server.bind().await?;
    let address = bound.local_addr();
    tracing::info!(%address, path = %config.http.path, apps = config.apps.len(), "serving MCP on http://{address}{}", config.http.path);
    if !address.ip().is_loopback() {
        tracing::warn!(%address, "no authentication: whoever reaches this address may call every tool; keep it behind a proxy that authenticates");
    }
    let following = stop.child_token();
    let reloading = tokio::spawn(reloader.run(following.clone()));
    bound.serve(stop).await;
    following.cancel();
    reloading.await?;
    Ok(())
}
