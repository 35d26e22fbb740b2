//! Our refresh tokens work only while the provider that the user logged in at confirms the user (`type: remote`).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gatewright_auth::{
    Clock as _,
    keys::{Algorithm, Jwk},
    store::{Key, MemoryStore, Store},
};
use serde_json::{Value, json};

use crate::support::{
    idp::{Idp, back, begin, identity, remote},
    site::{Answer, Browser, Site},
    web::Reply,
};

/// Answers the provider's token endpoint with these tokens and, when there is one, an ID token.
fn grants(idp: &Idp, refresh: &str, id_token: Option<String>) {
    let body = json!({"access_token": format!("access of {refresh}"), "refresh_token": refresh, "expires_in": 300, "id_token": id_token});
    idp.web.on("/token", Reply::json(body));
}

fn refuses(idp: &Idp, status: u16, body: Value) {
    idp.web.on("/token", Reply { status, ..Reply::json(body) });
}

/// Logs in at the provider; its token endpoint then answers with `refresh`.
async fn login(idp: &Idp, browser: &Browser<'_>, refresh: &str) -> Value {
    let asked = begin(browser).await;
    grants(idp, refresh, Some(identity(idp, &idp.key, &asked, json!({}))));
    finish(browser, &browser.get(&back(idp, &asked["state"])).await).await
}

async fn finish(browser: &Browser<'_>, next: &Answer) -> Value {
    assert_eq!(next.status, 303, "{}", next.text);
    let page = browser.follow(next).await;
    let answer = if page.status == 200 { browser.decide(&page, &["read"], "allow").await } else { page };
    let body = browser.site.redeem(&answer.location()["code"]).await.json();
    assert!(body["refresh_token"].is_string(), "{body}");
    body
}

/// Returns the refresh requests that the provider received.
fn refreshes(idp: &Idp) -> Vec<BTreeMap<String, String>> {
    let bodies = idp.web.seen().into_iter().filter(|(path, _)| path == "/token");
    let bodies = bodies.map(|(_, body)| url::form_urlencoded::parse(body.as_bytes()).into_owned().collect());
    bodies.filter(|pairs: &BTreeMap<_, _>| pairs["grant_type"] == "refresh_token").collect()
}

fn text(body: &Value, name: &str) -> String {
    body[name].as_str().unwrap_or_else(|| panic!("{name} in {body}")).to_owned()
}

#[tokio::test]
async fn a_refresh_asks_the_provider_with_the_newest_token_it_gave_and_not_twice_in_a_minute() {
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    let mut ours = login(&idp, &site.browser(), "first").await;
    ours = site.refresh(&text(&ours, "refresh_token"), &[]).await.json();
    assert_eq!(refreshes(&idp).len(), 0, "the login was a moment ago");
    for (has, next) in [("first", "second"), ("second", "third")] {
        idp.clock.advance(Duration::from_secs(61));
        grants(&idp, next, None);
        let answer = site.refresh(&text(&ours, "refresh_token"), &[]).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        ours = answer.json();
        assert_eq!(refreshes(&idp).last().unwrap()["refresh_token"], has, "the provider rotates");
    }
    assert_eq!((refreshes(&idp).len(), site.events("provider.confirmed")), (2, 2));
    // A provider that does not rotate leaves the refresh token out.
    for _ in 0..2 {
        idp.clock.advance(Duration::from_secs(61));
        idp.web.on("/token", Reply::json(json!({"access_token": "a"})));
        ours = site.refresh(&text(&ours, "refresh_token"), &[]).await.json();
        assert_eq!(refreshes(&idp).last().unwrap()["refresh_token"], "third");
    }
}

#[tokio::test]
async fn whom_the_provider_refuses_loses_what_came_of_that_login_at_once() {
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    let browser = site.browser();
    let ours = login(&idp, &browser, "first").await;
    // A second client, let in by the same browser session.
    let changes = [("client_id", "other"), ("redirect_uri", "https://other.example/cb")];
    let code = browser.code(&changes).await;
    let others = site.redeem_with(&code, &[("client_id", "other")]).await.json();
    idp.clock.advance(Duration::from_secs(61));
    refuses(&idp, 400, json!({"error": "invalid_grant", "error_description": "user disabled"}));
    let refused = site.refresh(&text(&ours, "refresh_token"), &[]).await;
    assert_eq!(
        (&*refused.error(), refused.refusal),
        ("invalid_grant", Some(gatewright_auth::GrantRefusal::ProviderRefused))
    );
    let again = site.refresh(&text(&others, "refresh_token"), &[("client_id", "other")]).await;
    assert_eq!(again.error(), "invalid_grant");
    assert_eq!(refreshes(&idp).len(), 1, "the answer counts for both");
    for token in [&ours, &others] {
        assert_eq!(site.introspect(&text(token, "access_token")).await["active"], false);
    }
    assert_eq!(site.events("provider.refused"), 1);
    let asked = browser.get(&crate::support::site::ask(&[])).await;
    assert!(asked.header("location").starts_with(&idp.web.url("/authorize?")), "has to log in again");
}

