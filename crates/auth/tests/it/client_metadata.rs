//! Metadata of clients is read strictly, whether it is registered or in a document, and each rejection names the field.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::support::{
    site::{Answer, Site, ask},
    web::{Reply, Web},
};

async fn register(site: &Site, body: &str) -> Answer {
    let request = Request::post("/oauth/register").header("content-type", "application/json");
    site.send(request.body(Body::from(body.to_owned())).unwrap()).await
}

/// Metadata with `name` set, and the code and the field of its rejection.
fn unacceptable() -> Vec<(String, &'static str, &'static str)> {
    let with = |name: &str, value: Value| {
        let mut all = json!({"redirect_uris": ["https://n.example/cb"]});
        all[name] = value;
        all.to_string()
    };
    let redirect = |uri: &str| with("redirect_uris", json!([uri]));
    let (uri, data) = ("invalid_redirect_uri", "invalid_client_metadata");
    let mut rows = Vec::new();
    for bad in [
        "https://*.example/cb",
        "https://n.%2a.example/cb",
        "http://*/cb",
        "com.example.app://*/cb",
        "https://u@n.example/cb",
        "https://u:p@n.example/cb",
        "https://@n.example/cb",
        "https://n.example@evil.example/cb",
        "com.example.app://u@n/cb",
        "https:n.example/cb",
        "https:/n.example/cb",
        "https:///n.example/cb",
        "https://n.example/c\u{7f}b",
        "https://n.example/c\nb",
    ] {
        rows.push((redirect(bad), uri, "redirect_uris[0]"));
    }
    let long = |length: usize| "x".repeat(length);
    rows.push((redirect(&format!("https://n.example/{}", long(2048))), uri, "redirect_uris[0]"));
    let many = |number: usize| json!(vec!["https://n.example/cb"; number]);
    rows.push((with("redirect_uris", many(33)), uri, "redirect_uris"));
    rows.push((with("redirect_uris", json!("https://n.example/cb")), uri, "redirect_uris"));
    rows.push((with("redirect_uris", json!([1])), uri, "redirect_uris"));
    for (name, value) in [
        ("client_name", json!("a\u{0}b")),
        ("client_name", json!("a\nb")),
        ("client_name", json!("a\u{1b}[31mb")),
        ("client_name", json!("a\u{85}b")),
        ("client_name", json!(long(201))),
        ("client_name", json!(["a"])),
        ("client_uri", json!(format!("https://n.example/{}", long(2048)))),
        ("logo_uri", json!("https://n.example/\u{7}")),
        ("post_logout_redirect_uris", many(33)),
        ("post_logout_redirect_uris", json!(["https://*.n.example/bye"])),
        ("grant_types", json!(vec!["authorization_code"; 33])),
        ("response_types", json!(vec!["code"; 33])),
        ("scope", json!("read\u{1f}write")),
        ("scope", json!("read \"write\"")),
        ("scope", json!(long(2049))),
        ("scope", json!((0..33).map(|n| format!("s{n}")).collect::<Vec<_>>().join(" "))),
        ("jwks", json!({"keys": 1})),
        ("application_type", json!(long(3000))),
        ("dpop_bound_access_tokens", json!("yes")),
    ] {
        rows.push((with(name, value), data, name));
    }
    rows
}

#[tokio::test]
async fn a_registration_with_a_field_that_cannot_be_is_400_and_names_it() {
    let site = Site::with(json!({"dcrEnabled": true})).await;
    for (body, code, field) in unacceptable() {
        let answer = register(&site, &body).await;
        assert_eq!((answer.status.as_u16(), answer.error().as_str()), (400, code), "{body}: {}", answer.text);
        let why = answer.json()["error_description"].as_str().unwrap_or_default().to_owned();
        assert!(why.starts_with(field), "{body}: {why}");
    }
    assert_eq!(site.events("client.registered"), 0);
}

#[tokio::test]
async fn a_member_that_a_registration_names_twice_is_400() {
    let site = Site::with(json!({"dcrEnabled": true})).await;
    for body in [
        r#"{"redirect_uris":["https://n.example/cb"],"redirect_uris":["https://evil.example/cb"]}"#,
        r#"{"redirect_uris":["https://n.example/cb"],"redirect\u005furis":["https://evil.example/cb"]}"#,
        r#"{"redirect_uris":["https://n.example/cb"],"x":{"a":1,"a":2}}"#,
    ] {
        let answer = register(&site, body).await;
        assert_eq!(answer.error(), "invalid_client_metadata", "{body}");
        assert!(answer.json()["error_description"].as_str().unwrap().contains("twice"), "{}", answer.text);
    }
    for body in ["", "[]", "null", "{", "\u{0}"] {
        let answer = register(&site, body).await;
        assert_eq!(answer.error(), "invalid_client_metadata", "{body}");
        assert!(
            answer.json()["error_description"].as_str().unwrap().contains("JSON object"),
            "{}",
            answer.text
        );
    }
}

