//! What passes between a caller and a server during a call, in both directions.

use std::time::Duration;

use gatewright_core::App as _;
use rmcp::{
    model::{LoggingLevel, ProtocolVersion, SetLevelRequestParams},
    service::ClientLifecycleMode,
};
use serde_json::{Value, json};

use crate::support::{Bench, Client, Ears, environment, server, text_of};

#[tokio::test]
async fn progress_and_logs_reach_the_caller_in_order_and_under_its_own_token() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = bench.client().await;
    let other = bench.client().await;
    let call = client.begin("a:steps", json!({})).await;
    let token = call.progress_token.0.clone();
    call.await_response().await.unwrap();
    let mut heard = client.heard.count(6).await;
    // Each message is handled in a task of its own by the client library: only the set is certain there.
    heard.sort();
    let expected: Vec<String> = ["log \"step 1\"", "log \"step 2\"", "log \"step 3\""]
        .map(str::to_owned)
        .into_iter()
        .chain((1..=3).map(|step| format!("progress {step} of {token}")))
        .collect();
    assert_eq!(heard, expected);
    assert!(other.heard.all().is_empty());
}

#[tokio::test]
async fn a_caller_hears_only_the_log_level_it_asked_for_and_the_server_is_told() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = bench.client().await;
    client.peer().set_level(SetLevelRequestParams::new(LoggingLevel::Error)).await.unwrap();
    client.text("a:steps").await;
    assert_eq!(client.text("a:level").await, "\"error\"");
    assert!(!client.heard.count(3).await.iter().any(|heard| heard.starts_with("log")));
}

#[tokio::test]
async fn elicitation_sampling_and_roots_reach_the_caller_and_return() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = bench.client().await;
    assert!(client.text("a:elicit").await.contains("Ada"));
    assert!(client.text("a:sample").await.contains("a sample"));
    assert!(client.text("a:roots").await.contains("roots"));
}

#[tokio::test]
async fn a_caller_without_the_capability_is_not_asked_and_the_server_is_told() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let deaf = Ears { capabilities: false, ..Ears::default() };
    let client = bench.connect(deaf, ClientLifecycleMode::Initialize).await;
    assert!(client.text("a:elicit").await.contains("no `elicitation` capability"));
    assert!(client.text("a:sample").await.contains("no `sampling` capability"));
    assert!(client.heard.all().is_empty());
}

#[tokio::test]
async fn a_caller_of_the_newer_era_calls_an_older_server_and_cannot_be_asked_by_it() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
    let client = bench.connect(Ears::default(), lifecycle).await;
    assert!(client.text("a:elicit").await.contains("2026-07-28"));
    // The keys of the caller's own connection stay behind, and without `logLevel` there are no logs.
    assert!(!client.text("a:echo").await.contains("io.modelcontextprotocol"));
    client.text("a:steps").await;
    assert!(!client.heard.count(3).await.iter().any(|heard| heard.starts_with("log")));
}

#[tokio::test]
async fn a_server_that_knows_only_the_newer_era_is_reached() {
    let bench = Bench::new();
    bench.add("a", server(&["--discover"])).await;
    let client = bench.client().await;
    let echo: Value = serde_json::from_str(&client.text("a:echo").await).unwrap();
    assert_eq!(echo["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    // This caller cannot answer `input_required`: the server must not think so.
    assert_eq!(echo["_meta"]["io.modelcontextprotocol/clientCapabilities"], json!({}));
}

#[tokio::test]
async fn a_question_without_an_owner_is_refused_and_calls_take_turns_afterwards() {
    let bench = Bench::new();
    let mut config = server(&[]);
    config.timeout = Duration::from_secs(20);
    bench.add("a", config).await;
    let (one, two) = (bench.client().await, bench.client().await);
    let open = one.begin("a:hang", json!({})).await;
    one.heard.count(1).await;
    assert!(two.text("a:elicit").await.contains("take turns"));
    assert!(two.heard.all().is_empty() && one.heard.all().len() == 1);
    open.cancel(None).await.unwrap();
    let both = futures::future::join(one.text("a:elicit"), two.text("a:elicit")).await;
    assert!(both.0.contains("Ada") && both.1.contains("Ada"), "{both:?}");
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_the_server() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = bench.client().await;
    let open = client.begin("a:hang", json!({})).await;
    client.heard.count(1).await;
    open.cancel(Some("enough".to_owned())).await.unwrap();
    let told = async {
        while client.text("a:cancelled").await != "1" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::support::LONG, told).await.expect("the server is told");
}

#[tokio::test]
async fn more_calls_than_fit_wait_for_a_place() {
    let bench = Bench::new();
    let mut config = server(&[]);
    config.max_concurrency = 1;
    config.timeout = Duration::from_millis(300);
    bench.add("a", config).await;
    let client = bench.client().await;
    let open = client.begin("a:hang", json!({})).await;
    client.heard.count(1).await;
    // The place is taken for 300 ms, and the wait for it counts.
    let waited = client.call("a:echo", json!({})).await.unwrap();
    let code = waited.structured_content.as_ref().map(|content| content["code"].clone());
    assert!(code == Some(json!("TIMEOUT")) || text_of(&waited).contains("echo"), "{code:?}");
    let _ = open.await_response().await;
    assert!(client.text("a:echo").await.contains("echo"));
}

#[tokio::test]
async fn a_server_sees_only_the_environment_it_is_given() {
    let bench = Bench::new();
    let mut config = server(&[]);
    config.env.insert("OWN".to_owned(), gatewright_upstream::Secret::new("x"));
    bench.add("a", config).await;
    assert!(environment().contains_key("GATEWAY_SECRET"));
    assert_eq!(bench.client().await.text("a:env").await, "OWN PATH");
}

#[tokio::test]
async fn a_log_level_asked_for_earlier_holds_after_a_restart() {
    let bench = Bench::new();
    let app = bench.add("a", server(&[])).await;
    let client: Client = bench.client().await;
    app.set_level(LoggingLevel::Warning).await.unwrap();
    let _ = client.call("a:die", json!({})).await;
    let told = async {
        loop {
            if let Ok(result) = client.call("a:level", json!({})).await
                && text_of(&result) == "\"warning\""
            {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::support::LONG, told).await.expect("the level is set again");
}
