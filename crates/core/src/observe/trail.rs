//! The calls of an execution, noted while it runs. None begins once it is over, so that none is missing in what observers are told.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rmcp::model::{CallToolResponse, JsonObject};

use super::{CallRecord, Ending, HttpExchange, MOST_CALLS, MOST_EXCHANGES, NetworkTransport, ending::ended};
use crate::{TraceContext, names::clipped};

/// Calls of an execution under way. The gateway puts it on the request's extensions.
#[derive(Debug, Clone)]
pub struct Trail(Arc<TrailInner>);

#[derive(Debug)]
struct TrailInner {
    began: Instant,
    trace: Option<TraceContext>,
    calls: Mutex<Calls>,
    exchanges: Mutex<Vec<HttpExchange>>,
}

/// Calls in the order in which they began.
#[derive(Debug, Default)]
struct Calls {
    /// Those that have not ended yet count as cancelled.
    kept: Vec<CallRecord>,
    more: usize,
    is_over: bool,
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

    /// The calls so far, and the number of those left out. No other begins.
    pub(super) fn end(&self) -> (Vec<CallRecord>, usize) {
        let now = self.elapsed();
        let mut calls = self.calls();
        calls.is_over = true;
        let (mut kept, more) = (std::mem::take(&mut calls.kept), calls.more);
        drop(calls);
        for open in kept.iter_mut().filter(|call| call.duration == OPEN) {
            open.duration = now.saturating_sub(open.start);
        }
        (kept, more)
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Notes a call that was made before.
    pub(super) fn note_earlier(&self, tool: &str, status: String) {
        let app = tool.split_once(':').map_or("", |(app, _)| app);
        self.note_ended(tool, app, status);
    }

    /// Notes a call that was refused before an app was asked, with the code of the refusal: of a tool that does not exist, or that its caller may not
    /// call. Of a name, at most 256 bytes are kept.
    pub fn refused(&self, tool: &str, code: impl Into<String>) {
        self.note_ended(clipped(tool), "", code.into());
    }

    fn note_ended(&self, tool: &str, app: &str, status: String) {
        if let Some(mut note) = self.begin(tool.into(), app.into(), None) {
            note.ended = Some((Ending::new(status), None));
        }
    }

    /// Begins to note a call; `None` if the execution is over, and nobody would learn of it.
    pub(crate) fn begin(
        &self,
        tool: Arc<str>,
        app: Arc<str>,
        transport: Option<NetworkTransport>,
    ) -> Option<CallNote> {
        let span = self.0.trace.as_ref().map(TraceContext::child);
        let start = self.elapsed();
        let mut calls = self.calls();
        if calls.is_over {
            return None;
        }
        let place = calls.kept.len();
        if place < MOST_CALLS {
            calls.kept.push(CallRecord {
                tool,
                app,
                start,
                duration: OPEN,
                ending: Ending::CANCELLED,
                bytes: None,
                span_id: span.as_ref().map(|span| span.span_id),
                transport,
            });
        } else {
            calls.more += 1;
        }
        drop(calls);
        Some(CallNote { trail: self.clone(), place, start, span, ended: None })
    }
}

/// Stands for the duration of a call that has not ended.
const OPEN: Duration = Duration::MAX;

/// A call being noted; one that is dropped before it ended was cancelled.
pub(crate) struct CallNote {
    trail: Trail,
    /// Its place among the calls.
    place: usize,
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
        if let Some(call) = self.trail.calls().kept.get_mut(self.place) {
            (call.duration, call.ending, call.bytes) = (duration, ending, bytes);
        }
    }
}
