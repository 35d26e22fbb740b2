//! Runs that wait: their questions are asked, and the answers take them on. Each question is answered once, whoever asks and however often.

use std::{collections::HashSet, sync::Arc};

use gatewright_core::{
    Caller, RestsOn, codes, off_thread, outline,
    rmcp::{
        RoleServer,
        model::{CallToolResponse, CallToolResult, InputRequiredResult, InputResponses, MetaObject},
        service::RequestContext,
    },
};
use gatewright_executions::{
    CallCounts, Ending, ExecutionError, ExecutionId, Head, NewExecution, Reader, State, Terms,
};
use serde_json::{json, value::RawValue};

use super::{
    Asked, Past, RunJournal, Ticket,
    approvals::approval_required,
    ask::{Round, ask},
    detached::running,
    flow::{EXECUTION, Entered, Next, Run, of_execution},
    questions::{NestedOutOfBand, Open, Waiting, by_call, described, held_call, requests, withdraw},
    refusal::{Refusal, cancelled},
};
use crate::{CodeCall, tool_result::answer};

impl CodeCall {
    /// Goes on with a run that asked in the result of an earlier request.
    pub(crate) async fn go_on(
        &self,
        state: &str,
        responses: InputResponses,
        request: &str,
        (caller, context): (&Caller, &RequestContext<RoleServer>),
    ) -> Result<Entered, Refusal> {
        let refused = |message: String| Refusal::new(codes::VALIDATION_ERROR, message);
        let ticket = Ticket::open(&self.invoker, caller.principal(), state).ok_or_else(|| {
            refused(
                "`requestState` was not given to you for this request, or has expired; a plan that still waits goes on with \
                 codecall:execute {\"resume\": \"exe_…\"}, the id that its answers named"
                    .to_owned(),
            )
        })?;
        if !ticket.is_of(request) {
            return Err(refused(format!(
                "the arguments are not those of the request that got `requestState`, so nothing was run: repeat those, or go on with \
                 codecall:execute {{\"resume\": \"{}\"}} alone",
                ticket.id()
            )));
        }
        self.answer(ticket.id(), ticket.asks(), responses, request, (caller, context)).await
    }

    /// Goes on with the execution `id` with answers to those of the questions `asks` that are still open.
    async fn answer(
        &self,
        id: ExecutionId,
        asks: &[Round],
        responses: InputResponses,
        request: &str,
        (caller, context): (&Caller, &RequestContext<RoleServer>),
    ) -> Result<Entered, Refusal> {
        let name = id.to_string();
        let used = || {
            let message = format!(
                "what was asked has been answered already; codecall:execute {{\"resume\": \"{id}\"}} says how the plan goes on"
            );
            Refusal::new(codes::VALIDATION_ERROR, message)
        };
        let execution = self.executions.open(&name, Reader::Owner(caller.principal())).await?;
        if execution.head.state == State::Ended {
            return Err(used());
        }
        let (_, past) = Past::open(execution.chunks).await.ok_or(ExecutionError::Unreadable)?;
        let (waiting, mut answers) = (past.waiting(), by_call(responses));
        answers.retain(|index, _| is_open(&waiting, asks, *index));
        if !waiting.iter().any(|waiting| asks.contains(&waiting.round())) {
            return Err(used());
        }
        if answers.is_empty() && execution.head.state == State::Waiting {
            let request = request.to_owned();
            return Ok(Entered::Asks(Open {
                id,
                waiting,
                request,
                expires_ms: execution.head.expires_ms,
                is_new: false,
            }));
        }
        let mut run = self.acquire(&name, caller, Some(context)).await?;
        answers.retain(|index, _| is_open(&run.past.waiting(), asks, *index));
        if answers.is_empty() {
            run.put_back().await?;
            return Err(used());
        }
        run.request = request.to_owned();
        run.answer(answers);
        Ok(Entered::of(run))
    }

