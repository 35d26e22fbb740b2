//! The host of a script: the gateway's tools, as the script's caller may use them.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use gatewright_agentscript::{
    ContentRequest, Host, HostFuture, PlanFacts, PlanVerdict, PlanWarning, Resumed, Sanitizer, ToolAnswer,
    ToolCall, ToolFailure, excerpt,
};
use gatewright_core::{
    AnsweredLater, App, AskedAtOnce, Caller, InvokeError, Invoker, OwnPaths, PermittedTool, RequestObject,
    ScriptRun, ScriptStep, ToolEntry, Trail, codes, off_thread, read_json,
    rmcp::{
        RoleServer,
        model::{CallToolResponse, ContentBlock, RequestMetaObject, TASKS_EXTENSION_ID, Tool},
        service::RequestContext,
    },
};
use serde_json::value::{RawValue, to_raw_value};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    CodeCall, Mode,
    nesting::{Nesting, RunMemory},
    plan_check::{self, Named},
    progress::PlanProgress,
    results::{Handles, Kept, KeptResults, Room, answer_weight, reading_weight},
    runs::{Questions, Rehearsal, RunJournal, RunStart, waited_for},
    sent::{SentTexts, clean},
    shapes::{SentInput, Shapes, reading::Read, restore_numbers},
    unwrap::{Failure, ToolValue},
    usage::SearchUsage,
};

/// Answers the host calls of one run.
pub(crate) struct ScriptHost {
    pub(crate) invoker: Arc<Invoker>,
    pub(crate) mode: Mode,
    sanitizer: Sanitizer,
    pub(crate) caller: Caller,
    context: RequestContext<RoleServer>,
    progress: Option<Arc<PlanProgress>>,
    /// Names as the caller wrote them, each with the tool's colon form beside it.
    pub(crate) allowed: Option<HashSet<String>>,
    /// The last failure with details of each tool, by the name that the script used.
    detailed: Mutex<HashMap<String, Failure>>,
    /// Texts of the inputs of calls that failed.
    failed: Mutex<SentTexts>,
    unjudged: Mutex<Option<Unjudged>>,
    own_paths: Arc<OwnPaths>,
    pub(crate) shapes: Arc<Shapes>,
    usage: Arc<SearchUsage>,
    pub(crate) kept: Arc<KeptResults>,
    /// The runs that wait for this one, and the limits that they share.
    nesting: Nesting,
    memory: RunMemory,
    /// Memory of answers.
    pub(crate) room: Arc<Room>,
    /// Bytes of one message to the script, at most.
    pub(crate) message_bytes: u64,
    /// Images, audio and resources that the script has handles to.
    pub(crate) handles: Handles,
    /// Calls that wait for an answer from outside.
    pub(crate) questions: Questions,
    journal: Arc<RunJournal>,
    /// The gateway stops.
    pub(crate) halt: CancellationToken,
    /// It runs without a client.
    pub(crate) is_detached: bool,
    /// The plan is only tried.
    pub(crate) rehearsal: Option<Rehearsal>,
    /// Apps of saved plans, which a rehearsal runs as rehearsals, too.
    pub(crate) plans: Vec<Arc<dyn App>>,
}

/// The facts of a plan that reads results whose shapes were not known before the run, and the tools of these.
struct Unjudged {
    facts: PlanFacts,
    tools: Vec<(String, Arc<ToolEntry>)>,
}

/// Copies of a block that there are while it is written to the journal.
const COPIES: u64 = 4;
/// Tools whose failures are kept with their details, at most.
const MOST_DETAILED: usize = 64;

