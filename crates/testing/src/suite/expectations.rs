//! The outcome of rejected steps, for expectations.

use serde_json::json;

use crate::protocol::{ClientError, RpcResponse};

/// The outcome of a step that the server rejected: the JSON-RPC error in the response, if any, and the rejection.
pub(super) fn rejection(status: u16, error: &ClientError) -> RpcResponse {
    let mut raw = json!({});
    if let Some(error) = error.rpc_error() {
        raw = RpcResponse::failure(&error).raw;
    }
    raw["refused"] = json!({"status": status, "error": error.to_string()});
    RpcResponse { raw }
}
