//! Tasks of runs without a client, and the connection that stands for one.

use std::sync::Arc;

use gatewright_core::{
    Principal, memory_transport,
    rmcp::{
        ErrorData, RoleServer, ServerHandler, ServiceExt as _,
        model::NumberOrString,
        service::{RequestContext, RoleClient, RunningService},
    },
};
use tokio::sync::OnceCell;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Runs in the background.
#[derive(Debug, Default)]
pub(crate) struct Background {
    pub(super) tasks: TaskTracker,
    /// Runs make no new calls, and are left to other instances once those under way are answered.
    pub(crate) halt: CancellationToken,
    pub(super) stop: CancellationToken,
    nobody: OnceCell<Nobody>,
}

/// The connection of a client that is not there: it takes messages and answers none.
#[derive(Debug)]
struct Nobody {
    server: RunningService<RoleServer, Silent>,
    _client: RunningService<RoleClient, ()>,
}

#[derive(Debug, Clone, Copy)]
struct Silent;

impl ServerHandler for Silent {}

impl Background {
    /// The context of a request that nobody waits for.
    ///
    /// # Errors
    /// The connection in this process cannot be made.
    pub(super) async fn context(
        &self,
        principal: &Arc<Principal>,
    ) -> Result<RequestContext<RoleServer>, ErrorData> {
        let nobody = self.nobody.get_or_try_init(connect).await?;
        let mut context = RequestContext::new(NumberOrString::Number(0), nobody.server.peer().clone());
        context.extensions.insert((**principal).clone());
        Ok(context)
    }
}

async fn connect() -> Result<Nobody, ErrorData> {
    let (client_end, server_end) = memory_transport();
    let (server, client) = tokio::join!(Silent.serve(server_end), ().serve(client_end));
    let broken = |why: String| ErrorData::internal_error(why, None);
    Ok(Nobody {
        server: server.map_err(|error| broken(error.to_string()))?,
        _client: client.map_err(|error| broken(error.to_string()))?,
    })
}
