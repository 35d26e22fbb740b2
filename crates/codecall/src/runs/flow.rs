//! The course of `codecall:execute`: a run begins or goes on, is suspended while its questions are asked, and ends.

use std::{
    sync::Arc,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use gatewright_agentscript::{CallStatus, Outcome, RunError, RunRequest};
use gatewright_core::{
    Caller, Era, codes, off_thread, outline,
    rmcp::{
        RoleServer,
        model::{
            CallToolRequestParams, CallToolResponse, CallToolResult, InputRequiredResult, InputResponses,
            MetaObject,
        },
        service::RequestContext,
    },
};
use gatewright_executions::{
    CallCounts, Ending, Execution, ExecutionError, ExecutionId, Lease, NewExecution, Reader,
};
use serde_json::{Value, json, value::to_raw_value};

use super::{
    Asked, KeptOutcome, Past, Questions, RunJournal, RunStart, Ticket,
    approvals::approval_required,
    ask,
    detached::running,
    questions::{Waiting, by_call, described, requests},
    record::Chunk,
};
use crate::{
    CodeCall,
    execute::{ExecuteInput, requested_log, size},
    host::ScriptHost,
    nesting::Nesting,
    reply::answer,
    results::{Finish, random_name},
    settings::Settings,
};

/// Metadata of an answer: the execution that it is of.
const EXECUTION: &str = "gatewright/execution";
/// Longest title of an execution, in characters: the beginning of its script.
const TITLE: usize = 80;

/// A run under way.
pub(crate) struct Run {
    start: RunStart,
    past: Past,
    journal: Arc<RunJournal>,
    /// Times that it was resumed.
    turn: u32,
    settings: Arc<Settings>,
}

/// A refusal to begin or to go on with a run, as a reply has it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    code: &'static str,
    message: String,
}

impl From<ExecutionError> for Refusal {
    fn from(error: ExecutionError) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}

impl Refusal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    fn reply(self) -> CallToolResult {
        answer(json!({"status": "runtime_error", "error":
            {"source": "script", "code": self.code, "name": "Error", "message": self.message}}))
    }
}

impl Run {
    /// The run of an execution, to go on with; none if its journal cannot be read.
    pub(crate) fn resume(code_call: &CodeCall, lease: Lease, execution: &Execution) -> Option<Self> {
        let turn = execution.head.resumed;
        let journal = Arc::new(RunJournal::resume(lease));
        let (start, past) = Past::read(&execution.chunks)?;
        Some(Self { start, past, journal, turn, settings: code_call.settings() })
    }

    pub(crate) fn id(&self) -> ExecutionId {
        self.journal.id()
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
        let entered = match (outer.request_state, &input.resume) {
            (Some(state), _) => {
                let responses = outer.input_responses.unwrap_or_default();
                self.go_on(&state, responses, &input, &caller).await.map(Entered::of)
            }
            (None, Some(id)) => self.resume(id, &caller).await,
            (None, None) => {
                let nesting = context.extensions.get::<Nesting>();
                self.begin(input, log, nesting, &caller).map(Entered::of)
            }
        };
        let response = match entered {
            Ok(Entered::Run(run)) => self.follow(*run, caller, context).await,
            Ok(Entered::Over(result)) => Ok(result.into()),
            Err(refusal) => Err(refusal),
        };
        tracing::debug!(duration_ms = started.elapsed().as_secs_f64() * 1e3, "a script ended or waits");
        response.unwrap_or_else(|refusal| refusal.reply().into())
    }

