//! Tools that servers run as tasks.

use std::time::Duration;

use axum::{
    Json, Router,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::post,
};
use gatewright_testing::{Mcp, McpBuilder, PendingCall, ToolResult};
use gatewright_upstream::UpstreamConfig;
use serde_json::{Value, json};

use crate::support::{Bench, LONG, error, quick, server, text};

async fn bench(flags: &[&str]) -> Bench {
    let bench = Bench::new();
    bench.add("a", server(flags)).await;
    bench
}

async fn call(client: &Mcp, arguments: Value) -> ToolResult {
    let result = client.tools().call("a:task", arguments).await.unwrap();
    assert_eq!(result.error, None);
    result
}

/// The text of a call that fails as a tool does.
async fn failure(client: &Mcp, arguments: Value) -> String {
    let result = call(client, arguments).await;
    assert!(result.is_error, "{}", result.raw);
    result.text()
}

/// Requests that the server has seen: ids of cancelled tasks, and requests for a status by task.
async fn seen(client: &Mcp) -> Value {
    loop {
        // A server that was flooded may answer too late, with an error.
        let answer = client.tools().call("a:tasks", json!({})).await.unwrap();
        if let Ok(seen) = serde_json::from_str(&answer.text()) {
            return seen;
        }
    }
}

/// A client that declares tasks.
fn follows(client: McpBuilder) -> McpBuilder {
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    client.protocol_version("2026-07-28").capabilities(capabilities)
}

/// A call whose task works until it is cancelled.
async fn endless(client: &Mcp) -> PendingCall {
    let arguments = json!({"id": "endless", "polls": 1_000_000, "interval": 100});
    let open = client.tools().call("a:task", arguments).progress("endless").begin().await.unwrap();
    client.notifications().wait_for("notifications/progress", 1, LONG).await.unwrap();
    open
}

async fn until_cancelled(client: &Mcp, task: &str) {
    let cancelled = async {
        while seen(client).await["cancelled"] != json!([task]) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, cancelled).await.expect("the task is cancelled at the server");
}

#[tokio::test]
async fn a_tool_that_requires_a_task_gives_its_caller_a_plain_result_and_progress() {
    let bench = bench(&["--tasks"]).await;
    let client = bench.client().await;
    let arguments = json!({"polls": 2, "interval": 100});
    let done = client.tools().call("a:task", arguments).progress("mine").await.unwrap();
    let body: Value = serde_json::from_str(&done.text()).unwrap();
    assert_eq!(body["done"], "task-1");
    assert!(body["ttl"].as_u64().is_some_and(|ttl| ttl >= 30_000), "{body}");
    assert_eq!(done.progress(), [1.0, 2.0, 3.0]);
    // The task is not the caller's, and neither is the word for it.
    assert_eq!(done.raw["_meta"]["kept"], 1);
    assert!(!done.raw.to_string().contains("related-task"), "{}", done.raw);
    assert!(client.notifications().all().iter().all(|one| one.method == "notifications/progress"));
    let listed = client.tools().list().await.unwrap();
    assert!(
        !json!(listed.iter().map(|tool| &tool.raw).collect::<Vec<_>>()).to_string().contains("execution")
    );
    assert_eq!(seen(&client).await["cancelled"], json!([]));
}

#[tokio::test]
async fn a_tool_that_only_allows_tasks_or_says_something_odd_is_called_directly() {
    let bench = bench(&["--tasks"]).await;
    let client = bench.client().await;
    assert_eq!(text(&client, "a:either").await, "either was called");
    assert_eq!(text(&client, "a:odd").await, "odd was called");
}

#[tokio::test]
async fn a_server_that_does_the_work_at_once_need_not_make_a_task() {
    let bench = bench(&["--tasks"]).await;
    assert_eq!(call(&bench.client().await, json!({"at once": true})).await.text(), "done at once");
}

#[tokio::test]
async fn a_question_of_a_task_reaches_its_caller_while_others_call_too() {
    let bench = bench(&["--tasks"]).await;
    let (asked, other) = (bench.client().await, bench.client().await);
    let open = endless(&other).await;
    let answer = call(&asked, json!({"end": "input_required"})).await.text();
    assert!(answer.contains("Ada"), "{answer}");
    let question = &asked.server_requests()[0];
    assert!(!json!(question.params).to_string().contains("related-task"), "{question:?}");
    assert!(other.server_requests().is_empty());
    open.cancel().await;
}

