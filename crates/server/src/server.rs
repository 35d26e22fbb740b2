//! Builds the server: its routes and its socket. `bound` serves, `dispatcher` sends requests to their routes.

use std::{io, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    middleware::from_fn,
    routing::{get, post},
};
use futures::future::BoxFuture;
use gatewright_core::{Authenticator, Gateway, InvalidField, Network};
use http::StatusCode;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;

use crate::{
    bound::Bound,
    cluster::{BootId, Cluster},
    config::HttpConfig,
    connections::Places,
    dispatcher::{Dispatcher, KeepAlive},
    edge::Edge,
    gate::RequestGate,
    health,
    homes::Homes,
    host_and_origin::AllowedSources,
    http_metrics::{self, Answered},
    idle::Times,
    landing::{self, Page},
    mcp::{Endpoint, Others},
    paths::{MESSAGES, McpPaths, SSE},
    refusal,
    relay::{PeerChannel, Relay},
    sse::{self, SseEndpoint},
    tls::Certificate,
};

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Fields of the configuration cannot be used.
    #[error("{}", .0.iter().map(|field| format!("http.{field}")).collect::<Vec<_>>().join("; "))]
    Config(Vec<InvalidField>),
    /// The address is taken, or not this machine's.
    #[error("cannot listen on {address}: {source}; choose another `http.port` or `http.host`")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// Standard input or output broke.
    #[error("standard input or output is not usable")]
    Stdio(#[source] std::io::Error),
}

/// An HTTP server in dispatcher of a [`Gateway`].
#[derive(Debug)]
pub struct Server;

impl Server {
    /// A server to be set up further.
    pub fn builder(gateway: Arc<Gateway>, config: HttpConfig) -> ServerBuilder {
        let (extra, details) = (Router::new(), Vec::new());
        ServerBuilder {
            gateway,
            config,
            authenticator: None,
            extra,
            details,
            listener: None,
            answered: None,
            peers: None,
        }
    }
}

/// A server that does not listen yet.
pub struct ServerBuilder {
    gateway: Arc<Gateway>,
    config: HttpConfig,
    authenticator: Option<Arc<dyn Authenticator>>,
    extra: Router,
    details: Vec<health::Detail>,
    listener: Option<TcpListener>,
    answered: Option<Answered>,
    peers: Option<Arc<dyn PeerChannel>>,
}

impl std::fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}

impl From<InvalidField> for ServeError {
    fn from(field: InvalidField) -> Self {
        Self::Config(vec![field])
    }
}

/// Connections that the kernel has taken and that wait to be accepted, at most; `net.core.somaxconn` may be less. Of more, the kernel drops the first packet, and
/// clients try again after a second.
const BACKLOG: u32 = 4096;

/// Listens at `address`, within a Tokio runtime.
///
/// # Errors
/// The address cannot be had.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As the standard library does: a server that was restarted gets its port back at once.
    socket.set_reuseaddr(cfg!(unix))?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

impl ServerBuilder {
    /// Asks `authenticator` who sends each MCP request. Without one everybody may do everything.
    #[must_use]
    pub fn authenticator(mut self, authenticator: Arc<dyn Authenticator>) -> Self {
        self.authenticator = Some(authenticator);
        self
    }

    /// Has `/readyz` tell what `value` says each time, under `key`. Everybody who names an allowed Host may read it.
    #[must_use]
    pub fn ready_detail(
        mut self,
        key: &'static str,
        value: impl Fn() -> serde_json::Value + Send + Sync + 'static,
    ) -> Self {
        self.details.push((key, Arc::new(value)));
        self
    }

    /// Tells `hear` of every answer, once its head is known: the method of HTTP, the pattern of the route, and the status. Methods and
    /// routes that are not the server's own are `_OTHER`, so that all three come from bounded sets.
    #[must_use]
    pub fn answered(mut self, hear: impl Fn(&str, &str, StatusCode) + Send + Sync + 'static) -> Self {
        self.answered = Some(Arc::new(hear));
        self
    }

