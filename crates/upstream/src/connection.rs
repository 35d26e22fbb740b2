//! An open connection to a server.

use std::sync::Arc;

use gatewright_core::Era;
use rmcp::{RoleClient, model::ServerCapabilities, service::Peer};
use tokio::sync::watch;

use crate::open_calls::OpenCalls;

/// A connection as calls use it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) capabilities: ServerCapabilities,
    /// The era that the server speaks.
    pub(crate) era: Era,
    pub(crate) calls: Arc<OpenCalls>,
    /// Why the connection ended, once it has.
    pub(crate) ended: watch::Receiver<Option<Arc<str>>>,
}
