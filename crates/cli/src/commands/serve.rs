//! `gatewright serve`.

use std::{net::SocketAddr, process::ExitCode, sync::Arc};

use anyhow::Context as _;
use gatewright::{
    Observer, Running, serve_stdio,
    server::{Bound, ServeError, ServerBuilder},
};
use gatewright_auth::Metrics as AuthMetrics;
use gatewright_operator::limits::Limits;
use tokio::net::TcpListener;

use crate::{
    args::ServeArgs,
    assemble::{self, AppStarter, Attached},
    audit::{self, Audit},
    auth,
    config::Config,
    exit::BadConfig,
    instances, limits, logging,
    operate::{self, Counted, Watching},
    reload::{self, CertificateFiles, Loaded, Reloader},
    user_tokens::UserTokens,
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
    let (watching, limits) = (Watching::of(&config)?, limits::open(&config).await?);
    limits::tell_idle(&config);
    let audit = audit::open(&config)?;
    let mut observers: Vec<Arc<dyn Observer>> = watching.iter().flat_map(Watching::observers).collect();
    observers.extend(audit.clone().map(|audit| audit as Arc<dyn Observer>));
    let sending = operate::traces(&config)?.map(|(traces, sending)| {
        observers.push(Arc::new(traces));
        sending
    });
    let attached = Attached { observers, limits: Some(limits.clone()) };
    let running = assemble::start_with(&config, &starter, attached).await?;
    let tokens = starter.tokens.clone();
    let mut reloader = loaded.follow(&running, starter);
    logging::apply(&config.logging);
    reloader.live(vec!["logging"], |config| {
        logging::apply(&config.logging);
        Ok(())
    });
    let counted = limits.clone();
    reloader.live(vec!["rateLimits"], move |config| {
        limits::tell_idle(config);
        counted.replace(config.rate_limits.clone());
        Ok(())
    });
    if let Some(audit) = audit.clone() {
        reloader.on_hangup(move || audit.follow());
    }
    let served = if args.stdio {
        let following = stop.child_token();
        if let Some(watching) = watching {
            let counted = Counted { http: None, auth: None, limits, config: reloader.status() };
            watching.serve(&running, counted, following.clone()).await?;
        }
        let reloading = tokio::spawn(reloader.run(following.clone()));
        let served = serve_stdio(running.gateway().clone(), stop).await.map_err(anyhow::Error::from);
        following.cancel();
        reloading.await?;
        served
    } else {
        serve_http(&running, &config, Extras { watching, tokens, audit, limits, reloader }, stop).await
    };
    running.stop().await;
    if let Some(sending) = sending {
        operate::finish(sending).await;
    }
    served?;
    Ok(ExitCode::SUCCESS)
}

/// Listens, with whatever guards the door; gives the counts of who guards it.
pub async fn listen(
    running: &Running,
    server: ServerBuilder,
    config: &Config,
    tokens: &UserTokens,
    audit: Option<Arc<Audit>>,
) -> anyhow::Result<(Bound, Option<Arc<AuthMetrics>>)> {
    let address = SocketAddr::new(config.http.host, config.http.port);
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}; choose another `http.port` or `http.host`"))?;
    let guard = auth::open(config, listener.local_addr()?, audit).await?;
    let (mut server, mut metrics) = (server.listener(listener), None);
    if let Some(guard) = guard {
        if let Some(issuer) = &guard.server {
            auth::tell_tools(issuer, running.gateway().clone());
        }
        if let Some(vault) = &guard.vault {
            tokens.open(vault).map_err(anyhow::Error::msg)?;
        }
        server = server.authenticator(guard.authenticator).merge(guard.routes);
        metrics = Some(guard.metrics);
    }
    Ok((server.bind().await.map_err(told)?, metrics))
}

/// A bad certificate is the configuration's fault.
fn told(error: ServeError) -> anyhow::Error {
    match error {
        ServeError::Config(wrong) => BadConfig(wrong.to_string()).into(),
        other => other.into(),
    }
}

/// What runs beside the server.
struct Extras {
    watching: Option<Watching>,
    tokens: UserTokens,
    audit: Option<Arc<Audit>>,
    limits: Arc<Limits>,
    reloader: Reloader,
}

async fn serve_http(
    running: &Running,
    config: &Config,
    extras: Extras,
    stop: tokio_util::sync::CancellationToken,
) -> anyhow::Result<()> {
    let Extras { watching, tokens, audit, limits, mut reloader } = extras;
    let mut server = running.http(config.http.clone());
    if let Some(watching) = &watching {
        server = watching.hear(server);
    }
    if let Some(channel) = instances::channel(config).await? {
        server = server.peers(channel);
    }
    let server = server.ready_detail("config", reload::public_status(reloader.status()));
    let files = CertificateFiles::note(config.http.tls.as_ref(), reloader.watches_files());
    let (bound, auth) = listen(running, server, config, &tokens, audit).await?;
    let address = bound.local_addr();
    let origin = config.http.origin_at(address);
    tracing::info!(%address, path = %config.http.path, apps = config.apps.len(), "serving MCP on {origin}{}", config.http.path);
    let following = stop.child_token();
    if let Some(certificate) = bound.certificate() {
        files.follow(certificate, &mut reloader, following.clone());
    }
    if let Some(watching) = watching {
        let counted = Counted { http: Some(bound.occupancy()), auth, limits, config: reloader.status() };
        watching.serve(running, counted, following.clone()).await?;
    }
    let reloading = tokio::spawn(reloader.run(following.clone()));
    bound.serve(stop).await;
    following.cancel();
    reloading.await?;
    Ok(())
}
