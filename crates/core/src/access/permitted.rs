//! Objects that their callers may use, as a [`View`](super::View) gives them: the only way to call an app.

use std::{fmt, marker::PhantomData, ops::Deref, sync::Arc};

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
        CompletionInfo, ErrorCode, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
        JsonObject, LoggingLevel, ReadResourceRequestParams, ReadResourceResponse, Reference,
        ServerCapabilities, TaskPayload, UpdateTaskParams,
    },
    service::RequestContext,
};

use super::{
    Audience, CallContext, Caller, decided::Cleared, expansion::Expansion, permit::Permit, plain::is_plain,
    request::Requested,
};
use crate::{
    App, AppEntry, AppFuture, AppOptions, PolicyObject, PolicyResource, RequestObject, ToolEntry,
    questions::{Answers, Asking, CannotAsk, MOST_QUESTIONS, leads_to_web, missing},
};

/// A tool that its caller may call.
#[derive(Debug, Clone)]
pub struct PermittedTool {
    entry: Arc<ToolEntry>,
    permit: Permit,
}

impl Deref for PermittedTool {
    type Target = ToolEntry;

    fn deref(&self) -> &ToolEntry {
        &self.entry
    }
}

impl PermittedTool {
    pub(super) fn new(entry: Arc<ToolEntry>, permit: Permit) -> Self {
        Self { entry, permit }
    }

    /// The caller that was permitted.
    pub fn caller(&self) -> &Caller {
        self.permit.caller()
    }

    /// The tool.
    pub fn entry(&self) -> &Arc<ToolEntry> {
        &self.entry
    }

    /// Returns `false` if the policies let no call of the caller pass, whatever its arguments.
    pub fn may_be_called(&self) -> bool {
        self.permit.may(&self.entry.policy_object())
    }
}

impl Requested for PermittedTool {
    type Params = CallToolRequestParams;
    type Response = CallToolResponse;

    fn permit(&self) -> &Permit {
        &self.permit
    }

    fn owner(&self) -> &AppEntry {
        &self.entry.owner
    }

    fn policy_object(&self) -> PolicyObject<'_> {
        self.entry.policy_object()
    }

    fn request_object(&self) -> RequestObject {
        RequestObject::Tool(self.entry.name.to_string())
    }

    fn arguments(params: &CallToolRequestParams) -> Option<&JsonObject> {
        params.arguments.as_ref()
    }

    fn send(
        self,
        mut params: CallToolRequestParams,
        answers: Answers,
        context: CallContext,
    ) -> AppFuture<'static, Result<CallToolResponse, ErrorData>> {
        params.name = self.entry.upstream_name.to_string().into();
        (params.input_responses, params.request_state) = (answers.responses, answers.state);
        Box::pin(async move { self.entry.owner.app.call_tool(params, context).await })
    }
}

/// A resource, for [`Permitted`].
#[derive(Debug, Clone, Copy)]
pub struct ResourceItem;
/// A resource that may be read, to subscribe to, for [`Permitted`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct SubscribedItem;
/// A prompt, for [`Permitted`].
#[derive(Debug, Clone, Copy)]
pub struct PromptItem;
/// A prompt or a resource template whose arguments are completed, for [`Permitted`].
#[derive(Debug, Clone, Copy)]
pub struct Completion;
/// A task, for [`Permitted`].
#[derive(Debug, Clone, Copy)]
pub struct TaskItem;
/// An app as a whole, for [`Permitted`].
#[derive(Debug, Clone, Copy)]
pub struct WholeApp;

/// An object of an app, other than a tool, that its caller may use.
#[derive(Debug, Clone)]
pub struct Permitted<K> {
    owner: AppEntry,
    local: String,
    permit: Permit,
    /// `true` for what the app lists in these words.
    is_listed: bool,
    item: PhantomData<K>,
}

impl<K> Permitted<K> {
    pub(super) fn new(owner: AppEntry, local: String, permit: Permit) -> Self {
        Self { owner, local, permit, is_listed: true, item: PhantomData }
    }

    /// The same for an object that the app need not list.
    pub(super) fn listed(self, is_listed: bool) -> Self {
        Self { is_listed, ..self }
    }

    /// Id of the app.
    pub fn app_id(&self) -> &Arc<str> {
        &self.owner.id
    }

    /// The app.
    pub(crate) fn app(&self) -> &Arc<dyn App> {
        &self.owner.app
    }

    /// The network transport of the app, if it has one.
    pub(crate) fn transport(&self) -> Option<crate::NetworkTransport> {
        self.owner.app.transport()
    }

    /// Options under which the app is called.
    pub(crate) fn options(&self) -> &AppOptions {
        &self.owner.options
    }

    /// The app's own name or URI for the object.
    pub fn local(&self) -> &str {
        &self.local
    }

