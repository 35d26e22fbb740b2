//! A call that was sent and is not answered yet.

use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};

use serde_json::Value;
use tokio::task::AbortHandle;

use super::{
    RequestTrace,
    engine::{Core, result_of},
    link::Link,
    waiting::Told,
};
use crate::{ClientError, mock::RpcRequest, records::ToolResult};

/// A call that was sent and is not answered yet: for tests of what happens meanwhile, and of cancelling. Made by
/// [`ToolCall::begin`](super::ToolCall::begin). Dropping it leaves the call open;
/// its answer is then no complaint.
#[must_use = "await its `result` or `cancel` it"]
pub struct OpenCall {
    pub(super) core: Arc<Core>,
    pub(super) link: Arc<Link>,
    pub(super) request: RpcRequest,
    pub(super) told: Told,
    pub(super) sending: AbortHandle,
    pub(super) started: Instant,
    pub(super) timestamp: SystemTime,
    /// Notifications that were there before.
    pub(super) seen: usize,
}

impl std::fmt::Debug for OpenCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenCall").field("request", &self.request).finish_non_exhaustive()
    }
}

impl OpenCall {
    /// The id of its request.
    pub fn id(&self) -> &Value {
        &self.request.id
    }

    /// Tells the server that nobody waits any more: `notifications/cancelled`, or the end of the stream where the call has
    /// one of its own (2026-07-28 over HTTP). No answer is waited for.
    pub async fn cancel(self) {
        if self.core.stateless() && self.link.wire.is_http() {
            self.sending.abort();
            self.link.wire.cancel(&self.request.id);
        } else {
            self.link.cancel(&self.request.id).await;
        }
    }

    /// Waits for the answer, for as long as the client waits. A tool or a call that fails is no `Err`, as with
    /// [`Tools::call`](super::Tools::call).
    ///
    /// # Errors
    /// There is no answer.
    pub async fn result(self) -> Result<ToolResult, ClientError> {
        let after = *crate::lock(&self.core.timeout);
        let answer = match tokio::time::timeout(after, self.told).await {
            Ok(answer) => answer,
            Err(_) => {
                self.link.cancel(&self.request.id).await;
                let method = self.request.method.clone();
                Err(ClientError::TimedOut { method, after, hint: String::new() })
            }
        };
        let duration_ms = self.started.elapsed().as_secs_f64() * 1e3;
        let token = self.request.params["_meta"]["progressToken"].clone();
        self.core.trace.push(RequestTrace {
            method: self.request.method,
            params: self.request.params,
            response: answer.as_ref().ok().cloned(),
            failure: answer.as_ref().err().map(ToString::to_string),
            disconnected: matches!(answer, Err(ClientError::Closed(_))),
            mocked: false,
            duration_ms,
            timestamp: self.timestamp,
        });
        let outcome = match result_of("tools/call", answer?) {
            Ok(result) => Ok(result),
            Err(ClientError::Rpc { error, .. }) => Err(error),
            Err(error) => return Err(error),
        };
        Ok(ToolResult::of(outcome).between(duration_ms, self.core.notifications.since(self.seen), &token))
    }
}
