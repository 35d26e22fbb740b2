//! What happened, for whoever watches: metrics, audit, traces, a console.
//!
//! An [`Execution`] is one `tools/call` of a client: a meta-tool with all the calls that came of it, or a tool called directly.
//! Calls are noted by the [`Invoker`](crate::Invoker) on the [`Trail`] that the gateway puts on the request.

use std::{
    borrow::Cow,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResponse, CallToolResult, JsonObject},
    service::RequestContext,
};
use sha2::{Digest as _, Sha256};

use crate::{Principal, TraceContext, trace::Incoming};

/// Calls kept of one execution; more are only counted.
pub const MOST_CALLS: usize = 1_000;

/// Watches. Called once an execution is over, on the request's task: it must not block.
pub trait Observer: Send + Sync + 'static {
    /// An execution is over, whether it did what was asked, failed, or was given up by its client.
    fn finished(&self, execution: &Execution);

    /// Whether [`Execution::arguments`] are to be kept: they are copied then.
    fn wants_arguments(&self) -> bool {
        false
    }

    /// Whether executions are to be given trace and span ids, and upstream calls a `traceparent`.
    fn wants_traces(&self) -> bool {
        false
    }

    /// Whether a trace that begins here is recorded. Asked of those who want traces; what is not recorded tells the servers it
    /// calls so (`traceparent` with flags `00`).
    fn records(&self, _trace_id: &[u8; 16]) -> bool {
        true
    }
}

/// The address a request came from. The HTTP server puts it on each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallerAddress(pub IpAddr);

impl CallerAddress {
    /// Where a request came from, over HTTP.
    pub fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        context.extensions.get::<http::request::Parts>()?.extensions.get().copied()
    }
}

/// How something ended: `ok`, a status of the contract such as `tool_error`, or a code such as `RATE_LIMIT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    status: Cow<'static, str>,
    shape: Shape,
}

/// How an answer says that something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// No answer, or one that is no failure.
    Own,
    /// A result with `isError`.
    Result,
    /// A JSON-RPC error with this code.
    Rpc(i32),
}

impl Ending {
    /// It did what was asked.
    pub const OK: Self = Self { status: Cow::Borrowed("ok"), shape: Shape::Own };
    /// Its client gave up.
    pub const CANCELLED: Self = Self { status: Cow::Borrowed(crate::codes::CANCELLED), shape: Shape::Own };

    /// Ended with this status or code.
    pub fn new(status: impl Into<Cow<'static, str>>) -> Self {
        Self { status: status.into(), shape: Shape::Own }
    }

    fn shaped(status: Cow<'static, str>, shape: Shape) -> Self {
        Self { status, shape }
    }

    /// `error.type` of the OpenTelemetry conventions for MCP: the code of a JSON-RPC error, `tool_error` for a result with
    /// `isError`, else the contract's code. None for what went well.
    pub fn error_type(&self) -> Option<Cow<'_, str>> {
        match self.shape {
            _ if self.is_ok() => None,
            Shape::Own => Some(Cow::Borrowed(&self.status)),
            Shape::Result => Some(Cow::Borrowed("tool_error")),
            Shape::Rpc(code) => Some(Cow::Owned(code.to_string())),
        }
    }

    /// The code of a JSON-RPC error, when it ended with one.
    pub fn rpc_code(&self) -> Option<i32> {
        match self.shape {
            Shape::Rpc(code) => Some(code),
            Shape::Own | Shape::Result => None,
        }
    }

    /// Whether it did what was asked; a question to the user and a task that was started count as such.
    pub fn is_ok(&self) -> bool {
        matches!(&*self.status, "ok" | "input_required" | "task")
    }

    /// The status or code.
    pub fn status(&self) -> &str {
        &self.status
    }

    fn of_result(result: &CallToolResult) -> Self {
        if result.is_error != Some(true) {
            return Self::OK;
        }
        let text = |pointer: &str| result.structured_content.as_ref()?.pointer(pointer)?.as_str();
        let status = text("/status").or_else(|| text("/code")).or_else(|| text("/error/code"));
        let status =
            status.map_or(Cow::Borrowed(crate::codes::TOOL_EXECUTION_ERROR), |s| s.to_owned().into());
        Self::shaped(status, Shape::Result)
    }

    pub(crate) fn of(answer: &Result<CallToolResponse, ErrorData>) -> Self {
        match answer {
            Ok(CallToolResponse::Complete(result)) => Self::of_result(result),
            Ok(CallToolResponse::InputRequired(_)) => Self::new("input_required"),
            Ok(CallToolResponse::Task(_)) => Self::new("task"),
            Ok(_) => Self::OK,
            Err(error) => {
                let code = error.data.as_ref().and_then(|data| data["code"].as_str().map(str::to_owned));
                let status = code.map_or(Cow::Borrowed("PROTOCOL_ERROR"), Cow::Owned);
                Self::shaped(status, Shape::Rpc(error.code.0))
            }
        }
    }
}

