//! A server that listens: accepts connections, serves them, and lets them end.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::body::Body;
use futures::future::BoxFuture;
use gatewright_core::Gateway;
use http::{Request, Response};
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

use crate::{
    connections::Places,
    ctrl_c::until_ctrl_c,
    dispatcher::Dispatcher,
    http_metrics::Occupancy,
    idle::{IdleTimer, Times},
    relay::{Relay, Running},
    sse::SseEndpoint,
    tls::Certificate,
};

/// Bytes that a connection collects to be written, and may have read of a head before it reads on: a head has less than twice as many.
const MOST_BUFFERED: usize = 32 * 1024;

/// A server that listens.
pub struct Bound {
    pub(crate) listener: TcpListener,
    pub(crate) certificate: Option<Certificate>,
    pub(crate) places: Arc<Places>,
    pub(crate) address: SocketAddr,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) relay: Option<(Running, Arc<Relay>)>,
    pub(crate) sse: Option<Arc<SseEndpoint>>,
    pub(crate) stopping: CancellationToken,
    pub(crate) end: CancellationToken,
    pub(crate) times: Times,
    pub(crate) drain_timeout: Duration,
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
    pub fn answer(&self, request: Request<Body>, peer: SocketAddr) -> BoxFuture<'_, Response<Body>> {
        Box::pin(async move {
            let answer = self.dispatcher.clone().answer(request, peer, false).await;
            answer.unwrap_or_else(|never| match never {}).map(Body::new)
        })
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
    pub fn serve(self, shutdown: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let mut http = http1::Builder::new();
            // Bodies are not copied on their way to the socket: what keeps a request's place is dropped when they are written.
            http.header_read_timeout(self.times.longest()).writev(true).max_buf_size(MOST_BUFFERED);
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
        })
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
        let pace = timer.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (is_at_once, dispatcher) = (!pace.was_waited_for(), dispatcher.clone());
            Box::pin(async move {
                // A client may send its next requests at once: between two of them all others get their turn.
                if is_at_once {
                    tokio::task::yield_now().await;
                }
                dispatcher.answer(request.map(Body::new), peer, encrypted).await
            })
        });
        match end.watch(http.timer(timer).serve_connection(socket, service)).await {
            Err(error) if error.is_timeout() => tracing::trace!("a connection was not used in time"),
            Err(error) => tracing::debug!(%error, "a connection broke"),
            Ok(()) => {}
        }
    }
}
