//! A tool as a result of a search shows it: what tells it apart, on one line.

use gatewright_core::ToolEntry;
use serde_json::{Value, json};

use crate::{declare::sentence, hints};

/// Characters of a description.
const LONGEST_DESCRIPTION: usize = 160;
/// ... in a list.
const LONGEST_LISTED: usize = 80;
/// Bytes of the names of parameters.
const LONGEST_PARAMETERS: usize = 160;

/// The tool, with a `score` of 0 to 1.
pub(super) fn hit(tool: &ToolEntry, score: f64) -> Value {
    let mut hit = json!({
        "name": tool.tool.name,
        "appId": *tool.app_id,
        "description": sentence(tool.description(), LONGEST_DESCRIPTION),
        "parameters": parameters(tool),
        "score": score,
    });
    if hints::is_destructive(tool) {
        hit["destructive"] = true.into();
    }
    hit
}

/// The tool as a list shows it.
pub(super) fn listed(tool: &ToolEntry) -> Value {
    let mut hit = json!({
        "name": tool.tool.name,
        "appId": *tool.app_id,
        "description": sentence(tool.description(), LONGEST_LISTED),
        // Nothing was asked for, so everything answers it.
        "score": 1,
    });
    if hints::is_destructive(tool) {
        hit["destructive"] = true.into();
    }
    hit
}

/// The names of the tool's parameters, the required ones first, the others with `?`.
fn parameters(tool: &ToolEntry) -> String {
    let schema = tool.input_schema();
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let required = || required.iter().filter_map(Value::as_str).take(MOST);
    let known = schema.get("properties").and_then(Value::as_object);
    let optional = known.into_iter().flat_map(|known| known.keys()).map(String::as_str);
    let optional = optional.filter(|name| !required().any(|one| one == *name)).map(|name| (name, "?"));
    let mut text = String::new();
    for (name, mark) in required().map(|name| (name, "")).chain(optional) {
        if text.len() + name.len() > LONGEST_PARAMETERS {
            text.push_str(if text.is_empty() { "…" } else { ", …" });
            break;
        }
        let comma = if text.is_empty() { "" } else { ", " };
        text.extend([comma, name, mark]);
    }
    text
}

/// Names that are looked at.
const MOST: usize = 100;
