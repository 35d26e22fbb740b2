//! The tools that are called: those that cannot do harm, unless more are asked for.

use crate::protocol::Tool;

/// Words in the names of tools without annotations that only read.
const READS: [&str; 40] = [
    "get",
    "list",
    "search",
    "read",
    "describe",
    "find",
    "fetch",
    "show",
    "query",
    "lookup",
    "check",
    "count",
    "calc",
    "calculate",
    "add",
    "sum",
    "echo",
    "convert",
    "compute",
    "status",
    "info",
    "help",
    "time",
    "weather",
    "validate",
    "parse",
    "format",
    "summarize",
    "explain",
    "analyze",
    "compare",
    "inspect",
    "view",
    "hello",
    "ping",
    "tree",
    "diff",
    "log",
    "think",
    "resolve",
];

/// Words in the names of tools that change something.
const CHANGES: [&str; 46] = [
    "delete",
    "remove",
    "drop",
    "write",
    "create",
    "update",
    "insert",
    "set",
    "put",
    "post",
    "patch",
    "send",
    "exec",
    "execute",
    "run",
    "kill",
    "stop",
    "start",
    "restart",
    "reset",
    "clear",
    "move",
    "rename",
    "copy",
    "upload",
    "edit",
    "commit",
    "push",
    "merge",
    "checkout",
    "install",
    "uninstall",
    "pay",
    "transfer",
    "buy",
    "publish",
    "deploy",
    "apply",
    "close",
    "open",
    "click",
    "navigate",
    "append",
    "purge",
    "grant",
    "revoke",
];

/// The reason to leave a tool out; `None` to call it. `readOnlyHint` and `destructiveHint` decide where they are given (a tool that gives
/// neither may be destructive, says MCP), and the name of the tool where not.
pub(super) fn reason_to_leave_out(tool: &Tool) -> Option<String> {
    let annotations = &tool.raw["annotations"];
    match (annotations["readOnlyHint"].as_bool(), annotations["destructiveHint"].as_bool()) {
        (Some(true), _) | (_, Some(false)) => return None,
        (_, Some(true)) => return Some("it says that it is destructive".into()),
        (Some(false), None) => {
            return Some("it says that it changes something, and not that it destroys nothing".into());
        }
        (None, None) => {}
    }
    let words = words(&tool.name);
    match (
        words.iter().find(|word| CHANGES.contains(&word.as_str())),
        words.iter().any(|word| READS.contains(&word.as_str())),
    ) {
        (Some(word), _) => Some(format!("it has no annotations, and its name says `{word}`")),
        (None, false) => Some("it has no annotations, and its name does not say that it only reads".into()),
        (None, true) => None,
    }
}

/// True if the tool says that it changes nothing.
pub(super) fn is_read_only(tool: &Tool) -> bool {
    tool.raw["annotations"]["readOnlyHint"] == true
}

/// The words of a name in snake case, kebab case or camel case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars().take(200) {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn is_called(name: &str, annotations: &Value) -> bool {
        let tool = json!({"name": name, "inputSchema": {"type": "object"}, "annotations": annotations});
        reason_to_leave_out(&Tool::read(tool).unwrap()).is_none()
    }

    #[test]
    fn leaves_out_what_may_destroy() {
        assert!(
            is_called("x", &json!({"readOnlyHint": true}))
                && is_called("x", &json!({"destructiveHint": false}))
        );
        assert!(
            !is_called("getX", &json!({"destructiveHint": true}))
                && !is_called("get", &json!({"readOnlyHint": false}))
        );
        assert!(is_called("getForecast", &json!({})) && is_called("list-tables", &json!({})));
        assert!(!is_called("get_and_delete", &json!({})) && !is_called("reboot", &json!({})));
    }
}
