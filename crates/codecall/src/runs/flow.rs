//! The course of `codecall:execute`: a run begins or goes on, is suspended while its questions are asked, and ends.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Instant};

use gatewright_agentscript::{CallStatus, Journal, Outcome, RunError, RunRequest, RunResult, WorkerError};
use gatewright_core::{
    Caller, Era, codes, off_thread,
    rmcp::{
        RoleServer,
        model::{CallToolRequestParams, CallToolResponse, CallToolResult, InputResponses, MetaObject},
        service::RequestContext,
    },
};
use gatewright_executions::{
    CallCounts, Ending, Execution, ExecutionError, ExecutionId, Lease, Terms, WaitKind, WaitingFor,
};
use serde_json::{Value, json};

use super::{
    KeptOutcome, Past, Questions, RunJournal, RunStart,
    background::JournalRoom,
    detached::running,
    questions::{Open, Waiting, described, withdraw},
    record::Chunk,
    refusal::{Refusal, at_other_instance},
};
use crate::{
    CodeCall,
    execute::{ExecuteInput, requested_log, size},
    host::ScriptHost,
    nesting::Nesting,
    results::{Finish, json_len},
    settings::Settings,
    tool_result::answer,
};

/// Metadata of an answer: the execution that it is of.
pub(crate) const EXECUTION: &str = "gatewright/execution";
/// Bytes of the metadata of a request that runs a script, at most: each of its calls has a copy.
const MOST_META: usize = 16 * 1024;

/// A run under way.
pub(crate) struct Run {
    pub(crate) start: RunStart,
    pub(crate) past: Past,
    pub(crate) journal: Arc<RunJournal>,
    settings: Arc<Settings>,
    /// Calls, and the questions that were open, when it was taken up.
    calls: CallCounts,
    waiting: Vec<Waiting>,
    /// Address of whoever began it.
    pub(crate) address: Option<IpAddr>,
    /// Digest of the request that it runs for.
    pub(crate) request: String,
    /// Its client cannot try again what it waits for.
    pub(crate) patient: bool,
    /// The request that it runs for began it.
    pub(crate) is_new: bool,
    /// Room for its journal, of a run in the background that goes on.
    pub(super) room: Option<JournalRoom>,
}

impl Run {
    /// The run of an execution, to go on with; none if its journal cannot be read.
    pub(crate) async fn resume(code_call: &CodeCall, lease: Lease, execution: Execution) -> Option<Self> {
        let (start, past) = Past::open(execution.chunks).await?;
        let mut run = Self::new(start, past, RunJournal::resume(lease), code_call.settings());
        run.calls = execution.head.calls;
        run.waiting = run.past.waiting();
        run.address = execution.head.about.address;
        Some(run)
    }

    pub(crate) fn new(start: RunStart, past: Past, journal: RunJournal, settings: Arc<Settings>) -> Self {
        let (calls, waiting, request) = (CallCounts::default(), Vec::new(), String::new());
        let journal = Arc::new(journal);
        Self {
            start,
            past,
            journal,
            settings,
            calls,
            waiting,
            address: None,
            request,
            patient: false,
            is_new: false,
            room: None,
        }
    }

    /// Goes on with `answers`, which are in the journal once the run has gone on.
    pub(crate) fn answer(&mut self, answers: BTreeMap<u32, InputResponses>) {
        if !answers.is_empty() {
            self.journal.answer(Chunk::Answers(answers.clone()));
            self.past.answers.extend(answers);
        }
    }

    /// Leaves the execution as it was when it was taken up.
    pub(crate) async fn put_back(&self) -> Result<(), ExecutionError> {
        self.journal.wait(&described(&self.waiting), self.calls).await
    }

    /// Leaves the execution with the answers that it has got, which are written, to whoever goes on with it.
    pub(super) async fn leave_answered(&self) -> Result<(), ExecutionError> {
        self.journal.wait(&described(&self.past.waiting()), self.calls).await
    }

    /// Leaves the execution to its owner, who goes on with it with another token.
    pub(crate) async fn wait_for_owner(&self) -> Result<(), ExecutionError> {
        let text = "the token with which it was begun has expired: its owner goes on with it";
        self.journal.wait(&[WaitingFor::new(WaitKind::SignIn, text)], self.calls).await
    }

