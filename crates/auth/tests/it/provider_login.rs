//! Logins at an external provider: `type: remote` (checklist B22 to B26, K04).

use std::collections::BTreeMap;

use gatewright_auth::{
    Clock as _,
    keys::{Algorithm, Jwk},
};
use http::Request;
use serde_json::{Value, json};

use crate::support::{
    idp::{Idp, back, begin, identity, remote, remote_on},
    site::{Browser, ask},
    web::Reply,
};

#[tokio::test]
async fn a_login_that_began_at_another_provider_is_not_finished_at_the_one_configured_now() {
    let (before, after) = (Idp::start().await, Idp::start().await);
    let first = remote(&before).await;
    let browser = first.browser();
    let asked = begin(&browser).await;
    let second = remote_on(&after, first.store.clone()).await;
    let cookies = std::sync::Mutex::new(browser.cookies.lock().unwrap().clone());
    let browser = Browser { site: &second, cookies, ip: "192.0.2.7".to_owned() };
    assert_eq!(browser.get(&back(&after, &asked["state"])).await.status, 400);
    assert_eq!(after.web.count("/token"), 0, "the code of one provider is not shown to the other");
}

#[tokio::test]
async fn b22_and_b25_a_login_at_the_provider_goes_through_once_in_its_browser() {
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    let browser = site.browser();
    let asked = begin(&browser).await;
    assert_eq!((asked["client_id"].as_str(), asked["code_challenge_method"].as_str()), ("gw", "S256"));
    assert_eq!(asked["redirect_uri"], "https://mcp.example/oauth/callback");
    let id_token = identity(&idp, &idp.key, &asked, json!({}));
    idp.web.on(
        "/token",
        Reply::json(
            json!({"access_token": "idp-access", "refresh_token": "idp-refresh", "id_token": id_token}),
        ),
    );
    let path = back(&idp, &asked["state"]);
    let next = browser.get(&path).await;
    assert_eq!(next.status, 303, "{}", next.text);
    assert!(idp.web.last_body("/token").contains("code_verifier="));
    assert_eq!(browser.get(&path).await.status, 400, "a replay");
    let page = browser.follow(&next).await;
    let code = browser.decide(&page, &["read"], "allow").await.location()["code"].clone();
    let body = site.redeem(&code).await.json();
    let claims = crate::support::site::claims(body["access_token"].as_str().unwrap());
    assert_eq!(
        claims["sub"],
        format!("idp:{}#u1", idp.web.url("")),
        "the issuer and its subject, no mail address"
    );
    let other = site.browser();
    let asked = begin(&other).await;
    assert_eq!(browser.get(&back(&idp, &asked["state"])).await.status, 400, "another browser");
    assert_eq!(browser.get(&back(&idp, "guessed")).await.status, 400);
}