#[tokio::test]
async fn whoever_signs_out_while_the_provider_is_asked_leaves_no_tokens_of_it_behind() {
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    let browser = site.browser();
    let ours = login(&idp, &browser, "first").await;
    idp.clock.advance(Duration::from_secs(61));
    let (gate, before) = (idp.web.hold("/token"), idp.web.count("/token"));
    grants(&idp, "second", None);
    let sign_out = async {
        while idp.web.count("/token") == before {
            tokio::task::yield_now().await;
        }
        let page = browser.get("/oauth/logout").await;
        let csrf = page.field("csrf");
        assert!(browser.post("/oauth/logout", &[("csrf", &csrf)]).await.status.as_u16() < 400);
        gate.add_permits(1);
    };
    let token = text(&ours, "refresh_token");
    let (refreshed, ()) = tokio::join!(site.refresh(&token, &[]), sign_out);
    assert_eq!(refreshed.error(), "invalid_grant", "{}", refreshed.text);
    assert_eq!(site.events("provider.confirmed"), 0);
}

#[tokio::test]
async fn a_provider_that_is_down_or_has_a_quarrel_with_us_ends_nothing() {
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    let ours = login(&idp, &site.browser(), "first").await;
    idp.clock.advance(Duration::from_secs(61));
    for (status, body) in [
        (503, json!({})),
        (500, json!({"error": "server_error"})),
        (429, json!({})),
        (401, json!({"error": "invalid_client"})),
        (400, json!({"error": "invalid_scope"})),
        (200, json!("nonsense")),
    ] {
        refuses(&idp, status, body.clone());
        let answer = site.refresh(&text(&ours, "refresh_token"), &[]).await;
        assert_eq!(
            (answer.status.as_u16(), answer.error().as_str()),
            (503, "temporarily_unavailable"),
            "{status} {body}"
        );
        assert!(!answer.header("retry-after").is_empty());
    }
    assert_eq!(
        site.server
            .metrics()
            .prometheus()
            .lines()
            .find(|line| line.starts_with("gatewright_auth_store_errors"))
            .unwrap()
            .rsplit(' ')
            .next(),
        Some("0"),
        "no fault of the store"
    );
    grants(&idp, "second", None);
    assert_eq!(site.refresh(&text(&ours, "refresh_token"), &[]).await.status, 200, "nothing was used up");
}

#[tokio::test]
async fn an_answer_about_somebody_else_or_that_does_not_verify_ends_the_login() {
    let stranger = Jwk::generate(Algorithm::ES256).unwrap();
    for bad in [
        json!({"sub": "u2"}),
        json!({"iss": "https://evil.example"}),
        json!({"aud": "other"}),
        json!("stranger"),
    ] {
        let idp = Idp::start().await;
        let site = remote(&idp).await;
        let browser = site.browser();
        let ours = login(&idp, &browser, "first").await;
        idp.clock.advance(Duration::from_secs(61));
        let asked = BTreeMap::from([("nonce".to_owned(), "any".to_owned())]);
        let (key, changes) = if bad.is_string() { (&stranger, json!({})) } else { (&idp.key, bad.clone()) };
        grants(&idp, "second", Some(identity(&idp, key, &asked, changes)));
        assert_eq!(site.refresh(&text(&ours, "refresh_token"), &[]).await.error(), "invalid_grant", "{bad}");
    }
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    let ours = login(&idp, &site.browser(), "first").await;
    idp.clock.advance(Duration::from_secs(61));
    let asked = BTreeMap::from([("nonce".to_owned(), "any".to_owned())]);
    grants(&idp, "second", Some(identity(&idp, &idp.key, &asked, json!({}))));
    assert_eq!(site.refresh(&text(&ours, "refresh_token"), &[]).await.status, 200, "the same user");
}

#[tokio::test]
async fn clients_that_refresh_at_once_through_two_instances_make_one_question() {
    let idp = Idp::start().await;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(idp.clock.clone()));
    let over = json!({"type": "remote", "encryptionKey": "0123456789abcdef0123456789abcdef",
        "provider": {"url": idp.web.url(""), "clientId": "gw", "clientSecret": "idp-secret", "allowPrivate": true}});
    let first = Site::on(over.clone(), idp.clock.clone(), store.clone()).await;
    let second = Site::on(over, idp.clock.clone(), store).await;
    let browser = first.browser();
    let mut held = vec![login(&idp, &browser, "first").await];
    for _ in 0..7 {
        let code = browser.code(&[]).await;
        held.push(first.redeem(&code).await.json());
    }
    idp.clock.advance(Duration::from_secs(61));
    grants(&idp, "second", None);
    let all = futures::future::join_all(held.iter().enumerate().map(|(n, body)| {
        let site = if n % 2 == 0 { &first } else { &second };
        async move { site.refresh(&text(body, "refresh_token"), &[]).await.status.as_u16() }
    }));
    assert_eq!(all.await, [200; 8]);
    assert_eq!(refreshes(&idp).len(), 1);
}

