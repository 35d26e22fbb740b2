//! `subscriptions/listen` (2026-07-28): being told of changes on a request that stays open.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{
    Mcp, Notification,
    engine::{Core, result_of},
    link::Link,
    waiting::Told,
};
use crate::ClientError;

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A request that stays open and brings notifications. Made by [`Mcp::listen`]; dropping it does not end it,
/// [`Subscription::cancel`] and the end of the connection do.
#[must_use = "it is the only way to cancel it"]
pub struct Subscription {
    core: Arc<Core>,
    link: Arc<Link>,
    id: Value,
    agreed: Value,
    answer: Told,
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription")
            .field("id", &self.id)
            .field("agreed", &self.agreed)
            .finish_non_exhaustive()
    }
}

impl Mcp {
    /// Asks to be told of changes, such as `json!({"toolsListChanged": true})` or
    /// `json!({"resourceSubscriptions": ["note://1"]})`, and waits until the server says what it will tell
    /// (`notifications/subscriptions/acknowledged`). For clients of `2026-07-28`; earlier servers tell unasked.
    ///
    /// # Errors
    /// The server refuses, does not know the method, or does not acknowledge in time.
    pub async fn listen(&self, notifications: Value) -> Result<Subscription, ClientError> {
        let core = &self.core;
        let request = core.numbered("subscriptions/listen", json!({"notifications": notifications}));
        let (id, seen) = (request.id.clone(), core.notifications.len());
        let (link, mut answer) = core.begin(&request).await?;
        let is_ours = |one: &Notification| {
            one.method == ACKNOWLEDGED
                && one.params["_meta"]
                    .get(SUBSCRIPTION)
                    .is_none_or(|of| of == &id || of == &json!(id.to_string()))
        };
        let after = *crate::lock(&core.timeout);
        let acknowledged = core.notifications.wait_until(seen, is_ours);
        let agreed = tokio::select! {
            one = tokio::time::timeout(after, acknowledged) => match one {
                Ok(one) => one.params["notifications"].clone(),
                Err(_) => {
                    link.cancel(&id).await;
                    let hint = format!("; `{ACKNOWLEDGED}` did not come");
                    return Err(ClientError::TimedOut { method: request.method, after, hint });
                }
            },
            answer = &mut answer => {
                let answer = result_of("subscriptions/listen", answer?)?;
                return Err(ClientError::Shape {
                    method: request.method,
                    problem: format!("it came before `{ACKNOWLEDGED}`"),
                    answer: answer.to_string(),
                });
            }
        };
        Ok(Subscription { core: core.clone(), link, id, agreed, answer })
    }
}

impl Subscription {
    /// Its id: that of the request.
    pub fn id(&self) -> &Value {
        &self.id
    }

    /// What the server said it will tell of; it may be less than what was asked for.
    pub fn agreed(&self) -> &Value {
        &self.agreed
    }

    /// The notifications it brought, oldest first.
    pub fn notifications(&self) -> Vec<Notification> {
        let all = self.core.notifications.all().into_iter();
        all.filter(|one| one.method != ACKNOWLEDGED && one.params["_meta"][SUBSCRIPTION] == self.id).collect()
    }

    /// Waits until it brought a notification of `method`, one that came before included.
    ///
    /// # Errors
    /// It did not within `timeout`.
    pub async fn wait_for(&self, method: &str, timeout: Duration) -> Result<Notification, ClientError> {
        let is_ours =
            |one: &Notification| one.method == method && one.params["_meta"][SUBSCRIPTION] == self.id;
        let found = self.core.notifications.wait_until(0, is_ours);
        tokio::time::timeout(timeout, found).await.map_err(|_| ClientError::TimedOut {
            method: method.to_owned(),
            after: timeout,
            hint: format!("; subscription {} brought {:?}", self.id, self.methods()),
        })
    }

    fn methods(&self) -> Vec<String> {
        self.notifications().into_iter().map(|one| one.method).collect()
    }

    /// Waits until the server ends it, and gives its last word.
    ///
    /// # Errors
    /// The server did not within `timeout`, or the connection ended.
    pub async fn ended(self, timeout: Duration) -> Result<Value, ClientError> {
        match tokio::time::timeout(timeout, self.answer).await {
            Ok(answer) => result_of("subscriptions/listen", answer?),
            Err(_) => Err(ClientError::TimedOut {
                method: "the end of subscriptions/listen".into(),
                after: timeout,
                hint: String::new(),
            }),
        }
    }

    /// Ends it: over HTTP by closing its stream, else with `notifications/cancelled`.
    pub async fn cancel(self) {
        self.link.cancel(&self.id).await;
    }
}
