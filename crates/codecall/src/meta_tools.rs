//! The four meta-tools as MCP lists them.

use std::sync::Arc;

use gatewright_core::{
    ToolNames,
    rmcp::model::{JsonObject, Tool, ToolAnnotations},
};
use serde_json::{Value, json};

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

/// The four, in the order of [`definitions`].
pub(crate) const ALL: [&str; 4] = [SEARCH, DESCRIBE, EXECUTE, INVOKE];

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

/// The four definitions, in the given spelling.
pub(crate) fn definitions(names: ToolNames) -> Vec<Tool> {
    let read_only = || ToolAnnotations::new().read_only(true).idempotent(true).open_world(false);
    let acting =
        || ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true);
    vec![
        tool(names, SEARCH, "Search tools", read_only(), SEARCH_TEXT, search_input(), search_output()),
        tool(
            names,
            DESCRIBE,
            "Describe tools",
            read_only(),
            DESCRIBE_TEXT,
            describe_input(),
            describe_output(),
        ),
        tool(names, EXECUTE, "Execute a plan", acting(), EXECUTE_TEXT, execute_input(), execute_output()),
        tool(names, INVOKE, "Invoke one tool", acting(), INVOKE_TEXT, invoke_input(), invoke_output()),
    ]
}

fn tool(
    names: ToolNames,
    name: &str,
    title: &str,
    annotations: ToolAnnotations,
    description: &'static str,
    input: Value,
    output: Value,
) -> Tool {
    Tool::new(names.spell(name), description, object(input))
        .with_title(title)
        .with_annotations(annotations)
        .with_raw_output_schema(object(output))
}

fn object(value: Value) -> Arc<JsonObject> {
    match value {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}

const SEARCH_TEXT: &str = "Find tools by what they do. Ask in plain words, for one or several tasks at once. \
Gives the best matches with a score from 0 to 1; then read their schemas with codecall:describe.";

fn search_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What you want to do, in plain words."},
            "topK": {"type": "number", "minimum": 1, "maximum": 100, "default": 5, "description": "Most tools to return."},
            "filter": {
                "type": "object",
                "properties": {
                    "appIds": {
                        "type": "array",
                        "items": {"type": "string"},
                        "maxItems": MOST_APP_IDS,
                        "description": "Search these apps only."
                    }
                },
                "additionalProperties": false
            }
        },
        "required": ["query"],
        "additionalProperties": false
    })
}

/// The output of a tool without a `status` of its own: what it found, with `required` in it, or why it was refused.
fn found_or_refused(mut properties: Value, required: &[&str]) -> Value {
    properties["status"] =
        json!({"const": "error", "description": "Present only when the call was refused."});
    properties["error"] = refusal();
    json!({
        "type": "object",
        "properties": properties,
        "anyOf": [{"required": required}, {"required": ["status", "error"]}]
    })
}

fn refusal() -> Value {
    json!({
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "message": {"type": "string"},
            "retryAfterSeconds": {"type": "integer", "description": "With RATE_LIMIT."},
            "requiredScopes": {"type": "array", "items": {"type": "string"}, "description": "With ACCESS_DENIED."}
        },
        "required": ["code", "message"]
    })
}

fn search_output() -> Value {
    found_or_refused(
        json!({
            "tools": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "appId": {"type": "string"},
                    "description": {"type": "string"},
                    "score": {"type": "number", "minimum": 0, "maximum": 1}
                },
                "required": ["name", "appId", "description", "score"]
            }},
            "totalIndexed": {"type": "number", "description": "How many tools were searched."},
            "indexStatus": {
                "type": "object",
                "description": "There only while the ranking is by words alone although meaning was asked for.",
                "properties": {
                    "state": {"type": "string", "enum": ["loading", "building", "unavailable"]},
                    "done": {"type": "integer", "description": "Tools that have their vector."},
                    "total": {"type": "integer"},
                    "code": {"type": "string", "description": "Why it is unavailable."}
                },
                "required": ["state"]
            }
        }),
        &["tools", "totalIndexed"],
    )
}

const DESCRIBE_TEXT: &str = "Read the input and output schemas of tools, their hints, and short examples in AgentScript. \
Names come from codecall:search.";