/// Bytes of text in an answer.
pub(crate) fn text_bytes(response: &CallToolResponse) -> Option<u64> {
    let CallToolResponse::Complete(result) = response else { return None };
    let texts = result.content.iter().filter_map(|block| block.as_text());
    Some(texts.map(|text| text.text.len() as u64).sum())
}

/// One call of an app's tool.
#[derive(Debug, Clone)]
pub struct CallRecord {
    /// Public name of the tool, in the colon form.
    pub tool: Arc<str>,
    /// The app it belongs to.
    pub app: Arc<str>,
    /// When it started, from the start of the execution.
    pub start: Duration,
    /// How long it took.
    pub duration: Duration,
    /// How it ended.
    pub ending: Ending,
    /// Bytes of text in its answer, when there was one.
    pub bytes: Option<u64>,
    /// Its span, when traces are wanted.
    pub span_id: Option<[u8; 8]>,
    /// How the app is reached, when it is in another process.
    pub transport: Option<NetworkTransport>,
}

/// How a peer is reached (`network.transport` of OpenTelemetry).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkTransport {
    /// HTTP.
    Tcp,
    /// Standard input and output of a process.
    Pipe,
}

/// How a request came: what its span says of it. Gathered when traces are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Its JSON-RPC id.
    pub request_id: Option<Box<str>>,
    /// The session it belongs to, in the older protocol era.
    pub session_id: Option<Box<str>>,
    /// The revision of MCP it is written in.
    pub protocol_version: Option<Box<str>>,
    /// The transport; none for what was asked from inside the process.
    pub transport: Option<NetworkTransport>,
    /// Version of HTTP, such as `1.1`.
    pub http_version: Option<&'static str>,
}

impl Arrival {
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        let parts = context.extensions.get::<http::request::Parts>();
        let session = parts.and_then(|parts| parts.headers.get("mcp-session-id")?.to_str().ok());
        Self {
            request_id: Some(context.id.to_string().into()),
            session_id: session.map(Box::from),
            protocol_version: context.protocol_version().map(|version| version.as_str().into()),
            transport: Some(if parts.is_some() { NetworkTransport::Tcp } else { NetworkTransport::Pipe }),
            http_version: parts.map(|parts| match parts.version {
                http::Version::HTTP_10 => "1.0",
                http::Version::HTTP_2 => "2",
                _ => "1.1",
            }),
        }
    }
}

/// What a script was, without its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptFacts {
    /// SHA-256 of its text.
    pub sha256: [u8; 32],
    /// Its length in bytes.
    pub bytes: usize,
}

