//! An app in this process: any `rmcp` server handler, called without serialization.
//!
//! Calls go straight to the handler with the caller's own request context. Two in-memory connections run beside them:
//! one reads the lists and hears `list_changed` the way any client would, the other follows `subscriptions/listen` of
//! handlers that announce changes only there.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleClient, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientConfig, CompleteRequestParams,
        CompleteResult, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
        LoggingLevel, ReadResourceRequestParams, ReadResourceResponse, ServerNotification,
        SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
        UpdateTaskParams,
    },
    service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer},
};
use tokio::sync::broadcast;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    App, AppEvent, AppFuture, AppHealth, CallContext, Catalog, CatalogLink, DownReason, Permit, Revision,
    link::LinkHandler, memory_transport,
};

/// An [`App`] made of an `rmcp` [`ServerHandler`].
pub struct LocalApp<H> {
    handler: Arc<H>,
    link: Arc<CatalogLink>,
    control: Peer<RoleClient>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl<H> std::fmt::Debug for LocalApp<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalApp").field("health", &self.link.health()).finish_non_exhaustive()
    }
}

impl<H: ServerHandler> LocalApp<H> {
    /// Connects to `handler` and reads its catalog.
    ///
    /// # Errors
    /// The handler refuses `initialize`, or its lists cannot be read.
    pub async fn start(handler: H) -> Result<Self, ClientInitializeError> {
        let handler = Arc::new(handler);
        let link = Arc::new(CatalogLink::default());
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();

        let (client_end, server_end) = memory_transport();
        let serving = handler.clone().serve_with_ct(server_end, stop.clone());
        tasks.spawn(async move {
            if let Ok(running) = serving.await {
                let _ = running.waiting().await;
            }
        });
        let handler_of_link = LinkHandler { link: link.clone(), info: ClientConfig::default() };
        let control = handler_of_link.serve_with_ct(client_end, stop.clone()).await?;
        let peer = control.peer().clone();
        let capabilities = control.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();

        match Catalog::read(&peer, capabilities.clone()).await {
            Ok(catalog) => link.up(catalog),
            Err(error) => link.down(unread(&error)),
        }
        tasks.spawn({
            let (link, peer, stop) = (link.clone(), peer.clone(), stop.clone());
            async move {
                tokio::select! {
                    error = link.follow(&peer, capabilities) => link.down(unread(&error)),
                    () = stop.cancelled() => link.down("it was shut down"),
                }
                let _ = control.cancel().await;
            }
        });
        tasks.spawn(listen(handler.clone(), link.clone(), stop.clone()));
        Ok(Self { handler, link, control: peer, stop, tasks })
    }

    /// The handler.
    pub fn handler(&self) -> &Arc<H> {
        &self.handler
    }
}

/// Follows the handler's `subscriptions/listen`, when it has one.
async fn listen<H: ServerHandler>(handler: Arc<H>, link: Arc<CatalogLink>, stop: CancellationToken) {
    let lists = SubscriptionFilter::builder()
        .tools_list_changed()
        .prompts_list_changed()
        .resources_list_changed()
        .build();
    if handler.accepted_subscription_filter(&lists).is_none() {
        return;
    }
    let (client_end, server_end) = memory_transport();
    let serving = handler.serve_with_ct(server_end, stop.clone());
    let server = tokio::spawn(async move {
        if let Ok(running) = serving.await {
            let _ = running.waiting().await;
        }
    });
    let versions = vec![Revision::LATEST.into()];
    let client = LinkHandler { link: link.clone(), info: ClientConfig::default() };
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: versions };
    if let Ok(client) = client.serve_with_lifecycle(client_end, lifecycle).await
        && let Ok(mut subscription) = client.peer().listen(lists).await
    {
        loop {
            let next = tokio::select! {
                next = subscription.next() => next,
                () = stop.cancelled() => break,
            };
            match next {
                Ok(Some(ServerNotification::ResourceUpdatedNotification(_))) => {}
                Ok(Some(_)) => link.mark_stale(),
                Ok(None) | Err(_) => break,
            }
        }
        let _ = client.cancel().await;
    }
    server.abort();
}

impl<H: ServerHandler> App for LocalApp<H> {
    fn catalog(&self) -> Arc<Catalog> {
        self.link.catalog()
    }

    fn health(&self) -> AppHealth {
        self.link.health()
    }

    fn events(&self) -> broadcast::Receiver<AppEvent> {
        self.link.events()
    }

    fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<CallToolResponse, ErrorData>> {
        Box::pin(self.handler.call_tool(params, context.into_request()))
    }

    fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<ReadResourceResponse, ErrorData>> {
        Box::pin(self.handler.read_resource(params, context.into_request()))
    }

    fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<GetPromptResponse, ErrorData>> {
        Box::pin(self.handler.get_prompt(params, context.into_request()))
    }

    fn complete(
        &self,
        params: CompleteRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<CompleteResult, ErrorData>> {
        Box::pin(self.handler.complete(params, context.into_request()))
    }

    fn subscribe<'a>(&'a self, uri: String, _: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        Box::pin(async move { answered(self.control.subscribe(SubscribeRequestParams::new(uri)).await) })
    }

    fn unsubscribe<'a>(&'a self, uri: String, _: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        Box::pin(async move { answered(self.control.unsubscribe(UnsubscribeRequestParams::new(uri)).await) })
    }

    fn set_level<'a>(&'a self, level: LoggingLevel, _: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        Box::pin(async move { answered(self.control.set_level(SetLevelRequestParams::new(level)).await) })
    }

    fn get_task(
        &self,
        params: GetTaskParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<GetTaskResult, ErrorData>> {
        Box::pin(self.handler.get_task(params, context.into_request()))
    }

    fn update_task(
        &self,
        params: UpdateTaskParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<(), ErrorData>> {
        Box::pin(self.handler.update_task(params, context.into_request()))
    }

    fn cancel_task(
        &self,
        params: CancelTaskParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<(), ErrorData>> {
        Box::pin(self.handler.cancel_task(params, context.into_request()))
    }

    fn shutdown(&self) -> AppFuture<'_, ()> {
        Box::pin(async move {
            self.stop.cancel();
            self.tasks.close();
            self.tasks.wait().await;
        })
    }
}

fn answered<T>(result: Result<T, rmcp::ServiceError>) -> Result<(), ErrorData> {
    match result {
        Ok(_) => Ok(()),
        Err(rmcp::ServiceError::McpError(error)) => Err(error),
        Err(other) => Err(ErrorData::internal_error(other.to_string(), None)),
    }
}

fn unread(error: &rmcp::ServiceError) -> DownReason {
    DownReason::from("its lists cannot be read").with_details(&error.to_string())
}
