//! [`UpstreamApp`]: an app whose server is elsewhere.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
    time::Duration,
};

use gatewright_core::{App, AppEvent, AppFuture, AppHealth, CallContext, Catalog, NetworkTransport, Permit};
use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelTaskRequest, ClientRequest,
        CompleteRequest, CompleteRequestParams, CompleteResult, GetPromptRequest, GetPromptRequestParams,
        GetPromptResponse, GetTaskParams, GetTaskRequest, GetTaskResult, LoggingLevel, ReadResourceRequest,
        ReadResourceRequestParams, ReadResourceResponse, ServerResult, SetLevelRequestParams,
        SubscribeRequestParams, UnsubscribeRequestParams, UpdateTaskParams, UpdateTaskRequest,
    },
};
use tokio::sync::broadcast;

use crate::{
    UpstreamConfig, failure,
    supervisor::{self, NO_ROOM},
    upstream::{SharedByConnections, Upstream},
    user::User,
};

/// An MCP server in another process or on another host, as an [`App`].
///
/// It is connected in the background, restarted when it fails, and ended by [`App::shutdown`]. Dropping it without that
/// ends it too, without waiting.
#[derive(Debug)]
pub struct UpstreamApp {
    shared: Arc<Upstream>,
}

impl UpstreamApp {
    /// Starts to connect, and returns at once: the health is [`AppHealth::Starting`] until the server's lists are read
    /// or the first try failed. `environment` is the gateway's own; the server sees only what `inheritEnv` names.
    ///
    /// A configuration that with [problems](UpstreamConfig::problems) gives an app that is down for good.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn start(id: &str, config: UpstreamConfig, environment: HashMap<String, String>) -> Arc<Self> {
        let beside = SharedByConnections::new(&config, false);
        Self::start_for(id, config, environment, None, beside)
    }

    /// The same as one of several connections of an app, which share `beside`. With `user`, whose token goes with every request.
    pub(crate) fn start_for(
        id: &str,
        config: UpstreamConfig,
        environment: HashMap<String, String>,
        user: Option<User>,
        beside: SharedByConnections,
    ) -> Arc<Self> {
        let bad = config.problems().into_iter().next();
        let shared = Arc::new(Upstream::new(id, config, environment, user, beside));
        match bad {
            Some(bad) => shared.link.down(bad.problem),
            None => {
                shared.tasks.spawn(supervisor::supervise(shared.clone()));
            }
        }
        Arc::new(Self { shared })
    }

    pub(crate) fn id(&self) -> &Arc<str> {
        &self.shared.id
    }

    /// Returns `true` if a client follows one of its resources.
    pub(crate) fn is_followed(&self) -> bool {
        !self.shared.followed.is_empty()
    }

    /// Drops the catalog, for which there is no room, and ends the connection with this reason.
    pub(crate) fn refuse_catalog(&self) {
        self.shared.link.refuse(NO_ROOM);
        self.shared.refused.notify_one();
    }

    #[cfg(test)]
    pub(crate) fn link(&self) -> &gatewright_core::CatalogLink {
        &self.shared.link
    }

    /// Waits until the app is up, or its first try failed, or `longest` is over; the health then says which.
    pub async fn wait_ready(&self, longest: Duration) -> AppHealth {
        let mut events = self.events();
        let settled = async {
            while self.health() == AppHealth::Starting {
                // A lagging receiver has missed nothing that the next look does not see.
                if let Err(broadcast::error::RecvError::Closed) = events.recv().await {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(longest, settled).await;
        self.health()
    }

    /// Sends a request within the app's timeout.
    async fn ask(&self, request: ClientRequest, context: CallContext) -> Result<ServerResult, ErrorData> {
        let timeout = self.shared.config.timeout;
        tokio::time::timeout(timeout, self.shared.request(request, &context))
            .await
            .unwrap_or_else(|_| Err(too_slow(&self.shared)))
    }

    /// Sends a request that belongs to no caller, within the app's timeout.
    async fn tell<T>(
        &self,
        request: impl Future<Output = Result<T, rmcp::ServiceError>>,
    ) -> Result<(), ErrorData> {
        match tokio::time::timeout(self.shared.config.timeout, request).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => {
                let gone = || {
                    failure::failed(
                        format!("the server behind `{}` went away", self.shared.id),
                        "UPSTREAM_ENDED",
                    )
                };
                Err(failure::of_call(&self.shared.id, error, &self.shared.redactor)
                    .await
                    .unwrap_or_else(gone))
            }
            Err(_) => Err(too_slow(&self.shared)),
        }
    }
}

impl Drop for UpstreamApp {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

fn too_slow(shared: &Upstream) -> ErrorData {
    let ms = shared.config.timeout.as_millis();
    failure::failed(format!("the server behind `{}` did not answer within {ms} ms", shared.id), "TIMEOUT")
}

fn unexpected(shared: &Upstream) -> ErrorData {
    shared.bad_answer("with a result of another kind")
}

impl App for UpstreamApp {
    fn catalog(&self) -> Arc<Catalog> {
        self.shared.link.catalog()
    }

    fn health(&self) -> AppHealth {
        self.shared.link.health()
    }

    fn transport(&self) -> Option<NetworkTransport> {
        let by_url = self.shared.config.url.is_some();
        Some(if by_url { NetworkTransport::Tcp } else { NetworkTransport::Pipe })
    }

    fn folders(&self) -> Vec<String> {
        let value = |arg: &String| arg.split_once('=').map_or(&**arg, |(_, value)| value).to_owned();
        let is_absolute = |path: &String| std::path::Path::new(path).is_absolute();
        self.shared.config.args.iter().map(value).filter(is_absolute).collect()
    }

    fn events(&self) -> broadcast::Receiver<AppEvent> {
        self.shared.link.events()
    }

    fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<CallToolResponse, ErrorData>> {
        // The invoker keeps the time of tool calls.
        Box::pin(async move { self.shared.call_tool(params, &context).await })
    }

    fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<ReadResourceResponse, ErrorData>> {
        Box::pin(async move {
            // The invoker keeps the time, as that of tool calls.
            let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
            match self.shared.request(request, &context).await? {
                ServerResult::ReadResourceResult(result) => Ok(ReadResourceResponse::Complete(result)),
                ServerResult::InputRequiredResult(result) => Ok(ReadResourceResponse::InputRequired(result)),
                _ => Err(unexpected(&self.shared)),
            }
        })
    }

    fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<GetPromptResponse, ErrorData>> {
        Box::pin(async move {
            let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
            match self.shared.request(request, &context).await? {
                ServerResult::GetPromptResult(result) => Ok(GetPromptResponse::Complete(result)),
                ServerResult::InputRequiredResult(result) => Ok(GetPromptResponse::InputRequired(result)),
                _ => Err(unexpected(&self.shared)),
            }
        })
    }

    fn complete(
        &self,
        params: CompleteRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<CompleteResult, ErrorData>> {
        Box::pin(async move {
            let request = CompleteRequest::new(params);
            match self.ask(ClientRequest::CompleteRequest(request), context).await? {
                ServerResult::CompleteResult(result) => Ok(result),
                _ => Err(unexpected(&self.shared)),
            }
        })
    }

    fn subscribe<'a>(&'a self, uri: String, permit: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        Box::pin(async move {
            let share = self.shared.followed.reserve(&uri, permit.caller().claimant())?;
            let connection = self.shared.connection()?;
            if !connection.era.is_stateless() {
                self.tell(connection.peer.subscribe(SubscribeRequestParams::new(&*uri))).await?;
            }
            self.shared.followed.insert(uri, share);
            Ok(())
        })
    }

    fn unsubscribe<'a>(&'a self, uri: String, _: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        Box::pin(async move {
            if !self.shared.followed.remove(&uri) {
                return Ok(());
            }
            let connection = self.shared.connection()?;
            if connection.era.is_stateless() {
                return Ok(());
            }
            self.tell(connection.peer.unsubscribe(UnsubscribeRequestParams::new(uri))).await
        })
    }

    fn set_level<'a>(&'a self, level: LoggingLevel, _: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        Box::pin(async move {
            *self.shared.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
            let connection = self.shared.connection()?;
            if connection.era.is_stateless() || connection.capabilities.logging.is_none() {
                return Ok(());
            }
            self.tell(connection.peer.set_level(SetLevelRequestParams::new(level))).await
        })
    }

    fn get_task(
        &self,
        params: GetTaskParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<GetTaskResult, ErrorData>> {
        Box::pin(async move {
            let id = params.task_id.clone();
            match self.ask(ClientRequest::GetTaskRequest(GetTaskRequest::new(params)), context).await? {
                ServerResult::GetTaskResult(result) if result.task.task.task_id == id => Ok(result),
                ServerResult::GetTaskResult(_) => {
                    Err(self.shared.bad_answer("with the status of another task"))
                }
                _ => Err(unexpected(&self.shared)),
            }
        })
    }

    fn update_task(
        &self,
        params: UpdateTaskParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<(), ErrorData>> {
        Box::pin(async move {
            self.ask(ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params)), context)
                .await
                .map(drop)
        })
    }

    fn cancel_task(
        &self,
        params: CancelTaskParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<(), ErrorData>> {
        Box::pin(async move {
            self.ask(ClientRequest::CancelTaskRequest(CancelTaskRequest::new(params)), context)
                .await
                .map(drop)
        })
    }

    fn shutdown(&self) -> AppFuture<'_, ()> {
        Box::pin(async move {
            self.shared.stop.cancel();
            self.shared.tasks.close();
            self.shared.tasks.wait().await;
        })
    }
}
