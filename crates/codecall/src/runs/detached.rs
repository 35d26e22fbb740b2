//! Runs without a client: they go on when it leaves, and on another instance when theirs is gone.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use gatewright_core::{
    Caller, Principal, memory_transport,
    rmcp::{
        ErrorData, RoleServer, ServerHandler, ServiceExt as _,
        model::{CallToolResult, NumberOrString},
        service::{RequestContext, RoleClient, RunningService},
    },
};
use gatewright_executions::{ExecutionId, Reader};
use serde_json::json;
use tokio::sync::OnceCell;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::flow::{Refusal, Run, of_execution};
use crate::{CodeCall, reply::answer};

/// Runs in the background.
#[derive(Debug, Default)]
pub(crate) struct Background {
    code_call: std::sync::OnceLock<Weak<CodeCall>>,
    tasks: TaskTracker,
    stop: CancellationToken,
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

impl CodeCall {
    /// Allows runs in the background from now on, and goes on with those whose instance is gone. Must be called within a Tokio runtime, once.
    pub fn run_in_background(self: &Arc<Self>) {
        if self.background.code_call.set(Arc::downgrade(self)).is_err() {
            return;
        }
        let (this, stop) = (Arc::downgrade(self), self.background.stop.clone());
        let pause = self.executions.config().lease / 2;
        self.background.tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = stop.cancelled() => return,
                }
                let Some(code_call) = this.upgrade() else { return };
                code_call.take_over().await;
            }
        });
    }

    /// Returns `true` if runs in the background are allowed.
    pub(crate) fn runs_in_background(&self) -> bool {
        self.background.code_call.get().is_some()
    }

    /// Goes on with runs whose instance is gone.
    async fn take_over(self: &Arc<Self>) {
        let Ok(abandoned) = self.executions.abandoned().await else { return };
        for id in abandoned {
            // Another instance may have been faster.
            let Ok((lease, execution)) = self.executions.acquire(&id.to_string(), Reader::Operator).await
            else {
                continue;
            };
            let owner = execution.head.owner.clone();
            match Run::resume(self, lease, &execution) {
                Some(run) => {
                    tracing::info!(execution.id = %id, "going on with an execution whose instance is gone");
                    self.spawn(run, Caller::new(owner)).await;
                }
                None => tracing::warn!(execution.id = %id, "the journal of an execution cannot be read"),
            }
        }
    }

    /// Runs in the background from here on, and says so.
    pub(crate) async fn detach(&self, run: Run, caller: &Caller) -> Result<CallToolResult, Refusal> {
        let this = self.background.code_call.get().and_then(Weak::upgrade);
        let this =
            this.ok_or_else(|| Refusal::new("NOT_AVAILABLE", "this server has no runs in the background"))?;
        let id = run.id();
        run.persist().await?;
        this.spawn(run, caller.clone()).await;
        Ok(running(id))
    }

    async fn spawn(self: &Arc<Self>, run: Run, caller: Caller) {
        let Ok(context) = self.nobodys_context(caller.principal()).await else { return };
        let (this, stop) = (self.clone(), self.background.stop.clone());
        let caller = Caller::new(caller.principal().clone());
        self.background.tasks.spawn(async move {
            let driving = this.drive(run, caller, context);
            tokio::select! {
                _ = driving => {}
                // Its lease runs out, and another instance goes on; or this one, when it is back.
                () = stop.cancelled() => {}
            }
        });
    }

    /// The context of a request that nobody waits for.
    async fn nobodys_context(
        &self,
        principal: &Arc<Principal>,
    ) -> Result<RequestContext<RoleServer>, ErrorData> {
        let nobody = self.background.nobody.get_or_try_init(connect).await?;
        let mut context = RequestContext::new(NumberOrString::Number(0), nobody.server.peer().clone());
        context.extensions.insert((**principal).clone());
        Ok(context)
    }

    /// Stops the runs in the background where they are.
    pub(crate) async fn close_background(&self) {
        self.background.stop.cancel();
        self.background.tasks.close();
        let _ = tokio::time::timeout(LAST, self.background.tasks.wait()).await;
    }
}

/// Longest time that runs in the background are waited for when the gateway stops.
const LAST: Duration = Duration::from_secs(2);

async fn connect() -> Result<Nobody, ErrorData> {
    let (client_end, server_end) = memory_transport();
    let (server, client) = tokio::join!(Silent.serve(server_end), ().serve(client_end));
    let broken = |why: String| ErrorData::internal_error(why, None);
    Ok(Nobody {
        server: server.map_err(|error| broken(error.to_string()))?,
        _client: client.map_err(|error| broken(error.to_string()))?,
    })
}

/// The answer about a run that is under way.
pub(crate) fn running(id: ExecutionId) -> CallToolResult {
    let hint = format!("codecall:execute {{\"resume\": \"{id}\"}} gives the result once it is there");
    of_execution(answer(json!({"status": "running", "executionId": id.to_string(), "hint": hint})), id)
}
