//! Code mode over apps of a test, without workers.

#![expect(deprecated, reason = "the older era still has logging, which SEP-2577 marks as deprecated")]

use std::sync::Arc;

use gatewright_agentscript::{Adapter, PoolConfig, WorkerPool};
use gatewright_core::{
    App, AppEvent, AppFuture, AppHealth, AppOptions, CallContext, Caller, Catalog, CatalogLink, Invoker,
    Permit, Principal, Registry, ToolNames,
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
pub(crate) struct ListedApp(pub(crate) CatalogLink);

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
    let app = Arc::new(ListedApp::default());
    code_mode.invoker.registry().add(id, app.clone(), AppOptions::default());
    app
}

/// A caller who may use everything.
pub(crate) fn anybody() -> Caller {
    Caller::new(Principal::local())
}
