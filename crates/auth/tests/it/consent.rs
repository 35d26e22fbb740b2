//! The conditions of the consent page, and the apps and tools on it.

use std::sync::Arc;

use gatewright_auth::{ConsentTool, ManualClock, store::SqliteStore};
use serde_json::json;

use crate::support::site::{Answer, Browser, PASSWORD, Site, ask, post};

fn tool(app: &str, name: &str, scopes: &[&str]) -> ConsentTool {
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    ConsentTool {
        app: app.into(),
        name: format!("{app}:{name}"),
        scopes,
        destructive: name.contains("delete"),
    }
}

#[tokio::test]
async fn the_consent_page_names_the_apps_and_tools_that_the_scopes_reach() {
    let site = Site::new().await;
    site.server.set_consent_tools(|| {
        vec![
            tool("notes", "list", &["read"]),
            tool("notes", "delete", &["read", "write"]),
            tool("notes", "<b>ping", &[]),
            tool("secrets", "show", &["write"]),
        ]
    });
    let page = site.browser().to_consent(&[("scope", "read")]).await.text;
    assert!(page.contains("<summary><span><strong>notes</strong>: 2 of 3 tools</span></summary>"), "{page}");
    assert!(page.contains("<code>notes:list</code> needs: Read your notes"));
    assert!(page.contains("<code>notes:&lt;b&gt;ping</code>") && !page.contains("notes:delete"));
    assert!(!page.contains("secrets"), "an app without a tool in reach is not covered");
    let page = site.browser().to_consent(&[("scope", "read write")]).await.text;
    assert!(page.contains("notes</strong>: 3 of 3 tools") && page.contains("secrets</strong>: 1 of 1 tool<"));
    let deletes = page.split("<li>").find(|item| item.contains("notes:delete")).unwrap();
    assert!(deletes.contains("needs: Read your notes, Change your notes"), "{deletes}");
    assert!(deletes.contains("may delete or overwrite"), "{deletes}");
}

#[tokio::test]
async fn of_many_tools_and_apps_the_first_are_named_and_the_others_counted() {
    let site = Site::new().await;
    site.server.set_consent_tools(|| {
        let many = (0..40).map(|n| tool("notes", &format!("t{n:02}"), &["read"]));
        let apps = (0..30).map(|n| tool(&format!("z{n:02}"), "t", &[]));
        many.chain(apps).collect()
    });
    let page = site.browser().to_consent(&[]).await.text;
    assert!(page.contains("40 of 40 tools") && page.contains("<li>and 15 more tools</li>"), "{page}");
    assert!(page.contains("notes:t24") && !page.contains("notes:t25"));
    assert!(page.contains("<li>and 11 more apps</li>") && page.contains("z18") && !page.contains("z19"));
}

#[tokio::test]
async fn nothing_in_reach_is_said_and_without_a_catalogue_nothing_is() {
    let site = Site::new().await;
    assert!(!site.browser().to_consent(&[]).await.text.contains("covered"));
    site.server.set_consent_tools(|| vec![tool("notes", "delete", &["write"])]);
    let page = site.browser().to_consent(&[]).await.text;
    assert!(page.contains("No tool is within reach of this."));
}

fn asks(answer: &Answer) -> bool {
    answer.status == 200 && answer.text.contains("name=\"decision\"")
}

#[tokio::test]
async fn a_scope_that_was_refused_once_is_asked_for_again() {
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.to_consent(&[("scope", "read write")]).await;
    browser.decide(&page, &["read"], "allow").await;
    assert!(browser.get(&ask(&[("scope", "read")])).await.location().contains_key("code"));
    let again = browser.get(&ask(&[("scope", "read write")])).await;
    assert!(asks(&again), "{:?}", again.headers);
    let ticked = |scope: &str| {
        let input =
            again.text.split("<input").find(|input| input.contains(&format!("value=\"{scope}\""))).unwrap();
        input.split('>').next().unwrap().contains("checked")
    };
    assert!(ticked("read") && !ticked("write"), "{}", again.text);
    assert!(!again.text.contains("class=\"new\""), "it was offered before");
    let code = browser.decide(&again, &["read", "write"], "allow").await.location()["code"].clone();
    assert_eq!(site.redeem(&code).await.json()["scope"], "read write");
    assert!(browser.get(&ask(&[("scope", "read write")])).await.location().contains_key("code"));
}

