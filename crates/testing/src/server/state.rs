//! State of a server, shared by its clones.

use std::sync::{Arc, Mutex};

use super::{
    builder::ServerBuilder,
    leased::leased_process::LeasedProcess,
    log_ring::LogRing,
    process::{LastExit, Process},
};
#[cfg(feature = "suites")]
use crate::client::SharedConnection;
use crate::client::{Connector, Mcp};

/// Address and process of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct ServerInfo {
    /// The base URL, such as `http://127.0.0.1:40123`; empty for stdio and in-memory servers.
    pub base_url: String,
    /// The port; 0 for stdio and in-memory servers.
    pub port: u16,
    /// The process id; 0 if the test did not start a process.
    pub pid: u32,
}

/// The place and process of the server.
pub(super) enum Hosting {
    /// One child process that listens on a port.
    Process,
    /// A child process per client, over standard input and output.
    Stdio,
    /// One process that outlives this one. It listens on a port, or processes use its standard input and output in turns.
    Leased,
    /// A server that is already running.
    External,
    InMemory(Connector),
}

/// State shared by all clones of a [`Server`].
pub(super) struct ServerState {
    pub(super) options: ServerBuilder,
    pub(super) hosting: Hosting,
    pub(super) log: LogRing,
    pub(super) process: tokio::sync::Mutex<Option<Process>>,
    pub(super) info: Mutex<ServerInfo>,
    pub(super) last_exit: LastExit,
    pub(super) clients: Mutex<Vec<Mcp>>,
    /// The process that clients of a stdio server share, if any do.
    #[cfg(feature = "suites")]
    pub(super) shared: Mutex<Option<Arc<SharedConnection>>>,
    /// The lease on a shared server.
    pub(super) leased: Mutex<Option<LeasedProcess>>,
}

impl ServerState {
    pub(super) fn new(options: ServerBuilder, hosting: Hosting) -> Arc<Self> {
        Arc::new(Self {
            options,
            hosting,
            log: LogRing::default(),
            process: tokio::sync::Mutex::new(None),
            info: Mutex::default(),
            last_exit: LastExit::default(),
            clients: Mutex::default(),
            leased: Mutex::default(),
            #[cfg(feature = "suites")]
            shared: Mutex::default(),
        })
    }
}
