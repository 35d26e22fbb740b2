//! Capabilities: what a server does without having declared it, and what it asks of a client that cannot.

use serde_json::Value;

use super::{rule::Rule, violation::Violation};

/// The capability that a request or notification belongs to, as JSON pointer.
fn needed(method: &str) -> Option<&'static str> {
    Some(match method {
        "tools/list" | "tools/call" => "/tools",
        "prompts/list" | "prompts/get" => "/prompts",
        "resources/list" | "resources/templates/list" | "resources/read" => "/resources",
        "resources/subscribe" | "resources/unsubscribe" | "notifications/resources/updated" => {
            "/resources/subscribe"
        }
        "completion/complete" => "/completions",
        "logging/setLevel" | "notifications/message" => "/logging",
        "notifications/tools/list_changed" => "/tools/listChanged",
        "notifications/prompts/list_changed" => "/prompts/listChanged",
        "notifications/resources/list_changed" => "/resources/listChanged",
        _ => return None,
    })
}

/// The capability of a client that a request of the server needs.
fn needed_of_client(method: &str) -> Option<&'static str> {
    Some(match method {
        "elicitation/create" => "elicitation",
        "sampling/createMessage" => "sampling",
        "roots/list" => "roots",
        _ => return None,
    })
}

fn has(capabilities: &Value, pointer: &str) -> bool {
    match capabilities.pointer(pointer) {
        Some(Value::Bool(declared)) => *declared,
        Some(value) => !value.is_null(),
        None => false,
    }
}

/// Checks that the server declared what it answers. A list without items uses nothing.
pub(super) fn check_result(
    version: &str,
    declared: &Value,
    method: &str,
    result: &Value,
    found: &mut Vec<Violation>,
) {
    let Some(pointer) = needed(method) else { return };
    // Completion has a capability since 2025-03-26.
    let is_older = pointer == "/completions" && version < "2025-03-26";
    let is_empty_list = method.ends_with("/list")
        && ["tools", "prompts", "resources", "resourceTemplates"]
            .iter()
            .all(|items| result[*items].as_array().is_none_or(Vec::is_empty));
    if !has(declared, pointer) && !is_empty_list && !is_older {
        found.push(undeclared(method, pointer, "the server answers this"));
    }
}

/// Checks that the server declared what it notifies of.
pub(super) fn check_notification(declared: &Value, method: &str, found: &mut Vec<Violation>) {
    if let Some(pointer) = needed(method).filter(|pointer| !has(declared, pointer)) {
        found.push(undeclared(method, pointer, "the server sends this"));
    }
}

/// Checks that the client offered what the server asks.
pub(super) fn check_request(offered: &Value, method: &str, found: &mut Vec<Violation>) {
    if let Some(name) = needed_of_client(method).filter(|name| !has(offered, &format!("/{name}"))) {
        let problem = format!("the server asks for this of a client without the capability `{name}`");
        found.push(Violation::new(Rule::Capabilities, method, "", problem));
    }
}

fn undeclared(method: &str, pointer: &str, does: &str) -> Violation {
    let name = pointer[1..].replace('/', ".");
    let problem = format!("{does}, but its `capabilities` have no `{name}`");
    Violation::new(Rule::Capabilities, method, "", problem)
}
