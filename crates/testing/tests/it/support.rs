//! Servers for the tests.

mod everything;

pub(crate) use everything::Everything;
use gatewright_testing::{Mcp, Server, ServerBuilder, suite::Suite};

/// A client of [`Everything`] in this process.
pub(crate) async fn memory() -> Mcp {
    Mcp::in_memory(Everything).connect().await.unwrap()
}

/// [`Everything`] in its own process.
pub(crate) fn everything() -> ServerBuilder {
    Server::builder("everything_server")
}

/// A file under `tests/servers`.
pub(crate) fn script(name: &str) -> String {
    format!("{}/tests/servers/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A suite for [`Everything`].
pub(crate) fn suite_of_everything(tests: &str) -> Suite {
    let head = "name: everything\nserver: { command: everything_server }";
    Suite::parse("suite.yaml", &format!("{head}\n{tests}")).unwrap()
}

/// Waits for a cassette that is written when the last connection of its proxy ends, and returns its text.
pub(crate) async fn written(cassette: &std::path::Path) -> String {
    let whole = async {
        loop {
            match std::fs::read_to_string(cassette) {
                Ok(text) if text.ends_with('\n') => return text,
                _ => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), whole).await.unwrap()
}
