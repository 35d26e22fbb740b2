//! The MCP server in front of the registry: one [`ServerHandler`] for every transport and both protocol eras.
//!
//! Lists are in `lists`, calls in `calls`, resources and prompts in `content`, change notifications in `changes`;
//! what observers are told of everything but calls in `operate`.

mod calls;
mod changes;
mod content;
mod lists;
mod operate;
mod stamp;
mod unknown;

pub use stamp::SessionLogLevel;

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
        CustomRequest, CustomResult, DiscoverResult, GetPromptRequestParams, GetPromptResponse,
        GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, Reference,
        ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
        UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{Invoker, Observer, Plugin, Principal, Registry, Subject, observe::Observers};

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
    /// Least severe level wanted, as a rank of [`stamp::rank`].
    log_level: AtomicU8,
    followed: changes::Followed,
    ended: CancellationToken,
    _guard: DropGuard,
}

impl Session {
    fn new() -> Self {
        let ended = CancellationToken::new();
        Self {
            log_level: AtomicU8::new(0),
            followed: Default::default(),
            _guard: ended.clone().drop_guard(),
            ended,
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
                subscriptions: changes::SubscriptionTable::new(registry.clone()),
                registry,
                invoker,
                plugins,
                stop: CancellationToken::new(),
                observers: Observers::new(Vec::new()),
            }),
            session: Session::new(),
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

    /// A server for one more connection.
    #[must_use]
    pub fn session(&self) -> Self {
        Self { shared: self.shared.clone(), session: Session::new() }
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
        let snapshot = self.shared.registry.snapshot();
        if snapshot.apps.iter().any(|app| app.app.catalog().capabilities.supports_tasks()) {
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
        self.operate("ping", None, context, async |_| Ok(())).await
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let work = async |context: RequestContext<RoleServer>| {
            context.peer.set_peer_info(request.clone());
            self.negotiate_initialize(&request)
        };
        self.operate("initialize", None, context, work).await
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let work = async |_| {
            let versions = self.supported_protocol_versions().into_owned();
            Ok(DiscoverResult::from_server_info(versions, self.get_info()))
        };
        self.operate("server/discover", None, context, work).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let work = async |context| self.tools(request.as_ref(), &context);
        self.operate("tools/list", None, context, work).await
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
        own.cloned().or_else(|| self.shared.registry.snapshot().tool(name).map(|entry| entry.tool.clone()))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let work = async |context| self.resources(request.as_ref(), &context);
        self.operate("resources/list", None, context, work).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let work = async |context| self.templates(request.as_ref(), &context);
        self.operate("resources/templates/list", None, context, work).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let work = async |context| self.prompts(request.as_ref(), &context);
        self.operate("prompts/list", None, context, work).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let subject = self.observed(|| Some(Subject::Resource(request.uri.as_str().into())));
        let work = async |context| self.read(request, context).await;
        self.operate("resources/read", subject, context, work).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let subject = self.observed(|| self.known_prompt(&request.name));
        let work = async |context| self.prompt(request, context).await;
        self.operate("prompts/get", subject, context, work).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let subject = self.observed(|| match &request.r#ref {
            Reference::Prompt(prompt) => self.known_prompt(&prompt.name),
            Reference::Resource(resource) => Some(Subject::Resource(resource.uri.as_str().into())),
            _ => None,
        });
        let work = async |context| self.completion(request, context).await;
        self.operate("completion/complete", subject, context, work).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let work = async |_| {
            self.session.log_level.store(stamp::rank(request.level), Ordering::Relaxed);
            self.tell_level(request.level).await;
            Ok(())
        };
        self.operate("logging/setLevel", None, context, work).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let subject = self.observed(|| Some(Subject::Resource(request.uri.as_str().into())));
        let work = async |context| self.follow_resource(request.uri, context).await;
        self.operate("resources/subscribe", subject, context, work).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let subject = self.observed(|| Some(Subject::Resource(request.uri.as_str().into())));
        let work = async |_| {
            self.session_unsubscribe(&request.uri);
            Ok(())
        };
        self.operate("resources/unsubscribe", subject, context, work).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let watch = self.watch_stream("subscriptions/listen", context.request_context());
        let ended = Box::pin(self.serve_subscription(context)).await;
        if let Some(watch) = watch {
            watch.end(&ended);
        }
        ended
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.announce_changes(context.peer);
    }

    async fn get_task(
        &self,
        mut request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let work = async |context: RequestContext<RoleServer>| {
            let owner = self.task_owner(&mut request.task_id)?;
            let mut result = owner.app.get_task(request, context.clone()).await?;
            result.task.task.task_id = calls::task_id(&owner.id, &result.task.task.task_id);
            self.stamp(&context, &mut result.meta);
            Ok(result)
        };
        self.operate("tasks/get", None, context, work).await
    }

    async fn update_task(
        &self,
        mut request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let work = async |context| {
            let owner = self.task_owner(&mut request.task_id)?;
            owner.app.update_task(request, context).await
        };
        self.operate("tasks/update", None, context, work).await
    }

    async fn cancel_task(
        &self,
        mut request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let work = async |context| {
            let owner = self.task_owner(&mut request.task_id)?;
            owner.app.cancel_task(request, context).await
        };
        self.operate("tasks/cancel", None, context, work).await
    }

    /// Known methods come here too when their params do not fit.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let work = async |context| Err(unknown::refusal(&request, stamp::is_modern(&context)));
        self.operate(unknown::label(&request.method), None, context, work).await
    }
}

impl Gateway {
    fn principal(&self, context: &RequestContext<RoleServer>) -> Principal {
        Principal::of(context)
    }

    async fn tell_level(&self, level: LoggingLevel) {
        let snapshot = self.shared.registry.snapshot();
        let logging = snapshot.apps.iter().filter(|app| app.app.catalog().capabilities.logging.is_some());
        // An app that refuses a level still serves; nothing to tell the client.
        futures::future::join_all(logging.map(|app| app.app.set_level(level))).await;
    }
}