    /// The caller that was permitted.
    pub fn caller(&self) -> &Caller {
        self.permit.caller()
    }

    /// The callers who share the object at this app with this one.
    pub(crate) fn audience(&self) -> Audience {
        let own = self.owner.app.per_caller();
        own.map_or(Audience::Everyone, |own| own.audience(self.permit.caller()))
    }

    fn capabilities(&self) -> ServerCapabilities {
        self.owner.catalog_for(self.permit.caller()).capabilities.clone()
    }
}

/// Content of apps that clients get whole: the differences between reading a resource and getting a prompt.
pub(crate) trait Content: Copy + fmt::Debug + Send + Sync + 'static {
    /// Parameters of the request.
    type Params: Clone + fmt::Debug + Send + Sync + 'static;
    /// The app's response.
    type Response: Asking;

    /// The object that policies see in `item`.
    fn policy_object(item: &Permitted<Self>) -> PolicyObject<'_>;

    /// The object `name` as approvals name it.
    fn request_object(name: String) -> RequestObject;

    /// The arguments that policies see.
    fn arguments(params: &Self::Params) -> Option<&JsonObject>;

    /// Sends the request for what `owner` calls `local`, with `answers` to what it asked before.
    fn send(
        owner: AppEntry,
        local: String,
        params: Self::Params,
        answers: Answers,
        context: CallContext,
    ) -> AppFuture<'static, Result<Self::Response, ErrorData>>;
}

impl<K: Content> Requested for Permitted<K> {
    type Params = K::Params;
    type Response = K::Response;

    fn permit(&self) -> &Permit {
        &self.permit
    }

    fn owner(&self) -> &AppEntry {
        &self.owner
    }

    fn policy_object(&self) -> PolicyObject<'_> {
        K::policy_object(self)
    }

    fn request_object(&self) -> RequestObject {
        K::request_object(format!("{}:{}", self.owner.id, self.local))
    }

    fn arguments(params: &K::Params) -> Option<&JsonObject> {
        K::arguments(params)
    }

    fn send(
        self,
        params: K::Params,
        answers: Answers,
        context: CallContext,
    ) -> AppFuture<'static, Result<K::Response, ErrorData>> {
        K::send(self.owner, self.local, params, answers, context)
    }
}

impl Content for ResourceItem {
    type Params = ReadResourceRequestParams;
    type Response = ReadResourceResponse;

    fn policy_object(item: &Permitted<Self>) -> PolicyObject<'_> {
        item.object()
    }

    fn request_object(name: String) -> RequestObject {
        RequestObject::Resource(name)
    }

    fn arguments(_: &ReadResourceRequestParams) -> Option<&JsonObject> {
        None
    }

    fn send(
        owner: AppEntry,
        local: String,
        mut params: ReadResourceRequestParams,
        answers: Answers,
        context: CallContext,
    ) -> AppFuture<'static, Result<ReadResourceResponse, ErrorData>> {
        params.uri = local;
        (params.input_responses, params.request_state) = (answers.responses, answers.state);
        Box::pin(async move { owner.app.read_resource(params, context).await })
    }
}

impl Permitted<ResourceItem> {
    /// The object that policies see in it.
    pub fn object(&self) -> PolicyObject<'_> {
        let is_plain = self.is_listed || is_plain(&self.local, false);
        PolicyObject::Resource(PolicyResource { app: &self.owner.id, uri: &self.local, is_plain })
    }

    /// Returns `false` if the policies never let the caller read it.
    pub(super) fn may_be_read(&self) -> bool {
        self.permit.may(&self.object())
    }

    /// The same resource to subscribe to; none if the policies never let the caller read it.
    pub(super) fn into_followed(self) -> Option<Permitted<SubscribedItem>> {
        let Self { owner, local, permit, is_listed, .. } = &self;
        let followed = Permitted::new(owner.clone(), local.clone(), permit.clone()).listed(*is_listed);
        self.may_be_read().then_some(followed)
    }
}

impl Permitted<SubscribedItem> {
    /// Subscribes to changes. The content is decided on when it is read.
    pub(crate) async fn subscribe(&self) -> Result<(), ErrorData> {
        self.settle(self.owner.app.subscribe(self.local.clone(), &self.permit).await)
    }

    pub(crate) async fn unsubscribe(&self) -> Result<(), ErrorData> {
        self.settle(self.owner.app.unsubscribe(self.local.clone(), &self.permit).await)
    }

    /// The answer of an app, for the capability that the gateway declares: an app that does not declare it, and does not know the method,
    /// announces no changes.
    fn settle(&self, answer: Result<(), ErrorData>) -> Result<(), ErrorData> {
        let catalog = self.owner.app.catalog();
        let resources = catalog.capabilities.resources.as_ref();
        let is_declared = resources.is_some_and(|resources| resources.subscribe == Some(true));
        match answer {
            Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND && !is_declared => Ok(()),
            answer => answer,
        }
    }
}

