//! The fixture the MCP conformance suite calls: one tool, resource or prompt for each thing the
//! suite looks at, in the 2025-11-25 and in the 2026-07-28 protocol.
//!
//! Names and answers are the suite's. Simple tools are in `tools`, those that talk to the client
//! while they run in `talk`, those that ask through `input_required` in `ask`, tasks in `tasks`,
//! resources and prompts in `library`.
#![expect(deprecated, reason = "sessions of 2025-11-25 still set a log level and subscribe to resources")]

mod ask;
mod library;
mod talk;
mod tasks;
mod tools;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientCapabilities, CompleteRequestParams,
    CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
    Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, Reference, RequestStateCodec,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{Peer, RequestContext, RoleServer, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use rmcp::{ErrorData, ServerHandler};
use tokio::sync::broadcast;

/// The conformance fixture. Make it once and clone it for each session: clones share tasks,
/// subscriptions and the key that signs request states.
#[derive(Clone)]
pub struct Everything {
    shared: Arc<Shared>,
}

struct Shared {
    tools: Vec<Tool>,
    tasks: TaskManager,
    codec: RequestStateCodec,
    changes: broadcast::Sender<Change>,
    watchers: Mutex<BTreeMap<String, Vec<Peer<RoleServer>>>>,
}

/// A change that a trigger tool announces to subscribers.
#[derive(Clone, Debug)]
enum Change {
    Tools,
    Prompts,
    Resource(&'static str),
}

impl Everything {
    /// A new fixture, with a signing key of its own.
    #[must_use]
    pub fn new() -> Self {
        let shared = Shared {
            tools: tools::list(),
            tasks: TaskManager::new(),
            codec: ask::codec(),
            changes: broadcast::channel(64).0,
            watchers: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Tells every `subscriptions/listen` stream, every session that subscribed to the resource,
    /// and the caller.
    async fn announce(&self, change: Change, caller: &RequestContext<RoleServer>) {
        // Nobody listening is fine.
        let _ = self.shared.changes.send(change.clone());
        // A modern request has no session to tell; a peer that is gone need not be told.
        let legacy = caller.meta.protocol_version().is_none();
        match change {
            Change::Tools if legacy => drop(caller.peer.notify_tool_list_changed().await),
            Change::Prompts if legacy => drop(caller.peer.notify_prompt_list_changed().await),
            Change::Tools | Change::Prompts => {}
            Change::Resource(uri) => {
                let watchers = self.watchers(|all| all.get(uri).cloned().unwrap_or_default());
                for peer in watchers {
                    drop(peer.notify_resource_updated(library::updated(uri)).await);
                }
            }
        }
    }

    fn watchers<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Vec<Peer<RoleServer>>>) -> T) -> T {
        work(&mut self.shared.watchers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Default for Everything {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Everything {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Everything").finish_non_exhaustive()
    }
}

/// Returns the capabilities of the client, as far as this request says.
fn capabilities(context: &RequestContext<RoleServer>) -> ClientCapabilities {
    context.client_capabilities().unwrap_or_default()
}

fn missing(required: serde_json::Value) -> ErrorData {
    let required = serde_json::from_value(required).unwrap_or_default();
    ErrorData::missing_required_client_capability(required)
}

fn one_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        Some(_) => Err(ErrorData::invalid_params("Unknown cursor: this list has one page", None)),
        None => Ok(()),
    }
}

impl ServerHandler for Everything {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("gatewright-everything", env!("CARGO_PKG_VERSION")))
            .with_instructions("The fixture of the MCP conformance suite.")
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        one_page(request)?;
        Ok(ListToolsResult::with_all_items(self.shared.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.shared.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.tasks.cancel_task(&request.task_id)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        one_page(request)?;
        Ok(ListResourcesResult::with_all_items(library::resources()))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        one_page(request)?;
        Ok(ListResourceTemplatesResult::with_all_items(library::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        library::read(&request.uri)
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        one_page(request)?;
        Ok(ListPromptsResult::with_all_items(library::prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        library::prompt(request)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let known = match &request.r#ref {
            Reference::Prompt(prompt) => library::prompts().iter().any(|known| known.name == prompt.name),
            Reference::Resource(template) => {
                library::templates().iter().any(|known| known.uri_template == template.uri)
            }
            _ => false,
        };
        if !known {
            return Err(ErrorData::invalid_params("Nothing of that name can be completed", None));
        }
        let values = ["paris", "park", "party"]
            .into_iter()
            .filter(|value| value.starts_with(&request.argument.value))
            .map(str::to_owned)
            .collect();
        let info = CompletionInfo::with_all_values(values)
            .map_err(|message| ErrorData::internal_error(message, None))?;
        Ok(CompleteResult::new(info))
    }

    /// Accepts every level and leaves the filtering to whoever fronts the fixture: one handler
    /// may serve many sessions.
    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.watchers(|all| all.entry(request.uri).or_default().push(context.peer));
        Ok(())
    }

    /// Ends the subscription to the URI for all sessions: peers cannot be told apart.
    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.watchers(|all| all.remove(&request.uri));
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        accepted.resources_list_changed = None;
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.shared.changes.subscribe();
        loop {
            let change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            let sink = context.sink();
            // The sink refuses what the client did not ask for; that is not a failure.
            let _ = match change {
                Ok(Change::Tools) => sink.notify_tool_list_changed().await,
                Ok(Change::Prompts) => sink.notify_prompt_list_changed().await,
                Ok(Change::Resource(uri)) => sink.notify_resource_updated(uri).await,
                Err(broadcast::error::RecvError::Lagged(_)) => Ok(()),
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            };
        }
    }
}
