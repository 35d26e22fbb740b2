//! The interface of an app, wherever it runs.

use std::{future::Future, pin::Pin, sync::Arc};

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
        GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, LoggingLevel,
        ReadResourceRequestParams, ReadResourceResponse, UpdateTaskParams,
    },
};
use tokio::sync::broadcast;

use crate::{Audience, CallContext, Caller, Catalog, DownReason, NetworkTransport, Permit, Unavailable};

/// A boxed answer of an [`App`].
pub type AppFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Health of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppHealth {
    /// The first connection is still being made.
    Starting,
    /// Serving.
    Up,
    /// Not serving; its tools are gone until it is back.
    Down(DownReason),
}

/// Pages of a tool's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// The app can collect none.
    Unavailable,
    /// The app can collect them if an answer has more.
    Possible,
    /// The tool is described as one with pages.
    Described,
}

/// Something about an app changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AppEvent {
    /// The catalog for these callers is new, or the health, which is that of everyone: read it again.
    Changed(Audience),
    /// A resource that one of these callers subscribed to has a new content.
    ResourceUpdated(Arc<str>, Audience),
}

/// Catalogs that differ from caller to caller.
pub trait PerCaller: Send + Sync {
    /// The callers who share a catalog with `caller`, and a connection where there is one.
    fn audience(&self, caller: &Caller) -> Audience;

    /// The catalog of `audience` besides [`App::catalog`]; none while it is not known. Cheap.
    fn catalog(&self, audience: &Audience) -> Option<Arc<Catalog>>;

    /// Returns once the catalog for `caller` is there, or it is clear that there is none for now.
    fn prepare<'a>(&'a self, caller: &'a Caller) -> AppFuture<'a, ()>;

    /// The reason why the app offers `caller` nothing, or only what everybody is offered; none otherwise.
    /// [`Unavailable::SignIn`] has the app's own name of the tool.
    fn unavailable<'a>(&'a self, caller: &'a Caller) -> AppFuture<'a, Option<Unavailable>> {
        let _ = caller;
        Box::pin(async { None })
    }

    /// Returns `true` if one of the catalogs has tools that make tasks.
    fn supports_tasks(&self) -> bool;
}

/// A bundle of tools, resources and prompts.
///
/// Names and URIs are the app's own: the registry adds prefixes and takes them off again. Dropping the future of a
/// call cancels it. What an app does for a caller takes a [`CallContext`] or a [`Permit`], which only the [`View`](crate::View) of
/// that caller makes: nothing else calls an app.
pub trait App: Send + Sync + 'static {
    /// The current catalog for all callers. Cheap: a snapshot that the app keeps current by itself.
    fn catalog(&self) -> Arc<Catalog>;

    /// The catalogs of single callers; none for apps that offer the same to all.
    fn per_caller(&self) -> Option<&dyn PerCaller> {
        None
    }

    /// Pages of the results of `tool`, by the app's own name. Default: none that [`Paginate`](crate::Paginate) can collect.
    fn paging(&self, tool: &str) -> Paging {
        let _ = tool;
        Paging::Unavailable
    }

    /// The current health.
    fn health(&self) -> AppHealth;

    /// The transport to the app; none when it is in this process.
    fn transport(&self) -> Option<NetworkTransport> {
        None
    }

    /// Absolute folders that its configuration gives it to work in, such as those on a server's command line. Errors of its calls may name what is
    /// in them.
    fn folders(&self) -> Vec<String> {
        Vec::new()
    }

    /// Hears of changes from now on.
    fn events(&self) -> broadcast::Receiver<AppEvent>;

    /// Calls a tool.
    fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<CallToolResponse, ErrorData>>;

    /// Reads a resource.
    fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<ReadResourceResponse, ErrorData>>;

    /// Renders a prompt.
    fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<GetPromptResponse, ErrorData>>;

    /// Completes an argument.
    fn complete(
        &self,
        params: CompleteRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<CompleteResult, ErrorData>>;

    /// Starts to follow a resource: [`AppEvent::ResourceUpdated`] tells of changes.
    fn subscribe<'a>(&'a self, uri: String, permit: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>>;

    /// Stops following a resource.
    fn unsubscribe<'a>(&'a self, uri: String, permit: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>>;

    /// Sets the least severe log level that the app sends over the connection of this caller, which other callers may share.
    /// Messages of a call go to its caller only as far as [`SessionLogLevel`](crate::SessionLogLevel) on the request allows.
    fn set_level<'a>(
        &'a self,
        level: LoggingLevel,
        permit: &'a Permit,
    ) -> AppFuture<'a, Result<(), ErrorData>>;

    /// Reads a task the app made for a call (SEP-2663).
    fn get_task(
        &self,
        params: GetTaskParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<GetTaskResult, ErrorData>>;

    /// Answers a task's open questions (SEP-2663).
    fn update_task(
        &self,
        params: UpdateTaskParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<(), ErrorData>>;

    /// Asks a task to stop (SEP-2663).
    fn cancel_task(
        &self,
        params: CancelTaskParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<(), ErrorData>>;

    /// Ends the app: connections closed, processes gone when the future is done.
    fn shutdown(&self) -> AppFuture<'_, ()>;
}
