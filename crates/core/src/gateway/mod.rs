//! The MCP server in front of the registry: one [`ServerHandler`] for every transport and both protocol eras.
//!
//! Lists are in `lists`, calls in `calls`, resources, prompts and tasks in `content`, change notifications in `changes`, log levels in `log_levels`, scopes
//! that are asked for before a request is dispatched in `challenge`; what observers are told of everything but calls in `operate`.

mod calls;
mod challenge;
mod changes;
mod content;
mod lists;
mod log_levels;
mod operate;
mod stamp;
mod unknown;

pub use log_levels::SessionLogLevel;
pub use unknown::METHODS;

use std::sync::{Arc, OnceLock, atomic::AtomicU8};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
        CustomRequest, CustomResult, DiscoverResult, GetPromptRequestParams, GetPromptResponse,
        GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, Reference,
        ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
        UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    AppEntry, Caller, Invoker, Observer, Plugin, Principal, Registry, SessionRef, access::is_modern,
    observe::Observers,
};
use operate::About;

/// How the gateway introduces itself and pages.
#[derive(Debug, Clone)]
pub struct GatewayConfig {
    /// `info.name` and `info.version` of the configuration.
    pub info: Implementation,
    /// Items on one page of a list. Default 500.
    pub page_size: usize,
    /// How long clients may take lists for fresh, in milliseconds. Default 0: ask again.
    pub list_ttl_ms: u64,
    /// Text for a model that connects, in front of what plugins add.
    pub instructions: Option<String>,
}

impl GatewayConfig {
    /// A gateway of this name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            info: Implementation::new(name.into(), version.into()),
            page_size: 500,
            list_ttl_ms: 0,
            instructions: None,
        }
    }
}

struct Shared {
    config: GatewayConfig,
    registry: Arc<Registry>,
    invoker: Arc<Invoker>,
    plugins: Vec<Arc<dyn Plugin>>,
    subscriptions: changes::SubscriptionTable,
    log_levels: log_levels::LogLevels,
    stop: CancellationToken,
    observers: Observers,
}

/// The MCP server. [`Gateway::session`] makes one value for each connection; they share everything but their own state.
pub struct Gateway {
    shared: Arc<Shared>,
    session: Session,
}

/// What belongs to one connection.
struct Session {
    /// Rank of the least severe log level wanted.
    log_level: AtomicU8,
    followed: changes::Followed,
    /// Who makes its requests, where that is known without them.
    principal: Option<Arc<Principal>>,
    /// Who opened it with `initialize`.
    opened_by: OnceLock<Caller>,
    this: SessionRef,
    _guard: DropGuard,
}

impl Session {
    fn new(principal: Option<Arc<Principal>>) -> Self {
        let ended = CancellationToken::new();
        Self {
            log_level: AtomicU8::new(0),
            followed: Default::default(),
            principal,
            opened_by: OnceLock::new(),
            _guard: ended.clone().drop_guard(),
            this: SessionRef::new(ended),
        }
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("registry", &self.shared.registry).finish_non_exhaustive()
    }
}

impl Gateway {
    /// A gateway over what `invoker` reaches.
    pub fn new(config: GatewayConfig, invoker: Arc<Invoker>, plugins: Vec<Arc<dyn Plugin>>) -> Self {
        let registry = invoker.registry().clone();
        Self {
            shared: Arc::new(Shared {
                config,
                subscriptions: changes::SubscriptionTable::default(),
                log_levels: log_levels::LogLevels::default(),
                registry,
                invoker,
                plugins,
                stop: CancellationToken::new(),
                observers: Observers::new(Vec::new()),
            }),
            session: Session::new(None),
        }
    }

    /// Tells `observers` of every request. To be called before the first session.
    #[must_use]
    pub fn observed_by(mut self, observers: Vec<Arc<dyn Observer>>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.observers = Observers::new(observers);
        }
        self
    }

    /// A server for one more connection, whose transport puts a [`Principal`] on each request: among the extensions of the
    /// request, or of its [`http::request::Parts`]. A request without one is refused.
    #[must_use]
    pub fn session(&self) -> Self {
        Self { shared: self.shared.clone(), session: Session::new(None) }
    }

    /// A server for one more connection, whose requests `principal` makes.
    #[must_use]
    pub fn session_of(&self, principal: Principal) -> Self {
        Self { shared: self.shared.clone(), session: Session::new(Some(Arc::new(principal))) }
    }

    /// The apps behind it.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.shared.registry
    }

    /// The path to the tools.
    pub fn invoker(&self) -> &Arc<Invoker> {
        &self.shared.invoker
    }

    /// Ends open `subscriptions/listen` streams gracefully.
    pub fn stop(&self) {
        self.shared.stop.cancel();
    }

    fn capabilities(&self) -> ServerCapabilities {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_completions()
            .enable_logging()
            .build();
        if self.shared.registry.operator_snapshot().apps.iter().any(AppEntry::supports_tasks) {
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(rmcp::model::TASKS_EXTENSION_ID.to_owned(), Default::default());
        }
        capabilities
    }

    fn instructions(&self) -> Option<String> {
        let own = self.shared.config.instructions.clone();
        let parts: Vec<String> = own
            .into_iter()
            .chain(self.shared.plugins.iter().filter_map(|plugin| plugin.instructions()))
            .collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }
}

