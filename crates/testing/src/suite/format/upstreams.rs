//! The key `upstreams`: MCP servers that the server under test calls.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An MCP server that the server under test calls.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::suite) struct UpstreamSection {
    /// Its tools by name.
    pub(in crate::suite) tools: BTreeMap<String, UpstreamTool>,
}

/// A tool of an upstream server.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::suite) struct UpstreamTool {
    /// Description.
    pub(in crate::suite) description: Option<String>,
    /// JSON Schema of the arguments. Default: any object.
    pub(in crate::suite) input_schema: Option<Value>,
    /// JSON Schema of `structuredContent`.
    pub(in crate::suite) output_schema: Option<Value>,
    /// Annotations, such as `{readOnlyHint: true}`.
    pub(in crate::suite) annotations: Option<Value>,
    /// Answers. The first that matches a call and has uses left is given; a call without one fails, and so does the suite.
    #[serde(default)]
    pub(in crate::suite) answers: Vec<UpstreamAnswer>,
}

/// An answer of an upstream tool: exactly one of `value`, `response` and `error`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::suite) struct UpstreamAnswer {
    /// Matches only calls with exactly these arguments.
    #[serde(rename = "with")]
    pub(in crate::suite) arguments: Option<Value>,
    /// The `structuredContent`. A value that is no object becomes its property `result`.
    #[serde(default, deserialize_with = "present")]
    pub(in crate::suite) value: Option<Value>,
    /// The whole `CallToolResult`.
    pub(in crate::suite) response: Option<Value>,
    /// The `structuredContent` of a failure, such as `{code: NOT_FOUND, message: no such user}`.
    pub(in crate::suite) error: Option<Value>,
    /// Number of times the answer is given. Default: unlimited.
    pub(in crate::suite) times: Option<u32>,
    /// Fails the suite if the answer was not used (with `times`: that often). Default false.
    #[serde(default)]
    pub(in crate::suite) required: bool,
}

/// A value that is there, also if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
