//! What the server may ask the client: elicitation, sampling, roots.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::records::RpcError;

/// How a question is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Elicited {
    /// With this content.
    Accept(Value),
    /// The user says no.
    Decline,
    /// The user closed the question.
    Cancel,
}

impl From<Elicited> for Value {
    fn from(answer: Elicited) -> Self {
        match answer {
            Elicited::Accept(content) => json!({"action": "accept", "content": content}),
            Elicited::Decline => json!({"action": "decline"}),
            Elicited::Cancel => json!({"action": "cancel"}),
        }
    }
}

pub(super) type Handler<T> = Arc<dyn Fn(Value) -> BoxFuture<'static, T> + Send + Sync>;

#[derive(Clone, Default)]
pub(super) struct Handlers {
    pub(super) elicitation: Option<Handler<Elicited>>,
    pub(super) sampling: Option<Handler<Value>>,
    pub(super) roots: Vec<Value>,
}

impl Handlers {
    /// Answers one request of the server. A handler that panics cancels the question.
    pub(super) async fn answer(self, method: &str, params: Value) -> Result<Value, RpcError> {
        match method {
            "ping" => Ok(json!({})),
            "roots/list" => Ok(json!({"roots": self.roots})),
            "elicitation/create" => match self.elicitation {
                None => Ok(Elicited::Decline.into()),
                Some(handler) => {
                    let answer = tokio::spawn(async move { handler(params).await }).await;
                    Ok(answer.unwrap_or(Elicited::Cancel).into())
                }
            },
            "sampling/createMessage" => match self.sampling {
                None => Err(RpcError::new(
                    -32601,
                    "the test has no sampling handler; set one with `mcp.on_sampling`",
                )),
                Some(handler) => tokio::spawn(async move { handler(params).await }).await.map_err(|error| {
                    RpcError::new(-32603, format!("the sampling handler panicked: {error}"))
                }),
            },
            other => Err(RpcError::new(-32601, format!("Method not found: {other}"))),
        }
    }
}
