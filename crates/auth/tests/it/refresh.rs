//! Refresh tokens, revocation, introspection, userinfo, logout and the kill switches (checklist D and I).

use std::{sync::Arc, time::Duration};

use http::header;
use serde_json::{Value, json};

use crate::support::site::{Answer, SECRET, Site, basic, claims, post};

fn refused(answer: &Answer, code: &str) {
    assert_eq!((answer.status.as_u16(), answer.error().as_str()), (400, code), "{}", answer.text);
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}")).to_owned()
}

#[tokio::test]
async fn d01_d02_and_d04_tokens_rotate_and_an_old_one_ends_the_family() {
    let site = Site::new().await;
    let first = text(&site.tokens().await, "refresh_token");
    let second = text(&site.refresh(&first, &[]).await.json(), "refresh_token");
    assert_ne!(first, second);
    let third = text(&site.refresh(&second, &[]).await.json(), "refresh_token");
    refused(&site.refresh(&first, &[]).await, "invalid_grant");
    refused(&site.refresh(&third, &[]).await, "invalid_grant");
    assert_eq!(site.events("token.reuse_detected"), 1);
}

#[tokio::test]
async fn d03_a_retry_after_a_lost_answer_gets_the_same_successor() {
    let site = Site::new().await;
    let first = text(&site.tokens().await, "refresh_token");
    let second = text(&site.refresh(&first, &[]).await.json(), "refresh_token");
    site.clock.advance(Duration::from_secs(29));
    assert_eq!(text(&site.refresh(&first, &[]).await.json(), "refresh_token"), second);
    assert_eq!(site.refresh(&second, &[]).await.status, 200, "the family lives");
    let late = text(&site.tokens().await, "refresh_token");
    site.refresh(&late, &[]).await;
    site.clock.advance(Duration::from_secs(31));
    refused(&site.refresh(&late, &[]).await, "invalid_grant");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn d05_eight_rotations_at_once_leave_one_live_token() {
    let site = Arc::new(Site::new().await);
    for _ in 0..20 {
        let first = text(&site.tokens().await, "refresh_token");
        let tries = (0..8).map(|_| {
            let (site, first) = (site.clone(), first.clone());
            tokio::spawn(async move { text(&site.refresh(&first, &[]).await.json(), "refresh_token") })
        });
        let mut got: Vec<String> =
            futures::future::join_all(tries).await.into_iter().map(Result::unwrap).collect();
        got.dedup();
        assert_eq!(got.len(), 1, "the same successor for all");
        assert_eq!(site.refresh(&got[0], &[]).await.status, 200);
    }
}

#[tokio::test]
async fn d06_d07_d08_and_d09_a_refresh_stays_within_the_grant_and_a_refusal_uses_nothing_up() {
    let site = Site::new().await;
    let code = site.code(&[("scope", "read write")]).await;
    let first = text(&site.redeem(&code).await.json(), "refresh_token");
    refused(&site.refresh(&first, &[("client_id", "other")]).await, "invalid_grant");
    refused(&site.refresh(&first, &[("scope", "read openid")]).await, "invalid_scope");
    refused(&site.refresh(&first, &[("resource", "https://other.example/")]).await, "invalid_target");
    let narrow = site.refresh(&first, &[("scope", "read")]).await.json();
    assert_eq!(narrow["scope"], "read");
    let full = site.refresh(&text(&narrow, "refresh_token"), &[]).await.json();
    assert_eq!(full["scope"], "read write");
}

#[tokio::test]
async fn d10_an_authorization_ends_at_its_first_end_however_often_it_is_refreshed() {
    let site = Site::with(json!({"refresh": {"refreshTokenTtl": 1000, "absoluteTtl": 2000}})).await;
    let mut token = text(&site.tokens().await, "refresh_token");
    for _ in 0..2 {
        site.clock.advance(Duration::from_secs(900));
        token = text(&site.refresh(&token, &[]).await.json(), "refresh_token");
    }
    site.clock.advance(Duration::from_secs(201));
    refused(&site.refresh(&token, &[]).await, "invalid_grant");
    let idle = text(&site.tokens().await, "refresh_token");
    site.clock.advance(Duration::from_secs(1001));
    refused(&site.refresh(&idle, &[]).await, "invalid_grant");
}

#[tokio::test]
async fn d11_a_confidential_client_must_authenticate() {
    let site = Site::new().await;
    let code = site.code(&[("client_id", "service"), ("redirect_uri", "https://service.example/cb")]).await;
    let mut request = post(
        "/oauth/token",
        &[
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("code_verifier", crate::support::site::VERIFIER),
        ],
    );
    request.headers_mut().insert(header::AUTHORIZATION, basic("service", SECRET));
    let token = text(&site.send(request).await.json(), "refresh_token");
    let answer = site.refresh(&token, &[("client_id", "service")]).await;
    assert_eq!((answer.status.as_u16(), answer.error().as_str()), (401, "invalid_client"));
}

#[tokio::test]
async fn d12_and_i11_logout_withdrawal_and_kill_switches_end_grants() {
    let site = Site::new().await;
    let login = || async { text(&site.tokens().await, "refresh_token") };
    let end = login().await;
    site.clock.advance(Duration::from_millis(5));
    site.server.revoke_user("user:alice").await.unwrap();
    refused(&site.refresh(&end, &[]).await, "invalid_grant");
    site.clock.advance(Duration::from_millis(5));
    let end = login().await;
    site.server.revoke_client("app").await.unwrap();
    refused(&site.refresh(&end, &[]).await, "invalid_grant");
    site.clock.advance(Duration::from_millis(5));
    let (end, quiet) = (login().await, login().await);
    site.server.withdraw_consent("user:alice", "app").await.unwrap();
    refused(&site.refresh(&end, &[]).await, "invalid_grant");
    site.clock.advance(Duration::from_millis(5));
    assert_eq!(site.refresh(&login().await, &[]).await.status, 200, "a new consent gives new tokens");
    refused(&site.refresh(&quiet, &[]).await, "invalid_grant");
    site.clock.advance(Duration::from_millis(5));
    let browser = site.browser();
    let tokens = site.redeem(&browser.code(&[]).await).await.json();
    site.clock.advance(Duration::from_millis(5));
    let page = browser.get("/oauth/logout").await;
    browser.post("/oauth/logout", &[("csrf", &page.field("csrf"))]).await;
    refused(&site.refresh(&text(&tokens, "refresh_token"), &[]).await, "invalid_grant");
    assert_eq!(site.introspect(&text(&tokens, "access_token")).await["active"], false);
}

#[tokio::test]
async fn d12_and_d15_a_changed_password_or_a_disabled_user_ends_refreshing() {
    let site = Site::new().await;
    let token = text(&site.tokens().await, "refresh_token");
    for users in [
        json!([{"username": "alice", "passwordHash": gatewright_auth::hash_password(&gatewright_auth::SystemEntropy, "new")}]),
        json!([{"username": "alice", "passwordHash": crate::support::site::password_hash(), "disabled": true}]),
        json!([]),
    ] {
        let again =
            Site::on(json!({"local": {"users": users}}), site.clock.clone(), site.store.clone()).await;
        let one = text(&site.tokens().await, "refresh_token");
        refused(&again.refresh(&one, &[]).await, "invalid_grant");
    }
    assert_eq!(site.refresh(&token, &[]).await.status, 200, "others are not touched");
}

#[tokio::test]
async fn d14_what_was_consented_to_survives_a_refresh() {
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.to_consent(&[("scope", "read write")]).await;
    let code = browser.decide(&page, &["read"], "allow").await.location()["code"].clone();
    let tokens = site.redeem(&code).await.json();
    assert_eq!(tokens["scope"], "read");
    assert_eq!(site.refresh(&text(&tokens, "refresh_token"), &[]).await.json()["scope"], "read");
}

#[tokio::test]
async fn d16_a_refresh_after_a_key_rotation_is_signed_with_the_new_key() {
    let site = Site::new().await;
    let tokens = site.tokens().await;
    let kid = |token: &str| crate::support::site::part(token, 0)["kid"].clone();
    let before = kid(&text(&tokens, "access_token"));
    site.clock.advance(Duration::from_secs(1));
    site.server.keys().rotate_now().await.unwrap();
    let after = site.refresh(&text(&tokens, "refresh_token"), &[]).await.json();
    assert_ne!(kid(&text(&after, "access_token")), before);
    assert_eq!(
        site.introspect(&text(&tokens, "access_token")).await["active"],
        true,
        "the old one still verifies"
    );
}

#[tokio::test]
async fn a_clients_tokens_do_not_rotate_when_that_is_configured_and_it_is_confidential() {
    let site = Site::with(json!({"refresh": {"rotateRefreshToken": false}})).await;
    let public = site.tokens().await;
    assert!(site.refresh(&text(&public, "refresh_token"), &[]).await.json().get("refresh_token").is_some());
}

async fn revoke(site: &Site, token: &str, extra: &[(&str, &str)]) -> Answer {
    let mut pairs = vec![("token", token)];
    pairs.extend(extra);
    site.post("/oauth/revoke", &pairs).await
}

#[tokio::test]
async fn i01_i02_and_i04_revocation_tells_nothing_and_needs_the_client() {
    let site = Site::new().await;
    let app = [("client_id", "app")];
    for junk in ["junk", "a.b.c", "AAAAAAAAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        assert_eq!(revoke(&site, junk, &app).await.status, 200);
    }
    let tokens = site.tokens().await;
    let refresh = text(&tokens, "refresh_token");
    assert_eq!(revoke(&site, &refresh, &[("client_id", "other")]).await.status, 200);
    assert_eq!(
        revoke(&site, &refresh, &[("client_id", "service"), ("client_secret", "x")]).await.status,
        401
    );
    assert_eq!(revoke(&site, &refresh, &[]).await.status, 400);
    let next = site.refresh(&refresh, &[]).await;
    assert_eq!(next.status, 200, "nothing of that had an effect");
    let odd = [("client_id", "app"), ("token_type_hint", "odd")];
    assert_eq!(revoke(&site, &text(&next.json(), "refresh_token"), &odd).await.status, 200);
    refused(&site.refresh(&text(&next.json(), "refresh_token"), &[]).await, "invalid_grant");
}

#[tokio::test]
async fn i03_revoking_either_token_ends_the_family() {
    let site = Site::new().await;
    for name in ["access_token", "refresh_token"] {
        let tokens = site.tokens().await;
        assert_eq!(revoke(&site, &text(&tokens, name), &[("client_id", "app")]).await.status, 200);
        assert_eq!(site.introspect(&text(&tokens, "access_token")).await, json!({"active": false}));
        refused(&site.refresh(&text(&tokens, "refresh_token"), &[]).await, "invalid_grant");
    }
}

#[tokio::test]
async fn i05_i06_and_i07_introspection_is_for_the_audience_and_inactive_says_only_that() {
    let site = Site::new().await;
    let token = text(&site.tokens().await, "access_token");
    assert_eq!(site.post("/oauth/introspect", &[("token", &token)]).await.status, 401);
    assert_eq!(site.post("/oauth/introspect", &[("token", &token), ("client_id", "app")]).await.status, 401);
    let mut request = post("/oauth/introspect", &[("token", &token)]);
    request.headers_mut().insert(header::AUTHORIZATION, basic("service", SECRET));
    assert_eq!(site.send(request).await.json(), json!({"active": false}), "not the audience");
    let active = site.introspect(&token).await;
    assert_eq!(
        (&active["active"], &active["sub"], &active["scope"]),
        (&json!(true), &json!("user:alice"), &json!("read"))
    );
    site.clock.advance(Duration::from_secs(961));
    assert_eq!(site.introspect(&token).await, json!({"active": false}));
    assert_eq!(site.introspect("junk").await, json!({"active": false}));
}

#[tokio::test]
async fn i08_userinfo_takes_our_tokens_with_openid_only() {
    let site = Site::new().await;
    let ask = |token: String| {
        let request =
            http::Request::get("/oauth/userinfo").header("authorization", format!("Bearer {token}"));
        site.send(request.body(axum::body::Body::empty()).unwrap())
    };
    let tokens = site.redeem(&site.code(&[("scope", "openid email")]).await).await.json();
    let token = text(&tokens, "access_token");
    let who = ask(token.clone()).await.json();
    assert_eq!(who, json!({"sub": claims(&token)["sub"], "email": "alice@example.com"}));
    assert_eq!(ask(text(&site.tokens().await, "access_token")).await.status, 403);
    assert_eq!(ask("junk".into()).await.status, 401);
    let other =
        Site::at("https://other.example", json!({"clients": []}), site.clock.clone(), site.store.clone())
            .await;
    let request = http::Request::get("/oauth/userinfo").header("authorization", format!("Bearer {token}"));
    assert_eq!(
        other.send(request.body(axum::body::Body::empty()).unwrap()).await.status,
        401,
        "another issuer and audience"
    );
}

#[tokio::test]
async fn b19_and_i10_logout_asks_first_and_leads_only_to_registered_addresses() {
    let site = Site::new().await;
    let browser = site.browser();
    browser.code(&[]).await;
    let evil =
        browser.get("/oauth/logout?client_id=app&post_logout_redirect_uri=https://evil.example/").await;
    assert_eq!(evil.status, 200, "a page, no redirect");
    let done = browser
        .post(
            "/oauth/logout",
            &[
                ("csrf", &evil.field("csrf")),
                ("client_id", "app"),
                ("post_logout_redirect_uri", "https://evil.example/"),
            ],
        )
        .await;
    assert_eq!(done.status, 200);
    assert!(done.text.contains("Signed out") && done.header("location").is_empty());
    browser.code(&[]).await;
    let page =
        browser.get("/oauth/logout?client_id=app&post_logout_redirect_uri=https://c.example/bye").await;
    let forged = browser.post("/oauth/logout", &[("csrf", "x")]).await;
    assert_eq!(forged.status, 403);
    let pairs = [
        ("csrf", page.field("csrf")),
        ("client_id", page.field("client_id")),
        ("post_logout_redirect_uri", page.field("post_logout_redirect_uri")),
    ];
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let done = browser.post("/oauth/logout", &pairs).await;
    assert_eq!((done.status.as_u16(), done.header("location")), (303, "https://c.example/bye"));
}
