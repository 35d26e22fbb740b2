//! Hands on the way between the client and the server: `mcp.intercept()`.
//!
//! Request interceptors run in the order they were added, on every request; each sees what the one before it made. `Mock` and
//! `Error` end the row. A mock is asked after them. Response interceptors then see every answer, those of mocks included.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    lock,
    mock::RpcRequest,
    records::{RpcError, RpcResponse},
};

/// What a request interceptor sees.
#[derive(Debug, Clone)]
pub struct InterceptedRequest {
    /// The request, as interceptors before this one left it.
    pub request: RpcRequest,
    /// The session it belongs to.
    pub session_id: Option<String>,
}

/// What becomes of a request.
#[derive(Debug, Clone)]
pub enum RequestAction {
    /// It goes on as it is.
    Passthrough,
    /// Another request goes on. Its id stays what it was.
    Modify(RpcRequest),
    /// It is answered here.
    Mock(RpcResponse),
    /// It fails here, with this code, message and data. A text becomes an error with code -32603.
    Error(RpcError),
}

/// What a response interceptor sees.
#[derive(Debug, Clone)]
pub struct InterceptedResponse {
    /// The request as the test made it.
    pub request: RpcRequest,
    /// The answer, as interceptors before this one left it.
    pub response: RpcResponse,
    /// Milliseconds since the request.
    pub duration_ms: f64,
}

/// What becomes of an answer.
#[derive(Debug, Clone)]
pub enum ResponseAction {
    /// It goes on as it is.
    Passthrough,
    /// Another answer goes on. Its id is the request's.
    Modify(RpcResponse),
}

type OnRequest = Arc<dyn Fn(&InterceptedRequest) -> RequestAction + Send + Sync>;
type OnResponse = Arc<dyn Fn(&InterceptedResponse) -> ResponseAction + Send + Sync>;

/// Takes an interceptor away. Dropping it changes nothing.
pub struct Remove(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Remove {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Remove")
    }
}

impl Remove {
    /// Takes the interceptor away. Again, or after the client's end, it does nothing.
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

/// What the request interceptors decided.
pub(crate) enum Decided {
    Send(RpcRequest),
    Answer(RpcResponse),
}

impl Interceptors {
    /// Sees every request, before mocks. [`Remove::remove`] takes the interceptor away.
    pub fn request(
        &self,
        handler: impl Fn(&InterceptedRequest) -> RequestAction + Send + Sync + 'static,
    ) -> Remove {
        self.push(Hook::Request(Arc::new(handler)))
    }

    /// Sees every answer. [`Remove::remove`] takes the interceptor away.
    pub fn response(
        &self,
        handler: impl Fn(&InterceptedResponse) -> ResponseAction + Send + Sync + 'static,
    ) -> Remove {
        self.push(Hook::Response(Arc::new(handler)))
    }

    /// Delays every request, mocked ones too. [`Remove::remove`] takes the delay away.
    pub fn delay(&self, delay: Duration) -> Remove {
        self.push(Hook::Delay(delay))
    }

    /// Fails every request of `method`, mocked ones too. [`Remove::remove`] takes the interceptor away.
    pub fn fail_method(&self, method: impl Into<String>, message: impl Into<String>) -> Remove {
        let (method, message) = (method.into(), message.into());
        self.request(move |seen| match seen.request.method == method {
            true => RequestAction::Error(message.as_str().into()),
            false => RequestAction::Passthrough,
        })
    }

    /// Takes all interceptors away.
    pub fn clear(&self) {
        lock(&self.hooks).clear();
    }

    fn push(&self, hook: Hook) -> Remove {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.hooks).push((number, hook));
        let hooks = Arc::downgrade(&self.hooks);
        Remove(Box::new(move || {
            if let Some(hooks) = hooks.upgrade() {
                lock(&hooks).retain(|(other, _)| *other != number);
            }
        }))
    }

    fn now(&self) -> Vec<Hook> {
        lock(&self.hooks).iter().map(|(_, hook)| hook.clone()).collect()
    }

    pub(crate) async fn before(&self, mut request: RpcRequest, session_id: Option<String>) -> Decided {
        for hook in self.now() {
            let handler = match hook {
                Hook::Request(handler) => handler,
                Hook::Response(_) => continue,
                Hook::Delay(delay) => {
                    tokio::time::sleep(delay).await;
                    continue;
                }
            };
            let seen = InterceptedRequest { request, session_id: session_id.clone() };
            let action = handler(&seen);
            request = seen.request;
            match action {
                RequestAction::Passthrough => {}
                RequestAction::Modify(other) => request = RpcRequest { id: request.id, ..other },
                RequestAction::Mock(response) => return Decided::Answer(response.with_id(&request.id)),
                RequestAction::Error(error) => {
                    return Decided::Answer(RpcResponse::failure(&error).with_id(&request.id));
                }
            }
        }
        Decided::Send(request)
    }

    pub(crate) fn after(
        &self,
        request: &RpcRequest,
        mut response: RpcResponse,
        duration_ms: f64,
    ) -> RpcResponse {
        for hook in self.now() {
            let Hook::Response(handler) = hook else { continue };
            let seen = InterceptedResponse { request: request.clone(), response, duration_ms };
            response = match handler(&seen) {
                ResponseAction::Passthrough => seen.response,
                ResponseAction::Modify(other) => other.with_id(&request.id),
            };
        }
        response
    }
}
