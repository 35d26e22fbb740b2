//! [`OpenapiApp`]: an app whose tools are the operations of an OpenAPI document.
//!
//! The document is read in the background, and again when it changes; the last good one stays in use. `loading` reads it, `call` makes
//! the requests.

#![expect(deprecated, reason = "the older era still has logging, which SEP-2577 marks as deprecated")]

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use gatewright_core::{
    AnswerRoom, App, AppEvent, AppFuture, AppHealth, CallContext, Catalog, CatalogLink, DownReason,
    NetworkTransport, Paginate, Paging, Permit, ask_to_sign_in,
};
use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
        GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, JsonObject, LoggingLevel,
        ReadResourceRequestParams, ReadResourceResponse, UpdateTaskParams,
    },
};
use tokio::sync::broadcast;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    ApiUser, UserSignIn,
    call::{Called, HttpApi, OperationCall, Reporter, paging, user_refused},
    config::{DocumentPlace, OpenapiConfig},
    loading::{Loaded, Loader},
};

/// Time between two looks at a file.
const FILE_EVERY: Duration = Duration::from_millis(500);
/// Waits before another try for a document that was never read.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// An HTTP API with an OpenAPI document, as an [`App`].
///
/// It ends by [`App::shutdown`], or when it is dropped.
#[derive(Debug)]
pub struct OpenapiApp {
    shared: Arc<Shared>,
}

struct Shared {
    id: Arc<str>,
    link: CatalogLink,
    /// None where the configuration has problems, and after the end, so that connections are closed.
    api: ArcSwapOption<HttpApi>,
    /// Keeps the tokens of users.
    users: Option<Arc<dyn UserSignIn>>,
    loaded: ArcSwapOption<Loaded>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl OpenapiApp {
    /// Starts to read the document, and returns at once: the health is [`AppHealth::Starting`] until it is read or the first try failed.
    ///
    /// A configuration with [problems](OpenapiConfig::problems) gives an app that is down for good.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn start(id: &str, config: OpenapiConfig) -> Arc<Self> {
        Self::start_for(id, config, None)
    }

