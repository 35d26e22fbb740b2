//! One process of a stdio server for several clients.

use std::sync::Arc;

use super::{
    running::Server,
    state::{Hosting, ServerState},
    stdio,
};
use crate::{
    base::lock,
    client::{McpBuilder, SharedConnection},
};

impl Server {
    /// Builds a client that shares the process of a stdio server with all clients from here. Other servers are shared anyway.
    pub(crate) fn shared_client(&self) -> McpBuilder {
        match self.state.hosting {
            Hosting::Stdio => {
                let connector = connection(&self.state).connector();
                let client = McpBuilder::with_connector("stdio", connector).startup(self.startup());
                client.strict(self.state.options.strict.clone())
            }
            Hosting::Process | Hosting::Leased | Hosting::External | Hosting::InMemory(_) => self.client(),
        }
    }

    /// Returns true if clients of [`Server::shared_client`] need no new process.
    pub(crate) async fn is_shared_open(&self) -> bool {
        match self.state.hosting {
            Hosting::Stdio => connection(&self.state).is_open().await,
            Hosting::Process | Hosting::Leased | Hosting::External | Hosting::InMemory(_) => true,
        }
    }

    /// Ends the process that clients share.
    pub(super) async fn stop_shared(&self) {
        let shared = lock(&self.state.shared).take();
        if let Some(shared) = shared {
            shared.close().await;
        }
    }
}

fn connection(state: &Arc<ServerState>) -> Arc<SharedConnection> {
    let open = || SharedConnection::new(stdio::connector(Arc::downgrade(state)));
    lock(&state.shared).get_or_insert_with(open).clone()
}
