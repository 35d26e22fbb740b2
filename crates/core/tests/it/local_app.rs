//! Apps in the process: listed, followed, named and ended.

use std::{sync::Arc, time::Duration};

use gatewright_core::{App, AppOptions, Audience, Change, LocalApp, Registry, ToolNames};
use tokio::sync::broadcast::error::RecvError;

use crate::support::Handler;

async fn registry(names: ToolNames, apps: &[(&str, &Handler, AppOptions)]) -> Arc<Registry> {
    let registry = Registry::new(names);
    for (id, handler, options) in apps {
        let app = LocalApp::start((*handler).clone()).await.unwrap();
        registry.add(id, Arc::new(app), options.clone());
    }
    registry
}

fn names(registry: &Registry) -> Vec<String> {
    registry.operator_snapshot().tools.iter().map(|tool| tool.tool.name.to_string()).collect()
}

#[tokio::test]
async fn tools_get_their_apps_name_in_a_fixed_order() {
    let (b, a) = (Handler::with(&["two", "one"]), Handler::with(&["x"]));
    let registry =
        registry(ToolNames::Colon, &[("b", &b, AppOptions::default()), ("a", &a, AppOptions::default())])
            .await;
    assert_eq!(names(&registry), ["a:x", "b:one", "b:two"]);
    assert!(registry.operator_snapshot().tool("b_one").is_some(), "the other spelling is accepted");
}

#[tokio::test]
async fn underscore_names_that_would_collide_stay_apart() {
    let (a, b) = (Handler::with(&["b_c"]), Handler::with(&["c"]));
    let registry = registry(
        ToolNames::Underscore,
        &[("a", &a, AppOptions::default()), ("a_b", &b, AppOptions::default())],
    )
    .await;
    // The second one ends with digits of a hash of `a_b:c`.
    let names = names(&registry);
    assert_eq!(names, ["a_b_c", "a_b_c_b42d7d0b"]);
    let snapshot = registry.operator_snapshot();
    assert_eq!(&*snapshot.tool("a_b_c").unwrap().name, "a:b_c");
    assert_eq!(&*snapshot.tool("a_b_c_b42d7d0b").unwrap().name, "a_b:c");
}

#[tokio::test]
async fn without_prefix_the_first_app_keeps_a_shared_name() {
    let (a, b) = (Handler::with(&["same", "only_a"]), Handler::with(&["same"]));
    let plain = AppOptions { prefix: false, ..AppOptions::default() };
    let registry = registry(ToolNames::Colon, &[("a", &a, plain.clone()), ("b", &b, plain)]).await;
    assert_eq!(names(&registry), ["only_a", "same"]);
    let snapshot = registry.operator_snapshot();
    assert_eq!(&*snapshot.tool("same").unwrap().app_id, "a");
    let [left_out] = snapshot.findings("b") else { panic!("{:?}", snapshot.findings("b")) };
    assert!(left_out.item == "same" && left_out.problem.contains("`a`"), "{left_out:?}");
}

#[tokio::test]
async fn without_prefix_no_app_offers_names_that_begin_with_the_id_of_another() {
    let own = [
        "b:one", "b_one", "b.one", "b/one", "b one", "c.d:one", "c_d_one", "c.d.one", "a:own", "a_own",
        "bare", "b", "b-one", "c.down",
    ];
    let (a, b) = (Handler::with(&own), Handler::with(&["one"]));
    let plain = AppOptions { prefix: false, ..AppOptions::default() };
    for (first, names_of_tools) in [("a", ToolNames::Colon), ("z", ToolNames::Underscore)] {
        let apps = [(first, &a, plain.clone()), ("b", &b, AppOptions::default())];
        let registry = registry(names_of_tools, &apps).await;
        // An app that offers nothing now, as one that is down.
        let none = LocalApp::start(Handler::with(&[])).await.unwrap();
        registry.add("c.d", Arc::new(none), AppOptions::default());
        let snapshot = registry.operator_snapshot();
        let owners: Vec<(&str, &str)> =
            snapshot.tools.iter().map(|tool| (&*tool.name, &*tool.app_id)).collect();
        let expected = ["a:own", "a_own", "b", "b-one", "b:one", "bare", "c.down"];
        let expected = expected.map(|name| (name, if name == "b:one" { "b" } else { first }));
        assert_eq!(owners, expected);
        assert_eq!(&*snapshot.tool("b_one").unwrap().app_id, "b");
        assert!(snapshot.tool("c.d:one").is_none() && snapshot.tool("c_d_one").is_none());
        assert_eq!(snapshot.findings(first).len(), own.len() - expected.len() + 1);
    }
}

#[tokio::test]
async fn a_change_of_a_list_is_followed_and_told() {
    let handler = Handler::with(&["one"]);
    let registry = registry(ToolNames::Colon, &[("a", &handler, AppOptions::default())]).await;
    let mut changes = registry.changes();
    handler.tools.lock().unwrap().push("two".to_owned());
    handler.announce().await;
    let change = tokio::time::timeout(Duration::from_secs(10), changes.recv()).await.unwrap().unwrap();
    assert_eq!((change.change, change.audience), (Change::Tools, Audience::Everyone));
    assert_eq!(names(&registry), ["a:one", "a:two"]);
}

#[tokio::test]
async fn updates_of_resources_are_no_changes_of_lists_however_many_there_are() {
    let handler = Handler::with(&["one"]);
    let registry = registry(ToolNames::Colon, &[("a", &handler, AppOptions::default())]).await;
    let (mut changes, mut updates) = (registry.changes(), registry.updates());
    handler.announce_updates(1_000).await;
    // Some of them may be missed by whoever does not keep up.
    let update = loop {
        match tokio::time::timeout(Duration::from_secs(10), updates.recv()).await.unwrap() {
            Err(RecvError::Lagged(_)) => {}
            update => break update.unwrap(),
        }
    };
    assert_eq!((&*update.app, &*update.uri, update.audience), ("a", "x://1", Audience::Everyone));
    handler.tools.lock().unwrap().push("two".to_owned());
    handler.announce().await;
    let change = tokio::time::timeout(Duration::from_secs(10), changes.recv()).await.unwrap().unwrap();
    assert_eq!(change.change, Change::Tools);
    assert!(changes.is_empty());
}

#[tokio::test]
async fn shutdown_ends_every_app() {
    let handler = Handler::with(&["one"]);
    let registry = registry(ToolNames::Colon, &[("a", &handler, AppOptions::default())]).await;
    tokio::time::timeout(Duration::from_secs(10), registry.shutdown()).await.expect("it ends");
    let app = LocalApp::start(handler).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), app.shutdown()).await.expect("it ends");
}
