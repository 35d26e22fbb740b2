//! Runs whose calls wait for approvals that are given elsewhere: on a page, or on the operator's console.

use gatewright_core::{codes, rmcp::model::CallToolResult};
use gatewright_executions::ExecutionId;
use serde_json::json;

use super::questions::{MOST_ASKED, Waiting};
use crate::{CodeCall, reply::answer};

impl CodeCall {
    /// Returns `true` if an approval that one of the calls waits for was decided on elsewhere.
    pub(crate) async fn has_settled(&self, waiting: &[Waiting]) -> bool {
        for approval in waiting.iter().filter_map(|waiting| waiting.approval.as_ref()) {
            if self.invoker.approvals().waits(&approval.id).await == Ok(false) {
                return true;
            }
        }
        false
    }
}

/// The answer to a run that waits for approvals which are given elsewhere.
pub(super) fn approval_required(waiting: &[Waiting], id: ExecutionId) -> CallToolResult {
    let approvals: Vec<_> =
        waiting.iter().filter_map(|one| Some((&one.name, one.approval.as_ref()?))).collect();
    let asks =
        approvals.iter().take(MOST_ASKED).map(|(name, approval)| format!("`{name}`: {}", approval.text));
    let message = format!(
        "the plan needs an approval. {}. The plan waits: afterwards, go on with codecall:execute {{\"resume\": \"{id}\"}}",
        asks.collect::<Vec<_>>().join(". ")
    );
    let name = approvals.first().map(|(name, _)| name.as_str()).unwrap_or_default();
    let listed: Vec<_> = approvals
        .iter()
        .take(MOST_ASKED)
        .map(|(name, approval)| json!({"id": approval.id, "tool": name, "url": approval.page}))
        .collect();
    let body = json!({"status": "tool_error", "executionId": id.to_string(), "approvals": listed, "error":
        {"source": "tool", "toolName": name, "code": codes::APPROVAL_REQUIRED, "message": message}});
    answer(body)
}
