//! Endpoints beside the main one: their paths, sessions, scopes and streams.

use std::{collections::BTreeMap, sync::Arc};

use futures::StreamExt as _;
use gatewright_core::EndpointConfig;
use gatewright_testing::{Mcp, expect};
use serde_json::{Value, json};

use crate::support::{Believing, PATIENCE, Rig, answer, message, refused, start, start_with};

fn set(rig: &Rig, endpoints: Value) {
    let endpoints: BTreeMap<String, EndpointConfig> = serde_json::from_value(endpoints).unwrap();
    rig.gateway.registry().set_endpoints(&endpoints);
}

/// The same server, at the endpoint `name`.
fn at(rig: &Rig, name: &str) -> Rig {
    Rig {
        base: rig.base.clone(),
        url: format!("{}/{name}", rig.url),
        http: rig.http.clone(),
        gateway: rig.gateway.clone(),
        tools: rig.tools.clone(),
        occupancy: rig.occupancy.clone(),
        shutdown: Default::default(),
        served: None,
    }
}

async fn names(mcp: &Mcp) -> Vec<String> {
    mcp.tools().list().await.unwrap().iter().map(|tool| tool.name.to_string()).collect()
}

#[tokio::test]
async fn each_endpoint_is_served_below_the_main_one_in_both_eras_with_its_own_tools() {
    let rig = start(json!({})).await;
    set(&rig, json!({"talk": {"tools": ["app:echo"]}, "who": {"apps": ["app"], "exclude": ["app:*e*"]}}));
    for version in ["2026-07-28", "2025-11-25"] {
        for (name, tools) in [("talk", &["app:echo"] as &[&str]), ("who", &["app:wait", "app:whoami"])] {
            let mcp = at(&rig, name).client().protocol_version(version).connect().await.unwrap();
            assert_eq!(names(&mcp).await, tools, "{name} {version}");
        }
        let mcp = at(&rig, "talk").client().protocol_version(version).connect().await.unwrap();
        expect(&mcp.tools().call("app:echo", json!({})).await.unwrap()).to_be_successful();
        let hidden = mcp.tools().call("app:whoami", json!({})).await.unwrap();
        expect(&hidden).to_be_error();
        assert_eq!(names(&rig.client().protocol_version(version).connect().await.unwrap()).await.len(), 4);
    }
    for path in ["nobody", "talk/", "talk/x"] {
        let nothing = at(&rig, path).initialize().send().await.unwrap();
        assert_eq!(nothing.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn a_session_of_one_endpoint_is_unknown_at_every_other() {
    let rig = start_with(json!({}), |builder| builder.authenticator(Arc::new(Believing))).await;
    set(&rig, json!({"a": {"apps": ["app"]}, "b": {"apps": ["app"]}}));
    let (a, b) = (at(&rig, "a"), at(&rig, "b"));
    let (of_main, of_a) = (rig.open("ann").await, a.open("ann").await);
    let list = |rig: &Rig, id: &str| rig.in_session(id, "tools/list", json!({})).bearer_auth("ann");
    for (rig, id) in [(&rig, &of_a), (&b, &of_a), (&a, &of_main), (&b, &of_main)] {
        assert_eq!(refused(list(rig, id)).await.0, 404, "{}", rig.url);
        let get = rig.http.get(&rig.url).header("accept", "text/event-stream").header("mcp-session-id", id);
        assert_eq!(refused(get.bearer_auth("ann")).await.0, 404, "{}", rig.url);
        let delete = rig.http.delete(&rig.url).header("mcp-session-id", id);
        assert_eq!(refused(delete.bearer_auth("ann")).await.0, 404, "{}", rig.url);
    }
    for (rig, id) in [(&rig, &of_main), (&a, &of_a)] {
        assert_eq!(list(rig, id).send().await.unwrap().status(), 200, "{}", rig.url);
    }
}

#[tokio::test]
async fn a_caller_without_the_scopes_of_an_endpoint_gets_403_for_everything_there() {
    let rig = start_with(json!({}), |builder| builder.authenticator(Arc::new(Believing))).await;
    set(
        &rig,
        json!({"desk": {"apps": ["app"], "scopes": ["crm:read"]}, "boss": {"apps": ["app"], "scopes": ["boss"]}}),
    );
    let boss = at(&rig, "boss");
    let listing = |rig: &Rig| rig.modern("tools/list", json!({})).bearer_auth("ann");
    let response = listing(&boss).send().await.unwrap();
    assert_eq!(response.status(), 403);
    let challenge = response.headers()["www-authenticate"].to_str().unwrap().to_owned();
    assert!(challenge.contains(r#"scope="boss""#), "{challenge}");
    assert_eq!(answer(response).await["error"]["code"], -32001);
    let get = boss.http.get(&boss.url).header("accept", "text/event-stream").bearer_auth("ann");
    assert_eq!(refused(get).await.0, 403);
    assert_eq!(refused(boss.initialize().bearer_auth("ann")).await.0, 403);
    assert_eq!(listing(&at(&rig, "desk")).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_removed_endpoint_ends_its_streams_and_answers_404() {
    let rig = start(json!({})).await;
    set(&rig, json!({"a": {"apps": ["app"]}, "b": {"apps": ["app"]}}));
    let (a, b) = (at(&rig, "a"), at(&rig, "b"));
    let stream = async |rig: &Rig| {
        let id = rig.open("x").await;
        let get = rig.http.get(&rig.url).header("accept", "text/event-stream").header("mcp-session-id", &id);
        let response = get.header("mcp-protocol-version", "2025-11-25").send().await.unwrap();
        assert_eq!(response.status(), 200);
        (id, response.bytes_stream())
    };
    let ((id, mut ends), (kept, _goes_on)) = (stream(&a).await, stream(&b).await);
    set(&rig, json!({"b": {"apps": ["app"]}}));
    let end = async { while ends.next().await.is_some() {} };
    tokio::time::timeout(PATIENCE, end).await.expect("the stream ends");
    let gone = a.in_session(&id, "tools/list", json!({})).send().await.unwrap();
    assert_eq!(gone.status(), 404);
    assert_eq!(b.in_session(&kept, "tools/list", json!({})).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn the_older_transport_has_endpoints_too_and_their_sessions_stay_apart() {
    let rig = start(json!({"legacySse": true})).await;
    set(&rig, json!({"talk": {"tools": ["app:echo"]}}));
    let sse = Mcp::sse(format!("{}/sse/talk", rig.base)).timeout(PATIENCE).protocol_version("2024-11-05");
    let mcp = sse.connect().await.unwrap();
    assert_eq!(names(&mcp).await, ["app:echo"]);
    let opened = rig.http.get(format!("{}/sse/talk", rig.base)).send().await.unwrap();
    let first = opened.bytes_stream().next().await.unwrap().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    let path = first.split("data: ").nth(1).unwrap().trim().to_owned();
    assert!(path.starts_with("/messages/talk?sessionId="), "{path}");
    let ping = message(1, "ping", &json!({}));
    let say = |path: &str| {
        let post = rig.http.post(format!("{}{path}", rig.base)).header("content-type", "application/json");
        post.body(ping.clone())
    };
    assert_eq!(refused(say(&path.replace("/talk", ""))).await.0, 404);
    for path in ["/sse/nobody", "/sse/talk/x"] {
        let status = rig.http.get(format!("{}{path}", rig.base)).send().await.unwrap().status();
        assert_eq!(status, 404, "{path}");
    }
}

#[tokio::test]
async fn the_page_at_the_root_lists_endpoints_only_where_everybody_may_list_tools() {
    for (is_open, shown) in [(true, true), (false, false)] {
        let rig = start_with(json!({"landing": true}), |builder| match is_open {
            true => builder,
            false => builder.authenticator(Arc::new(Believing)),
        })
        .await;
        set(&rig, json!({"back-office": {"apps": ["app"]}}));
        let page = rig.http.get(&rig.base).send().await.unwrap().text().await.unwrap();
        assert_eq!(page.contains("back-office"), shown, "{page}");
    }
}
