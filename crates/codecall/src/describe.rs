//! `codecall:describe`: schemas and examples of tools.

use std::collections::HashSet;

use gatewright_core::{Principal, ToolEntry};
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
    pub(crate) fn describe(&self, input: DescribeInput, principal: &Principal) -> Value {
        let settings = self.settings();
        let snapshot = self.invoker.registry().snapshot();
        let (mut tools, mut not_found) = (Vec::new(), Vec::new());
        // A name that is given a thousand times is described once.
        let mut asked = HashSet::new();
        let names = input.tool_names.into_iter().filter(|name| asked.insert(name.clone()));
        for name in names {
            match snapshot.tool(&name).filter(|tool| settings.config.mode.shows(tool, principal)) {
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
    let mut body = metadata(tool);
    body.insert("appId".to_owned(), json!(&*tool.app_id));
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
    body.insert("annotations".to_owned(), Value::Object(annotations));
    body.insert("usageExamples".to_owned(), json!(examples::of(tool)));
    Value::Object(body)
}

/// What `getTool` gives a script: name, description, input and output schemas.
pub(crate) fn metadata(tool: &ToolEntry) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("name".to_owned(), json!(tool.tool.name));
    body.insert("description".to_owned(), json!(tool.description()));
    body.insert("inputSchema".to_owned(), Value::Object((**tool.input_schema()).clone()));
    body.insert("outputSchema".to_owned(), tool.output_schema().unwrap_or(Value::Null));
    body
}