/// One `tools/call` of a client.
#[derive(Debug, Clone)]
pub struct Execution {
    /// Unique within the process, from 1.
    pub id: u64,
    /// What was called, in the colon form: a meta-tool or a tool. As the client wrote it when there is no such tool.
    pub tool: Arc<str>,
    /// Whether it is a plugin's own tool, such as `codecall:execute`.
    pub is_meta: bool,
    /// Whether there is such a tool.
    pub is_known: bool,
    /// Who called.
    pub principal: Principal,
    /// Where from, over HTTP.
    pub address: Option<IpAddr>,
    /// When it started.
    pub started: SystemTime,
    /// How long it took.
    pub duration: Duration,
    /// How it ended.
    pub ending: Ending,
    /// Bytes of text in the answer, when there was one.
    pub bytes: Option<u64>,
    /// The script, for `codecall:execute`.
    pub script: Option<ScriptFacts>,
    /// What was passed, when an observer wants it.
    pub arguments: Option<JsonObject>,
    /// The calls of apps' tools in the order they ended, at most [`MOST_CALLS`].
    pub calls: Vec<CallRecord>,
    /// Calls that were left out.
    pub more_calls: usize,
    /// Its place in a trace, when traces are wanted.
    pub trace: Option<TraceContext>,
    /// How it came, when traces are wanted.
    pub arrival: Arrival,
}

/// What is noted while an execution runs. The gateway puts it on the request's extensions.
#[derive(Debug, Clone)]
pub struct Trail(Arc<TrailInner>);

#[derive(Debug)]
struct TrailInner {
    began: Instant,
    trace: Option<TraceContext>,
    calls: Mutex<(Vec<CallRecord>, usize)>,
}

impl Trail {
    fn new(trace: Option<TraceContext>) -> Self {
        Self(Arc::new(TrailInner { began: Instant::now(), trace, calls: Mutex::default() }))
    }

    /// Begins to note a call.
    pub(crate) fn begin(
        &self,
        tool: Arc<str>,
        app: Arc<str>,
        transport: Option<NetworkTransport>,
    ) -> CallNote {
        let span = self.0.trace.as_ref().map(TraceContext::child);
        let start = self.0.began.elapsed();
        CallNote { trail: self.clone(), tool, app, transport, start, span, ended: None }
    }
}

/// A call being noted; one that is dropped before it ended was cancelled.
pub(crate) struct CallNote {
    trail: Trail,
    tool: Arc<str>,
    app: Arc<str>,
    transport: Option<NetworkTransport>,
    start: Duration,
    span: Option<TraceContext>,
    ended: Option<(Ending, Option<u64>)>,
}

impl CallNote {
    /// Tells the called server of the trace. What the client wrote there is for this server.
    pub(crate) fn tell(&self, meta: &mut JsonObject) {
        let Some(span) = &self.span else { return };
        meta.insert("traceparent".to_owned(), span.to_header().into());
        match &span.state {
            Some(state) => meta.insert("tracestate".to_owned(), (&**state).into()),
            None => meta.remove("tracestate"),
        };
    }

    pub(crate) fn end(mut self, answer: &Result<CallToolResponse, crate::InvokeError>) {
        self.ended = Some(ended(answer));
    }
}

/// How a call ended, and the bytes of text in its answer.
fn ended(answer: &Result<CallToolResponse, crate::InvokeError>) -> (Ending, Option<u64>) {
    match answer {
        Ok(CallToolResponse::Complete(result)) => {
            (Ending::of_result(result), answer.as_ref().ok().and_then(text_bytes))
        }
        Ok(CallToolResponse::InputRequired(_)) => (Ending::new("input_required"), None),
        Ok(CallToolResponse::Task(_)) => (Ending::new("task"), None),
        Ok(_) => (Ending::OK, None),
        Err(crate::InvokeError::App { error, .. }) => {
            let status = Cow::Borrowed(crate::codes::TOOL_EXECUTION_ERROR);
            (Ending::shaped(status, Shape::Rpc(error.code.0)), None)
        }
        Err(error) => (Ending::new(error.code()), None),
    }
}