    pub(crate) fn id(&self) -> ExecutionId {
        self.journal.id()
    }

    /// Calls since it last waited, of which the instance that made them may have told no observer.
    pub(super) fn untold_calls(&self) -> Vec<(String, String)> {
        self.past.calls_after(self.calls.made)
    }

    /// Ends it without going on.
    pub(crate) async fn refuse(&self, why: ExecutionError) {
        let reply = Refusal::from(why).reply();
        let _ = self.journal.add(&Chunk::Ended(Box::new(reply))).await;
        self.journal.end(&why.into(), self.calls).await;
    }

    /// Makes its journal durable.
    ///
    /// # Errors
    /// There is no room for it, or the store does not answer.
    pub(crate) async fn persist(&self) -> Result<(), ExecutionError> {
        self.journal.persist().await
    }
}

impl CodeCall {
    #[tracing::instrument(name = "script.run", level = "debug", skip_all, fields(principal.subject = %caller.principal().subject))]
    pub(crate) async fn execute(
        &self,
        input: ExecuteInput,
        outer: CallToolRequestParams,
        caller: Caller,
        mut context: RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let log = requested_log(&mut context.meta.0);
        let started = Instant::now();
        let responses = outer.input_responses.unwrap_or_default();
        let is_within = Nesting::is_within(&context.extensions);
        let (input, request) = input.digested().await;
        let entered = match (outer.request_state, &input.resume) {
            _ if json_len(&context.meta, MOST_META) > MOST_META => Err(Refusal::new(
                codes::VALIDATION_ERROR,
                format!(
                    "`_meta` of this request has more than {MOST_META} bytes, and goes with every call of the script; nothing was run"
                ),
            )),
            (_, Some(_)) if input.names_more() => Err(Refusal::new(
                codes::VALIDATION_ERROR,
                "`resume` goes on with a plan as it was begun: name nothing beside it; nothing was run",
            )),
            (_, None) if input.cancel == Some(true) => Err(Refusal::new(
                codes::VALIDATION_ERROR,
                "`cancel` ends the execution that `resume` names; nothing was run",
            )),
            (_, Some(id)) if input.cancel == Some(true) => self.cancel_by_id(id, &caller).await,
            (Some(state), _) if is_within => {
                self.go_on_within(&state, responses, &caller).await.map(Entered::of)
            }
            (Some(state), _) => self.go_on(&state, responses, &request, (&caller, &context)).await,
            (None, Some(id)) => self.resume(id, &request, (&caller, &context)).await,
            (None, None) => {
                let terms = match input.detach {
                    Some(true) => self.background.terms(&context).await,
                    _ => Terms::default(),
                };
                self.begin(input, log, terms, &caller, &context).await.map(|mut run| {
                    (run.request, run.is_new) = (request, true);
                    Entered::of(run)
                })
            }
        };
        let response = match entered {
            Ok(Entered::Run(run)) => self.follow(*run, caller, context).await,
            Ok(Entered::Asks(open)) => match self.ask(open, &caller, &context).await {
                Ok(Next::GoOn(run)) => self.follow(*run, caller, context).await,
                Ok(Next::Reply(response)) => Ok(*response),
                Err(refusal) => Err(refusal),
            },
            Ok(Entered::Over(response)) => Ok(*response),
            Err(refusal) => Err(refusal),
        };
        tracing::debug!(duration_ms = started.elapsed().as_secs_f64() * 1e3, "a script ended or waits");
        response.unwrap_or_else(|refusal| refusal.reply().into())
    }

    /// Runs for the client of `context`, or in the background.
    async fn follow(
        &self,
        run: Run,
        caller: Caller,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, Refusal> {
        if !run.start.detached {
            return Ok(self.drive(run, caller, context).await);
        }
        let id = run.id();
        let running = self.detach(run, &caller).await?;
        let follows = Era::of(&context).is_stateless()
            && context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks());
        if follows {
            return self.created_task(id, &caller).await.map(CallToolResponse::Task);
        }
        Ok(running.into())
    }

