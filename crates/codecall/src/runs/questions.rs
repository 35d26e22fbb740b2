//! Calls of a run that wait for an answer from outside.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use gatewright_agentscript::{Resumed, ToolAnswer};
use gatewright_core::{
    ApprovalRequest, Invoker, MOST_ROUNDS, codes,
    rmcp::model::{ElicitRequestParams, InputRequest, InputRequests, InputRequiredResult, InputResponses},
};
use gatewright_executions::{ExecutionId, WaitKind, WaitingFor};
use serde::{Deserialize, Serialize};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::ask::Round;
use crate::unwrap::Failure;

/// A call that waits: what it asks, and what its app needs to go on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Waiting {
    /// Index of the call in its run.
    pub(crate) index: u32,
    /// The tool or content, as the script named it.
    pub(crate) name: String,
    pub(crate) requests: InputRequests,
    /// The app's own state, sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) request_state: Option<String>,
    /// Times that it has asked.
    pub(crate) round: usize,
    /// Tools whose apps its user has to sign in at, which may happen elsewhere: its own, or those of calls of the saved plan that it is of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sign_ins: Vec<String>,
    /// Approvals that it waits for and that may be given elsewhere: its own, or those of calls of the saved plan that it is of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) approvals: Vec<WaitingApproval>,
    /// States of the calls of the saved plan that it is of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) nested: Vec<String>,
}

/// An approval that a call waits for, as its record has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WaitingApproval {
    pub(crate) id: String,
    /// The tool or content, as the script or the plan named it.
    pub(crate) name: String,
    /// A sentence that names those who give it, and the place.
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) page: Option<String>,
    /// Time at which it expires, in milliseconds since 1970-01-01 UTC.
    #[serde(default = "never")]
    pub(crate) expires_ms: u64,
}

fn never() -> u64 {
    u64::MAX
}

/// The part of what a call waits for that may be settled out of band: on a page or a console, not by the client.
#[derive(Debug, Default)]
pub(crate) struct OutOfBand {
    pub(crate) approvals: Vec<WaitingApproval>,
    /// Tools whose apps the user has to sign in at.
    pub(crate) sign_ins: Vec<String>,
    /// States of calls that may be held open until they are answered.
    pub(crate) nested: Vec<String>,
}

/// The same of calls of a saved plan: an extension of the context in which a script calls it.
#[derive(Debug, Clone, Default)]
pub(crate) struct NestedOutOfBand(Arc<Mutex<OutOfBand>>);

impl NestedOutOfBand {
    /// Notes what may be settled out of band of the calls that wait.
    pub(crate) fn note(&self, waiting: &[Waiting]) {
        let mut noted = self.noted();
        for waiting in waiting {
            noted.approvals.extend(waiting.approvals.iter().cloned());
            noted.sign_ins.extend(waiting.sign_ins.iter().cloned());
            noted.nested.extend(waiting.states().map(str::to_owned));
        }
    }

    /// All that was noted.
    pub(crate) fn take(&self) -> OutOfBand {
        std::mem::take(&mut *self.noted())
    }

    fn noted(&self) -> MutexGuard<'_, OutOfBand> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An execution that waits.
pub(crate) struct Open {
    pub(crate) id: ExecutionId,
    pub(crate) waiting: Vec<Waiting>,
    /// Digest of the request that is told what it waits for.
    pub(crate) request: String,
    pub(crate) expires_ms: u64,
    /// It was begun by the request that is told: if that is cancelled, so is the execution.
    pub(crate) is_new: bool,
}

/// Longest text of a question in the head of an execution, in bytes.
const LONGEST_TEXT: usize = 200;

impl Waiting {
    /// Its questions, named by the call.
    fn named(&self) -> impl Iterator<Item = (String, InputRequest)> + '_ {
        self.requests.iter().map(|(key, request)| (format!("{}.{key}", self.index), request.clone()))
    }

    /// The states of all calls that wait with it.
    pub(crate) fn states(&self) -> impl Iterator<Item = &str> {
        self.request_state.iter().chain(&self.nested).map(String::as_str)
    }

    /// The question that it is.
    pub(crate) fn round(&self) -> Round {
        (self.index, self.round)
    }