#[tokio::test]
async fn prompt_none_does_not_stand_for_a_scope_that_was_refused() {
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.to_consent(&[("scope", "read write")]).await;
    browser.decide(&page, &["read"], "allow").await;
    let silent =
        async |scope: &str| browser.get(&ask(&[("scope", scope), ("prompt", "none")])).await.location();
    assert_eq!(silent("read write").await["error"], "consent_required");
    assert_eq!(silent("write").await["error"], "consent_required");
    assert!(silent("read").await.contains_key("code"));
}

#[tokio::test]
async fn a_remembered_consent_never_answers_a_public_client_on_this_computer() {
    let uris = ["http://127.0.0.1/cb", "http://localhost/cb", "http://[::1]/cb", "com.example.app:/cb"];
    let odd = ["https://127.0.0.2/cb", "https://app.localhost/cb", "https://[::ffff:127.0.0.1]/cb"];
    let registered: Vec<&str> = uris.into_iter().chain(odd).collect();
    let site = Site::with(json!({"clients": [
        {"clientId": "app", "redirectUris": registered},
        {"clientId": "proved", "clientSecret": "a-secret-of-this-client-0123456789", "redirectUris": registered},
    ]}))
    .await;
    for uri in [
        "http://127.0.0.1:5555/cb",
        "http://localhost:1/cb",
        "http://[::1]:2/cb",
        uris[3],
        odd[0],
        odd[1],
        odd[2],
    ] {
        let browser = site.browser();
        browser.code(&[("redirect_uri", uri)]).await;
        assert!(asks(&browser.get(&ask(&[("redirect_uri", uri)])).await), "{uri}");
        let proved = [("client_id", "proved"), ("redirect_uri", uri)];
        browser.code(&proved).await;
        assert!(
            browser.get(&ask(&proved)).await.location().contains_key("code"),
            "{uri} of a client with a secret"
        );
    }
}

#[tokio::test]
async fn a_configured_client_on_this_computer_is_not_asked_for_where_consent_is_off() {
    let site = Site::with(json!({"consent": {"enabled": false}})).await;
    let local = [("redirect_uri", "http://127.0.0.1:5555/cb")];
    let browser = site.browser();
    assert!(browser.to_consent(&local).await.location().contains_key("code"));
    assert!(browser.get(&ask(&local)).await.location().contains_key("code"));
}

#[tokio::test]
async fn a_registered_client_on_this_computer_is_asked_for_each_time() {
    let site = Site::with(json!({"dcrEnabled": true, "consent": {"enabled": false}})).await;
    let metadata = json!({"redirect_uris": ["http://127.0.0.1/cb"], "token_endpoint_auth_method": "none"});
    let mut request = post("/oauth/register", &[]);
    *request.body_mut() = axum::body::Body::from(metadata.to_string());
    request.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    let id = site.send(request).await.json()["client_id"].as_str().unwrap().to_owned();
    let changes = [("client_id", id.as_str()), ("redirect_uri", "http://127.0.0.1:7/cb")];
    let browser = site.browser();
    browser.code(&changes).await;
    assert!(asks(&browser.get(&ask(&changes)).await));
}

#[tokio::test]
async fn a_page_of_one_user_is_not_decided_after_another_signed_in_at_the_same_browser() {
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.to_consent(&[]).await;
    let login = browser.get(&ask(&[("prompt", "login")])).await;
    let next = browser.log_in(&login, "bob", PASSWORD).await;
    assert_eq!(next.status, 303, "{}", next.text);
    let of_bob = browser.follow(&next).await;
    for decision in ["allow", "deny"] {
        let answer = browser.decide(&page, &["read"], decision).await;
        assert!(answer.status == 400 && answer.text.contains("Another user"), "{}", answer.text);
    }
    assert_eq!(browser.decide(&of_bob, &["read"], "allow").await.status, 303);
}

async fn sign_out(browser: &Browser<'_>) {
    let csrf = browser.get("/oauth/logout").await.field("csrf");
    assert_eq!(browser.post("/oauth/logout", &[("csrf", &csrf)]).await.status, 200);
}

