//! The way of a request: mocks → request interceptors → the wire → response interceptors → trace.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
};

use super::{
    Connector, LogLevel, Logs, Notifications, RequestTrace, Trace,
    connect::Settings,
    greeting,
    handlers::Handlers,
    link::{Answer, Link, UNCLAIMED, Waiting, pump},
};
use crate::{
    ClientError,
    intercept::{Decided, Interceptors},
    lock,
    mock::{Mocks, RpcRequest},
    records::RpcResponse,
    shorten,
    wire::{Outgoing, http::STATELESS},
};

/// What is known of the server.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) server_info: Value,
    pub(super) version: String,
    pub(super) capabilities: Value,
    pub(super) instructions: Option<String>,
}

enum State {
    Open(Arc<Link>),
    Shut(ClientError),
}

pub(super) struct Core {
    pub(super) settings: Settings,
    connector: Connector,
    token: Mutex<Option<String>>,
    state: Mutex<State>,
    pub(super) facts: Mutex<Facts>,
    pub(super) handlers: Mutex<Handlers>,
    pub(super) timeout: Mutex<Duration>,
    pub(super) logs: Logs,
    pub(super) trace: Trace,
    pub(super) notifications: Notifications,
    pub(super) mocks: Mocks,
    pub(super) interceptors: Interceptors,
    /// Input schemas seen, for `Mcp-Param-*`.
    schemas: Mutex<HashMap<String, Value>>,
    next_id: AtomicU64,
    /// What the server asked.
    pub(super) questions: Mutex<Vec<RpcRequest>>,
    /// What came and was no JSON.
    pub(super) garbage: Mutex<Vec<String>>,
}

impl Core {
    pub(super) fn new(settings: Settings, connector: Connector, token: Option<String>) -> Arc<Self> {
        let not_yet = ClientError::Closed("not connected yet".into());
        Arc::new(Self {
            timeout: Mutex::new(settings.timeout),
            settings,
            connector,
            token: Mutex::new(token),
            state: Mutex::new(State::Shut(not_yet)),
            facts: Mutex::default(),
            handlers: Mutex::default(),
            logs: Logs::default(),
            trace: Trace::default(),
            notifications: Notifications::default(),
            mocks: Mocks::default(),
            interceptors: Interceptors::default(),
            schemas: Mutex::default(),
            next_id: AtomicU64::new(1),
            questions: Mutex::default(),
            garbage: Mutex::default(),
        })
    }

    pub(super) fn stateless(&self) -> bool {
        self.settings.version.as_str() >= STATELESS
    }

    fn link(&self) -> Result<Arc<Link>, ClientError> {
        let link = match &*lock(&self.state) {
            State::Open(link) => link.clone(),
            State::Shut(why) => return Err(why.clone()),
        };
        let closed = lock(&link.waiting.closed).clone();
        closed.map_or(Ok(link), |why| Err(ClientError::Closed(why)))
    }

    pub(super) fn is_connected(&self) -> bool {
        self.link().is_ok()
    }

    pub(super) fn session_id(&self) -> Option<String> {
        self.link().ok()?.wire.session_id()
    }

    /// Connects and shakes hands.
    pub(super) async fn connect(self: &Arc<Self>) -> Result<(), ClientError> {
        let connected = self.open().await;
        if let Err(error) = &connected {
            *lock(&self.state) = State::Shut(error.clone());
        }
        connected
    }

    async fn open(self: &Arc<Self>) -> Result<(), ClientError> {
        let (inbox, incoming) = mpsc::unbounded_channel();
        let token = lock(&self.token).clone();
        let wire = (self.connector)(inbox, token).await?;
        let waiting = Arc::new(Waiting::default());
        let pump = tokio::spawn(pump(Arc::downgrade(self), incoming, wire.clone(), waiting.clone()));
        let link = Arc::new(Link { wire, waiting, pump });
        self.greet(&link).await?;
        *lock(&self.state) = State::Open(link);
        Ok(())
    }

