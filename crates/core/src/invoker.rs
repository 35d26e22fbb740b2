//! The one path to a tool: the caller's view (visibility, scopes) → schema → policies → rate limit → deadline → handler.

use std::{
    net::IpAddr,
    sync::{Arc, LazyLock, OnceLock},
    time::Duration,
};

use futures::future::BoxFuture;
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, InputRequiredResult, JsonObject},
    service::RequestContext,
};
use serde_json::Value;

use crate::{
    AppFuture, ApprovalStore, Caller, CallerAddress, CountedBefore, Denied, Forbidden, InvokeError, Paginate,
    PermittedTool, Principal, Registry, SchemaMode, SealKey, ToolEntry, Trail, Unavailable,
    access::{OpenTask, Sealer, decide},
    bulk::{bulk, off_thread},
    names::clipped,
    observe::{Observer, Observers, PlanFacts, PlanWatch},
    questions::{ArgumentsDigest, CallKey, Conversation, OpenCallId, OpenCalls, Repetitions, Unanswered},
    request_flow::{NotTaken, RequestFlow},
    state_home::{PassedOn, StateHome},
};

/// Time to wait before the next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryAfter(pub Duration);

/// Says whether one more call fits.
pub trait RateLimiter: Send + Sync + 'static {
    /// Counts one call of `tool` by `principal`, which came from `address` when it came over HTTP. Names are in the colon form.
    fn check<'a>(
        &'a self,
        tool: &'a str,
        principal: &'a Principal,
        address: Option<IpAddr>,
    ) -> AppFuture<'a, Result<(), RetryAfter>>;
}

/// Notified of the results of tools.
pub trait ResultListener: Send + Sync + 'static {
    /// Called once with each result of `tool`, before its caller gets it: it must be quick.
    fn answered(&self, tool: &PermittedTool, result: &CallToolResult);
}

/// The state of an open call that an answer rests on, where an app of this process answers with questions of others: an extension of the context
/// of its call. A retry belongs to the instance that the state names.
#[derive(Debug, Clone, Default)]
pub struct RestsOn(Arc<OnceLock<String>>);

impl RestsOn {
    /// Notes the state of an open call. Only the first one is kept.
    pub fn note(&self, state: &str) {
        let _ = self.0.set(state.to_owned());
    }
}

/// Calls tools. Direct `tools/call`, `codecall:invoke` and `callTool` inside a script all come through here.
pub struct Invoker {
    registry: Arc<Registry>,
    limiter: Option<Arc<dyn RateLimiter>>,
    sealer: Sealer,
    listener: OnceLock<Arc<dyn ResultListener>>,
    open_calls: OpenCalls,
    repetitions: Repetitions,
    home: OnceLock<Arc<dyn StateHome>>,
    approvals: Arc<ApprovalStore>,
    observers: OnceLock<Observers>,
}

impl std::fmt::Debug for Invoker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Invoker").finish_non_exhaustive()
    }
}

impl Invoker {
    /// An invoker over `registry`, without rate limits, whose sealed values only this process can open.
    pub fn new(registry: Arc<Registry>) -> Self {
        Self {
            registry,
            limiter: None,
            sealer: Sealer::new(&SealKey::random()),
            listener: OnceLock::new(),
            open_calls: OpenCalls::default(),
            repetitions: Repetitions::default(),
            home: OnceLock::new(),
            approvals: Arc::new(ApprovalStore::in_memory()),
            observers: OnceLock::new(),
        }
    }

    /// Counts every call with `limiter`.
    #[must_use]
    pub fn rate_limiter(mut self, limiter: Arc<dyn RateLimiter>) -> Self {
        self.limiter = Some(limiter);
        self
    }

    /// Seals ids of tasks and the state of requests with `key`, for instances that share it.
    #[must_use]
    pub fn seal_key(mut self, key: &SealKey) -> Self {
        self.sealer = Sealer::new(key);
        self
    }

    /// Keeps approvals in `store`. Default: in memory.
    #[must_use]
    pub fn approvals_in(mut self, store: Arc<ApprovalStore>) -> Self {
        self.approvals = store;
        self
    }

    /// The approvals that calls wait for.
    pub fn approvals(&self) -> &Arc<ApprovalStore> {
        &self.approvals
    }

    /// Notifies `listener` of every result from now on. Only the first listener is kept.
    pub fn notify(&self, listener: Arc<dyn ResultListener>) {
        let _ = self.listener.set(listener);
    }

    /// Marks the states of calls that are held open from now on. Only the first home is kept.
    pub fn at_home(&self, home: Arc<dyn StateHome>) {
        let _ = self.home.set(home);
    }

