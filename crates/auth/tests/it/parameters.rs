//! Parameters as RFC 6749 appendix A allows them, and the time in which they must arrive.

use std::time::Duration;

use axum::body::Body;
use gatewright_core::{BodyTimeout, Scopes};
use http::{Request, header};
use serde_json::json;

use crate::support::site::{Answer, SECRET, Site, ask, basic, form, post};

fn is_page(answer: &Answer, what: &str) {
    assert_eq!(answer.status, 400, "{what}: {}", answer.text);
    assert!(answer.header("location").is_empty() && answer.text.contains("<html"), "{what}");
}

#[tokio::test]
async fn a_state_with_control_characters_is_refused_where_it_would_come_back() {
    let site = Site::new().await;
    for state in ["a\nb", "a\rLocation: x", "\0", "a\u{7f}", "a\u{85}", "\t"] {
        is_page(&site.get(&ask(&[("state", state)])).await, state);
        let request = ask(&[("state", state)]);
        let mut pushed = post("/oauth/par", &[]);
        *pushed.body_mut() = Body::from(request.split_once('?').unwrap().1.to_owned());
        assert_eq!(site.send(pushed).await.error(), "invalid_request", "{state:?}");
        let bye =
            [("client_id", "app"), ("post_logout_redirect_uri", "https://c.example/bye"), ("state", state)];
        is_page(&site.get(&format!("/oauth/logout?{}", form(&bye))).await, state);
    }
}

#[tokio::test]
async fn a_parameter_that_is_not_utf8_is_refused_and_not_changed() {
    let site = Site::new().await;
    for (name, value) in
        [("state", "%FF"), ("state", "a%C3"), ("x", "%ED%A0%80"), ("%FF", "x"), ("state", "%EF%BF%BD")]
    {
        is_page(&site.get(&format!("{}&{name}={value}", ask(&[("state", "")]))).await, value);
        let mut token = post("/oauth/token", &[]);
        let body =
            format!("grant_type=client_credentials&client_id=poster&client_secret={SECRET}&{name}={value}");
        *token.body_mut() = Body::from(body);
        assert_eq!(site.send(token).await.error(), "invalid_request", "{name}={value}");
    }
}

#[tokio::test]
async fn only_spaces_separate_scopes_and_prompts() {
    let site = Site::new().await;
    for scope in ["read\twrite", "read\nwrite", "read\u{c}", "\tread", "read \"", "read é"] {
        let refused = site.get(&ask(&[("scope", scope)])).await.location();
        assert_eq!((&*refused["error"], &*refused["state"]), ("invalid_scope", "s-123"), "{scope:?}");
        let credentials = [("grant_type", "client_credentials"), ("scope", scope)];
        let mut request = post("/oauth/token", &credentials);
        request.headers_mut().insert(header::AUTHORIZATION, basic("service", SECRET));
        assert_eq!(site.send(request).await.error(), "invalid_scope", "{scope:?}");
    }
    assert_eq!(site.get(&ask(&[("scope", " read  write ")])).await.status, 200);
    let tokens = site.tokens().await;
    let refreshed =
        site.refresh(tokens["refresh_token"].as_str().unwrap(), &[("scope", "read\twrite")]).await;
    assert_eq!(refreshed.error(), "invalid_scope");
    let prompt = site.get(&ask(&[("prompt", "login\tconsent")])).await.location();
    assert_eq!(prompt["error"], "invalid_request");
    assert!(!Scopes::parse("read\twrite").allows("read"), "the scopes of an external provider's token");
}

#[tokio::test(start_paused = true)]
async fn a_body_has_the_time_that_the_server_gives_it() {
    let site = Site::with(json!({"dcrEnabled": true})).await;
    for (path, kind) in
        [("/oauth/token", "application/x-www-form-urlencoded"), ("/oauth/register", "application/json")]
    {
        for (limit, least) in [(Some(2), 2), (Some(60), 60), (None, 10)] {
            let never = Body::from_stream(futures::stream::pending::<Result<bytes::Bytes, std::io::Error>>());
            let mut request = Request::post(path).header(header::CONTENT_TYPE, kind).body(never).unwrap();
            if let Some(seconds) = limit {
                request.extensions_mut().insert(BodyTimeout(Duration::from_secs(seconds)));
            }
            let started = tokio::time::Instant::now();
            let answer = site.send(request).await;
            assert_eq!(answer.status, 408, "{path}: {}", answer.text);
            assert_eq!(started.elapsed().as_secs(), least, "{path}");
        }
    }
}

#[tokio::test]
async fn two_authorization_headers_name_nobody() {
    let site = Site::new().await;
    let tokens = site.redeem(&site.code(&[("scope", "read openid")]).await).await.json();
    let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
    let request = || Request::get("/oauth/userinfo").header(header::AUTHORIZATION, &bearer);
    assert_eq!(site.send(request().body(Body::empty()).unwrap()).await.status, 200);
    let twice = request().header(header::AUTHORIZATION, "Bearer x").body(Body::empty()).unwrap();
    assert_eq!(site.send(twice).await.status, 401);
}

#[tokio::test]
async fn more_than_8_resources_are_refused_wherever_they_are_named() {
    let site = Site::new().await;
    let tokens = site.tokens().await;
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let named = |number: usize| vec![("resource", crate::support::site::RESOURCE); number];
    let granted = site.refresh(refresh, &named(8)).await;
    assert_eq!(granted.status, 200, "{}", granted.text);
    let refresh = granted.json()["refresh_token"].as_str().unwrap().to_owned();
    let refused = site.refresh(&refresh, &named(9)).await;
    assert_eq!((refused.status.as_u16(), refused.error().as_str()), (400, "invalid_target"));
    is_page(&site.get(&format!("{}&{}", ask(&[]), form(&named(9)))).await, "authorize");
}
