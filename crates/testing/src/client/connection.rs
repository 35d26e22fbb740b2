//! One connection: a transport, the requests that wait for a response, and a task that sorts incoming messages.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinHandle};

use super::{
    logs::LogLevel,
    pending_requests::{Delivery, PendingRequests},
    recorder::{Recorder, UNEXPECTED_RESPONSE},
    transport::{Incoming, Outgoing, Transport},
};
use crate::{
    base::{lock, text::shorten},
    protocol::{ClientError, Notification, RpcRequest, RpcResponse},
};

/// Time to send a cancellation.
const CANCEL: Duration = Duration::from_secs(1);

pub(super) struct Connection {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) pending: Arc<PendingRequests>,
    receiving: JoinHandle<()>,
}

impl Connection {
    pub(super) fn new(
        transport: Arc<dyn Transport>,
        incoming: mpsc::UnboundedReceiver<Incoming>,
        recorder: Arc<Recorder>,
    ) -> Arc<Self> {
        let pending = Arc::new(PendingRequests::default());
        let receiver = Receiver { transport: transport.clone(), pending: pending.clone(), recorder };
        Arc::new(Self { transport, pending, receiving: tokio::spawn(receiver.run(incoming)) })
    }

    /// Cancels a request: by closing its stream if it has its own, otherwise with `notifications/cancelled`.
    pub(super) async fn cancel(&self, id: &Value) {
        if !self.transport.cancel(id) {
            let params = json!({"requestId": id, "reason": "the test waits no longer"});
            let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            // A server that reads nothing blocks the pipe.
            let sending = self.transport.send(Outgoing::message(&cancel));
            let _ = tokio::time::timeout(CANCEL, sending).await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.receiving.abort();
    }
}

/// Sorts incoming messages: responses to pending requests, requests to the handlers, everything else to the recorder.
struct Receiver {
    transport: Arc<dyn Transport>,
    pending: Arc<PendingRequests>,
    recorder: Arc<Recorder>,
}

impl Receiver {
    async fn run(self, mut incoming: mpsc::UnboundedReceiver<Incoming>) {
        while let Some(one) = incoming.recv().await {
            match one {
                Incoming::Message(message) => self.message(message),
                Incoming::NotJson(text) => {
                    let logs = &self.recorder.logs;
                    logs.add_own(LogLevel::Error, format!("the server sent text that is no JSON: {text}"));
                    let bytes = text.len();
                    if !lock(&self.recorder.not_json).push(text, bytes) {
                        self.recorder.note_full();
                    }
                }
                Incoming::Violation(violation) => self.recorder.shapes.add(violation),
                Incoming::NoResponse(id, reason) => {
                    self.pending.deliver(&id, Err(ClientError::Closed(reason)));
                }
                Incoming::Closed(reason) => self.pending.close(&reason),
            }
        }
        self.pending.close("the connection ended");
    }

    fn message(&self, message: Value) {
        let id = message.get("id").cloned();
        if message.get("method").is_some() {
            self.recorder.shapes.message(&message);
        }
        match (message["method"].as_str().map(str::to_owned), id) {
            (Some(method), Some(id)) => {
                self.request(RpcRequest::new(method, message["params"].clone()).id(id))
            }
            (Some(method), None) => {
                let params = message["params"].clone();
                let is_logged = method != "notifications/message" || self.recorder.logs.add_server(&params);
                let notification = Notification { method, params, timestamp: SystemTime::now() };
                if !self.recorder.notifications.push(notification) || !is_logged {
                    self.recorder.note_full();
                }
            }
            (None, id) => self.response(&id.unwrap_or(Value::Null), message),
        }
    }

    fn request(&self, request: RpcRequest) {
        if !self.recorder.requests.push(request.clone()) {
            self.recorder.note_full();
        }
        let (transport, handlers) = (self.transport.clone(), lock(&self.recorder.handlers).clone());
        tokio::spawn(async move {
            let RpcRequest { id, method, params } = request;
            let response = match handlers.answer(&method, params).await {
                Ok(result) => RpcResponse::success(result),
                Err(error) => RpcResponse::failure(&error),
            };
            let _ = transport.send(Outgoing::message(&response.with_id(&id).raw)).await;
        });
    }

    fn response(&self, id: &Value, message: Value) {
        let text = shorten(&message.to_string(), 300);
        let logs = &self.recorder.logs;
        match self.pending.deliver(id, Ok(RpcResponse { raw: message })) {
            Delivery::Delivered => {}
            Delivery::Late => logs.add_own(LogLevel::Debug, format!("a late answer: {text}")),
            Delivery::Unexpected => {
                logs.add_own(LogLevel::Warning, format!("{UNEXPECTED_RESPONSE}: {text}"));
            }
        }
    }
}
