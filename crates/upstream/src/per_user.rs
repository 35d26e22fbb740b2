//! [`PerUserApp`]: a server that each user reaches with a token of their own.
//!
//! Every user has a connection of their own, for a server may bind its sessions to users. The catalog is that of the user who connected last:
//! until somebody has, the app offers only the tool [`AUTHORIZE`]. A user without a token gets the address to open: as a URL
//! elicitation where the client takes them, else as a tool error that holds it.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use gatewright_core::{
    App, AppEvent, AppFuture, AppHealth, Authorize, Catalog, CatalogLink, NetworkTransport, Principal,
    UserCredentials,
};
use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CompleteRequestParams,
        CompleteResult, ContentBlock, ElicitRequest, ElicitRequestParams, ErrorCode, GetPromptRequestParams,
        GetPromptResponse, GetTaskParams, GetTaskResult, InputRequest, InputRequiredResult, JsonObject,
        LoggingLevel, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, Tool,
        UpdateTaskParams,
    },
    service::RequestContext,
};
use serde_json::json;
use tokio::sync::broadcast;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{UpstreamApp, UpstreamConfig, failure, shared::User};

/// The tool that lets a user authorize before any other tool is known.
pub(crate) const AUTHORIZE: &str = "authorize";
/// Users connected at one time; beyond it the one idle for longest is let go.
const MOST_USERS: usize = 256;
/// URLElicitationRequiredError (MCP 2025-11-25, elicitation).
const URL_ELICITATION_REQUIRED: i32 = -32042;
/// Our key among the questions of an `input_required` result.
const QUESTION: &str = "gatewright_authorize";

struct Connected {
    app: Arc<UpstreamApp>,
    used: Instant,
}

struct Inner {
    id: String,
    config: UpstreamConfig,
    credentials: Arc<dyn UserCredentials>,
    link: CatalogLink,
    users: Mutex<HashMap<Arc<str>, Connected>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// An [`App`] whose server demands a token of each user.
pub struct PerUserApp(Arc<Inner>);

impl std::fmt::Debug for PerUserApp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PerUserApp").field("id", &self.0.id).finish_non_exhaustive()
    }
}

/// What a user without a connection is told.
enum Refusal {
    Authorize(Authorize),
    Failed(ErrorData),
}

impl PerUserApp {
    /// An app that asks `credentials` for the token of each caller. It is up at once, with the tool `authorize`.
    pub fn start(id: &str, config: UpstreamConfig, credentials: Arc<dyn UserCredentials>) -> Arc<Self> {
        let inner = Inner {
            id: id.to_owned(),
            link: CatalogLink::default(),
            users: Mutex::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            config,
            credentials,
        };
        match inner.config.check() {
            Err(bad) => inner.link.down(bad.to_string()),
            Ok(()) => inner.link.up(with_authorize(id, Catalog::default())),
        }
        Arc::new(Self(Arc::new(inner)))
    }

    /// The connection of the caller, once its server's lists are read.
    async fn connected(&self, context: &RequestContext<RoleServer>) -> Result<Arc<UpstreamApp>, Refusal> {
        let inner = &self.0;
        let principal = Principal::of(context);
        if !self.has_token(&principal).await? {
            return Err(self.must_authorize(&principal).await);
        }
        let app = inner.user_app(&principal);
        match app.wait_ready(inner.config.connect_timeout).await {
            AppHealth::Up => Ok(app),
            AppHealth::Starting => {
                Err(Refusal::Failed(inner.failed("is still being connected; try again", "UPSTREAM_DOWN")))
            }
            AppHealth::Down(why) => {
                inner.let_go(&principal.subject);
                // Its token may have been refused meanwhile: then the user can help.
                if !self.has_token(&principal).await? {
                    return Err(self.must_authorize(&principal).await);
                }
                Err(Refusal::Failed(inner.failed(&format!("is down: {why}; try again"), "UPSTREAM_DOWN")))
            }
        }
    }

    async fn has_token(&self, principal: &Principal) -> Result<bool, Refusal> {
        let held = self.0.credentials.bearer(&self.0.id, principal).await;
        held.map(|token| token.is_some()).map_err(|why| self.0.refused(&why))
    }

    async fn must_authorize(&self, principal: &Principal) -> Refusal {
        self.0.let_go(&principal.subject);
        match self.0.credentials.authorize(&self.0.id, principal).await {
            Ok(authorize) => Refusal::Authorize(authorize),
            Err(why) => self.0.refused(&why),
        }
    }

