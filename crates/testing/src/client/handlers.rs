//! Requests of the server to the client: elicitation, sampling, roots.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::protocol::RpcError;

/// The answer to `elicitation/create`.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitResult {
    /// The user accepts with this content.
    Accept(Value),
    /// The user declines.
    Decline,
    /// The user closes the dialog.
    Cancel,
}

impl From<ElicitResult> for Value {
    fn from(answer: ElicitResult) -> Self {
        match answer {
            ElicitResult::Accept(content) => json!({"action": "accept", "content": content}),
            ElicitResult::Decline => json!({"action": "decline"}),
            ElicitResult::Cancel => json!({"action": "cancel"}),
        }
    }
}

pub(super) type Handler<T> = Arc<dyn Fn(Value) -> BoxFuture<'static, T> + Send + Sync>;

/// Answers some of the requests of a server.
#[cfg(feature = "suites")]
type AnswerRule = Arc<dyn Fn(&str, &Value) -> Option<Result<Value, RpcError>> + Send + Sync>;

#[derive(Clone, Default)]
pub(super) struct Handlers {
    #[cfg(feature = "suites")]
    pub(super) rule: Option<AnswerRule>,
    pub(super) elicitation: Option<Handler<ElicitResult>>,
    pub(super) sampling: Option<Handler<Value>>,
    pub(super) roots: Vec<Value>,
}

impl Handlers {
    /// Answers a request of the server. A panic in an elicitation handler cancels the elicitation.
    pub(super) async fn answer(self, method: &str, params: Value) -> Result<Value, RpcError> {
        #[cfg(feature = "suites")]
        if let Some(answer) = self.rule.as_ref().and_then(|rule| rule(method, &params)) {
            return answer;
        }
        match method {
            "ping" => Ok(json!({})),
            "roots/list" => Ok(json!({"roots": self.roots})),
            "elicitation/create" => match self.elicitation {
                None => Ok(ElicitResult::Decline.into()),
                Some(handler) => {
                    let answer = tokio::spawn(async move { handler(params).await }).await;
                    Ok(answer.unwrap_or(ElicitResult::Cancel).into())
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
