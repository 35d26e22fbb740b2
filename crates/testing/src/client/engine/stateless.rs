//! Additions to requests from 2026-07-28 on, where there is no session: `_meta`, and headers that mirror the body.

use serde_json::{Value, json};

use super::Engine;
use crate::{base::lock, client::connection::Connection, protocol::RpcRequest};

impl Engine {
    /// `_meta` of every request from 2026-07-28 on.
    pub(in crate::client) fn meta(&self) -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": self.settings.version,
            "io.modelcontextprotocol/clientCapabilities": self.settings.capabilities,
            "io.modelcontextprotocol/clientInfo": self.settings.client_info,
        })
    }

    /// Adds `_meta`, without replacing keys the test has set.
    pub(super) fn add_meta(&self, message: &mut Value) {
        let Some(message) = message.as_object_mut() else { return };
        let params = message.entry("params").or_insert_with(|| json!({}));
        let Some(params) = params.as_object_mut() else { return };
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        if let (Some(meta), Value::Object(wanted)) = (meta.as_object_mut(), self.meta()) {
            for (key, value) in wanted {
                meta.entry(key).or_insert(value);
            }
        }
    }

    /// Headers that mirror the body: `Mcp-Name`, `Mcp-Param-*`.
    pub(super) async fn standard_headers(
        &self,
        connection: &Connection,
        request: &RpcRequest,
    ) -> Vec<(String, String)> {
        let key = match request.method.as_str() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            _ => return Vec::new(),
        };
        let Some(name) = request.params[key].as_str() else { return Vec::new() };
        let mut headers = vec![("mcp-name".to_owned(), header_value(name))];
        if request.method == "tools/call" {
            let schema = self.input_schema(connection, name).await;
            for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
                let (Some(header), value) =
                    (schema["x-mcp-header"].as_str(), &request.params["arguments"][property])
                else {
                    continue;
                };
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Number(_) | Value::Bool(_) => value.to_string(),
                    _ => continue,
                };
                headers.push((format!("mcp-param-{}", header.to_lowercase()), header_value(&text)));
            }
        }
        headers
    }

    /// The input schema of a tool, from the last list. Without one, lists the tools now.
    async fn input_schema(&self, connection: &Connection, tool: &str) -> Value {
        if lock(&self.schemas).is_empty() {
            let list = self.numbered("tools/list", json!({}));
            if let Ok(response) = Box::pin(self.send(connection, &list, true)).await
                && let Some(result) = response.result()
            {
                self.remember_schemas(result);
            }
        }
        lock(&self.schemas).get(tool).cloned().unwrap_or_default()
    }

    /// Keeps the input schemas of a `tools/list` result.
    pub(in crate::client) fn remember_schemas(&self, list: &Value) {
        let mut schemas = lock(&self.schemas);
        for tool in list["tools"].as_array().into_iter().flatten() {
            if let Some(name) = tool["name"].as_str() {
                schemas.insert(name.to_owned(), tool["inputSchema"].clone());
            }
        }
    }
}

/// Encodes a header value, in Base64 if a header cannot hold it as it is (2026-07-28, "Standard headers").
fn header_value(text: &str) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && text.trim() == text;
    match plain && !text.starts_with("=?base64?") {
        true => text.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(text)),
    }
}
