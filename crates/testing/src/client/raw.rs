//! Messages as they are.

use std::sync::Arc;

use serde_json::Value;

use super::engine::Core;
use crate::{ClientError, mock::RpcRequest, records::RpcResponse};

/// Messages as they are. Made by [`Mcp::raw`](super::Mcp::raw).
#[derive(Clone, Copy)]
pub struct Raw<'a> {
    pub(super) core: &'a Arc<Core>,
}

impl std::fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Raw")
    }
}

impl Raw<'_> {
    /// Sends a request as it is: nothing is added to its `params`. Mocks and interceptors see it.
    ///
    /// # Errors
    /// There is no answer. A JSON-RPC error is an answer, also one that came with HTTP 401 or 403.
    pub async fn request(self, request: RpcRequest) -> Result<RpcResponse, ClientError> {
        let id = request.id.clone();
        as_it_came(self.exchange(request).await, &id)
    }

    /// The same; a 401 or 403 is an error, whatever came with it.
    pub(crate) async fn exchange(self, request: RpcRequest) -> Result<RpcResponse, ClientError> {
        self.core.exchange(request, false).await
    }

    /// Sends a notification. `params` may be null.
    ///
    /// # Errors
    /// It cannot be sent.
    pub async fn notify(self, method: &str, params: Value) -> Result<(), ClientError> {
        self.core.notify(method, params).await
    }

    /// Sends text as it is, JSON or not, past mocks and interceptors. The answer is the one to the id in the text, or one
    /// without an id.
    ///
    /// # Errors
    /// There is no answer, or the answer is no JSON-RPC message.
    pub async fn send_raw(self, text: &str) -> Result<RpcResponse, ClientError> {
        as_it_came(self.send(text).await, &Value::Null)
    }

    /// The same; a 401 or 403 is an error, whatever came with it.
    pub(crate) async fn send(self, text: &str) -> Result<RpcResponse, ClientError> {
        self.core.send_raw(text).await
    }

    /// What `params._meta` of every request holds from 2026-07-28: version, capabilities, client.
    pub fn meta(self) -> Value {
        self.core.meta()
    }
}

/// The JSON-RPC error that came with a 401 or 403, if one did; one without an id belongs to the request.
fn as_it_came(answer: Result<RpcResponse, ClientError>, id: &Value) -> Result<RpcResponse, ClientError> {
    let came = match &answer {
        Err(ClientError::Refused { body, .. }) => RpcResponse::error_in(body),
        _ => None,
    };
    match came {
        Some(error) if error.id().is_null() => Ok(error.with_id(id)),
        Some(error) => Ok(error),
        None => answer,
    }
}