    /// As the head of the execution lists it.
    fn described(&self) -> WaitingFor {
        if let Some(approval) = self.approvals.first() {
            let text = &approval.text[..approval.text.floor_char_boundary(LONGEST_TEXT)];
            return WaitingFor::new(WaitKind::Approval, text).tool(self.name.clone());
        }
        let (kind, text) = match self.requests.values().next() {
            Some(InputRequest::Elicitation(elicit)) => match &elicit.params {
                ElicitRequestParams::FormElicitationParams { message, .. } => {
                    (WaitKind::Elicitation, message.as_str())
                }
                ElicitRequestParams::UrlElicitationParams { message, .. } => {
                    (WaitKind::SignIn, message.as_str())
                }
                _ => (WaitKind::Other, ""),
            },
            Some(InputRequest::CreateMessage(_)) => (WaitKind::Sampling, ""),
            Some(InputRequest::ListRoots(_)) => (WaitKind::Roots, ""),
            _ => (WaitKind::Other, ""),
        };
        WaitingFor::new(kind, &text[..text.floor_char_boundary(LONGEST_TEXT)]).tool(self.name.clone())
    }
}

/// The calls of a run that wait, and the answers that have come for them. Calls that wait when this is dropped are cancelled: the run has
/// ended.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: Mutex<BTreeMap<u32, Waiting>>,
    answers: Mutex<BTreeMap<u32, InputResponses>>,
    invoker: Option<Arc<Invoker>>,
}

impl Drop for Questions {
    fn drop(&mut self) {
        if let Some(invoker) = self.invoker.take() {
            withdraw(&invoker, &self.suspend());
        }
    }
}

/// Cancels calls whose questions nobody will answer.
pub(crate) fn withdraw(invoker: &Invoker, waiting: &[Waiting]) {
    waiting.iter().flat_map(Waiting::states).for_each(|state| invoker.withdraw(state));
}

/// Most questions that are asked at once.
pub(crate) const MOST_ASKED: usize = 16;

impl Questions {
    /// No questions, and `answers` to those of an earlier part of the run, whose calls `invoker` makes.
    pub(crate) fn with_answers(answers: BTreeMap<u32, InputResponses>, invoker: &Arc<Invoker>) -> Self {
        Self { open: Mutex::default(), answers: Mutex::new(answers), invoker: Some(invoker.clone()) }
    }

    /// A call that may ask, which an earlier part of the run left as `resumed`.
    ///
    /// # Errors
    /// It has asked and still waits: the host's answer to it. What `is_approval` of its state need not be answered to go on: it may have been given elsewhere.
    pub(crate) fn asking(
        &self,
        index: u32,
        name: &str,
        resumed: Option<&Resumed>,
        is_approval: impl FnOnce(&str) -> bool,
    ) -> Result<Asking<'_>, ToolAnswer> {
        let mut asking = Asking {
            questions: self,
            index,
            name: name.to_owned(),
            round: 0,
            answers: None,
            state: None,
            is_expired: false,
            sent: None,
        };
        let Some(Resumed::Waited(state)) = resumed else { return Ok(asking) };
        let Ok(waiting) = serde_json::from_str::<Waiting>(state.get()) else { return Ok(asking) };
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner).remove(&index);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let is_expired = waiting.approvals.iter().any(|approval| now >= approval.expires_ms.into());
        let may_go_on = !waiting.approvals.is_empty()
            || !waiting.sign_ins.is_empty()
            || waiting.request_state.as_deref().is_some_and(is_approval);
        if answers.is_none()
            && !may_go_on
            && let Some(waits) = self.wait(index, &waiting)
        {
            return Err(waits);
        }
        // An approval that nobody decided on was not asked in vain, and neither was a sign-in.
        asking.round =
            if may_go_on && answers.is_none() { waiting.round.saturating_sub(1) } else { waiting.round };
        (asking.answers, asking.state, asking.is_expired) = (answers, waiting.request_state, is_expired);
        Ok(asking)
    }

    /// Notes that call `index` waits, and returns the host's answer to it; none if it asks nothing.
    fn wait(&self, index: u32, waiting: &Waiting) -> Option<ToolAnswer> {
        if waiting.requests.is_empty() && waiting.approvals.is_empty() {
            return None;
        }
        let answer = to_raw_value(waiting).ok().map(ToolAnswer::Waits)?;
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(index, waiting.clone());
        Some(answer)
    }

    /// The calls that wait, and go on waiting while the run is suspended.
    pub(crate) fn suspend(&self) -> Vec<Waiting> {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        open.into_values().collect()
    }
}

/// The questions of calls that wait, at most [`MOST_ASKED`] calls.
pub(crate) fn requests(waiting: &[Waiting]) -> InputRequests {
    waiting.iter().take(MOST_ASKED).flat_map(Waiting::named).collect()
}

/// The state of a call that is held open at an instance, if one of those that wait is.
pub(crate) fn held_call(waiting: &[Waiting]) -> Option<&str> {
    waiting.iter().filter_map(|waiting| waiting.request_state.as_deref()).find(|state| state.contains('.'))
}

/// Calls that wait, as the head of the execution lists them.
pub(crate) fn described(waiting: &[Waiting]) -> Vec<WaitingFor> {
    waiting.iter().map(Waiting::described).collect()
}

