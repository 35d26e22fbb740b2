//! The server: its routes, its socket, and how it ends.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::ConnectInfo,
    middleware::from_fn,
    routing::{get, post},
};
use gatewright_core::{
    Authenticator, BodyTimeout, CallerAddress, Gateway, InvalidField, Network, caller_address,
    proxied_over_https,
};
use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::TokioIo,
    server::graceful::{GracefulShutdown, Watcher},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::JoinSet,
    time::Instant,
};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::{
    body,
    cluster::{BootId, Cluster},
    config::HttpConfig,
    connections::Places,
    ctrl_c::until_ctrl_c,
    edge::{self, Edge},
    gate::RequestGate,
    guard::Guard,
    health,
    http_metrics::{self, Answered, Occupancy, Route},
    idle::{self, IdleTimer, Times},
    landing::{self, Page},
    mcp::{self, Endpoint, Others},
    refusal,
    relay::{PeerChannel, Relay, Running},
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

impl ServerBuilder {
    /// Asks `authenticator` who sends each MCP request. Without one everybody may do everything.
    #[must_use]
    pub fn authenticator(mut self, authenticator: Arc<dyn Authenticator>) -> Self {
        self.authenticator = Some(authenticator);
        self
    }

    /// Has `/readyz` tell what `value` says each time, under `key`. Everybody may read it.
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
    pub async fn bind(self) -> Result<Bound, ServeError> {
        let problems = self.config.problems();
        if !problems.is_empty() {
            return Err(ServeError::Config(problems));
        }
        let certificate = self.config.tls.as_ref().map(Certificate::open).transpose()?;
        let address = SocketAddr::new(self.config.host, self.config.port);
        let bind_error = |source| ServeError::Bind { address, source };
        let listener = match self.listener {
            Some(listener) => listener,
            None => TcpListener::bind(address).await.map_err(bind_error)?,
        };
        let address = listener.local_addr().map_err(bind_error)?;

        let idle = self.config.connection_idle;
        let others = others(&self.config, self.peers)?;
        let proxies: Arc<[Network]> =
            self.config.trusted_proxies.iter().filter_map(|text| Network::parse(text)).collect();
        let places = Arc::new(Places::new(self.config.max_connections, proxies.to_vec()));
        let stopping = CancellationToken::new();
        let end = CancellationToken::new();
        let guard = Arc::new(Guard::new(&self.config).0);
        let paths = vec![self.config.path.clone(), "/sse".to_owned(), "/messages".to_owned()];
        let has_https_url = self.config.public_url.as_ref().is_some_and(|url| url.scheme() == "https");
        let https_only = has_https_url && self.authenticator.is_some();
        if https_only && certificate.is_none() && proxies.is_empty() {
            tracing::warn!(
                "every request will be refused: `http.publicUrl` is https and this server listens for plain HTTP; set `http.tls`, or name \
                 the proxy that ends TLS in `http.trustedProxies`"
            );
        }
        let edge = Arc::new(Edge { guard: guard.clone(), paths, https_only });
        let gate = Arc::new(RequestGate::new(
            self.gateway.clone(),
            &self.config,
            guard,
            self.authenticator,
            stopping.clone(),
        ));
        let endpoint = Arc::new(Endpoint::new(gate.clone(), &self.config, others.clone(), end.clone()));
        let relay = match others {
            Some(Others { relay, .. }) => Some((relay.start(Arc::downgrade(&endpoint) as _).await, relay)),
            None => None,
        };
        let mut routes = self.extra;
        let sse = self.config.legacy_sse.then(|| {
            let room = endpoint.sessions.room.clone();
            Arc::new(SseEndpoint::new(gate.clone(), room, self.config.keep_alive))
        });
        if let Some(sse) = &sse {
            routes = routes
                .route("/sse", get(sse::open).with_state(sse.clone()))
                .route("/messages", post(sse::say).with_state(sse.clone()));
        }
        if self.config.shows_landing() {
            let (public_url, path) = (self.config.public_url.clone(), self.config.path.clone());
            let origin = self.config.origin_at(address);
            routes = routes.merge(landing::routes(Page { gate: gate.clone(), public_url, origin, path }));
        }
        let endpoint_path = self.config.path.clone();
        let routes = routes
            .route("/healthz", get(health::alive))
            .route(
                "/readyz",
                get(health::ready).with_state(health::Ready { gate, details: self.details.into() }),
            )
            .fallback(async move || refusal::nothing_here(&endpoint_path));
        let routes = match &self.answered {
            Some(_) => routes.layer(from_fn(http_metrics::note_route)),
            None => routes,
        };
        let path = self.config.path.as_str().into();
        let times = Times::new(idle, self.config.header_read_timeout, self.config.write_timeout);
        let keep_alive = KeepAlive { times: times.clone(), stopping: stopping.clone() };
        let dispatcher =
            Dispatcher { edge, path, endpoint, routes, proxies, keep_alive, answered: self.answered };
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
    }
}

/// Sends each request to the endpoint or to the other routes. The endpoint is not one of the router's routes: its way
/// costs several microseconds.
#[derive(Clone)]
struct Dispatcher {
    edge: Arc<Edge>,
    path: Arc<str>,
    endpoint: Arc<Endpoint>,
    routes: Router,
    /// Proxies that are believed about where requests come from.
    proxies: Arc<[Network]>,
    keep_alive: KeepAlive,
    answered: Option<Answered>,
}

/// Timeouts of connections, and the end of all of them.
#[derive(Clone)]
struct KeepAlive {
    times: Times,
    stopping: CancellationToken,
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

impl Dispatcher {
    async fn answer(
        self,
        mut request: Request<Body>,
        peer: SocketAddr,
        encrypted: bool,
    ) -> Result<Response<Body>, Infallible> {
        request.extensions_mut().insert(ConnectInfo(peer));
        let Self { edge, path, endpoint, routes, proxies, keep_alive, answered } = self;
        let method = http_metrics::method(request.method());
        let is_endpoint = request.uri().path() == &*path;
        let is_kept = idle::is_kept(request.version(), request.headers());
        let address = peer.ip().to_canonical();
        let caller = caller_address(address, request.headers(), &proxies);
        request.extensions_mut().insert(CallerAddress(caller));
        let over_https = encrypted || proxied_over_https(address, request.headers(), &proxies);
        let (mut request, unfinished) = body::watched(request);
        let mut response = if is_endpoint {
            edge::pass(&edge, request, over_https, |request| mcp::serve(&endpoint, request)).await
        } else {
            request.extensions_mut().insert(BodyTimeout(endpoint.gate().body_time));
            let other = async |request| routes.oneshot(request).await.unwrap_or_else(|never| match never {});
            edge::pass(&edge, request, over_https, other).await
        };
        if encrypted {
            edge::stay_with_https(&mut response);
        }
        if unfinished.is_left() {
            // The rest of the body would be read as the next request: hyper closes, and says so.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        } else if is_kept && !keep_alive.stopping.is_cancelled() {
            keep_alive.times.say(response.headers_mut());
        }
        if let Some(answered) = answered {
            let route = if is_endpoint { &*path } else { Route::of(response.extensions()) };
            answered(method, route, response.status());
        }
        Ok(response)
    }
}

/// A server that listens.
pub struct Bound {
    listener: TcpListener,
    certificate: Option<Certificate>,
    places: Arc<Places>,
    address: SocketAddr,
    dispatcher: Dispatcher,
    gateway: Arc<Gateway>,
    relay: Option<(Running, Arc<Relay>)>,
    sse: Option<Arc<SseEndpoint>>,
    stopping: CancellationToken,
    end: CancellationToken,
    times: Times,
    drain_timeout: Duration,
}

impl std::fmt::Debug for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bound").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Bound {
    /// The address it listens on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers one request as if it had come from `peer`, without a socket. For tests.
    #[doc(hidden)]
    pub async fn answer(&self, request: Request<Body>, peer: SocketAddr) -> Response<Body> {
        self.dispatcher.clone().answer(request, peer, false).await.unwrap_or_else(|never| match never {})
    }

    /// The server's load, to be read while it serves.
    pub fn occupancy(&self) -> Occupancy {
        Occupancy { endpoint: self.dispatcher.endpoint.clone(), places: self.places.clone() }
    }

    /// The certificate it presents, to be read again when its files change; `None` when it serves plain HTTP.
    pub fn certificate(&self) -> Option<Certificate> {
        self.certificate.clone()
    }

    /// Serves until SIGINT (Ctrl-C) or SIGTERM, then lets open requests end as [`Bound::serve`] does. A second signal cuts them off.
    ///
    /// # Errors
    /// A signal cannot be listened for; nothing was served then.
    pub async fn run_until_ctrl_c(self) -> std::io::Result<()> {
        until_ctrl_c(|stop| self.serve(stop)).await
    }

    /// Serves until `shutdown` is cancelled, then lets open requests end. Streams that only wait for notifications end at
    /// once; what is still open when `drainTimeout` is nearly over is cut off.
    pub async fn serve(self, shutdown: CancellationToken) {
        let mut http = http1::Builder::new();
        // Bodies are not copied on their way to the socket: what keeps a request's place is dropped when they are written.
        http.header_read_timeout(self.times.longest()).writev(true);
        let graceful = GracefulShutdown::new();
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
                () = shutdown.cancelled() => break,
            };
            let (socket, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, most likely: let connections end before the next try.
                    tracing::error!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let Some(place) = self.places.take(peer.ip()) else { continue };
            // Without it answers wait up to 40 ms for a delayed acknowledgement.
            let _ = socket.set_nodelay(true);
            let encrypted = self.certificate.is_some();
            let wire = Wire {
                http: http.clone(),
                dispatcher: self.dispatcher.clone(),
                peer,
                encrypted,
                end: graceful.watcher(),
            };
            match self.certificate.clone() {
                None => connections.spawn(async move {
                    wire.serve(socket).await;
                    drop(place);
                }),
                Some(certificate) => {
                    let (limit, stopping) = (self.times.head(), self.stopping.clone());
                    connections.spawn(async move {
                        let accepted = tokio::time::timeout(limit, certificate.accept(socket));
                        let accepted = stopping.run_until_cancelled(accepted).await;
                        match accepted {
                            Some(Ok(Ok(socket))) => wire.serve(socket).await,
                            Some(Ok(Err(error))) => tracing::debug!(%error, "a TLS handshake failed"),
                            Some(Err(_)) => tracing::trace!("a TLS handshake was not done in time"),
                            None => {}
                        }
                        drop(place);
                    })
                }
            };
        }
        drop(self.listener);

        let started = Instant::now();
        let (open, _) = self.dispatcher.endpoint.gate().open();
        let longest = self.drain_timeout;
        tracing::info!(
            open,
            "shutting down: waiting for {open} open requests, {longest:?} at most (`http.drainTimeout`)"
        );
        self.stopping.cancel();
        self.gateway.stop();
        let spare = (self.drain_timeout / 10).min(Duration::from_millis(500));
        let all = async {
            tokio::join!(graceful.shutdown(), self.gateway.drain());
            if let Some((_, relay)) = &self.relay {
                relay.served.close();
                relay.served.wait().await;
            }
        };
        let drained = tokio::time::timeout_at(started + self.drain_timeout - spare, all).await;
        self.end.cancel();
        self.dispatcher.endpoint.sessions.close_all().await;
        if drained.is_err() {
            tracing::warn!(
                open = connections.len(),
                "requests still open at the end of `http.drainTimeout` are cut off"
            );
            let rest = async { while connections.join_next().await.is_some() {} };
            let _ = tokio::time::timeout_at(started + self.drain_timeout, rest).await;
        }
        connections.shutdown().await;
        let lingering = &self.dispatcher.endpoint.gate().lingering;
        lingering.close();
        let _ = tokio::time::timeout_at(started + self.drain_timeout, lingering.wait()).await;
        if let Some(sse) = &self.sse {
            sse.tasks.close();
            let _ = tokio::time::timeout_at(started + self.drain_timeout, sse.tasks.wait()).await;
        }
    }
}

/// Everything that serves one connection.
struct Wire {
    http: http1::Builder,
    dispatcher: Dispatcher,
    peer: SocketAddr,
    encrypted: bool,
    end: Watcher,
}

impl Wire {
    async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, socket: S) {
        let Self { mut http, dispatcher, peer, encrypted, end } = self;
        let timer = IdleTimer::new(&dispatcher.keep_alive.times);
        let mut socket = TimeoutStream::new(timer.over(socket));
        socket.set_write_timeout(Some(dispatcher.keep_alive.times.write()));
        let socket = TokioIo::new(Box::pin(socket));
        // hyper keeps room for an answer in each connection, also in one that waits: a box is less than the 20 KB of ours.
        let service = service_fn(move |request: Request<Incoming>| {
            Box::pin(dispatcher.clone().answer(request.map(Body::new), peer, encrypted))
        });
        match end.watch(http.timer(timer).serve_connection(socket, service)).await {
            Err(error) if error.is_timeout() => tracing::trace!("a connection was not used in time"),
            Err(error) => tracing::debug!(%error, "a connection broke"),
            Ok(()) => {}
        }
    }
}
