//! Matchers of values: equality, regular expressions, ranges, lengths, items, schemas, paths, snapshots, latency, what a server sent.

use std::{collections::BTreeMap, time::Duration};

use gatewright_testing::{
    Latency, LogMessage, Message, Notification, RpcRequest, Snapshot, Subject, expect, json, matchers,
};
use serde::Serialize;

use crate::support::memory;

fn panic_of(check: impl FnOnce() + std::panic::UnwindSafe) -> String {
    *std::panic::catch_unwind(check).unwrap_err().downcast::<String>().unwrap()
}

#[derive(Serialize)]
struct Order {
    id: u8,
    items: Vec<&'static str>,
}

#[test]
fn equality_is_exact_and_takes_owned_and_borrowed_values() {
    let order = json!({"id": 1, "items": ["tea"]});
    expect(&order).to_equal(Order { id: 1, items: vec!["tea"] });
    expect(&order).to_equal(&order);
    expect(&order).to_match_json(json!({"id": 1.0}));
    expect(&order).not().to_equal(json!({"id": 1}));
    let mismatch = matchers::equals(&order, json!({"id": 2, "more": null})).unwrap_err();
    let hint = mismatch.hint.unwrap();
    for part in [
        "$.items: is not expected, is [\"tea\"]",
        "$.id: expected 2, is 1",
        "$.more: expected null, is missing",
    ] {
        assert!(hint.contains(part), "{hint}");
    }
}

#[tokio::test]
async fn paths_start_at_the_result_as_it_was_sent() {
    let mcp = memory().await;
    let result = mcp.tools().call("echo", json!({"text": "hello"})).await.unwrap();
    expect(&result).at("content.0.text").to_equal("hello");
    expect(&result).at("content.*.type").to_match_regex("^text$");
    expect(&result).at("/structuredContent/text").to_equal(String::from("hello"));
    expect(&result).at("structuredContent").at("text").to_have_length(5);
    expect(&result).at("text").to_equal("hello");
    expect(&result).to_match_json(json!({"structuredContent": {"text": "hello"}}));
    expect(&result).to_match_json(json!({"text": "hello"}));
    let report = panic_of(|| expect(&result).at("structuredContent.txet").not().to_equal("x"));
    assert!(
        report.starts_with("expect(…).at(\"structuredContent.txet\").not().to_equal(…)")
            && report.contains("did you mean `structuredContent.text`?"),
        "{report}"
    );
    let failed = mcp.tools().call("fail", ()).await.unwrap();
    expect(&failed).at("isError").to_equal(true);
    expect(&failed).not().to_have_property("structuredContent.password");
    expect(&failed).to_have_property("content.0.text");
}