impl ScriptHost {
    /// The host of the run `start`, which made `calls_before` calls already, with the answers in `questions` to what it asked before.
    pub(crate) fn new(
        code_call: &CodeCall,
        start: &RunStart,
        questions: Questions,
        journal: Arc<RunJournal>,
        calls_before: u64,
        caller: Caller,
        mut context: RequestContext<RoleServer>,
    ) -> Self {
        let view = code_call.invoker.registry().view(&caller);
        let allowed = start.allowed_tools.as_ref().map(|names| {
            let plain =
                names.iter().filter_map(|name| view.tool(name).ok()).map(|tool| tool.name.to_string());
            plain.collect::<Vec<_>>().into_iter().chain(names.iter().cloned()).collect()
        });
        let settings = code_call.settings();
        let progress = PlanProgress::of(&context).map(Arc::new);
        context.meta = inner_meta(&context);
        // A run waits for answers, whoever brings them, and calls again with them. It needs its journal for that.
        if code_call.has_journals && context.extensions.get::<AnsweredLater>().is_none() {
            context.extensions.insert(AnsweredLater::default());
        }
        // A saved plan that a script calls is part of its run.
        if context.extensions.get::<ScriptRun>().is_none() {
            context.extensions.insert(ScriptRun::after(calls_before).named(journal.id().to_string()));
        }
        context.extensions.remove::<AskedAtOnce>();
        let root = || {
            Nesting::root(&start.limits, start.dry_run.map(Rehearsal::new), caller.claimant())
                .in_background(start.detached)
        };
        let mut nesting: Nesting = context.extensions.remove().unwrap_or_else(root);
        if code_call.has_journals {
            nesting = nesting.kept_in(&journal);
        }
        let room = nesting.room().clone();
        Self {
            invoker: code_call.invoker.clone(),
            mode: settings.config.mode,
            sanitizer: settings.sanitizer,
            caller,
            context,
            progress,
            allowed,
            detailed: Mutex::default(),
            failed: Mutex::default(),
            unjudged: Mutex::default(),
            own_paths: code_call.own_paths(),
            shapes: code_call.shapes.clone(),
            usage: code_call.usage.clone(),
            kept: code_call.kept.clone(),
            handles: Handles::new(&start.handles, room.clone()),
            room,
            message_bytes: start.limits.message_bytes,
            questions,
            journal,
            halt: code_call.background.halt.clone(),
            is_detached: start.detached,
            plans: if start.dry_run.is_some() { code_call.plan_apps() } else { Vec::new() },
            rehearsal: nesting.rehearsal().cloned(),
            memory: nesting.memory(),
            nesting,
        }
    }

