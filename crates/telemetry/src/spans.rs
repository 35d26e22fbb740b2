//! Executions as spans, with the names and attributes of the OpenTelemetry conventions for MCP.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gatewright_core::{CallRecord, Ending, Execution, NetworkTransport, TraceContext};
use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::{
        Span, Status,
        span::{Link, SpanKind},
        status::StatusCode,
    },
};

const METHOD: &str = "tools/call";
/// Bit 0 of a span's flags: sampled.
const SAMPLED: u32 = 1;

/// The span of an execution, and one below it for each call it made.
pub(crate) fn of(execution: &Execution, trace: &TraceContext) -> Vec<Span> {
    let mut attributes = about(&execution.tool, &execution.ending);
    let arrival = &execution.arrival;
    let said = [
        ("jsonrpc.request.id", &arrival.request_id),
        ("mcp.session.id", &arrival.session_id),
        ("mcp.protocol.version", &arrival.protocol_version),
    ];
    attributes.extend(said.into_iter().filter_map(|(key, value)| Some(text(key, value.as_deref()?))));
    attributes.extend(transport(arrival.transport));
    if let Some(version) = arrival.http_version {
        attributes.extend([text("network.protocol.name", "http"), text("network.protocol.version", version)]);
    }
    attributes.push(text("enduser.id", &execution.principal.subject));
    if let Some(client) = &execution.principal.client_id {
        attributes.push(text("gatewright.client.id", client));
    }
    if let Some(address) = execution.address {
        attributes.push(text("client.address", &address.to_string()));
    }
    if let Some(script) = execution.script {
        attributes.push(number("gatewright.script.size", script.bytes as u64));
    }
    if execution.more_calls > 0 {
        attributes.push(number("gatewright.calls.left_out", execution.more_calls as u64));
    }
    attributes.extend(execution.bytes.map(|bytes| number("gatewright.answer.size", bytes)));
    let start = execution.started;
    let mut spans = vec![Span {
        trace_id: trace.trace_id.to_vec(),
        span_id: trace.span_id.to_vec(),
        parent_span_id: trace.parent_id.map(Vec::from).unwrap_or_default(),
        trace_state: trace.state.as_deref().unwrap_or_default().to_owned(),
        flags: SAMPLED,
        name: name(&execution.tool, execution.is_known),
        kind: SpanKind::Server.into(),
        start_time_unix_nano: nanos(start),
        end_time_unix_nano: nanos(start + execution.duration),
        attributes,
        status: status(&execution.ending),
        links: trace.link.iter().map(linked).collect(),
        ..Span::default()
    }];
    spans.extend(execution.calls.iter().filter_map(|call| below(call, trace, start)));
    spans
}

fn below(call: &CallRecord, trace: &TraceContext, began: SystemTime) -> Option<Span> {
    let mut attributes = about(&call.tool, &call.ending);
    attributes.push(text("gatewright.app", &call.app));
    attributes.extend(call.bytes.map(|bytes| number("gatewright.answer.size", bytes)));
    attributes.extend(transport(call.transport));
    let start = began + call.start;
    Some(Span {
        trace_id: trace.trace_id.to_vec(),
        span_id: call.span_id?.to_vec(),
        parent_span_id: trace.span_id.to_vec(),
        trace_state: trace.state.as_deref().unwrap_or_default().to_owned(),
        flags: SAMPLED,
        name: name(&call.tool, true),
        kind: SpanKind::Client.into(),
        start_time_unix_nano: nanos(start),
        end_time_unix_nano: nanos(start + call.duration),
        attributes,
        status: status(&call.ending),
        ..Span::default()
    })
}

fn about(tool: &str, ending: &Ending) -> Vec<KeyValue> {
    let mut all = vec![
        text("mcp.method.name", METHOD),
        text("gen_ai.tool.name", tool),
        text("gen_ai.operation.name", "execute_tool"),
    ];
    if let Some(class) = ending.error_type() {
        // The contract's own status or code, which is finer than the conventions' `tool_error`.
        all.extend([text("error.type", &class), text("gatewright.status", ending.status())]);
    }
    if let Some(code) = ending.rpc_code() {
        all.push(text("rpc.response.status_code", &code.to_string()));
    }
    all
}

/// A tool that is not served is not named: clients could make any number of names.
fn name(tool: &str, is_known: bool) -> String {
    if is_known { format!("{METHOD} {tool}") } else { METHOD.to_owned() }
}

fn transport(transport: Option<NetworkTransport>) -> Option<KeyValue> {
    let name = match transport? {
        NetworkTransport::Tcp => "tcp",
        NetworkTransport::Pipe => "pipe",
    };
    Some(text("network.transport", name))
}

fn linked((trace, span): &([u8; 16], [u8; 8])) -> Link {
    Link { trace_id: trace.to_vec(), span_id: span.to_vec(), ..Link::default() }
}

fn status(ending: &Ending) -> Option<Status> {
    let failed = Status { code: StatusCode::Error.into(), message: ending.status().to_owned() };
    (!ending.is_ok()).then_some(failed)
}

pub(crate) fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn number(key: &str, value: u64) -> KeyValue {
    attribute(key, Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