fn describe_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "toolNames": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": MOST_TOOL_NAMES,
                "description": "Names of tools."
            }
        },
        "required": ["toolNames"],
        "additionalProperties": false
    })
}

fn describe_output() -> Value {
    found_or_refused(
        json!({
            "tools": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "appId": {"type": "string"},
                    "description": {"type": "string"},
                    "inputSchema": {"type": "object"},
                    "outputSchema": {"type": ["object", "null"]},
                    "annotations": {"type": "object", "properties": {
                        "destructiveHint": {"type": "boolean"},
                        "idempotentHint": {"type": "boolean"},
                        "openWorldHint": {"type": "boolean"},
                        "readOnlyHint": {"type": "boolean"}
                    }},
                    "usageExamples": {"type": "array", "maxItems": 5, "items": {
                        "type": "object",
                        "properties": {"description": {"type": "string"}, "code": {"type": "string"}},
                        "required": ["description", "code"]
                    }}
                },
                "required": ["name", "appId", "description", "inputSchema", "outputSchema", "annotations", "usageExamples"]
            }},
            "notFound": {"type": "array", "items": {"type": "string"}}
        }),
        &["tools"],
    )
}

const EXECUTE_TEXT: &str = "Run a JavaScript plan over many tools in one call. The script is a function body: use \
`await` and `return` at top level. `await callTool(name, input)` gives a tool's result and throws when it fails \
(`callTool(name, input, {throwOnError: false})` gives `{success, data, error}`); `getTool(name)` gives its \
schemas; `await __safe_parallel([() => callTool(...), ...], {maxConcurrency: 10})` runs up to 100 calls at once; \
`codecallContext` holds `context`; `console.log` goes to `logs`. There are no timers, imports, network or globals of a \
host. Return plain JSON data, and only what you need.";

fn execute_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "script": {"type": "string", "description": "AgentScript: a JavaScript function body."},
            "context": {"type": "object", "description": "Data for the script, read as `codecallContext`."},
            "allowedTools": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": MOST_ALLOWED_TOOLS,
                "description": "Only these tools may be called. Default: every tool you can see."
            }
        },
        "required": ["script"],
        "additionalProperties": false
    })
}

fn execute_output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "status": {"enum": ["ok", "syntax_error", "illegal_access", "runtime_error", "tool_error", "timeout"]},
            "result": {"description": "What the script returned."},
            "logs": {"type": "array", "items": {"type": "string"}},
            "calls": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "status": {"enum": ["ok", "error", "open"]},
                    "code": {"type": "string"},
                    "startedMs": {"type": "number"},
                    "durationMs": {"type": "number"}
                },
                "required": ["name", "status", "startedMs", "durationMs"]
            }},
            "omitted": {
                "type": "object",
                "description": "How many logs and calls the reply had no room for.",
                "properties": {"logs": {"type": "integer"}, "calls": {"type": "integer"}}
            },
            "error": {
                "type": "object",
                "properties": {
                    "message": {"type": "string"},
                    "code": {"type": "string"},
                    "kind": {"type": "string"},
                    "name": {"type": "string"},
                    "source": {"enum": ["script", "tool"]},
                    "toolName": {"type": "string"},
                    "retryAfterSeconds": {"type": "integer", "description": "With RATE_LIMIT."},
                    "requiredScopes": {"type": "array", "items": {"type": "string"}, "description": "With ACCESS_DENIED."},
                    "location": {
                        "type": "object",
                        "properties": {"line": {"type": "number"}, "column": {"type": "number"}},
                        "required": ["line", "column"]
                    }
                },
                "required": ["message", "code"]
            }
        },
        "required": ["status"]
    })
}

const INVOKE_TEXT: &str =
    "Call one tool, without a script. For several calls, filters or conditions use codecall:execute.";

fn invoke_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "tool": {"type": "string", "description": "Name of the tool."},
            "input": {"type": "object", "description": "Input of the tool, as its schema says."}
        },
        "required": ["tool", "input"],
        "additionalProperties": false
    })
}

fn invoke_output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "status": {"enum": ["ok", "error"]},
            "result": {"description": "What the tool returned."},
            "error": refusal()
        },
        "required": ["status"]
    })
}
