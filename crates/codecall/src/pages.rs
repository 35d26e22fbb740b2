//! Pages of a result that a script collects with one call: `callTool(name, input, { paginate: { max } })`.
//!
//! The app follows the pages, so that scripts see no addresses of the API. The call is one entry of the journal, whose answer has the items of
//! all pages: a replay asks the API for none of them, and a run that stopped in between begins again with the first page. Each page counts as
//! a call of the run, and for the rate limit of the tool, and the policies decide on it as on the call that would return it.

use std::sync::{Arc, Mutex, PoisonError};

use gatewright_agentscript::ToolFailure;
use gatewright_core::{
    AppFuture, InvokeError, Invoker, PageGate, Paginate, PermittedTool,
    rmcp::{RoleServer, model::JsonObject, service::RequestContext},
};
use serde_json::{Value, json};

use crate::nesting::Nesting;

/// The pages of one call.
#[derive(Clone)]
pub(crate) struct CallPages {
    max: usize,
    gate: Arc<RunGate>,
}

/// Has policies decide on pages, and counts them as calls of the run.
struct RunGate {
    nesting: Nesting,
    invoker: Arc<Invoker>,
    tool: PermittedTool,
    context: RequestContext<RoleServer>,
    /// The end of the run that a page would have been too much for.
    ended: Mutex<Option<ToolFailure>>,
}

impl PageGate for RunGate {
    fn pass(&self, arguments: JsonObject) -> AppFuture<'_, Result<bool, InvokeError>> {
        Box::pin(async move {
            if let Err(failure) = self.nesting.begin_call().await {
                *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
                return Err(InvokeError::Cancelled { name: self.tool.name.to_string() });
            }
            self.invoker.pass_page(&self.tool, arguments, &self.context).await
        })
    }
}

impl CallPages {
    /// Up to `max` items of the pages of a call of `tool` by a run.
    pub(crate) fn new(
        max: u32,
        nesting: Nesting,
        invoker: Arc<Invoker>,
        tool: &PermittedTool,
        context: RequestContext<RoleServer>,
    ) -> Self {
        let gate = RunGate { nesting, invoker, tool: tool.clone(), context, ended: Mutex::default() };
        Self { max: usize::try_from(max).unwrap_or(usize::MAX), gate: Arc::new(gate) }
    }

    /// The extension by which the app collects them.
    pub(crate) fn paginate(&self) -> Paginate {
        Paginate { max: self.max, gate: self.gate.clone() }
    }

    /// The reason why the run ends, if there was a page too much.
    pub(crate) fn ended(&self) -> Option<ToolFailure> {
        self.gate.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The refusal of `paginate` for a tool without pages.
pub(crate) fn no_pages(name: &str) -> String {
    format!(
        "`{name}` has no pages to collect: `paginate` is for GET operations of OpenAPI apps; call it without"
    )
}

/// The result of all pages with the items of an invented answer.
pub(crate) fn invented(answer: Value) -> Value {
    let items = match answer {
        Value::Array(items) => items,
        Value::Object(members) => members
            .into_iter()
            .find_map(|(_, member)| match member {
                Value::Array(items) => Some(items),
                _ => None,
            })
            .unwrap_or_default(),
        _ => Vec::new(),
    };
    json!({"items": items, "hasMore": false, "pages": 1})
}
