//! JSON-RPC responses.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The `error` member of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// The error code; those of JSON-RPC and MCP are negative.
    pub code: i64,
    /// A short description.
    pub message: String,
    /// Further data, as the server likes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

/// An internal error (-32603) with this message.
impl From<&str> for RpcError {
    fn from(message: &str) -> Self {
        Self::new(-32603, message)
    }
}

/// An internal error (-32603) with this message.
impl From<String> for RpcError {
    fn from(message: String) -> Self {
        Self::new(-32603, message)
    }
}

impl std::fmt::Display for RpcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for RpcError {}

/// A JSON-RPC response, from the server or from a mock.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcResponse {
    /// The whole message.
    pub raw: Value,
}

super::record::serialize_as_raw!(RpcResponse);

impl RpcResponse {
    /// A response with a result. A mock or an interceptor fills in the id.
    pub fn success(result: Value) -> Self {
        Self { raw: json!({"jsonrpc": "2.0", "id": null, "result": result}) }
    }

    /// A response with an error. A mock or an interceptor fills in the id.
    pub fn failure(error: &RpcError) -> Self {
        Self { raw: json!({"jsonrpc": "2.0", "id": null, "error": error}) }
    }

    /// The id of the request; null if the server could not read it.
    pub fn id(&self) -> &Value {
        &self.raw["id"]
    }

    /// The `result` member.
    pub fn result(&self) -> Option<&Value> {
        self.raw.get("result")
    }

    /// The `error` member, if it is a JSON-RPC error object.
    pub fn error(&self) -> Option<RpcError> {
        self.raw.get("error").and_then(|error| serde_json::from_value(error.clone()).ok())
    }

    /// The first violation of JSON-RPC 2.0 §5, not counting the id.
    pub(crate) fn envelope_problem(&self) -> Option<&'static str> {
        match (self.raw["jsonrpc"] == "2.0", self.raw.get("result"), self.raw.get("error")) {
            (false, ..) => Some("it has no `\"jsonrpc\": \"2.0\"`"),
            (_, Some(_), Some(_)) => Some("it has both `result` and `error`"),
            _ => None,
        }
    }

    /// The JSON-RPC error in an HTTP body.
    pub(crate) fn error_in(body: &str) -> Option<Self> {
        let response = Self { raw: serde_json::from_str(body).ok().filter(Value::is_object)? };
        (response.raw["jsonrpc"] == "2.0" && response.error().is_some()).then_some(response)
    }

    /// The same response with the id of a request.
    pub(crate) fn with_id(mut self, id: &Value) -> Self {
        if let Some(message) = self.raw.as_object_mut() {
            message.insert("id".into(), id.clone());
        }
        self
    }
}