    /// The same for what is not a tool call: an error that holds the address.
    async fn connected_for<T, F>(
        &self,
        context: RequestContext<RoleServer>,
        run: impl FnOnce(Arc<UpstreamApp>, RequestContext<RoleServer>) -> F,
    ) -> Result<T, ErrorData>
    where
        F: Future<Output = Result<T, ErrorData>>,
    {
        match self.connected(&context).await {
            Ok(app) => run(app, context).await,
            Err(Refusal::Failed(error)) => Err(error),
            Err(Refusal::Authorize(authorize)) => Err(elicitation_error(&self.0.id, &authorize)),
        }
    }
}

impl Inner {
    fn failed(&self, what: &str, code: &str) -> ErrorData {
        failure::failed(format!("app `{}` {what}", self.id), code)
    }

    fn refused(&self, why: &str) -> Refusal {
        Refusal::Failed(self.failed(&format!("cannot be called for you: {why}"), "UPSTREAM_AUTHORIZATION"))
    }

    /// The app of a user, started when there is none.
    fn user_app(self: &Arc<Self>, principal: &Principal) -> Arc<UpstreamApp> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = users.get_mut(&principal.subject) {
            held.used = Instant::now();
            return held.app.clone();
        }
        if users.len() >= MOST_USERS {
            let oldest = users.iter().min_by_key(|(_, held)| held.used).map(|(who, _)| who.clone());
            // Dropping the last handle ends the connection.
            oldest.and_then(|who| users.remove(&who));
        }
        let user = User { principal: principal.clone(), credentials: self.credentials.clone() };
        let app = UpstreamApp::start_for(&self.id, self.config.clone(), HashMap::new(), Some(user));
        users.insert(principal.subject.clone(), Connected { app: app.clone(), used: Instant::now() });
        self.tasks.spawn(follow(self.clone(), Arc::downgrade(&app), app.events()));
        app
    }

    fn let_go(&self, subject: &Arc<str>) {
        self.users.lock().unwrap_or_else(PoisonError::into_inner).remove(subject);
    }

    fn all(&self) -> Vec<Arc<UpstreamApp>> {
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.values().map(|held| held.app.clone()).collect()
    }

    /// Takes over what a user's connection offers.
    fn show(&self, app: &UpstreamApp) {
        if app.health() == AppHealth::Up {
            self.link.up(with_authorize(&self.id, Catalog::clone(&app.catalog())));
        }
    }
}