#[tokio::test]
async fn b23_b24_and_b26_an_answer_that_does_not_prove_the_user_gives_nothing() {
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    let stranger = Jwk::generate(Algorithm::ES256).unwrap();
    for bad in [
        json!({"aud": "other"}),
        json!({"iss": "https://evil.example"}),
        json!({"nonce": "other"}),
        json!({"exp": 1}),
        json!({"sub": null}),
        json!({"aud": ["gw", "x"]}),
        json!({"azp": "x"}),
    ] {
        let browser = site.browser();
        let asked = begin(&browser).await;
        idp.web.on(
            "/token",
            Reply::json(
                json!({"access_token": "a", "id_token": identity(&idp, &idp.key, &asked, bad.clone())}),
            ),
        );
        assert_eq!(browser.get(&back(&idp, &asked["state"])).await.status, 400, "{bad}");
    }
    let attempt = |make: fn(&Idp, &Jwk, &BTreeMap<String, String>) -> Value| {
        let (idp, site, stranger) = (&idp, &site, &stranger);
        async move {
            let browser = site.browser();
            let asked = begin(&browser).await;
            idp.web.on("/token", Reply::json(make(idp, stranger, &asked)));
            browser.get(&back(idp, &asked["state"])).await.status.as_u16()
        }
    };
    assert_eq!(attempt(|idp, stranger, asked| json!({"access_token": "a", "id_token": identity(idp, stranger, asked, json!({}))})).await, 400, "another key");
    assert_eq!(
        attempt(|idp, _, asked| json!({"id_token": identity(idp, &idp.key, asked, json!({}))})).await,
        400,
        "no access token"
    );
    assert_eq!(attempt(|_, _, _| json!({"access_token": "a"})).await, 400, "no identity");
    let none = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1MSJ9.";
    assert_eq!(
        attempt(|_, _, _| json!({"access_token": "a", "id_token": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1MSJ9."}))
            .await,
        400,
        "{none}"
    );
    let browser = site.browser();
    let asked = begin(&browser).await;
    for iss in ["&iss=https://evil.example", ""] {
        let path = format!("/oauth/callback?code=x&state={}{iss}", asked["state"]);
        assert_eq!(browser.get(&path).await.status, 400, "wrong issuer");
    }
}

#[tokio::test]
async fn k04_the_providers_tokens_lie_encrypted_in_the_vault() {
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    let browser = site.browser();
    let asked = begin(&browser).await;
    let id_token = identity(&idp, &idp.key, &asked, json!({}));
    idp.web.on("/token", Reply::json(json!({"access_token": "idp-access-token", "id_token": id_token})));
    browser.get(&back(&idp, &asked["state"])).await;
    let session = browser.cookies.lock().unwrap()["__Host-gw-session"].clone();
    let held =
        site.store.get(&gatewright_auth::store::Key::secret("vault", &session)).await.unwrap().unwrap();
    assert!(!String::from_utf8_lossy(&held).contains("idp-access-token"));
}

#[tokio::test]
async fn what_a_client_asks_of_a_login_reaches_the_provider_and_is_checked() {
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    // What the client asks, what the provider tells of the login, and what comes of it.
    let now = idp.clock.now_s();
    let cases = [
        (vec![("max_age", "600")], json!({"auth_time": now - 500}), None),
        (vec![("max_age", "600")], json!({"auth_time": now - 800}), Some("login_required")),
        (vec![("max_age", "600")], json!({}), Some("login_required")),
        (vec![("prompt", "login")], json!({"auth_time": now - 500}), Some("login_required")),
        (vec![("prompt", "login")], json!({"auth_time": now}), None),
        (vec![("prompt", "login")], json!({}), None),
        (vec![], json!({"auth_time": now - 800}), None),
    ];
    for (wish, told, error) in cases {
        let browser = site.browser();
        let changes =
            [wish.as_slice(), &[("login_hint", "una@example.com"), ("scope", "openid profile email")]];
        let asked = browser.get(&ask(&changes.concat())).await.location();
        for (name, value) in &wish {
            assert_eq!(asked[*name], *value);
        }
        assert_eq!(asked["login_hint"], "una@example.com");
        let id_token = identity(&idp, &idp.key, &asked, told.clone());
        idp.web.on("/token", Reply::json(json!({"access_token": "idp-access", "id_token": id_token})));
        let next = browser.get(&back(&idp, &asked["state"])).await;
        if let Some(error) = error {
            assert_eq!(next.location()["error"], error, "{wish:?} {told}");
            continue;
        }
        let page = browser.follow(&next).await;
        // The first time; later the consent is remembered.
        let answer = if page.status == 200 {
            browser.decide(&page, &["openid", "profile", "email"], "allow").await
        } else {
            page
        };
        let body = site.redeem(&answer.location()["code"]).await.json();
        let about = crate::support::site::claims(body["id_token"].as_str().unwrap());
        assert_eq!(about["auth_time"], told.get("auth_time").unwrap_or(&json!(now)).clone());
        let request = Request::get("/oauth/userinfo")
            .header("authorization", format!("Bearer {}", body["access_token"].as_str().unwrap()));
        let person = site.send(request.body(axum::body::Body::empty()).unwrap()).await.json();
        assert_eq!((&person["name"], &person["email"]), (&json!("Una"), &json!("una@example.com")));
        assert_eq!(person["sub"], about["sub"]);
    }
}

#[tokio::test]
async fn a_lifetime_beyond_all_times_does_not_fail_a_login() {
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    let browser = site.browser();
    let asked = begin(&browser).await;
    let id_token = identity(&idp, &idp.key, &asked, json!({}));
    let answer = json!({"access_token": "idp-access", "id_token": id_token, "expires_in": u64::MAX});
    idp.web.on("/token", Reply::json(answer));
    let next = browser.get(&back(&idp, &asked["state"])).await;
    assert_eq!(next.status, 303, "{}", next.text);
}
