//! The methods of MCP, each handed to the file that serves it.

use std::sync::Arc;

use futures::future::BoxFuture;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
        CustomRequest, CustomResult, DiscoverResult, GetPromptRequestParams, GetPromptResponse,
        GetTaskParams, GetTaskResult, InitializeRequestParams, InitializeResult, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, Reference, ServerConfig, SetLevelRequestParams,
        SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};

use tracing::Instrument as _;

use super::{Gateway, client, operate::About, unknown};
use crate::{Caller, Era, Plugin};

#[expect(
    refining_impl_trait,
    reason = "a future without a type of its own is compiled here alone, not in every crate that serves a gateway, and takes two words in those of \
              `rmcp`, which moves them several times"
)]
impl ServerHandler for Gateway {
    fn get_info(&self) -> ServerConfig {
        let mut info =
            ServerConfig::new(self.capabilities()).with_server_info(self.shared.config.info.clone());
        info.instructions = self.instructions(None, None);
        info
    }

    fn ping(&self, context: RequestContext<RoleServer>) -> BoxFuture<'_, Result<(), ErrorData>> {
        self.operate("ping", About::Nothing, context, async move |_, _| Ok(()))
    }

    fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<InitializeResult, ErrorData>> {
        let work = async move |caller: Caller, context: RequestContext<RoleServer>| {
            client::check_kept(&request)?;
            let _ = self.session.opened_by.set(caller.clone().in_session(self.session.this.clone()));
            context.peer.set_peer_info(request.clone());
            let mut agreed = self.negotiate_initialize(&request)?;
            (agreed.server_info, agreed.instructions) = self.introduction(&caller);
            Ok(agreed)
        };
        self.operate("initialize", About::Nothing, context, work)
    }

    fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<DiscoverResult, ErrorData>> {
        let work = async move |caller: Caller, _| {
            let versions = self.supported_protocol_versions().into_owned();
            let mut info = self.get_info();
            (info.server_info, info.instructions) = self.introduction(&caller);
            Ok(DiscoverResult::from_server_info(versions, info))
        };
        self.operate("server/discover", About::Nothing, context, work)
    }

    fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<ListToolsResult, ErrorData>> {
        let work = async move |caller, context| self.tools(request.as_ref(), &caller, &context).await;
        self.operate("tools/list", About::Nothing, context, work)
    }

    fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<CallToolResponse, ErrorData>> {
        // At `info` a span for each call costs some 3 µs, and no line there needs it.
        let span = tracing::debug_span!("tool.call", tool.name = %request.name);
        Box::pin(self.call(request, context).instrument(span))
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        let own = |plugin: &Arc<dyn Plugin>| plugin.tools().iter().find(|tool| tool.name == name).cloned();
        let own = self.shared.plugins.iter().find_map(own);
        // For headers that repeat arguments (SEP-2243): whose request it is, is not known here, so tools of single callers are left out.
        let shared = || self.shared.registry.operator_snapshot().tool(name).map(|entry| entry.tool.clone());
        own.or_else(shared)
    }

    fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<ListResourcesResult, ErrorData>> {
        let work = async move |caller, context| self.resources(request.as_ref(), &caller, &context).await;
        self.operate("resources/list", About::Nothing, context, work)
    }

    fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<ListResourceTemplatesResult, ErrorData>> {
        let work = async move |caller, context| self.templates(request.as_ref(), &caller, &context).await;
        self.operate("resources/templates/list", About::Nothing, context, work)
    }

    fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<ListPromptsResult, ErrorData>> {
        let work = async move |caller, context| self.prompts(request.as_ref(), &caller, &context).await;
        self.operate("prompts/list", About::Nothing, context, work)
    }

    fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<ReadResourceResponse, ErrorData>> {
        let about = self.about(|| About::resource(&request.uri));
        let work = async move |caller, context| self.read(request, &caller, context).await;
        self.operate("resources/read", about, context, work)
    }

    fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<GetPromptResponse, ErrorData>> {
        let about = self.about(|| About::Prompt(request.name.clone()));
        let work = async move |caller, context| self.prompt(request, &caller, context).await;
        self.operate("prompts/get", about, context, work)
    }

    fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<CompleteResult, ErrorData>> {
        let about = self.about(|| match &request.r#ref {
            Reference::Prompt(prompt) => About::Prompt(prompt.name.clone()),
            Reference::Resource(resource) => About::resource(&resource.uri),
            _ => About::Nothing,
        });
        let work = async move |caller, context| self.completion(request, &caller, context).await;
        self.operate("completion/complete", about, context, work)
    }

    fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<(), ErrorData>> {
        let work = async move |caller, context: RequestContext<RoleServer>| {
            if Era::of(&context).is_stateless() {
                return Err(unknown::method("logging/setLevel"));
            }
            self.set_session_level(request.level, &caller).await;
            Ok(())
        };
        self.operate("logging/setLevel", About::Nothing, context, work)
    }

    fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<(), ErrorData>> {
        let about = self.about(|| About::resource(&request.uri));
        let work = async move |caller, _| self.follow_resource(request.uri, &caller).await;
        self.operate("resources/subscribe", about, context, work)
    }

    fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<(), ErrorData>> {
        let about = self.about(|| About::resource(&request.uri));
        let work = async move |_, _| {
            crate::content::check_length(&request.uri)?;
            self.session_unsubscribe(&request.uri);
            Ok(())
        };
        self.operate("resources/unsubscribe", about, context, work)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    fn listen(&self, context: SubscriptionContext) -> BoxFuture<'_, Result<(), ErrorData>> {
        Box::pin(async move {
            let caller = self.caller(context.request_context())?;
            let watch = self.watch_stream("subscriptions/listen", &caller, context.request_context());
            let ended = self.serve_subscription(caller, context).await;
            if let Some(watch) = watch {
                watch.end(&ended);
            }
            ended
        })
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Some(caller) = self.session.opened_by.get() {
            self.announce_changes(context.peer, caller.clone());
        }
    }

    async fn on_roots_list_changed(&self, _: NotificationContext<RoleServer>) {
        self.session.this.forget_roots().await;
    }

    fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<GetTaskResult, ErrorData>> {
        let work = async move |caller: Caller, context: RequestContext<RoleServer>| {
            let id = request.task_id.clone();
            let mut result = match self.plugin_tasks(&id) {
                Some(tasks) => tasks.get(request, &caller).await?,
                None => self.task(&id, &caller)?.get(request, context.clone()).await?,
            };
            result.task.task.task_id = id;
            self.stamp(&context, &mut result.meta);
            Ok(result)
        };
        self.operate("tasks/get", About::Nothing, context, work)
    }

    fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<(), ErrorData>> {
        let work = async move |caller, context| {
            if let Some(tasks) = self.plugin_tasks(&request.task_id) {
                return tasks.update(request, caller).await;
            }
            let task = self.task(&request.task_id, &caller)?;
            task.update(request, context).await
        };
        self.operate("tasks/update", About::Nothing, context, work)
    }

    fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<(), ErrorData>> {
        let work = async move |caller, context| {
            if let Some(tasks) = self.plugin_tasks(&request.task_id) {
                return tasks.cancel(request, &caller).await;
            }
            let task = self.task(&request.task_id, &caller)?;
            task.cancel(request, context).await
        };
        self.operate("tasks/cancel", About::Nothing, context, work)
    }

    /// Known methods come here too when their params do not fit.
    fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> BoxFuture<'_, Result<CustomResult, ErrorData>> {
        let method = unknown::label(&request.method);
        let work = async move |_, context| Err(unknown::refusal(&request, Era::of(&context)));
        self.operate(method, About::Nothing, context, work)
    }
}
