//! `subscriptions/listen` (2026-07-28): notifications of changes on a request that stays open.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{
    connection::Connection, engine::Engine, mcp::Mcp, notifications::Notifications,
    pending_requests::PendingResponse,
};
use crate::{
    base::lock,
    protocol::{ClientError, Notification, RpcRequest},
};

const METHOD: &str = "subscriptions/listen";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// A request that stays open and delivers notifications. Returned by [`Mcp::listen`]. Ends with [`Subscription::cancel`] or with
/// the connection, not when it is dropped.
#[must_use = "it is the only way to cancel it"]
pub struct Subscription {
    engine: Arc<Engine>,
    connection: Arc<Connection>,
    id: Value,
    accepted: Value,
    response: PendingResponse,
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription")
            .field("id", &self.id)
            .field("accepted", &self.accepted)
            .finish_non_exhaustive()
    }
}

impl Mcp {
    /// Subscribes to changes, such as `json!({"toolsListChanged": true})` or `json!({"resourceSubscriptions": ["note://1"]})`,
    /// and waits for `notifications/subscriptions/acknowledged`. For clients of `2026-07-28`; earlier servers notify unasked.
    ///
    /// # Errors
    /// The server rejects the request, does not know the method, or does not acknowledge in time.
    pub async fn listen(&self, notifications: Value) -> Result<Subscription, ClientError> {
        let engine = &self.engine;
        let all = &engine.recorder.notifications;
        let request = engine.numbered(METHOD, json!({"notifications": notifications}));
        let (id, first) = (request.id.clone(), all.len());
        let (connection, mut response) = engine.begin(&request).await?;
        let is_ours = |one: &Notification| {
            one.method == ACKNOWLEDGED
                && one.params["_meta"]
                    .get(SUBSCRIPTION_ID)
                    .is_none_or(|of| of == &id || of == &json!(id.to_string()))
        };
        let after = *lock(&engine.timeout);
        let acknowledged = all.wait_until(first, is_ours);
        let accepted = tokio::select! {
            one = tokio::time::timeout(after, acknowledged) => match one {
                Ok(one) => one.params["notifications"].clone(),
                Err(_) => {
                    connection.cancel(&id).await;
                    let hint = format!("; `{ACKNOWLEDGED}` did not come");
                    return Err(ClientError::TimedOut { method: request.method, after, hint });
                }
            },
            early = &mut response => {
                let answer = early?.into_result(METHOD)?;
                return Err(ClientError::Shape {
                    method: request.method,
                    problem: format!("it came before `{ACKNOWLEDGED}`"),
                    answer: answer.to_string(),
                });
            }
        };
        Ok(Subscription { engine: engine.clone(), connection, id, accepted, response })
    }
}

impl Subscription {
    /// The id of the subscription, which is that of the request.
    pub fn id(&self) -> &Value {
        &self.id
    }

    /// The notifications the server agreed to send; may be fewer than requested.
    pub fn accepted(&self) -> &Value {
        &self.accepted
    }

    /// The notifications of this subscription, oldest first.
    pub fn notifications(&self) -> Vec<Notification> {
        let all = self.all().all().into_iter();
        all.filter(|one| one.method != ACKNOWLEDGED && one.params["_meta"][SUBSCRIPTION_ID] == self.id)
            .collect()
    }

    /// Waits for a notification of `method`, counting earlier ones.
    ///
    /// # Errors
    /// None arrived within `timeout`.
    pub async fn wait_for(&self, method: &str, timeout: Duration) -> Result<Notification, ClientError> {
        let is_ours =
            |one: &Notification| one.method == method && one.params["_meta"][SUBSCRIPTION_ID] == self.id;
        let found = self.all().wait_until(0, is_ours);
        tokio::time::timeout(timeout, found).await.map_err(|_| ClientError::TimedOut {
            method: method.to_owned(),
            after: timeout,
            hint: format!("; subscription {} brought {:?}", self.id, self.methods()),
        })
    }

    fn all(&self) -> &Notifications {
        &self.engine.recorder.notifications
    }

    fn methods(&self) -> Vec<String> {
        self.notifications().into_iter().map(|one| one.method).collect()
    }

    /// Waits until the server ends the subscription, and returns the result of the request.
    ///
    /// # Errors
    /// The server did not end it within `timeout`, or the connection ended.
    pub async fn ended(self, timeout: Duration) -> Result<Value, ClientError> {
        match tokio::time::timeout(timeout, self.response).await {
            Ok(response) => {
                let (request, response) = (RpcRequest::new(METHOD, json!({})).id(self.id), response?);
                self.engine.recorder.shapes.answer(&request, &response)?;
                response.into_result(METHOD)
            }
            Err(_) => Err(ClientError::TimedOut {
                method: "the end of subscriptions/listen".into(),
                after: timeout,
                hint: String::new(),
            }),
        }
    }

    /// Cancels the subscription: over HTTP by closing its stream, otherwise with `notifications/cancelled`.
    pub async fn cancel(self) {
        self.connection.cancel(&self.id).await;
    }
}
