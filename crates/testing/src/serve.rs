//! Serving routes on a listener until told to stop.

use axum::Router;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

pub(crate) fn serve(listener: TcpListener, routes: Router, stop: CancellationToken) {
    accept(listener, routes, None, stop);
}

pub(crate) fn serve_tls(listener: TcpListener, routes: Router, tls: TlsAcceptor, stop: CancellationToken) {
    accept(listener, routes, Some(tls), stop);
}

fn accept(listener: TcpListener, routes: Router, tls: Option<TlsAcceptor>, stop: CancellationToken) {
    tokio::spawn(async move {
        loop {
            let stream = tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(_) => continue,
                },
                () = stop.cancelled() => return,
            };
            let _ = stream.set_nodelay(true);
            let (routes, tls, stop) = (routes.clone(), tls.clone(), stop.clone());
            tokio::spawn(async move {
                let serving = async {
                    match tls {
                        None => connection(stream, routes).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                connection(stream, routes).await;
                            }
                        }
                    }
                };
                tokio::select! { () = serving => {}, () = stop.cancelled() => {} }
            });
        }
    });
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, routes: Router) {
    let service = TowerToHyperService::new(routes);
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
