//! Makes the body of a meta-tool's reply a [`CallToolResult`]. The body of `codecall:execute` is made in `execute`.

use gatewright_core::rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

/// The body as `structuredContent` and as the one text item; an error when it has a `status` that is not `ok` or `running`.
pub(crate) fn answer(body: Value) -> CallToolResult {
    let failed = body.get("status").is_some_and(|status| status != "ok" && status != "running");
    let content = vec![ContentBlock::text(body.to_string())];
    let mut result = if failed { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = Some(body);
    result
}
