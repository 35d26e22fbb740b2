//! `/console/script/suggestions`: tools whose names complete what was typed into the script pad, each with its parameters, as JSON.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Query, State},
    response::{IntoResponse, Response},
};
use gatewright_core::ToolEntry;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{ConsoleState, text};

/// Tools in one answer.
const MOST: usize = 12;
/// Parameters of one tool.
const MOST_PARAMETERS: usize = 40;
/// Longest declaration, in characters.
const LONGEST: usize = 2_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Params {
    /// The beginning, or a part, of a name.
    q: String,
    /// The whole name of one tool: its declaration comes, too.
    tool: String,
}

pub(crate) async fn list(State(state): State<Arc<ConsoleState>>, Query(params): Query<Params>) -> Response {
    let view = state.operator.view().await;
    if !params.tool.is_empty() {
        let tool = view.shows(&params.tool);
        let tools: Vec<Value> = tool.into_iter().map(|tool| described(&state, tool, true)).collect();
        return Json(json!({"tools": tools})).into_response();
    }
    let typed = params.q.to_lowercase();
    let rank = |tool: &ToolEntry| {
        let name = tool.tool.name.to_lowercase();
        let local = name.split_once(':').map_or(name.as_str(), |(_, local)| local);
        match () {
            () if name.starts_with(&typed) => Some(0),
            () if local.starts_with(&typed) => Some(1),
            () if name.contains(&typed) => Some(2),
            () => None,
        }
    };
    let mut found: Vec<_> = view.tools().into_iter().filter_map(|tool| Some((rank(tool)?, tool))).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.name.cmp(&b.1.name)));
    let tools: Vec<Value> = found.iter().take(MOST).map(|(_, tool)| described(&state, tool, false)).collect();
    Json(json!({"tools": tools})).into_response()
}

fn described(state: &ConsoleState, tool: &ToolEntry, whole: bool) -> Value {
    let schema = tool.input_schema();
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let parameters: Vec<Value> = properties
        .into_iter()
        .flatten()
        .take(MOST_PARAMETERS)
        .map(|(name, property)| {
            let kind = property["type"].as_str().unwrap_or("value");
            let about = property["description"].as_str().unwrap_or_default();
            json!({
                "name": text::line(name, 100), "type": text::line(kind, 40), "about": text::line(about, 120),
                "required": required.contains(&name.as_str()),
            })
        })
        .collect();
    let mut described = json!({
        "name": tool.tool.name,
        "about": text::line(tool.description(), 120),
        "parameters": parameters,
    });
    if let Some(code_call) = state.code_call.as_ref().filter(|_| whole) {
        let declaration = code_call.declaration(tool, &state.operator.caller());
        described["declaration"] = text::plain(&declaration).chars().take(LONGEST).collect::<String>().into();
    }
    described
}
