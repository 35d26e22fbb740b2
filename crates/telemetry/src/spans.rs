//! Executions as spans, with the names and attributes of the OpenTelemetry conventions for MCP.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gatewright_core::{CallRecord, Ending, Execution, TraceContext};
use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::{Span, Status, span::SpanKind, status::StatusCode},
};

const METHOD: &str = "tools/call";
/// Bit 0 of a span's flags: sampled.
const SAMPLED: u32 = 1;

/// The span of an execution, and one below it for each call it made.
pub(crate) fn of(execution: &Execution, trace: &TraceContext) -> Vec<Span> {
    let mut attributes = about(&execution.tool, &execution.ending);
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
        flags: SAMPLED,
        name: format!("{METHOD} {}", execution.tool),
        kind: SpanKind::Server.into(),
        start_time_unix_nano: nanos(start),
        end_time_unix_nano: nanos(start + execution.duration),
        attributes,
        status: status(&execution.ending),
        ..Span::default()
    }];
    spans.extend(execution.calls.iter().filter_map(|call| below(call, trace, start)));
    spans
}

fn below(call: &CallRecord, trace: &TraceContext, began: SystemTime) -> Option<Span> {
    let mut attributes = about(&call.tool, &call.ending);
    attributes.push(text("gatewright.app", &call.app));
    attributes.extend(call.bytes.map(|bytes| number("gatewright.answer.size", bytes)));
    let start = began + call.start;
    Some(Span {
        trace_id: trace.trace_id.to_vec(),
        span_id: call.span_id?.to_vec(),
        parent_span_id: trace.span_id.to_vec(),
        flags: SAMPLED,
        name: format!("{METHOD} {}", call.tool),
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
    if !ending.is_ok() {
        all.push(text("error.type", ending.status()));
    }
    all
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
