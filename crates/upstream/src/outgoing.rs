//! Bounds on what the gateway sends to a server over HTTP without being waited for: answers to the server's own requests, and
//! cancellations.
//!
//! A server may ask without end and leave the POSTs of the answers open, and callers may leave a server that accepts nothing. What does not
//! fit is dropped. Servers over stdio have a bound of their own, in `stdio::outbox`.

use std::{borrow::Cow, future::Future, sync::Arc, time::Duration};

use gatewright_core::measure;
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Messages of one kind that may be under way to one server, those that wait included.
const MOST: usize = 256;
/// Bytes of memory that the same take. A message that takes more needs all of them.
const MOST_BYTES: usize = 64 << 20;
/// Bytes that a message counts for besides its own.
const OVERHEAD: usize = 256;
/// Longest time for a message to wait and be accepted.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(30);

/// A transport to a server over HTTP whose answers and cancellations are bounded.
#[derive(Debug)]
pub(crate) struct Bounded<T> {
    id: Arc<str>,
    inner: T,
    answers: Lane,
    cancellations: Lane,
}

impl<T> Bounded<T> {
    /// Bounds what goes to the app of this id over `inner`.
    pub(crate) fn new(id: Arc<str>, inner: T) -> Self {
        Self {
            id,
            inner,
            answers: Lane::new(
                "an app asks more than it takes answers: some answers to its requests are dropped",
            ),
            cancellations: Lane::new("an app does not take cancellations of calls: some are dropped"),
        }
    }

    /// The lane of a message, unless somebody waits for what the server answers to it.
    fn lane(&mut self, message: &ClientJsonRpcMessage) -> Option<&mut Lane> {
        match message {
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Some(&mut self.answers),
            _ if cancelled(message).is_some() => Some(&mut self.cancellations),
            _ => None,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Bounded<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let id = self.id.clone();
        let (is_bounded, room) = match self.lane(&message) {
            Some(lane) => (true, lane.room(&id, size(&message))),
            None => (false, None),
        };
        // The transport ends a cancelled request here, whether or not the server hears of it.
        let sending = self.inner.send(message);
        let sending = (!is_bounded || room.is_some()).then_some(sending);
        async move {
            let Some(sending) = sending else { return Ok(()) };
            let Some(_room) = room else { return sending.await };
            // Nobody waits for the outcome.
            tokio::time::timeout(ACCEPTED_WITHIN, sending).await.unwrap_or(Ok(()))
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.inner.receive().await
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

/// Room for messages of one kind.
#[derive(Debug)]
struct Lane {
    messages: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    /// The line for the log when a message is dropped, until it was written.
    warning: Option<&'static str>,
}

/// Room for a message until it was sent.
type Room = (OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Lane {
    fn new(warning: &'static str) -> Self {
        let (messages, bytes) = (Semaphore::new(MOST), Semaphore::new(MOST_BYTES));
        Self { messages: Arc::new(messages), bytes: Arc::new(bytes), warning: Some(warning) }
    }

    /// Takes room for a message of the app `id`. Logs the first message that finds none.
    fn room(&mut self, id: &str, bytes: usize) -> Option<Room> {
        let room = self.try_room(bytes);
        if room.is_none()
            && let Some(warning) = self.warning.take()
        {
            tracing::warn!(app.id = %id, "{warning}");
        }
        room
    }

    fn try_room(&self, bytes: usize) -> Option<Room> {
        let bytes = u32::try_from(bytes.saturating_add(OVERHEAD).min(MOST_BYTES)).ok()?;
        let message = self.messages.clone().try_acquire_owned().ok()?;
        Some((message, self.bytes.clone().try_acquire_many_owned(bytes).ok()?))
    }
}

/// The request that a message cancels.
pub(crate) fn cancelled(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Notification(notification) => match &notification.notification {
            ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.as_ref(),
            _ => None,
        },
        _ => None,
    }
}

/// Bytes of memory that the values of a message take.
fn size(message: &ClientJsonRpcMessage) -> usize {
    let text = serde_json::to_vec(message).unwrap_or_default();
    let measured = measure(&text, usize::MAX).map_or(u64::MAX, |measured| measured.bytes);
    usize::try_from(measured).unwrap_or(MOST_BYTES)
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{Mutex, PoisonError},
    };

    use futures::{FutureExt as _, future::BoxFuture};
    use serde_json::{Value, json};

    use super::*;

    /// A transport that accepts nothing, and counts what it is given.
    #[derive(Debug, Clone, Default)]
    struct Stuck(Arc<Mutex<usize>>);

    impl Transport<RoleClient> for Stuck {
        type Error = Infallible;

        fn send(
            &mut self,
            _: ClientJsonRpcMessage,
        ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            std::future::pending()
        }

        async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
            std::future::pending().await
        }

        async fn close(&mut self) -> Result<(), Infallible> {
            Ok(())
        }
    }

    type Sending = BoxFuture<'static, Result<(), Infallible>>;

    fn message(value: Value) -> ClientJsonRpcMessage {
        serde_json::from_value(value).unwrap()
    }

    fn answer(bytes: usize) -> ClientJsonRpcMessage {
        message(json!({"jsonrpc": "2.0", "id": "x".repeat(bytes), "result": {}}))
    }

    fn cancel(id: usize) -> ClientJsonRpcMessage {
        message(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
    }

    /// Sends messages, and returns those that wait.
    fn waiting(
        transport: &mut Bounded<Stuck>,
        messages: impl Iterator<Item = ClientJsonRpcMessage>,
    ) -> Vec<Sending> {
        let mut sending: Vec<Sending> = messages.map(|message| transport.send(message).boxed()).collect();
        sending.retain_mut(|sending| sending.now_or_never().is_none());
        sending
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_are_not_accepted_are_bounded_in_number_and_time() {
        let mut transport = Bounded::new("a".into(), Stuck::default());
        let waits = waiting(&mut transport, (0..1_000).map(|_| answer(1)));
        assert_eq!(waits.len(), MOST);
        assert_eq!(waiting(&mut transport, std::iter::once(answer(1))).len(), 0);
        let cancellations = waiting(&mut transport, (0..1_000).map(cancel));
        assert_eq!(cancellations.len(), MOST, "cancellations have room of their own");
        for sent in futures::future::join_all(waits).await {
            assert_eq!(sent, Ok(()));
        }
        assert_eq!(waiting(&mut transport, std::iter::once(answer(1))).len(), 1);
    }

    #[tokio::test]
    async fn answers_that_are_not_accepted_are_bounded_in_bytes_with_the_ids_in_them() {
        let mut transport = Bounded::new("a".into(), Stuck::default());
        let waits = waiting(&mut transport, (0..200).map(|_| answer(1 << 20)));
        assert_eq!(waits.len(), 63);
        drop(waits);
        assert_eq!(waiting(&mut transport, std::iter::once(answer(MOST_BYTES + 1))).len(), 1, "alone");
    }

    #[tokio::test]
    async fn the_transport_hears_of_a_cancellation_that_is_dropped_and_requests_are_not_bounded() {
        let stuck = Stuck::default();
        let mut transport = Bounded::new("a".into(), stuck.clone());
        let waits = waiting(&mut transport, (0..1_000).map(cancel));
        assert_eq!((waits.len(), *stuck.0.lock().unwrap()), (MOST, 1_000));
        let ping = |id: u32| message(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        assert_eq!(waiting(&mut transport, (0..1_000).map(ping)).len(), 1_000);
    }
}
