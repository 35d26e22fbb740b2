//! An open connection to a server.

use std::sync::Arc;

use gatewright_core::{DownReason, Era};
use rmcp::{
    RoleClient,
    model::{ClientCapabilities, RequestMetaObject, ServerCapabilities, TASKS_EXTENSION_ID},
    service::{Peer, PeerRequestOptions},
};
use tokio::sync::watch;

use crate::{open_calls::OpenCalls, sessions::Sessions, task_tools::TaskTools};

/// A connection as calls use it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) capabilities: ServerCapabilities,
    /// The era that the server speaks.
    pub(crate) era: Era,
    pub(crate) calls: Arc<OpenCalls>,
    pub(crate) task_tools: Arc<TaskTools>,
    pub(crate) sessions: Sessions,
    /// Why the connection ended, once it has.
    pub(crate) ended: watch::Receiver<Option<DownReason>>,
}

impl Connection {
    /// Options of requests of the gateway itself about a task: the newer era declares capabilities with each request.
    pub(crate) fn task_options(&self) -> PeerRequestOptions {
        let options = PeerRequestOptions::no_options();
        if !self.era.is_stateless() {
            return options;
        }
        let mut meta = RequestMetaObject::default();
        meta.set_client_capabilities(with_tasks(ClientCapabilities::default()));
        options.with_meta(meta)
    }
}

/// The capabilities of a caller on whose behalf the gateway follows tasks.
pub(crate) fn with_tasks(mut capabilities: ClientCapabilities) -> ClientCapabilities {
    capabilities.extensions.get_or_insert_default().entry(TASKS_EXTENSION_ID.to_owned()).or_default();
    capabilities
}
