//! JSON-RPC answers.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The `error` member of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// What kind of error; the JSON-RPC and MCP codes are negative.
    pub code: i64,
    /// One sentence.
    pub message: String,
    /// More, as the server likes.
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

/// A JSON-RPC answer as it came, or as a mock gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcResponse {
    /// The whole message.
    pub raw: Value,
}

super::stable::serialize_as_raw!(RpcResponse);

impl RpcResponse {
    /// An answer with a result. The id is filled in when it is used.
    pub fn success(result: Value) -> Self {
        Self { raw: json!({"jsonrpc": "2.0", "id": null, "result": result}) }
    }

    /// An answer with an error. The id is filled in when it is used.
    pub fn failure(error: &RpcError) -> Self {
        Self { raw: json!({"jsonrpc": "2.0", "id": null, "error": error}) }
    }

    /// The id of the request it answers; null when the server could not read one.
    pub fn id(&self) -> &Value {
        &self.raw["id"]
    }

    /// The `result` member.
    pub fn result(&self) -> Option<&Value> {
        self.raw.get("result")
    }

    /// The `error` member, when it is a JSON-RPC error object.
    pub fn error(&self) -> Option<RpcError> {
        self.raw.get("error").and_then(|error| serde_json::from_value(error.clone()).ok())
    }

    /// What keeps it from being a JSON-RPC 2.0 answer, whatever its id (JSON-RPC 2.0 §5).
    pub(crate) fn envelope_problem(&self) -> Option<&'static str> {
        match (self.raw["jsonrpc"] == "2.0", self.raw.get("result"), self.raw.get("error")) {
            (false, ..) => Some("it has no `\"jsonrpc\": \"2.0\"`"),
            (_, Some(_), Some(_)) => Some("it has both `result` and `error`"),
            _ => None,
        }
    }

    /// The JSON-RPC error in an HTTP body, if there is one.
    pub(crate) fn error_in(body: &str) -> Option<Self> {
        let answer = Self { raw: serde_json::from_str(body).ok().filter(Value::is_object)? };
        (answer.raw["jsonrpc"] == "2.0" && answer.error().is_some()).then_some(answer)
    }

    pub(crate) fn with_id(mut self, id: &Value) -> Self {
        if let Some(message) = self.raw.as_object_mut() {
            message.insert("id".into(), id.clone());
        }
        self
    }
}