    /// Runs for the client of `context`, or in the background. A run in the background asks its client first what it waits for.
    async fn follow(
        &self,
        mut run: Run,
        caller: Caller,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, Refusal> {
        if !run.start.detached {
            return Ok(self.drive(run, caller, context).await);
        }
        let waiting = run.past.waiting();
        if !waiting.is_empty() && !self.has_settled(&waiting).await {
            match self.suspend(run, &waiting, CallCounts::default(), &caller, &context).await? {
                Next::GoOn(going) => run = *going,
                Next::Reply(response) => return Ok(*response),
            }
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

    /// A new run.
    fn begin(
        &self,
        input: ExecuteInput,
        log: Option<crate::call_log::CallLog>,
        nesting: Option<&Nesting>,
        caller: &Caller,
    ) -> Result<Run, Refusal> {
        let settings = self.settings();
        let Some(script) = input.script else {
            let message = "name a `script` to run, or an execution to `resume`".to_owned();
            return Err(Refusal { code: codes::VALIDATION_ERROR, message });
        };
        let Ok(seed) = getrandom::u64() else {
            let message = "the system gives no random numbers".to_owned();
            return Err(Refusal { code: codes::TOOL_EXECUTION_ERROR, message });
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut start = RunStart {
            context: input.context.and_then(|context| to_raw_value(&context).ok()),
            allowed_tools: input.allowed_tools,
            log: log.unwrap_or(settings.config.vm.call_log),
            limits: settings.limits.clone(),
            policy: settings.policy.clone(),
            seed,
            started_ms: u64::try_from(now.as_millis()).unwrap_or(0),
            handles: random_name(),
            detached: input.detach.unwrap_or_default() && input.dry_run.is_none(),
            dry_run: input.dry_run,
            script,
        };
        if let Some(nesting) = nesting {
            start.limits.max_tool_calls = nesting.calls_left();
        }
        if start.detached {
            start.limits.wait = Some(settings.config.vm.wait());
        }
        let title = input
            .title
            .as_deref()
            .unwrap_or_else(|| start.script.trim_start().lines().next().unwrap_or_default());
        let about = NewExecution {
            title: Some(title.chars().take(TITLE).collect()),
            script: digest(&start.script),
            detached: start.detached,
            ..NewExecution::default()
        };
        let draft = self.executions.draft(caller.principal(), about);
        let journal = Arc::new(RunJournal::begin(draft, &start, settings.limits.host_bytes));
        Ok(Run { start, past: Past::default(), journal, turn: 0, settings })
    }

    /// Goes on with a run that asked in the result of an earlier request.
    async fn go_on(
        &self,
        state: &str,
        responses: InputResponses,
        input: &ExecuteInput,
        caller: &Caller,
    ) -> Result<Run, Refusal> {
        let refused = || {
            Refusal {
            code: codes::VALIDATION_ERROR,
            message: "`requestState` was not given to you for this script, was used, or has expired; run the script again without it"
                .to_owned(),
        }
        };
        let script = input.script.as_deref().unwrap_or_default();
        let ticket = Ticket::open(&self.invoker, caller.principal(), script, state).ok_or_else(refused)?;
        let id = ticket.id().to_string();
        let reader = Reader::Owner(caller.principal());
        if self.executions.head(&id, reader).await?.resumed != ticket.turn() {
            return Err(refused());
        }
        let run = self.acquire(&id, caller).await?;
        if run.turn != ticket.turn() + 1 {
            let _ = run.journal.wait(&[], CallCounts::default()).await;
            return Err(refused());
        }
        self.answered(run, responses).await
    }

    /// Goes on with a run that a client names, or gives the answer of one that has ended.
    async fn resume(&self, id: &str, caller: &Caller) -> Result<Entered, Refusal> {
        let reader = Reader::Owner(caller.principal());
        let ended = match self.acquire(id, caller).await {
            Ok(run) => return Ok(Entered::of(run)),
            Err(refusal) if refusal.code == ExecutionError::Busy.code() => {
                let head = self.executions.head(id, reader).await?;
                return Ok(Entered::Over(running(head.id)));
            }
            Err(refusal) if refusal.code == ExecutionError::Ended.code() => refusal,
            Err(refusal) => return Err(refusal),
        };
        let execution = self.executions.open(id, reader).await?;
        let reply = Past::read(&execution.chunks).and_then(|(_, past)| past.reply);
        reply.map(|reply| Entered::Over(of_execution(reply, execution.head.id))).ok_or(ended)
    }

    pub(crate) async fn acquire(&self, id: &str, caller: &Caller) -> Result<Run, Refusal> {
        let reader = Reader::Owner(caller.principal());
        let (lease, execution) = self.executions.acquire(id, reader).await?;
        Run::resume(self, lease, &execution).ok_or_else(|| ExecutionError::Unavailable.into())
    }

    /// Adds answers to the questions of a run.
    pub(crate) async fn answered(&self, mut run: Run, responses: InputResponses) -> Result<Run, Refusal> {
        let answers = by_call(responses);
        if !answers.is_empty() {
            run.journal.add(&Chunk::Answers(answers.clone())).await?;
            run.past.answers.extend(answers);
        }
        Ok(run)
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
            request.journal = Some(run.journal.clone());
            let questions = Questions::with_answers(run.past.answers.clone());
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
            if run.journal.is_lost() {
                // Whoever has the lease next goes on with it. This part of the run has no say in how it ends.
                return Refusal::from(ExecutionError::LeaseLost).reply().into();
            }
            if !matches!(outcome.result, Err(RunError::Suspended)) {
                let is_plan = most_calls.is_some();
                return self.end(run, outcome, &host, &caller, is_plan).await.into();
            }
            match self.suspend(run, &host.questions.waiting(), counts(&outcome), &caller, &context).await {
                Ok(Next::GoOn(going)) => run = *going,
                Ok(Next::Reply(response)) => return *response,
                Err(refusal) => return refusal.reply().into(),
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

    /// Leaves the run and asks its questions.
    async fn suspend(
        &self,
        run: Run,
        waiting: &[Waiting],
        calls: CallCounts,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Next, Refusal> {
        let (id, requests) = (run.journal.id(), requests(waiting));
        run.journal.wait(&described(waiting), calls).await?;
        if requests.is_empty() {
            return Ok(Next::Reply(Box::new(of_execution(approval_required(waiting, id), id).into())));
        }
        match ask(context, &requests, run.settings.longest_wait()).await {
            Asked::Answered(responses) => {
                let run = self.acquire(&id.to_string(), caller).await?;
                Ok(Next::GoOn(Box::new(self.answered(run, responses).await?)))
            }
            Asked::InResult => {
                let expires = run.start.started_ms.saturating_add(self.retention_ms());
                let ticket = Ticket::new(id, run.turn, expires);
                let state = ticket.seal(&self.invoker, caller.principal(), &run.start.script);
                let asks = InputRequiredResult::new(Some(requests), state);
                Ok(Next::Reply(Box::new(CallToolResponse::InputRequired(asks))))
            }
            Asked::Cannot(_) if context.ct.is_cancelled() => {
                let ending = Ending::new("runtime_error").code("EXECUTION_ABORTED");
                let reader = Reader::Owner(caller.principal());
                let _ = self.executions.cancel(&id.to_string(), reader, &ending).await;
                Err(Refusal { code: "EXECUTION_ABORTED", message: "the execution was cancelled".to_owned() })
            }
            Asked::Cannot(_) if waiting.iter().any(|waiting| waiting.approval.is_some()) => {
                Ok(Next::Reply(Box::new(of_execution(approval_required(waiting, id), id).into())))
            }
            Asked::Cannot(why) => {
                let name = waiting.first().map(|waiting| waiting.name.as_str()).unwrap_or_default();
                let message = format!(
                    "the plan needs {}, and {why}; it waits: once that is settled, go on with codecall:execute {{\"resume\": \"{id}\"}}",
                    outline(&requests)
                );
                let body = json!({"status": "tool_error", "executionId": id.to_string(), "error":
                    {"source": "tool", "toolName": name, "code": "INPUT_REQUIRED", "message": message}});
                Ok(Next::Reply(Box::new(of_execution(answer(body), id).into())))
            }
        }
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
        if run.start.detached {
            // Whoever asks for the result later gets it from here.
            let ended = Chunk::Ended(Box::new(result.clone()));
            if let Err(error) = run.journal.add(&ended).await {
                tracing::warn!(execution.id = %id, error.code = error.code(), "the result of an execution could not be kept");
            }
        }
        run.journal.end(&ending, counts).await;
        of_execution(result, id)
    }

    fn retention_ms(&self) -> u64 {
        u64::try_from(self.executions.config().retention.as_millis()).unwrap_or(u64::MAX)
    }
}

/// A run that was begun or taken up.
enum Entered {
    Run(Box<Run>),
    /// It has ended, or somebody else runs it: what there is to say.
    Over(CallToolResult),
}

impl Entered {
    fn of(run: Run) -> Self {
        Self::Run(Box::new(run))
    }
}

/// The step after a run was suspended.
enum Next {
    GoOn(Box<Run>),
    Reply(Box<CallToolResponse>),
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

fn digest(script: &str) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, script.as_bytes());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    bytes
}
