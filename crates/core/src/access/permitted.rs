//! Objects that their callers may use, as a [`View`](super::View) gives them: the only way to call an app.

use std::{marker::PhantomData, ops::Deref, sync::Arc};

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
        GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, JsonObject, LoggingLevel,
        ReadResourceRequestParams, ReadResourceResponse, Reference, ServerCapabilities, UpdateTaskParams,
    },
    service::RequestContext,
};

use super::{
    Audience, Caller,
    decided::{Cleared, NeededApproval, Stopped, decide, decision},
    permit::Permit,
    plain::is_plain,
};
use crate::{
    AppEntry, AppOptions, Approvals, Approved, Decision, Forbidden, InvokeError, PolicyObject,
    PolicyResource, ToolEntry, questions::Answers,
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

    /// The decision of the policies on a call with `arguments`, which fit the tool's schema, without making it. It counts as a call of the run
    /// that `context` belongs to.
    pub fn decision(&self, arguments: &JsonObject, context: &RequestContext<RoleServer>) -> Decision {
        decision(&self.permit, self.entry.policy_object(), arguments, context)
    }

    /// Asks the policies about a call. For the [`Invoker`](crate::Invoker), which keeps schema, rate limit and deadline.
    ///
    /// # Errors
    /// They forbid it.
    pub(crate) async fn decide(
        &self,
        mut params: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Decided, InvokeError> {
        let arguments = params.arguments.get_or_insert_default();
        let object = self.entry.policy_object();
        let name = || self.entry.name.to_string();
        match decide(&self.permit, object, name, arguments, context).await {
            Ok(cleared) => Ok(Decided::Passes(DecidedCall { tool: self.clone(), params, cleared })),
            Err(Stopped::Approval(needed)) => {
                Ok(Decided::Asks(PendingCall { tool: self.clone(), params, needed }))
            }
            Err(Stopped::Forbidden(why)) => Err(InvokeError::Forbidden { name: name(), why }),
        }
    }

    /// The terms on which approvals are given.
    pub(crate) fn approvals(&self) -> Approvals {
        self.permit.approvals()
    }
}

/// The decision of the policies on a call that they do not forbid.
#[derive(Debug)]
pub(crate) enum Decided {
    Passes(DecidedCall),
    Asks(PendingCall),
}

/// A call that passes once it is approved, with the arguments that the policies saw.
#[derive(Debug)]
pub(crate) struct PendingCall {
    tool: PermittedTool,
    params: CallToolRequestParams,
    needed: NeededApproval,
}

impl PendingCall {
    pub(crate) fn tool(&self) -> &PermittedTool {
        &self.tool
    }

    pub(crate) fn arguments(&self) -> JsonObject {
        self.params.arguments.clone().unwrap_or_default()
    }

    /// The approval that it needs.
    pub(crate) fn needed(&self) -> &NeededApproval {
        &self.needed
    }

    /// The call, if `approved` is exactly this one.
    pub(crate) fn approved(self, approved: Approved) -> Option<DecidedCall> {
        let cleared = Cleared::by_approval(&self.needed, approved)?;
        Some(DecidedCall { tool: self.tool, params: self.params, cleared })
    }
}

/// A call that the policies let pass, with the arguments that they saw.
#[derive(Debug, Clone)]
pub(crate) struct DecidedCall {
    tool: PermittedTool,
    params: CallToolRequestParams,
    cleared: Cleared,
}

impl DecidedCall {
    /// Name of the tool, in the colon form.
    pub(crate) fn name(&self) -> &str {
        &self.tool.name
    }

    /// Calls the tool, with `answers` to what it asked before.
    pub(crate) async fn make(
        self,
        answers: Answers,
        request: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Self { tool: PermittedTool { entry, permit }, mut params, cleared } = self;
        params.name = entry.local_name.to_string().into();
        (params.input_responses, params.request_state) = (answers.responses, answers.state);
        entry.owner.app.call_tool(params, permit.context(cleared, request)).await
    }
}

/// A resource, for [`Permitted`].
#[derive(Debug, Clone, Copy)]
pub struct ResourceItem;
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

impl Permitted<ResourceItem> {
    pub(crate) async fn read(
        &self,
        mut params: ReadResourceRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        params.uri.clone_from(&self.local);
        let name = || format!("resource {}", self.local);
        let arguments = JsonObject::new();
        let cleared = decide(&self.permit, self.object(), name, &arguments, &request).await?;
        let _open = self.owner.open.token();
        self.owner.app.read_resource(params, self.permit.context(cleared, request)).await
    }

    /// The object that policies see in it.
    pub fn object(&self) -> PolicyObject<'_> {
        let is_plain = self.is_listed || is_plain(&self.local, false);
        PolicyObject::Resource(PolicyResource { app: &self.owner.id, uri: &self.local, is_plain })
    }

    /// Returns `false` if the policies never let the caller read it.
    pub(crate) fn may_be_read(&self) -> bool {
        self.permit.may(&self.object())
    }

    /// Subscribes to changes. The content is decided on when it is read.
    pub(crate) async fn subscribe(&self) -> Result<(), ErrorData> {
        if !self.may_be_read() {
            return Err(Stopped::Forbidden(Forbidden::NotPermitted).into());
        }
        self.owner.app.subscribe(self.local.clone(), &self.permit).await
    }

    pub(crate) async fn unsubscribe(&self) -> Result<(), ErrorData> {
        self.owner.app.unsubscribe(self.local.clone(), &self.permit).await
    }
}

impl Permitted<PromptItem> {
    /// The object that policies see in it.
    pub fn object(&self) -> PolicyObject<'_> {
        PolicyObject::Prompt { app: &self.owner.id, name: &self.local }
    }

    pub(crate) async fn get(
        &self,
        mut params: GetPromptRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        params.name.clone_from(&self.local);
        let name = || format!("prompt {}:{}", self.owner.id, self.local);
        let none = JsonObject::new();
        let arguments = params.arguments.as_ref().unwrap_or(&none);
        let cleared = decide(&self.permit, self.object(), name, arguments, &request).await?;
        let _open = self.owner.open.token();
        self.owner.app.get_prompt(params, self.permit.context(cleared, request)).await
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
        self.owner.app.complete(params, self.permit.context(Cleared::with_the_view(), request)).await
    }
}

impl Permitted<TaskItem> {
    pub(crate) async fn get(
        &self,
        mut params: GetTaskParams,
        request: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        params.task_id.clone_from(&self.local);
        self.owner.app.get_task(params, self.permit.context(Cleared::with_its_call(), request)).await
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
