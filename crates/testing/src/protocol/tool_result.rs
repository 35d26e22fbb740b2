//! Results of `tools/call`.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    notification::Notification,
    record::{RecordError, serialize_as_raw},
    request::RpcRequest,
    response::RpcError,
};
use crate::base::text::shorten;

/// An image block.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Image {
    /// The Base64 data.
    pub data: String,
    /// The media type.
    pub mime_type: String,
}

/// The outcome of `tools/call`: a result, a result with `isError`, or a JSON-RPC error.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// True if neither the tool nor the call failed.
    pub is_success: bool,
    /// True if the tool or the call failed.
    pub is_error: bool,
    /// The content blocks.
    pub content: Vec<Value>,
    /// The JSON-RPC error, if the call itself failed.
    pub error: Option<RpcError>,
    /// The wire form of `result`; `{"error": …}` if the call itself failed.
    pub raw: Value,
    /// Duration of the call, in milliseconds.
    pub duration_ms: f64,
    /// Notifications received between the request and the response: progress, logs. Not serialized.
    pub notifications: Vec<Notification>,
    /// What the server asked of the client between the request and the response: elicitation, sampling, roots. Not serialized.
    pub asked: Vec<RpcRequest>,
}

serialize_as_raw!(ToolResult);

impl ToolResult {
    pub(crate) fn new(outcome: Result<Value, RpcError>) -> Self {
        let (raw, error) = match outcome {
            Ok(result) => (result, None),
            Err(error) => (json!({"error": error}), Some(error)),
        };
        let is_error = error.is_some() || raw["isError"].as_bool().unwrap_or(false);
        let content = raw["content"].as_array().cloned().unwrap_or_default();
        Self {
            is_success: !is_error,
            is_error,
            content,
            error,
            raw,
            duration_ms: 0.0,
            notifications: vec![],
            asked: vec![],
        }
    }

    /// Adds the duration, and the notifications and requests received meanwhile, without progress of other calls.
    pub(crate) fn observed(
        mut self,
        ms: f64,
        (notifications, asked): (Vec<Notification>, Vec<RpcRequest>),
        token: &Value,
    ) -> Self {
        self.duration_ms = ms;
        (self.notifications, self.asked) = (notifications, asked);
        self.notifications
            .retain(|one| one.method != "notifications/progress" || &one.params["progressToken"] == token);
        self
    }

    /// All text blocks, separated by line breaks; the error message if the call failed.
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

    /// The result as `T`: `structuredContent` if present, otherwise the first text block parsed as JSON.
    ///
    /// # Errors
    /// The result has neither, or it is not a valid `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, RecordError> {
        if let Some(structured) = self.structured() {
            return serde_json::from_value(structured.clone()).map_err(|error| {
                RecordError(format!("`structuredContent` does not have this type: {error}: {structured}"))
            });
        }
        let text = self.content.iter().find_map(|block| block["text"].as_str()).ok_or_else(|| {
            RecordError(format!("the result has neither `structuredContent` nor text: {}", self.raw))
        })?;
        serde_json::from_str(text).map_err(|error| {
            RecordError(format!("the text does not have this type: {error}: {}", shorten(text, 400)))
        })
    }

    /// The first image block.
    pub fn image(&self) -> Option<Image> {
        self.content.iter().find(|block| block["type"] == "image").map(|block| Image {
            data: block["data"].as_str().unwrap_or_default().to_owned(),
            mime_type: block["mimeType"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// Values of `progress` received during the call, in order.
    pub fn progress(&self) -> Vec<f64> {
        self.notifications
            .iter()
            .filter(|one| one.method == "notifications/progress")
            .filter_map(|one| one.params["progress"].as_f64())
            .collect()
    }
}