/// Keeps the catalog that of the last connection that came up.
async fn follow(
    inner: Arc<Inner>,
    app: std::sync::Weak<UpstreamApp>,
    mut events: broadcast::Receiver<AppEvent>,
) {
    loop {
        match app.upgrade() {
            Some(app) => inner.show(&app),
            None => return,
        }
        let event = tokio::select! {
            event = events.recv() => event,
            () = inner.stop.cancelled() => return,
        };
        match event {
            Ok(AppEvent::ResourceUpdated(uri)) => inner.link.resource_updated(&uri),
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

fn with_authorize(id: &str, mut catalog: Catalog) -> Catalog {
    if catalog.tools.iter().all(|tool| tool.name != AUTHORIZE) {
        let words = format!(
            "Lets this gateway act for you at `{id}`. Answers with an address to open in a browser when you have not allowed it yet."
        );
        let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let schema: JsonObject = serde_json::from_value(schema).unwrap_or_default();
        catalog.tools.push(Tool::new(AUTHORIZE, words, Arc::new(schema)));
    }
    catalog.capabilities.tools.get_or_insert_default();
    catalog
}

fn message(id: &str) -> String {
    format!("Allow this gateway to act for you at `{id}`")
}

fn question(id: &str, authorize: &Authorize) -> ElicitRequestParams {
    ElicitRequestParams::UrlElicitationParams {
        meta: None,
        message: message(id),
        url: authorize.url.clone(),
        elicitation_id: authorize.id.clone(),
    }
}

fn elicitation_error(id: &str, authorize: &Authorize) -> ErrorData {
    let data = json!({"elicitations": [{
        "mode": "url", "elicitationId": authorize.id, "url": authorize.url, "message": message(id),
    }]});
    let text = format!("{}: open {} in a browser, then try again", message(id), authorize.url);
    ErrorData::new(ErrorCode(URL_ELICITATION_REQUIRED), text, Some(data))
}

/// Asks in the best way the client takes.
fn ask(
    id: &str,
    authorize: &Authorize,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let takes_urls = context
        .client_capabilities()
        .and_then(|capabilities| capabilities.elicitation)
        .is_some_and(|elicitation| elicitation.url.is_some());
    if !takes_urls {
        let text = format!("{}: open {} in a browser, then call the tool again.", message(id), authorize.url);
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        // Structured content would have to fit the output schema of the tool.
        result.meta =
            serde_json::from_value(json!({"code": "AUTHORIZATION_REQUIRED", "url": authorize.url})).ok();
        return Ok(CallToolResponse::Complete(result));
    }
    let modern = context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    if modern {
        let request = InputRequest::Elicitation(ElicitRequest::new(question(id, authorize)));
        let requests = [(QUESTION.to_owned(), request)].into_iter().collect();
        return Ok(CallToolResponse::InputRequired(InputRequiredResult::from_input_requests(requests)));
    }
    Err(elicitation_error(id, authorize))
}

impl App for PerUserApp {
    fn catalog(&self) -> Arc<Catalog> {
        self.0.link.catalog()
    }

    fn health(&self) -> AppHealth {
        self.0.link.health()
    }

    fn transport(&self) -> Option<NetworkTransport> {
        Some(NetworkTransport::Tcp)
    }

    fn events(&self) -> broadcast::Receiver<AppEvent> {
        self.0.link.events()
    }

    fn call_tool(
        &self,
        mut params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<CallToolResponse, ErrorData>> {
        Box::pin(async move {
            let app = match self.connected(&context).await {
                Ok(app) => app,
                Err(Refusal::Authorize(authorize)) => return ask(&self.0.id, &authorize, &context),
                Err(Refusal::Failed(error)) => return Err(error),
            };
            // The answer to our own question is not the server's.
            if let Some(answers) = &mut params.input_responses {
                answers.remove(QUESTION);
            }
            let theirs = app.catalog();
            if params.name == AUTHORIZE && theirs.tools.iter().all(|tool| tool.name != AUTHORIZE) {
                let text = format!("`{}` is authorized and has {} tools.", self.0.id, theirs.tools.len());
                return Ok(CallToolResponse::Complete(CallToolResult::success(vec![ContentBlock::text(
                    text,
                )])));
            }
            let failed = match app.call_tool(params, context.clone()).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            // The token was taken back during the call: then the user can help.
            let principal = Principal::of(&context);
            if !matches!(self.has_token(&principal).await, Ok(false)) {
                return Err(failed);
            }
            match self.must_authorize(&principal).await {
                Refusal::Authorize(authorize) => ask(&self.0.id, &authorize, &context),
                Refusal::Failed(error) => Err(error),
            }
        })
    }

    fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<ReadResourceResponse, ErrorData>> {
        Box::pin(
            self.connected_for(
                context,
                |app, context| async move { app.read_resource(params, context).await },
            ),
        )
    }

    fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<GetPromptResponse, ErrorData>> {
        Box::pin(
            self.connected_for(context, |app, context| async move { app.get_prompt(params, context).await }),
        )
    }

    fn complete(
        &self,
        params: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<CompleteResult, ErrorData>> {
        Box::pin(
            self.connected_for(context, |app, context| async move { app.complete(params, context).await }),
        )
    }

    fn subscribe(&self, uri: String) -> AppFuture<'_, Result<(), ErrorData>> {
        // A subscription names no caller: every connection follows.
        Box::pin(async move {
            for app in self.0.all() {
                app.subscribe(uri.clone()).await?;
            }
            Ok(())
        })
    }

    fn unsubscribe(&self, uri: String) -> AppFuture<'_, Result<(), ErrorData>> {
        Box::pin(async move {
            for app in self.0.all() {
                app.unsubscribe(uri.clone()).await?;
            }
            Ok(())
        })
    }

    fn set_level(&self, level: LoggingLevel) -> AppFuture<'_, Result<(), ErrorData>> {
        Box::pin(async move {
            for app in self.0.all() {
                app.set_level(level).await?;
            }
            Ok(())
        })
    }

    fn get_task(
        &self,
        params: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<GetTaskResult, ErrorData>> {
        Box::pin(
            self.connected_for(context, |app, context| async move { app.get_task(params, context).await }),
        )
    }

    fn update_task(
        &self,
        params: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<(), ErrorData>> {
        Box::pin(
            self.connected_for(context, |app, context| async move { app.update_task(params, context).await }),
        )
    }

    fn cancel_task(
        &self,
        params: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<(), ErrorData>> {
        Box::pin(
            self.connected_for(context, |app, context| async move { app.cancel_task(params, context).await }),
        )
    }

    fn shutdown(&self) -> AppFuture<'_, ()> {
        Box::pin(async move {
            self.0.stop.cancel();
            for app in self.0.all() {
                app.shutdown().await;
            }
            self.0.users.lock().unwrap_or_else(PoisonError::into_inner).clear();
            self.0.tasks.close();
            self.0.tasks.wait().await;
        })
    }
}
