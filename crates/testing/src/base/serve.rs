//! Serves axum routes on a listener until a token is cancelled.

use axum::Router;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::net::accept;

/// Serves `routes`, over TLS if `tls` is given, until `stop` is cancelled.
pub(crate) fn serve(
    listener: TcpListener,
    routes: Router,
    tls: Option<TlsAcceptor>,
    stop: CancellationToken,
) {
    accept(listener, stop, move |stream| {
        let (routes, tls) = (routes.clone(), tls.clone());
        async move {
            match tls {
                None => connection(stream, routes).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        connection(stream, routes).await;
                    }
                }
            }
        }
    });
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, routes: Router) {
    let service = TowerToHyperService::new(routes);
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
