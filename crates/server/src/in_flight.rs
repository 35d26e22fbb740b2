//! Requests of one session that are not answered yet.
//!
//! A second request with the id of one of them is refused: their answers could not be told apart (MCP 2025-11-25, basic: the id must
//! not have been used before in the session).

use std::{
    borrow::Cow,
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gatewright_core::shed_unused;
use rmcp::{
    ErrorData, RoleServer,
    model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};

/// Characters of an id in an error, at most.
const MOST_SHOWN: usize = 64;

/// The ids of a session's open requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight(Arc<Mutex<HashSet<RequestId>>>);

impl InFlight {
    fn ids(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the request that is `received`, or forgets the one that it cancels.
    ///
    /// # Errors
    /// A request with this id is open.
    pub(crate) fn receive(&self, received: &ClientJsonRpcMessage) -> Result<(), ErrorData> {
        match received {
            JsonRpcMessage::Request(request) if !self.ids().insert(request.id.clone()) => {
                let id: String = request.id.to_string().chars().take(MOST_SHOWN).collect();
                let message = format!(
                    "Invalid Request: a request with the id {id} is not answered yet; give each request an id of its own"
                );
                return Err(ErrorData::invalid_request(message, None));
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.ids().remove(id);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Forgets the request that `sent` answers.
    pub(crate) fn send(&self, sent: &ServerJsonRpcMessage) {
        let answered = match sent {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = answered {
            self.ids().remove(id);
        }
    }
}

/// A transport that forgets the requests it sends answers to, and what a session need not keep of its `initialize`.
pub(crate) struct Tracked<T> {
    pub(crate) inner: T,
    pub(crate) in_flight: InFlight,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Tracked<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.in_flight.send(&message);
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let mut message = self.inner.receive().await?;
        shed_unused(&mut message);
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