    /// Tells `observers` of what is called from now on. Only the first ones are kept.
    pub(crate) fn observe(&self, observers: Vec<Arc<dyn Observer>>) {
        let _ = self.observers.set(Observers::new(observers));
    }

    pub(crate) fn observers(&self) -> &Observers {
        static NOBODY: LazyLock<Observers> = LazyLock::new(|| Observers::new(Vec::new()));
        self.observers.get().unwrap_or(&NOBODY)
    }

    /// Tells observers of the calls of `plan`, which goes on without a client for `principal`: those that are made with `context` from now on.
    pub fn watch_plan(
        &self,
        plan: PlanFacts<'_>,
        principal: &Principal,
        context: &mut RequestContext<RoleServer>,
    ) -> PlanWatch {
        PlanWatch::begin(self.observers(), plan, principal, context)
    }

    /// The registry behind it.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Seals a text for `principal` and an object, such as a script: nobody else can use it, and for nothing else.
    pub fn seal(&self, principal: &Principal, object: &str, text: &str) -> String {
        self.sealer.state(principal, object, text)
    }

    /// The text that was sealed for `principal` and `object`; none for anything else.
    pub fn unseal(&self, principal: &Principal, object: &str, sealed: &str) -> Option<String> {
        self.sealer.open_state(principal, object, sealed)
    }

    /// The state `to`, marked with the instance of the state `from` if that is of an open call.
    pub fn at_home_of(&self, from: &str, to: String) -> String {
        self.home.get().and_then(|home| home.mark_as(from, &to)).unwrap_or(to)
    }

    /// Returns `true` if there may be other instances.
    pub fn has_others(&self) -> bool {
        self.home.get().is_some()
    }

    /// Has the instance that holds the call of `state` serve a request of `caller`, and returns its result. `None` if that is this instance, or one that is
    /// gone and did nothing.
    pub async fn pass_on(
        &self,
        state: &str,
        caller: &Caller,
        request: PassedOn,
    ) -> Option<Result<Value, ErrorData>> {
        self.home.get()?.pass_on(state, caller, request).await
    }

    pub(crate) fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    /// Finds a tool by either spelling of its name.
    ///
    /// # Errors
    /// `TOOL_NOT_FOUND` with the nearest name that `caller` may call, `ACCESS_DENIED` with the scopes that it lacks, and
    /// `UPSTREAM_STARTING`, `UPSTREAM_DOWN` or `AUTHORIZATION_REQUIRED` when the tool's app is not there for the caller. An app that
    /// makes its first connection is waited for.
    pub async fn find(&self, name: &str, caller: &Caller) -> Result<PermittedTool, InvokeError> {
        self.find_among(name, caller, |_| true).await
    }

    /// The same for a way of calling that reaches only tools that `reaches` accepts: no other one is named as the nearest.
    pub async fn find_among(
        &self,
        name: &str,
        caller: &Caller,
        reaches: impl Fn(&ToolEntry) -> bool,
    ) -> Result<PermittedTool, InvokeError> {
        let mut found = self.registry.decide(caller, |view| view.tool(name)).await;
        if matches!(found, Err(Denied::Unknown)) && self.registry.first_connection_for(name).await {
            found = self.registry.decide(caller, |view| view.tool(name)).await;
        }
        match found {
            Ok(tool) => Ok(tool),
            Err(Denied::Unknown) => Err(Box::pin(self.unknown(name, caller, reaches)).await),
            Err(Denied::Policies) => {
                Err(InvokeError::Forbidden { name: clipped(name).to_owned(), why: Forbidden::NotPermitted })
            }
            Err(Denied::Ended) => {
                Err(InvokeError::Forbidden { name: clipped(name).to_owned(), why: Forbidden::Ended })
            }
            Err(Denied::Scopes(missing)) => {
                Err(InvokeError::MissingScopes { name: clipped(name).to_owned(), missing })
            }
        }
    }

    /// Returns `true` if `caller` has to sign in at the app of the tool `name` before it can be called.
    pub async fn lacks_sign_in(&self, name: &str, caller: &Caller) -> bool {
        let view = self.registry.ready_view(caller).await;
        view.unavailable_owner(name).is_some_and(|app| matches!(app.why, Unavailable::SignIn(_)))
    }

    /// Why there is no tool `name` for `caller`.
    async fn unknown(
        &self,
        name: &str,
        caller: &Caller,
        reaches: impl Fn(&ToolEntry) -> bool,
    ) -> InvokeError {
        let view = self.registry.ready_view(caller).await;
        match view.unavailable_owner(name) {
            Some(app) => InvokeError::Unavailable { name: name.to_owned(), app },
            None => InvokeError::NotFound { name: name.to_owned(), nearest: view.nearest(name, reaches) },
        }
    }

