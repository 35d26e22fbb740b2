//! Connections: accepting them until a token is cancelled, and a client that ignores proxies.

#[cfg(any(feature = "oauth", feature = "http-mock"))]
use tokio::net::{TcpListener, TcpStream};
#[cfg(any(feature = "oauth", feature = "http-mock"))]
use tokio_util::sync::CancellationToken;

/// Runs `serve` for each connection in a task of its own. Cancelling `stop` ends the listener and all connections.
#[cfg(any(feature = "oauth", feature = "http-mock"))]
pub(crate) fn accept<F>(
    listener: TcpListener,
    stop: CancellationToken,
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
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
            let (serving, stop) = (serve(stream), stop.clone());
            tokio::spawn(async move {
                tokio::select! { () = serving => {}, () = stop.cancelled() => {} }
            });
        }
    });
}

/// An HTTP client that connects directly to `url` and ignores the proxies set in the environment.
pub(crate) fn direct_client(url: &str) -> reqwest::Result<reqwest::Client> {
    let mut client = reqwest::Client::builder().no_proxy();
    if url.starts_with("http://") {
        // Reading the system's root certificates takes tens of milliseconds, and plain HTTP needs none.
        client = client.tls_certs_only([]);
    }
    client.build()
}

/// The innermost cause of a failed request: the outer errors only say that something failed.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}