impl Drop for CallNote {
    fn drop(&mut self) {
        let (ending, bytes) = self.ended.take().unwrap_or((Ending::CANCELLED, None));
        let mut noted = self.trail.0.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.0.len() == MOST_CALLS {
            noted.1 += 1;
            return;
        }
        noted.0.push(CallRecord {
            tool: self.tool.clone(),
            app: self.app.clone(),
            start: self.start,
            duration: self.trail.0.began.elapsed().saturating_sub(self.start),
            ending,
            bytes,
            span_id: self.span.as_ref().map(|span| span.span_id),
            transport: self.transport,
        });
    }
}

/// An execution under way. Dropped before its end, it is told as cancelled.
pub(crate) struct Watch {
    observers: Arc<[Arc<dyn Observer>]>,
    trail: Trail,
    execution: Option<Execution>,
}

/// What is known of an execution when it starts.
pub(crate) struct Begun<'a> {
    pub(crate) tool: Arc<str>,
    pub(crate) is_meta: bool,
    pub(crate) is_known: bool,
    pub(crate) principal: &'a Principal,
    pub(crate) address: Option<IpAddr>,
    pub(crate) arguments: Option<&'a JsonObject>,
    /// The client's own place in a trace.
    pub(crate) trace: Incoming<'a>,
    /// The request, when a client sent it.
    pub(crate) request: Option<&'a RequestContext<RoleServer>>,
}

impl Watch {
    pub(crate) fn begin(observers: &Arc<[Arc<dyn Observer>]>, begun: Begun<'_>) -> Option<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        if observers.is_empty() {
            return None;
        }
        let script = begun.arguments.filter(|_| begun.is_meta).and_then(|all| all.get("script")?.as_str());
        let traced = observers.iter().any(|one| one.wants_traces());
        let mut trace = traced.then(|| TraceContext::of(begun.trace));
        if let Some(trace) = trace.as_mut().filter(|trace| trace.parent_id.is_none()) {
            trace.sampled = observers.iter().any(|one| one.wants_traces() && one.records(&trace.trace_id));
        }
        let kept = observers.iter().any(|one| one.wants_arguments());
        let execution = Execution {
            id: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            tool: begun.tool,
            is_meta: begun.is_meta,
            is_known: begun.is_known,
            principal: begun.principal.clone(),
            address: begun.address,
            started: SystemTime::now(),
            duration: Duration::ZERO,
            ending: Ending::CANCELLED,
            bytes: None,
            script: script.map(|text| ScriptFacts { sha256: Sha256::digest(text).into(), bytes: text.len() }),
            arguments: begun.arguments.filter(|_| kept).cloned(),
            calls: Vec::new(),
            more_calls: 0,
            trace: trace.clone(),
            arrival: begun.request.filter(|_| traced).map(Arrival::of).unwrap_or_default(),
        };
        Some(Self { observers: observers.clone(), trail: Trail::new(trace), execution: Some(execution) })
    }

    pub(crate) fn trail(&self) -> Trail {
        self.trail.clone()
    }

    /// As [`Watch::end`], for a call that no client asked for.
    pub(crate) fn end_invoked(mut self, answer: &Result<CallToolResponse, crate::InvokeError>) {
        if let Some(execution) = &mut self.execution {
            (execution.ending, execution.bytes) = ended(answer);
        }
    }

    pub(crate) fn end(mut self, answer: &Result<CallToolResponse, ErrorData>) {
        if let Some(execution) = &mut self.execution {
            execution.ending = Ending::of(answer);
            execution.bytes = answer.as_ref().ok().and_then(text_bytes);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(mut execution) = self.execution.take() else { return };
        execution.duration = self.trail.0.began.elapsed();
        let mut noted = self.trail.0.calls.lock().unwrap_or_else(PoisonError::into_inner);
        (execution.calls, execution.more_calls) = std::mem::take(&mut *noted);
        drop(noted);
        for observer in self.observers.iter() {
            observer.finished(&execution);
        }
    }
}
