//! A consent page that was left open: what ended meanwhile is ended for it, too, and its form is checked as the page was.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gatewright_auth::{
    ManualClock,
    store::{MemoryStore, Store},
};
use http::{Request, header};
use serde_json::{Value, json};

use crate::support::site::{Answer, Browser, Site, ask, password_hash};

fn shared() -> (Arc<ManualClock>, Arc<dyn Store>) {
    let clock = Arc::new(ManualClock::from_system());
    (clock.clone(), Arc::new(MemoryStore::new(clock)))
}

/// A browser with the cookies of `browser`, at another instance.
fn at<'a>(site: &'a Site, browser: &Browser<'_>) -> Browser<'a> {
    let cookies = Mutex::new(browser.cookies.lock().unwrap().clone());
    Browser { site, cookies, ip: browser.ip.clone() }
}

fn is_over(answer: &Answer, what: &str) {
    assert!(answer.status == 400 || answer.status == 403, "{what}: {} {}", answer.status, answer.text);
    assert!(!answer.headers.contains_key(header::LOCATION), "{what}");
}

#[tokio::test]
async fn a_consent_that_was_left_open_dies_with_the_logout_and_with_every_kill_switch() {
    for what in ["logout", "user", "client", "consent"] {
        let site = Site::new().await;
        let browser = site.browser();
        let page = browser.to_consent(&[]).await;
        site.clock.advance(Duration::from_millis(2));
        match what {
            "logout" => {
                let csrf = browser.get("/oauth/logout").await.field("csrf");
                assert_eq!(browser.post("/oauth/logout", &[("csrf", &csrf)]).await.status, 200);
            }
            "user" => site.server.revoke_user("user:alice").await.unwrap(),
            "client" => site.server.revoke_client("app").await.unwrap(),
            _ => site.server.withdraw_consent("user:alice", "app").await.unwrap(),
        }
        is_over(&browser.decide(&page, &["read"], "allow").await, what);
        let shown = browser.get(&format!("/oauth/consent?pending={}", page.field("pending"))).await;
        is_over(&shown, what);
    }
}

#[tokio::test]
async fn the_answer_to_a_consent_page_is_checked_as_the_page_was() {
    let app = |changes: Value| {
        let mut app = json!({"clientId": "app", "redirectUris": ["https://c.example/cb"]});
        crate::support::site::merge(&mut app, changes);
        json!({"clients": [app]})
    };
    let user = |changes: Value| {
        let mut user = json!({"username": "alice", "passwordHash": password_hash()});
        crate::support::site::merge(&mut user, changes);
        json!({"local": {"users": [user]}})
    };
    for (what, after) in [
        ("the client is gone", app(json!({"clientId": "another"}))),
        ("the address is not registered any more", app(json!({"redirectUris": ["https://c.example/new"]}))),
        ("the client may not use codes any more", app(json!({"grantTypes": ["refresh_token"]}))),
        ("the user is locked out", user(json!({"disabled": true}))),
        ("the user is gone", user(json!({"username": "alicia"}))),
        ("the user may not grant it any more", user(json!({"scopes": ["write"]}))),
        ("the scope is gone", json!({"scopes": {"read": null}})),
    ] {
        let (clock, store) = shared();
        let site = Site::on(json!({}), clock.clone(), store.clone()).await;
        let browser = site.browser();
        let page = browser.to_consent(&[]).await;
        let after = Site::on(after, clock, store).await;
        is_over(&at(&after, &browser).decide(&page, &["read"], "allow").await, what);
    }
}

#[tokio::test]
async fn a_form_value_that_is_made_from_the_cookie_alone_is_refused() {
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.to_consent(&[]).await;
    let (pending, cookie) =
        (page.field("pending"), browser.cookies.lock().unwrap()["__Host-gw-browser"].clone());
    let info = format!("csrf consent {pending}");
    let mut made = [0; 32];
    let salt = Salt::new(HKDF_SHA256, b"gatewright");
    salt.extract(cookie.as_bytes())
        .expand(&[info.as_bytes()], HKDF_SHA256)
        .and_then(|okm| okm.fill(&mut made))
        .unwrap();
    let csrf = URL_SAFE_NO_PAD.encode(made);
    assert_ne!(csrf, page.field("csrf"));
    let pairs =
        [("pending", pending.as_str()), ("csrf", &csrf), ("decision", "allow"), ("grant_scope", "read")];
    is_over(&browser.post("/oauth/consent", &pairs).await, "whoever plants a cookie can make this value");
    let other = site.browser().to_consent(&[]).await;
    assert_ne!(page.field("csrf"), other.field("csrf"), "another request has another value");
}

#[tokio::test]
async fn a_narrower_consent_does_not_take_the_place_of_a_wider_one() {
    let site = Site::new().await;
    let browser = site.browser();
    browser.code(&[("scope", "read write")]).await;
    let page = browser.get(&ask(&[("scope", "read"), ("prompt", "consent")])).await;
    assert!(browser.decide(&page, &["read"], "allow").await.location().contains_key("code"));
    let code = browser.get(&ask(&[("scope", "read write")])).await.location()["code"].clone();
    assert_eq!(site.redeem(&code).await.json()["scope"], "read write");
    // What the user took back by hand is taken back.
    let page = browser.get(&ask(&[("scope", "read write"), ("prompt", "consent")])).await;
    browser.decide(&page, &["read"], "allow").await;
    assert!(browser.get(&ask(&[("scope", "read")])).await.location().contains_key("code"));
    assert!(browser.get(&ask(&[("scope", "read write")])).await.text.contains("name=\"decision\""));
}

#[tokio::test]
async fn a_kill_switch_ends_the_consents_that_were_remembered() {
    let site = Site::new().await;
    let browser = site.browser();
    browser.code(&[]).await;
    site.clock.advance(Duration::from_millis(2));
    site.server.revoke_client("app").await.unwrap();
    site.clock.advance(Duration::from_millis(2));
    assert!(browser.get(&ask(&[])).await.text.contains("name=\"decision\""), "the user is asked again");
}

#[tokio::test]
async fn consent_that_is_off_is_skipped_for_configured_clients_only() {
    let site = Site::with(json!({"consent": {"enabled": false}, "dcrEnabled": true})).await;
    assert!(site.browser().to_consent(&[]).await.location().contains_key("code"), "a configured client");
    let metadata = json!({"redirect_uris": ["https://n.example/cb"], "token_endpoint_auth_method": "none"});
    let request = Request::post("/oauth/register").header(header::CONTENT_TYPE, "application/json");
    let registered = site.send(request.body(axum::body::Body::from(metadata.to_string())).unwrap()).await;
    let id = registered.json()["client_id"].as_str().unwrap().to_owned();
    let changes = [("client_id", id.as_str()), ("redirect_uri", "https://n.example/cb")];
    assert!(site.browser().to_consent(&changes).await.text.contains("name=\"decision\""), "a stranger");
}

#[tokio::test]
async fn prompt_none_never_answers_a_public_client_on_this_computer() {
    let site = Site::new().await;
    let browser = site.browser();
    let local = [("redirect_uri", "http://127.0.0.1:5555/cb")];
    browser.code(&local).await;
    let silent = browser.get(&ask(&[local[0], ("prompt", "none")])).await.location();
    assert_eq!(silent["error"], "interaction_required");
    assert!(!silent.contains_key("code"));
    // Where the client can be told from others, nothing has to be shown.
    browser.code(&[]).await;
    assert!(browser.get(&ask(&[("prompt", "none")])).await.location().contains_key("code"));
}
