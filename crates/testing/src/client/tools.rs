//! `tools/list` and `tools/call`.

use std::{future::IntoFuture, sync::Arc};

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};

use super::{engine::Engine, pending_call::PendingCall, trace::Timer};
use crate::{
    base::text::shorten,
    protocol::{ClientError, Tool, ToolResult},
};

/// The tools of a server. Returned by [`Mcp::tools`](super::Mcp::tools).
#[derive(Debug, Clone, Copy)]
pub struct Tools<'a> {
    pub(super) engine: &'a Arc<Engine>,
}

impl<'a> Tools<'a> {
    /// Lists all tools, across pages.
    ///
    /// # Errors
    /// The server fails, or an item is not a tool.
    pub async fn list(self) -> Result<Vec<Tool>, ClientError> {
        list(self.engine, "tools/list", "tools", Tool::read).await
    }

    /// Calls a tool. Arguments are anything that can be written as JSON: `json!({…})`, a struct, or `()` for none. If the tool or the
    /// call fails, the outcome is not an `Err` but a [`ToolResult`] with `is_error`.
    ///
    /// # Panics
    /// The arguments cannot be written as JSON, such as a map whose keys are no texts.
    pub fn call(self, name: &str, arguments: impl Serialize) -> ToolCall<'a> {
        let mut arguments = serde_json::to_value(arguments).expect("the arguments can be written as JSON");
        if arguments.is_null() {
            arguments = json!({});
        }
        let params = json!({"name": name, "arguments": arguments});
        ToolCall { engine: self.engine, params }
    }
}

/// A tool call, sent when it is awaited.
#[derive(Debug)]
#[must_use = "await it"]
pub struct ToolCall<'a> {
    engine: &'a Arc<Engine>,
    params: Value,
}

impl ToolCall<'_> {
    /// Requests progress with this token: see [`ToolResult::progress`].
    pub fn progress(mut self, token: impl Into<Value>) -> Self {
        self.params["_meta"]["progressToken"] = token.into();
        self
    }

    /// Adds a key to `_meta`.
    pub fn meta(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.params["_meta"][key] = value.into();
        self
    }

    /// Sends the call without waiting for its response, and without mocks and interceptors. A request for input from a server of
    /// 2026-07-28 (`input_required`) is returned as the response.
    ///
    /// # Errors
    /// The client is not connected.
    pub async fn begin(self) -> Result<PendingCall, ClientError> {
        let timer = Timer::start();
        let request = self.engine.numbered("tools/call", self.params);
        let mark = self.engine.recorder.mark();
        let (connection, response, sending) = self.engine.begin_in_background(&request).await?;
        let engine = self.engine.clone();
        Ok(PendingCall { engine, connection, request, response, sending, timer, mark })
    }
}

impl<'a> IntoFuture for ToolCall<'a> {
    type Output = Result<ToolResult, ClientError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let token = self.params["_meta"]["progressToken"].clone();
            let recorder = &self.engine.recorder;
            let (mark, timer) = (recorder.mark(), Timer::start());
            let outcome = match self.engine.call("tools/call", self.params).await {
                Ok(result) => Ok(result),
                Err(ClientError::Rpc { error, .. }) => Err(error),
                Err(error) => return Err(error),
            };
            Ok(ToolResult::new(outcome).observed(timer.elapsed_ms(), recorder.since(mark), &token))
        })
    }
}

/// Reads all pages of a list.
pub(super) async fn list<T>(
    engine: &Arc<Engine>,
    method: &str,
    key: &str,
    read: fn(Value) -> Result<T, String>,
) -> Result<Vec<T>, ClientError> {
    const MAX_PAGES: usize = 10_000;
    let mut all = Vec::new();
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let mut result = engine.call(method, params).await?;
        if key == "tools" {
            engine.remember_schemas(&result);
        }
        let shape = |problem: String, answer: &Value| ClientError::Shape {
            method: method.to_owned(),
            problem,
            answer: shorten(&answer.to_string(), 400),
        };
        let Value::Array(items) = result[key].take() else {
            return Err(shape(format!("it has no array `{key}`"), &result));
        };
        for item in items {
            all.push(read(item.clone()).map_err(|problem| shape(problem, &item))?);
        }
        match result["nextCursor"].as_str() {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return Ok(all),
        }
    }
    Err(ClientError::Shape {
        method: method.to_owned(),
        problem: format!("there is no end after {MAX_PAGES} pages"),
        answer: String::new(),
    })
}
