//! Client ID metadata documents: what is accepted, kept, and how often it is fetched (checklist H).

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use gatewright_auth::ManualClock;
use gatewright_core::Authenticator as _;
use http::Request;
use serde_json::{Value, json};

use crate::support::{
    scopes_now,
    site::{Site, ask, merge},
    web::{Reply, Web},
};

/// A server on loopback that takes client documents from loopback too.
async fn with_documents(web: &Web, over: Value) -> (Site, String) {
    let clock = Arc::new(ManualClock::from_system());
    let store = Arc::new(gatewright_auth::store::MemoryStore::new(clock.clone()));
    let mut all = json!({"cimd": {"allowPrivate": true}});
    merge(&mut all, over);
    let id = web.url("/client.json");
    web.on("/client.json", document(&id, json!({})));
    (Site::at("http://127.0.0.1:3000", all, clock, store).await, id)
}

fn document(id: &str, changes: Value) -> Reply {
    let mut body =
        json!({"client_id": id, "client_name": "Documented", "redirect_uris": ["https://c.example/cb"]});
    merge(&mut body, changes);
    Reply::json(body)
}

#[tokio::test]
async fn h12_h13_h14_h17_and_h18_a_document_must_be_right_small_and_direct() {
    let web = Web::start().await;
    let (site, id) = with_documents(&web, json!({})).await;
    let go = |id: &str| ask(&[("client_id", id)]);
    let page = site.get(&go(&id)).await;
    assert!(page.status == 200 && page.text.contains("Documented"));
    assert_eq!(
        site.get(&ask(&[("client_id", &id), ("redirect_uri", "https://evil.example/cb")])).await.status,
        400
    );
    for (n, reply) in [
        document("https://other.example/c", json!({})),
        document(&web.url("/bad1"), json!({"client_secret": "s"})),
        document(&web.url("/bad2"), json!({"token_endpoint_auth_method": "client_secret_post"})),
        Reply::json("[]"),
        Reply::json("\u{fffd}"),
        Reply::json(format!("{{\"x\":\"{}\"}}", "x".repeat(20_000))),
        Reply {
            status: 302,
            headers: vec![("location", "http://169.254.169.254/".into())],
            body: String::new(),
        },
        Reply { status: 500, headers: vec![], body: String::new() },
    ]
    .into_iter()
    .enumerate()
    {
        web.on(&format!("/bad{n}"), reply);
        let answer = site.get(&go(&web.url(&format!("/bad{n}")))).await;
        assert_eq!(answer.status, 400, "document {n}");
        assert!(answer.header("location").is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn h19_and_h21_documents_are_kept_as_they_say_and_fetched_once_for_all_who_wait() {
    let web = Web::start().await;
    let (site, id) = with_documents(&web, json!({})).await;
    let site = Arc::new(site);
    let tries = (0..100).map(|_| {
        let (site, path) = (site.clone(), ask(&[("client_id", &id)]));
        tokio::spawn(async move { site.get(&path).await.status.as_u16() })
    });
    let got = futures::future::join_all(tries).await;
    assert!(got.into_iter().all(|status| status.unwrap() == 200));
    assert_eq!(web.count("/client.json"), 1);
    web.on("/client.json", document(&id, json!({"redirect_uris": ["https://c.example/new"]})));
    assert_eq!(site.get(&ask(&[("client_id", &id)])).await.status, 200, "still kept");
    site.clock.advance(Duration::from_secs(301));
    assert_eq!(site.get(&ask(&[("client_id", &id)])).await.status, 400, "the old address is gone");
    web.off("/client.json");
    site.clock.advance(Duration::from_secs(301));
    assert_eq!(
        site.get(&ask(&[("client_id", &id), ("redirect_uri", "https://c.example/new")])).await.status,
        400
    );
    web.on("/client.json", document(&id, json!({})));
    assert_eq!(site.get(&ask(&[("client_id", &id)])).await.status, 200, "an error is not kept");
}

#[tokio::test]
async fn h22_fetches_for_strangers_are_limited_and_none_uses_up_those_of_a_host() {
    let web = Web::start().await;
    let (site, _) = with_documents(&web, json!({"limits": {"fetch": 9}})).await;
    let number = std::cell::Cell::new(0);
    let ask_from = async |ip: &str| {
        number.set(number.get() + 1);
        let path = ask(&[("client_id", &web.url(&format!("/none{}", number.get())))]);
        site.send_from(ip, Request::get(path).body(Body::empty()).unwrap()).await.status.as_u16()
    };
    for n in 0..20 {
        // All of one subscriber.
        let status = ask_from(&format!("2001:db8:1:2::{n:x}")).await;
        assert_eq!(status, if n < 3 { 400 } else { 429 }, "fetch {n} of one network");
    }
    assert_eq!(ask_from("192.0.2.1").await, 400, "another network still has its share");
    // Two networks use up the rest.
    for n in [1, 1, 2, 2, 2] {
        assert_eq!(ask_from(&format!("192.0.2.{n}")).await, 400);
    }
    for n in 1..=9 {
        let newcomer = format!("198.51.100.{n}");
        assert_eq!(ask_from(&newcomer).await, 400, "{newcomer} gets one of those that are kept");
        assert_eq!(ask_from(&newcomer).await, 429, "{newcomer} gets no more");
    }
    assert_eq!(ask_from("198.51.100.10").await, 429);
    let fetches = (1..=number.get()).map(|n| web.count(&format!("/none{n}"))).sum::<usize>();
    assert_eq!(fetches, 18, "a host is asked no more often than that for all");
}

#[tokio::test]
async fn h19_a_document_serves_on_for_a_day_while_its_host_is_away_and_no_longer() {
    let web = Web::start().await;
    let (site, id) = with_documents(&web, json!({})).await;
    let go = async || site.get(&ask(&[("client_id", &id)])).await.status.as_u16();
    assert_eq!(go().await, 200);
    web.on("/client.json", Reply { status: 503, headers: vec![], body: String::new() });
    site.clock.advance(Duration::from_secs(301));
    for _ in 0..5 {
        assert_eq!(go().await, 200);
    }
    assert_eq!(web.count("/client.json"), 2, "a host that is away is left alone for a while");
    web.on("/client.json", document(&id, json!({"redirect_uris": ["https://c.example/new"]})));
    site.clock.advance(Duration::from_secs(31));
    assert_eq!(go().await, 400, "the host is back, and says something else");
    web.on("/client.json", document(&id, json!({})));
    site.clock.advance(Duration::from_secs(301));
    assert_eq!(go().await, 200);
    web.on("/client.json", Reply { status: 503, headers: vec![], body: String::new() });
    site.clock.advance(Duration::from_secs(301 + 86_400));
    assert_eq!(go().await, 400, "it was away for too long");
}

#[tokio::test]
async fn h15_a_private_address_as_client_is_a_page_and_no_connection() {
    let web = Web::start().await;
    let site = Site::new().await;
    for id in [
        format!("https://{}/c", web.addr),
        "https://169.254.169.254/c".into(),
        "https://[::1]/c".into(),
        "https://localhost/c".into(),
    ] {
        let answer = site.get(&ask(&[("client_id", &id)])).await;
        assert_eq!(answer.status, 400);
        assert!(answer.header("location").is_empty());
    }
    assert_eq!(web.count("/c"), 0);
}

#[tokio::test]
async fn an_access_token_loses_the_scopes_that_the_cached_document_dropped_and_no_check_of_it_fetches() {
    let web = Web::start().await;
    let (site, id) = with_documents(&web, json!({})).await;
    web.on("/client.json", document(&id, json!({"scope": "read write"})));
    let code = site.code(&[("client_id", &id), ("scope", "read write")]).await;
    let tokens = site.redeem_with(&code, &[("client_id", &id)]).await.json();
    let token = tokens["access_token"].as_str().unwrap().to_owned();
    let scope = async || site.introspect(&token).await["scope"].clone();
    assert_eq!((web.count("/client.json"), scope().await), (1, json!("read write")));

    // Stale, and different at its host: the cached document still counts.
    web.on("/client.json", document(&id, json!({"scope": "read"})));
    site.clock.advance(Duration::from_secs(301));
    assert_eq!(
        (scope().await, web.count("/client.json")),
        (json!("read write"), 1),
        "a check fetches nothing"
    );

    // Somebody begins to sign in, which fetches it: a check does not wait for the answer of its host.
    let gate = web.hold("/client.json");
    let again = ask(&[("client_id", &id)]);
    let (page, ()) = tokio::join!(site.get(&again), async {
        while web.count("/client.json") < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(scope().await, "read write");
        gate.add_permits(100);
    });
    assert_eq!((page.status.as_u16(), scope().await), (200, json!("read")));
    let parts = Request::post("/mcp").header("authorization", format!("Bearer {token}"));
    let caller = site.resource_server().authenticate(&parts.body(()).unwrap().into_parts().0).await.unwrap();
    assert!(caller.scopes.allows("read") && !caller.scopes.allows("write"), "{:?}", caller.scopes);
    let work = scopes_now(&site.resource_server(), &caller, std::time::SystemTime::UNIX_EPOCH).await;
    assert!(!work.is_ok_and(|scopes| scopes.is_some_and(|scopes| scopes.allows("write"))));

    // A document that is not acceptable gives nothing back.
    web.on("/client.json", Reply::json("[]"));
    site.clock.advance(Duration::from_secs(301));
    assert_eq!((site.get(&again).await.status.as_u16(), scope().await), (400, json!("read")));
}

#[tokio::test]
async fn a_logout_fetches_no_document_whatever_cookie_comes_with_it() {
    let web = Web::start().await;
    let (site, id) = with_documents(&web, json!({"limits": {"authorize": 5}})).await;
    let bye = "https://c.example/bye";
    web.on("/client.json", document(&id, json!({"post_logout_redirect_uris": [bye]})));
    let path = |id: &str| {
        let pairs = [("client_id", id), ("post_logout_redirect_uri", bye)];
        format!("/oauth/logout?{}", crate::support::site::form(&pairs))
    };
    for n in 0..8 {
        let made_up = site.browser();
        made_up.cookies.lock().unwrap().insert("gw-session".into(), "x".into());
        let status = made_up.get(&path(&id)).await.status;
        assert_eq!(status, if n < 5 { 200 } else { 429 }, "logout {n} of one network");
    }
    let submitted = [("csrf", "x"), ("client_id", &*id), ("post_logout_redirect_uri", bye)];
    assert_eq!(site.post("/oauth/logout", &submitted).await.status, 429);
    assert_eq!(web.count("/client.json"), 0);

    // Whoever signed in for that client goes back to it, and to no client that is not known.
    let browser = site.browser_at("198.51.100.7");
    browser.code(&[("client_id", &id)]).await;
    let page = browser.get(&path(&id)).await;
    assert!(page.header("content-security-policy").contains("form-action 'self' https:;"), "{}", page.text);
    let other = web.url("/other.json");
    web.on("/other.json", document(&other, json!({"post_logout_redirect_uris": [bye]})));
    let page = browser.get(&path(&other)).await;
    assert!(!page.header("content-security-policy").contains("https:"), "{}", page.text);
    assert_eq!((web.count("/client.json"), web.count("/other.json")), (1, 0));
}

#[tokio::test]
async fn a_page_that_is_shown_again_fetches_a_document_within_the_limits_of_its_network() {
    let web = Web::start().await;
    let (site, id) = with_documents(&web, json!({"limits": {"fetch": 9}})).await;
    let browser = site.browser();
    let login = browser.get(&ask(&[("client_id", &id)])).await;
    let next = browser.log_in(&login, "alice", crate::support::site::PASSWORD).await;
    web.on("/client.json", Reply::json("[]"));
    site.clock.advance(Duration::from_secs(301));
    for _ in 0..20 {
        assert!(browser.follow(&next).await.status.is_client_error());
    }
    assert_eq!(web.count("/client.json"), 1 + 3, "a third of the fetches of a host");
}
