//! Settings of a client.

use std::time::Duration;

use serde_json::Value;

use crate::shapes::Strict;

pub(super) struct Settings {
    pub(super) version: String,
    pub(super) capabilities: Value,
    pub(super) client_info: Value,
    pub(super) timeout: Duration,
    /// The rules for messages of the server.
    pub(super) strict: Strict,
    /// Violations are kept, and no call fails with them.
    pub(super) observe: bool,
    /// The name of the transport, for errors.
    pub(super) transport: &'static str,
    pub(super) startup: Option<Startup>,
}

/// The start of a server that runs for one connection.
pub(crate) struct Startup {
    /// Timeout of the first response. Default: that of every other response.
    pub(crate) timeout: Option<Duration>,
    /// The command and its output, for the error after a timeout.
    pub(crate) details: Box<dyn Fn() -> String + Send + Sync>,
}
