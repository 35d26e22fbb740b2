//! The path of a request: request interceptors → mocks → transport → response interceptors → trace.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::Engine;
use crate::{
    base::lock,
    client::{
        connection::Connection,
        interceptors::Intercepted,
        logs::LogLevel,
        pending_requests::{PendingResponse, Response},
        trace::Timer,
        transport::Outgoing,
    },
    protocol::{ClientError, RpcRequest, RpcResponse},
};

impl Engine {
    /// Sends a request and returns its result. Answers requests for input (2026-07-28, `input_required`) with the handlers.
    pub(in crate::client) async fn call(&self, method: &str, params: Value) -> Result<Value, ClientError> {
        const MAX_ROUNDS: usize = 10;
        let mut round = params.clone();
        for _ in 0..MAX_ROUNDS {
            let response = self.exchange(self.numbered(method, round), true).await?;
            let result = response.into_result(method)?;
            if result["resultType"] != "input_required" {
                return Ok(result);
            }
            let Some(responses) = self.input_responses(&result["inputRequests"]).await else {
                return Ok(result);
            };
            round = params.clone();
            round["inputResponses"] = responses;
            if let Some(state) = result.get("requestState") {
                round["requestState"] = state.clone();
            }
        }
        Err(ClientError::Shape {
            method: method.to_owned(),
            problem: format!("the server asked for input more than {MAX_ROUNDS} times"),
            answer: String::new(),
        })
    }

    /// Answers of the handlers to `inputRequests`; `None` if a handler is missing.
    async fn input_responses(&self, requests: &Value) -> Option<Value> {
        let mut responses = serde_json::Map::new();
        for (key, request) in requests.as_object().into_iter().flatten() {
            let handlers = lock(&self.recorder.handlers).clone();
            let method = request["method"].as_str().unwrap_or_default();
            let asked = RpcRequest::new(method, request["params"].clone()).id(key.as_str());
            self.recorder.requests.push(asked);
            responses.insert(key.clone(), handlers.answer(method, request["params"].clone()).await.ok()?);
        }
        Some(Value::Object(responses))
    }

    /// Sends one request through interceptors and mocks, and adds it to the trace. With `complete` the `_meta` and headers that the
    /// protocol revision requires are added.
    pub(in crate::client) async fn exchange(&self, request: RpcRequest, complete: bool) -> Response {
        let timer = Timer::start();
        let mut unfinished = Unfinished { engine: self, request: Some(request.clone()), timer };
        let Answer { response, mocked, checked } = self.answer(&request, complete).await;
        let response = response.map(|one| self.interceptors.after(&request, one, timer.elapsed_ms()));
        unfinished.request = None;
        self.trace.push(timer.trace(request, &response, mocked));
        checked.and(response)
    }

    /// The response of an interceptor, a mock or the server.
    async fn answer(&self, request: &RpcRequest, complete: bool) -> Answer {
        let mocked = |response| Answer { response: Ok(response), mocked: true, checked: Ok(()) };
        let request = match self.interceptors.before(request.clone(), self.session_id()).await {
            Intercepted::Respond(response) => return mocked(response),
            Intercepted::Send(request) => request,
        };
        if let Some((response, delay)) = self.mocks.answer(&request) {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            return mocked(response);
        }
        let response = self.send_or_reconnect(&request, complete).await;
        let checked = match &response {
            Ok(response) => self.check(&request, response).await,
            Err(_) => Ok(()),
        };
        Answer { response, mocked: false, checked }
    }

    async fn send_or_reconnect(&self, request: &RpcRequest, complete: bool) -> Response {
        let connection = self.connection()?;
        match self.send(&connection, request, complete).await {
            // A client must start a new session when the server has lost its session, for example by a restart.
            Err(gone @ ClientError::SessionGone { .. }) if request.method != "initialize" => {
                self.log(LogLevel::Info, "the session is gone; a new one is begun");
                match self.connect().await {
                    Ok(()) => {
                        let connection = self.connection()?;
                        self.send(&connection, request, complete).await
                    }
                    Err(ClientError::Closed(_)) => Err(gone),
                    Err(error) => Err(error),
                }
            }
            response => response,
        }
    }

    /// Checks the shape of a response. Lists the tools first if their output schemas are needed.
    ///
    /// # Errors
    /// The response or a message before it breaks a rule.
    pub(in crate::client) async fn check(
        &self,
        request: &RpcRequest,
        response: &RpcResponse,
    ) -> Result<(), ClientError> {
        const MAX_PAGES: usize = 100;
        /// A server that does not list its tools must not hold up its calls.
        const LIST_LIMIT: Duration = Duration::from_secs(5);
        let shapes = &self.recorder.shapes;
        // A server that has ended by now is not asked.
        if shapes.needs_tools(request, response)
            && let Ok(connection) = self.connection()
        {
            let mut params = json!({});
            for _ in 0..MAX_PAGES {
                let list = self.numbered("tools/list", params);
                let limit = LIST_LIMIT.min(*lock(&self.timeout));
                let Ok(page) = Box::pin(self.send_within(&connection, &list, true, limit)).await else {
                    break;
                };
                shapes.answer(&list, &page)?;
                let next = page.result().and_then(|result| result["nextCursor"].as_str());
                let Some(cursor) = next else { break };
                params = json!({"cursor": cursor});
            }
        }
        shapes.answer(request, response)
    }

