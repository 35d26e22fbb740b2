//! One client on standard input and output.

use std::sync::Arc;

use futures::future::BoxFuture;
use gatewright_core::{Gateway, Principal};
use rmcp::{ServiceExt, service::ServerInitializeError, transport::stdio_pipes};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::{LineTransport, ServeError};

/// Serves one client on standard input and output until the input ends or `shutdown` is cancelled.
///
/// Whoever starts this process is its caller: [`Principal::local`], who may do everything.
///
/// Nothing else may write to standard output meanwhile. A line that is not JSON is answered with -32700 and the next one
/// is read.
///
/// # Errors
/// The connection broke before the client introduced itself.
pub async fn serve_stdio(gateway: Arc<Gateway>, shutdown: CancellationToken) -> Result<(), ServeError> {
    serve_stdio_as(gateway, Principal::local(), shutdown).await
}

/// The same for `principal`, such as one at an endpoint.
///
/// # Errors
/// As [`serve_stdio`].
pub async fn serve_stdio_as(
    gateway: Arc<Gateway>,
    principal: Principal,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let (reader, writer) = stdio_pipes();
    serve(gateway, principal, reader, writer, shutdown).await
}

/// Serves one client on any byte stream, one JSON message per line.
///
/// # Errors
/// As [`serve_stdio`].
pub fn serve_lines(
    gateway: Arc<Gateway>,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), ServeError>> {
    Box::pin(async move { serve(gateway, Principal::local(), reader, writer, shutdown).await })
}

async fn serve(
    gateway: Arc<Gateway>,
    principal: Principal,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let stop = shutdown.child_token();
    let transport = LineTransport::new(reader, writer);
    match gateway.session_of(principal).serve_with_ct(transport, stop).await {
        Ok(running) => {
            let _ = running.waiting().await;
            Ok(())
        }
        Err(ServerInitializeError::Cancelled | ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(ServeError::Stdio(std::io::Error::other(error))),
    }
}
