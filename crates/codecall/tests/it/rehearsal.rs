//! Rehearsals: what a plan would do, without doing it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use gatewright_core::rmcp::model::CallToolResult;
use gatewright_testing::ToolServer;
use serde_json::json;

use super::support::Served;

/// A desk with `list` (read-only), `refund` (declares its result), `note` (declares nothing). Counts what is called.
async fn desk() -> (Served, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (reads, effects) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let input = json!({"type": "object", "required": ["id"], "additionalProperties": false,
        "properties": {"id": {"type": "integer"}, "amount": {"type": "number", "maximum": 100}}});
    let tools = json!([
        {"name": "list", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
        {"name": "refund", "inputSchema": input, "outputSchema": {"type": "object", "required": ["state"], "properties":
            {"state": {"enum": ["done", "open"]}, "fees": {"type": "array", "items": {"type": "object", "properties": {"cents": {"type": "integer"}}}}}}},
        {"name": "note", "inputSchema": {"type": "object"}},
    ]);
    let counts = (reads.clone(), effects.clone());
    let server = ToolServer::new(tools, move |call, _| {
        let (count, answer) = match &*call.name {
            "list" => (&counts.0, json!({"orders": [{"id": 7}, {"id": 8}]})),
            _ => (&counts.1, json!({"state": "done", "fees": []})),
        };
        count.fetch_add(1, Ordering::SeqCst);
        async move { Ok(CallToolResult::structured(answer)) }
    });
    (Served::over(json!({}), server).await, reads, effects)
}

const PLAN: &str = "
    const { orders } = await callTool('app:list', {});
    const done = [];
    for (const order of orders ?? [{id: 1}]) {
        const refund = await callTool('app:refund', {id: order.id, amount: 5});
        done.push(refund.state, refund.fees[0].cents >= 0);
        await callTool('app:note', {order: order.id});
    }
    return done;
";

#[tokio::test]
async fn a_rehearsal_reads_for_real_and_lists_every_other_call_with_its_checked_arguments() {
    let (served, reads, effects) = desk().await;
    let ada = served.client("ada").await;
    let body = ada.body("codecall:execute", json!({"script": PLAN, "dryRun": true})).await;
    assert_eq!(
        (&body["status"], &body["result"]),
        (&json!("ok"), &json!(["done", true, "done", true])),
        "{body}"
    );
    assert_eq!((reads.load(Ordering::SeqCst), effects.load(Ordering::SeqCst)), (1, 0));
    let calls = body["dryRun"]["calls"].as_array().unwrap();
    let names: Vec<_> =
        calls.iter().map(|call| (call["name"].as_str().unwrap(), call["made"].as_bool().unwrap())).collect();
    assert_eq!(
        names,
        [
            ("app:list", true),
            ("app:refund", false),
            ("app:note", false),
            ("app:refund", false),
            ("app:note", false)
        ]
    );
    assert_eq!(calls[1]["arguments"], json!({"id": 7, "amount": 5}));
    assert_eq!(calls[1]["answerFrom"], "the declared output schema");
    assert!(calls[2]["answerFrom"].as_str().unwrap().starts_with("nothing"), "{body}");
    assert_eq!((&body["dryRun"]["certain"], &body["dryRun"]["assumed"]), (&json!(false), &json!(4)));
}

#[tokio::test]
async fn an_offline_rehearsal_calls_nothing_and_bad_arguments_fail_as_they_would() {
    let (served, reads, effects) = desk().await;
    let ada = served.client("ada").await;
    let body = ada.body("codecall:execute", json!({"script": PLAN, "dryRun": "offline"})).await;
    assert_eq!(body["status"], "ok", "{body}");
    let bad = "for (const amount of [5, 500]) await callTool('app:refund', {id: 1, amount}); return 1";
    let body = ada.body("codecall:execute", json!({"script": bad, "dryRun": true})).await;
    assert_eq!(
        (&body["status"], &body["error"]["code"]),
        (&json!("tool_error"), &json!("VALIDATION_ERROR")),
        "{body}"
    );
    assert_eq!(body["dryRun"]["calls"].as_array().unwrap().len(), 1);
    assert_eq!((reads.load(Ordering::SeqCst), effects.load(Ordering::SeqCst)), (0, 0));
    let read = ada
        .body(
            "codecall:execute",
            json!({"script": "return (await callTool('app:list', {})).orders.length", "dryRun": true}),
        )
        .await;
    assert_eq!((&read["result"], &read["dryRun"]["certain"]), (&json!(2), &json!(true)), "{read}");
    let refused = ada.body("codecall:execute", json!({"script": "return 1", "dryRun": "online"})).await;
    assert_eq!(refused["error"]["code"], "VALIDATION_ERROR", "{refused}");
}

#[tokio::test]
async fn a_rehearsal_that_reads_what_a_declared_result_does_not_have_is_refused_before_its_first_call() {
    let (served, reads, effects) = desk().await;
    let ada = served.client("ada").await;
    let script =
        "await callTool('app:list', {}); const r = await callTool('app:refund', {id: 7}); return r.stat";
    let body = ada.body("codecall:execute", json!({"script": script, "dryRun": true})).await;
    assert_eq!(
        (&body["status"], &body["error"]["toolName"]),
        (&json!("tool_error"), &json!("app:refund")),
        "{body}"
    );
    let message = body["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("the result of `app:refund` has no `stat`; did you mean `state`? A dry run"),
        "{body}"
    );
    assert_eq!(body["error"]["location"], json!({"line": 1, "column": 91}));
    assert_eq!((&body["dryRun"]["calls"], &body["dryRun"]["certain"]), (&json!([]), &json!(false)));
    assert_eq!((reads.load(Ordering::SeqCst), effects.load(Ordering::SeqCst)), (0, 0));
    // A run is warned, and so is a rehearsal that provides for the absence.
    let run = ada.body("codecall:execute", json!({"script": script})).await;
    assert_eq!((&run["status"], run["warnings"].as_array().unwrap().len()), (&json!("ok"), 1), "{run}");
    let careful = script.replace("r.stat", "r.stat ?? 'none'");
    let body = ada.body("codecall:execute", json!({"script": careful, "dryRun": true})).await;
    assert_eq!((&body["status"], &body["result"]), (&json!("ok"), &json!("none")), "{body}");
}

#[tokio::test]
async fn a_rehearsed_call_is_answered_by_the_shape_of_earlier_answers_and_says_so() {
    let (served, _, effects) = desk().await;
    let ada = served.client("ada").await;
    let script =
        "const note = await callTool('app:note', {}); return [typeof note.state, note.fees.length >= 0]";
    let rehearse = async || ada.body("codecall:execute", json!({"script": script, "dryRun": true})).await;
    let before = rehearse().await;
    let source = before["dryRun"]["calls"][0]["answerFrom"].as_str().unwrap();
    assert!(source.starts_with("nothing: the tool declares no output schema"), "{before}");
    // Its answer is {}, which has no `fees`.
    assert_eq!(before["status"], "runtime_error", "{before}");

    for _ in 0..3 {
        ada.run("return await callTool('app:note', {})").await;
    }
    let after = rehearse().await;
    assert_eq!((&after["status"], &after["result"]), (&json!("ok"), &json!(["string", true])), "{after}");
    let report = &after["dryRun"];
    assert_eq!(report["calls"][0]["answerFrom"], "the shape of 3 earlier answers", "{after}");
    assert_eq!((&report["certain"], &report["assumed"]), (&json!(false), &json!(1)), "{after}");
    assert!(report["note"].as_str().unwrap().contains("their answers are assumed"), "{after}");
    assert_eq!(effects.load(Ordering::SeqCst), 3, "no rehearsal called it");
}
