//! Runs whose calls wait for approvals that are given elsewhere: on a page, or on the operator's console.

use std::sync::Arc;

use gatewright_core::{Caller, RecordsError, codes, rmcp::model::CallToolResult};
use gatewright_executions::{ExecutionError, ExecutionId, Reader, State};
use serde_json::json;

use super::{
    Past,
    questions::{MOST_ASKED, Waiting},
};
use crate::{CodeCall, tool_result::answer};

impl CodeCall {
    /// Returns `true` if an approval that one of the calls waits for was decided on elsewhere, or has expired.
    ///
    /// # Errors
    /// The store of approvals does not answer.
    pub(crate) async fn has_settled(&self, waiting: &[Waiting]) -> Result<bool, RecordsError> {
        for approval in waiting.iter().flat_map(|waiting| &waiting.approvals) {
            if !self.invoker.approvals().waits(&approval.id).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `true` if `caller` has signed in where one of the calls waits for that, or if an approval is settled, so that the run can go on
    /// without answers.
    pub(super) async fn can_go_on(&self, waiting: &[Waiting], caller: &Caller) -> bool {
        for tool in waiting.iter().flat_map(|waiting| &waiting.sign_ins) {
            if !self.invoker.lacks_sign_in(tool, caller).await {
                return true;
            }
        }
        self.has_settled(waiting).await == Ok(true)
    }

    /// Goes on with the runs in the background whose approvals are settled.
    ///
    /// # Errors
    /// The store of approvals does not answer.
    pub(super) async fn take_up_settled(self: &Arc<Self>) -> Result<(), RecordsError> {
        let (approvals, mut done) = (self.invoker.approvals(), Vec::new());
        for settled in approvals.settled().await? {
            match self.take_up(&settled.run).await {
                // It stays where it is, for this instance or another one. An instance that died as the run began to wait has its lease for a while.
                Err(ExecutionError::Unavailable | ExecutionError::Busy) => {}
                Ok(false) if settled.is_recent() => {}
                Ok(_) | Err(_) => done.push(settled),
            }
        }
        approvals.unsettle(&done).await
    }

    /// Goes on with a run if an approval of it is settled. Returns `false` if none is yet.
    async fn take_up(self: &Arc<Self>, id: &str) -> Result<bool, ExecutionError> {
        let head = self.executions.head(id, Reader::Operator).await?;
        match head.state {
            State::Ended => return Ok(true),
            _ if !head.about.detached => return Ok(true),
            State::Running => return Ok(false),
            State::Waiting => {}
        }
        let execution = self.executions.open(id, Reader::Operator).await?;
        let (_, past) = Past::open(execution.chunks).await.ok_or(ExecutionError::Unreadable)?;
        if !self.has_settled(&past.waiting()).await? {
            return Ok(false);
        }
        match self.go_on_alone(&head).await {
            Ok(true) => {
                tracing::info!(execution.id = id, "going on with an execution whose approval is settled");
            }
            Ok(false) => {}
            // Later.
            Err(ExecutionError::Full) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Wakes a run in the background that has begun to wait, if an approval was settled while it was running.
    pub(super) async fn wake_if_settled(&self, id: ExecutionId, waiting: &[Waiting]) {
        if let Ok(true) = self.has_settled(waiting).await
            && let Err(error) = self.invoker.approvals().settle(&[id.to_string()]).await
        {
            tracing::debug!(%error, execution.id = %id, "a run goes on with the next look of its client");
        }
    }
}

/// The answer to a run that waits for approvals which are given elsewhere.
pub(super) fn approval_required(waiting: &[Waiting], id: ExecutionId) -> CallToolResult {
    let approvals: Vec<_> = waiting.iter().flat_map(|waiting| &waiting.approvals).collect();
    let asks =
        approvals.iter().take(MOST_ASKED).map(|approval| format!("`{}`: {}", approval.name, approval.text));
    let message = format!(
        "the plan needs an approval. {}. The plan waits: afterwards, go on with codecall:execute {{\"resume\": \"{id}\"}}",
        asks.collect::<Vec<_>>().join(". ")
    );
    let name = approvals.first().map(|approval| approval.name.as_str()).unwrap_or_default();
    let listed: Vec<_> = approvals
        .iter()
        .take(MOST_ASKED)
        .map(|approval| json!({"id": approval.id, "tool": approval.name, "url": approval.page}))
        .collect();
    let body = json!({"status": "tool_error", "executionId": id.to_string(), "approvals": listed, "error":
        {"source": "tool", "toolName": name, "code": codes::APPROVAL_REQUIRED, "message": message}});
    answer(body)
}
