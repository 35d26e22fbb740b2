//! Servers to try the toolkit on.

mod everything;

pub(crate) use everything::Everything;
use gatewright_testing::{Mcp, Server, ServerBuilder};

/// A client of the server with one of everything, in this process.
pub(crate) async fn memory() -> Mcp {
    Mcp::in_memory(Everything).connect().await.unwrap()
}

/// The same server as a process.
pub(crate) fn everything() -> ServerBuilder {
    Server::builder("everything_server")
}

/// A file under `tests/servers`.
pub(crate) fn script(name: &str) -> String {
    format!("{}/tests/servers/{name}", env!("CARGO_MANIFEST_DIR"))
}
