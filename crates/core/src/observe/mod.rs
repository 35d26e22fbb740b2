//! Records of calls and requests for observers: metrics, audit, traces, a console.
//!
//! An [`Execution`] is one `tools/call` of a client: a meta-tool with all the calls that came of it, or a tool called directly; an
//! [`Operation`] is a request of any other method. Calls are noted by the [`Invoker`](crate::Invoker) on the [`Trail`] that the gateway puts on the request.

mod arrival;
mod ending;
mod exchange;
mod operation;
mod trail;
mod watch;

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rmcp::model::JsonObject;

pub use arrival::{Arrival, CallerAddress, NetworkTransport};
pub use ending::Ending;
pub use exchange::{ExchangeNote, HttpExchange, HttpTrail};
pub(crate) use operation::OperationWatch;
pub use operation::{Operation, Subject};
pub use trail::Trail;
pub(crate) use watch::{Begun, ExecutionWatch};
pub use watch::{PlanFacts, PlanWatch};

use crate::{Principal, TraceContext};

/// Calls kept of one execution; more are only counted.
pub const MOST_CALLS: usize = 1_000;
/// HTTP requests kept of one execution.
const MOST_EXCHANGES: usize = 1_000;

/// Watches. Called once a request is over, on the request's task and before its answer leaves: it must not block.
pub trait Observer: Send + Sync + 'static {
    /// A `tools/call` is over, whether it did what was asked, failed, or was given up by its client.
    fn finished(&self, execution: &Execution);

    /// A request of another method is over.
    fn operated(&self, _operation: &Operation) {}

    /// Returns `true` to have [`Execution::arguments`] kept: they are copied then. Asked once.
    fn wants_arguments(&self) -> bool {
        false
    }

    /// Returns `true` to give requests trace and span ids, and upstream calls a `traceparent`. Asked once.
    fn wants_traces(&self) -> bool {
        false
    }

    /// Returns `true` to record a trace that begins here. Asked of those who want traces; what is not recorded tells the servers it
    /// calls so (`traceparent` with flags `00`).
    fn records(&self, _trace_id: &[u8; 16]) -> bool {
        true
    }
}

/// Those who watch a gateway, and what they want together.
#[derive(Clone)]
pub(crate) struct Observers {
    all: Arc<[Arc<dyn Observer>]>,
    traces: bool,
    arguments: bool,
}

impl Observers {
    pub(crate) fn new(all: Vec<Arc<dyn Observer>>) -> Self {
        let traces = all.iter().any(|one| one.wants_traces());
        let arguments = all.iter().any(|one| one.wants_arguments());
        Self { all: all.into(), traces, arguments }
    }

    /// Returns `true` without observers.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The place of a request in a trace, when traces are wanted.
    fn place(&self, incoming: impl FnOnce() -> TraceContext) -> Option<TraceContext> {
        let mut trace = self.traces.then(incoming)?;
        if trace.parent_id.is_none() {
            trace.sampled = self.all.iter().any(|one| one.wants_traces() && one.records(&trace.trace_id));
        }
        Some(trace)
    }
}

/// One call of an app's tool.
#[derive(Debug, Clone)]
pub struct CallRecord {
    /// Public name of the tool, in the colon form; of a refused call, the name as the caller wrote it.
    pub tool: Arc<str>,
    /// The app it belongs to; empty for a call that was refused before one was asked, whose name may be made up.
    pub app: Arc<str>,
    /// Start, from the start of the execution.
    pub start: Duration,
    /// Duration.
    pub duration: Duration,
    /// Outcome.
    pub ending: Ending,
    /// Bytes of text in its answer, when there was one.
    pub bytes: Option<u64>,
    /// Its span, when traces are wanted.
    pub span_id: Option<[u8; 8]>,
    /// The transport to the app, when it is in another process.
    pub transport: Option<NetworkTransport>,
}

/// Digest and length of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptFacts {
    /// SHA-256 of its text.
    pub sha256: [u8; 32],
    /// Its length in bytes.
    pub bytes: usize,
}

/// One `tools/call` of a client, or what a plan did that went on without one.
#[derive(Debug, Clone)]
pub struct Execution {
    /// Unique within the process, from 1.
    pub id: u64,
    /// The meta-tool or tool, in the colon form. As the client wrote it, up to 256 bytes, when there is no such tool.
    pub tool: Arc<str>,
    /// `true` for a plugin's own tool, such as `codecall:execute`.
    pub is_meta: bool,
    /// `true` if there is such a tool.
    pub is_known: bool,
    /// The caller's principal.
    pub principal: Principal,
    /// The caller's address, over HTTP.
    pub address: Option<IpAddr>,
    /// The id of a plan that went on without a client, until it ended or waited.
    pub plan: Option<Arc<str>>,
    /// Start time.
    pub started: SystemTime,
    /// Duration.
    pub duration: Duration,
    /// Outcome.
    pub ending: Ending,
    /// Bytes of text in the answer, when there was one.
    pub bytes: Option<u64>,
    /// The script, for `codecall:execute`.
    pub script: Option<ScriptFacts>,
    /// The arguments, when an observer wants them.
    pub arguments: Option<JsonObject>,
    /// The calls of apps' tools in the order they began, at most [`MOST_CALLS`]. Those that were open at its end count as cancelled.
    pub calls: Vec<CallRecord>,
    /// Calls that were left out.
    pub more_calls: usize,
    /// HTTP requests of the calls in the order they ended, if the trace is recorded: at most 1,000.
    pub exchanges: Vec<HttpExchange>,
    /// Its place in a trace, when traces are wanted.
    pub trace: Option<TraceContext>,
    /// Transport details, if its trace is recorded.
    pub arrival: Arrival,
}
