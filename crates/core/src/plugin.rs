//! Plugins: tools of their own, and a say in which app tools can be reached directly.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, GetTaskParams,
        GetTaskResult, ReadResourceResult, Tool, UpdateTaskParams,
    },
    service::RequestContext,
};

use crate::{AccessMode, AppFuture, Caller, InvokeError, Principal, ToolEntry};

/// Direct access of clients to an app's tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DirectAccess {
    /// Not at all.
    Refused,
    /// By name, though `tools/list` does not show it.
    Callable,
    /// Listed and callable.
    Listed,
}

/// Tasks that a plugin makes for calls of its own tools.
pub trait PluginTasks: Send + Sync {
    /// Returns `true` if `id` names a task as this plugin does; there may be none of that name.
    fn is_own(&self, id: &str) -> bool;

    /// Reads a task of `caller`.
    fn get<'a>(
        &'a self,
        request: GetTaskParams,
        caller: &'a Caller,
    ) -> AppFuture<'a, Result<GetTaskResult, ErrorData>>;

    /// Answers a task's open questions.
    fn update(&self, request: UpdateTaskParams, caller: Caller) -> AppFuture<'_, Result<(), ErrorData>>;

    /// Stops a task.
    fn cancel<'a>(
        &'a self,
        request: CancelTaskParams,
        caller: &'a Caller,
    ) -> AppFuture<'a, Result<(), ErrorData>>;
}

/// Adds tools to the gateway.
pub trait Plugin: Send + Sync + 'static {
    /// The plugin's own tools; `tools/list` shows them before those of the apps, but not to clients of [`AccessMode::Direct`].
    fn tools(&self) -> Arc<[Tool]>;

    /// The colon form of `name` when it names one of the plugin's own tools, in any spelling it accepts.
    fn own_tool(&self, name: &str) -> Option<&str>;

    /// Calls one of its own tools for `caller`: [`Plugin::own_tool`] knows the name.
    fn call_tool(
        &self,
        params: CallToolRequestParams,
        caller: Caller,
        context: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<CallToolResponse, ErrorData>>;

    /// The answer to a call of its own tool `name` that was refused before it got there. It fits the output schema of that
    /// tool.
    fn refused(&self, name: &str, error: &InvokeError) -> CallToolResult;

    /// The access mode that the configuration sets for `principal`, whatever its client asks for.
    fn mode_of(&self, _principal: &Principal) -> Option<AccessMode> {
        None
    }

    /// The direct access of clients of this mode to `tool`. Of several plugins the strictest answer counts.
    fn direct_access(&self, tool: &ToolEntry, mode: Option<AccessMode>) -> DirectAccess;

    /// Returns `true` if `tools/list` shows clients of this mode no tools of apps, so that it need not wait for apps that start.
    fn hides_apps(&self, mode: Option<AccessMode>) -> bool {
        let _ = mode;
        false
    }

    /// The message for a client that calls a refused tool.
    fn refusal(&self, tool: &ToolEntry) -> String;

    /// The plugin's own resource at `uri`, if `caller` may read it. It is looked for before those of the apps.
    fn read_resource(&self, _uri: &str, _caller: &Caller) -> Option<ReadResourceResult> {
        None
    }

    /// The plugin's own tasks, if it makes any (SEP-2663).
    fn tasks(&self) -> Option<&dyn PluginTasks> {
        None
    }

    /// Begins nothing more of what runs without a client, and waits for what of it is under way: the server stops.
    fn drain(&self) -> AppFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Text for the server's `instructions`.
    fn instructions(&self) -> Option<String> {
        None
    }
}
