//! The calls of an execution, noted while it runs.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rmcp::model::{CallToolResponse, JsonObject};

use super::{CallRecord, Ending, HttpExchange, MOST_CALLS, MOST_EXCHANGES, NetworkTransport, ending::ended};
use crate::TraceContext;

/// Calls of an execution under way. The gateway puts it on the request's extensions.
#[derive(Debug, Clone)]
pub struct Trail(Arc<TrailInner>);

#[derive(Debug)]
struct TrailInner {
    began: Instant,
    trace: Option<TraceContext>,
    calls: Mutex<(Vec<CallRecord>, usize)>,
    exchanges: Mutex<Vec<HttpExchange>>,
}

impl Trail {
    pub(super) fn new(trace: Option<TraceContext>) -> Self {
        Self(Arc::new(TrailInner {
            began: Instant::now(),
            trace,
            calls: Mutex::default(),
            exchanges: Mutex::default(),
        }))
    }

    /// Time since the beginning.
    pub(super) fn elapsed(&self) -> Duration {
        self.0.began.elapsed()
    }

    /// The calls that ended so far, and the number of those left out.
    pub(super) fn take(&self) -> (Vec<CallRecord>, usize) {
        std::mem::take(&mut *self.0.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The HTTP requests that ended so far.
    pub(super) fn take_exchanges(&self) -> Vec<HttpExchange> {
        std::mem::take(&mut *self.0.exchanges.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns `true` when traces are wanted.
    pub(super) fn is_traced(&self) -> bool {
        self.0.trace.is_some()
    }

    /// Notes an HTTP request, unless there are too many.
    pub(super) fn note(&self, exchange: HttpExchange) {
        let mut exchanges = self.0.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        if exchanges.len() < MOST_EXCHANGES {
            exchanges.push(exchange);
        }
    }

    /// Begins to note a call.
    pub(crate) fn begin(
        &self,
        tool: Arc<str>,
        app: Arc<str>,
        transport: Option<NetworkTransport>,
    ) -> CallNote {
        let span = self.0.trace.as_ref().map(TraceContext::child);
        let start = self.elapsed();
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
        if let Some(span) = &self.span {
            span.tell(meta);
        }
    }

    pub(crate) fn end(mut self, answer: &Result<CallToolResponse, crate::InvokeError>) {
        self.ended = Some(ended(answer));
    }
}

impl Drop for CallNote {
    fn drop(&mut self) {
        let (ending, bytes) = self.ended.take().unwrap_or((Ending::CANCELLED, None));
        let duration = self.trail.elapsed().saturating_sub(self.start);
        let mut noted = self.trail.0.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.0.len() == MOST_CALLS {
            noted.1 += 1;
            return;
        }
        noted.0.push(CallRecord {
            tool: self.tool.clone(),
            app: self.app.clone(),
            start: self.start,
            duration,
            ending,
            bytes,
            span_id: self.span.as_ref().map(|span| span.span_id),
            transport: self.transport,
        });
    }
}