async fn sign_in_again(browser: &Browser<'_>, name: &str) -> Answer {
    let login = browser.get(&ask(&[("prompt", "login")])).await;
    let next = browser.log_in(&login, name, PASSWORD).await;
    assert_eq!(next.status, 303, "{}", next.text);
    browser.follow(&next).await
}

#[tokio::test]
async fn a_page_is_decided_by_nobody_who_signed_out_however_often_somebody_signed_in_before() {
    for others in [&[][..], &["bob"], &["alice"], &["alice", "alice"]] {
        let site = Site::new().await;
        let browser = site.browser();
        let page = browser.to_consent(&[]).await;
        for other in others {
            sign_in_again(&browser, other).await;
        }
        sign_out(&browser).await;
        let answer = browser.decide(&page, &["read"], "allow").await;
        assert_eq!(answer.status, 400, "{others:?}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_page_is_decided_after_its_user_signed_in_again() {
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.to_consent(&[]).await;
    let second = sign_in_again(&browser, "alice").await;
    for page in [page, second] {
        assert!(browser.decide(&page, &["read"], "allow").await.location().contains_key("code"));
    }
}

#[tokio::test]
async fn a_sign_out_ends_what_was_granted_before_the_user_signed_in_again() {
    let site = Site::with(json!({"limits": {"login": 1_000, "authorize": 1_000}})).await;
    let browser = site.browser();
    let tokens = site.redeem(&browser.code(&[]).await).await.json();
    let refresh = tokens["refresh_token"].as_str().unwrap();
    // More often than one session knows of.
    for _ in 0..20 {
        sign_in_again(&browser, "alice").await;
    }
    let recent = site.redeem(&browser.code(&[("prompt", "login")]).await).await;
    assert_eq!(site.refresh(refresh, &[]).await.error(), "invalid_grant", "too long ago");
    let recent = recent.json();
    sign_in_again(&browser, "alice").await;
    let refreshed = site.refresh(recent["refresh_token"].as_str().unwrap(), &[]).await;
    assert_eq!(refreshed.status, 200, "it lives on: {}", refreshed.text);
    sign_out(&browser).await;
    let refresh = refreshed.json()["refresh_token"].as_str().unwrap().to_owned();
    assert_eq!(site.refresh(&refresh, &[]).await.error(), "invalid_grant");
}

#[tokio::test]
async fn a_client_on_this_computer_has_one_consent_whatever_its_port() {
    let registered = ["http://127.0.0.1/cb", "http://[::1]/cb"];
    let clients = json!([{"clientId": "app", "clientSecret": "a-secret-of-this-client-0123456789", "redirectUris": registered}]);
    let site = Site::with(json!({"clients": clients})).await;
    let browser = site.browser();
    browser.code(&[("redirect_uri", "http://127.0.0.1:1000/cb")]).await;
    for port in 1001..1010 {
        let redirect = format!("http://127.0.0.1:{port}/cb");
        let answer = browser.get(&ask(&[("redirect_uri", &redirect)])).await;
        assert!(answer.header("location").starts_with(&redirect), "{}", answer.text);
    }
    assert!(asks(&browser.get(&ask(&[("redirect_uri", "http://[::1]:1000/cb")])).await), "another address");
    browser.code(&[("redirect_uri", "http://[::1]:1000/cb")]).await;
    assert_eq!(site.store.list("consent", 100).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_answers_to_one_page_the_first_counts() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::from_system());
    let store = SqliteStore::open(&folder.path().join("auth.db"), "gw:", clock.clone()).unwrap();
    let site = Site::on(json!({}), clock, Arc::new(store)).await;
    for _ in 0..20 {
        let browser = site.browser();
        let page = browser.to_consent(&[("prompt", "consent")]).await;
        let answers = (0..8).map(|n| browser.decide(&page, &["read"], ["allow", "deny"][n % 2]));
        let answers = futures::future::join_all(answers).await;
        let mut decided = answers.iter().filter(|answer| answer.status == 303);
        let first = decided.next().expect("one counts").location();
        assert!(first.contains_key("code") || first["error"] == "access_denied", "{first:?}");
        assert_eq!(decided.next().map(Answer::location), None, "after {first:?}");
    }
}