    /// Counts one call of `tool`, which may be a meta-tool.
    ///
    /// # Errors
    /// `RATE_LIMIT` with the time to wait.
    pub async fn count(
        &self,
        tool: &str,
        principal: &Principal,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), InvokeError> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        let address = CallerAddress::of(context).map(|at| at.0);
        limiter.check(tool, principal, address).await.map_err(|RetryAfter(retry_after)| {
            InvokeError::RateLimited { name: tool.to_owned(), retry_after }
        })
    }

    /// Checks the arguments of a call of `tool` without making it. Returns them with the defaults that they lack, but without hidden parameters.
    ///
    /// # Errors
    /// The arguments do not fit the tool's input schema.
    pub async fn check(
        &self,
        tool: &PermittedTool,
        arguments: JsonObject,
    ) -> Result<JsonObject, InvokeError> {
        let (mut arguments, _) = check_arguments(tool, arguments, false).await?;
        tool.arguments.hide(&mut arguments);
        Ok(arguments)
    }

    /// Calls `tool` for the caller it was permitted to. The call ends when `context.ct` is cancelled or the app's timeout passes;
    /// either way the work behind it is cancelled too.
    ///
    /// # Errors
    /// Every way a call can miss its tool; a tool that ran and failed is an `Ok` with `is_error`.
    pub fn call<'a>(
        &'a self,
        tool: &'a PermittedTool,
        params: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> BoxFuture<'a, Result<CallToolResponse, InvokeError>> {
        Box::pin(async move {
            let rests_on = RestsOn::default();
            context.extensions.insert(rests_on.clone());
            let mut answer = self.traced(tool, params, context).await;
            if let (Ok(CallToolResponse::InputRequired(asks)), Some(open_call)) =
                (&mut answer, rests_on.0.get())
            {
                asks.request_state = asks.request_state.take().map(|state| self.at_home_of(open_call, state));
            }
            answer
        })
    }

    async fn traced(
        &self,
        tool: &PermittedTool,
        params: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, InvokeError> {
        let Some(trail) = context.extensions.get::<Trail>() else {
            return self.pass(tool, params, context).await;
        };
        let Some(note) = trail.begin(tool.name.clone(), tool.app_id.clone(), tool.owner.app.transport())
        else {
            // What it was made for is over: it would be in no audit.
            return Err(InvokeError::Cancelled { name: tool.name.to_string() });
        };
        note.tell(&mut context.meta.0);
        let answer = self.pass(tool, params, context).await;
        note.end(&answer);
        answer
    }

    async fn pass(
        &self,
        tool: &PermittedTool,
        mut params: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, InvokeError> {
        let principal = tool.caller().principal();
        let name = || tool.name.to_string();
        let options = &tool.owner.options;
        let conversation = Conversation {
            open_calls: &self.open_calls,
            principal,
            is_remote: tool.owner.app.transport().is_some(),
            timeout: options.timeout,
            longest: options.question_timeout,
        };
        let may_hold = conversation.may_hold(&context);
        let (arguments, digest) =
            check_arguments(tool, params.arguments.take().unwrap_or_default(), may_hold).await?;
        params.arguments = Some(arguments);
        let (responses, state) = (params.input_responses.take(), params.request_state.take());
        let repeated = state.as_deref().and_then(|state| self.repetitions.take(state));
        let brought = self.brought(principal, &tool.name, responses, state).map_err(|problem| {
            // A protocol error, as MCP wants it of a state that was changed (SEP-2322).
            InvokeError::App { name: name(), error: ErrorData::invalid_params(problem, None) }
        })?;
        let decided = decide(tool, params, &context)
            .await
            .map_err(|why| InvokeError::Forbidden { name: name(), why })?;
        let is_paged = context.extensions.get::<Paginate>().is_some();
        let by_script = context.extensions.remove::<CountedBefore>().is_some();
        // An open call is resumed once for each time that it asks.
        if repeated.is_none() && !by_script && brought.answers.open_call.is_none() {
            self.count(&tool.name, principal, &context).await?;
        }
        let key = digest.map(|digest| CallKey::new(principal, &tool.name, digest));
        let flow = RequestFlow { sealed_for: &tool.name, conversation, key, brought, decided };
        let mut response = self.take(flow, context).await.map_err(|why| match why {
            NotTaken::Stopped(error) => error,
            NotTaken::Unanswered(why) => missed(name(), why, options.timeout),
            NotTaken::Cancelled => InvokeError::Cancelled { name: name() },
        })?;
        match &mut response {
            CallToolResponse::InputRequired(asks) => self.remember(asks, repeated),
            CallToolResponse::Task(created) => {
                let task = OpenTask {
                    app: tool.app_id.to_string(),
                    tool: tool.name.to_string(),
                    id: std::mem::take(&mut created.task.task_id),
                    scopes: tool.meta.scopes.clone(),
                };
                created.task.task_id = self.sealer.task(principal, &task);
            }
            CallToolResponse::Complete(result) => {
                // A result of all pages is none of the tool's own.
                if let Some(listener) = self.listener.get().filter(|_| !is_paged) {
                    listener.answered(tool, result);
                }
            }
            _ => {}
        }
        Ok(response)
    }

    /// Remembers the state of a call that asks, which asked `repeated` times before: its retry is the same call for rate limits.
    fn remember(&self, asks: &InputRequiredResult, repeated: Option<usize>) {
        if let Some(state) = &asks.request_state {
            self.repetitions.add(state, repeated.unwrap_or(0));
        }
    }

    /// The questions of a call for `object` that is held open under `id`.
    pub(crate) fn questions_of_open_call(
        &self,
        principal: &Principal,
        object: &str,
        mut asks: InputRequiredResult,
        id: OpenCallId,
    ) -> InputRequiredResult {
        let state = self.sealer.seal_open_call(principal, object, &id.text());
        let state = match self.home.get() {
            Some(home) => home.mark(&state),
            None => state,
        };
        self.open_calls.note_state(id, &state);
        asks.request_state = Some(state);
        asks
    }

    /// Cancels the call that is held open here until its questions are answered with `state`: nobody will answer them. Other states are left
    /// alone.
    pub fn withdraw(&self, state: &str) {
        self.open_calls.withdraw(state);
    }

    pub(crate) fn open_calls(&self) -> &OpenCalls {
        &self.open_calls
    }
}

fn missed(name: String, why: Unanswered, timeout: Duration) -> InvokeError {
    match why {
        Unanswered::App(error) => InvokeError::App { name, error },
        Unanswered::TimedOut => InvokeError::TimedOut { name, after: timeout },
        Unanswered::Question(unasked) => InvokeError::InputRequired { name, unasked },
        Unanswered::Over => InvokeError::InputExpired { name },
        Unanswered::Unfit(problem) => {
            InvokeError::App { name, error: ErrorData::invalid_params(problem, None) }
        }
    }
}

/// The arguments with the defaults of what they lack, if `tool` is as it was approved and they fit its input schema; and their digest if it `is_needed`.
pub(crate) async fn check_arguments(
    tool: &PermittedTool,
    arguments: JsonObject,
    is_needed: bool,
) -> Result<(JsonObject, Option<ArgumentsDigest>), InvokeError> {
    let fitting = fitting_arguments(tool.entry(), arguments, is_needed).await;
    match fitting {
        // The problems would describe a tool that the policies keep from this caller.
        Err(_) if !tool.may_be_called() => {
            Err(InvokeError::Forbidden { name: tool.name.to_string(), why: Forbidden::NotPermitted })
        }
        fitting => fitting,
    }
}

async fn fitting_arguments(
    tool: &Arc<ToolEntry>,
    mut arguments: JsonObject,
    is_needed: bool,
) -> Result<(JsonObject, Option<ArgumentsDigest>), InvokeError> {
    if tool.is_changed {
        return Err(InvokeError::Changed { name: tool.name.to_string() });
    }
    if let Some(hidden) = tool.arguments.refused(&arguments) {
        let problems = format!("/{hidden}: the tool has no such parameter");
        return Err(InvokeError::InvalidArguments { name: tool.name.to_string(), problems });
    }
    tool.arguments.fill(&mut arguments);
    let is_checked = tool.owner.options.schema_mode != SchemaMode::Off;
    if !is_checked && !is_needed {
        return Ok((arguments, None));
    }
    // Moved into a `Value` and out again: the validator reads values, and a copy would cost more than the check.
    let value = Value::Object(arguments);
    // A large schema takes as long as large arguments.
    let size = if is_checked { bulk(&value).max(tool.schema.bulk()) } else { bulk(&value) };
    let schema_of = tool.clone();
    let (value, checked) = off_thread(size, move || {
        let mut value = value;
        if let Value::Object(arguments) = &mut value
            && is_checked
        {
            schema_of.schema.fill_defaults(arguments);
        }
        let checked = if is_checked { schema_of.schema.check(&value) } else { Ok(()) };
        let digest = match &value {
            Value::Object(arguments) if is_needed => Some(ArgumentsDigest::of(arguments)),
            _ => None,
        };
        (value, checked.map(|()| digest))
    })
    .await;
    let digest = checked
        .map_err(|problems| InvokeError::InvalidArguments { name: tool.name.to_string(), problems })?;
    let Value::Object(arguments) = value else { unreachable!("it was made an object above") };
    Ok((arguments, digest))
}
