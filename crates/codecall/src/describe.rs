//! `codecall:describe`: schemas and examples of tools.

use std::collections::HashSet;

use gatewright_core::{Caller, ToolEntry};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{CodeCall, examples};

/// Input of `codecall:describe`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DescribeInput {
    tool_names: Vec<String>,
}

impl CodeCall {
    /// Meta-tools and tools the caller may not call are `notFound`, as if they did not exist.
    pub(crate) async fn describe(&self, input: DescribeInput, caller: &Caller) -> Value {
        let settings = self.settings();
        let view = self.invoker.registry().ready_view(caller).await;
        let (mut tools, mut not_found) = (Vec::new(), Vec::new());
        // A name that is given several times is described once.
        let mut asked = HashSet::new();
        let names = input.tool_names.into_iter().filter(|name| asked.insert(name.clone()));
        for name in names {
            match view.shows(&name).filter(|tool| settings.config.mode.in_code(tool)) {
                Some(tool) => tools.push(described(tool)),
                None => not_found.push(name),
            }
        }
        let mut body = json!({"tools": tools});
        if !not_found.is_empty() {
            body["notFound"] = json!(not_found);
        }
        body
    }
}

fn described(tool: &ToolEntry) -> Value {
    let mut annotations = Map::new();
    if let Some(hints) = &tool.tool.annotations {
        let hints = [
            ("destructiveHint", hints.destructive_hint),
            ("idempotentHint", hints.idempotent_hint),
            ("openWorldHint", hints.open_world_hint),
            ("readOnlyHint", hints.read_only_hint),
        ];
        annotations
            .extend(hints.into_iter().filter_map(|(name, hint)| Some((name.to_owned(), json!(hint?)))));
    }
    json!({
        "name": tool.tool.name,
        "appId": *tool.app_id,
        "description": tool.description(),
        "inputSchema": tool.input_schema(),
        "outputSchema": tool.tool.output_schema,
        "annotations": annotations,
        "usageExamples": examples::of(tool),
    })
}

/// The result of `getTool`: name, description, input and output schemas.
pub(crate) fn metadata(tool: &ToolEntry) -> Value {
    json!({
        "name": tool.tool.name,
        "description": tool.description(),
        "inputSchema": tool.input_schema(),
        "outputSchema": tool.tool.output_schema,
    })
}
