//! Serves the conformance fixture over Streamable HTTP, on a plain `rmcp` server.
//!
//! `cargo run -p gatewright-demo --example everything_http -- 127.0.0.1:8001`

use std::sync::Arc;

use gatewright_demo::Everything;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8001".to_owned());
    let listener = tokio::net::TcpListener::bind(&address).await?;
    let local = format!("http://{}", listener.local_addr()?);
    let port = listener.local_addr()?.port();
    let config = StreamableHttpServerConfig::default().with_allowed_origins([
        local.clone(),
        format!("http://localhost:{port}"),
        "http://localhost".to_owned(),
    ]);
    let everything = Everything::new();
    let service = StreamableHttpService::new(
        move || Ok(everything.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    println!("{local}/mcp");
    axum::serve(listener, axum::Router::new().route_service("/mcp", service)).await?;
    Ok(())
}
