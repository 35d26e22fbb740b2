//! Each way a server over stdio can misbehave, and that the rest goes on.

use std::time::Duration;

use gatewright_core::{App as _, AppHealth};
use gatewright_testing::expect;
use gatewright_upstream::{Secret, UpstreamApp, UpstreamConfig};
use serde_json::json;

use crate::support::{Bench, LONG, environment, error, hanging, is_down, quick, server, text, until};

/// A server that lists the tool `x` and does `then`.
fn script(then: &str) -> UpstreamConfig {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}}, "serverInfo": {"name": "test", "version": "1"}}});
    let tools = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "x", "inputSchema": {"type": "object"}}]}});
    let script = format!("read -r _; echo '{hello}'; read -r _; read -r _; echo '{tools}'; {then}");
    let mut config = UpstreamConfig::command("sh");
    config.args = vec!["-c".to_owned(), script];
    quick(config)
}

#[tokio::test]
async fn junk_on_standard_output_is_skipped() {
    let bench = Bench::new();
    let app = bench.add("a", server(&["--junk"])).await;
    let client = bench.client().await;
    for _ in 0..5 {
        assert!(text(&client, "a:echo").await.contains("echo"));
    }
    assert_eq!(app.health(), AppHealth::Up);
}

#[tokio::test]
async fn members_of_other_kinds_of_results_change_no_result() {
    let bench = Bench::new();
    let app = bench.add("a", server(&["--extra-members"])).await;
    let client = bench.client().await;
    assert!(text(&client, "a:echo").await.contains("echo"));
    assert!(client.tools().list().await.unwrap().iter().any(|tool| tool.name == "a:count"));
    assert_eq!(app.health(), AppHealth::Up);
}

#[tokio::test]
async fn a_server_that_exits_at_once_is_down_with_its_status_and_last_words_but_not_its_secrets() {
    let mut config = server(&["--exit-at-once"]);
    config.env.insert("KEY".to_owned(), Secret::new("hunter2-hunter2"));
    let app = UpstreamApp::start("a", config, environment());
    let AppHealth::Down(why) = app.wait_ready(LONG).await else { panic!("it is up") };
    let why = why.in_full();
    assert!(why.contains("exit status: 3") && why.contains("cannot open the database"), "{why}");
    assert!(!why.contains("hunter2"), "{why}");
}

#[tokio::test]
async fn a_command_that_does_not_exist_is_named() {
    let mut config = server(&[]);
    config.command = Some("no-such-program".to_owned());
    let app = UpstreamApp::start("a", config, environment());
    let AppHealth::Down(why) = app.wait_ready(LONG).await else { panic!("it is up") };
    let why = why.in_full();
    assert!(why.contains("no-such-program") && why.contains("install it"), "{why}");
}

#[tokio::test]
async fn a_server_that_never_answers_the_handshake_is_down_in_time() {
    let mut config = server(&["--silent"]);
    config.connect_timeout = Duration::from_millis(50);
    let app = UpstreamApp::start("a", config, environment());
    let AppHealth::Down(why) = app.wait_ready(LONG).await else { panic!("it is up") };
    assert!(why.to_string().contains("connectTimeout"), "{why}");
}

#[tokio::test]
async fn a_server_that_dies_during_a_call_fails_every_open_call_and_comes_back() {
    let bench = Bench::new();
    let app = bench.add("files", server(&[])).await;
    let client = bench.client().await;
    let open = hanging(&client, "files:hang").await;
    let error = error(&client, "files:die", json!({})).await;
    assert!(
        error.message.contains("`files`") && error.message.contains("exit status: 1"),
        "{}",
        error.message
    );
    assert!(!error.message.contains("out of luck"), "{}", error.message);
    let open = open.result().await.unwrap().error.unwrap();
    assert!(open.message.contains("exit status: 1"), "{open}");
    until(&app, |health| *health == AppHealth::Up).await;
    crate::support::eventually("its tools are back", || {
        bench.registry.operator_snapshot().tool("files:echo").is_some()
    })
    .await;
    assert!(text(&client, "files:echo").await.contains("echo"));
}

#[tokio::test]
async fn a_call_that_hangs_times_out_and_is_cancelled_at_the_server() {
    let bench = Bench::new();
    let mut config = server(&[]);
    config.timeout = Duration::from_millis(200);
    bench.add("a", config).await;
    let client = bench.client().await;
    let result = client.tools().call("a:hang", json!({})).await.unwrap();
    assert_eq!(result.raw["_meta"]["code"], "TIMEOUT");
    assert_eq!(text(&client, "a:cancelled").await, "1");
}

