//! Reasons of `invalid_grant`: each has its own, and the client sees the same response for all.

use std::time::Duration;

use gatewright_auth::GrantRefusal;
use serde_json::{Value, json};

use crate::support::site::{Answer, Site};

#[track_caller]
fn is_refused(answer: &Answer, refusal: GrantRefusal) {
    let body = json!({"error": "invalid_grant", "error_description": "the grant is not usable"});
    assert_eq!((answer.status.as_u16(), answer.json(), answer.refusal), (400, body, Some(refusal)));
    let names: Vec<&str> = answer.headers.keys().map(http::HeaderName::as_str).collect();
    assert_eq!(
        names,
        [
            "content-type",
            "cache-control",
            "pragma",
            "access-control-allow-origin",
            "access-control-expose-headers",
            "content-length"
        ]
    );
}

/// A server over the store of `site` with another configuration.
async fn again(site: &Site, over: Value) -> Site {
    Site::on(over, site.clock.clone(), site.store.clone()).await
}

#[tokio::test]
async fn each_reason_to_refuse_a_code_is_told_apart() {
    let site = Site::new().await;
    let code = || site.code(&[]);
    is_refused(&site.redeem("junk").await, GrantRefusal::Malformed);
    let used = code().await;
    let unknown = format!("{}x", &used[..used.len() - 1]);
    is_refused(&site.redeem(&unknown).await, GrantRefusal::Unknown);
    assert_eq!(site.redeem(&used).await.status, 200);
    is_refused(&site.redeem(&used).await, GrantRefusal::Replayed);
    let with =
        async |name: &'static str, value: &str| site.redeem_with(&code().await, &[(name, value)]).await;
    is_refused(&with("client_id", "other").await, GrantRefusal::OtherClient);
    is_refused(&with("redirect_uri", "https://c.example/other").await, GrantRefusal::RedirectUri);
    is_refused(&with("code_verifier", &"x".repeat(43)).await, GrantRefusal::CodeVerifier);
    let bound = site.code(&[("dpop_jkt", &"A".repeat(43))]).await;
    is_refused(&site.redeem(&bound).await, GrantRefusal::DpopKey);
    let revoked = code().await;
    site.server.revoke_user("user:alice").await.unwrap();
    is_refused(&site.redeem(&revoked).await, GrantRefusal::Revoked);
    site.clock.advance(Duration::from_millis(5));
    let late = code().await;
    site.clock.advance(Duration::from_secs(61));
    // The store forgets it at that moment.
    is_refused(&site.redeem(&late).await, GrantRefusal::Unknown);
    let less = again(&site, json!({"scopes": {"read": null, "other": "Something else"}})).await;
    is_refused(&less.redeem(&code().await).await, GrantRefusal::NoScopes);
}

#[tokio::test]
async fn each_reason_to_refuse_a_refresh_token_is_told_apart() {
    let site = Site::new().await;
    let token = async || site.tokens().await["refresh_token"].as_str().unwrap().to_owned();
    is_refused(&site.refresh("junk", &[]).await, GrantRefusal::Malformed);
    let used = token().await;
    is_refused(&site.refresh(&used, &[("client_id", "other")]).await, GrantRefusal::OtherClient);
    assert_eq!(site.refresh(&used, &[]).await.status, 200);
    site.clock.advance(Duration::from_secs(31));
    is_refused(&site.refresh(&used, &[]).await, GrantRefusal::Replayed);
    is_refused(&site.refresh(&used, &[]).await, GrantRefusal::Unknown);
    let off = again(&site, json!({"refresh": {"enabled": false}})).await;
    is_refused(&off.refresh(&token().await, &[]).await, GrantRefusal::RefreshDisabled);
    let revoked = token().await;
    site.server.revoke_user("user:alice").await.unwrap();
    is_refused(&site.refresh(&revoked, &[]).await, GrantRefusal::Revoked);
    site.clock.advance(Duration::from_millis(5));
    let brief = again(&site, json!({"refresh": {"refreshTokenTtl": 60, "absoluteTtl": 60}})).await;
    let late = token().await;
    site.clock.advance(Duration::from_secs(61));
    is_refused(&brief.refresh(&late, &[]).await, GrantRefusal::Expired);
}
