//! Against a collector on loopback that decodes what it gets.

use std::{
    collections::HashMap,
    time::{Duration, UNIX_EPOCH},
};

use axum::{Router, body::Bytes, http::HeaderMap, http::StatusCode, routing::post};
use gatewright_core::{
    Arrival, CallRecord, Ending, Execution, Observer as _, Operation, Principal, Subject, TraceContext,
    rmcp::model::RequestId,
};
use gatewright_operator::telemetry::{OtlpConfig, Traces};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    trace::v1::{Span, span::SpanKind, status::StatusCode as SpanStatus},
};
use prost::Message as _;
use tokio::{net::TcpListener, sync::mpsc};

struct Collector {
    config: OtlpConfig,
    got: mpsc::UnboundedReceiver<(HeaderMap, ExportTraceServiceRequest)>,
}

impl Collector {
    /// Answers with `statuses` in turn, then 200.
    async fn start(statuses: &[u16]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, got) = mpsc::unbounded_channel();
        let (queue, statuses) = (statuses.to_vec(), std::sync::Arc::new(std::sync::Mutex::new(0)));
        let take = move |headers: HeaderMap, body: Bytes| {
            sender.send((headers, ExportTraceServiceRequest::decode(body).unwrap())).unwrap();
            let mut at = statuses.lock().unwrap();
            *at += 1;
            let status = queue.get(*at - 1).copied().unwrap_or(200);
            std::future::ready(StatusCode::from_u16(status).unwrap())
        };
        tokio::spawn(async move {
            axum::serve(listener, Router::new().route("/v1/traces", post(take))).await.unwrap();
        });
        Self { config: OtlpConfig::new(url.parse().unwrap()), got }
    }
}

fn execution(above: Option<&str>) -> Execution {
    let trace = TraceContext::below(above);
    let call = |tool: &str, start: u64, ending| CallRecord {
        tool: tool.into(),
        app: "crm".into(),
        start: Duration::from_millis(start),
        duration: Duration::from_millis(5),
        ending,
        bytes: Some(7),
        span_id: Some(trace.child().span_id),
        transport: None,
    };
    Execution {
        id: 1,
        tool: "codecall:execute".into(),
        is_meta: true,
        is_known: true,
        principal: Principal::local(),
        plan: None,
        address: Some([127, 0, 0, 1].into()),
        started: UNIX_EPOCH + Duration::from_secs(100),
        duration: Duration::from_millis(20),
        ending: Ending::OK,
        bytes: Some(12),
        script: None,
        arguments: None,
        calls: vec![
            call("crm:users_list", 1, Ending::OK),
            call("crm:users_get", 10, Ending::new("RATE_LIMIT")),
        ],
        more_calls: 0,
        exchanges: Vec::new(),
        trace: Some(trace),
        arrival: Arrival::default(),
    }
}

fn attributes(all: &[KeyValue]) -> HashMap<&str, &str> {
    let text = |one: &KeyValue| match one.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => Some(text.as_str().to_owned()),
        _ => None,
    };
    all.iter().filter_map(|one| Some((one.key.as_str(), &*text(one)?.leak()))).collect()
}

fn spans(request: &ExportTraceServiceRequest) -> Vec<&Span> {
    request.resource_spans.iter().flat_map(|all| &all.scope_spans).flat_map(|scope| &scope.spans).collect()
}

#[tokio::test]
async fn a_collector_gets_a_span_for_the_execution_and_one_below_it_for_each_call() {
    let mut collector = Collector::start(&[]).await;
    collector.config.headers.insert("x-api-key".to_owned(), "let me in".to_owned().into());
    let (traces, sending) = Traces::start(&collector.config, "1.2.3").unwrap();
    let execution = execution(Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
    traces.finished(&execution);
    sending.finish().await;

    let (headers, request) = collector.got.recv().await.unwrap();
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert_eq!(headers["x-api-key"], "let me in");
    let resource = attributes(&request.resource_spans[0].resource.as_ref().unwrap().attributes);
    assert_eq!((resource["service.name"], resource["service.version"]), ("gatewright", "1.2.3"));

    let all = spans(&request);
    let names: Vec<_> = all.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        names,
        ["tools/call codecall:execute", "tools/call crm:users_list", "tools/call crm:users_get"]
    );
    let trace = execution.trace.as_ref().unwrap();
    assert!(all.iter().all(|span| span.trace_id == trace.trace_id));
    assert_eq!(all[0].parent_span_id, [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7], "the client's span");
    assert_eq!((all[0].span_id.as_slice(), all[0].kind()), (&trace.span_id[..], SpanKind::Server));
    assert_eq!(all[0].start_time_unix_nano, 100_000_000_000);
    assert_eq!(all[0].end_time_unix_nano, 100_020_000_000);
    assert_eq!(all[0].status, None);
    for (span, call) in all[1..].iter().zip(&execution.calls) {
        assert_eq!(span.parent_span_id, trace.span_id);
        assert_eq!(
            (Some(span.span_id.as_slice()), span.kind()),
            (call.span_id.as_ref().map(|id| &id[..]), SpanKind::Client)
        );
    }
    assert_eq!(all[2].start_time_unix_nano, 100_010_000_000);
    assert_eq!(all[2].status.as_ref().unwrap().code(), SpanStatus::Error);
    let of_call = attributes(&all[2].attributes);
    assert_eq!(of_call["mcp.method.name"], "tools/call");
    assert_eq!(of_call["gen_ai.tool.name"], "crm:users_get");
    assert_eq!(of_call["gen_ai.operation.name"], "execute_tool");
    assert_eq!(of_call["error.type"], "RATE_LIMIT");
    assert!(!attributes(&all[0].attributes).contains_key("error.type"));
    assert_eq!(attributes(&all[0].attributes)["client.address"], "127.0.0.1");
}

