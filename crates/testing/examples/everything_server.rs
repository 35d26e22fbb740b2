//! The server of this crate's tests: over Streamable HTTP on `PORT`, or over stdio with `--stdio`.
#![expect(
    deprecated,
    reason = "the older era still has logging and sampling, which SEP-2577 marks as deprecated"
)]
#![expect(clippy::disallowed_methods, reason = "a server under test reads its port from the environment")]
#![allow(missing_docs, clippy::unwrap_used, reason = "a server for tests")]

#[path = "../tests/it/support/everything.rs"]
mod everything;

use std::sync::Arc;

use axum::serve::ListenerExt;
use everything::Everything;
use rmcp::{
    ServiceExt,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService, stdio,
        streamable_http_server::session::local::LocalSessionManager,
    },
};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if std::env::args().any(|arg| arg == "--stdio") {
        let running = Everything.serve(stdio()).await.unwrap();
        running.waiting().await.unwrap();
        return;
    }
    let sessions = Arc::new(LocalSessionManager::default());
    let service =
        StreamableHttpService::new(|| Ok(Everything), sessions, StreamableHttpServerConfig::default());
    let port = std::env::var("PORT").unwrap();
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await.unwrap();
    println!("listening on {}", listener.local_addr().unwrap());
    let routes = axum::Router::new().route_service("/mcp", service);
    // Otherwise responses wait up to 40 ms for a delayed acknowledgement.
    let listener = listener.tap_io(|socket| socket.set_nodelay(true).unwrap());
    axum::serve(listener, routes).await.unwrap();
}