    /// Does the same as [`OpenapiApp::start`]. `users` signs users in, which `auth.type: oauth` needs.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn start_for(id: &str, config: OpenapiConfig, users: Option<Arc<dyn UserSignIn>>) -> Arc<Self> {
        let link = CatalogLink::default();
        let api = match HttpApi::new(config) {
            Ok(api) => Some(Arc::new(api)),
            Err(problem) => {
                link.down(problem.to_string());
                None
            }
        };
        let shared = Arc::new(Shared {
            id: id.into(),
            link,
            api: ArcSwapOption::new(api.clone()),
            users,
            loaded: ArcSwapOption::empty(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        if let Some(api) = api {
            let following = shared.clone().follow(Loader::new(api));
            let stop = shared.stop.clone();
            shared.tasks.spawn(async move { stop.run_until_cancelled(following).await });
        }
        Arc::new(Self { shared })
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Drop for OpenapiApp {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

impl OpenapiApp {
    async fn ask_to_sign_in(
        &self,
        scopes: &[String],
        context: &CallContext,
    ) -> Result<CallToolResponse, ErrorData> {
        let Shared { id, users, .. } = &*self.shared;
        let authorized = match users {
            Some(users) => users.authorize(id, context.principal(), scopes).await,
            None => Err("nobody signs users in".to_owned()),
        };
        match authorized {
            Ok(authorize) => ask_to_sign_in(id, &authorize, context),
            Err(why) => Ok(user_refused(why).into()),
        }
    }
}

impl Shared {
    /// Reads the document, and again when it changes.
    async fn follow(self: Arc<Self>, mut loader: Loader) {
        let (mut failures, mut known_problem) = (0_u32, None);
        loop {
            let loaded = loader.load().await.and_then(|loaded| {
                let problem = loaded.as_ref().and_then(Loaded::problem);
                match problem.filter(|_| self.is_usable()) {
                    Some(problem) => Err(problem),
                    None => Ok(loaded),
                }
            });
            match loaded {
                Ok(Some(loaded)) => {
                    known_problem = None;
                    self.publish(loaded);
                }
                // The same document as before: it may have been missing in between.
                Ok(None) => known_problem = None,
                Err(problem) => {
                    failures = failures.saturating_add(1);
                    let is_new = known_problem.as_ref() != Some(&problem);
                    if self.loaded.load().is_none() {
                        // A path of the operator's machine is not for callers.
                        self.link.down(
                            DownReason::from("its OpenAPI document cannot be used").with_details(&problem),
                        );
                    } else if is_new {
                        tracing::warn!(app.id = %self.id, "the OpenAPI document of an app cannot be used as it is now, the last good one stays: {problem}");
                    }
                    known_problem = Some(problem);
                }
            }
            let refresh = loader.config().refresh;
            match loader.config().place() {
                DocumentPlace::File(_) => loader.changed(FILE_EVERY).await,
                DocumentPlace::Url(_) if self.loaded.load().is_none() => {
                    let wait = FIRST_RETRY * 2_u32.saturating_pow(failures.clamp(1, 10) - 1);
                    tokio::time::sleep(wait.min(refresh)).await;
                }
                DocumentPlace::Url(_) => tokio::time::sleep(refresh).await,
            }
        }
    }

    /// Returns `true` if there is a document whose operations can be called.
    fn is_usable(&self) -> bool {
        self.loaded.load().as_ref().is_some_and(|loaded| loaded.problem().is_none())
    }

    fn publish(&self, loaded: Loaded) {
        let catalog = loaded.catalog();
        tracing::info!(app.id = %self.id, tools = catalog.tools.len(), "read the OpenAPI document of an app");
        let mut is_usable = loaded.problem();
        if let (Some(users), Some(sign_in)) = (&self.users, &loaded.sign_in)
            && let Err(problem) = users.serve(&self.id, sign_in.clone())
        {
            is_usable = Some(problem);
        }
        self.loaded.store(Some(Arc::new(loaded)));
        match is_usable {
            Some(problem) => self.link.down(problem),
            None => self.link.up(catalog),
        }
    }
}

fn nothing<T>() -> AppFuture<'static, Result<T, ErrorData>> {
    Box::pin(async {
        Err(ErrorData::invalid_request("operations of an API are tools and nothing else", None))
    })
}

macro_rules! answers_nothing {
    ($($method:ident($params:ty) -> $answer:ty;)*) => {
        $(fn $method(&self, _: $params, _: CallContext) -> AppFuture<'_, Result<$answer, ErrorData>> {
            nothing()
        })*
    };
}

impl App for OpenapiApp {
    fn catalog(&self) -> Arc<Catalog> {
        self.shared.link.catalog()
    }

    fn health(&self) -> AppHealth {
        self.shared.link.health()
    }

    fn transport(&self) -> Option<NetworkTransport> {
        Some(NetworkTransport::Tcp)
    }

    fn paging(&self, tool: &str) -> Paging {
        let loaded = self.shared.loaded.load();
        let operation = loaded.as_ref().and_then(|loaded| loaded.operation(tool));
        operation.map_or(Paging::Unavailable, |operation| paging(operation))
    }

    fn events(&self) -> broadcast::Receiver<AppEvent> {
        self.shared.link.events()
    }

    fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: CallContext,
    ) -> AppFuture<'_, Result<CallToolResponse, ErrorData>> {
        Box::pin(async move {
            let loaded = self.shared.loaded.load_full();
            let operation =
                loaded.as_ref().and_then(|loaded| Some((loaded.operation(&params.name)?, loaded)));
            let (Some((operation, loaded)), Some(api)) = (operation, self.shared.api.load_full()) else {
                return Err(ErrorData::invalid_params("there is no such operation", None));
            };
            let request = context.request();
            let room = request.extensions.get::<AnswerRoom>().cloned();
            let none = JsonObject::new();
            let arguments = params.arguments.as_ref().unwrap_or(&none);
            let reporter = Reporter::Caller(request);
            let user = self.shared.users.as_ref().map(|credentials| ApiUser {
                app: self.shared.id.clone(),
                principal: context.principal().clone(),
                credentials: credentials.clone(),
            });
            let surroundings = &loaded.surroundings;
            let paginate = request.extensions.get::<Paginate>().cloned();
            let call = OperationCall { operation, surroundings, arguments, user, paginate, room, reporter };
            // The invoker keeps the time of the call.
            match api.call(call).await {
                Called::Done(result) => Ok(result.into()),
                Called::SignIn(scopes) => self.ask_to_sign_in(&scopes, &context).await,
            }
        })
    }

    answers_nothing! {
        read_resource(ReadResourceRequestParams) -> ReadResourceResponse;
        get_prompt(GetPromptRequestParams) -> GetPromptResponse;
        complete(CompleteRequestParams) -> CompleteResult;
        get_task(GetTaskParams) -> GetTaskResult;
        update_task(UpdateTaskParams) -> ();
        cancel_task(CancelTaskParams) -> ();
    }

    fn subscribe<'a>(&'a self, _: String, _: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        nothing()
    }

    fn unsubscribe<'a>(&'a self, _: String, _: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        nothing()
    }

    fn set_level<'a>(&'a self, _: LoggingLevel, _: &'a Permit) -> AppFuture<'a, Result<(), ErrorData>> {
        nothing()
    }

    fn shutdown(&self) -> AppFuture<'_, ()> {
        Box::pin(async move {
            self.shared.stop.cancel();
            self.shared.tasks.close();
            self.shared.tasks.wait().await;
            // Others may keep this app for longer than its connections are of use.
            self.shared.api.store(None);
        })
    }
}
