//! JSON-RPC requests.

use serde_json::{Value, json};

/// A JSON-RPC request.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RpcRequest {
    /// The id, a number or a string.
    pub id: Value,
    /// The method, such as `tools/call`.
    pub method: String,
    /// The parameters; null if the request has none.
    pub params: Value,
}

impl RpcRequest {
    /// A request with the id 1.
    pub fn new(method: impl Into<String>, params: Value) -> Self {
        Self { id: json!(1), method: method.into(), params }
    }

    /// Sets the id.
    #[must_use]
    pub fn id(mut self, id: impl Into<Value>) -> Self {
        self.id = id.into();
        self
    }

    /// The whole JSON-RPC message.
    pub(crate) fn message(&self) -> Value {
        let mut message = json!({"jsonrpc": "2.0", "id": self.id, "method": self.method});
        if !self.params.is_null() {
            message["params"] = self.params.clone();
        }
        message
    }
}
