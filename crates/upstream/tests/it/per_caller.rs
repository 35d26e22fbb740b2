//! Servers with a process for each principal or session.

use gatewright_core::{App, PerCaller as _};
use gatewright_testing::Mcp;
use gatewright_upstream::Sessions;
use serde_json::json;

use crate::support::{Bench, LONG, eventually, hanging, runs, server, text};

/// The count of this caller's process, and its id.
async fn count(client: &Mcp) -> (u64, u32) {
    let answer = text(client, "a:count").await;
    let (count, pid) = answer.split_once(' ').unwrap();
    (count.parse().unwrap(), pid.parse().unwrap())
}

fn sessions(sessions: Sessions) -> gatewright_upstream::UpstreamConfig {
    gatewright_upstream::UpstreamConfig { sessions: Some(sessions), ..server(&[]) }
}

async fn names(client: &Mcp) -> Vec<String> {
    client.tools().list().await.unwrap().into_iter().map(|tool| tool.name).collect()
}

#[tokio::test]
async fn principals_share_one_process_with_themselves_only() {
    let bench = Bench::new();
    bench.add_per_caller("a", sessions(Sessions::PerPrincipal));
    let (ada, bob, ada_again) =
        (bench.client_of("ada").await, bench.client_of("bob").await, bench.client_of("ada").await);
    let (first, of_ada) = count(&ada).await;
    let (second, of_bob) = count(&bob).await;
    assert_eq!((first, second), (1, 1), "nobody sees what the other left there");
    assert_ne!(of_ada, of_bob);
    assert_eq!(count(&ada_again).await, (2, of_ada));
}

#[tokio::test]
async fn a_session_has_a_process_of_its_own_that_ends_with_it() {
    let bench = Bench::new();
    bench.add_per_caller("a", sessions(Sessions::PerSession));
    let (one, two) = (bench.client_of("ada").await, bench.client_of("ada").await);
    let (first, of_one) = count(&one).await;
    let (second, of_two) = count(&two).await;
    assert_eq!((first, second), (1, 1));
    assert_ne!(of_one, of_two);
    one.disconnect().await;
    eventually("the process of the session that ended is gone", || !runs(of_one)).await;
    assert_eq!(count(&two).await, (2, of_two), "the other one goes on");
}

#[tokio::test]
async fn beyond_the_most_sessions_the_idle_one_ends_and_none_in_use() {
    let bench = Bench::new();
    let mut config = sessions(Sessions::PerPrincipal);
    config.max_sessions = Some(1);
    bench.add_per_caller("a", config);
    let (ada, bob) = (bench.client_of("ada").await, bench.client_of("bob").await);
    let (_, of_ada) = count(&ada).await;
    let (_, of_bob) = count(&bob).await;
    eventually("the idle one made room", || !runs(of_ada)).await;
    let open = hanging(&bob, "a:hang").await;
    let listed = names(&ada).await;
    assert!(listed.is_empty(), "no place, no tools: {listed:?}");
    let refused = ada.tools().call("a:count", json!({})).await.unwrap();
    assert!(refused.raw.to_string().contains("UPSTREAM_DOWN"), "{:?}", refused.raw);
    assert!(refused.text().contains("`maxSessions`"), "{}", refused.text());
    let unread = ada.resources().read("file:///a").await.unwrap_err().to_string();
    assert!(unread.contains("app `a` is busy"), "{unread}");
    assert!(runs(of_bob), "the one in use stays");
    open.cancel().await;
}

#[tokio::test]
async fn what_one_caller_is_offered_and_told_is_no_other_callers() {
    let bench = Bench::new();
    let app = bench.add_per_caller("a", sessions(Sessions::PerPrincipal));
    let (ada, bob) = (bench.client_of("ada").await, bench.client_of("bob").await);
    let before = names(&bob).await;
    assert!(before.contains(&"a:count".to_owned()) && !before.contains(&"a:new".to_owned()));
    text(&ada, "a:change").await;
    let told = "notifications/tools/list_changed";
    let of_ada = async {
        while !names(&ada).await.contains(&"a:new".to_owned()) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, of_ada).await.expect("ada is offered the new tool");
    assert_eq!(names(&bob).await, before, "bob is not");
    let refused = bob.tools().call("a:new", json!({})).await.unwrap();
    assert!(refused.error.is_some_and(|error| error.message.contains("does not exist")));
    // Each was told when its own connection came, and ada when it changed.
    ada.notifications().wait_for(told, 2, LONG).await.unwrap();
    names(&bob).await;
    assert_eq!(bob.notifications().of(told).len(), 1);
    assert!(
        App::catalog(&*app).tools.is_empty() && app.per_caller().is_some(),
        "everybody is offered nothing"
    );
    assert!(!app.supports_tasks());
}