#[tokio::test]
async fn a_login_that_cannot_be_asked_about_lasts_as_long_as_a_session() {
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    let browser = site.browser();
    let asked = begin(&browser).await;
    let id_token = identity(&idp, &idp.key, &asked, json!({}));
    idp.web.on("/token", Reply::json(json!({"access_token": "a", "id_token": id_token})));
    let mut ours = finish(&browser, &browser.get(&back(&idp, &asked["state"])).await).await;
    for _ in 0..2 {
        idp.clock.advance(Duration::from_secs(40_000));
        ours = site.refresh(&text(&ours, "refresh_token"), &[]).await.json();
    }
    idp.clock.advance(Duration::from_secs(6_400));
    assert_eq!(
        site.refresh(&text(&ours, "refresh_token"), &[]).await.error(),
        "invalid_grant",
        "after 24 hours"
    );
    assert_eq!(refreshes(&idp).len(), 0);
}

#[tokio::test]
async fn a_login_whose_vault_is_lost_or_whose_provider_is_another_one_has_to_be_made_again() {
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    let browser = site.browser();
    let ours = login(&idp, &browser, "first").await;
    let session = browser.cookies.lock().unwrap()["__Host-gw-session"].clone();
    site.store.remove(&Key::secret("vault", &session)).await.unwrap();
    assert_eq!(site.refresh(&text(&ours, "refresh_token"), &[]).await.error(), "invalid_grant");
    let ours = login(&idp, &site.browser(), "first").await;
    let local = Site::on(json!({}), idp.clock.clone(), site.store.clone()).await;
    assert_eq!(local.refresh(&text(&ours, "refresh_token"), &[]).await.error(), "invalid_grant");
}

#[tokio::test]
async fn keys_that_the_provider_rotated_are_taken_up_by_logins_after_the_cool_down() {
    let mut idp = Idp::start().await;
    let site = remote(&idp).await;
    login(&idp, &site.browser(), "first").await;
    idp.key = Jwk::generate(Algorithm::ES256).unwrap();
    idp.publish(&[&idp.key]);
    login(&idp, &site.browser(), "second").await;
    // The first rotation is taken up at once; one that follows closely waits for the cool-down.
    idp.key = Jwk::generate(Algorithm::ES256).unwrap();
    idp.publish(&[&idp.key]);
    let browser = site.browser();
    let asked = begin(&browser).await;
    grants(&idp, "third", Some(identity(&idp, &idp.key, &asked, json!({}))));
    let early = browser.get(&back(&idp, &asked["state"])).await;
    assert_eq!(early.status, 400, "fetched a moment ago");
    assert!(early.text.contains("did not confirm who you are"));
    idp.clock.advance(Duration::from_secs(31));
    let before = idp.clock.now_s();
    login(&idp, &site.browser(), "third").await;
    assert_eq!(idp.clock.now_s(), before);
}

#[tokio::test]
async fn the_tokens_of_the_provider_stay_as_long_as_what_they_let_in_can_live_and_no_longer() {
    const HOUR: u64 = 3_600;
    for (session, refresh, enabled) in [(2, 5, true), (5, 2, true), (2, 5, false)] {
        let idp = Idp::start().await;
        let store = Arc::new(MemoryStore::new(idp.clock.clone()));
        let config = json!({
            "type": "remote",
            "provider": {"url": idp.web.url(""), "clientId": "gw", "clientSecret": "idp-secret", "allowPrivate": true},
            "session": {"absoluteTtl": session * HOUR, "idleTtl": HOUR},
            "refresh": {"enabled": enabled, "absoluteTtl": refresh * HOUR, "refreshTokenTtl": HOUR},
        });
        let site = Site::on(config, idp.clock.clone(), store).await;
        let browser = site.browser();
        let asked = begin(&browser).await;
        grants(&idp, "first", Some(identity(&idp, &idp.key, &asked, json!({}))));
        let next = browser.get(&back(&idp, &asked["state"])).await;
        assert_eq!(next.status, 303, "{}", next.text);
        let id = browser.cookies.lock().unwrap()["__Host-gw-session"].clone();
        let is_kept = async || site.store.get(&Key::secret("vault", &id)).await.unwrap().is_some();
        let longest = HOUR * if enabled { session.max(refresh) } else { session };
        assert!(is_kept().await, "right after the login");
        site.clock.advance(Duration::from_secs(longest - 1));
        assert!(is_kept().await, "session {session} h, refresh {refresh} h, {enabled}: gone too early");
        site.clock.advance(Duration::from_secs(2));
        assert!(!is_kept().await, "session {session} h, refresh {refresh} h, {enabled}: kept for too long");
    }
}