    /// Runs until the end, or until the client is asked by the result.
    pub(crate) async fn drive(
        &self,
        mut run: Run,
        caller: Caller,
        context: RequestContext<RoleServer>,
    ) -> CallToolResponse {
        // Counted down by the run itself, which makes the calls of its journal again.
        let most_calls = context.extensions.get::<Nesting>().map(Nesting::calls_left);
        loop {
            let mut request = run.start.request(Some(&run.past));
            if let (Some(nesting), Some(most_calls)) = (context.extensions.get::<Nesting>(), most_calls) {
                request.level = nesting.level();
                request.limits.max_tool_calls = most_calls;
            }
            request.journal = self.has_journals.then(|| run.journal.clone() as Arc<dyn Journal>);
            let around = context.extensions.get::<Nesting>();
            request.background = run.start.detached || around.is_some_and(Nesting::is_in_background);
            request.patient = request.background || run.patient;
            if request.background {
                request.halt = self.background.halt.clone();
                request.park_after = Some(self.background.park_after);
            }
            request.parties = caller.claimant().line_parties().collect();
            if run.journal.is_stored() {
                // The store takes none of its time, which ends it all the same.
                request.limits.wait.get_or_insert(request.limits.timeout);
            }
            let questions = Questions::with_answers(run.past.answers.clone(), &self.invoker);
            let host = ScriptHost::new(
                self,
                &run.start,
                questions,
                run.journal.clone(),
                run.past.calls(),
                caller.clone(),
                context.clone(),
            );
            let host = Arc::new(host);
            let outcome = self.run_part(&run, request, host.clone(), &context).await;
            match Step::of(&outcome.result, &run.journal) {
                Step::Over => {
                    let is_plan = most_calls.is_some();
                    return self.end(run, outcome, &host, &caller, is_plan).await.into();
                }
                Step::TakenOver => {
                    host.questions.suspend();
                    return at_other_instance(run.id()).reply().into();
                }
                Step::NotBegun(error) => return not_begun(&run, &error).await,
                Step::Suspended => {}
            }
            let waiting = host.questions.suspend();
            if run.start.detached && self.background.halt.is_cancelled() {
                run.journal.give_back().await;
                return running(run.id(), None).into();
            }
            match self.suspend(run, waiting.clone(), counts(&outcome), &caller, &context).await {
                Ok(Next::GoOn(going)) => run = *going,
                Ok(Next::Reply(response)) => return *response,
                Err(refusal) => {
                    if refusal.has_ended() {
                        withdraw(&self.invoker, &waiting);
                    }
                    return refusal.reply().into();
                }
            }
        }
    }

    /// Runs until the end or until the run is suspended. One that another instance has taken over is stopped.
    async fn run_part(
        &self,
        run: &Run,
        request: RunRequest,
        host: Arc<ScriptHost>,
        context: &RequestContext<RoleServer>,
    ) -> Outcome {
        let cancel = context.ct.child_token();
        let running = self.pool.run(request, host, cancel.clone());
        let Some(lost) = run.journal.lost() else { return running.await };
        tokio::pin!(running);
        tokio::select! {
            outcome = &mut running => return outcome,
            () = lost.cancelled() => cancel.cancel(),
        }
        running.await
    }

    /// The answer to a run that is over.
    async fn end(
        &self,
        run: Run,
        outcome: Outcome,
        host: &Arc<ScriptHost>,
        caller: &Caller,
        is_plan: bool,
    ) -> CallToolResult {
        let failure = match &outcome.result {
            Err(RunError::ToolError { tool_name, code, .. }) => host.detailed(tool_name, code),
            _ => None,
        };
        // Whoever gets the result of a saved plan shortens it.
        let finish = if is_plan { Finish::new(None, self.kept.clone(), caller) } else { self.finish(caller) };
        let (counts, id) = (counts(&outcome), run.journal.id());
        let (host, settings, log) = (host.clone(), run.settings.clone(), run.start.log);
        let (result, ending, kept) = off_thread(size(&outcome), move || {
            let kept = KeptOutcome::of(&outcome);
            let mut body = settings.body(outcome, log, &host.failed_inputs());
            if let Some(failure) = failure {
                failure.add_details(&mut body["error"]);
            }
            if let Some(rehearsal) = host.rehearsal.as_ref().filter(|_| !is_plan) {
                body["dryRun"] = rehearsal.report();
            }
            let ending = ending(&body);
            (finish.run(body, &host.handles), ending, kept)
        })
        .await;
        // Replays are compared with it.
        let _ = run.journal.add(&Chunk::Outcome(Box::new(kept))).await;
        if run.start.detached || run.journal.is_stored() {
            // Whoever asks for the result later gets it from here: a plan that waited may have been taken on by another request.
            let ended = Chunk::Ended(Box::new(result.clone()));
            if let Err(error) = run.journal.add(&ended).await {
                tracing::warn!(execution.id = %id, error.code = error.code(), "the result of an execution could not be kept");
                let reply = Refusal::from(error).reply();
                let _ = run.journal.add(&Chunk::Ended(Box::new(reply))).await;
            }
        }
        run.journal.end(&ending, counts).await;
        of_execution(result, id)
    }