    /// Sends a request over a connection and waits for its response.
    pub(super) async fn send(
        &self,
        connection: &Connection,
        request: &RpcRequest,
        complete: bool,
    ) -> Response {
        let timeout = *lock(&self.timeout);
        self.send_within(connection, request, complete, timeout).await
    }

    pub(super) async fn send_within(
        &self,
        connection: &Connection,
        request: &RpcRequest,
        complete: bool,
        timeout: Duration,
    ) -> Response {
        let outgoing = self.outgoing(connection, request, complete).await;
        let pending = connection.pending.register(&request.id);
        self.wait(connection, &request.method, &request.id, outgoing, pending, timeout).await
    }

    async fn outgoing(&self, connection: &Connection, request: &RpcRequest, complete: bool) -> Outgoing {
        let mut message = request.message();
        let mut headers = Vec::new();
        if self.is_stateless() && complete {
            self.add_meta(&mut message);
            if connection.transport.is_http() {
                headers = self.standard_headers(connection, request).await;
            }
        }
        Outgoing { headers, ..Outgoing::message(&message) }
    }

    /// Sends a request whose response may never come, without mocks and interceptors.
    pub(in crate::client) async fn begin(
        &self,
        request: &RpcRequest,
    ) -> Result<(Arc<Connection>, PendingResponse), ClientError> {
        let connection = self.connection()?;
        let outgoing = self.outgoing(&connection, request, true).await;
        let pending = connection.pending.register(&request.id);
        connection.transport.send(outgoing).await?;
        Ok((connection, pending))
    }

    /// As [`Engine::begin`], but over HTTP it sends in a task, which is returned: sending ends when the response begins, which may be never.
    pub(in crate::client) async fn begin_in_background(
        &self,
        request: &RpcRequest,
    ) -> Result<(Arc<Connection>, PendingResponse, Option<AbortHandle>), ClientError> {
        let connection = self.connection()?;
        if !connection.transport.is_http() {
            // At once: nothing that is sent later may overtake it, such as its cancellation.
            let (connection, pending) = self.begin(request).await?;
            return Ok((connection, pending, None));
        }
        let outgoing = self.outgoing(&connection, request, true).await;
        let pending = connection.pending.register(&request.id);
        let (sender, id) = (connection.clone(), request.id.clone());
        let sending = tokio::spawn(async move {
            if let Err(error) = sender.transport.send(outgoing).await {
                sender.pending.deliver(&id, Err(error));
            }
        });
        Ok((connection, pending, Some(sending.abort_handle())))
    }

    /// Sends text as it is. Returns the response to the id in the text, or one without an id.
    pub(in crate::client) async fn send_raw(&self, text: &str) -> Response {
        let connection = self.connection()?;
        let message = serde_json::from_str::<Value>(text).unwrap_or_default();
        let id = message.get("id").cloned().unwrap_or_default();
        let mut with_id = connection.pending.register(&id);
        // A server that cannot read the id responds without one.
        let mut without_id = (!id.is_null()).then(|| connection.pending.register(&Value::Null));
        let outgoing = Outgoing { text: text.to_owned(), ..Outgoing::default() };
        let response = async move {
            let Some(without_id) = &mut without_id else { return with_id.await };
            let response = tokio::select! {
                biased;
                response = &mut with_id => response,
                response = &mut *without_id => response,
            };
            // There is only one response: a further one, with or without the id, is unexpected.
            with_id.withdraw();
            without_id.withdraw();
            response
        };
        let timeout = *lock(&self.timeout);
        let response = self.wait(&connection, "raw text", &id, outgoing, response, timeout).await?;
        let method = message["method"].as_str().unwrap_or("raw text");
        let request = RpcRequest::new(method, message["params"].clone()).id(id);
        self.check(&request, &response).await.map(|()| response)
    }

    async fn wait(
        &self,
        connection: &Connection,
        method: &str,
        id: &Value,
        outgoing: Outgoing,
        pending: impl Future<Output = Response>,
        timeout: Duration,
    ) -> Response {
        let response = async {
            connection.transport.send(outgoing).await?;
            pending.await
        };
        match tokio::time::timeout(timeout, response).await {
            Ok(response) => response,
            Err(_) => {
                // "The `initialize` request MUST NOT be cancelled by clients" (2025-11-25, cancellation).
                if method != "initialize" {
                    connection.cancel(id).await;
                }
                let hint = self.recorder.hint();
                Err(ClientError::TimedOut { method: method.to_owned(), after: timeout, hint })
            }
        }
    }
}

/// The response to a request.
struct Answer {
    response: Response,
    /// It is not the server's.
    mocked: bool,
    /// The error if its shape is wrong.
    checked: Result<(), ClientError>,
}

/// A request without a response yet. If the test drops it, the trace says so.
struct Unfinished<'a> {
    engine: &'a Engine,
    request: Option<RpcRequest>,
    timer: Timer,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            let reason = format!("the test waited no longer{}", self.engine.recorder.hint());
            self.engine.trace.push(self.timer.abandoned(request, reason));
        }
    }
}
