//! Audit events, counters and log lines: one for each action, and no secret in any (checklist L).

use axum::body::Body;
use gatewright_core::Authenticator as _;
use http::Request;
use serde_json::json;

use crate::{
    operations::on_redis,
    support::{
        log::Log,
        redis_server::RedisServer,
        site::{PASSWORD, SECRET, Site, VERIFIER, ask, basic, form, post},
    },
};

#[tokio::test]
async fn l07_every_action_leaves_one_event() {
    let site = Site::with(json!({"dcrEnabled": true})).await;
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    browser.log_in(&page, "alice", "wrong").await;
    let code = browser.code(&[]).await;
    let tokens = site.redeem(&code).await.json();
    let next = site.refresh(tokens["refresh_token"].as_str().unwrap(), &[]).await.json();
    site.post("/oauth/revoke", &[("token", next["refresh_token"].as_str().unwrap()), ("client_id", "app")])
        .await;
    site.redeem(&code).await;
    let request = Request::post("/oauth/register")
        .header("content-type", "application/json")
        .body(Body::from(r#"{"redirect_uris":["https://n.example/cb"]}"#))
        .unwrap();
    site.send(request).await;
    site.server.rotate_keys().await.unwrap();
    site.server.revoke_user("user:bob").await.unwrap();
    for name in [
        "login.failed",
        "login.ok",
        "consent.given",
        "token.issued",
        "token.refreshed",
        "token.revoked",
        "code.reuse_detected",
        "client.registered",
        "keys.rotated",
        "admin.user_revoked",
    ] {
        assert_eq!(site.events(name), 1, "{name}");
    }
    let heard = site.heard.0.lock().unwrap();
    let issued = heard.iter().find(|event| event.event == "token.issued").unwrap();
    assert_eq!(
        (issued.actor.as_deref(), issued.client.as_deref(), issued.ip.as_deref()),
        (Some("user:alice"), Some("app"), Some("192.0.2.7"))
    );
    let jti = crate::support::site::claims(tokens["access_token"].as_str().unwrap())["jti"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(issued.jti.as_deref(), Some(jti.as_str()));
}

#[tokio::test]
async fn l09_counters_tell_failures_refreshes_and_store_errors() {
    let mut server = RedisServer::start();
    let site = on_redis(&server, json!({})).await;
    let tokens = site.tokens().await;
    site.refresh(tokens["refresh_token"].as_str().unwrap(), &[]).await;
    site.redeem("junk").await;
    let parts = Request::post("/mcp").header("authorization", "Bearer junk").body(()).unwrap().into_parts().0;
    let _ = site.resource_server().authenticate(&parts).await;
    server.stop();
    site.redeem("junk").await;
    let text = site.server.metrics().prometheus();
    for line in [
        "failures_total 2",
        "tokens_issued_total 1",
        "tokens_refreshed_total 1",
        "store_errors_total 1",
        "jwks_errors_total 0",
        "issue_over_500ms_total 0",
    ] {
        assert!(text.contains(&format!("gatewright_auth_{line}\n")), "{line} in {text}");
    }
}

#[tokio::test]
async fn l05_and_l06_no_log_line_and_no_event_holds_a_secret() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    browser.log_in(&page, "alice", "a-wrong-password").await;
    let code = browser.code(&[]).await;
    let tokens = site.redeem(&code).await.json();
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let next = site.refresh(refresh, &[]).await.json();
    site.redeem(&code).await;
    site.refresh(refresh, &[]).await;
    site.refresh("junk-refresh-token", &[]).await;
    let parts = Request::post("/mcp")
        .header("authorization", "Bearer junk-access-token")
        .body(())
        .unwrap()
        .into_parts()
        .0;
    let _ = site.resource_server().authenticate(&parts).await;
    browser.get("/oauth/callback?code=callback-code&state=callback-state").await;
    let mut request = post("/oauth/token", &[("grant_type", "client_credentials")]);
    request.headers_mut().insert("authorization", basic("service", SECRET));
    site.send(request).await;
    let text = log.text() + &serde_json::to_string(&*site.heard.0.lock().unwrap()).unwrap();
    assert!(text.contains("a token was refused"), "something was logged: {text}");
    let mut secrets: Vec<String> = [
        "a-wrong-password",
        PASSWORD,
        SECRET,
        VERIFIER,
        "junk-refresh-token",
        "junk-access-token",
        "callback-code",
        "callback-state",
    ]
    .map(str::to_owned)
    .to_vec();
    secrets.extend([code, page.field("pending"), page.field("csrf"), form(&[("x", SECRET)])]);
    secrets.extend([&tokens, &next].iter().flat_map(|body| {
        ["access_token", "refresh_token"].map(|name| body[name].as_str().unwrap().to_owned())
    }));
    secrets.extend(browser.cookies.lock().unwrap().values().cloned());
    for secret in secrets {
        assert!(!text.contains(&secret), "{secret}");
    }
}
