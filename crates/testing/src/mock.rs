//! Answers given in place of the server's: `mcp.mock()`.
//!
//! A mock is compared with the request as request interceptors left it. Of several that match, the first one
//! added that has uses left answers; when all are used up the request goes on to the server.

use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    lock,
    partial::is_subset,
    records::{RpcError, RpcResponse},
};

/// A JSON-RPC request.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RpcRequest {
    /// Its id: a number or a text.
    pub id: Value,
    /// What is asked.
    pub method: String,
    /// With what; null when there are no `params`.
    pub params: Value,
}

impl RpcRequest {
    /// A request with the id 1.
    pub fn new(method: impl Into<String>, params: Value) -> Self {
        Self { id: json!(1), method: method.into(), params }
    }

    /// Another id.
    #[must_use]
    pub fn id(mut self, id: impl Into<Value>) -> Self {
        self.id = id.into();
        self
    }

    pub(crate) fn message(&self) -> Value {
        let mut message = json!({"jsonrpc": "2.0", "id": self.id, "method": self.method});
        if !self.params.is_null() {
            message["params"] = self.params.clone();
        }
        message
    }
}

type Predicate = Arc<dyn Fn(&Value) -> bool + Send + Sync>;
type Responder = Arc<dyn Fn(&RpcRequest) -> RpcResponse + Send + Sync>;

#[derive(Clone)]
enum Params {
    Any,
    Subset(Value),
    That(Predicate),
}

/// What to answer, and when.
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
    /// Answers every request of `method` with `response`, its id filled in.
    pub fn new(method: impl Into<String>, response: RpcResponse) -> Self {
        Self::with(method, move |_| response.clone())
    }

    /// Answers every request of `method` with what `respond` makes of it.
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

    /// Only requests whose `params` hold all of this: see [`is_subset`](crate::is_subset).
    #[must_use]
    pub fn params(mut self, params: Value) -> Self {
        self.params = Params::Subset(params);
        self
    }

    /// Only requests whose `params` please `wanted`.
    #[must_use]
    pub fn params_that(mut self, wanted: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        self.params = Params::That(Arc::new(wanted));
        self
    }

    /// How often it answers. Default: without end.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Waits before it answers. Default: no time.
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

    fn wants(&self, request: &RpcRequest) -> bool {
        self.method == request.method
            && match &self.params {
                Params::Any => true,
                Params::Subset(expected) => is_subset(expected, &request.params),
                Params::That(wanted) => wanted(&request.params),
            }
    }
}

struct Entry {
    options: MockOptions,
    calls: Mutex<Vec<RpcRequest>>,
}

/// The mocks of one client.
#[derive(Clone, Default)]
pub struct Mocks {
    entries: Arc<Mutex<Vec<Arc<Entry>>>>,
}

impl std::fmt::Debug for Mocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mocks").field("count", &lock(&self.entries).len()).finish()
    }
}

impl Mocks {
    /// Adds a mock after those there are.
    pub fn add(&self, options: MockOptions) -> MockHandle {
        let entry = Arc::new(Entry { options, calls: Mutex::default() });
        lock(&self.entries).push(entry.clone());
        MockHandle { entry, entries: Arc::downgrade(&self.entries) }
    }

    /// Answers calls of one tool. An object with `content` is the whole result; a text becomes a text block; anything else
    /// becomes `structuredContent` with its JSON as text.
    pub fn tool(&self, name: &str, response: impl Into<Value>) -> MockHandle {
        self.add(MockOptions::tool(name, response.into()))
    }

    /// Answers calls of one tool with a JSON-RPC error.
    pub fn tool_error(&self, name: &str, code: i64, message: &str) -> MockHandle {
        self.add(MockOptions::tool_error(name, code, message))
    }

    /// Answers reads of one resource: with a text, a [`ResourceContent`](crate::ResourceContent) that was read
    /// before, or an object that holds `contents` or is one content.
    pub fn resource(&self, uri: &str, content: impl Into<Value>) -> MockHandle {
        self.add(MockOptions::resource(uri, content.into()))
    }

    /// Takes all mocks away.
    pub fn clear(&self) {
        lock(&self.entries).clear();
    }

    pub(crate) fn take(&self, request: &RpcRequest) -> Option<(RpcResponse, Duration)> {
        let entry = {
            let entries = lock(&self.entries);
            let entry = entries.iter().find(|entry| {
                let used = lock(&entry.calls).len();
                entry.options.times.is_none_or(|times| used < times as usize) && entry.options.wants(request)
            })?;
            lock(&entry.calls).push(request.clone());
            entry.clone()
        };
        Some(((entry.options.response)(request).with_id(&request.id), entry.options.delay))
    }
}

pub(crate) fn tool_result(response: Value) -> Value {
    match response {
        Value::String(text) => json!({"content": [{"type": "text", "text": text}]}),
        whole if whole.get("content").is_some_and(Value::is_array) => whole,
        value => {
            json!({"content": [{"type": "text", "text": value.to_string()}], "structuredContent": value})
        }
    }
}

/// A mock that was added. Dropping it changes nothing: the mock stays until [`MockHandle::remove`] or the client's end.
#[derive(Clone)]
pub struct MockHandle {
    entry: Arc<Entry>,
    entries: Weak<Mutex<Vec<Arc<Entry>>>>,
}

impl std::fmt::Debug for MockHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MockHandle").field("calls", &self.call_count()).finish_non_exhaustive()
    }
}

impl MockHandle {
    /// How often it answered.
    pub fn call_count(&self) -> usize {
        lock(&self.entry.calls).len()
    }

    /// The requests it answered.
    pub fn calls(&self) -> Vec<RpcRequest> {
        lock(&self.entry.calls).clone()
    }

    /// Takes the mock away. Again, or after the client's end, it does nothing.
    pub fn remove(&self) {
        if let Some(entries) = self.entries.upgrade() {
            lock(&entries).retain(|entry| !Arc::ptr_eq(entry, &self.entry));
        }
    }
}
