//! `tools/list` and `tools/call`.

use std::{
    future::IntoFuture,
    sync::Arc,
    time::{Instant, SystemTime},
};

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{OpenCall, engine::Core};
use crate::{
    ClientError,
    records::{Tool, ToolResult},
};

/// Tools of the server. Made by [`Mcp::tools`](super::Mcp::tools).
#[derive(Clone, Copy)]
pub struct Tools<'a> {
    pub(super) core: &'a Arc<Core>,
}

impl std::fmt::Debug for Tools<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tools")
    }
}

impl<'a> Tools<'a> {
    /// All tools, page by page.
    ///
    /// # Errors
    /// The server fails, or lists something that is no tool.
    pub async fn list(self) -> Result<Vec<Tool>, ClientError> {
        list(self.core, "tools/list", "tools", Tool::read).await
    }

    /// Calls a tool. A tool or a call that fails is no `Err` but a [`ToolResult`] with `is_error`.
    pub fn call(self, name: &str, arguments: Value) -> ToolCall<'a> {
        let params = json!({"name": name, "arguments": arguments});
        ToolCall { core: self.core, params }
    }
}

/// A call that is made when it is awaited.
#[must_use = "await it"]
pub struct ToolCall<'a> {
    core: &'a Arc<Core>,
    params: Value,
}

impl std::fmt::Debug for ToolCall<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolCall").field("params", &self.params).finish()
    }
}

impl ToolCall<'_> {
    /// Asks for progress under this token: see [`ToolResult::progress`].
    pub fn progress(mut self, token: impl Into<Value>) -> Self {
        self.params["_meta"]["progressToken"] = token.into();
        self
    }

    /// One more key of `_meta`.
    pub fn meta(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.params["_meta"][key] = value.into();
        self
    }

    /// Sends the call and does not wait for its answer, past mocks and interceptors. What a server of 2026-07-28 asks back
    /// (`input_required`) is the answer then.
    ///
    /// # Errors
    /// There is no connection.
    pub async fn begin(self) -> Result<OpenCall, ClientError> {
        let (started, timestamp) = (Instant::now(), SystemTime::now());
        let (request, seen) = (self.core.numbered("tools/call", self.params), self.core.notifications.len());
        let (link, told, sending) = self.core.begin_apart(&request).await?;
        Ok(OpenCall { core: self.core.clone(), link, request, told, sending, started, timestamp, seen })
    }
}

impl<'a> IntoFuture for ToolCall<'a> {
    type Output = Result<ToolResult, ClientError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let token = self.params["_meta"]["progressToken"].clone();
            let (seen, started) = (self.core.notifications.len(), Instant::now());
            let outcome = match self.core.call("tools/call", self.params).await {
                Ok(result) => Ok(result),
                Err(ClientError::Rpc { error, .. }) => Err(error),
                Err(error) => return Err(error),
            };
            let duration_ms = started.elapsed().as_secs_f64() * 1e3;
            Ok(ToolResult::of(outcome).between(duration_ms, self.core.notifications.since(seen), &token))
        })
    }
}

/// Reads a list page by page.
pub(super) async fn list<T>(
    core: &Arc<Core>,
    method: &str,
    key: &str,
    read: fn(Value) -> Result<T, String>,
) -> Result<Vec<T>, ClientError> {
    const MOST_PAGES: usize = 10_000;
    let mut all = Vec::new();
    let mut params = json!({});
    for _ in 0..MOST_PAGES {
        let mut result = core.call(method, params).await?;
        if key == "tools" {
            core.learn(&result);
        }
        let shape = |problem: String, answer: &Value| ClientError::Shape {
            method: method.to_owned(),
            problem,
            answer: crate::shorten(&answer.to_string(), 400),
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
        problem: format!("there is no end after {MOST_PAGES} pages"),
        answer: String::new(),
    })
}