impl Permitted<PromptItem> {
    /// The object that policies see in it.
    pub fn object(&self) -> PolicyObject<'_> {
        PolicyObject::Prompt { app: &self.owner.id, name: &self.local }
    }
}

impl Content for PromptItem {
    type Params = GetPromptRequestParams;
    type Response = GetPromptResponse;

    fn policy_object(item: &Permitted<Self>) -> PolicyObject<'_> {
        item.object()
    }

    fn request_object(name: String) -> RequestObject {
        RequestObject::Prompt(name)
    }

    fn arguments(params: &GetPromptRequestParams) -> Option<&JsonObject> {
        params.arguments.as_ref()
    }

    fn send(
        owner: AppEntry,
        local: String,
        mut params: GetPromptRequestParams,
        answers: Answers,
        context: CallContext,
    ) -> AppFuture<'static, Result<GetPromptResponse, ErrorData>> {
        params.name = local;
        (params.input_responses, params.request_state) = (answers.responses, answers.state);
        Box::pin(async move { owner.app.get_prompt(params, context).await })
    }
}

impl Permitted<Completion> {
    /// Completes an argument. Nothing where the app completes nothing.
    pub(crate) async fn complete(
        &self,
        mut params: CompleteRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        match &mut params.r#ref {
            Reference::Prompt(prompt) => prompt.name.clone_from(&self.local),
            Reference::Resource(resource) => resource.uri.clone_from(&self.local),
            _ => {}
        }
        if self.capabilities().completions.is_none() {
            return Ok(CompleteResult::default());
        }
        let _open = self.owner.open.token();
        let uri = match &params.r#ref {
            Reference::Resource(_) => {
                let others = params.context.as_ref().and_then(|context| context.arguments.as_ref());
                Some(Expansion::of(&self.local, &params.argument.name, others))
            }
            _ => None,
        };
        let context = self.permit.context(Cleared::with_the_view(), request);
        let mut result = self.owner.app.complete(params, context).await?;
        if let Some(uri) = uri {
            let values = &mut result.completion.values;
            values.truncate(CompletionInfo::MAX_VALUES);
            let before = values.len();
            values.retain(|value| self.may_read(uri.with(value).as_deref()));
            if values.len() < before {
                // The number would tell of the others.
                result.completion.total = None;
            }
        }
        Ok(result)
    }

    /// Returns `false` if the caller lacks scopes for the resource `uri` of the app, or the policies never let it read that, or if they look at URIs and
    /// this one cannot be told.
    fn may_read(&self, uri: Option<&str>) -> bool {
        let is_plain = uri.is_some_and(|uri| is_plain(uri, false));
        let uri = uri.unwrap_or(&self.local);
        let scopes = self.owner.scopes_of_uri(uri, false);
        if !self.permit.caller().principal().missing(&scopes).is_empty() {
            return false;
        }
        self.permit.may(&PolicyObject::Resource(PolicyResource { app: &self.owner.id, uri, is_plain }))
    }
}

impl Permitted<TaskItem> {
    pub(crate) async fn get(
        &self,
        mut params: GetTaskParams,
        request: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        params.task_id.clone_from(&self.local);
        let has = request.client_capabilities().unwrap_or_default();
        let context = self.permit.context(Cleared::with_its_call(), request);
        let mut result = self.owner.app.get_task(params, context).await?;
        // What a task asks is asked as what a call asks; who cannot answer a question learns that the task waits, and nothing more.
        if let TaskPayload::InputRequired { input_requests } = &mut result.task.payload {
            if input_requests.len() > MOST_QUESTIONS {
                return Err(CannotAsk::TooMany.into_error());
            }
            input_requests.values().try_for_each(leads_to_web).map_err(CannotAsk::into_error)?;
            input_requests.retain(|_, request| missing(request, &has).is_none());
        }
        Ok(result)
    }

    pub(crate) async fn update(
        &self,
        mut params: UpdateTaskParams,
        request: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        params.task_id.clone_from(&self.local);
        self.owner.app.update_task(params, self.permit.context(Cleared::with_its_call(), request)).await
    }

    pub(crate) async fn cancel(
        &self,
        mut params: CancelTaskParams,
        request: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        params.task_id.clone_from(&self.local);
        self.owner.app.cancel_task(params, self.permit.context(Cleared::with_its_call(), request)).await
    }
}

impl Permitted<WholeApp> {
    /// Asks the app for log messages of `level` and above, where it has any.
    pub(crate) async fn set_level(&self, level: LoggingLevel) -> Result<(), ErrorData> {
        if self.capabilities().logging.is_none() {
            return Ok(());
        }
        self.owner.app.set_level(level, &self.permit).await
    }
}
