//! Interceptors of requests and responses: `mcp.intercept()`.
//!
//! Request interceptors run on every request, in the order they were added; each sees the request as the one before left it. `Mock`
//! and `Error` skip the rest, and the mocks, which come next. Response interceptors see every response, mocked ones included.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    base::lock,
    protocol::{RpcError, RpcRequest, RpcResponse},
};

/// A request on its way to the server.
#[derive(Debug, Clone)]
pub struct InterceptedRequest {
    /// The request, as earlier interceptors left it.
    pub request: RpcRequest,
    /// The session id.
    pub session_id: Option<String>,
}

/// The decision of a request interceptor.
#[derive(Debug, Clone)]
pub enum RequestAction {
    /// Passes it on unchanged.
    Passthrough,
    /// Passes on another request, with the same id.
    Modify(RpcRequest),
    /// Answers the request with this response.
    Mock(RpcResponse),
    /// Answers the request with this error. A text becomes an error with code -32603.
    Error(RpcError),
}

/// A response on its way to the test.
#[derive(Debug, Clone)]
pub struct InterceptedResponse {
    /// The request as the test sent it.
    pub request: RpcRequest,
    /// The response, as earlier interceptors left it.
    pub response: RpcResponse,
    /// Milliseconds since the request.
    pub duration_ms: f64,
}

/// The decision of a response interceptor.
#[derive(Debug, Clone)]
pub enum ResponseAction {
    /// Passes it on unchanged.
    Passthrough,
    /// Passes on another response, with the id of the request.
    Modify(RpcResponse),
}

type OnRequest = Arc<dyn Fn(&InterceptedRequest) -> RequestAction + Send + Sync>;
type OnResponse = Arc<dyn Fn(&InterceptedResponse) -> ResponseAction + Send + Sync>;

/// Removes an interceptor. Dropping the handle does not remove it.
pub struct InterceptorHandle(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for InterceptorHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InterceptorHandle")
    }
}

impl InterceptorHandle {
    /// Removes the interceptor. Does nothing if it is already removed or the client is gone.
    pub fn remove(&self) {
        (self.0)();
    }
}

#[derive(Clone)]
enum Hook {
    Request(OnRequest),
    Response(OnResponse),
    Delay(Duration),
}

/// The interceptors of one client.
#[derive(Clone, Default)]
pub struct Interceptors {
    hooks: Arc<Mutex<Vec<(u64, Hook)>>>,
    next: Arc<AtomicU64>,
}

impl std::fmt::Debug for Interceptors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interceptors").field("count", &lock(&self.hooks).len()).finish()
    }
}

/// The outcome of all request interceptors.
pub(super) enum Intercepted {
    Send(RpcRequest),
    Respond(RpcResponse),
}

impl Interceptors {
    /// Adds an interceptor of requests, which runs before mocks. [`InterceptorHandle::remove`] removes the interceptor.
    pub fn request(
        &self,
        handler: impl Fn(&InterceptedRequest) -> RequestAction + Send + Sync + 'static,
    ) -> InterceptorHandle {
        self.push(Hook::Request(Arc::new(handler)))
    }

    /// Adds an interceptor of responses. [`InterceptorHandle::remove`] removes the interceptor.
    pub fn response(
        &self,
        handler: impl Fn(&InterceptedResponse) -> ResponseAction + Send + Sync + 'static,
    ) -> InterceptorHandle {
        self.push(Hook::Response(Arc::new(handler)))
    }

    /// Delays every request, including mocked ones. [`InterceptorHandle::remove`] removes the delay.
    pub fn delay(&self, delay: Duration) -> InterceptorHandle {
        self.push(Hook::Delay(delay))
    }

    /// Fails every request of `method`, including mocked ones. [`InterceptorHandle::remove`] removes the interceptor.
    pub fn fail_method(&self, method: impl Into<String>, message: impl Into<String>) -> InterceptorHandle {
        let (method, message) = (method.into(), message.into());
        self.request(move |intercepted| match intercepted.request.method == method {
            true => RequestAction::Error(message.as_str().into()),
            false => RequestAction::Passthrough,
        })
    }

    /// Removes all interceptors.
    pub fn clear(&self) {
        lock(&self.hooks).clear();
    }

    fn push(&self, hook: Hook) -> InterceptorHandle {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.hooks).push((number, hook));
        let hooks = Arc::downgrade(&self.hooks);
        InterceptorHandle(Box::new(move || {
            if let Some(hooks) = hooks.upgrade() {
                lock(&hooks).retain(|(other, _)| *other != number);
            }
        }))
    }

    fn snapshot(&self) -> Vec<Hook> {
        lock(&self.hooks).iter().map(|(_, hook)| hook.clone()).collect()
    }

    pub(super) async fn before(&self, mut request: RpcRequest, session_id: Option<String>) -> Intercepted {
        for hook in self.snapshot() {
            let handler = match hook {
                Hook::Request(handler) => handler,
                Hook::Response(_) => continue,
                Hook::Delay(delay) => {
                    tokio::time::sleep(delay).await;
                    continue;
                }
            };
            let intercepted = InterceptedRequest { request, session_id: session_id.clone() };
            let action = handler(&intercepted);
            request = intercepted.request;
            match action {
                RequestAction::Passthrough => {}
                RequestAction::Modify(other) => request = RpcRequest { id: request.id, ..other },
                RequestAction::Mock(response) => return Intercepted::Respond(response.with_id(&request.id)),
                RequestAction::Error(error) => {
                    return Intercepted::Respond(RpcResponse::failure(&error).with_id(&request.id));
                }
            }
        }
        Intercepted::Send(request)
    }

    pub(super) fn after(
        &self,
        request: &RpcRequest,
        mut response: RpcResponse,
        duration_ms: f64,
    ) -> RpcResponse {
        for hook in self.snapshot() {
            let Hook::Response(handler) = hook else { continue };
            let intercepted = InterceptedResponse { request: request.clone(), response, duration_ms };
            response = match handler(&intercepted) {
                ResponseAction::Passthrough => intercepted.response,
                ResponseAction::Modify(other) => other.with_id(&request.id),
            };
        }
        response
    }
}
