//! Messages against MCP's own schema.

use gatewright_core::{BrokenRule, InputProblem};
use serde_json::Value;

use super::{revision::RevisionSchema, rule::Rule, violation::Violation};
use crate::protocol::RpcRequest;

/// Checks the result of a request.
pub(super) fn check_result(
    schema: &RevisionSchema,
    request: &RpcRequest,
    result: &Value,
    found: &mut Vec<Violation>,
) {
    let Some(definition) = result_definition(request, result).filter(|name| schema.has(name)) else { return };
    for problem in schema.problems(definition, result) {
        let rule = rule_of(&request.method, &problem);
        let name = name_at(result, &problem.path);
        found.push(Violation::new(rule, &request.method, problem.path, problem.message).named(name));
    }
}

/// Checks a notification or a request of the server.
pub(super) fn check_message(schema: &RevisionSchema, message: &Value, found: &mut Vec<Violation>) {
    let method = message["method"].as_str().unwrap_or_default();
    let Some(definition) = schema.message(method) else { return };
    for problem in schema.problems(definition, message) {
        found.push(Violation::new(Rule::Schema, method, problem.path, problem.message));
    }
}

/// The definition that the result of a request has to fit; `None` for methods of extensions.
fn result_definition(request: &RpcRequest, result: &Value) -> Option<&'static str> {
    match result["resultType"].as_str() {
        Some("input_required") => return Some("InputRequiredResult"),
        // The results of extensions have types of their own (2026-07-28).
        Some(other) if other != "complete" => return Some("Result"),
        _ => {}
    }
    Some(match request.method.as_str() {
        "initialize" => "InitializeResult",
        "server/discover" => "DiscoverResult",
        "tools/list" => "ListToolsResult",
        "tools/call" if request.params.get("task").is_some() && result.get("task").is_some() => {
            "CreateTaskResult"
        }
        "tools/call" => "CallToolResult",
        "resources/list" => "ListResourcesResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        "resources/read" => "ReadResourceResult",
        "prompts/list" => "ListPromptsResult",
        "prompts/get" => "GetPromptResult",
        "completion/complete" => "CompleteResult",
        "subscriptions/listen" => "SubscriptionsListenResult",
        "tasks/get" => "GetTaskResult",
        "tasks/list" => "ListTasksResult",
        "tasks/cancel" => "CancelTaskResult",
        "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => "Result",
        _ => return None,
    })
}

fn rule_of(method: &str, problem: &InputProblem) -> Rule {
    let mut parts = problem.path.split('/').skip(1);
    let missing = match &problem.rule {
        BrokenRule::Missing { name, .. } => name.as_str(),
        _ => "",
    };
    let at =
        [parts.next().unwrap_or(missing), parts.next().unwrap_or(missing), parts.next().unwrap_or(missing)];
    match (method, at) {
        ("tools/list", ["tools", _, "inputSchema"]) => Rule::InputSchema,
        ("tools/list", ["tools", _, "outputSchema"]) => Rule::OutputSchema,
        ("tools/call", ["structuredContent", ..]) => Rule::StructuredContent,
        ("tools/call", ["content", ..])
        | ("prompts/get", ["messages", _, "content"])
        | ("resources/read", ["contents", ..]) => Rule::Content,
        _ => Rule::Schema,
    }
}

/// The name of the item of a list that a place is in.
fn name_at<'a>(result: &'a Value, place: &str) -> Option<&'a str> {
    let mut parts = place.split('/').skip(1);
    let item = result.get(parts.next()?)?.get(parts.next()?.parse::<usize>().ok()?)?;
    ["name", "uri", "uriTemplate"].iter().find_map(|key| item.get(*key)?.as_str())
}