#[tokio::test]
async fn a_cancelled_call_cancels_its_task() {
    let bench = bench(&["--tasks"]).await;
    let client = bench.client().await;
    endless(&client).await.cancel().await;
    until_cancelled(&client, "endless").await;
}

#[tokio::test]
async fn the_task_of_a_client_that_leaves_is_cancelled() {
    let bench = bench(&["--tasks"]).await;
    let (client, other) = (bench.client().await, bench.client().await);
    let open = endless(&client).await;
    client.disconnect().await;
    until_cancelled(&other, "endless").await;
    drop(open);
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_the_server_named_its_task_cancels_it_then() {
    let bench = bench(&["--tasks"]).await;
    let client = bench.client().await;
    let slow = client.tools().call("a:task", json!({"id": "late", "slow": true})).begin().await.unwrap();
    // The server reads the two in order.
    assert_eq!(seen(&client).await["cancelled"], json!([]));
    slow.cancel().await;
    text(&client, "a:echo").await;
    until_cancelled(&client, "late").await;
}

#[tokio::test]
async fn a_task_that_takes_too_long_times_out_is_not_asked_for_too_often_and_is_cancelled() {
    for interval in [json!(0), json!(-7), json!("soon"), json!(null), json!(1e300)] {
        let bench = Bench::new();
        let mut config = server(&["--tasks"]);
        config.timeout = Duration::from_millis(650);
        bench.add("a", config).await;
        let client = bench.client().await;
        let arguments = json!({"id": "slow", "polls": 1_000_000, "interval": interval});
        let result = client.tools().call("a:task", arguments).await.unwrap();
        assert_eq!(result.raw["_meta"]["code"], "TIMEOUT", "{}", result.raw);
        until_cancelled(&client, "slow").await;
        let polls = seen(&client).await["polls"]["slow"].as_u64().unwrap_or(0);
        assert!(polls <= 6, "{polls} with {interval}");
    }
}

#[tokio::test]
async fn a_server_that_says_no_more_of_a_task_times_out() {
    let bench = Bench::new();
    let mut config = server(&["--tasks"]);
    config.timeout = Duration::from_millis(500);
    bench.add("a", config).await;
    let client = bench.client().await;
    let result = client.tools().call("a:task", json!({"id": "silent", "end": "silence"})).await.unwrap();
    assert_eq!(result.raw["_meta"]["code"], "TIMEOUT", "{}", result.raw);
    until_cancelled(&client, "silent").await;
}

#[tokio::test]
async fn an_announced_status_is_asked_for_before_a_long_interval_is_over() {
    let bench = Bench::new();
    let mut config = server(&["--tasks"]);
    // Less than the longest interval.
    config.timeout = Duration::from_secs(4);
    bench.add("a", config).await;
    let done = call(&bench.client().await, json!({"interval": 86_400_000, "announced": true})).await;
    assert!(done.text().contains("task-1"), "{}", done.raw);
}

#[tokio::test]
async fn a_task_that_fails_or_is_cancelled_or_forgotten_is_a_tool_error_that_says_so() {
    let bench = bench(&["--tasks"]).await;
    let client = bench.client().await;
    let failed = failure(&client, json!({"end": "failed", "message": "out of paper"})).await;
    assert!(failed.contains("done"), "the stored result: {failed}");
    let lost = failure(&client, json!({"end": "lost result", "message": "out of paper"})).await;
    assert!(lost.contains("`a` failed: out of paper"), "{lost}");
    let cancelled = failure(&client, json!({"end": "cancelled", "message": "shut down"})).await;
    assert!(cancelled.contains("cancelled the task of this call: shut down"), "{cancelled}");
    let forgotten = call(&client, json!({"end": "forgotten"})).await;
    assert!(forgotten.text().contains("does not know the task"), "{}", forgotten.raw);
    assert_eq!(forgotten.raw["_meta"]["code"], "UPSTREAM_TASK_LOST");
    assert_eq!(seen(&client).await["cancelled"], json!([]), "none of them runs");
}

#[tokio::test]
async fn a_status_that_cannot_be_read_ends_the_call_and_cancels_the_task() {
    let bench = bench(&["--tasks"]).await;
    let client = bench.client().await;
    let odd = error(&client, "a:task", json!({"id": "odd", "end": "sleeping"})).await;
    assert_eq!(odd.data.as_ref().map(|data| &data["code"]), Some(&json!("UPSTREAM_BAD_ANSWER")), "{odd:?}");
    until_cancelled(&client, "odd").await;
    let broken = error(&client, "a:task", json!({"end": "broken"})).await;
    assert!(broken.message.contains("the store of tasks broke"), "{broken:?}");
}

#[tokio::test]
async fn the_status_of_another_task_is_no_answer() {
    for flags in [&["--tasks"][..], &["--tasks", "--discover"]] {
        let bench = bench(flags).await;
        let client = bench.client().await;
        let refused = error(&client, "a:task", json!({"id": "mine", "end": "another"})).await;
        assert_eq!(
            refused.data.as_ref().map(|data| &data["code"]),
            Some(&json!("UPSTREAM_BAD_ANSWER")),
            "{refused:?}"
        );
        until_cancelled(&client, "mine").await;
    }
}

#[tokio::test]
async fn an_answer_that_names_no_usable_task_is_an_error_with_none_of_its_words() {
    let bench = bench(&["--tasks"]).await;
    let client = bench.client().await;
    let cases = [
        json!({"instead": {"task": {"status": "working"}}}),
        json!({"instead": {"task": {"taskId": "", "status": "working"}}}),
        json!({"instead": {"task": {"taskId": "x", "status": ["working"]}}}),
        json!({"instead": {"some": "thing"}}),
        json!({"idBytes": 5_000_000}),
    ];
    for arguments in cases {
        let bad = error(&client, "a:task", arguments.clone()).await;
        assert_eq!(
            bad.data.as_ref().map(|data| &data["code"]),
            Some(&json!("UPSTREAM_BAD_ANSWER")),
            "{arguments}"
        );
        assert!(bad.message.len() < 300, "{}", bad.message.len());
    }
}

#[tokio::test]
async fn a_flood_of_statuses_makes_no_flood_of_requests() {
    let bench = Bench::new();
    let mut config = server(&["--tasks"]);
    config.timeout = Duration::from_millis(900);
    bench.add("a", config).await;
    let client = bench.client().await;
    let arguments = json!({"id": "loud", "flood": 20_000, "interval": 100, "polls": 1_000_000});
    let result = client.tools().call("a:task", arguments).await.unwrap();
    assert_eq!(result.raw["_meta"]["code"], "TIMEOUT", "{}", result.raw);
    until_cancelled(&client, "loud").await;
    let polls = seen(&client).await["polls"]["loud"].as_u64().unwrap_or(0);
    assert!(polls <= 9, "{polls}");
}

#[tokio::test]
async fn calls_that_are_cancelled_in_masses_leave_a_server_that_serves() {
    let bench = bench(&["--tasks"]).await;
    let (client, other) = (bench.client().await, bench.client_of("other").await);
    for number in 0..1_000 {
        let arguments = json!({"id": format!("t{number}"), "slow": true});
        client.tools().call("a:task", arguments).begin().await.unwrap().cancel().await;
    }
    assert_eq!(text(&other, "a:either").await, "either was called");
    assert!(call(&other, json!({"id": "last"})).await.text().contains("last"));
}

#[tokio::test]
async fn one_task_is_not_the_answer_to_two_calls() {
    let bench = bench(&["--tasks"]).await;
    let (one, two) = (bench.client().await, bench.client_of("other").await);
    let open = endless(&one).await;
    let refused = error(&two, "a:task", json!({"id": "endless"})).await;
    assert!(refused.message.contains("the task of another call"), "{refused:?}");
    assert_eq!(seen(&one).await["cancelled"], json!([]));
    open.cancel().await;
}

#[tokio::test]
async fn the_words_of_a_status_are_cut_and_lose_credentials() {
    let bench = bench(&["--tasks"]).await;
    let message = format!("api_key=12345 {}", "x".repeat(2_000_000));
    let shown = failure(&bench.client().await, json!({"end": "cancelled", "message": message})).await;
    assert!(!shown.contains("12345") && shown.len() < 1_000, "{}", shown.len());
}

#[tokio::test]
async fn a_task_of_the_newer_era_is_awaited_for_a_caller_that_cannot_follow_it() {
    let bench = bench(&["--tasks", "--discover"]).await;
    let client = bench.client().await;
    assert_eq!(call(&client, json!({"polls": 1, "interval": 100})).await.text(), "done by a task");
    let failed = failure(&client, json!({"end": "failed"})).await;
    assert!(failed.contains("`a` failed: out of paper"), "{failed}");
    let asks = call(&client, json!({"id": "asks", "end": "input_required"})).await;
    assert_eq!(asks.raw["_meta"]["code"], "INPUT_REQUIRED", "{}", asks.raw);
    until_cancelled(&client, "asks").await;
}

#[tokio::test]
async fn a_caller_that_declared_tasks_follows_those_of_the_newer_era_itself_and_awaits_none_of_the_older() {
    let (newer, older) = (bench(&["--tasks", "--discover"]).await, bench(&["--tasks"]).await);
    let created = call(&newer.connect(follows).await, json!({})).await;
    assert_eq!(created.raw["resultType"], "task", "{}", created.raw);
    assert!(created.raw["taskId"].as_str().is_some_and(|id| id != "task-1"), "it is sealed: {}", created.raw);
    let done = call(&older.connect(follows).await, json!({})).await;
    assert_eq!(done.raw["resultType"], "complete", "{}", done.raw);
    assert!(done.text().contains("task-1"));
}

#[tokio::test]
async fn a_task_that_nobody_could_ask_for_is_awaited_and_a_server_without_the_methods_for_it_is_named() {
    let unannounced = bench(&["--tasks", "--discover", "--unannounced"]).await;
    let done = call(&unannounced.connect(follows).await, json!({"polls": 1, "interval": 100})).await;
    assert_eq!((done.raw["resultType"].as_str(), done.text().as_str()), (Some("complete"), "done by a task"));
    for flags in [
        &["--tasks", "--no-task-methods"][..],
        &["--tasks", "--discover", "--unannounced", "--no-task-methods"],
    ] {
        let error = error(&bench(flags).await.client().await, "a:task", json!({"polls": 1})).await;
        assert_eq!((error.code, error.data.unwrap()["code"].as_str()), (-32603, Some("UPSTREAM_BAD_ANSWER")));
    }
}

/// A server over HTTP that answers with JSON, or else with events.
async fn over_http(json_answers: bool) -> UpstreamConfig {
    let answer = move |Json(message): Json<Value>| async move {
        let (id, params) = (message["id"].clone(), &message["params"]);
        let status = |status: &str| {
            json!({"taskId": "t", "status": status, "ttl": 1, "pollInterval": 100,
                "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"})
        };
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "http", "version": "1"}}),
            "tools/list" => json!({"tools": [{"name": "task", "inputSchema": {"type": "object"},
                "execution": {"taskSupport": "required"}}]}),
            "tools/call" if params["task"].is_object() => json!({"task": status("working")}),
            "tasks/get" => status("completed"),
            "tasks/result" => json!({"content": [{"type": "text", "text": "done over HTTP"}]}),
            _ if id.is_null() => return StatusCode::ACCEPTED.into_response(),
            _ => json!({"isError": true, "content": []}),
        };
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        match json_answers {
            true => Json(message).into_response(),
            false => Response::builder()
                .header("content-type", "text/event-stream")
                .body(format!("event: message\ndata: {message}\n\n").into())
                .unwrap(),
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/mcp", post(answer))).await });
    quick(UpstreamConfig::url(url))
}

#[tokio::test]
async fn tools_of_servers_over_http_run_as_tasks_too_whichever_way_they_answer() {
    for json_answers in [true, false] {
        let bench = Bench::new();
        bench.add("a", over_http(json_answers).await).await;
        assert_eq!(text(&bench.client().await, "a:task").await, "done over HTTP", "{json_answers}");
    }
}
