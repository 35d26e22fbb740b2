//! `gatewright serve`.

use std::{process::ExitCode, sync::Arc};

use gatewright::{Observer, Running, serve_stdio};
use gatewright_operator::limits::Limits;
use tokio_util::sync::CancellationToken;

use crate::{
    args::ServeArgs,
    config::Config,
    logging,
    reload::{self, CertificateFiles, Loaded, Reloader},
    signals::stop_signal,
    wire::{
        admin::{AdminListener, MetricSources},
        apps::AppStarter,
        audit::{self, Audit},
        cluster,
        gateway::{self, Extensions},
        http, limits, shapes, traces,
        user_tokens::UserTokens,
    },
};

/// Serves until it is stopped, and applies changes of its configuration meanwhile.
pub async fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let own_files = args.config.config.iter().chain(&args.config.mcp_config).cloned().collect();
    let mut loaded = Loaded::read(args.config, !args.no_watch)?;
    let http = &mut loaded.config.http;
    http.host = args.host.unwrap_or(http.host);
    http.port = args.port.unwrap_or(http.port);
    let config = loaded.config.clone();
    let stop = stop_signal()?;
    let starter = AppStarter::new();
    let (admin, limits) = (AdminListener::of(&config)?, limits::open(&config).await?);
    limits::warn_unused(&config);
    let audit = audit::open(&config)?;
    let mut observers: Vec<Arc<dyn Observer>> = admin.iter().flat_map(AdminListener::observers).collect();
    observers.extend(audit.clone().map(|audit| audit as Arc<dyn Observer>));
    let sending = traces::start(&config)?.map(|(traces, sending)| {
        observers.push(Arc::new(traces));
        sending
    });
    let extensions = Extensions { observers, limits: Some(limits.clone()), own_files };
    let running = gateway::start_with(&config, &starter, extensions).await?;
    shapes::share(&config, &running).await;
    let tokens = starter.tokens.clone();
    let mut reloader = loaded.follow(&running, starter);
    logging::apply(&config.logging);
    apply_changes(&mut reloader, &limits, audit.as_ref());
    let parts = Parts { admin, tokens, audit, limits, reloader };
    let served = match args.stdio {
        true => serve_over_stdio(&running, parts, stop).await,
        false => serve_over_http(&running, &config, parts, stop).await,
    };
    running.stop().await;
    if let Some(sending) = sending {
        traces::finish(sending).await;
    }
    served?;
    Ok(ExitCode::SUCCESS)
}

/// Registers the sections that are applied without a restart.
fn apply_changes(reloader: &mut Reloader, limits: &Arc<Limits>, audit: Option<&Arc<Audit>>) {
    reloader.live(vec!["logging"], |config| {
        logging::apply(&config.logging);
        Ok(())
    });
    let limits = limits.clone();
    reloader.live(vec!["rateLimits"], move |config| {
        limits::warn_unused(config);
        limits.replace(config.rate_limits.clone());
        Ok(())
    });
    if let Some(audit) = audit.cloned() {
        reloader.on_hangup(move || audit.follow());
    }
}

/// Parts of the server that run beside the gateway.
struct Parts {
    admin: Option<AdminListener>,
    tokens: UserTokens,
    audit: Option<Arc<Audit>>,
    limits: Arc<Limits>,
    reloader: Reloader,
}

async fn serve_over_stdio(running: &Running, parts: Parts, stop: CancellationToken) -> anyhow::Result<()> {
    let Parts { admin, limits, reloader, .. } = parts;
    let background = stop.child_token();
    if let Some(admin) = admin {
        let reloads = Box::new(reload::metrics(reloader.status()));
        let sources = MetricSources { http: None, auth: None, limits, reloads };
        admin.serve(running, sources, background.clone()).await?;
    }
    let reloading = tokio::spawn(reloader.run(background.clone()));
    let served = serve_stdio(running.gateway().clone(), stop).await.map_err(anyhow::Error::from);
    background.cancel();
    reloading.await?;
    served
}

async fn serve_over_http(
    running: &Running,
    config: &Config,
    parts: Parts,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let Parts { admin, tokens, audit, limits, mut reloader } = parts;
    let mut server = running.http(config.http.clone());
    if let Some(admin) = &admin {
        server = admin.count_responses(server);
    }
    if let Some(channel) = cluster::channel(config).await? {
        server = server.peers(channel);
    }
    let server = server.ready_detail("config", reload::public_status(reloader.status()));
    let files = CertificateFiles::note(config.http.tls.as_ref(), reloader.watches_files());
    let (bound, auth) = http::listen(running, server, config, &tokens, audit).await?;
    let address = bound.local_addr();
    let origin = config.http.origin_at(address);
    tracing::info!(%address, path = %config.http.path, apps = config.apps.len(), "serving MCP on {origin}{}", config.http.path);
    let background = stop.child_token();
    if let Some(certificate) = bound.certificate() {
        files.follow(certificate, &mut reloader, background.clone());
    }
    if let Some(admin) = admin {
        let reloads = Box::new(reload::metrics(reloader.status()));
        let sources = MetricSources { http: Some(bound.occupancy()), auth, limits, reloads };
        admin.serve(running, sources, background.clone()).await?;
    }
    let reloading = tokio::spawn(reloader.run(background.clone()));
    bound.serve(stop).await;
    background.cancel();
    reloading.await?;
    Ok(())
}
