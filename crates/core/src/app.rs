//! What the gateway asks of an app, wherever it runs.

use std::{future::Future, pin::Pin, sync::Arc};

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
        GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, LoggingLevel,
        ReadResourceRequestParams, ReadResourceResponse, UpdateTaskParams,
    },
    service::RequestContext,
};
use tokio::sync::broadcast;

use crate::{Catalog, NetworkTransport};

/// A boxed answer of an [`App`].
pub type AppFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whether an app can be used right now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppHealth {
    /// The first connection is still being made.
    Starting,
    /// Serving.
    Up,
    /// Not serving; its tools are gone until it is back. The text says why and is safe to show.
    Down(String),
}

/// Something about an app changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AppEvent {
    /// The catalog or the health is new: read both again.
    Changed,
    /// A resource someone subscribed to has a new content.
    ResourceUpdated(Arc<str>),
}

/// A bundle of tools, resources and prompts.
///
/// Names and URIs are the app's own: the registry adds prefixes and takes them off again. Dropping the future of a
/// call cancels it.
pub trait App: Send + Sync + 'static {
    /// What the app offers now. Cheap: a snapshot that the app keeps current by itself.
    fn catalog(&self) -> Arc<Catalog>;

    /// Whether it can be used now.
    fn health(&self) -> AppHealth;

    /// How it is reached; none when it is in this process.
    fn transport(&self) -> Option<NetworkTransport> {
        None
    }

    /// Hears of changes from now on.
    fn events(&self) -> broadcast::Receiver<AppEvent>;

    /// Calls a tool. `context.peer` is the caller's own connection: progress, logging, elicitation and sampling reach it.
    fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<CallToolResponse, ErrorData>>;

    /// Reads a resource.
    fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<ReadResourceResponse, ErrorData>>;

    /// Renders a prompt.
    fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<GetPromptResponse, ErrorData>>;

    /// Completes an argument.
    fn complete(
        &self,
        params: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<CompleteResult, ErrorData>>;

    /// Starts to follow a resource: [`AppEvent::ResourceUpdated`] tells of changes.
    fn subscribe(&self, uri: String) -> AppFuture<'_, Result<(), ErrorData>>;

    /// Stops following a resource.
    fn unsubscribe(&self, uri: String) -> AppFuture<'_, Result<(), ErrorData>>;

    /// Sets the least severe log level the app sends.
    fn set_level(&self, level: LoggingLevel) -> AppFuture<'_, Result<(), ErrorData>>;

    /// Reads a task the app made for a call (SEP-2663).
    fn get_task(
        &self,
        params: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<GetTaskResult, ErrorData>>;

    /// Answers a task's open questions (SEP-2663).
    fn update_task(
        &self,
        params: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<(), ErrorData>>;

    /// Asks a task to stop (SEP-2663).
    fn cancel_task(
        &self,
        params: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<(), ErrorData>>;

    /// Ends the app: connections closed, processes gone when the future is done.
    fn shutdown(&self) -> AppFuture<'_, ()>;
}
