//! A guard in front of a running gateway: over HTTP, with the endpoints of the authorization server, or over stdio.

use std::{net::SocketAddr, sync::Arc};

use futures::future::BoxFuture;
use gatewright_auth::{ApprovalPages, AuthorizationServer, QuestionPages, ResourceServer};
use gatewright_core::{Authenticator, Principal};
use gatewright_server::{Bound, Certificate, listen, serve_stdio_as, until_ctrl_c};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Guard, GuardError,
    admin::{AdminServer, ConsoleSources, MetricSources},
    auth::{self, AuthLayer},
    cluster, records,
};
use crate::Running;

/// A server that listens for clients and operators. Connections of clients wait until [`GuardedServer::serve`].
pub struct GuardedServer {
    bound: Bound,
    admin: Option<AdminServer>,
    issuer: Option<AuthorizationServer>,
    resource: Option<ResourceServer>,
    /// Stops the admin listener.
    background: DropGuard,
}

impl std::fmt::Debug for GuardedServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuardedServer").field("address", &self.local_addr()).finish_non_exhaustive()
    }
}

impl Guard {
    /// Listens for clients in front of `running`, with the endpoints of the authorization server, and for operators.
    ///
    /// # Errors
    /// An address is taken, or the configuration, a store or the certificate cannot be used.
    pub fn bind(self, running: &Running) -> BoxFuture<'_, Result<GuardedServer, GuardError>> {
        Box::pin(async move {
            records::share_shapes(&self.config, running).await;
            records::share_usage(&self.config, running).await;
            let mut server = running.http(self.config.http.clone()).merge(self.routes);
            if let Some(admin) = &self.admin {
                server = admin.count_responses(server);
            }
            if let Some(channel) = cluster::channel(&self.config).await? {
                server = server.peers(channel);
            }
            for (key, value) in self.ready {
                server = server.ready_detail(key, value);
            }
            let address = SocketAddr::new(self.config.http.host, self.config.http.port);
            let listener = listen(address).map_err(|source| GuardError::Listen { address, source })?;
            let address = listener.local_addr().map_err(|source| GuardError::Listen { address, source })?;
            server = server.listener(listener);
            let (mut counts, mut issuer, mut resource) = (None, None, None);
            let mut owners: Option<Arc<dyn Authenticator>> = None;
            let endpoints = running.gateway().registry().endpoints().clone();
            if let Some(layer) = auth::open(&self.config, address, endpoints, self.audit).await? {
                let AuthLayer { authenticator, routes, metrics, issuer: opened } = layer;
                if let Some((opened, vault)) = opened {
                    auth::show_tools_on_consent_page(&opened, running.gateway().clone());
                    self.user_tokens.open(&vault).map_err(GuardError::UserTokens)?;
                    let approvals = running.gateway().invoker().approvals().clone();
                    let pages = ApprovalPages::new(&opened, approvals.clone());
                    approvals.decided_at(pages.address());
                    server = server.merge(pages.router());
                    if let Some(code_call) = running.code_call()
                        && let Some(pages) = QuestionPages::new(&opened, code_call.clone())
                    {
                        code_call.answered_at(pages.address());
                        server = server.merge(pages.router());
                    }
                    issuer = Some(opened);
                }
                let shared: Arc<dyn Authenticator> = Arc::new(authenticator.clone());
                running.gateway().invoker().approvals().callers_of(&shared);
                running.gateway().registry().callers_of(&shared);
                server = server.authenticator(shared.clone()).merge(routes);
                owners = Some(shared);
                resource = Some(authenticator);
                counts = Some(metrics);
            }
            let bound = server.bind().await?;
            run_in_background(running, owners.as_ref());
            let background = CancellationToken::new();
            let mut admin_server = None;
            if let Some(admin) = self.admin {
                let http = Some(bound.occupancy());
                let sources = MetricSources { http, auth: counts, limits: self.limits, more: self.metrics };
                let shared = records::console(&self.config, address).await;
                let shown = ConsoleSources { configuration: self.configuration, shared };
                admin_server = Some(admin.serve(running, sources, shown, background.clone()).await?);
            }
            Ok(GuardedServer {
                bound,
                admin: admin_server,
                issuer,
                resource,
                background: background.drop_guard(),
            })
        })
    }

    /// Serves one client on standard input and output, without authentication, and operators, until the client leaves or `stop`: at `endpoint`, or at
    /// the main one.
    ///
    /// # Errors
    /// The address for operators is taken, or the client does not speak MCP.
    pub fn serve_stdio<'a>(
        self,
        running: &'a Running,
        endpoint: Option<&'a str>,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Result<(), GuardError>> {
        Box::pin(async move {
            records::share_shapes(&self.config, running).await;
            records::share_usage(&self.config, running).await;
            run_in_background(running, None);
            let background = stop.child_token();
            let _stopped = background.clone().drop_guard();
            if let Some(admin) = self.admin {
                let sources =
                    MetricSources { http: None, auth: None, limits: self.limits, more: self.metrics };
                let shown = ConsoleSources { configuration: self.configuration, shared: None };
                admin.serve(running, sources, shown, background).await?.log();
            }
            let caller = Principal::local().at(endpoint.map(Into::into));
            Ok(serve_stdio_as(running.gateway().clone(), caller, stop).await?)
        })
    }
}

/// Begins the runs in the background, as far as `owners` lets those go on who began them.
fn run_in_background(running: &Running, owners: Option<&Arc<dyn Authenticator>>) {
    if let Some(code_call) = running.code_call() {
        code_call.run_in_background(owners);
    }
}

impl GuardedServer {
    /// The address that clients connect to, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.bound.local_addr()
    }

    /// The address of the listener for operators, where there is one.
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|admin| admin.address)
    }

    /// The certificate, where the server speaks HTTPS; it can be replaced while the server runs.
    pub fn certificate(&self) -> Option<Certificate> {
        self.bound.certificate()
    }

    /// The built-in authorization server, where there is one.
    pub fn authorization_server(&self) -> Option<&AuthorizationServer> {
        self.issuer.as_ref()
    }

    /// The check of callers, where there is authentication. Its API keys can be replaced while the server runs.
    pub fn resource_server(&self) -> Option<&ResourceServer> {
        self.resource.as_ref()
    }

    /// Serves until SIGINT (Ctrl-C) or SIGTERM, then lets requests under way finish. A second signal cuts them off.
    ///
    /// # Errors
    /// A signal cannot be listened for; nothing was served then.
    pub async fn run_until_ctrl_c(self) -> std::io::Result<()> {
        until_ctrl_c(|stop| self.serve(stop)).await
    }

    /// Serves until `stop`, then lets requests under way finish within `http.drainTimeout`.
    pub fn serve(self, stop: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Self { bound, admin, background, .. } = self;
            if let Some(admin) = admin {
                admin.log();
            }
            let end_background = async {
                stop.cancelled().await;
                drop(background);
            };
            tokio::join!(bound.serve(stop.clone()), end_background);
        })
    }
}
