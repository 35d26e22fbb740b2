//! The four meta-tools as MCP lists them.

use std::{borrow::Cow, sync::Arc};

use gatewright_agentscript::Limits;

use gatewright_core::{
    InputSchema, ToolNames,
    rmcp::model::{JsonObject, Tool, ToolAnnotations},
};
use serde_json::{Value, json};

use crate::advice;

/// Prefix of the meta-tools' names.
pub(crate) const PREFIX: &str = "codecall:";

pub(crate) const SEARCH: &str = "codecall:search";
pub(crate) const DESCRIBE: &str = "codecall:describe";
pub(crate) const EXECUTE: &str = "codecall:execute";
pub(crate) const INVOKE: &str = "codecall:invoke";

/// `toolNames` of one `codecall:describe`, at most.
pub const MOST_TOOL_NAMES: usize = 100;
/// `filter.appIds` of one `codecall:search`, at most.
pub const MOST_APP_IDS: usize = 100;
/// `allowedTools` of one `codecall:execute`, at most.
pub const MOST_ALLOWED_TOOLS: usize = 1_000;

/// Prefixes by which a script could name a meta-tool, in either spelling.
pub(crate) const RESERVED: [&str; 2] = [PREFIX, "codecall_"];

/// The names of the four.
pub const ALL: [&str; 4] = [SEARCH, DESCRIBE, EXECUTE, INVOKE];

/// The place of `name` in [`definitions`], in either spelling.
pub(crate) fn position(name: &str) -> Option<usize> {
    let tail = name.strip_prefix(PREFIX).or_else(|| name.strip_prefix("codecall_"))?;
    ALL.iter().position(|own| own.strip_prefix(PREFIX) == Some(tail))
}

/// The colon form of one of the four.
pub(crate) fn colon(name: &str) -> Option<&'static str> {
    position(name).map(|at| ALL[at])
}

/// Returns `true` if `name` is one of the gateway's own, in either spelling, or begins like one.
pub(crate) fn is_meta_tool(name: &str) -> bool {
    name.starts_with(PREFIX) || position(name).is_some()
}

/// The four definitions, in the given spelling. A model reads them with every request: they are short, and their output schemas
/// say only what every answer has.
pub(crate) fn definitions(names: ToolNames, limits: &Limits) -> Arc<[Tool]> {
    let read_only = || ToolAnnotations::new().read_only(true).open_world(false);
    let acting = || ToolAnnotations::new().read_only(false).destructive(true);
    let (found, ended) = (json!({"type": "object"}), json!({"type": "object", "required": ["status"]}));
    let execute_text = format!("{EXECUTE_TEXT} {}", advice::sentence(limits));
    Arc::new([
        tool(names, SEARCH, read_only(), SEARCH_TEXT, search_input(), found.clone()),
        tool(names, DESCRIBE, read_only(), DESCRIBE_TEXT, describe_input(), found),
        tool(names, EXECUTE, acting(), execute_text, execute_input(), ended.clone()),
        tool(names, INVOKE, acting(), INVOKE_TEXT, invoke_input(), ended),
    ])
}

/// The schemas by which inputs of the four are checked, in the order of [`definitions`].
pub(crate) fn schemas() -> Vec<InputSchema> {
    let inputs = [search_input(), describe_input(), execute_input(), invoke_input()];
    inputs.into_iter().map(|input| InputSchema::new(object(input))).collect()
}

fn tool(
    names: ToolNames,
    name: &str,
    annotations: ToolAnnotations,
    description: impl Into<Cow<'static, str>>,
    input: Value,
    output: Value,
) -> Tool {
    Tool::new(names.spell(name), description, object(listed(input)))
        .with_annotations(annotations)
        .with_raw_output_schema(object(output))
}

fn object(value: Value) -> Arc<JsonObject> {
    match value {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}

const SEARCH_TEXT: &str = "Find tools for one or several tasks in plain words. Without query: lists apps, or tools of filter.appIds.";

fn search_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "topK": {"type": "number", "minimum": 1, "maximum": 100},
            "filter": {
                "type": "object",
                "properties": {
                    "appIds": {"type": "array", "items": {"type": "string"}, "maxItems": MOST_APP_IDS}
                },
                "additionalProperties": false
            },
            "cursor": {"type": "string"}
        },
        "additionalProperties": false
    })
}

const DESCRIBE_TEXT: &str = "Declare tools whose input search did not give. detail \"types\": TypeScript (recommended); \"full\" \
(default): JSON Schemas and examples.";

fn describe_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "toolNames": {"type": "array", "items": {"type": "string"}, "maxItems": MOST_TOOL_NAMES},
            "detail": {"enum": ["types", "full"]}
        },
        "required": ["toolNames"],
        "additionalProperties": false
    })
}

const EXECUTE_TEXT: &str = "Run JavaScript, an async function body, that calls tools and returns only the JSON you need. \
`await callTool(name, input)` gives the result or throws; with a third argument `{throwOnError: false}`: `{success, data, error}`. \
`await __safe_parallel([() => callTool(...), ...])` runs up to 100 at once; `{settle: true}` gives each outcome. \
`progress(value)` survives a failure. `getTool(name).types` declares a tool; `codecallContext` is `context`. No timers, imports or network.";

fn execute_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "script": {"type": "string"},
            "context": {"type": "object"},
            "allowedTools": {"type": "array", "items": {"type": "string"}, "maxItems": MOST_ALLOWED_TOOLS},
            "dryRun": {"enum": [true, "offline"]},
            "detach": {"type": "boolean"},
            "resume": {"type": "string"},
            "cancel": {"type": "boolean"}
        },
        "additionalProperties": false
    })
}

const INVOKE_TEXT: &str = "Call one tool, without a script.";

fn invoke_input() -> Value {
    json!({
        "type": "object",
        "properties": {"tool": {"type": "string"}, "input": {"type": "object"}},
        "required": ["tool", "input"],
        "additionalProperties": false
    })
}

/// A schema as it is listed: without bounds and prohibitions, which cost a model tokens and which it hears of when it breaks them.
fn listed(schema: Value) -> Value {
    const CHECKED: [&str; 4] = ["additionalProperties", "minimum", "maximum", "maxItems"];
    match schema {
        Value::Object(members) => {
            let members = members.into_iter().filter(|(key, _)| !CHECKED.contains(&key.as_str()));
            Value::Object(members.map(|(key, value)| (key, listed(value))).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use gatewright_agentscript::Preset;
    use gatewright_core::rmcp::model::ListToolsResult;

    use super::*;

    #[test]
    fn the_list_of_the_four_tools_is_shorter_than_2500_bytes() {
        for names in [ToolNames::Colon, ToolNames::Underscore] {
            for limits in [Limits::default(), Limits::preset(Preset::LockedDown)] {
                let listed = ListToolsResult::with_all_items(definitions(names, &limits).to_vec());
                let size = serde_json::to_string(&listed).unwrap().len();
                assert!(size < 2_500, "{size} bytes");
            }
        }
    }

    #[test]
    fn the_four_tools_take_less_than_1800_bytes_of_a_context() {
        for names in [ToolNames::Colon, ToolNames::Underscore] {
            let read = definitions(names, &Limits::default());
            let read = read.iter().map(|tool| (&tool.name, &tool.description, &tool.input_schema));
            let size = serde_json::to_string(&read.collect::<Vec<_>>()).unwrap().len();
            assert!(size < 1_800, "{size} bytes");
        }
    }
}
