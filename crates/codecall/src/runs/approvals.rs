//! Runs whose calls wait for approvals that are given elsewhere: on a page, or on the operator's console.

use gatewright_core::{codes, rmcp::model::CallToolResult};
use gatewright_executions::ExecutionId;
use serde_json::json;

use super::questions::{MOST_ASKED, Waiting};
use crate::{CodeCall, reply::answer};

impl CodeCall {
    /// Returns `true` if an approval that one of the calls waits for was decided on elsewhere.
    pub(crate) async fn has_settled(&self, waiting: &[Waiting]) -> bool {
        for approval in waiting.iter().flat_map(|waiting| &waiting.approvals) {
            if self.invoker.approvals().waits(&approval.id).await == Ok(false) {
                return true;
            }
        }
        false
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