impl ServerHandler for Gateway {
    fn get_info(&self) -> ServerConfig {
        let mut info =
            ServerConfig::new(self.capabilities()).with_server_info(self.shared.config.info.clone());
        info.instructions = self.instructions();
        info
    }

    async fn ping(&self, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.operate("ping", About::Nothing, context, async |_, _| Ok(())).await
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let work = async |caller: Caller, context: RequestContext<RoleServer>| {
            let _ = self.session.opened_by.set(caller.in_session(self.session.this.clone()));
            context.peer.set_peer_info(request.clone());
            self.negotiate_initialize(&request)
        };
        self.operate("initialize", About::Nothing, context, work).await
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let work = async |_, _| {
            let versions = self.supported_protocol_versions().into_owned();
            Ok(DiscoverResult::from_server_info(versions, self.get_info()))
        };
        self.operate("server/discover", About::Nothing, context, work).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let work = async |caller, context| self.tools(request.as_ref(), &caller, &context).await;
        self.operate("tools/list", About::Nothing, context, work).await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // `rmcp` moves the future of a request several times, and it is as large as the largest of all these methods': so each is
        // little more than a box.
        Box::pin(self.call(request, context)).await
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        let own = self.shared.plugins.iter().flat_map(|plugin| plugin.tools()).find(|tool| tool.name == name);
        // For headers that repeat arguments (SEP-2243): whose request it is, is not known here, so tools of single callers are left out.
        let shared = || self.shared.registry.operator_snapshot().tool(name).map(|entry| entry.tool.clone());
        own.cloned().or_else(shared)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let work = async |caller, context| self.resources(request.as_ref(), &caller, &context).await;
        self.operate("resources/list", About::Nothing, context, work).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let work = async |caller, context| self.templates(request.as_ref(), &caller, &context).await;
        self.operate("resources/templates/list", About::Nothing, context, work).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let work = async |caller, context| self.prompts(request.as_ref(), &caller, &context).await;
        self.operate("prompts/list", About::Nothing, context, work).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let about = self.about(|| About::Resource(request.uri.clone()));
        let work = async |caller, context| self.read(request, &caller, context).await;
        self.operate("resources/read", about, context, work).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let about = self.about(|| About::Prompt(request.name.clone()));
        let work = async |caller, context| self.prompt(request, &caller, context).await;
        self.operate("prompts/get", about, context, work).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let about = self.about(|| match &request.r#ref {
            Reference::Prompt(prompt) => About::Prompt(prompt.name.clone()),
            Reference::Resource(resource) => About::Resource(resource.uri.clone()),
            _ => About::Nothing,
        });
        let work = async |caller, context| self.completion(request, &caller, context).await;
        self.operate("completion/complete", about, context, work).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let work = async |caller, _| {
            self.set_session_level(request.level, &caller).await;
            Ok(())
        };
        self.operate("logging/setLevel", About::Nothing, context, work).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let about = self.about(|| About::Resource(request.uri.clone()));
        let work = async |caller, _| self.follow_resource(request.uri, &caller).await;
        self.operate("resources/subscribe", about, context, work).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let about = self.about(|| About::Resource(request.uri.clone()));
        let work = async |_, _| {
            self.session_unsubscribe(&request.uri);
            Ok(())
        };
        self.operate("resources/unsubscribe", about, context, work).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let caller = self.caller(context.request_context())?;
        let watch = self.watch_stream("subscriptions/listen", &caller, context.request_context());
        let ended = Box::pin(self.serve_subscription(caller, context)).await;
        if let Some(watch) = watch {
            watch.end(&ended);
        }
        ended
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Some(caller) = self.session.opened_by.get() {
            self.announce_changes(context.peer, caller.clone());
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let work = async |caller: Caller, context: RequestContext<RoleServer>| {
            let id = request.task_id.clone();
            let mut result = self.task(&id, &caller)?.get(request, context.clone()).await?;
            result.task.task.task_id = id;
            self.stamp(&context, &mut result.meta);
            Ok(result)
        };
        self.operate("tasks/get", About::Nothing, context, work).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let work = async |caller, context| {
            let task = self.task(&request.task_id, &caller)?;
            task.update(request, context).await
        };
        self.operate("tasks/update", About::Nothing, context, work).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let work = async |caller, context| {
            let task = self.task(&request.task_id, &caller)?;
            task.cancel(request, context).await
        };
        self.operate("tasks/cancel", About::Nothing, context, work).await
    }

    /// Known methods come here too when their params do not fit.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let work = async |_, context| Err(unknown::refusal(&request, is_modern(&context)));
        self.operate(unknown::label(&request.method), About::Nothing, context, work).await
    }
}

impl Gateway {
    /// Who makes a request: the principal on it, else that of the connection.
    ///
    /// # Errors
    /// An internal error when there is neither: a transport that does not say who calls must not grant anything.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        let of_request = Principal::of(context).cloned().map(Arc::new);
        let Some(principal) = of_request.or_else(|| self.session.principal.clone()) else {
            tracing::error!(
                "a request came without a principal and is refused: its transport has to name one"
            );
            return Err(ErrorData::internal_error("the request names no caller", None));
        };
        let caller = Caller::new(principal);
        // A connection that belongs to one principal is a session, too, for clients of the era without them.
        let in_session = self.session.principal.is_some() || self.session.opened_by.get().is_some();
        Ok(if in_session { caller.in_session(self.session.this.clone()) } else { caller })
    }
}