    /// Makes a call of the script, unless it is refused before.
    async fn call(&self, mut call: ToolCall, is_made: &mut bool) -> Result<ToolAnswer, ToolFailure> {
        let tool = match self.tool(&call.name).await {
            Err(failure) if failure.code == codes::AUTHORIZATION_REQUIRED && self.rehearsal.is_none() => {
                match self.sign_in(&call).await {
                    Ok(Some(waits)) => return Ok(waits),
                    Ok(None) => self.tool(&call.name).await?,
                    Err(why) => {
                        return Err(self.tool_failure(&call.name, why, SentTexts::default(), None).await);
                    }
                }
            }
            found => found?,
        };
        // It waited for a sign-in, and was not made.
        call.resumed.take_if(|resumed| !waited_for(resumed, &call.name));
        if matches!(call.resumed, Some(Resumed::Interrupted)) && !is_repeatable(&tool.tool) {
            return Err(self.failure(codes::OUTCOME_UNKNOWN, &outcome_unknown(&call.name)));
        }
        self.nesting.check(&tool)?;
        let spelled = [call.name.as_str(), &tool.name];
        if self.allowed.as_ref().is_some_and(|allowed| !spelled.iter().any(|name| allowed.contains(*name))) {
            return Err(self.denied(&call.name));
        }
        let input = call.input;
        let arguments = off_thread(input.get().len(), move || read_json(input.get()));
        let mut arguments = arguments.await.map_err(|_| ToolFailure {
            code: codes::VALIDATION_ERROR.to_owned(),
            message: format!("the input of `{}` must be an object", call.name),
            ..ToolFailure::default()
        })?;
        if let Some(why) = plan_check::misspelt(&tool, &arguments) {
            return Err(self.failure(codes::VALIDATION_ERROR, &why));
        }
        restore_numbers(&mut arguments, tool.input_schema());
        let sent = SentTexts::of_input(&arguments);
        let files = self.handles.fill(&mut arguments, tool.input_schema(), &self.room);
        // Its room is free again once the call is over.
        let _files = match files {
            Ok(taken) => taken,
            Err(failure) => return Err(self.tool_failure(&call.name, failure, sent, None).await),
        };
        let pages = call.paginate.map(|max| self.pages(&call.name, &tool, max)).transpose()?;
        let paged = pages.as_ref();
        *is_made = true;
        let answer = match &self.rehearsal {
            Some(rehearsal) => {
                self.rehearse(rehearsal, &call.name, call.index, &tool, arguments, paged).await
            }
            None => {
                let sent_input = self.shapes.sent_input(&tool, &self.caller, &arguments);
                let answer =
                    self.make(call.index, &call.name, call.resumed.as_ref(), &tool, arguments, paged).await;
                if matches!(answer, Ok(ToolAnswer::Value(_) | ToolAnswer::Kept { .. })) {
                    sent_input.into_iter().for_each(SentInput::accepted);
                    if !self.nesting.is_in_plan() {
                        self.usage.called(&self.caller, &tool);
                    }
                }
                answer
            }
        };
        if let Some(failure) = paged.and_then(|pages| pages.ended()) {
            return Err(failure);
        }
        match answer {
            Ok(answer) => Ok(answer),
            Err(failure) => Err(self
                .tool_failure(&call.name, failure.with_parameters_of(&tool), sent, Some(&**tool.app()))
                .await),
        }
    }

    pub(crate) fn nesting(&self) -> &Nesting {
        &self.nesting
    }

    /// The request that runs the script.
    pub(crate) fn request(&self) -> &RequestContext<RoleServer> {
        &self.context
    }

    /// Returns `true` if `state` waits for an approval of a request of the script for `object`, by its public name.
    pub(crate) fn awaits_approval(&self, object: &RequestObject, state: &str) -> bool {
        self.invoker.awaits_approval(self.caller.principal(), object, state)
    }

    /// The value of an answer of `tool`, within the room that the run has for answers.
    pub(crate) async fn value(
        &self,
        answer: Result<CallToolResponse, InvokeError>,
        tool: &PermittedTool,
    ) -> Result<ToolAnswer, Failure> {
        let bytes = answer_weight(&answer);
        let mut taken = self.room.take(bytes)?;
        let _turn = self.room.turn(bytes).await;
        taken.grow(reading_weight(&answer))?;
        let reading = self.shapes.reading(tool, &self.caller);
        let mut kept = Kept::default();
        let keep = |block| kept.keep(&self.handles, block, &mut taken);
        match ToolValue::of(answer, reading, keep).await {
            ToolValue::Ok(value) => self
                .with_blocks(value, usize::try_from(bytes).unwrap_or(usize::MAX), kept)
                .await
                .map_err(|error| Failure::new(codes::TOOL_EXECUTION_ERROR, error.to_string())),
            ToolValue::Failed(failure) => Err(failure),
        }
    }

    /// The answer to the script, with the blocks that it has handles to, for the journal.
    pub(crate) async fn with_blocks(
        &self,
        value: Read,
        bytes: usize,
        kept: Kept,
    ) -> Result<ToolAnswer, serde_json::Error> {
        let of_blocks = kept.weight(&self.handles);
        let is_kept = of_blocks > 0 && self.journal.has_room(of_blocks.saturating_mul(COPIES));
        let blocks = if is_kept { kept.blocks(&self.handles) } else { Vec::new() };
        let bytes = bytes.saturating_add(usize::try_from(of_blocks).unwrap_or(usize::MAX));
        let written = off_thread(bytes, move || {
            let kept = (!blocks.is_empty()).then(|| to_raw_value(&blocks)).transpose()?;
            let value = match value {
                Read::Value(value) => to_raw_value(&value)?,
                Read::Json(json) => json,
            };
            Ok((value, kept))
        });
        Ok(match written.await? {
            (value, Some(kept)) => ToolAnswer::Kept { value, kept },
            (value, None) => ToolAnswer::Value(value),
        })
    }

