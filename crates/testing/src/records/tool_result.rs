//! What a tool call gave.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Missing, RpcError, stable::serialize_as_raw};
use crate::client::Notification;

/// An image block.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Image {
    /// Base64.
    pub data: String,
    /// Its media type.
    pub mime_type: String,
}

/// The outcome of `tools/call`: a result, a result with `isError`, or a JSON-RPC error.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// Neither kind of error.
    pub is_success: bool,
    /// The tool failed, or the call did.
    pub is_error: bool,
    /// The content blocks.
    pub content: Vec<Value>,
    /// The JSON-RPC error, when the call itself failed.
    pub error: Option<RpcError>,
    /// The `result` as it came; `{"error": …}` when the call itself failed.
    pub raw: Value,
    /// How long it took, in milliseconds.
    pub duration_ms: f64,
    /// Notifications that came between the request and its answer: progress, logs. Not part of snapshots.
    pub notifications: Vec<Notification>,
}

serialize_as_raw!(ToolResult);

impl ToolResult {
    pub(crate) fn of(outcome: Result<Value, RpcError>) -> Self {
        let (raw, error) = match outcome {
            Ok(result) => (result, None),
            Err(error) => (json!({"error": error}), Some(error)),
        };
        let is_error = error.is_some() || raw["isError"].as_bool().unwrap_or(false);
        let content = raw["content"].as_array().cloned().unwrap_or_default();
        Self { is_success: !is_error, is_error, content, error, raw, duration_ms: 0.0, notifications: vec![] }
    }

    /// With how long it took and what came meanwhile; of the progress only what has the call's own token.
    pub(crate) fn between(mut self, ms: f64, notifications: Vec<Notification>, token: &Value) -> Self {
        self.duration_ms = ms;
        self.notifications = notifications;
        self.notifications
            .retain(|one| one.method != "notifications/progress" || &one.params["progressToken"] == token);
        self
    }

    /// All text blocks, one after the other, with line breaks between; the error's message when the call failed.
    pub fn text(&self) -> String {
        if let Some(error) = &self.error {
            return error.message.clone();
        }
        let texts: Vec<&str> = self.content.iter().filter_map(|block| block["text"].as_str()).collect();
        texts.join("\n")
    }

    /// `structuredContent`.
    pub fn structured(&self) -> Option<&Value> {
        self.raw.get("structuredContent")
    }

    /// The result as `T`: `structuredContent` when there is one, else the first text block read as JSON.
    ///
    /// # Errors
    /// There is neither, or it is not a `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Missing> {
        if let Some(structured) = self.structured() {
            return serde_json::from_value(structured.clone()).map_err(|error| {
                Missing(format!("`structuredContent` is no such value: {error}: {structured}"))
            });
        }
        let text = self.content.iter().find_map(|block| block["text"].as_str()).ok_or_else(|| {
            Missing(format!("the result has neither `structuredContent` nor text: {}", self.raw))
        })?;
        serde_json::from_str(text).map_err(|error| {
            Missing(format!("the text is no such value: {error}: {}", crate::shorten(text, 400)))
        })
    }

    /// The first image block.
    pub fn image(&self) -> Option<Image> {
        self.content.iter().find(|block| block["type"] == "image").map(|block| Image {
            data: block["data"].as_str().unwrap_or_default().to_owned(),
            mime_type: block["mimeType"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// Values of `progress` that came while the call ran, in order.
    pub fn progress(&self) -> Vec<f64> {
        self.notifications
            .iter()
            .filter(|one| one.method == "notifications/progress")
            .filter_map(|one| one.params["progress"].as_f64())
            .collect()
    }
}