    /// Goes on with a run that a client names, says what it waits for, or gives the answer of one that has ended.
    pub(crate) async fn resume(
        &self,
        id: &str,
        request: &str,
        (caller, context): (&Caller, &RequestContext<RoleServer>),
    ) -> Result<Entered, Refusal> {
        let reader = Reader::Owner(caller.principal());
        let execution = self.executions.open(id, reader).await?;
        let (head, past) = (execution.head, Past::open(execution.chunks).await.map(|(_, past)| past));
        let calls = past.as_ref().map_or(0, Past::calls);
        match head.state {
            State::Ended => {
                return Ok(Entered::over(result_of(&head, past)?));
            }
            State::Waiting => {
                let past = past.ok_or(ExecutionError::Unreadable)?;
                let waiting = past.waiting();
                if asks_anybody(&waiting) && !self.can_go_on(&waiting, caller).await {
                    let (id, request) = (head.id, request.to_owned());
                    return Ok(Entered::Asks(Open {
                        id,
                        waiting,
                        request,
                        expires_ms: head.expires_ms,
                        is_new: false,
                    }));
                }
                let answered = past.answered();
                if let Some(waiting_call) = held_call(&answered)
                    && let Some(next) =
                        self.bring_home(waiting_call, (head.id, request), None, (caller, context)).await
                {
                    return next.map(Entered::from);
                }
            }
            State::Running => {}
        }
        match self.acquire(id, caller, Some(context)).await {
            Ok(mut run) => {
                run.request = request.to_owned();
                Ok(Entered::of(run))
            }
            Err(refusal) if refusal.is(ExecutionError::Busy) => {
                Ok(Entered::over(running(head.id, Some(calls))))
            }
            // It ended in this moment, and its answer is there.
            Err(refusal) if refusal.is(ExecutionError::Ended) => {
                Box::pin(self.resume(id, request, (caller, context))).await
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Ends the execution that a client names, and says so. The answer of one that has ended stays as it is.
    pub(crate) async fn cancel_by_id(&self, id: &str, caller: &Caller) -> Result<Entered, Refusal> {
        let reader = Reader::Owner(caller.principal());
        match self.executions.cancel(id, reader, &Ending::cancelled()).await {
            Ok(()) => {
                self.withdraw_calls(id, caller).await;
                Err(cancelled())
            }
            Err(ExecutionError::Ended) => {
                let execution = self.executions.open(id, reader).await?;
                let past = Past::open(execution.chunks).await.map(|(_, past)| past);
                // Another instance that was asked to cancel it has passed the request on.
                past.iter().for_each(|past| withdraw(&self.invoker, &past.waiting()));
                Ok(Entered::over(result_of(&execution.head, past)?))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Cancels the calls of a run that was cancelled while they waited, here and at the instance that holds one of them open.
    pub(super) async fn withdraw_calls(&self, id: &str, caller: &Caller) {
        if let Ok(id) = id.parse() {
            // It may not be under way here.
            let _ = self.background.cancelled.send(id);
        }
        let Ok(execution) = self.executions.open(id, Reader::Owner(caller.principal())).await else { return };
        let Some((_, past)) = Past::open(execution.chunks).await else { return };
        let waiting = past.waiting();
        withdraw(&self.invoker, &waiting);
        if self.invoker.has_others() {
            let states: HashSet<&str> = waiting.iter().flat_map(Waiting::states).collect();
            for state in states {
                self.cancel_at_other_instance(state, id, caller, &execution.head).await;
            }
        }
    }

    /// Takes a run of `caller` to go on with it: with the request of `context`, if it is one that brings a token.
    pub(crate) async fn acquire(
        &self,
        id: &str,
        caller: &Caller,
        context: Option<&RequestContext<RoleServer>>,
    ) -> Result<Run, Refusal> {
        let terms = match context {
            Some(context) => self.background.terms(context).await,
            None => Terms::default(),
        };
        let (lease, execution) = self.executions.acquire_with(id, caller.principal(), terms).await?;
        Run::resume(self, lease, execution).await.ok_or_else(|| ExecutionError::Unreadable.into())
    }

    /// Goes on with a run within another one, whose journal is in `state`.
    pub(crate) async fn go_on_within(
        &self,
        state: &str,
        responses: InputResponses,
        caller: &Caller,
    ) -> Result<Run, Refusal> {
        let state = state.to_owned();
        let chunks = off_thread(state.len(), move || {
            let chunks: Vec<Box<RawValue>> = serde_json::from_str(&state).ok()?;
            Some(chunks.into_iter().map(|chunk| chunk.get().as_bytes().to_vec()).collect::<Arc<[Vec<u8>]>>())
        });
        let chunks = chunks.await.ok_or(ExecutionError::Unreadable)?;
        let (start, past) = Past::open(chunks.clone()).await.ok_or(ExecutionError::Unreadable)?;
        let settings = self.settings();
        let draft = self.executions.draft(caller.principal(), NewExecution::default());
        let journal = RunJournal::resume_within(draft, &chunks, settings.limits.host_bytes);
        let mut run = Run::new(start, past, journal, settings);
        let waiting = run.past.waiting();
        let mut answers = by_call(responses);
        answers.retain(|index, _| waiting.iter().any(|waiting| waiting.index == *index));
        run.answer(answers);
        Ok(run)
    }

    /// Leaves the run and asks its questions.
    pub(crate) async fn suspend(
        &self,
        run: Run,
        waiting: Vec<Waiting>,
        calls: CallCounts,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Next, Refusal> {
        if let Some(chunks) = run.journal.chunks_within()? {
            // The run around it waits with its journal, and asks.
            let chunks: Vec<_> = chunks.iter().map(|chunk| String::from_utf8_lossy(chunk)).collect();
            let state = format!("[{}]", chunks.join(","));
            rests_on(context, &waiting);
            if let Some(within) = context.extensions.get::<NestedOutOfBand>() {
                within.note(&waiting);
            }
            let asks = InputRequiredResult::new(Some(requests(&waiting)), Some(state));
            return Ok(Next::Reply(Box::new(CallToolResponse::InputRequired(asks))));
        }
        run.journal.wait(&described(&waiting), calls).await?;
        if run.start.detached {
            self.wake_if_settled(run.id(), &waiting).await;
        }
        let expires_ms = run.start.started_ms.saturating_add(self.retention_ms());
        let (id, is_new) = (run.id(), run.is_new);
        let open = Open { id, waiting, request: run.request, expires_ms, is_new };
        self.ask(open, caller, context).await
    }

    /// Asks the client what an execution waits for.
    pub(crate) async fn ask(
        &self,
        open: Open,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Next, Refusal> {
        let (id, requests) = (open.id, requests(&open.waiting));
        let needs_approval = || {
            let result = of_execution(approval_required(&open.waiting, id), id);
            Next::Reply(Box::new(result.into()))
        };
        if requests.is_empty() {
            return Ok(needs_approval());
        }
        let asks: Vec<Round> = open.waiting.iter().map(Waiting::round).collect();
        match ask(context, &requests, self.settings().longest_wait()).await {
            Asked::Answered(responses) => {
                let here = (caller, context);
                if let Some(next) = self.go_on_at_other_instance(&open, &asks, &responses, here).await {
                    return next;
                }
                match self.answer(id, &asks, responses, &open.request, (caller, context)).await? {
                    Entered::Run(mut run) => {
                        // Whoever answered does not do so twice.
                        run.journal.settle().await?;
                        run.patient = true;
                        Ok(Next::GoOn(run))
                    }
                    Entered::Asks(_) => Err(Refusal::new(codes::INPUT_REQUIRED, not_answered(id))),
                    Entered::Over(response) => Ok(Next::Reply(response)),
                }
            }
            Asked::InResult => {
                let ticket = Ticket::new(id, &open.request, asks, open.expires_ms);
                let mut state = ticket.seal(&self.invoker, caller.principal());
                if let Some(held) = held_call(&open.waiting) {
                    rests_on(context, &open.waiting);
                    state = state.map(|state| self.invoker.at_home_of(held, state));
                }
                let mut asks = InputRequiredResult::new(Some(requests), state);
                let meta = asks.meta.get_or_insert_with(MetaObject::default);
                meta.0.insert(EXECUTION.to_owned(), id.to_string().into());
                Ok(Next::Reply(Box::new(CallToolResponse::InputRequired(asks))))
            }
            Asked::Cannot(_) if open.is_new && context.ct.is_cancelled() => {
                let ending = Ending::cancelled();
                let reader = Reader::Owner(caller.principal());
                let _ = self.executions.cancel(&id.to_string(), reader, &ending).await;
                self.withdraw_calls(&id.to_string(), caller).await;
                Err(cancelled())
            }
            Asked::Cannot(_) if waits_for_approval(&open.waiting) => Ok(needs_approval()),
            Asked::Cannot(why) => {
                let name = open.waiting.first().map(|waiting| waiting.name.as_str()).unwrap_or_default();
                let page = self.page_for(id, &open.waiting, caller.principal());
                let place = match &page {
                    Some(page) => format!("its user answers at {page}; then"),
                    None => "once that is settled,".to_owned(),
                };
                let message = format!(
                    "the plan needs {}, and {why}; it waits: {place} go on with codecall:execute {{\"resume\": \"{id}\"}}",
                    outline(&requests)
                );
                let mut body = json!({"status": "tool_error", "executionId": id.to_string(), "error":
                    {"source": "tool", "toolName": name, "code": codes::INPUT_REQUIRED, "message": message}});
                if let Some(page) = page {
                    body["url"] = page.into();
                }
                Ok(Next::Reply(Box::new(of_execution(answer(body), id).into())))
            }
        }
    }
}

/// The answer of an execution that has ended.
///
/// # Errors
/// It was cancelled, or its answer was not kept.
fn result_of(head: &Head, past: Option<Past>) -> Result<CallToolResult, Refusal> {
    match past.and_then(|past| past.reply) {
        Some(reply) => Ok(of_execution(reply, head.id)),
        None => match &head.ending {
            Some(ending) if ending.is_cancelled() => Err(cancelled()),
            Some(ending) if *ending == ExecutionError::AccessEnded.into() => {
                Err(ExecutionError::AccessEnded.into())
            }
            _ => Err(ExecutionError::Ended.into()),
        },
    }
}

/// Returns `true` if somebody has to answer or to decide before the run can go on.
pub(super) fn asks_anybody(waiting: &[Waiting]) -> bool {
    !requests(waiting).is_empty() || waits_for_approval(waiting)
}

fn waits_for_approval(waiting: &[Waiting]) -> bool {
    waiting.iter().any(|waiting| !waiting.approvals.is_empty())
}

/// Returns `true` if the question of call `index` among `asks` is one that waits.
fn is_open(waiting: &[Waiting], asks: &[Round], index: u32) -> bool {
    waiting.iter().any(|waiting| waiting.index == index && asks.contains(&waiting.round()))
}

fn not_answered(id: ExecutionId) -> String {
    format!("there was no answer; the plan waits: go on with codecall:execute {{\"resume\": \"{id}\"}}")
}

/// Notes for whoever seals the answer to the request of `context` that a call is held open at an instance.
fn rests_on(context: &RequestContext<RoleServer>, waiting: &[Waiting]) {
    if let (Some(rests_on), Some(held)) = (context.extensions.get::<RestsOn>(), held_call(waiting)) {
        rests_on.note(held);
    }
}
