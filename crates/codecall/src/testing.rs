//! Code mode over apps of a test, without workers.

#![expect(deprecated, reason = "the older era still has logging, which SEP-2577 marks as deprecated")]

use std::sync::Arc;

use gatewright_agentscript::{Adapter, PoolConfig, WorkerPool};
use gatewright_core::{
    App, AppEvent, AppFuture, AppHealth, AppOptions, Audience, CallContext, Caller, Catalog, CatalogLink,
    Invoker, PerCaller, Permit, Principal, Registry, ToolNames, Unavailable,
    rmcp::{
        ErrorData,
        model::{
            CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
            GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, LoggingLevel,
            ReadResourceRequestParams, ReadResourceResponse, UpdateTaskParams,
        },
    },
};
use serde_json::Value;
use tokio::sync::broadcast;

use crate::{CodeCall, CodeCallConfig};

/// An app whose health and catalog a test sets, and that answers nothing. It starts as one that is starting.
#[derive(Default)]
pub(crate) struct ListedApp(pub(crate) CatalogLink, Option<SignIn>);

/// Everybody has to sign in, with the tool `authorize`.
#[derive(Default)]
struct SignIn;

impl PerCaller for SignIn {
    fn audience(&self, _: &Caller) -> Audience {
        Audience::Everyone
    }

    fn catalog(&self, _: &Audience) -> Option<Arc<Catalog>> {
        None
    }

    fn prepare<'a>(&'a self, _: &'a Caller) -> AppFuture<'a, ()> {
        Box::pin(async {})
    }

    fn unavailable<'a>(&'a self, _: &'a Caller) -> AppFuture<'a, Option<Unavailable>> {
        Box::pin(async { Some(Unavailable::SignIn("authorize".to_owned())) })
    }

    fn supports_tasks(&self) -> bool {
        false
    }
}

impl ListedApp {
    /// Up, with these tools.
    pub(crate) fn up(&self, tools: Value, about: Option<&str>) {
        let tools = serde_json::from_value(tools).unwrap();
        self.0.up(Catalog { tools, about: about.map(str::to_owned), ..Catalog::default() });
    }
}

fn nothing<'a, T: Send + 'a>() -> AppFuture<'a, Result<T, ErrorData>> {
    Box::pin(async { Err(ErrorData::internal_error("nothing is answered here", None)) })
}

macro_rules! answers_nothing {
    ($($method:ident($params:ty) -> $answer:ty;)*) => {
        $(fn $method(&self, _: $params, _: CallContext) -> AppFuture<'_, Result<$answer, ErrorData>> {
            nothing()
        })*
    };
}

impl App for ListedApp {
    fn catalog(&self) -> Arc<Catalog> {
        self.0.catalog()
    }

    fn per_caller(&self) -> Option<&dyn PerCaller> {
        self.1.as_ref().map(|sign_in| sign_in as &dyn PerCaller)
    }

    fn health(&self) -> AppHealth {
        self.0.health()
    }

    fn events(&self) -> broadcast::Receiver<AppEvent> {
        self.0.events()
    }

    answers_nothing! {
        call_tool(CallToolRequestParams) -> CallToolResponse;
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
        Box::pin(async {})
    }
}

/// Code mode over an empty registry.
pub(crate) fn code_mode() -> CodeCall {
    let registry = Registry::new(ToolNames::Colon);
    let pool = WorkerPool::new(PoolConfig::default().adapter(Adapter::InProcess).workers(1)).unwrap();
    CodeCall::new(CodeCallConfig::default(), Arc::new(Invoker::new(registry)), pool, ToolNames::Colon)
}

/// Adds an app that is starting.
pub(crate) fn add(code_mode: &CodeCall, id: &str) -> Arc<ListedApp> {
    added(code_mode, id, ListedApp::default())
}

/// Adds an app that is up, and whose tools are there for those who have signed in.
pub(crate) fn add_waiting_for_sign_in(code_mode: &CodeCall, id: &str) {
    let app = added(code_mode, id, ListedApp(CatalogLink::default(), Some(SignIn)));
    app.up(serde_json::json!([{"name": "authorize", "inputSchema": {"type": "object"}}]), None);
}

fn added(code_mode: &CodeCall, id: &str, app: ListedApp) -> Arc<ListedApp> {
    let app = Arc::new(app);
    code_mode.invoker.registry().add(id, app.clone(), AppOptions::default());
    app
}

/// A caller who may use everything.
pub(crate) fn anybody() -> Caller {
    Caller::new(Principal::local())
}

/// A runtime with one thread for long work, for tests that look whether work is done beside the threads that serve requests.
pub(crate) struct OneThread(tokio::runtime::Runtime);

impl OneThread {
    pub(crate) fn new() -> Self {
        Self(
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .max_blocking_threads(1)
                .build()
                .unwrap(),
        )
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.0.block_on(future)
    }

    /// Runs `test` while the thread has other work, so that nothing that is left to it is done.
    pub(crate) fn while_it_is_busy(&self, test: impl AsyncFnOnce()) {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let busy = self.0.spawn_blocking(move || ended.recv());
        self.0.block_on(test());
        drop(end);
        self.0.block_on(busy).unwrap().unwrap_err();
    }
}
