//! Brings the questions of a run to its client, and what the client sends back to the run.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gatewright_core::{
    CannotAsk, Era, Invoker, Principal, ask_client, can_answer,
    rmcp::{
        RoleServer,
        model::{InputRequests, InputResponses},
        service::RequestContext,
    },
};
use gatewright_executions::ExecutionId;
use serde::{Deserialize, Serialize};

/// The outcome of questions.
#[derive(Debug)]
pub(crate) enum Asked {
    /// The client answered.
    Answered(InputResponses),
    /// The client is asked by the result of its request, and answers in another request.
    InResult,
    /// This client cannot be asked, or gave no answer.
    Cannot(CannotAsk),
}

/// Asks the client of `context`, where it takes requests, for `longest`.
pub(crate) async fn ask(
    context: &RequestContext<RoleServer>,
    requests: &InputRequests,
    longest: Duration,
) -> Asked {
    if Era::of(context).is_stateless() {
        return match can_answer(requests, &context.client_capabilities().unwrap_or_default()) {
            Ok(()) => Asked::InResult,
            Err(cannot) => Asked::Cannot(cannot),
        };
    }
    match ask_client(context, requests.clone(), longest).await {
        Ok(responses) => Asked::Answered(responses),
        Err(cannot) => Asked::Cannot(cannot),
    }
}

/// The right to go on with an execution once, with its script, before it expires: what a client keeps as `requestState`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ticket {
    id: ExecutionId,
    /// Times that the execution had been resumed.
    turn: u32,
    /// Seconds since 1970-01-01 UTC.
    until: u64,
}

impl Ticket {
    pub(crate) fn new(id: ExecutionId, turn: u32, expires_ms: u64) -> Self {
        Self { id, turn, until: expires_ms / 1_000 }
    }

    /// Seals it for `principal` and `script`.
    pub(crate) fn seal(&self, invoker: &Invoker, principal: &Principal, script: &str) -> Option<String> {
        Some(invoker.seal(principal, &object(script), &serde_json::to_string(self).ok()?))
    }

    /// The ticket that `sealed` is, if it was given to `principal` for `script` and has not expired.
    pub(crate) fn open(invoker: &Invoker, principal: &Principal, script: &str, sealed: &str) -> Option<Self> {
        let ticket: Self = serde_json::from_str(&invoker.unseal(principal, &object(script), sealed)?).ok()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        (now < ticket.until).then_some(ticket)
    }

    pub(crate) fn id(&self) -> ExecutionId {
        self.id
    }

    pub(crate) fn turn(&self) -> u32 {
        self.turn
    }
}

/// The object that a ticket is sealed for: one script.
fn object(script: &str) -> String {
    format!("script\n{script}")
}