    /// The context of call `index` of `name` inside the run, with the guard that cancels it when the run ends first.
    pub(crate) fn inner_context(&self, name: &str, index: u32) -> (RequestContext<RoleServer>, DropGuard) {
        let mut context = self.context.clone();
        context.ct = self.context.ct.child_token();
        let cancel = context.ct.clone().drop_guard();
        context.extensions.insert(self.nesting.clone());
        context.extensions.insert(ScriptStep(index));
        context.extensions.insert(self.room.for_answers());
        if let Some(progress) = &self.progress {
            context.extensions.insert(progress.sink(name));
        }
        (context, cancel)
    }

    /// A failure of a call with the texts `sent`, as the script sees it. Its details are kept for the reply of a run that ends with it.
    pub(crate) async fn tool_failure(
        &self,
        name: &str,
        failure: Failure,
        mut sent: SentTexts,
        app: Option<&dyn App>,
    ) -> ToolFailure {
        let (peer, own) = (&self.context.peer, &self.own_paths);
        sent.add_roots(self.sanitizer, &failure.message, &self.caller, peer, own, app).await;
        let mut seen = self.failure_knowing(&failure.code, &failure.message, &sent);
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).extend(&sent);
        seen.retry_after_seconds = failure.retry_after_seconds;
        seen.required_scopes.clone_from(&failure.required_scopes);
        if failure.has_details() {
            let mut detailed = self.detailed.lock().unwrap_or_else(PoisonError::into_inner);
            if detailed.len() < MOST_DETAILED || detailed.contains_key(name) {
                detailed.insert(name.to_owned(), failure);
            }
        }
        seen
    }

    /// The failure of `name` with this code that has details, if the run met one.
    pub(crate) fn detailed(&self, name: &str, code: &str) -> Option<Failure> {
        let detailed = self.detailed.lock().unwrap_or_else(PoisonError::into_inner);
        detailed.get(name).filter(|failure| failure.code == code).cloned()
    }

    /// Texts of the inputs of calls that failed.
    pub(crate) fn failed_inputs(&self) -> SentTexts {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn failure(&self, code: &str, message: &str) -> ToolFailure {
        self.failure_knowing(code, message, &SentTexts::default())
    }

    fn failure_knowing(&self, code: &str, message: &str, sent: &SentTexts) -> ToolFailure {
        ToolFailure {
            code: code.to_owned(),
            message: clean(self.sanitizer, message, sent),
            ..ToolFailure::default()
        }
    }

    /// Sends a client that asked for progress the next step of the plan: a call that is done, or a value of the script.
    async fn tell_progress(&self, message: String) {
        if let Some(progress) = &self.progress {
            progress.step(message).await;
        }
    }
}

/// Returns `true` if a call of `tool` may be made again when it is not known whether the first one had its effect.
fn is_repeatable(tool: &Tool) -> bool {
    let hints = tool.annotations.as_ref();
    hints.is_some_and(|hints| hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true))
}

fn outcome_unknown(name: &str) -> String {
    format!(
        "the gateway stopped while `{name}` was under way, and it is not known whether it had its effect; the tool is neither read-only nor \
         idempotent, so it was not called again: look what happened before you do"
    )
}

/// Metadata for calls inside a script: the plan's progress token is not theirs.
fn inner_meta(context: &RequestContext<RoleServer>) -> RequestMetaObject {
    let mut meta = without_tasks(context);
    meta.0.shift_remove("progressToken");
    meta
}