    /// `initialize` in the older era, `server/discover` in the newer one.
    async fn greet(&self, link: &Link) -> Result<(), ClientError> {
        let version = &self.settings.version;
        let (method, params) = if self.stateless() {
            link.wire.agreed(version).await;
            ("server/discover", json!({}))
        } else {
            let Settings { capabilities, client_info, .. } = &self.settings;
            let hello =
                json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client_info});
            ("initialize", hello)
        };
        let answer = self.greeted(link, &self.numbered(method, params)).await?;
        let result = result_of(method, answer)?;
        if !self.stateless() {
            greeting::check(version, &result)?;
        }
        let info = match result.get("serverInfo") {
            Some(info) => info.clone(),
            None => result["_meta"]["io.modelcontextprotocol/serverInfo"].clone(),
        };
        let agreed = match self.stateless() {
            true => version.clone(),
            false => result["protocolVersion"].as_str().unwrap_or(version).to_owned(),
        };
        *lock(&self.facts) = Facts {
            server_info: info,
            version: agreed.clone(),
            capabilities: result["capabilities"].clone(),
            instructions: result["instructions"].as_str().map(str::to_owned),
        };
        if !self.stateless() {
            let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            link.wire.agreed(&agreed).await;
            link.wire.send(Outgoing::message(&ready)).await?;
        }
        Ok(())
    }

    /// The answer to the first request of a connection. A server that starts with the connection has the time to start for it.
    async fn greeted(&self, link: &Link, request: &RpcRequest) -> Answer {
        let Some(starting) = &self.settings.starting else { return self.over(link, request, true).await };
        let usual = *lock(&self.timeout);
        let answer = self.over_within(link, request, true, usual.min(starting.timeout)).await;
        answer.map_err(|error| match error {
            ClientError::TimedOut { method, after, hint } => {
                ClientError::TimedOut { method, after, hint: format!("{hint}\n{}", (starting.details)()) }
            }
            other => other,
        })
    }

    pub(super) async fn authenticate(self: &Arc<Self>, token: Option<String>) -> Result<(), ClientError> {
        lock(&self.token).clone_from(&token);
        let Ok(link) = self.link() else { return self.connect().await };
        if !link.wire.set_token(token) {
            return Err(ClientError::NoTokens(self.settings.transport));
        }
        let probe = if self.stateless() { "server/discover" } else { "ping" };
        match self.over(&link, &self.numbered(probe, json!({})), true).await {
            // Sessions belong to whom they were given to: a new caller gets a new one.
            Err(ClientError::SessionGone { .. }) => self.connect().await,
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    }

    pub(super) async fn disconnect(&self) {
        let shut = State::Shut(ClientError::Closed("disconnected by the test".into()));
        let state = std::mem::replace(&mut *lock(&self.state), shut);
        if let State::Open(link) = state {
            link.wire.close().await;
            link.waiting.close("disconnected by the test");
        }
    }

    pub(super) fn numbered(&self, method: &str, params: Value) -> RpcRequest {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        RpcRequest { id: id.into(), method: method.to_owned(), params }
    }

    /// Asks and gives the result; answers what the server needs to know first (2026-07-28, `input_required`).
    pub(super) async fn call(self: &Arc<Self>, method: &str, params: Value) -> Result<Value, ClientError> {
        const MOST_ROUNDS: usize = 10;
        let mut asked = params.clone();
        for _ in 0..MOST_ROUNDS {
            let result = result_of(method, self.exchange(self.numbered(method, asked), true).await?)?;
            if result["resultType"] != "input_required" {
                return Ok(result);
            }
            asked = params.clone();
            let mut answers = serde_json::Map::new();
            for (key, question) in result["inputRequests"].as_object().into_iter().flatten() {
                let handlers = lock(&self.handlers).clone();
                let method = question["method"].as_str().unwrap_or_default();
                let Ok(answer) = handlers.answer(method, question["params"].clone()).await else {
                    return Ok(result);
                };
                answers.insert(key.clone(), answer);
            }
            asked["inputResponses"] = Value::Object(answers);
            if let Some(state) = result.get("requestState") {
                asked["requestState"] = state.clone();
            }
        }
        Err(ClientError::Shape {
            method: method.to_owned(),
            problem: format!("the server asked for input more than {MOST_ROUNDS} times"),
            answer: String::new(),
        })
    }

    /// One request with everything that may happen to it, and one entry in the trace. `dressed`: with what the revision
    /// wants in `_meta` and headers.
    pub(super) async fn exchange(self: &Arc<Self>, request: RpcRequest, dressed: bool) -> Answer {
        let (started, timestamp) = (Instant::now(), SystemTime::now());
        let mut open = Open { core: self, request: Some(request.clone()), started, timestamp };
        let (mocked, answer) = self.answered(&request, dressed).await;
        let ms = || started.elapsed().as_secs_f64() * 1e3;
        let answer = answer.map(|response| self.interceptors.after(&request, response, ms()));
        open.request = None;
        self.trace.push(RequestTrace {
            method: request.method,
            params: request.params,
            response: answer.as_ref().ok().cloned(),
            failure: answer.as_ref().err().map(ToString::to_string),
            mocked,
            duration_ms: ms(),
            timestamp,
        });
        answer
    }

    async fn answered(self: &Arc<Self>, request: &RpcRequest, dressed: bool) -> (bool, Answer) {
        if let Some((response, delay)) = self.mocks.take(request) {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            return (true, Ok(response));
        }
        let request = match self.interceptors.before(request.clone(), self.session_id()).await {
            Decided::Answer(response) => return (true, Ok(response)),
            Decided::Send(request) => request,
        };
        let answer = match self.link() {
            Ok(link) => self.over(&link, &request, dressed).await,
            Err(error) => Err(error),
        };
        match answer {
            // What a client must do when the server lost its session, say by a restart: begin a new one.
            Err(gone @ ClientError::SessionGone { .. }) if request.method != "initialize" => {
                self.logs.own(LogLevel::Info, "the session is gone; a new one is begun".into());
                let again = match self.connect().await {
                    Ok(()) => self.link(),
                    Err(ClientError::Closed(_)) => Err(gone),
                    Err(error) => Err(error),
                };
                match again {
                    Ok(link) => (false, self.over(&link, &request, dressed).await),
                    Err(error) => (false, Err(error)),
                }
            }
            answer => (false, answer),
        }
    }

    /// Sends a request and waits for its answer.
    async fn over(&self, link: &Link, request: &RpcRequest, dressed: bool) -> Answer {
        let after = *lock(&self.timeout);
        self.over_within(link, request, dressed, after).await
    }

    async fn over_within(&self, link: &Link, request: &RpcRequest, dressed: bool, after: Duration) -> Answer {
        let mut message = request.message();
        let mut headers = Vec::new();
        if self.stateless() && dressed {
            self.dress(&mut message);
            if link.wire.is_http() {
                headers = self.mirrored(link, request).await;
            }
        }
        let told = link.waiting.register(&request.id);
        let outgoing = Outgoing { headers, ..Outgoing::message(&message) };
        self.wait(link, &request.method, request.id.clone(), outgoing, told, after).await
    }

    /// Sends a request whose answer may take for ever, past mocks and interceptors.
    pub(super) async fn begin(
        &self,
        request: &RpcRequest,
    ) -> Result<(Arc<Link>, oneshot::Receiver<Answer>), ClientError> {
        let (link, outgoing) = self.prepared(request).await?;
        let told = link.waiting.register(&request.id);
        link.wire.send(outgoing).await?;
        Ok((link, told))
    }

    /// The same in a task: over HTTP a message is sent when the answer begins, which it may never do.
    pub(super) async fn begin_apart(
        &self,
        request: &RpcRequest,
    ) -> Result<(Arc<Link>, oneshot::Receiver<Answer>, AbortHandle), ClientError> {
        let (link, outgoing) = self.prepared(request).await?;
        let told = link.waiting.register(&request.id);
        let (sender, id) = (link.clone(), request.id.clone());
        let sending = tokio::spawn(async move {
            if let Err(error) = sender.wire.send(outgoing).await {
                sender.waiting.settle(&id, Err(error));
            }
        });
        Ok((link, told, sending.abort_handle()))
    }

    async fn prepared(&self, request: &RpcRequest) -> Result<(Arc<Link>, Outgoing), ClientError> {
        let link = self.link()?;
        let mut message = request.message();
        let mut headers = Vec::new();
        if self.stateless() {
            self.dress(&mut message);
            if link.wire.is_http() {
                headers = self.mirrored(&link, request).await;
            }
        }
        let outgoing = Outgoing { headers, ..Outgoing::message(&message) };
        Ok((link, outgoing))
    }

    /// Sends text as it is. The answer is the one to the id in it, or the one without an id.
    pub(super) async fn send_raw(&self, text: &str) -> Answer {
        let link = self.link()?;
        let id = serde_json::from_str::<Value>(text).ok().and_then(|message| message.get("id").cloned());
        let id = id.unwrap_or(Value::Null);
        let told = link.waiting.register(&id);
        // A server that cannot read the id answers without one.
        let unread = (!id.is_null()).then(|| link.waiting.register(&Value::Null));
        let outgoing = Outgoing { text: text.to_owned(), ..Outgoing::default() };
        let told = async move {
            match unread {
                None => told.await,
                Some(unread) => tokio::select! { answer = told => answer, answer = unread => answer },
            }
        };
        let after = *lock(&self.timeout);
        self.wait(&link, "raw text", id, outgoing, told, after).await
    }

    async fn wait(
        &self,
        link: &Link,
        method: &str,
        id: Value,
        outgoing: Outgoing,
        told: impl Future<Output = Result<Answer, oneshot::error::RecvError>>,
        after: Duration,
    ) -> Answer {
        let answer = async {
            link.wire.send(outgoing).await?;
            told.await.unwrap_or_else(|_| Err(ClientError::Closed("the connection ended".into())))
        };
        match tokio::time::timeout(after, answer).await {
            Ok(answer) => {
                lock(&link.waiting.by_id).remove(&id.to_string());
                answer
            }
            Err(_) => {
                lock(&link.waiting.by_id).remove(&id.to_string());
                let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                    "params": {"requestId": id, "reason": "the test waits no longer"}});
                let _ = link.wire.send(Outgoing::message(&cancel)).await;
                let hint = self.hint();
                Err(ClientError::TimedOut { method: method.to_owned(), after, hint })
            }
        }
    }

    fn hint(&self) -> String {
        match lock(&self.garbage).last() {
            Some(text) => format!(
                "; the server wrote text that is no JSON where only messages belong (log to standard error instead): {}",
                shorten(text, 200)
            ),
            None => match self.logs.search(UNCLAIMED).pop() {
                Some(entry) => format!("; the server sent {}", entry.message),
                None => String::new(),
            },
        }
    }

    pub(super) async fn notify(&self, method: &str, params: Value) -> Result<(), ClientError> {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if !params.is_null() {
            message["params"] = params;
        }
        self.link()?.wire.send(Outgoing::message(&message)).await
    }

    /// What every request carries from 2026-07-28.
    pub(super) fn meta(&self) -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": self.settings.version,
            "io.modelcontextprotocol/clientCapabilities": self.settings.capabilities,
            "io.modelcontextprotocol/clientInfo": self.settings.client_info,
        })
    }

    fn dress(&self, message: &mut Value) {
        let Some(message) = message.as_object_mut() else { return };
        let params = message.entry("params").or_insert_with(|| json!({}));
        let Some(params) = params.as_object_mut() else { return };
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        if let (Some(meta), Value::Object(wanted)) = (meta.as_object_mut(), self.meta()) {
            for (key, value) in wanted {
                meta.entry(key).or_insert(value);
            }
        }
    }

    /// Headers that repeat parts of the body: `Mcp-Name`, `Mcp-Param-*`.
    async fn mirrored(&self, link: &Link, request: &RpcRequest) -> Vec<(String, String)> {
        let key = match request.method.as_str() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            _ => return Vec::new(),
        };
        let Some(name) = request.params[key].as_str() else { return Vec::new() };
        let mut headers = vec![("mcp-name".to_owned(), header_value(name))];
        if request.method == "tools/call" {
            let schema = self.schema(link, name).await;
            for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
                let (Some(header), value) =
                    (schema["x-mcp-header"].as_str(), &request.params["arguments"][property])
                else {
                    continue;
                };
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Number(_) | Value::Bool(_) => value.to_string(),
                    _ => continue,
                };
                headers.push((format!("mcp-param-{}", header.to_lowercase()), header_value(&text)));
            }
        }
        headers
    }

    /// A tool's input schema: the last one listed, or asked for now.
    async fn schema(&self, link: &Link, tool: &str) -> Value {
        if lock(&self.schemas).is_empty() {
            let list = self.numbered("tools/list", json!({}));
            if let Ok(answer) = Box::pin(self.over(link, &list, true)).await
                && let Some(result) = answer.result()
            {
                self.learn(result);
            }
        }
        lock(&self.schemas).get(tool).cloned().unwrap_or_default()
    }

    pub(super) fn learn(&self, list: &Value) {
        let mut schemas = lock(&self.schemas);
        for tool in list["tools"].as_array().into_iter().flatten() {
            if let Some(name) = tool["name"].as_str() {
                schemas.insert(name.to_owned(), tool["inputSchema"].clone());
            }
        }
    }
}