    /// Serves on a socket that listens already, instead of `http.host` and `http.port`: for a caller that must know the port
    /// before it can say how the server is reached.
    #[must_use]
    pub fn listener(mut self, listener: TcpListener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Reaches the other instances of `http.cluster` through `channel`. Needed where that section is there.
    #[must_use]
    pub fn peers(mut self, channel: Arc<dyn PeerChannel>) -> Self {
        self.peers = Some(channel);
        self
    }

    /// Serves more routes beside the server's own. They get the Host check, not the Origin check and no authentication; the
    /// caller's address is in their `ConnectInfo`.
    ///
    /// # Panics
    /// A route, or a fallback, that the server has itself.
    #[must_use]
    pub fn merge(mut self, routes: Router) -> Self {
        self.extra = self.extra.merge(routes);
        self
    }

    /// Starts to listen; connections wait until [`Bound::serve`].
    ///
    /// # Errors
    /// A field of the configuration is out of its range, or the address cannot be had.
    pub fn bind(self) -> BoxFuture<'static, Result<Bound, ServeError>> {
        Box::pin(async move {
            let problems = self.config.problems();
            if !problems.is_empty() {
                return Err(ServeError::Config(problems));
            }
            let certificate = self.config.tls.as_ref().map(Certificate::open).transpose()?;
            let address = SocketAddr::new(self.config.host, self.config.port);
            let bind_error = |source| ServeError::Bind { address, source };
            let listener = match self.listener {
                Some(listener) => listener,
                None => listen(address).map_err(bind_error)?,
            };
            let address = listener.local_addr().map_err(bind_error)?;

            let idle = self.config.connection_idle;
            let others = others(&self.config, self.peers)?;
            let proxies: Arc<[Network]> =
                self.config.trusted_proxies.iter().filter_map(|text| Network::parse(text)).collect();
            let places = Arc::new(Places::new(self.config.max_connections, proxies.to_vec()));
            let stopping = CancellationToken::new();
            let end = CancellationToken::new();
            let allowed = Arc::new(AllowedSources::new(&self.config).0);
            let endpoints = self.gateway.registry().endpoints().clone();
            let paths = Arc::new(McpPaths::new(&self.config.path, endpoints));
            let has_https_url = self.config.public_url.as_ref().is_some_and(|url| url.scheme() == "https");
            let https_only = has_https_url && self.authenticator.is_some();
            if https_only && certificate.is_none() && proxies.is_empty() {
                tracing::warn!(
                    "every request will be refused: `http.publicUrl` is https and this server listens for plain HTTP; set `http.tls`, or name \
                 the proxy that ends TLS in `http.trustedProxies`"
                );
            }
            let edge = Arc::new(Edge { allowed: allowed.clone(), paths: paths.clone(), https_only });
            let gate = Arc::new(RequestGate::new(
                self.gateway.clone(),
                &self.config,
                allowed,
                self.authenticator,
                stopping.clone(),
            ));
            if let Some(Others { cluster, relay }) = &others {
                self.gateway.invoker().at_home(Arc::new(Homes::new(cluster.clone(), relay)));
            }
            let endpoint = Arc::new(Endpoint::new(gate.clone(), &self.config, others.clone(), end.clone()));
            let relay = match others {
                Some(Others { relay, .. }) => {
                    Some((relay.start(Arc::downgrade(&endpoint) as _).await, relay))
                }
                None => None,
            };
            let mut routes = self.extra;
            let sse = self.config.legacy_sse.then(|| {
                let room = endpoint.sessions.room.clone();
                Arc::new(SseEndpoint::new(gate.clone(), room, self.config.keep_alive, paths.clone()))
            });
            if let Some(sse) = &sse {
                routes = routes
                    .route(SSE, get(sse::open).with_state(sse.clone()))
                    .route(&format!("{SSE}/{{endpoint}}"), get(sse::open).with_state(sse.clone()))
                    .route(MESSAGES, post(sse::say).with_state(sse.clone()))
                    .route(&format!("{MESSAGES}/{{endpoint}}"), post(sse::say).with_state(sse.clone()));
            }
            if self.config.shows_landing() {
                let (public_url, paths) = (self.config.public_url.clone(), paths.clone());
                let origin = self.config.origin_at(address);
                routes =
                    routes.merge(landing::routes(Page { gate: gate.clone(), public_url, origin, paths }));
            }
            let routes = routes
                .route("/healthz", get(health::alive))
                .route(
                    "/readyz",
                    get(health::ready).with_state(health::Ready { gate, details: self.details.into() }),
                )
                .fallback(async move || refusal::nothing_here(paths.main()));
            let routes = match &self.answered {
                Some(_) => routes.layer(from_fn(http_metrics::note_route)),
                None => routes,
            };
            let times = Times::new(idle, self.config.header_read_timeout, self.config.write_timeout);
            let keep_alive = KeepAlive { times: times.clone(), stopping: stopping.clone() };
            let dispatcher =
                Dispatcher { edge, endpoint, routes, proxies, keep_alive, answered: self.answered };
            Ok(Bound {
                listener,
                certificate,
                places,
                address,
                dispatcher,
                gateway: self.gateway,
                relay,
                sse,
                stopping,
                end,
                times,
                drain_timeout: self.config.drain_timeout,
            })
        })
    }
}

/// The other instances, where the configuration says that there are any.
fn others(
    config: &HttpConfig,
    channel: Option<Arc<dyn PeerChannel>>,
) -> Result<Option<Others>, InvalidField> {
    let Some(cluster) = &config.cluster else { return Ok(None) };
    let wrong = |problem: &str| InvalidField::new("cluster", problem);
    let channel = channel.ok_or_else(|| wrong("needs a channel to the other instances"))?;
    let own = BootId::random().map_err(|_| wrong("the system gives no random numbers"))?;
    let relay = Relay::new(&cluster.key, own, channel);
    Ok(Some(Others { cluster: Arc::new(Cluster::new(&cluster.key, own)), relay }))
}
