//! Clients that ask while apps are making their first connection.

use std::time::Duration;

use gatewright_core::{App as _, AppHealth};
use serde_json::json;

use crate::support::{Bench, server, text};

#[tokio::test]
async fn a_client_that_lists_or_calls_at_once_waits_for_the_first_connection() {
    let bench = Bench::new();
    bench.start("a", server(&[]));
    let listed = bench.client().await.tools().list().await.unwrap();
    assert!(listed.iter().any(|tool| tool.name == "a:echo"), "{} tools", listed.len());
    let bench = Bench::new();
    bench.start("a", server(&[]));
    assert!(text(&bench.client().await, "a:echo").await.contains("echo"));
}

#[tokio::test(start_paused = true)]
async fn the_wait_ends_and_apps_that_are_not_there_are_named() {
    let bench = Bench::new();
    let mut silent = server(&["--silent"]);
    silent.connect_timeout = Duration::from_secs(600);
    let silent = bench.start("silent", silent);
    let mut broken = server(&[]);
    broken.url = Some("http://localhost/mcp".to_owned());
    bench.start("broken", broken);
    let client = bench.client().await;
    client.tools().list().await.unwrap();
    assert_eq!(silent.health(), AppHealth::Starting);
    for (tool, code) in [("silent:x", "UPSTREAM_STARTING"), ("broken:x", "UPSTREAM_DOWN")] {
        let refused = client.tools().call(tool, json!({})).await.unwrap();
        assert!(refused.is_error, "{tool}");
        let said = refused.raw.to_string();
        assert!(said.contains(code) && !said.contains("does not exist"), "{said}");
    }
    bench.registry.shutdown().await;
}