/// A request that waits for its answer. When the test gives it up, the trace says so.
struct Open<'a> {
    core: &'a Core,
    request: Option<RpcRequest>,
    started: Instant,
    timestamp: SystemTime,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else { return };
        self.core.trace.push(RequestTrace {
            method: request.method,
            params: request.params,
            response: None,
            failure: Some(format!("the test waited no longer{}", self.core.hint())),
            mocked: false,
            duration_ms: self.started.elapsed().as_secs_f64() * 1e3,
            timestamp: self.timestamp,
        });
    }
}

/// Values that a header cannot hold as they are go as Base64 (2026-07-28, "Standard headers").
fn header_value(text: &str) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && text.trim() == text;
    match plain && !text.starts_with("=?base64?") {
        true => text.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(text)),
    }
}

pub(super) fn result_of(method: &str, answer: RpcResponse) -> Result<Value, ClientError> {
    if let Some(problem) = answer.envelope_problem() {
        return Err(ClientError::Shape {
            method: method.to_owned(),
            problem: problem.to_owned(),
            answer: shorten(&answer.raw.to_string(), 300),
        });
    }
    if let Some(result) = answer.result() {
        return Ok(result.clone());
    }
    Err(match answer.error() {
        Some(error) => ClientError::Rpc { method: method.to_owned(), error },
        None => ClientError::Shape {
            method: method.to_owned(),
            problem: "it has neither `result` nor a whole `error`".into(),
            answer: answer.raw.to_string(),
        },
    })
}
