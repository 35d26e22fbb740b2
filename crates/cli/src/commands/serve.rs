//! `gatewright serve`.

use std::{path::PathBuf, process::ExitCode};

use gatewright::{Guard, Running};
use gatewright_findings::nearest;
use tokio_util::sync::CancellationToken;

use crate::{
    args::ServeArgs,
    config::Config,
    exit::BadConfig,
    logging, pins,
    reload::{self, CertificateFiles, Loaded, Reloader},
    signals::stop_signal,
    wire::{apps::AppStarter, gateway, guard, policies},
};

/// Serves until it is stopped, and applies changes of its configuration meanwhile.
pub async fn run(mut args: ServeArgs) -> anyhow::Result<ExitCode> {
    if let Some(path) = args.config.or_here() {
        tracing::info!("serving the configuration {} of this folder", path.display());
    }
    let own_files: Vec<PathBuf> = args.config.config.iter().chain(&args.config.mcp_config).cloned().collect();
    let mut loaded = Loaded::read(args.config, !args.no_watch)?;
    let http = &mut loaded.config.http;
    http.host = args.host.unwrap_or(http.host);
    http.port = args.port.unwrap_or(http.port);
    let config = loaded.config.clone();
    if let Some(endpoint) = &args.endpoint {
        check_endpoint(&config, endpoint)?;
    }
    let stop = stop_signal()?;
    if !args.stdio {
        guard::check_address(&config)?;
    }
    let (guard, builder) = guard::open(&config, config.telemetry.collector()?).await?;
    let starter = AppStarter::new(guard.user_tokens().clone());
    let running = gateway::start_with(&config, &starter, builder, &own_files).await?;
    let mut reloader = loaded.follow(&running, starter);
    logging::apply(&config.logging);
    apply_changes(&mut reloader, &running, &guard);
    let guard = guard
        .metrics(reload::metrics(reloader.status()))
        .configuration(reloader.shown())
        .ready_detail("config", reload::public_status(reloader.status()));
    let names = reloader.watch_names(running.gateway().registry().clone(), stop.clone());
    let names = tokio::spawn(names);
    let kept = config.pin_file.path.clone().map(|path| {
        let registry = running.gateway().registry();
        tokio::spawn(pins::keep(path, registry.pins()))
    });
    let served = match args.stdio {
        true => {
            let endpoint = args.endpoint.as_deref();
            serve_over_stdio(&running, endpoint, guard, reloader, stop).await
        }
        false => serve_over_http(&running, &config, guard, reloader, stop).await,
    };
    names.abort();
    kept.iter().for_each(tokio::task::JoinHandle::abort);
    running.stop().await;
    served?;
    Ok(ExitCode::SUCCESS)
}

/// Checks that the configuration has the endpoint `name`.
///
/// # Errors
/// It has none of this name.
pub fn check_endpoint(config: &Config, name: &str) -> Result<(), BadConfig> {
    if config.endpoints.contains_key(name) {
        return Ok(());
    }
    let known = || config.endpoints.keys().map(String::as_str);
    let meant = match nearest(name, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if config.endpoints.is_empty() => "it has no `endpoints`".to_owned(),
        None => format!("it has: {}", known().collect::<Vec<_>>().join(", ")),
    };
    Err(BadConfig(format!("the configuration has no endpoint `{name}`; {meant}")))
}

/// Registers the sections that are applied without a restart.
fn apply_changes(reloader: &mut Reloader, running: &Running, guard: &Guard) {
    reloader.live(vec!["logging"], |config| {
        logging::apply(&config.logging);
        Ok(())
    });
    let registry = running.gateway().registry().clone();
    reloader.live(vec!["policies", "approvals"], move |config| {
        registry.set_policies(policies::of(config));
        Ok(())
    });
    let registry = running.gateway().registry().clone();
    reloader.live(vec!["pins"], move |config| {
        registry.adopt_pins(&config.pin_file.pins);
        Ok(())
    });
    let registry = running.gateway().registry().clone();
    reloader.live(vec!["endpoints"], move |config| {
        registry.set_endpoints(&config.endpoints);
        Ok(())
    });
    let limits = guard.limits().clone();
    reloader.live(vec!["rateLimits"], move |config| {
        limits.replace(config.rate_limits.clone());
        Ok(())
    });
    if let Some(audit) = guard.audit().cloned() {
        reloader.on_hangup(move || audit.follow());
    }
}

async fn serve_over_stdio(
    running: &Running,
    endpoint: Option<&str>,
    guard: Guard,
    reloader: Reloader,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let background = stop.child_token();
    let reloading = tokio::spawn(reloader.run(background.clone()));
    let served = guard.serve_stdio(running, endpoint, stop).await.map_err(guard::explain);
    background.cancel();
    reloading.await?;
    served
}

async fn serve_over_http(
    running: &Running,
    config: &Config,
    guard: Guard,
    mut reloader: Reloader,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let files = CertificateFiles::note(config.http.tls.as_ref(), reloader.watches_files());
    let server = guard::listen(guard, running).await?;
    let address = server.local_addr();
    let origin = config.http.origin_at(address);
    tracing::info!(%address, path = %config.http.path, apps = config.apps.len(), "serving MCP on {origin}{}", config.http.path);
    let background = stop.child_token();
    if let Some(resource) = server.resource_server().cloned() {
        reloader.live(vec!["auth.apiKeys"], move |config| {
            resource.replace_api_keys(&config.auth.api_keys);
            Ok(())
        });
    }
    if let Some(certificate) = server.certificate() {
        files.follow(certificate, &mut reloader, background.clone());
    }
    let reloading = tokio::spawn(reloader.run(background.clone()));
    server.serve(stop).await;
    background.cancel();
    reloading.await?;
    Ok(())
}
