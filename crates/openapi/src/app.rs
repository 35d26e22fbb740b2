//! [`OpenapiApp`]: an app whose tools are the operations of an OpenAPI document.
//!
//! The document is read in the background, and again when it changes; the last good one stays in use. `loading` reads it, `call` makes
//! the requests, those that check the health of the API among them.

#![expect(deprecated, reason = "the older era still has logging, which SEP-2577 marks as deprecated")]

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use gatewright_core::{
    AnswerRoom, App, AppEvent, AppFuture, AppHealth, CallContext, Catalog, CatalogLink, DownReason,
    HttpTrail, NetworkTransport, Paginate, Paging, Permit, ask_to_sign_in,
};
use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
        GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, JsonObject, LoggingLevel,
        ReadResourceRequestParams, ReadResourceResponse, UpdateTaskParams,
    },
};
use tokio::sync::{Notify, broadcast};
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
/// Wait before a health check that failed is repeated.
const REPEAT_CHECK: Duration = Duration::from_millis(500);
/// Time between two looks at an API that did not answer, without a check of its own.
const LOOK_EVERY: Duration = Duration::from_secs(5);

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
    /// The document is in use for the first time.
    published: Notify,
    problems: Mutex<Problems>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// Why an app whose document was read is down.
#[derive(Debug, Default)]
struct Problems {
    /// The document and the configuration do not go together.
    document: Option<String>,
    /// The API is not healthy.
    health: Option<String>,
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
            published: Notify::new(),
            problems: Mutex::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        if let Some(api) = api {
            let following = shared.clone().follow(Loader::new(api.clone()));
            let checking = shared.clone().check_health(api);
            let stop = shared.stop.clone();
            shared.tasks.spawn(async move {
                let both = async { tokio::join!(following, checking) };
                stop.run_until_cancelled(both).await
            });
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
            let wait = FIRST_RETRY * 2_u32.saturating_pow(failures.clamp(1, 10) - 1);
            match loader.config().place() {
                // There may be memory for it, or a file that it refers to, by then.
                DocumentPlace::File(_) if known_problem.is_some() => tokio::select! {
                    () = loader.changed(FILE_EVERY) => {}
                    () = tokio::time::sleep(wait) => {}
                },
                DocumentPlace::File(_) => loader.changed(FILE_EVERY).await,
                DocumentPlace::Url(_) if self.loaded.load().is_none() => {
                    tokio::time::sleep(wait.min(refresh)).await
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
        let mut problem = loaded.problem();
        if let (Some(users), Some(sign_in)) = (&self.users, &loaded.sign_in)
            && let Err(why) = users.serve(&self.id, sign_in.clone())
        {
            problem = Some(why);
        }
        self.loaded.store(Some(Arc::new(loaded)));
        self.change(|problems| problems.document = problem, catalog);
        self.published.notify_one();
    }

    /// Changes what is known of problems, and says whether the app is up.
    fn change(&self, change: impl FnOnce(&mut Problems), catalog: Catalog) {
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut problems);
        match problems.document.as_ref().or(problems.health.as_ref()) {
            Some(problem) => self.link.down(problem.clone()),
            None => self.link.up(catalog),
        }
    }

    /// Checks the health of the API: from time to time if it has a path for that, or after calls that did not reach it.
    async fn check_health(self: Arc<Self>, api: Arc<HttpApi>) {
        let check = api.config().health.as_ref();
        let path = check.map(|check| check.path.as_str());
        let mut is_down = false;
        loop {
            let wait = match check {
                Some(check) => Some(check.interval),
                None => is_down.then_some(LOOK_EVERY),
            };
            let next = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = next => {}
                () = self.published.notified(), if check.is_some() => {}
                () = api.last_calls.doubtful() => {}
            }
            let loaded = self.loaded.load_full();
            let Some((server, loaded)) =
                loaded.as_ref().and_then(|loaded| Some((loaded.server.as_ref()?, loaded)))
            else {
                continue;
            };
            let mut health = api.check_health(server, path).await;
            if health.is_err() && !is_down {
                tokio::time::sleep(REPEAT_CHECK).await;
                health = api.check_health(server, path).await;
            }
            if health.is_err() == is_down {
                continue;
            }
            is_down = !is_down;
            match &health {
                Ok(()) => tracing::info!(app.id = %self.id, "the API of an app is healthy again"),
                Err(problem) => {
                    tracing::warn!(app.id = %self.id, "the API of an app is not healthy: {problem}");
                }
            }
            // The document may have been replaced meanwhile.
            let catalog = self.loaded.load_full().map_or_else(|| loaded.catalog(), |loaded| loaded.catalog());
            self.change(|problems| problems.health = health.err(), catalog);
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
            let room = AnswerRoom::of(request);
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
            let trail = HttpTrail::of(request, || operation.path_template().into());
            let call =
                OperationCall { operation, surroundings, arguments, user, paginate, room, reporter, trail };
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
