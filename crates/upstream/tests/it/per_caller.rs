//! Servers with a process for each principal or session.

use std::sync::Arc;

use gatewright_core::{App, AppOptions, PerCaller as _, Principal, ScopeRule, Scopes};
use gatewright_testing::{Mcp, Subscription};
use gatewright_upstream::{PerCallerApp, Sessions};
use serde_json::json;

use crate::support::{Bench, LONG, environment, eventually, hanging, runs, server, text};

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
async fn without_sessions_all_callers_share_one_process() {
    let bench = Bench::new();
    bench.add("a", server(&[])).await;
    let (ada, bob) = (bench.client_of("ada").await, bench.client_of("bob").await);
    let (first, of_ada) = count(&ada).await;
    assert_eq!((first, count(&bob).await), (1, (2, of_ada)));
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

const UPDATED: &str = "notifications/resources/updated";
const SHARED: &str = "file:///shared";

/// A caller with a client of each era, both of which follow the resource that everybody has by the same URI.
struct Reader {
    older: Mcp,
    newer: Mcp,
    stream: Subscription,
}

impl Reader {
    async fn of(bench: &Bench, subject: &str, client: &str) -> Self {
        let principal = Principal {
            subject: subject.into(),
            client_id: Some(client.into()),
            scopes: Scopes::parse("notes"),
            ..Principal::local()
        };
        let older = bench.connect_as(principal.clone(), |client| client).await;
        let newer = bench.connect_as(principal, |client| client.protocol_version("2026-07-28")).await;
        older.resources().subscribe(SHARED).await.unwrap();
        let stream = newer.listen(json!({"resourceSubscriptions": [SHARED]})).await.unwrap();
        assert_eq!(stream.accepted()["resourceSubscriptions"], json!([SHARED]));
        Self { older, newer, stream }
    }

    /// The server of this caller announces a change; waits until the caller has heard of `count` in all, in both eras.
    async fn announce(&self, count: usize) {
        assert_eq!(text(&self.older, "a:update").await, "updated");
        self.hears(count).await;
    }

    async fn hears(&self, count: usize) {
        for client in [&self.older, &self.newer] {
            let heard = client.notifications().wait_for(UPDATED, count, LONG).await.unwrap();
            assert!(heard.iter().all(|one| one.params["uri"] == SHARED), "{heard:?}");
        }
        self.stream.wait_for(UPDATED, LONG).await.unwrap();
    }

    fn heard(&self) -> [usize; 2] {
        [&self.older, &self.newer].map(|client| client.notifications().of(UPDATED).len())
    }
}

fn with_resources(sessions: Option<Sessions>) -> gatewright_upstream::UpstreamConfig {
    gatewright_upstream::UpstreamConfig { sessions, ..server(&["--resources"]) }
}

#[tokio::test]
async fn a_change_of_a_resource_is_heard_by_the_principal_whose_connection_announced_it_only() {
    let bench = Bench::new();
    bench.add_per_caller("a", with_resources(Some(Sessions::PerPrincipal)));
    let (ada, bob) = (Reader::of(&bench, "ada", "desk").await, Reader::of(&bench, "bob", "desk").await);
    // The same user with another client is another principal.
    let ada_at_phone = Reader::of(&bench, "ada", "phone").await;
    for count in 1..=3 {
        ada.announce(count).await;
    }
    // What is announced later is heard later: nothing of the others is still on its way.
    bob.announce(1).await;
    ada_at_phone.announce(1).await;
    assert_eq!([ada.heard(), bob.heard(), ada_at_phone.heard()], [[3, 3], [1, 1], [1, 1]]);
}

#[tokio::test]
async fn what_is_followed_at_a_shared_connection_is_followed_at_that_of_each_caller_when_it_belongs_to_them()
{
    let bench = Bench::new();
    bench.add("a", with_resources(None)).await;
    let (ada, bob) = (Reader::of(&bench, "ada", "desk").await, Reader::of(&bench, "bob", "desk").await);
    let config = with_resources(Some(Sessions::PerPrincipal));
    let own = PerCallerApp::start("a", config, environment(), None);
    bench.registry.set(vec![("a".to_owned(), own as Arc<dyn App>, AppOptions::default())]);
    for reader in [&ada, &bob] {
        // Each follows it anew when it has a connection of its own.
        while reader.heard().contains(&0) {
            assert_eq!(text(&reader.older, "a:update").await, "updated");
        }
    }
}

#[tokio::test]
async fn a_stream_has_its_callers_own_connection_made_when_the_app_belongs_to_each_caller() {
    let bench = Bench::new();
    bench.add("a", with_resources(None)).await;
    let client = bench.connect_as(Principal::local(), |client| client.protocol_version("2026-07-28")).await;
    let _stream = client.listen(json!({"resourceSubscriptions": [SHARED]})).await.unwrap();
    while client.notifications().of(UPDATED).is_empty() {
        assert_eq!(text(&client, "a:update").await, "updated");
    }
    let folder = tempfile::tempdir().unwrap();
    let asked = folder.path().join("asked");
    let config = gatewright_upstream::UpstreamConfig {
        sessions: Some(Sessions::PerPrincipal),
        ..server(&["--resources", "--deaf-later", asked.to_str().unwrap()])
    };
    let own = PerCallerApp::start("a", config, environment(), None);
    bench.registry.set(vec![("a".to_owned(), own as Arc<dyn App>, AppOptions::default())]);
    // Its client asks for nothing more.
    eventually("the caller's own server is asked for the resource", || asked.exists()).await;
}

#[tokio::test]
async fn a_change_at_a_server_with_accounts_is_heard_by_that_user_only_with_each_of_their_clients() {
    let bench = Bench::new();
    bench.add_with_tokens("a", with_resources(None));
    let (ada, bob) = (Reader::of(&bench, "ada", "desk").await, Reader::of(&bench, "bob", "desk").await);
    let ada_at_phone = Reader::of(&bench, "ada", "phone").await;
    for count in 1..=3 {
        ada.announce(count).await;
        ada_at_phone.hears(count).await;
    }
    bob.announce(1).await;
    assert_eq!([ada.heard(), ada_at_phone.heard(), bob.heard()], [[3, 3], [3, 3], [1, 1]]);
}

#[tokio::test]
async fn a_change_is_heard_by_all_who_follow_it_and_no_more_by_a_caller_who_lost_the_scope() {
    let bench = Bench::new();
    let app = bench.add("a", with_resources(None)).await;
    let ada = Reader::of(&bench, "ada", "desk").await;
    let bob = bench.client_of("bob").await;
    bob.resources().subscribe(SHARED).await.unwrap();
    let stranger = bench.client_of("eve").await;
    ada.announce(1).await;
    bob.notifications().wait_for(UPDATED, 1, LONG).await.unwrap();
    let needs = |scope: &str| AppOptions {
        resources: [(SHARED.to_owned(), ScopeRule { scopes: vec![scope.to_owned()] })].into(),
        ..AppOptions::default()
    };
    // The configuration changes while both clients of ada follow it; bob has every scope.
    for (count, (scope, of_ada)) in
        [("payroll", [1, 1]), ("notes", [2, 2]), ("payroll", [2, 2])].into_iter().enumerate()
    {
        bench.registry.set(vec![("a".to_owned(), app.clone() as Arc<dyn App>, needs(scope))]);
        text(&bob, "a:update").await;
        bob.notifications().wait_for(UPDATED, count + 2, LONG).await.unwrap();
        // The answer of each client comes behind what was sent to it before.
        if scope == "notes" {
            ada.hears(2).await;
        }
        for client in [&ada.older, &ada.newer] {
            client.tools().list().await.unwrap();
        }
        assert_eq!(ada.heard(), of_ada, "the resource needs {scope}");
    }
    assert_eq!(stranger.notifications().of(UPDATED).len(), 0, "nobody hears of what they did not ask for");
}
