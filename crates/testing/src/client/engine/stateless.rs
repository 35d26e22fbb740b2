//! What requests carry from 2026-07-28, where there is no session: `_meta`, and headers that repeat parts of the body.

use serde_json::{Value, json};

use super::Core;
use crate::{client::link::Link, lock, mock::RpcRequest};

impl Core {
    /// What every request carries from 2026-07-28.
    pub(in crate::client) fn meta(&self) -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": self.settings.version,
            "io.modelcontextprotocol/clientCapabilities": self.settings.capabilities,
            "io.modelcontextprotocol/clientInfo": self.settings.client_info,
        })
    }

    pub(super) fn dress(&self, message: &mut Value) {
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

    /// Headers that repeat parts of the body: `Mcp-Name`, `Mcp-Param-*`.
    pub(super) async fn mirrored(&self, link: &Link, request: &RpcRequest) -> Vec<(String, String)> {
        let key = match request.method.as_str() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            _ => return Vec::new(),
        };
        let Some(name) = request.params[key].as_str() else { return Vec::new() };
        let mut headers = vec![("mcp-name".to_owned(), header_value(name))];
        if request.method == "tools/call" {
            let schema = self.schema(link, name).await;
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

    /// A tool's input schema: the last one listed, or asked for now.
    async fn schema(&self, link: &Link, tool: &str) -> Value {
        if lock(&self.schemas).is_empty() {
            let list = self.numbered("tools/list", json!({}));
            if let Ok(answer) = Box::pin(self.over(link, &list, true)).await
                && let Some(result) = answer.result()
            {
                self.learn(result);
            }
        }
        lock(&self.schemas).get(tool).cloned().unwrap_or_default()
    }

    pub(in crate::client) fn learn(&self, list: &Value) {
        let mut schemas = lock(&self.schemas);
        for tool in list["tools"].as_array().into_iter().flatten() {
            if let Some(name) = tool["name"].as_str() {
                schemas.insert(name.to_owned(), tool["inputSchema"].clone());
            }
        }
    }
}

/// Values that a header cannot hold as they are go as Base64 (2026-07-28, "Standard headers").
fn header_value(text: &str) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && text.trim() == text;
    match plain && !text.starts_with("=?base64?") {
        true => text.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(text)),
    }
}
