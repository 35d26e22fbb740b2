//! Messages between a caller and a server during a call, in both directions.

use std::time::Duration;

use gatewright_testing::{Mcp, McpBuilder, RpcRequest};
use gatewright_upstream::Sessions;
use serde_json::{Value, json};

use crate::support::{Bench, LONG, environment, hanging, sent_requests, server, text};

/// A client of the newer era.
fn newer(client: McpBuilder) -> McpBuilder {
    client.protocol_version("2026-07-28")
}

#[tokio::test]
async fn progress_and_logs_reach_the_caller_in_order_and_under_its_own_token() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = bench.client().await;
    let other = bench.client().await;
    let steps = client.tools().call("a:steps", json!({})).progress("mine").await.unwrap();
    client.notifications().wait_for("notifications/message", 3, LONG).await.unwrap();
    client.notifications().wait_for("notifications/progress", 3, LONG).await.unwrap();
    let heard: Vec<Value> = client.notifications().all().into_iter().map(|one| one.params).collect();
    let expected: Vec<Value> = (1..=3)
        .flat_map(|step| {
            [
                json!({"progressToken": "mine", "progress": f64::from(step), "total": 3.0}),
                json!({"level": "info", "data": format!("step {step}")}),
            ]
        })
        .collect();
    assert_eq!(heard, expected);
    assert_eq!(steps.progress(), [1.0, 2.0, 3.0]);
    assert!(other.notifications().all().is_empty());
}

async fn set_level(client: &Mcp, level: &str) {
    let set = RpcRequest::new("logging/setLevel", json!({"level": level}));
    assert_eq!(client.raw().request(set).await.unwrap().error(), None);
}

/// Calls the tool that logs at `info`; the number of messages that reached the caller.
async fn logs_of_steps(client: &Mcp) -> usize {
    client.logs().clear();
    client.notifications().clear();
    client.tools().call("a:steps", json!({})).progress(1).await.unwrap();
    client.notifications().wait_for("notifications/progress", 3, LONG).await.unwrap();
    client.logs().all().len()
}

#[tokio::test]
async fn a_caller_hears_only_the_log_level_it_asked_for_and_others_hear_what_they_did_before() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let (client, other) = (bench.client().await, bench.client().await);
    set_level(&client, "error").await;
    assert_eq!(text(&other, "a:level").await, "null", "the server they share is not told");
    assert_eq!(logs_of_steps(&client).await, 0);
    assert_eq!(logs_of_steps(&other).await, 3);
    set_level(&other, "emergency").await;
    set_level(&client, "debug").await;
    assert_eq!((logs_of_steps(&client).await, logs_of_steps(&other).await), (3, 0));
}

#[tokio::test]
async fn a_shared_server_is_asked_for_the_most_verbose_level_until_its_session_ends() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let (client, other) = (bench.client().await, bench.client().await);
    set_level(&client, "debug").await;
    set_level(&other, "error").await;
    assert_eq!(text(&other, "a:level").await, "\"debug\"");
    client.disconnect().await;
    drop(client);
    let lowered = async {
        while text(&other, "a:level").await != "\"info\"" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, lowered).await.expect("the level is taken back");
}

#[tokio::test]
async fn a_server_of_one_session_is_told_exactly_its_level() {
    let bench = Bench::new();
    let mut config = server(&[]);
    config.sessions = Some(Sessions::PerSession);
    bench.add_per_caller("a", config);
    let client = bench.client().await;
    // The connection begins with the first list.
    client.tools().list().await.unwrap();
    set_level(&client, "error").await;
    assert_eq!(text(&client, "a:level").await, "\"error\"");
}

#[tokio::test]
async fn elicitation_sampling_and_roots_reach_the_caller_and_return() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = bench.client().await;
    assert!(text(&client, "a:elicit").await.contains("Ada"));
    assert!(text(&client, "a:sample").await.contains("a sample"));
    assert!(text(&client, "a:roots").await.contains("roots"));
}

#[tokio::test]
async fn a_caller_without_the_capability_is_not_asked_and_the_server_is_told() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = bench.connect(|client| client.capabilities(json!({}))).await;
    assert!(text(&client, "a:elicit").await.contains("no `elicitation` capability"));
    assert!(text(&client, "a:sample").await.contains("no `sampling` capability"));
    assert!(client.server_requests().is_empty());
}