#[tokio::test]
async fn a_request_of_another_method_is_a_span_named_by_what_is_bounded_only() {
    let mut collector = Collector::start(&[]).await;
    let (traces, sending) = Traces::start(&collector.config, "1").unwrap();
    let about = [
        ("tools/list", None),
        ("prompts/get", Some(Subject::Prompt("crm:greet".into()))),
        ("resources/read", Some(Subject::Resource(format!("crm://{}", "é".repeat(10_000)).into()))),
    ];
    for (method, subject) in about {
        traces.operated(&Operation {
            method,
            subject,
            principal: Principal::local(),
            address: None,
            started: UNIX_EPOCH + Duration::from_secs(100),
            duration: Duration::from_millis(20),
            ending: Ending::OK,
            trace: Some(TraceContext::below(None)),
            arrival: Arrival { request_id: Some(RequestId::Number(7)), ..Arrival::default() },
        });
    }
    sending.finish().await;
    let (_, request) = collector.got.recv().await.unwrap();
    let all = spans(&request);
    let names: Vec<_> = all.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["tools/list", "prompts/get crm:greet", "resources/read"]);
    assert!(all.iter().all(|span| span.kind() == SpanKind::Server && span.status.is_none()));
    assert_eq!(attributes(&all[0].attributes)["jsonrpc.request.id"], "7");
    assert_eq!(attributes(&all[1].attributes)["gen_ai.prompt.name"], "crm:greet");
    let read = attributes(&all[2].attributes);
    assert_eq!(read["mcp.method.name"], "resources/read");
    // 1,024 bytes at most, and no half of a letter.
    assert_eq!(read["mcp.resource.uri"], format!("crm://{}", "é".repeat(509)));
    assert!(!read.contains_key("gen_ai.operation.name"), "no tool is executed");
}

#[tokio::test]
async fn what_a_client_does_not_record_is_not_sent() {
    let mut collector = Collector::start(&[]).await;
    let (traces, sending) = Traces::start(&collector.config, "1").unwrap();
    traces.finished(&execution(Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")));
    traces.finished(&execution(None));
    sending.finish().await;
    let (_, request) = collector.got.recv().await.unwrap();
    assert_eq!(spans(&request).len(), 3);
    assert!(spans(&request)[0].parent_span_id.is_empty());
    assert!(collector.got.try_recv().is_err());
}

#[tokio::test]
async fn a_collector_that_refuses_loses_that_batch_and_gets_the_next() {
    let mut collector = Collector::start(&[503]).await;
    let (traces, sending) = Traces::start(&collector.config, "1").unwrap();
    traces.finished(&execution(None));
    collector.got.recv().await.unwrap();
    traces.finished(&execution(None));
    sending.finish().await;
    assert_eq!(spans(&collector.got.recv().await.unwrap().1).len(), 3);
}

#[tokio::test]
async fn what_waits_is_bounded_in_spans_too() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let (traces, sending) = Traces::start(&OtlpConfig::new(url.parse().unwrap()), "1").unwrap();
    let mut large = execution(None);
    large.calls = vec![large.calls[0].clone(); 1_000];
    for _ in 0..100 {
        traces.finished(&large);
    }
    assert_eq!(traces.dropped(), 100 - 32_768 / 1_001);
    drop(sending);
}

#[tokio::test]
async fn a_collector_that_hangs_blocks_no_call() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let (traces, sending) = Traces::start(&OtlpConfig::new(url.parse().unwrap()), "1").unwrap();
    // More than the 2,048 that may wait: nothing waits for the collector, the rest is dropped and counted.
    for _ in 0..5_000 {
        traces.finished(&execution(None));
    }
    assert_eq!(traces.dropped(), 5_000 - 2_048);
    drop(sending);
}
