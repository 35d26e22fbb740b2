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
    /// There is no answer. A JSON-RPC error is an answer.
    pub async fn request(self, request: RpcRequest) -> Result<RpcResponse, ClientError> {
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
        self.core.send_raw(text).await
    }

    /// What `params._meta` of every request holds from 2026-07-28: version, capabilities, client.
    pub fn meta(self) -> Value {
        self.core.meta()
    }
}