#[test]
fn regular_expressions_search_texts_numbers_and_errors() {
    expect(&json!("order 17")).to_match_regex(r"^order \d+$");
    expect(&json!(17)).to_match_regex(r"^\d+$");
    expect(&json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b1"}])).to_match_regex(r"b\d");
    let error =
        gatewright_testing::RpcResponse { raw: json!({"error": {"code": 1, "message": "no such city"}}) };
    expect(&error).to_match_regex("no such");
    expect(&json!("x")).not().to_match_regex("y");
    for report in [
        panic_of(|| expect(&json!("x")).not().to_match_regex("(")),
        panic_of(|| expect(&json!({})).not().to_match_regex("y")),
    ] {
        assert!(report.contains("unclosed group") || report.contains("does not know this kind"), "{report}");
    }
}

#[test]
fn ranges_and_lengths_include_their_ends() {
    expect(&json!(5)).to_be_in_range(1..=5);
    expect(&json!(0.5)).to_be_in_range(0.5..);
    expect(&json!(-1)).to_be_in_range(..=0);
    expect(&json!(6)).not().to_be_in_range(1..=5);
    expect(&json!([1, 2])).to_have_length(2);
    expect(&json!("née")).to_have_length(3);
    expect(&json!({"a": 1})).to_have_length(..=1);
    let mismatch = matchers::has_length(&json!([1]), 2..=3).unwrap_err();
    assert_eq!((&*mismatch.expected, &*mismatch.actual), ("2 to 3 items", "1: [1]"));
    assert!(panic_of(|| expect(&json!("5")).not().to_be_in_range(6..)).contains("does not know this kind"));
}

#[tokio::test]
async fn items_are_matched_each_or_at_least_one() {
    let tools = memory().await.tools().list().await.unwrap();
    let named =
        |name: &'static str| move |item: &Subject<'_>| matchers::matches_json(item, json!({"name": name}));
    expect(&tools).containing(named("echo"));
    expect(&tools).not().containing(named("nobody"));
    expect(&tools).each(|item: &Subject<'_>| matchers::has_property(item, "inputSchema.type"));
    expect(&tools).not().each(named("echo"));
    expect(&tools).at("*.inputSchema.type").to_equal("object");
    let report = panic_of(|| expect(&tools).each(named("echo")));
    assert!(report.contains("of item 1: "), "{report}");
    let report = panic_of(|| expect(&json!([])).each(named("echo")));
    assert!(report.contains("a list with items"), "an empty list proves nothing: {report}");
    let report = panic_of(|| expect(&json!([])).not().each(named("echo")));
    assert!(report.contains("a list with items"), "{report}");
}

#[test]
fn schemas_list_every_violation() {
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "string"}}, "required": ["id"]});
    expect(&json!({"id": 1})).to_match_schema(&schema);
    let mismatch = matchers::matches_schema(&json!({"id": "x", "at": 1}), &schema).unwrap_err();
    let hint = mismatch.hint.unwrap();
    assert!(hint.contains("id: ") && hint.contains("at: "), "{hint}");
    let report = panic_of(|| expect(&json!(1)).not().to_match_schema(json!({"type": 7})));
    assert!(report.contains("the schema does not compile"), "{report}");
}

#[test]
fn a_snapshot_is_compared_whole_but_for_masked_parts() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("order.json");
    let missing = matchers::matches_snapshot(&json!(1), Snapshot::file(&file)).unwrap_err();
    assert!(missing.unsupported && missing.hint.unwrap().contains("GATEWRIGHT_UPDATE=1"));
    std::fs::write(&file, json!({"id": 1, "at": "[masked]"}).to_string()).unwrap();
    let snapshot = Snapshot::file(&file).mask("at");
    expect(&json!({"at": 17, "id": 1})).to_match_snapshot(snapshot.clone());
    let mismatch = matchers::matches_snapshot(&json!({"id": 2, "at": 18}), snapshot.clone()).unwrap_err();
    let hint = mismatch.hint.unwrap();
    assert!(hint.contains("$.id: expected 1, is 2") && !hint.contains("$.at"), "{hint}");
    let gone = matchers::matches_snapshot(&json!({"id": 1}), snapshot).unwrap_err();
    assert!(gone.expected.contains("something at `at`"), "{gone}");
}

#[test]
fn latency_has_limits_by_percentile_and_a_baseline() {
    let durations: Vec<Duration> = (1..=20).map(Duration::from_millis).collect();
    expect(&durations).to_respond_within(20.0);
    expect(&durations).to_respond_within(Latency::default().p50(10.0).p95(19.0));
    let mismatch = matchers::responds_within(&durations, Latency::default().p90(17.0)).unwrap_err();
    assert!(
        mismatch.expected == "p90 of 17 ms at most" && mismatch.actual.contains("p95 19.0"),
        "{mismatch}"
    );
    let dir = tempfile::tempdir().unwrap();
    let baseline = |p50: f64| {
        let file = dir.path().join(format!("{p50}.json"));
        std::fs::write(&file, json!({"p50": p50, "p95": 1000, "durations": 20}).to_string()).unwrap();
        Latency::default().baseline(file)
    };
    expect(&durations).to_respond_within(baseline(7.0));
    // 10 ms are 100 % more than 5 ms, but 5 ms more is noise.
    expect(&durations).to_respond_within(baseline(5.0));
    let mismatch = matchers::responds_within(&durations, baseline(4.0)).unwrap_err();
    assert!(
        mismatch.expected.starts_with("p50 of 4 ms as in ") && mismatch.actual.starts_with("10 ms"),
        "{mismatch}"
    );
    expect(&durations).to_respond_within(baseline(4.0).tolerance(200.0));
    let few = matchers::responds_within(&durations[..9].to_vec(), baseline(7.0)).unwrap_err();
    assert!(few.unsupported && few.expected.contains("10 durations"), "{few}");
    assert!(matchers::responds_within(&json!(1), 5.0).unwrap_err().unsupported);
}

