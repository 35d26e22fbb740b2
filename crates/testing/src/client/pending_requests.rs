//! Requests that wait for their response, and abandoned ones: a response to an abandoned request is late, not wrong.

use std::{
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use serde_json::Value;
use tokio::sync::oneshot;

use crate::{
    base::lock,
    protocol::{ClientError, RpcResponse},
};

pub(super) type Response = Result<RpcResponse, ClientError>;

/// Limit of remembered abandoned requests; beyond it the oldest are forgotten.
const MAX_ABANDONED: usize = 1024;

/// The requests of one connection that wait for their response.
#[derive(Default)]
pub(super) struct PendingRequests {
    requests: Mutex<Requests>,
}

#[derive(Default)]
struct Requests {
    open: HashMap<String, oneshot::Sender<Response>>,
    /// Ids of abandoned requests, oldest first. Their response may be on its way: a server may finish a request before it
    /// receives the cancellation (2025-11-25, cancellation, "Timing considerations").
    abandoned: VecDeque<String>,
    /// The reason if the connection has ended.
    closed: Option<String>,
}

/// The fate of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// The response to a pending request.
    Delivered,
    /// The first response to an abandoned request: timed out, cancelled or dropped.
    Late,
    /// A response to no request, or a second response.
    Unexpected,
}

impl PendingRequests {
    /// Registers a request, before it is sent.
    pub(super) fn register(self: &Arc<Self>, id: &Value) -> PendingResponse {
        let (sender, response) = oneshot::channel();
        let id = id.to_string();
        lock(&self.requests).open.insert(id.clone(), sender);
        PendingResponse { requests: self.clone(), id, response }
    }

    /// Hands a response, or the failure to get one, to the request that waits for it.
    pub(super) fn deliver(&self, id: &Value, response: Response) -> Delivery {
        let id = id.to_string();
        let mut requests = lock(&self.requests);
        if let Some(sender) = requests.open.remove(&id) {
            return match sender.send(response) {
                Ok(()) => Delivery::Delivered,
                // The receiver was dropped in this moment.
                Err(_) => Delivery::Late,
            };
        }
        match requests.abandoned.iter().position(|one| *one == id) {
            Some(at) => {
                requests.abandoned.remove(at);
                Delivery::Late
            }
            None => Delivery::Unexpected,
        }
    }

    /// Fails all pending requests: the connection has ended.
    pub(super) fn close(&self, reason: &str) {
        let mut requests = lock(&self.requests);
        requests.closed = Some(reason.to_owned());
        for (_, sender) in requests.open.drain() {
            let _ = sender.send(Err(ClientError::Closed(reason.to_owned())));
        }
    }

    /// The reason if the connection has ended.
    pub(super) fn closed(&self) -> Option<String> {
        lock(&self.requests).closed.clone()
    }
}

/// The response to one request, to be awaited. Dropping it abandons the request.
pub(super) struct PendingResponse {
    requests: Arc<PendingRequests>,
    id: String,
    response: oneshot::Receiver<Response>,
}

impl PendingResponse {
    /// Forgets the request, so that a response to it is unexpected.
    pub(super) fn withdraw(&mut self) {
        self.close(&mut lock(&self.requests.clone().requests));
    }

    /// Closes the request and returns true if it was open. Another request with the same id stays open.
    fn close(&mut self, requests: &mut Requests) -> bool {
        self.response.close();
        let is_ours = requests.open.get(&self.id).is_some_and(oneshot::Sender::is_closed);
        if is_ours {
            requests.open.remove(&self.id);
        }
        is_ours
    }
}

impl Future for PendingResponse {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response> {
        let ended = || Err(ClientError::Closed("the connection ended".into()));
        Pin::new(&mut self.response).poll(context).map(|response| response.unwrap_or_else(|_| ended()))
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        let pending = self.requests.clone();
        let mut requests = lock(&pending.requests);
        if self.close(&mut requests) {
            requests.abandoned.push_back(std::mem::take(&mut self.id));
            while requests.abandoned.len() > MAX_ABANDONED {
                requests.abandoned.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn response() -> Response {
        Ok(RpcResponse { raw: json!({}) })
    }

    #[test]
    fn the_first_response_to_an_abandoned_request_is_late_and_the_second_is_unexpected() {
        let pending = Arc::new(PendingRequests::default());
        let response_to_1 = pending.register(&json!(1));
        assert_eq!(pending.deliver(&json!(1), response()), Delivery::Delivered);
        drop(response_to_1);
        assert_eq!(pending.deliver(&json!(1), response()), Delivery::Unexpected);
        drop(pending.register(&json!(2)));
        assert_eq!(
            pending.deliver(&json!("2"), response()),
            Delivery::Unexpected,
            "a string is a different id"
        );
        assert_eq!(pending.deliver(&json!(2), response()), Delivery::Late);
        assert_eq!(pending.deliver(&json!(2), response()), Delivery::Unexpected);
    }

    #[test]
    fn remembers_a_limited_number_of_abandoned_requests() {
        let pending = Arc::new(PendingRequests::default());
        for id in 0..=MAX_ABANDONED {
            drop(pending.register(&json!(id)));
        }
        let requests = lock(&pending.requests);
        assert_eq!((requests.open.len(), requests.abandoned.len()), (0, MAX_ABANDONED));
        drop(requests);
        assert_eq!(pending.deliver(&json!(0), response()), Delivery::Unexpected);
        assert_eq!(pending.deliver(&json!(1), response()), Delivery::Late);
    }

    #[test]
    fn abandoning_a_request_keeps_a_later_one_with_the_same_id_open() {
        let pending = Arc::new(PendingRequests::default());
        let earlier = pending.register(&json!("raw"));
        let mut later = pending.register(&json!("raw"));
        drop(earlier);
        assert_eq!(pending.deliver(&json!("raw"), response()), Delivery::Delivered);
        assert!(later.response.try_recv().is_ok());
    }

    #[test]
    fn a_withdrawn_request_has_no_late_response() {
        let pending = Arc::new(PendingRequests::default());
        let mut withdrawn = pending.register(&Value::Null);
        withdrawn.withdraw();
        drop(withdrawn);
        assert_eq!(pending.deliver(&Value::Null, response()), Delivery::Unexpected);
    }
}
