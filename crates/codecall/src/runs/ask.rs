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

/// A question of a call: the index of the call in its run, and the times that it has asked.
pub(crate) type Round = (u32, usize);

/// The right to answer questions of an execution before it expires: what a client keeps as `requestState`. Each question is answered once, whichever
/// ticket names it: the journal decides.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ticket {
    id: ExecutionId,
    /// Digest of the request that got it. A retry has the same.
    request: String,
    asks: Vec<Round>,
    /// Seconds since 1970-01-01 UTC.
    until: u64,
}

/// The object that tickets are sealed for. No tool has this name.
const OBJECT: &str = "questions of a script\n";

impl Ticket {
    pub(crate) fn new(id: ExecutionId, request: &str, asks: Vec<Round>, expires_ms: u64) -> Self {
        Self { id, request: request.to_owned(), asks, until: expires_ms / 1_000 }
    }

    /// Seals it for `principal`.
    pub(crate) fn seal(&self, invoker: &Invoker, principal: &Principal) -> Option<String> {
        Some(invoker.seal(principal, OBJECT, &serde_json::to_string(self).ok()?))
    }

    /// The ticket that `sealed` is, if it was given to `principal` and has not expired.
    pub(crate) fn open(invoker: &Invoker, principal: &Principal, sealed: &str) -> Option<Self> {
        // It may name an instance that holds a call.
        let sealed = sealed.split_once('.').map_or(sealed, |(sealed, _)| sealed);
        let ticket: Self = serde_json::from_str(&invoker.unseal(principal, OBJECT, sealed)?).ok()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        (now < ticket.until).then_some(ticket)
    }

    pub(crate) fn id(&self) -> ExecutionId {
        self.id
    }

    pub(crate) fn is_of(&self, request: &str) -> bool {
        self.request == request
    }

    pub(crate) fn asks(&self) -> &[Round] {
        &self.asks
    }
}