#[tokio::test]
async fn the_trace_of_a_client_has_durations_and_is_a_list() {
    let mcp = memory().await;
    for _ in 0..3 {
        mcp.tools().call("echo", json!({"text": "a"})).await.unwrap();
    }
    let trace = mcp.trace().all();
    expect(&trace).to_respond_within(Duration::from_secs(60));
    expect(&trace).to_have_length(3);
    expect(&trace).at("*.method").to_equal("tools/call");
}

#[tokio::test]
async fn what_the_server_asked_and_reported_during_a_call_is_matched() {
    let mcp = memory().await;
    mcp.on_elicitation(|_| {
        std::future::ready(gatewright_testing::ElicitResult::Accept(json!({"name": "Ada"})))
    });
    let result = mcp.tools().call("ask", ()).await.unwrap();
    expect(&result).to_have_asked("elicitation/create");
    expect(&result).to_have_asked(Message::of("elicitation/create").times(1));
    expect(&result).not().to_have_asked("sampling/createMessage");
    expect(&mcp.server_requests()).to_have_asked("elicitation/create");
    let mismatch =
        matchers::has_asked(&result, Message::of("elicitation/create").params(json!({"message": 1})))
            .unwrap_err();
    assert!(mismatch.expected.contains("1 or more requests `elicitation/create` with"), "{mismatch}");
    let result = mcp.tools().call("work", ()).progress(7).await.unwrap();
    expect(&result).to_have_progress(2);
    expect(&result).to_have_notified("notifications/progress");
    expect(&result).not().to_have_asked("elicitation/create");
    assert!(matchers::has_progress(&result, 3..).is_err());
}

fn notification(method: &str, params: serde_json::Value) -> Notification {
    Notification { method: method.into(), params, timestamp: std::time::SystemTime::UNIX_EPOCH }
}

#[test]
fn progress_that_does_not_increase_is_a_mismatch() {
    let progress = |all: &[(i32, f64)]| -> Vec<Notification> {
        let one = |(token, progress): &(i32, f64)| {
            let params = json!({"progressToken": token, "progress": progress, "total": 10});
            notification("notifications/progress", params)
        };
        all.iter().map(one).collect()
    };
    expect(&progress(&[(1, 1.0), (2, 1.0), (1, 2.0), (2, 10.0)])).to_have_progress(4);
    for wrong in [&[(1, 1.0), (1, 1.0)][..], &[(1, 2.0), (2, 1.0), (1, 1.5)], &[(1, 11.0)]] {
        assert!(matchers::has_progress(&progress(wrong), 1..).is_err(), "{wrong:?}");
    }
}

#[test]
fn log_messages_are_matched_by_text_level_and_logger() {
    let all = vec![
        notification(
            "notifications/message",
            json!({"level": "warning", "logger": "db", "data": "slow query"}),
        ),
        notification("notifications/message", json!({"level": "info", "data": {"rows": 3}})),
        notification("notifications/progress", json!({"progress": 1})),
    ];
    expect(&all).to_have_logged("slow");
    expect(&all).to_have_logged(LogMessage::with_text("query").level("warning").logger("db").times(1));
    expect(&all).to_have_logged("\"rows\":3");
    expect(&all).not().to_have_logged(LogMessage::with_text("slow").level("error"));
    expect(&all).not().to_have_logged("progress");
    let asked = vec![RpcRequest::new("roots/list", json!({}))];
    expect(&asked).to_have_asked(Message::of("roots/list").params(json!({})));
}

#[test]
#[should_panic(expected = "the argument of a matcher can be written as JSON")]
fn an_argument_that_is_no_json_is_named() {
    expect(&json!(1)).to_equal(BTreeMap::from([(vec![1], 1)]));
}
