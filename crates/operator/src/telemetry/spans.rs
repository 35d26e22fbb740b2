//! Requests as spans, with the names and attributes of the OpenTelemetry conventions for MCP, as OTLP writes them.
//!
//! Numbers of fields are those of `opentelemetry/proto/trace/v1/trace.proto` and its neighbours, version 1.

use std::{
    net::IpAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gatewright_core::{
    Arrival, CallRecord, Ending, Execution, HttpExchange, NetworkTransport, Operation, Principal, Subject,
    TraceContext, rmcp::model::RequestId,
};

use super::wire::Wire;

const TOOLS_CALL: &str = "tools/call";
/// Bit 0 of a span's flags: sampled.
const SAMPLED: u32 = 1;
/// Longest text of an attribute, in bytes; more is cut off.
const MOST_TEXT: usize = 1_024;

/// `SpanKind`.
#[derive(Clone, Copy)]
enum SpanKind {
    Server = 2,
    Client = 3,
}

/// `ScopeSpans.spans`.
const SPANS: u8 = 2;
/// `Span.attributes`.
const ATTRIBUTES: u8 = 9;

/// The request that brings spans to a collector.
pub(crate) fn request(version: &str, spans: &[u8]) -> Vec<u8> {
    let mut wire = Wire::default();
    wire.reserve(spans.len() + 128);
    wire.message(1, |all| {
        all.message(1, |resource| {
            text(resource, 1, "service.name", "gatewright");
            text(resource, 1, "service.version", version);
        });
        all.message(2, |scope| scope.fields(spans));
    });
    wire.into_bytes()
}

/// The span of an execution, one below it for each call it made, and those of HTTP requests below these.
pub(crate) fn execution(wire: &mut Wire, execution: &Execution, trace: &TraceContext) {
    let start = execution.started;
    let target = if execution.is_known { &*execution.tool } else { "" };
    wire.message(SPANS, |span| {
        let at = Place { id: &trace.span_id, above: trace.parent_id.as_ref(), trace };
        at.write(span, SpanKind::Server, (start, execution.duration), &execution.ending);
        name(span, TOOLS_CALL, target);
        about_tool(span, &execution.tool, &execution.ending);
        came(span, &execution.arrival, &execution.principal, execution.address);
        if let Some(script) = execution.script {
            number(span, "gatewright.script.size", script.bytes as u64);
        }
        if execution.more_calls > 0 {
            number(span, "gatewright.calls.left_out", execution.more_calls as u64);
        }
        if let Some(bytes) = execution.bytes {
            number(span, "gatewright.answer.size", bytes);
        }
        link(span, trace);
    });
    for call in &execution.calls {
        if let Some(id) = &call.span_id {
            wire.message(SPANS, |span| below(span, call, id, trace, start));
        }
    }
    for exchange in &execution.exchanges {
        wire.message(SPANS, |span| request_to_api(span, exchange, trace, start));
    }
}

/// The span of a request that calls no tool.
pub(crate) fn operation(wire: &mut Wire, operation: &Operation, trace: &TraceContext) {
    wire.message(SPANS, |span| {
        let at = Place { id: &trace.span_id, above: trace.parent_id.as_ref(), trace };
        at.write(span, SpanKind::Server, (operation.started, operation.duration), &operation.ending);
        // A resource is not part of the name: there is no end to them.
        let target = match &operation.subject {
            Some(Subject::Prompt(prompt)) => prompt,
            _ => "",
        };
        name(span, operation.method, target);
        text(span, ATTRIBUTES, "mcp.method.name", operation.method);
        match &operation.subject {
            Some(Subject::Prompt(prompt)) => text(span, ATTRIBUTES, "gen_ai.prompt.name", prompt),
            Some(Subject::Resource(uri)) => text(span, ATTRIBUTES, "mcp.resource.uri", uri),
            None => {}
        }
        failure(span, &operation.ending);
        came(span, &operation.arrival, &operation.principal, operation.address);
        link(span, trace);
    });
}

fn below(span: &mut Wire, call: &CallRecord, id: &[u8; 8], trace: &TraceContext, began: SystemTime) {
    let at = Place { id, above: Some(&trace.span_id), trace };
    at.write(span, SpanKind::Client, (began + call.start, call.duration), &call.ending);
    name(span, TOOLS_CALL, if call.app.is_empty() { "" } else { &call.tool });
    about_tool(span, &call.tool, &call.ending);
    text(span, ATTRIBUTES, "gatewright.app", &call.app);
    if let Some(bytes) = call.bytes {
        number(span, "gatewright.answer.size", bytes);
    }
    transport(span, call.transport);
}

/// The span of an HTTP request (conventions for HTTP clients). It has no `url.full`, in which arguments and credentials may be.
fn request_to_api(span: &mut Wire, exchange: &HttpExchange, trace: &TraceContext, began: SystemTime) {
    let HttpExchange { method, template, status, .. } = exchange;
    let failure = match status {
        Some(status) if *status >= 400 => Some(status.to_string()),
        Some(_) => None,
        None => Some(exchange.failure.unwrap_or("_OTHER").to_owned()),
    };
    let at = Place { id: &exchange.span_id, above: Some(&exchange.parent_id), trace };
    at.write_failed(
        span,
        SpanKind::Client,
        (began + exchange.start, exchange.duration),
        failure.as_ref().map(|_| ""),
    );
    name(span, method.as_str(), template);
    text(span, ATTRIBUTES, "http.request.method", method.as_str());
    text(span, ATTRIBUTES, "url.template", template);
    text(span, ATTRIBUTES, "server.address", &exchange.address);
    if let Some(port) = exchange.port {
        number(span, "server.port", port.into());
    }
    if let Some(status) = status {
        number(span, "http.response.status_code", (*status).into());
    }
    if exchange.resends > 0 {
        number(span, "http.request.resend_count", exchange.resends.into());
    }
    if let Some(failure) = failure {
        text(span, ATTRIBUTES, "error.type", &failure);
    }
    transport(span, Some(NetworkTransport::Tcp));
}

/// Ids of a span: its own, its parent's and its trace's.
struct Place<'a> {
    id: &'a [u8; 8],
    above: Option<&'a [u8; 8]>,
    trace: &'a TraceContext,
}

