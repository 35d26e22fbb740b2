//! Objects that their callers may use, as a [`View`](super::View) gives them: the only way to call an app.

use std::{marker::PhantomData, ops::Deref, sync::Arc};

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
        GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, LoggingLevel,
        ReadResourceRequestParams, ReadResourceResponse, Reference, ServerCapabilities, UpdateTaskParams,
    },
    service::RequestContext,
};

use super::{Audience, Caller, permit::Permit};
use crate::{AppEntry, AppFuture, AppOptions, ToolEntry};

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

    /// Calls the tool. For the [`Invoker`](crate::Invoker), which keeps schema, rate limit and deadline.
    pub(crate) fn call(
        &self,
        mut params: CallToolRequestParams,
        request: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<CallToolResponse, ErrorData>> {
        params.name = self.entry.local_name.to_string().into();
        self.entry.owner.app.call_tool(params, self.permit.context(request))
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
    item: PhantomData<K>,
}

impl<K> Permitted<K> {
    pub(super) fn new(owner: AppEntry, local: String, permit: Permit) -> Self {
        Self { owner, local, permit, item: PhantomData }
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
        let _open = self.owner.open.token();
        self.owner.app.read_resource(params, self.permit.context(request)).await
    }

    pub(crate) async fn subscribe(&self) -> Result<(), ErrorData> {
        self.owner.app.subscribe(self.local.clone(), &self.permit).await
    }

    pub(crate) async fn unsubscribe(&self) -> Result<(), ErrorData> {
        self.owner.app.unsubscribe(self.local.clone(), &self.permit).await
    }
}

impl Permitted<PromptItem> {
    pub(crate) async fn get(
        &self,
        mut params: GetPromptRequestParams,
        request: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        params.name.clone_from(&self.local);
        let _open = self.owner.open.token();
        self.owner.app.get_prompt(params, self.permit.context(request)).await
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
        self.owner.app.complete(params, self.permit.context(request)).await
    }
}

impl Permitted<TaskItem> {
    pub(crate) async fn get(
        &self,
        mut params: GetTaskParams,
        request: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        params.task_id.clone_from(&self.local);
        self.owner.app.get_task(params, self.permit.context(request)).await
    }

    pub(crate) async fn update(
        &self,
        mut params: UpdateTaskParams,
        request: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        params.task_id.clone_from(&self.local);
        self.owner.app.update_task(params, self.permit.context(request)).await
    }

    pub(crate) async fn cancel(
        &self,
        mut params: CancelTaskParams,
        request: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        params.task_id.clone_from(&self.local);
        self.owner.app.cancel_task(params, self.permit.context(request)).await
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