    pub(crate) fn retention_ms(&self) -> u64 {
        u64::try_from(self.executions.config().retention.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A run that was begun or taken up.
pub(crate) enum Entered {
    Run(Box<Run>),
    /// It waits: its client is asked.
    Asks(Open),
    /// It has ended, or somebody else runs it: what there is to say.
    Over(Box<CallToolResponse>),
}

impl Entered {
    pub(crate) fn of(run: Run) -> Self {
        Self::Run(Box::new(run))
    }

    pub(super) fn over(result: CallToolResult) -> Self {
        Self::Over(Box::new(result.into()))
    }
}

/// The step after a run was suspended.
pub(crate) enum Next {
    GoOn(Box<Run>),
    Reply(Box<CallToolResponse>),
}

impl From<Next> for Entered {
    fn from(next: Next) -> Self {
        match next {
            Next::GoOn(run) => Self::Run(run),
            Next::Reply(response) => Self::Over(response),
        }
    }
}

/// The state of a run after a worker had it.
enum Step {
    Over,
    Suspended,
    /// It is stopped here, and not over: whoever has its execution goes on with it.
    TakenOver,
    /// There was no worker for a run that has begun before.
    NotBegun(WorkerError),
}

impl Step {
    fn of(result: &RunResult, journal: &RunJournal) -> Self {
        match result {
            Err(RunError::Suspended) => Self::Suspended,
            Err(RunError::Worker(WorkerError::Disposed)) if journal.is_stored() => Self::TakenOver,
            Err(RunError::Worker(WorkerError::Aborted) | RunError::Journal { .. }) if journal.is_lost() => {
                Self::TakenOver
            }
            Err(RunError::Worker(
                error @ (WorkerError::QueueFull(_)
                | WorkerError::QueueTimeout(_)
                | WorkerError::NoMemory
                | WorkerError::StartupFailed(_)),
            )) if journal.is_stored() => Self::NotBegun(error.clone()),
            _ => Self::Over,
        }
    }
}

/// Leaves a run for which there was no worker as it was. The same request, or another one, may go on with it.
async fn not_begun(run: &Run, error: &WorkerError) -> CallToolResponse {
    let id = run.id();
    // One in the background is taken up again once its lease has run out.
    if !run.start.detached
        && let Err(error) = run.put_back().await
    {
        return Refusal::from(error).reply().into();
    }
    let (name, code) = error.class_and_code();
    let message = format!(
        "{error}; the plan is as it was before: send the same request again later, or codecall:execute {{\"resume\": \"{id}\"}}"
    );
    let error = json!({"source": "script", "code": code, "name": name, "message": message});
    let body = json!({"status": "runtime_error", "executionId": id.to_string(), "error": error});
    of_execution(answer(body), id).into()
}

fn ending(body: &Value) -> Ending {
    let ending = Ending::new(body["status"].as_str().unwrap_or_default());
    match body["error"]["code"].as_str() {
        Some(code) => ending.code(code),
        None => ending,
    }
}

fn counts(outcome: &Outcome) -> CallCounts {
    let failed = outcome.calls.iter().filter(|call| call.status == CallStatus::Error).count();
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    CallCounts { made: number(outcome.calls.len()), failed: number(failed) }
}

/// Names the execution of an answer.
pub(crate) fn of_execution(mut result: CallToolResult, id: ExecutionId) -> CallToolResult {
    result.meta.get_or_insert_with(MetaObject::default).0.insert(EXECUTION.to_owned(), id.to_string().into());
    result
}
