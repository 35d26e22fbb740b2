//! Messages exactly as a test writes them.

use std::sync::Arc;

use serde_json::Value;

use super::engine::Engine;
use crate::protocol::{ClientError, RpcRequest, RpcResponse};

/// Messages exactly as a test writes them. Returned by [`Mcp::raw`](super::Mcp::raw).
#[derive(Debug, Clone, Copy)]
pub struct Raw<'a> {
    pub(super) engine: &'a Arc<Engine>,
}

impl Raw<'_> {
    /// Sends a request without additions to its `params`. Mocks and interceptors apply.
    ///
    /// # Errors
    /// There is no response. A JSON-RPC error is a response, also in the body of HTTP 401 or 403.
    pub async fn request(self, request: RpcRequest) -> Result<RpcResponse, ClientError> {
        let id = request.id.clone();
        rejection_as_response(self.exchange(request).await, &id)
    }

    /// As [`Raw::request`], but HTTP 401 and 403 are always errors.
    pub(crate) async fn exchange(self, request: RpcRequest) -> Result<RpcResponse, ClientError> {
        self.engine.exchange(request, false).await
    }

    /// Sends a notification. `params` may be null.
    ///
    /// # Errors
    /// The notification cannot be sent.
    pub async fn notify(self, method: &str, params: Value) -> Result<(), ClientError> {
        self.engine.notify(method, params).await
    }

    /// Sends text, JSON or not, without mocks and interceptors. Returns the response to the id in the text, or one without an
    /// id.
    ///
    /// # Errors
    /// There is no response, or it is not a JSON-RPC message.
    pub async fn send_raw(self, text: &str) -> Result<RpcResponse, ClientError> {
        rejection_as_response(self.send(text).await, &Value::Null)
    }

    /// As [`Raw::send_raw`], but HTTP 401 and 403 are always errors.
    pub(crate) async fn send(self, text: &str) -> Result<RpcResponse, ClientError> {
        self.engine.send_raw(text).await
    }

    /// `params._meta` of every request from 2026-07-28 on: version, capabilities, client.
    pub fn meta(self) -> Value {
        self.engine.meta()
    }
}

/// Turns HTTP 401 or 403 with a JSON-RPC error into that error; one without an id gets the id of the request.
fn rejection_as_response(
    response: Result<RpcResponse, ClientError>,
    id: &Value,
) -> Result<RpcResponse, ClientError> {
    let error = match &response {
        Err(ClientError::Refused { body, .. }) => RpcResponse::error_in(body),
        _ => None,
    };
    match error {
        Some(error) if error.id().is_null() => Ok(error.with_id(id)),
        Some(error) => Ok(error),
        None => response,
    }
}