/// Metadata for a call whose result is part of another answer, so that its caller cannot follow a task.
pub(crate) fn without_tasks(context: &RequestContext<RoleServer>) -> RequestMetaObject {
    let mut meta = context.meta.clone();
    if let Some(mut capabilities) = context.client_capabilities().filter(|c| c.supports_tasks()) {
        if let Some(extensions) = capabilities.extensions.as_mut() {
            extensions.remove(TASKS_EXTENSION_ID);
        }
        meta.set_client_capabilities(capabilities);
    }
    meta
}

impl Host for ScriptHost {
    fn call_tool(&self, call: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        Box::pin(async move {
            let name = call.name.clone();
            self.nesting.begin_call().await?;
            let mut is_made = false;
            let answer = self.call(call, &mut is_made).await;
            if let (false, Err(failure), Some(trail)) =
                (is_made, &answer, self.context.extensions.get::<Trail>())
            {
                trail.refused(&name, &*failure.code);
            }
            self.tell_progress(format!("{} done", excerpt::name(&name))).await;
            answer
        })
    }

    fn content(
        &self,
        request: ContentRequest,
        index: u32,
        resumed: Option<Resumed>,
    ) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        Box::pin(async move {
            let function = request.function();
            self.nesting.begin_call().await?;
            let answer = self.answer(request, index, resumed.as_ref()).await;
            self.tell_progress(format!("{function} done")).await;
            answer
        })
    }

    fn restore(&self, kept: &RawValue) {
        let Ok(blocks) = serde_json::from_str::<Vec<(usize, ContentBlock)>>(kept.get()) else { return };
        for (number, block) in blocks {
            self.handles.restore(number, block);
        }
    }

    fn held_bytes(&self, own: u64) -> u64 {
        let journal = self.journal.bytes();
        self.memory.beside(own.saturating_add(journal)).saturating_add(journal)
    }

    fn progress(&self, value: Box<RawValue>) -> HostFuture<'_, ()> {
        Box::pin(async move { self.tell_progress(excerpt::name(value.get()).into_owned()).await })
    }

    fn check_plan(&self, facts: PlanFacts) -> HostFuture<'_, PlanVerdict> {
        Box::pin(async move {
            let tools = self.named_tools(&facts).await;
            let read = plan_check::read_calls(&facts);
            let calls = (0..).zip(&facts.calls).filter(|(at, _)| read.contains(at)).map(|(_, call)| call);
            let unknown = calls.filter_map(|call| match tools.get(&call.name) {
                Some(Named::Tool { entry, shape: None }) => Some((call.name.clone(), entry.clone())),
                _ => None,
            });
            let unknown: Vec<_> = unknown.collect();
            if !unknown.is_empty() {
                let unjudged = Unjudged { facts: facts.clone(), tools: unknown };
                *self.unjudged.lock().unwrap_or_else(PoisonError::into_inner) = Some(unjudged);
            }
            let is_rehearsal = self.rehearsal.is_some();
            let work = plan_check::work(&facts, &tools);
            let verdict = off_thread(work, move || plan_check::judge(&facts, &tools, is_rehearsal)).await;
            if let Some(rehearsal) = self.rehearsal.as_ref().filter(|_| verdict.refusal.is_some()) {
                rehearsal.refuse();
            }
            verdict
        })
    }

    fn hindsight(&self) -> Vec<PlanWarning> {
        let unjudged = self.unjudged.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Unjudged { facts, tools }) = unjudged else { return Vec::new() };
        let learned = tools.into_iter().filter_map(|(name, entry)| {
            let shape = Some(self.shapes.result_shape(&entry, &self.caller)?);
            Some((name, Named::Tool { entry, shape }))
        });
        plan_check::in_hindsight(&facts, &learned.collect())
    }

    fn get_tool(&self, name: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
        Box::pin(async move { self.describe_tool(&name).await })
    }
}
