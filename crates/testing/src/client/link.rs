//! One connection: where what comes goes. Who waits for which answer is in `waiting`.

use std::{
    sync::{Arc, Weak},
    time::SystemTime,
};

use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinHandle};

use super::{
    LogLevel, Notification,
    engine::Core,
    waiting::{Settled, Waiting},
};
use crate::{
    ClientError, lock,
    mock::RpcRequest,
    records::RpcResponse,
    shorten,
    wire::{Incoming, Outgoing, Wire},
};

/// How the client's log begins to tell of an answer to no open request: a second one, or one with another id.
pub(super) const UNCLAIMED: &str = "an answer nobody waits for";

/// One connection.
pub(super) struct Link {
    pub(super) wire: Arc<dyn Wire>,
    pub(super) waiting: Arc<Waiting>,
    pub(super) pump: JoinHandle<()>,
}

impl Link {
    /// Tells the server that a request is given up: by the end of its stream where it has one of its own, else with
    /// `notifications/cancelled`.
    pub(super) async fn cancel(&self, id: &Value) {
        if !self.wire.cancel(id) {
            let params = json!({"requestId": id, "reason": "the test waits no longer"});
            let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            let _ = self.wire.send(Outgoing::message(&cancel)).await;
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.pump.abort();
    }
}

/// Sorts what comes: answers to those who wait, questions to the handlers, the rest to the lists.
pub(super) async fn pump(
    core: Weak<Core>,
    mut incoming: mpsc::UnboundedReceiver<Incoming>,
    wire: Arc<dyn Wire>,
    waiting: Arc<Waiting>,
) {
    while let Some(one) = incoming.recv().await {
        let Some(core) = core.upgrade() else { return };
        let message = match one {
            Incoming::Message(message) => message,
            Incoming::Garbage(text) => {
                core.logs.own(LogLevel::Error, format!("the server sent text that is no JSON: {text}"));
                lock(&core.garbage).push(text);
                continue;
            }
            Incoming::Unanswered(id, why) => {
                waiting.settle(&id, Err(ClientError::Closed(why)));
                continue;
            }
            Incoming::Closed(why) => {
                waiting.close(&why);
                continue;
            }
        };
        let id = message.get("id").cloned();
        match (message.get("method").and_then(Value::as_str).map(str::to_owned), id) {
            (Some(method), Some(id)) => {
                let (wire, handlers) = (wire.clone(), lock(&core.handlers).clone());
                let params = message["params"].clone();
                let question = RpcRequest::new(method.as_str(), params.clone()).id(id.clone());
                lock(&core.questions).push(question);
                tokio::spawn(async move {
                    let answer = match handlers.answer(&method, params).await {
                        Ok(result) => RpcResponse::success(result),
                        Err(error) => RpcResponse::failure(&error),
                    };
                    let _ = wire.send(Outgoing::message(&answer.with_id(&id).raw)).await;
                });
            }
            (Some(method), None) => {
                let params = message["params"].clone();
                if method == "notifications/message" {
                    core.logs.of_server(&params);
                }
                core.notifications.push(Notification { method, params, timestamp: SystemTime::now() });
            }
            (None, id) => {
                let id = id.unwrap_or(Value::Null);
                let text = shorten(&message.to_string(), 300);
                match waiting.settle(&id, Ok(RpcResponse { raw: message })) {
                    Settled::Told => {}
                    Settled::Late => core.logs.own(LogLevel::Debug, format!("a late answer: {text}")),
                    Settled::Unclaimed => core.logs.own(LogLevel::Warning, format!("{UNCLAIMED}: {text}")),
                }
            }
        }
    }
    waiting.close("the connection ended");
}
