//! Updates of resources, and subscriptions that come back after a restart.

use std::sync::Arc;

use gatewright_core::{App as _, AppEvent, AppHealth};
use serde_json::json;

use crate::support::{Bench, LONG, error, eventually, server, text, until};

const SHARED: &str = "file:///shared";

#[tokio::test]
async fn a_flood_of_updates_tells_few_and_only_those_who_follow_the_resource() {
    let bench = Bench::new();
    let app = bench.add("a", server(&["--resources"])).await;
    let (client, stranger) = (bench.client().await, bench.client_of("eve").await);
    client.resources().subscribe(SHARED).await.unwrap();
    let (mut events, before) = (app.events(), bench.registry.operator_snapshot());
    assert_eq!(text(&client, "a:flood").await, "flooded");
    client.notifications().wait_for("notifications/resources/updated", 1, LONG).await.unwrap();
    // A receiver that misses events gets an error.
    let told: Vec<_> = std::iter::from_fn(|| match events.try_recv() {
        Err(tokio::sync::broadcast::error::TryRecvError::Empty) => None,
        event => Some(event.expect("few events")),
    })
    .collect();
    let is_shared = |event: &AppEvent| matches!(event, AppEvent::ResourceUpdated(uri, _) if **uri == *SHARED);
    assert!(!told.is_empty() && told.iter().all(is_shared), "{told:?}");
    for client in [&client, &stranger] {
        client.tools().list().await.unwrap();
        assert_eq!(client.notifications().of("notifications/tools/list_changed").len(), 0);
    }
    assert!(Arc::ptr_eq(&before, &bench.registry.operator_snapshot()), "nothing is made anew");
    assert_eq!(stranger.notifications().of("notifications/resources/updated").len(), 0);
    bench.registry.shutdown().await;
}

#[tokio::test]
async fn a_restarted_server_that_answers_no_subscription_has_its_lists_followed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deaf").display().to_string();
    let bench = Bench::new();
    let app = bench.add("a", server(&["--resources", "--deaf-later", &file])).await;
    let client = bench.client().await;
    client.resources().subscribe(SHARED).await.unwrap();
    error(&client, "a:die", json!({})).await;
    until(&app, |health| *health == AppHealth::Up).await;
    let changing = async {
        loop {
            let changed = client.tools().call("a:change", json!({})).await.unwrap();
            if changed.error.is_none() && changed.text() == "changed" {
                break;
            }
        }
    };
    tokio::time::timeout(LONG, changing).await.expect("the tools are back");
    eventually("the new tool is listed", || bench.registry.operator_snapshot().tool("a:new").is_some()).await;
    bench.registry.shutdown().await;
}