impl Place<'_> {
    /// Writes the fields that every span has.
    fn write(&self, span: &mut Wire, kind: SpanKind, time: (SystemTime, Duration), ending: &Ending) {
        self.write_failed(span, kind, time, (!ending.is_ok()).then(|| ending.status()));
    }

    /// Writes the fields that every span has, with the message of a failure.
    fn write_failed(
        &self,
        span: &mut Wire,
        kind: SpanKind,
        (start, took): (SystemTime, Duration),
        failure: Option<&str>,
    ) {
        span.bytes(1, &self.trace.trace_id);
        span.bytes(2, self.id);
        if let Some(state) = &self.trace.state {
            span.text(3, [state]);
        }
        if let Some(above) = self.above {
            span.bytes(4, above);
        }
        span.number(6, kind as u64);
        span.fixed64(7, nanos(start));
        span.fixed64(8, nanos(start + took));
        if let Some(message) = failure {
            span.message(15, |status| {
                status.text(2, [clipped(message)]);
                status.number(3, 2);
            });
        }
        span.fixed32(16, SAMPLED);
    }
}

/// A tool that is not served is not named: clients could make any number of names.
fn name(span: &mut Wire, method: &str, target: &str) {
    match target {
        "" => span.text(5, [method]),
        target => span.text(5, [method, " ", target]),
    }
}

fn about_tool(span: &mut Wire, tool: &str, ending: &Ending) {
    text(span, ATTRIBUTES, "mcp.method.name", TOOLS_CALL);
    text(span, ATTRIBUTES, "gen_ai.tool.name", tool);
    text(span, ATTRIBUTES, "gen_ai.operation.name", "execute_tool");
    failure(span, ending);
}

fn failure(span: &mut Wire, ending: &Ending) {
    if let Some(class) = ending.error_type() {
        // The contract's own status or code, which is finer than the conventions' `tool_error`.
        text(span, ATTRIBUTES, "error.type", &class);
        text(span, ATTRIBUTES, "gatewright.status", ending.status());
    }
    if let Some(code) = ending.rpc_code() {
        text(span, ATTRIBUTES, "rpc.response.status_code", &code.to_string());
    }
}

fn came(span: &mut Wire, arrival: &Arrival, principal: &Principal, address: Option<IpAddr>) {
    match &arrival.request_id {
        Some(RequestId::String(id)) => text(span, ATTRIBUTES, "jsonrpc.request.id", id),
        Some(RequestId::Number(id)) => text(span, ATTRIBUTES, "jsonrpc.request.id", &id.to_string()),
        None => {}
    }
    if let Some(session) = &arrival.session_id {
        text(span, ATTRIBUTES, "mcp.session.id", session);
    }
    if let Some(version) = &arrival.protocol_version {
        text(span, ATTRIBUTES, "mcp.protocol.version", version.as_str());
    }
    transport(span, arrival.transport);
    if let Some(version) = arrival.http_version {
        text(span, ATTRIBUTES, "network.protocol.name", "http");
        text(span, ATTRIBUTES, "network.protocol.version", version);
    }
    text(span, ATTRIBUTES, "enduser.id", &principal.subject);
    if let Some(client) = &principal.client_id {
        text(span, ATTRIBUTES, "gatewright.client.id", client);
    }
    if let Some(endpoint) = &principal.endpoint {
        text(span, ATTRIBUTES, "gatewright.endpoint", endpoint);
    }
    if let Some(address) = address {
        text(span, ATTRIBUTES, "client.address", &address.to_string());
    }
}

fn transport(span: &mut Wire, transport: Option<NetworkTransport>) {
    match transport {
        Some(NetworkTransport::Tcp) => text(span, ATTRIBUTES, "network.transport", "tcp"),
        Some(NetworkTransport::Pipe) => text(span, ATTRIBUTES, "network.transport", "pipe"),
        None => {}
    }
}

fn link(span: &mut Wire, trace: &TraceContext) {
    if let Some((trace, other)) = &trace.link {
        span.message(13, |link| {
            link.bytes(1, trace);
            link.bytes(2, other);
        });
    }
}

fn text(wire: &mut Wire, field: u8, key: &str, value: &str) {
    wire.message(field, |attribute| {
        attribute.text(1, [key]);
        attribute.message(2, |any| any.text(1, [clipped(value)]));
    });
}

fn number(span: &mut Wire, key: &str, value: u64) {
    span.message(ATTRIBUTES, |attribute| {
        attribute.text(1, [key]);
        attribute.message(2, |any| any.number(3, value.min(i64::MAX as u64)));
    });
}

fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_TEXT)]
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
