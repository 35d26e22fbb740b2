//! HTTP requests that an app makes for a call of a tool, as spans below that of the call.

use std::{sync::Arc, time::Duration};

use http::Method;
use rmcp::{RoleServer, service::RequestContext};

use super::{Trail, arrival::of_message};
use crate::{
    TraceContext,
    trace::{Incoming, TRACEPARENT, TRACESTATE},
};

/// An HTTP request that an app made for a call.
#[derive(Debug, Clone)]
pub struct HttpExchange {
    /// The method.
    pub method: Method,
    /// The path template, such as `/users/{id}`.
    pub template: Arc<str>,
    /// Host of the server.
    pub address: Box<str>,
    /// Port of the server.
    pub port: Option<u16>,
    /// Requests that were sent for the same purpose before: retries and redirects.
    pub resends: u32,
    /// Start, from the start of the execution.
    pub start: Duration,
    /// Duration until the headers of the response.
    pub duration: Duration,
    /// Status of the response, when there was one.
    pub status: Option<u16>,
    /// The reason why there was none, as a short word.
    pub failure: Option<&'static str>,
    /// Its span.
    pub span_id: [u8; 8],
    /// The span of the call.
    pub parent_id: [u8; 8],
}

/// Notes the HTTP requests of a call, whose trace they continue.
#[derive(Debug, Clone)]
pub struct HttpTrail {
    trail: Trail,
    traceparent: Box<str>,
    tracestate: Option<Box<str>>,
    template: Arc<str>,
}

impl HttpTrail {
    /// That of a call that an app received. None when no traces are wanted. `template` is the path of all its requests.
    pub fn of(context: &RequestContext<RoleServer>, template: impl FnOnce() -> Arc<str>) -> Option<Self> {
        let trail = context.extensions.get::<Trail>().filter(|trail| trail.is_traced())?;
        let traceparent = of_message(context, TRACEPARENT)?.into();
        let tracestate = of_message(context, TRACESTATE).map(Box::from);
        Some(Self { trail: trail.clone(), traceparent, tracestate, template: template() })
    }

    /// Begins to note a request to a server.
    pub fn begin(&self, method: &Method, address: &str, port: Option<u16>, resends: u32) -> ExchangeNote {
        let message = (Some(&*self.traceparent), self.tracestate.as_deref());
        let span = TraceContext::of(Incoming { message, http: (None, None) });
        let exchange = HttpExchange {
            method: method.clone(),
            template: self.template.clone(),
            address: address.into(),
            port,
            resends,
            start: self.trail.elapsed(),
            duration: Duration::ZERO,
            status: None,
            failure: Some("cancelled"),
            span_id: span.span_id,
            parent_id: span.parent_id.unwrap_or_default(),
        };
        ExchangeNote { trail: self.trail.clone(), span, exchange: Some(exchange) }
    }
}

/// A request being noted. Dropped before its end, it was cancelled.
#[derive(Debug)]
pub struct ExchangeNote {
    trail: Trail,
    span: TraceContext,
    exchange: Option<HttpExchange>,
}

impl ExchangeNote {
    /// Headers that tell the server of the trace (W3C Trace Context): names and values.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, String)> {
        let state = self.span.state.as_ref().map(|state| (TRACESTATE, state.to_string()));
        std::iter::once((TRACEPARENT, self.span.to_header())).chain(state)
    }

    /// Ends with the status of the response, or with the reason why there is none.
    pub fn end(mut self, answer: Result<u16, &'static str>) {
        if let Some(exchange) = &mut self.exchange {
            (exchange.status, exchange.failure) = (answer.ok(), answer.err());
        }
    }
}

impl Drop for ExchangeNote {
    fn drop(&mut self) {
        let Some(mut exchange) = self.exchange.take() else { return };
        exchange.duration = self.trail.elapsed().saturating_sub(exchange.start);
        if self.span.sampled {
            self.trail.note(exchange);
        }
    }
}
