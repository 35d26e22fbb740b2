//! Transport details of a request.

use std::net::IpAddr;

use rmcp::{
    RoleServer,
    model::{ProtocolVersion, RequestId},
    service::RequestContext,
};

use crate::{
    TraceContext,
    trace::{Incoming, TRACEPARENT, TRACESTATE},
};

/// The address a request came from. The HTTP server puts it on each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallerAddress(pub IpAddr);

impl CallerAddress {
    /// The address of a request over HTTP.
    pub fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        context.extensions.get::<http::request::Parts>()?.extensions.get().copied()
    }
}

/// The transport to a peer (`network.transport` of OpenTelemetry).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkTransport {
    /// HTTP.
    Tcp,
    /// Standard input and output of a process.
    Pipe,
}

/// Transport details of a request, for its span. Gathered when its trace is recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Its JSON-RPC id.
    pub request_id: Option<RequestId>,
    /// The session it belongs to, in the older protocol era.
    pub session_id: Option<Box<str>>,
    /// The revision of MCP it is written in.
    pub protocol_version: Option<ProtocolVersion>,
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
            request_id: Some(context.id.clone()),
            session_id: session.map(Box::from),
            protocol_version: context.protocol_version(),
            transport: Some(if parts.is_some() { NetworkTransport::Tcp } else { NetworkTransport::Pipe }),
            http_version: parts.map(|parts| match parts.version {
                http::Version::HTTP_10 => "1.0",
                http::Version::HTTP_2 => "2",
                _ => "1.1",
            }),
        }
    }
}

/// The place of a request in the trace that it names, or in a new one.
pub(super) fn place(context: &RequestContext<RoleServer>) -> TraceContext {
    let parts = context.extensions.get::<http::request::Parts>();
    let header = |name: &str| parts.and_then(|parts| parts.headers.get(name)?.to_str().ok());
    let message = (of_message(context, TRACEPARENT), of_message(context, TRACESTATE));
    TraceContext::of(Incoming { message, http: (header(TRACEPARENT), header(TRACESTATE)) })
}

/// A text in `_meta` of a request.
pub(super) fn of_message<'c>(context: &'c RequestContext<RoleServer>, name: &str) -> Option<&'c str> {
    context.meta.0.get(name)?.as_str()
}