/// Returns `false` if a call of `name` that goes on from `resumed` waited for something else before it was made.
pub(crate) fn waited_for(resumed: &Resumed, name: &str) -> bool {
    let Resumed::Waited(state) = resumed else { return true };
    serde_json::from_str::<Waiting>(state.get()).map_or(true, |waiting| waiting.name == name)
}

/// A call that may ask, any number of times up to [`MOST_ROUNDS`].
pub(crate) struct Asking<'a> {
    questions: &'a Questions,
    index: u32,
    name: String,
    round: usize,
    answers: Option<InputResponses>,
    state: Option<String>,
    /// It waited for an approval that has expired.
    is_expired: bool,
    /// The state that was sent last.
    sent: Option<String>,
}

impl Drop for Asking<'_> {
    /// Cancels a call that still waits for an answer which fits: a script does not give another one.
    fn drop(&mut self) {
        if let (Some(state), Some(invoker)) = (&self.sent, &self.questions.invoker) {
            invoker.withdraw(state);
        }
    }
}

impl Asking<'_> {
    /// Returns `true` if it waited for an approval that nobody gave in time.
    pub(crate) fn is_expired(&self) -> bool {
        self.is_expired
    }

    /// The name of the tool or content.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The answers to what it asked last, and the app's state, to be sent with the next request.
    pub(crate) fn answers(&mut self) -> (Option<InputResponses>, Option<String>) {
        self.sent.clone_from(&self.state);
        (self.answers.take(), self.state.take())
    }

    /// Takes the questions that came in place of a result, with what may be settled out of band (`out_of_band`). Returns the host's answer to a call that waits; none if
    /// it is to be called again at once.
    ///
    /// # Errors
    /// It has asked too often.
    pub(crate) fn again(
        &mut self,
        asks: InputRequiredResult,
        out_of_band: OutOfBand,
    ) -> Result<Option<ToolAnswer>, Failure> {
        self.round += 1;
        if self.round > MOST_ROUNDS {
            let message = format!("`{}` asked more than {MOST_ROUNDS} times in one call", self.name);
            return Err(Failure::new(codes::INPUT_REQUIRED, message));
        }
        let waiting = Waiting {
            index: self.index,
            name: self.name.clone(),
            requests: asks.input_requests.unwrap_or_default(),
            request_state: asks.request_state,
            round: self.round,
            sign_ins: out_of_band.sign_ins,
            approvals: out_of_band.approvals,
            nested: out_of_band.nested,
        };
        let waits = self.questions.wait(self.index, &waiting);
        self.state = waiting.request_state;
        Ok(waits)
    }
}

impl Asking<'_> {
    /// Lets the call wait for an approval. Returns the host's answer to it.
    pub(crate) fn approval(&mut self, request: &ApprovalRequest) -> Option<ToolAnswer> {
        let asks = request.asks.as_deref();
        let waiting = Waiting {
            index: self.index,
            name: self.name.clone(),
            requests: asks.and_then(|asks| asks.input_requests.clone()).unwrap_or_default(),
            request_state: asks.and_then(|asks| asks.request_state.clone()),
            round: self.round + 1,
            sign_ins: Vec::new(),
            approvals: vec![WaitingApproval {
                id: request.id.clone(),
                name: self.name.clone(),
                text: request.place(),
                page: request.page.clone(),
                expires_ms: request.expires_ms,
            }],
            nested: Vec::new(),
        };
        self.questions.wait(self.index, &waiting)
    }

    /// The host's answer to a call that goes on with its state when the run does, and asks nothing.
    pub(crate) fn parked(&mut self) -> ToolAnswer {
        let waiting = Waiting {
            index: self.index,
            name: self.name.clone(),
            requests: InputRequests::default(),
            request_state: self.state.take(),
            // It is no question.
            round: self.round.saturating_sub(1),
            sign_ins: Vec::new(),
            approvals: Vec::new(),
            nested: Vec::new(),
        };
        ToolAnswer::Waits(to_raw_value(&waiting).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }

    /// Returns `true` if the call was made before, and is made again with answers or with the app's state.
    pub(crate) fn is_repeated(&self) -> bool {
        self.round > 0 || self.state.is_some()
    }
}

/// Sorts answers by the calls that [`Questions::requests`] named. Others are left out.
pub(crate) fn by_call(responses: InputResponses) -> BTreeMap<u32, InputResponses> {
    let mut sorted = BTreeMap::<u32, BTreeMap<String, Value>>::new();
    for (name, response) in responses {
        if let Some((index, key)) = name.split_once('.')
            && let Ok(index) = index.parse()
        {
            sorted.entry(index).or_default().insert(key.to_owned(), response);
        }
    }
    sorted
}
