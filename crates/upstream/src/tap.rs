//! The transport that shows messages to the open calls.

use std::{borrow::Cow, future::Future, sync::Arc};

use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
    transport::Transport,
};

use crate::{handshake, open_calls::OpenCalls};

/// Longest id of a request of a server, in bytes: requests and their answers are kept for some time.
const LONGEST_REQUEST_ID: usize = 1024;

/// A transport whose messages pass by the open calls.
#[derive(Debug)]
pub(crate) struct Tap<T> {
    id: Arc<str>,
    inner: T,
    calls: Arc<OpenCalls>,
    /// A request of the server with too long an id was logged.
    warned: bool,
}

impl<T> Tap<T> {
    /// Messages of the app of this id over `inner` pass by `calls`.
    pub(crate) fn new(id: Arc<str>, inner: T, calls: Arc<OpenCalls>) -> Self {
        Self { id, inner, calls, warned: false }
    }

    /// Returns `true` if a message is a request whose id is too long for an answer. Logs the first.
    fn is_unanswerable(&mut self, message: &ServerJsonRpcMessage) -> bool {
        let JsonRpcMessage::Request(request) = message else { return false };
        if !matches!(&request.id, RequestId::String(id) if id.len() > LONGEST_REQUEST_ID) {
            return false;
        }
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(app.id = %self.id, limit_bytes = LONGEST_REQUEST_ID,
                "an app sent a request with too long an id; such requests are not answered");
        }
        true
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Tap<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        mut message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.calls.sent(&mut message);
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        // Nothing is awaited between the transport and the return: dropping this future loses no message.
        loop {
            let mut message = self.inner.receive().await?;
            if self.is_unanswerable(&message) {
                continue;
            }
            self.calls.settle(&mut message);
            handshake::shorten(&mut message);
            if !self.calls.received(&message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}
