//! Tools of a server that run only as tasks (MCP 2025-11-25, `execution.taskSupport`), which rmcp's type of a tool leaves out.

use std::{
    collections::HashSet,
    sync::{PoisonError, RwLock},
};

use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use serde::Deserialize;
use serde_json::Value;

/// Names that are kept of one server.
const MOST: usize = 100_000;
/// Longest name that is kept, in bytes.
const LONGEST: usize = 256;

/// The tools of one server that want to be called as a task.
#[derive(Debug, Default)]
pub(crate) struct TaskTools(RwLock<HashSet<String>>);

#[derive(Deserialize)]
struct Answer {
    result: Page,
}

#[derive(Deserialize)]
struct Page {
    tools: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    #[serde(default)]
    execution: Value,
}

impl TaskTools {
    /// Returns `true` if the tool of this name is called as a task only.
    pub(crate) fn requires_task(&self, name: &str) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// Reads `text`, of which `message` was parsed, if it is the answer to a `tools/list`.
    pub(crate) fn note(&self, message: &ServerJsonRpcMessage, text: &[u8]) {
        if let JsonRpcMessage::Response(response) = message
            && matches!(response.result, ServerResult::ListToolsResult(_))
        {
            self.read(text);
        }
    }

    /// Reads a page of tools. Anything else changes nothing.
    pub(crate) fn read(&self, text: &[u8]) {
        let names_tasks = std::str::from_utf8(text).is_ok_and(|text| text.contains("taskSupport"));
        if !names_tasks && self.0.read().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return;
        }
        let Ok(Answer { result }) = serde_json::from_slice(text) else { return };
        let mut tools = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for Listed { name, execution } in result.tools {
            if execution["taskSupport"] != "required" {
                tools.remove(&name);
            } else if tools.len() < MOST && name.len() <= LONGEST {
                tools.insert(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(tools: Value) -> Vec<u8> {
        json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).to_string().into_bytes()
    }

    #[test]
    fn only_tools_that_require_a_task_are_kept_and_a_later_list_decides() {
        let tools = TaskTools::default();
        tools.read(&page(json!([
            {"name": "a", "execution": {"taskSupport": "required"}},
            {"name": "b", "execution": {"taskSupport": "optional"}},
            {"name": "c", "execution": 7},
            {"name": "d"},
        ])));
        assert_eq!(["a", "b", "c", "d"].map(|name| tools.requires_task(name)), [true, false, false, false]);
        tools.read(&page(json!([{"name": "a"}])));
        assert!(!tools.requires_task("a"));
    }

    #[test]
    fn what_is_no_list_of_tools_changes_nothing() {
        let tools = TaskTools::default();
        for text in ["", "taskSupport", "{\"result\":{\"tools\":\"taskSupport\"}}", "{\"taskSupport\":1}"] {
            tools.read(text.as_bytes());
        }
        assert!(!tools.requires_task("a"));
    }
}
