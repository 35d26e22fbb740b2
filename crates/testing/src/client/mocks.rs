//! Mocked responses, returned instead of the server's: `mcp.mock()`.
//!
//! A mock is compared with the request as request interceptors left it. If several match, the first one added that has uses left
//! answers; if none has, the request goes to the server.

use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    base::{json::is_subset, lock},
    protocol::{RpcError, RpcRequest, RpcResponse},
};

type Predicate = Arc<dyn Fn(&Value) -> bool + Send + Sync>;
type Responder = Arc<dyn Fn(&RpcRequest) -> RpcResponse + Send + Sync>;

#[derive(Clone)]
enum Params {
    Any,
    Subset(Value),
    Predicate(Predicate),
}

/// The requests a mock matches, and its response.
#[derive(Clone)]
pub struct MockOptions {
    method: String,
    params: Params,
    response: Responder,
    times: Option<u32>,
    delay: Duration,
}

impl std::fmt::Debug for MockOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MockOptions").field("method", &self.method).finish_non_exhaustive()
    }
}

impl MockOptions {
    /// A mock that answers every request of `method` with `response`, with the id of the request.
    pub fn new(method: impl Into<String>, response: RpcResponse) -> Self {
        Self::with(method, move |_| response.clone())
    }

    /// A mock that answers every request of `method` with the return value of `respond`.
    pub fn with(
        method: impl Into<String>,
        respond: impl Fn(&RpcRequest) -> RpcResponse + Send + Sync + 'static,
    ) -> Self {
        Self {
            method: method.into(),
            params: Params::Any,
            response: Arc::new(respond),
            times: None,
            delay: Duration::ZERO,
        }
    }

    /// Matches only requests whose `params` contain all of this: see [`is_subset`](crate::is_subset).
    #[must_use]
    pub fn params(mut self, params: Value) -> Self {
        self.params = Params::Subset(params);
        self
    }

    /// Matches only requests for whose `params` the predicate returns true.
    #[must_use]
    pub fn params_predicate(mut self, predicate: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        self.params = Params::Predicate(Arc::new(predicate));
        self
    }

    /// Number of times the mock answers. Default: unlimited.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Delay of the response. Default: none.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// As [`Mocks::tool`].
    pub(crate) fn tool(name: &str, response: Value) -> Self {
        let response = RpcResponse::success(tool_result(response));
        Self::new("tools/call", response).params(json!({"name": name}))
    }

    /// As [`Mocks::tool_error`].
    pub(crate) fn tool_error(name: &str, code: i64, message: &str) -> Self {
        let response = RpcResponse::failure(&RpcError::new(code, message));
        Self::new("tools/call", response).params(json!({"name": name}))
    }

    /// As [`Mocks::resource`].
    pub(crate) fn resource(uri: &str, content: Value) -> Self {
        let result = match content {
            Value::String(text) => {
                json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]})
            }
            whole if whole.get("contents").is_some() => whole,
            mut one => {
                if let Some(fields) = one.as_object_mut() {
                    fields.entry("uri").or_insert_with(|| uri.into());
                }
                json!({"contents": [one]})
            }
        };
        Self::new("resources/read", RpcResponse::success(result)).params(json!({"uri": uri}))
    }

    fn matches(&self, request: &RpcRequest) -> bool {
        self.method == request.method
            && match &self.params {
                Params::Any => true,
                Params::Subset(expected) => is_subset(expected, &request.params),
                Params::Predicate(predicate) => predicate(&request.params),
            }
    }
}

/// An added mock and the requests it answered.
struct AddedMock {
    options: MockOptions,
    calls: Mutex<Vec<RpcRequest>>,
}

/// The mocks of one client.
#[derive(Clone, Default)]
pub struct Mocks {
    entries: Arc<Mutex<Vec<Arc<AddedMock>>>>,
}

impl std::fmt::Debug for Mocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mocks").field("count", &lock(&self.entries).len()).finish()
    }
}

impl Mocks {
    /// Adds a mock, after the existing ones.
    pub fn add(&self, options: MockOptions) -> MockHandle {
        let entry = Arc::new(AddedMock { options, calls: Mutex::default() });
        lock(&self.entries).push(entry.clone());
        MockHandle { entry, entries: Arc::downgrade(&self.entries) }
    }

    /// Mocks calls of one tool. An object with `content` is the whole result; a string becomes a text block; any other value
    /// becomes `structuredContent`, with its JSON as text.
    pub fn tool(&self, name: &str, response: impl Into<Value>) -> MockHandle {
        self.add(MockOptions::tool(name, response.into()))
    }

    /// Mocks calls of one tool with a JSON-RPC error.
    pub fn tool_error(&self, name: &str, code: i64, message: &str) -> MockHandle {
        self.add(MockOptions::tool_error(name, code, message))
    }

    /// Mocks reads of one resource: with a string, a [`ResourceContent`](crate::ResourceContent) that was read before, a result with
    /// `contents`, or one content object.
    pub fn resource(&self, uri: &str, content: impl Into<Value>) -> MockHandle {
        self.add(MockOptions::resource(uri, content.into()))
    }

    /// Removes all mocks.
    pub fn clear(&self) {
        lock(&self.entries).clear();
    }

    /// The response of the first matching mock with uses left, and its delay.
    pub(super) fn answer(&self, request: &RpcRequest) -> Option<(RpcResponse, Duration)> {
        let entry = {
            let entries = lock(&self.entries);
            let entry = entries.iter().find(|entry| {
                let used = lock(&entry.calls).len();
                entry.options.times.is_none_or(|times| used < times as usize)
                    && entry.options.matches(request)
            })?;
            lock(&entry.calls).push(request.clone());
            entry.clone()
        };
        Some(((entry.options.response)(request).with_id(&request.id), entry.options.delay))
    }
}

fn tool_result(response: Value) -> Value {
    match response {
        Value::String(text) => json!({"content": [{"type": "text", "text": text}]}),
        whole if whole.get("content").is_some_and(Value::is_array) => whole,
        value => {
            json!({"content": [{"type": "text", "text": value.to_string()}], "structuredContent": value})
        }
    }
}

/// An added mock. Dropping the handle does not remove it.
#[derive(Clone)]
pub struct MockHandle {
    entry: Arc<AddedMock>,
    entries: Weak<Mutex<Vec<Arc<AddedMock>>>>,
}

impl std::fmt::Debug for MockHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MockHandle").field("calls", &self.call_count()).finish_non_exhaustive()
    }
}

impl MockHandle {
    /// The number of requests it answered.
    pub fn call_count(&self) -> usize {
        lock(&self.entry.calls).len()
    }

    /// The requests it answered.
    pub fn calls(&self) -> Vec<RpcRequest> {
        lock(&self.entry.calls).clone()
    }

    /// Removes the mock. Does nothing if it is already removed or the client is gone.
    pub fn remove(&self) {
        if let Some(entries) = self.entries.upgrade() {
            lock(&entries).retain(|entry| !Arc::ptr_eq(entry, &self.entry));
        }
    }
}