#[tokio::test]
async fn ten_megabytes_pass_and_more_than_the_limit_is_an_error_of_that_call_only() {
    let bench = Bench::new();
    let mut config = server(&[]);
    config.max_message_bytes = 11 * 1024 * 1024;
    let app = bench.add("a", config).await;
    let client = bench.client().await;
    let big = client.tools().call("a:big", json!({"bytes": 10 * 1024 * 1024})).await.unwrap();
    assert_eq!(big.text().len(), 10 * 1024 * 1024);
    let error = error(&client, "a:big", json!({"bytes": 12 * 1024 * 1024})).await;
    assert!(error.message.contains("maxMessageBytes"), "{}", error.message);
    assert_eq!(error.data.unwrap()["code"], "UPSTREAM_TOO_LARGE");
    assert_eq!(app.health(), AppHealth::Up);
    assert!(text(&client, "a:echo").await.contains("echo"));
}

#[tokio::test]
async fn an_answer_of_too_many_values_is_an_error_of_that_call_only() {
    let bench = Bench::new();
    let mut config = server(&[]);
    config.max_message_bytes = 1_000_000;
    let app = bench.add("a", config).await;
    let client = bench.client().await;
    let error = error(&client, "a:many", json!({"items": 20_000})).await;
    assert!(error.message.contains("31250 keys and values"), "{}", error.message);
    assert_eq!(error.data.unwrap()["code"], "UPSTREAM_TOO_LARGE");
    assert_eq!(app.health(), AppHealth::Up);
    let few = client.tools().call("a:many", json!({"items": 1_000})).await.unwrap();
    assert_eq!(few.raw["structuredContent"]["a"].as_array().map(Vec::len), Some(1_000));
}

#[tokio::test]
async fn an_answer_that_is_not_mcp_is_an_error_and_not_a_hang() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = bench.client().await;
    let error = error(&client, "a:wrong", json!({})).await;
    assert_eq!(error.data.unwrap()["code"], "UPSTREAM_BAD_ANSWER");
}

#[tokio::test]
async fn tools_that_clients_cannot_read_are_mended_or_left_out_and_cost_no_other_its_place() {
    for flags in [&["--bad-schema"][..], &["--bad-schema", "--discover"]] {
        let bench = Bench::new();
        bench.add("a", server(flags)).await;
        // Its client checks every list against the schema of its revision.
        let client = bench.client().await;
        let tools = client.tools().list().await.unwrap();
        for name in ["a:echo", "a:open", "a:list", "a:hint"] {
            expect(&tools).to_contain_tool(name);
        }
        for name in ["a:broken", "a:flag", "a:text", "a:"] {
            assert!(!tools.iter().any(|tool| tool.name == name), "{name}");
        }
        assert_eq!(tools.iter().filter(|tool| tool.name == "a:echo").count(), 1);
        assert!(text(&client, "a:echo").await.contains("echo"));
        let snapshot = bench.registry.operator_snapshot();
        let mut told: Vec<_> =
            snapshot.findings("a").iter().map(|one| (one.item.as_str(), one.is_left_out)).collect();
        told.sort_unstable();
        let expected = [
            ("", true),
            ("broken", true),
            ("echo", true),
            ("flag", true),
            ("hint", false),
            ("list", false),
            ("text", true),
        ];
        assert_eq!(told, expected, "{flags:?}");
        bench.registry.shutdown().await;
    }
}

#[tokio::test]
async fn thousands_of_tools_are_paged_in_and_out() {
    let bench = Bench::new();
    bench.add("a", server(&["--tools", "3000"])).await;
    let client = bench.client().await;
    assert_eq!(client.tools().list().await.unwrap().len(), 3022);
    assert_eq!(text(&client, "a:more-02999").await, "more-02999 was called");
}

#[tokio::test]
async fn lists_over_the_limit_put_the_app_down_and_say_why() {
    let limited = |bytes: usize, flags: &[&str]| {
        let mut config = server(flags);
        config.max_catalog_bytes = bytes;
        UpstreamApp::start("a", config, environment())
    };
    let app = limited(10_000, &["--tools", "300"]);
    let AppHealth::Down(why) = app.wait_ready(LONG).await else { panic!("it is up") };
    let why = why.to_string();
    assert!(why.contains("more than 10000 bytes") && why.contains("`maxCatalogBytes`"), "{why}");
    app.shutdown().await;
    let app = limited(320_000, &["--tools", "3000"]);
    let AppHealth::Down(why) = app.wait_ready(LONG).await else { panic!("it is up") };
    assert!(why.to_string().contains("more than 10000 keys and values"), "{why}");
    app.shutdown().await;
}

