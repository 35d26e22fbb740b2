//! JSON-RPC responses for mocks and interceptors.

use serde_json::{Value, json};

use crate::protocol::{RpcError, RpcResponse};

/// A result.
pub fn success(result: Value) -> RpcResponse {
    RpcResponse::success(result)
}

/// The result of a tool call, with these content blocks.
pub fn tool_result(content: Vec<Value>) -> RpcResponse {
    success(json!({"content": content}))
}

/// The result of `tools/list`.
pub fn tools_list(tools: Vec<Value>) -> RpcResponse {
    success(json!({"tools": tools}))
}

/// The result of `resources/list`.
pub fn resources_list(resources: Vec<Value>) -> RpcResponse {
    success(json!({"resources": resources}))
}

/// The result of `resources/read`.
pub fn resource_read(contents: Vec<Value>) -> RpcResponse {
    success(json!({"contents": contents}))
}

/// An error.
pub fn error(code: i64, message: impl Into<String>) -> RpcResponse {
    RpcResponse::failure(&RpcError::new(code, message))
}

/// Common errors.
pub mod errors {
    use super::{RpcResponse, error};

    /// -32601.
    pub fn method_not_found(method: &str) -> RpcResponse {
        error(-32601, format!("Method not found: {method}"))
    }

    /// -32002: the code up to 2025-11-25. From 2026-07-28 it is -32602.
    pub fn resource_not_found(uri: &str) -> RpcResponse {
        error(-32002, format!("Resource not found: {uri}"))
    }

    /// -32602.
    pub fn invalid_params(message: &str) -> RpcResponse {
        error(-32602, format!("Invalid params: {message}"))
    }

    /// -32001.
    pub fn unauthorized() -> RpcResponse {
        error(-32001, "Unauthorized")
    }
}
