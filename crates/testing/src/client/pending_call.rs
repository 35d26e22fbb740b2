//! A tool call that was sent and has no response yet.

use std::sync::Arc;

use serde_json::Value;
use tokio::task::AbortHandle;

use super::{
    connection::Connection, engine::Engine, pending_requests::PendingResponse, recorder::Mark, trace::Timer,
};
use crate::{
    base::lock,
    protocol::{ClientError, RpcRequest, ToolResult},
};

/// A tool call that was sent and has no response yet, for tests of cancellation and of events during a call. Returned by
/// [`ToolCall::begin`](super::ToolCall::begin). Dropping it leaves the call running; its response is then ignored.
#[must_use = "await its `result` or `cancel` it"]
pub struct PendingCall {
    pub(super) engine: Arc<Engine>,
    pub(super) connection: Arc<Connection>,
    pub(super) request: RpcRequest,
    pub(super) response: PendingResponse,
    /// The task that sends it over HTTP.
    pub(super) sending: Option<AbortHandle>,
    pub(super) timer: Timer,
    /// The moment of the request.
    pub(super) mark: Mark,
}

impl std::fmt::Debug for PendingCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingCall").field("request", &self.request).finish_non_exhaustive()
    }
}

impl PendingCall {
    /// The id of the request.
    pub fn id(&self) -> &Value {
        &self.request.id
    }

    /// Cancels the call with `notifications/cancelled`, or by closing its stream if it has its own (2026-07-28 over HTTP). Does
    /// not wait for a response.
    pub async fn cancel(self) {
        if self.engine.is_stateless() && self.connection.transport.is_http() {
            if let Some(sending) = &self.sending {
                sending.abort();
            }
            self.connection.transport.cancel(&self.request.id);
        } else {
            self.connection.cancel(&self.request.id).await;
        }
    }

    /// Waits for the response, within the timeout of the client. If the tool or the call fails, the outcome is not an `Err`, as
    /// with [`Tools::call`](super::Tools::call).
    ///
    /// # Errors
    /// There is no response.
    pub async fn result(self) -> Result<ToolResult, ClientError> {
        let timeout = *lock(&self.engine.timeout);
        let response = match tokio::time::timeout(timeout, self.response).await {
            Ok(response) => response,
            Err(_) => {
                self.connection.cancel(&self.request.id).await;
                let method = self.request.method.clone();
                Err(ClientError::TimedOut { method, after: timeout, hint: String::new() })
            }
        };
        let token = self.request.params["_meta"]["progressToken"].clone();
        let entry = self.timer.trace(self.request.clone(), &response, false);
        let duration_ms = entry.duration_ms;
        self.engine.trace.push(entry);
        let response = response?;
        self.engine.check(&self.request, &response).await?;
        let outcome = match response.into_result("tools/call") {
            Ok(result) => Ok(result),
            Err(ClientError::Rpc { error, .. }) => Err(error),
            Err(error) => return Err(error),
        };
        let received = self.engine.recorder.since(self.mark);
        Ok(ToolResult::new(outcome).observed(duration_ms, received, &token))
    }
}
