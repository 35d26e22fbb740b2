//! Requests of one session that are not answered yet.
//!
//! A second request with the id of one of them is refused: their answers could not be told apart (MCP 2025-11-25, basic: the id must
//! not have been used before in the session).

use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gatewright_core::{Share, shed_unused};
use rmcp::{
    ErrorData, RoleServer,
    model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};

use crate::kept_messages::KeptMessages;

/// Characters of an id in an error, at most.
const MOST_SHOWN: usize = 64;

/// A place for a request over HTTP.
type Place = Arc<Share>;

/// The ids of a session's open requests, with the places that they have until they are answered, whether their clients wait or not.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight(Arc<Mutex<HashMap<RequestId, Option<Place>>>>);

impl InFlight {
    fn ids(&self) -> MutexGuard<'_, HashMap<RequestId, Option<Place>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the request that is `received`, which has a `place` over HTTP, or forgets the one that it cancels.
    ///
    /// # Errors
    /// A request with this id is open.
    pub(crate) fn receive(
        &self,
        received: &ClientJsonRpcMessage,
        place: Option<Place>,
    ) -> Result<(), ErrorData> {
        match received {
            JsonRpcMessage::Request(request) => {
                if let Entry::Vacant(new) = self.ids().entry(request.id.clone()) {
                    new.insert(place);
                    return Ok(());
                }
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
                    self.forget(id);
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
            self.forget(id);
        }
    }

    /// Returns `true` if every request is answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.ids().is_empty()
    }

    /// The requests that are not answered.
    pub(crate) fn open(&self) -> Vec<RequestId> {
        self.ids().keys().cloned().collect()
    }

    /// Forgets a request.
    pub(crate) fn forget(&self, id: &RequestId) {
        self.ids().remove(id);
    }
}

/// A transport that forgets the requests it sends answers to, and what a session need not keep of its `initialize`. Log messages that find
/// no room are not sent.
pub(crate) struct Tracked<T> {
    pub(crate) inner: T,
    pub(crate) in_flight: InFlight,
    /// Room for the messages that the transport keeps, if it keeps any.
    pub(crate) kept: Option<KeptMessages>,
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
        let has_room = self.kept.as_mut().is_none_or(|kept| kept.has_room(&message));
        let sending = has_room.then(|| self.inner.send(message));
        async move {
            match sending {
                Some(sending) => sending.await,
                None => Ok(()),
            }
        }
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
