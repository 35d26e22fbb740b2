//! A place in a distributed trace (W3C Trace Context, level 1).

use std::{cell::RefCell, sync::Arc};

use data_encoding::HEXLOWER;
use rmcp::model::JsonObject;

pub(crate) const TRACEPARENT: &str = "traceparent";
pub(crate) const TRACESTATE: &str = "tracestate";

/// Longest `tracestate` that is passed on (§3.3.1.5 asks for 512 characters at least).
const MOST_STATE: usize = 512;

/// Ids of a span and of the one above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: [u8; 16],
    /// This span.
    pub span_id: [u8; 8],
    /// The span above, when there is one.
    pub parent_id: Option<[u8; 8]>,
    /// `true` if the trace is recorded: as the caller says, or as decided where the trace begins.
    pub sampled: bool,
    /// `tracestate` of the caller, which goes on unchanged.
    pub state: Option<Arc<str>>,
    /// The span of the HTTP request, when the message itself names another one as its parent.
    pub link: Option<([u8; 16], [u8; 8])>,
}

/// The trace that a request names.
#[derive(Debug, Clone, Copy, Default)]
pub struct Incoming<'a> {
    /// `traceparent` and `tracestate` of the message's `_meta` (SEP-414).
    pub message: (Option<&'a str>, Option<&'a str>),
    /// Those of the HTTP request.
    pub http: (Option<&'a str>, Option<&'a str>),
}

impl TraceContext {
    /// A span below the one a `traceparent` names; the first of a new trace without one, or with one that cannot be read.
    pub fn below(traceparent: Option<&str>) -> Self {
        let above = traceparent.and_then(Self::parse);
        let span_id = random();
        match above {
            Some((trace_id, parent, sampled)) => {
                Self { trace_id, span_id, parent_id: Some(parent), sampled, state: None, link: None }
            }
            None => {
                Self { trace_id: random(), span_id, parent_id: None, sampled: true, state: None, link: None }
            }
        }
    }

    /// A span below the one that a request names: its message first, then its HTTP headers. When both name one, the latter is
    /// linked (OpenTelemetry conventions for MCP, context propagation).
    pub fn of(incoming: Incoming<'_>) -> Self {
        let (message, http) =
            (incoming.message.0.and_then(Self::parse), incoming.http.0.and_then(Self::parse));
        let (parent, state) = match (message, http) {
            (Some(_), _) => incoming.message,
            (None, Some(_)) => incoming.http,
            (None, None) => (None, None),
        };
        let mut span = Self::below(parent);
        span.state = state.filter(|text| !text.is_empty() && text.len() <= MOST_STATE).map(Arc::from);
        span.link = message.and(http).map(|(trace, span, _)| (trace, span));
        span
    }

    /// A span below this one.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            trace_id: self.trace_id,
            span_id: random(),
            parent_id: Some(self.span_id),
            sampled: self.sampled,
            state: self.state.clone(),
            link: None,
        }
    }

    /// The trace's id as it is written: 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        HEXLOWER.encode(&self.trace_id)
    }

    /// `traceparent` for whoever is called from here.
    pub(crate) fn to_header(&self) -> String {
        let mut text = String::with_capacity(55);
        text.push_str("00-");
        HEXLOWER.encode_append(&self.trace_id, &mut text);
        text.push('-');
        HEXLOWER.encode_append(&self.span_id, &mut text);
        text.push_str(if self.sampled { "-01" } else { "-00" });
        text
    }

    /// Puts this span's place into the `_meta` of a message to another server, instead of what is there (SEP-414).
    pub(crate) fn tell(&self, meta: &mut JsonObject) {
        meta.insert(TRACEPARENT.to_owned(), self.to_header().into());
        match &self.state {
            Some(state) => meta.insert(TRACESTATE.to_owned(), (&**state).into()),
            None => meta.shift_remove(TRACESTATE),
        };
    }

    fn parse(text: &str) -> Option<([u8; 16], [u8; 8], bool)> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        // Later versions may add parts (§3.2.4); this one has none.
        if version == "ff" || version.len() != 2 || (version == "00" && parts.next().is_some()) {
            return None;
        }
        let (trace, span) = (unhex::<16>(trace)?, unhex::<8>(span)?);
        let [flags] = unhex::<1>(flags)?;
        (trace != [0; 16] && span != [0; 8]).then_some((trace, span, flags & 1 == 1))
    }
}

/// Random bytes not handed out yet. They are fetched many at a time: a system call for each id costs more than the rest of a span.
struct Pool {
    bytes: [u8; 512],
    used: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; 512], used: 512 }) };
}

fn random<const N: usize>() -> [u8; N] {
    let mut id = [0; N];
    let is_full = POOL.with_borrow_mut(|pool| {
        if pool.used + N > pool.bytes.len() {
            getrandom::fill(&mut pool.bytes).ok()?;
            pool.used = 0;
        }
        id.copy_from_slice(&pool.bytes[pool.used..pool.used + N]);
        pool.used += N;
        Some(())
    });
    // Without randomness the id is not unique; that costs a trace its shape and nothing else.
    if is_full.is_none() {
        id[N - 1] = 1;
    }
    id
}

/// The bytes that lower-case hexadecimal digits stand for.
fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_whole = text.len() == 2 * N;
    is_whole.then(|| HEXLOWER.decode(text.as_bytes()).ok())??.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOVE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_span_stays_in_the_trace_of_the_one_above() {
        let span = TraceContext::below(Some(ABOVE));
        assert_eq!(HEXLOWER.encode(&span.trace_id), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(span.parent_id.map(|id| HEXLOWER.encode(&id)).as_deref(), Some("00f067aa0ba902b7"));
        let child = span.child();
        assert_eq!((child.trace_id, child.parent_id), (span.trace_id, Some(span.span_id)));
        assert_eq!(
            child.to_header(),
            format!("00-{}-{}-01", HEXLOWER.encode(&span.trace_id), HEXLOWER.encode(&child.span_id))
        );
    }

    #[test]
    fn the_message_comes_before_the_http_request_which_is_linked() {
        let other = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-00";
        let (message, http) = ((Some(ABOVE), Some("a=1")), (Some(other), Some("b=2")));
        let both = TraceContext::of(Incoming { message, http });
        assert_eq!(HEXLOWER.encode(&both.trace_id), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!((both.state.as_deref(), both.link), (Some("a=1"), Some(([0xaa; 16], [0xbb; 8]))));
        let one = TraceContext::of(Incoming { http, ..Incoming::default() });
        assert_eq!((one.trace_id, one.sampled, one.link), ([0xaa; 16], false, None));
        assert_eq!(one.child().state.as_deref(), Some("b=2"));
        // A state without a parent that can be read says nothing (§3.3.1.1).
        let bad = TraceContext::of(Incoming { message: (Some("x"), Some("a=1")), ..Incoming::default() });
        assert_eq!((bad.parent_id, bad.state), (None, None));
    }

    #[test]
    fn what_cannot_be_read_starts_a_new_trace() {
        for bad in [
            "",
            "00",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::below(Some(bad)).parent_id, None, "{bad}");
        }
        assert!(
            TraceContext::below(Some("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-x"))
                .parent_id
                .is_some()
        );
    }
}
