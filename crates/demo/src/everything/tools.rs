//! The list of the fixture's tools, and those that answer at once.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, ResourceContents, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use super::{Change, Everything};

/// One red pixel.
pub(super) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A WAV file without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// Every tool of the fixture, sorted by name.
pub(super) fn list() -> Vec<Tool> {
    let none = || json!({});
    let text = |name: &str| json!({ name: { "type": "string" } });
    let mut all = vec![
        tool("test_simple_text", "Returns a short text", none()),
        tool("test_image_content", "Returns an image", none()),
        tool("test_audio_content", "Returns a sound", none()),
        tool("test_embedded_resource", "Returns an embedded resource", none()),
        tool("test_multiple_content_types", "Returns a text, an image and a resource", none()),
        tool("test_error_handling", "Always fails with a tool error", none()),
        tool("test_tool_with_logging", "Logs three messages while it runs", none()),
        tool("test_tool_with_progress", "Reports progress while it runs", none()),
        tool("test_logging_tool", "Logs only when the request asks for logs", none()),
        tool("test_streaming_elicitation", "Streams a log message, never a request", none()),
        tool("test_reconnection", "Takes a moment, so that a client can reconnect", none()),
        tool("test_sampling", "Asks the client's model", text("prompt")),
        tool("test_elicitation", "Asks the user for a name and an e-mail address", text("message")),
        tool("test_elicitation_sep1034_defaults", "Asks the user with default values", none()),
        tool("test_elicitation_sep1330_enums", "Asks the user to choose, in every way", none()),
        tool("test_missing_capability", "Needs a client that offers sampling", none()),
        tool("test_trigger_tool_change", "Announces that the list of tools changed", none()),
        tool("test_trigger_prompt_change", "Announces that the list of prompts changed", none()),
        tool("test_trigger_resource_update", "Announces that test://watched-resource changed", none()),
        tool(
            "test_custom_header",
            "Takes a value that is repeated in a header",
            json!({ "region": { "type": "string", "x-mcp-header": "Region" }, "query": { "type": "string" } }),
        ),
        raw("json_schema_2020_12_tool", "Has an input schema with many keywords", json_schema_2020_12()),
        tool("greet", "Greets, without a task", text("name")),
        raw(
            "slow_compute",
            "Computes for some seconds, as a task where the client can follow one",
            json!({
                "type": "object",
                "properties": {
                    "seconds": { "type": "number", "minimum": 0, "maximum": 120 },
                    "label": { "type": "string" },
                },
            }),
        ),
        tool("failing_job", "A task that ends with a tool error", none()),
        tool("protocol_error_job", "A task that ends with a protocol error", none()),
        tool("confirm_delete", "A task that asks before it deletes", text("filename")),
        tool("multi_input", "A task that asks two things at once", none()),
        tool("test_tool_with_task", "Asks for a name, then goes on as a task", none()),
    ];
    for way in [
        "elicitation",
        "sampling",
        "list_roots",
        "request_state",
        "multiple_inputs",
        "multi_round",
        "tampered_state",
        "capabilities",
    ] {
        let name = format!("test_input_required_result_{way}");
        all.push(tool(name, "Asks the client for more before it answers", none()));
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn tool(name: impl Into<String>, description: &'static str, properties: Value) -> Tool {
    raw(name, description, json!({ "type": "object", "properties": properties }))
}

fn raw(name: impl Into<String>, description: &'static str, schema: Value) -> Tool {
    let schema: JsonObject = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name.into(), description, Arc::new(schema))
}

/// Must reach the client as it stands here (SEP-1613, SEP-2106).
fn json_schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// A result of one text.
pub(super) fn said(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// A tool error of one text.
pub(super) fn failed(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// The text argument called `name`, or an empty text.
pub(super) fn argument<'a>(request: &'a CallToolRequestParams, name: &str) -> &'a str {
    let value = request.arguments.as_ref().and_then(|all| all.get(name));
    value.and_then(Value::as_str).unwrap_or_default()
}

impl Everything {
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let resource = |uri: &str, mime_type: &str, text: &str| {
            ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(mime_type))
        };
        let name = request.name.to_string();
        let result = match name.as_str() {
            "test_simple_text" => said("This is a simple text response for testing."),
            "test_image_content" => CallToolResult::success(vec![ContentBlock::image(PNG, "image/png")]),
            "test_audio_content" => CallToolResult::success(vec![ContentBlock::audio(WAV, "audio/wav")]),
            "test_embedded_resource" => CallToolResult::success(vec![resource(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content.",
            )]),
            "test_multiple_content_types" => CallToolResult::success(vec![
                ContentBlock::text("Multiple content types test:"),
                ContentBlock::image(PNG, "image/png"),
                resource(
                    "test://mixed-content-resource",
                    "application/json",
                    r#"{"test":"data","value":123}"#,
                ),
            ]),
            "test_error_handling" => failed("This tool intentionally returns an error for testing"),
            "test_custom_header" => said(format!("Region: {}", argument(&request, "region"))),
            "json_schema_2020_12_tool" => said("Schema accepted"),
            "greet" => said(format!("Hello, {}!", argument(&request, "name"))),
            "test_trigger_tool_change" => {
                self.announce(Change::Tools, &context).await;
                said("Announced")
            }
            "test_trigger_prompt_change" => {
                self.announce(Change::Prompts, &context).await;
                said("Announced")
            }
            "test_trigger_resource_update" => {
                self.announce(Change::Resource("test://watched-resource"), &context).await;
                said("Announced")
            }
            "slow_compute"
            | "failing_job"
            | "protocol_error_job"
            | "confirm_delete"
            | "multi_input"
            | "test_tool_with_task" => return self.call_task(request, context).await,
            other if other.starts_with("test_input_required_result_") => {
                return self.call_asking(&request, &context);
            }
            _ => return self.call_talking(request, context).await.map(CallToolResponse::Complete),
        };
        Ok(CallToolResponse::Complete(result))
    }
}