#[tokio::test]
async fn what_a_client_may_state_is_registered() {
    let site = Site::with(json!({"dcrEnabled": true})).await;
    let body = json!({
        "client_name": "\u{5b57}".repeat(200),
        "redirect_uris": vec!["https://n.example/cb*?x=*"; 32],
        "scope": "read read write",
        "client_uri": null,
        "contacts": ["a\u{0}b"],
        "client_name#ja": "\u{30a2}",
    });
    let answer = register(&site, &body.to_string()).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["scope"]),
        (201, &json!("read write")),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn a_client_document_with_a_field_that_cannot_be_is_a_page_that_names_it() {
    let web = Web::start().await;
    let clock = std::sync::Arc::new(gatewright_auth::ManualClock::from_system());
    let store = std::sync::Arc::new(gatewright_auth::store::MemoryStore::new(clock.clone()));
    let private = json!({"cimd": {"allowPrivate": true}, "limits": {"fetch": 10_000}});
    let site = Site::at("http://127.0.0.1:3000", private, clock, store).await;
    let mut rows = unacceptable();
    rows.push((
        r#"{"client_name":"a","client_name":"b"}"#.to_owned(),
        "",
        "the metadata must not name a member twice",
    ));
    for (at, (body, _, field)) in rows.into_iter().enumerate() {
        let id = web.url(&format!("/c{at}"));
        let body = body.replacen('{', &format!("{{\"client_id\":\"{id}\","), 1);
        web.on(&format!("/c{at}"), Reply::json(&body));
        let page = site.get(&ask(&[("client_id", &id)])).await;
        assert_eq!((page.status.as_u16(), page.header("location")), (400, ""), "{body}");
        assert!(page.text.contains(&format!("cannot be accepted: {field}")), "{body}: {}", page.text);
    }
}

#[tokio::test]
async fn a_client_document_that_is_served_as_something_else_than_json_is_not_taken() {
    let web = Web::start().await;
    let clock = std::sync::Arc::new(gatewright_auth::ManualClock::from_system());
    let store = std::sync::Arc::new(gatewright_auth::store::MemoryStore::new(clock.clone()));
    let private = json!({"cimd": {"allowPrivate": true}, "limits": {"fetch": 10_000}});
    let site = Site::at("http://127.0.0.1:3000", private, clock, store).await;
    let kinds = [
        (Some("text/html"), 400),
        (Some("text/plain; a=application/json"), 400),
        (None, 400),
        (Some("Application/JSON; charset=utf-8"), 302),
        (Some("application/oauth-client+json"), 302),
    ];
    for (at, (kind, status)) in kinds.into_iter().enumerate() {
        let id = web.url(&format!("/c{at}"));
        let body = json!({"client_id": id, "client_name": "App", "redirect_uris": ["https://client.example/callback"]});
        let headers = kind.map(|kind| ("content-type", kind.to_owned())).into_iter().collect();
        web.on(&format!("/c{at}"), Reply { headers, ..Reply::json(body) });
        let page =
            site.get(&ask(&[("client_id", &id), ("redirect_uri", "https://client.example/callback")])).await;
        let refused = page.text.contains("not served as application/json");
        assert_eq!(
            (page.status.as_u16() == 400, refused),
            (status == 400, status == 400),
            "{kind:?}: {} {}",
            page.status,
            page.text
        );
    }
}

#[tokio::test]
async fn metadata_that_is_not_sent_as_json_is_refused() {
    let site = Site::with(json!({"dcrEnabled": true})).await;
    for (kinds, status) in [
        (&["text/plain"][..], 400),
        (&["application/x-www-form-urlencoded"], 400),
        (&["application/jsonx"], 400),
        (&["application/json", "application/json"], 400),
        (&[], 400),
        (&["application/json"], 201),
        (&["Application/JSON; charset=utf-8"], 201),
    ] {
        let mut request = Request::post("/oauth/register");
        for kind in kinds {
            request = request.header("content-type", *kind);
        }
        let body = Body::from(r#"{"redirect_uris":["https://n.example/cb"]}"#);
        let answer = site.send(request.body(body).unwrap()).await;
        assert_eq!(answer.status, status, "{kinds:?}: {}", answer.text);
        if status == 400 {
            assert_eq!(answer.error(), "invalid_client_metadata");
            assert!(answer.text.contains("application/json"), "{}", answer.text);
        }
    }
}

#[tokio::test]
async fn a_registration_is_no_longer_than_a_client_document_may_be() {
    let site = Site::with(json!({"dcrEnabled": true})).await;
    let key = gatewright_auth::keys::Jwk::generate(gatewright_auth::keys::Algorithm::ES256).unwrap().public();
    let with_key = |member: &str, value: Value| {
        let mut key = serde_json::to_value(&key).unwrap();
        key[member] = value;
        json!({"redirect_uris": ["https://n.example/cb"], "jwks": {"keys": [key]}}).to_string()
    };
    assert_eq!(register(&site, &with_key("kid", json!("k"))).await.status, 201);
    let uris: Vec<String> = (0..9).map(|n| format!("https://n.example/{n}{}", "x".repeat(2000))).collect();
    for (body, field) in [
        (json!({"redirect_uris": uris}).to_string(), "the metadata"),
        (
            json!({"redirect_uris": ["https://n.example/cb"], "x": "y".repeat(16 * 1024)}).to_string(),
            "the metadata",
        ),
        (with_key("kid", json!("k".repeat(513))), "jwks"),
        (with_key("x", json!("A".repeat(65))), "jwks"),
        (with_key("key_ops", json!(vec!["verify"; 17])), "jwks"),
    ] {
        let answer = register(&site, &body).await;
        assert_eq!(answer.error(), "invalid_client_metadata", "{body}: {}", answer.text);
        assert!(answer.json()["error_description"].as_str().unwrap().starts_with(field), "{}", answer.text);
    }
}