#[tokio::test]
async fn roots_are_those_of_the_caller_and_a_caller_that_cannot_be_asked_has_none() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let (ada, bob) = (bench.client_of("ada").await, bench.client_of("bob").await);
    ada.set_roots(vec![json!({"uri": "file:///w/ada", "name": "hers"})]);
    bob.set_roots(vec![json!({"uri": "file:///w/bob"})]);
    let roots =
        async |client: &Mcp| -> Value { serde_json::from_str(&text(client, "a:roots").await).unwrap() };
    assert_eq!(roots(&ada).await, json!({"roots": [{"uri": "file:///w/ada", "name": "hers"}]}));
    assert_eq!(roots(&bob).await, json!({"roots": [{"uri": "file:///w/bob"}]}));
    let without = bench.connect(|client| client.capabilities(json!({}))).await;
    let stateless = bench.connect(newer).await;
    for client in [&without, &stateless] {
        assert_eq!(roots(client).await, json!({"roots": []}));
        assert!(sent_requests(client).is_empty());
    }
}

#[tokio::test]
async fn a_caller_of_the_newer_era_calls_an_older_server() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = bench.connect(newer).await;
    // The keys of the caller's own connection stay behind, and without `logLevel` there are no logs.
    assert!(!text(&client, "a:echo").await.contains("io.modelcontextprotocol"));
    client.tools().call("a:steps", json!({})).progress(1).await.unwrap();
    client.notifications().wait_for("notifications/progress", 3, LONG).await.unwrap();
    assert!(client.logs().all().is_empty());
}

#[tokio::test]
async fn a_server_that_knows_only_the_newer_era_is_reached() {
    let bench = Bench::new();
    bench.add("a", server(&["--discover"])).await;
    let client = bench.client().await;
    let echo: Value = serde_json::from_str(&text(&client, "a:echo").await).unwrap();
    assert_eq!(echo["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    // The gateway asks the caller what the server may ask with its answer, and awaits tasks.
    let capabilities = &echo["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    let questions = json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}});
    for (kind, wanted) in questions.as_object().unwrap() {
        assert_eq!(capabilities[kind], *wanted, "{capabilities}");
    }
    assert_eq!(capabilities["extensions"], json!({"io.modelcontextprotocol/tasks": {}}));
    let without = bench.connect(|client| client.capabilities(json!({}))).await;
    let echo: Value = serde_json::from_str(&text(&without, "a:echo").await).unwrap();
    let capabilities = &echo["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(*capabilities, json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}));
}

#[tokio::test]
async fn a_question_without_an_owner_is_refused_and_calls_take_turns_afterwards() {
    let bench = Bench::new();
    let mut config = server(&[]);
    config.timeout = Duration::from_secs(20);
    bench.add("a", config).await;
    let (one, two) = (bench.client().await, bench.client().await);
    let open = hanging(&one, "a:hang").await;
    assert!(text(&two, "a:elicit").await.contains("take turns"));
    assert!(two.server_requests().is_empty() && one.server_requests().is_empty());
    open.cancel().await;
    let both = futures::future::join(text(&one, "a:elicit"), text(&two, "a:elicit")).await;
    assert!(both.0.contains("Ada") && both.1.contains("Ada"), "{both:?}");
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_the_server() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = bench.client().await;
    hanging(&client, "a:hang").await.cancel().await;
    let told = async {
        while text(&client, "a:cancelled").await != "1" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, told).await.expect("the server is told");
}

#[tokio::test]
async fn more_calls_than_fit_wait_for_a_place() {
    let bench = Bench::new();
    let mut config = server(&[]);
    config.max_concurrency = 1;
    config.timeout = Duration::from_millis(300);
    bench.add("a", config).await;
    let client = bench.client().await;
    let open = hanging(&client, "a:hang").await;
    // The place is taken for 300 ms, and the wait for it counts.
    let waited = client.tools().call("a:echo", json!({})).await.unwrap();
    let code = &waited.raw["_meta"]["code"];
    assert!(code == "TIMEOUT" || waited.text().contains("echo"), "{code:?}");
    let _ = open.result().await;
    assert!(text(&client, "a:echo").await.contains("echo"));
}

#[tokio::test]
async fn a_server_sees_only_the_environment_it_is_given() {
    let bench = Bench::new();
    let mut config = server(&[]);
    config.env.insert("OWN".to_owned(), gatewright_upstream::Secret::new("x"));
    bench.add("a", config).await;
    assert!(environment().contains_key("GATEWAY_SECRET"));
    assert_eq!(text(&bench.client().await, "a:env").await, "OWN PATH");
}

#[tokio::test]
async fn a_log_level_asked_for_earlier_holds_after_a_restart() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = bench.client().await;
    set_level(&client, "debug").await;
    let _ = client.tools().call("a:die", json!({})).await;
    let told = async {
        loop {
            if client.tools().call("a:level", json!({})).await.is_ok_and(|level| level.text() == "\"debug\"")
            {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, told).await.expect("the level is set again");
}