#[tokio::test]
async fn lists_that_grow_over_the_limit_put_the_app_down() {
    let app = UpstreamApp::start("a", server(&["--tools", "100"]), environment());
    assert_eq!(app.wait_ready(LONG).await, AppHealth::Up);
    let mut config = server(&["--tools", "100"]);
    let catalog = app.catalog();
    let lists = json!([catalog.tools, catalog.resources, catalog.templates, catalog.prompts]);
    // Without the outer brackets and commas.
    config.max_catalog_bytes = lists.to_string().len() - 5;
    app.shutdown().await;
    let bench = Bench::new();
    let app = bench.add("a", config).await;
    text(&bench.client().await, "a:change").await;
    let AppHealth::Down(why) = until(&app, is_down).await else { unreachable!("it is down") };
    assert!(why.to_string().contains("`maxCatalogBytes`"), "{why}");
}

#[tokio::test]
async fn a_list_without_an_end_is_not_read_for_ever() {
    let app = UpstreamApp::start("a", server(&["--tools", "1000000"]), environment());
    let AppHealth::Down(why) = app.wait_ready(LONG).await else { panic!("it is up") };
    let why = why.to_string();
    assert!(why.contains("a list has more than 1000 pages") || why.contains("100000 items"), "{why}");
    app.shutdown().await;
}

#[tokio::test]
async fn calls_that_were_cancelled_do_not_wait_for_a_server_that_reads_nothing() {
    let bench = Bench::new();
    let mut config = script("exec sleep 600");
    config.timeout = Duration::from_secs(3);
    bench.add("a", config).await;
    let client = bench.client().await;
    let large = json!({"a": "x".repeat(1 << 20)});
    for _ in 0..100 {
        client.tools().call("a:x", large.clone()).begin().await.unwrap().cancel().await;
    }
    // There is room for it: it fails for another reason.
    let result = client.tools().call("a:x", json!({})).await.unwrap();
    assert_eq!(result.raw["_meta"]["code"], "TIMEOUT", "{:?}", result.error);
    bench.registry.shutdown().await;
}

#[tokio::test]
async fn a_server_that_closes_its_input_is_restarted() {
    let bench = Bench::new();
    let app = bench.add("a", script("exec sleep 600 0<&-")).await;
    let error = error(&bench.client().await, "a:x", json!({})).await;
    assert!(error.message.contains("standard input"), "{error}");
    let AppHealth::Down(why) = until(&app, is_down).await else { unreachable!("it is down") };
    assert!(why.to_string().contains("it closed its standard input"), "{why}");
    until(&app, |health| *health == AppHealth::Up).await;
    bench.registry.shutdown().await;
}

#[tokio::test]
async fn a_changed_list_is_followed_live() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let client = bench.client().await;
    let mut changes = bench.registry.changes();
    assert!(bench.registry.operator_snapshot().tool("a:new").is_none());
    text(&client, "a:change").await;
    let listed = async {
        while bench.registry.operator_snapshot().tool("a:new").is_none() {
            let _ = changes.recv().await;
        }
    };
    tokio::time::timeout(LONG, listed).await.expect("the new tool is listed");
}

#[tokio::test]
async fn one_broken_upstream_neither_hides_nor_delays_the_others() {
    let bench = Bench::new();
    let mut silent = server(&["--silent"]);
    silent.connect_timeout = Duration::from_secs(600);
    let silent = bench.start("silent", silent);
    let broken = bench.start("broken", server(&["--exit-at-once"]));
    bench.add("good", server(&[])).await;
    until(&broken, is_down).await;
    assert_eq!(silent.health(), AppHealth::Starting);
    assert!(text(&bench.client().await, "good:echo").await.contains("echo"));
    bench.registry.shutdown().await;
}

#[tokio::test]
async fn a_configuration_that_cannot_work_is_down_and_says_why() {
    let mut config = server(&[]);
    config.url = Some("http://localhost/mcp".to_owned());
    let app = UpstreamApp::start("a", config, environment());
    assert!(matches!(app.health(), AppHealth::Down(why) if why.to_string().contains("not both")));
}
