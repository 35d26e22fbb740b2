//! The account page: applications, sessions and approvals of a user, and the way out.

use std::{sync::Arc, time::Duration};

use gatewright_auth::ApprovalPages;
use gatewright_core::{
    ApprovalDuration, ApprovalRecord, ApprovalState, ApprovalStore, Claimant, RequestObject,
};
use http::{Request, header};
use serde_json::json;

use crate::support::{
    account::{ACCOUNT, account},
    site::{Answer, Browser, PASSWORD, Site, ask},
};

/// The account page of a user who is signed in elsewhere, too: it has a form.
async fn account_with_form(site: &Site, browser: &Browser<'_>, user: &str) -> Answer {
    account(&site.browser(), user).await;
    account(browser, user).await
}

/// Sends the form of `action` that has a field `name` with `value`.
async fn act(browser: &Browser<'_>, page: &Answer, action: &str, (name, value): (&str, &str)) -> Answer {
    let csrf = page.field("csrf");
    browser.post(ACCOUNT, &[("csrf", &csrf), ("action", action), (name, value)]).await
}

#[tokio::test]
async fn an_application_that_is_withdrawn_loses_its_tokens_and_has_to_ask_again() {
    let site = Site::new().await;
    let (browser, bob) = (site.browser(), site.browser());
    let none = account(&browser, "alice").await;
    assert!(none.text.contains("Applications that you allow"), "{}", none.text);
    site.clock.advance(Duration::from_millis(2));
    let tokens = site.redeem(&browser.code(&[("scope", "read")]).await).await.json();
    let page = browser.get(ACCOUNT).await;
    assert!(page.text.contains("The App") && page.text.contains(": read"), "{}", page.text);
    let other = act(&bob, &account_with_form(&site, &bob, "bob").await, "withdraw", ("client", "app")).await;
    assert!(other.status == 400 && other.text.contains("has no access any more"), "{}", other.text);
    site.clock.advance(Duration::from_millis(2));
    assert_eq!(act(&browser, &page, "withdraw", ("client", "app")).await.status, 303);
    assert_eq!(site.events("consent.withdrawn"), 1);
    site.clock.advance(Duration::from_millis(2));
    let refreshed = site.refresh(tokens["refresh_token"].as_str().unwrap(), &[]).await;
    assert_eq!(refreshed.error(), "invalid_grant");
    assert!(!browser.get(ACCOUNT).await.text.contains("The App"));
    assert!(browser.get(&ask(&[("scope", "read")])).await.text.contains("name=\"decision\""), "asks again");
}

#[tokio::test]
async fn an_application_is_listed_once_with_what_it_got_last() {
    let site = Site::new().await;
    let browser = site.browser();
    for scope in ["read", "read write"] {
        browser.code(&[("scope", scope)]).await;
    }
    let page = browser.get(ACCOUNT).await;
    assert_eq!(page.text.matches("value=\"withdraw\"").count(), 1);
    assert!(page.text.contains(": read, write"), "{}", page.text);
}

#[tokio::test]
async fn another_session_is_signed_out_and_those_of_other_users_cannot_be() {
    let site = Site::new().await;
    let (here, there, bob) = (site.browser(), site.browser(), site.browser());
    account(&there, "alice").await;
    site.clock.advance(Duration::from_millis(2));
    let page = account(&here, "alice").await;
    assert_eq!(page.text.matches("this browser").count(), 1);
    assert_eq!(page.text.matches("value=\"end-session\"").count(), 1, "one other");
    let handle = page.field("session");
    let foreign =
        act(&bob, &account_with_form(&site, &bob, "bob").await, "end-session", ("session", &handle)).await;
    assert!(foreign.status == 400 && foreign.text.contains("over already"), "{}", foreign.text);
    assert!(there.get(ACCOUNT).await.text.contains("Your account"));
    site.clock.advance(Duration::from_millis(2));
    assert_eq!(act(&here, &page, "end-session", ("session", &handle)).await.status, 303);
    assert!(there.get(ACCOUNT).await.text.contains("name=\"password\""), "signed out");
    assert!(here.get(ACCOUNT).await.text.contains("this browser"), "still signed in");
    assert_eq!(site.events("session.ended"), 1);
}

#[tokio::test]
async fn sessions_are_told_apart_by_their_browser_and_end_idle() {
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.get(ACCOUNT).await;
    let fields = format!(
        "pending={}&csrf={}&username=alice&password={}",
        page.field("pending"),
        page.field("csrf"),
        PASSWORD.replace(' ', "+")
    );
    let login = Request::post("/oauth/login")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::USER_AGENT, "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0");
    assert_eq!(browser.send(login.body(fields.into()).unwrap()).await.status, 303);
    let page = browser.get(ACCOUNT).await;
    assert!(page.text.contains("Firefox on Linux"), "{}", page.text);
    site.clock.advance(Duration::from_secs(28_801));
    let later = site.browser();
    let page = account(&later, "alice").await;
    assert!(!page.text.contains("Firefox on Linux"), "over: {}", page.text);
}

#[tokio::test]
async fn a_form_of_another_session_or_site_or_without_a_session_changes_nothing() {
    let site = Site::new().await;
    let (browser, bob) = (site.browser(), site.browser());
    browser.code(&[]).await;
    let (page, theirs) = (browser.get(ACCOUNT).await, account_with_form(&site, &bob, "bob").await);
    assert_eq!(act(&browser, &theirs, "withdraw", ("client", "app")).await.status, 403);
    assert_eq!(act(&site.browser(), &page, "withdraw", ("client", "app")).await.status, 403);
    let csrf = page.field("csrf");
    let mut foreign =
        crate::support::site::post(ACCOUNT, &[("csrf", &csrf), ("action", "withdraw"), ("client", "app")]);
    foreign.headers_mut().insert(header::ORIGIN, "https://evil.example".parse().unwrap());
    assert_eq!(browser.send(foreign).await.status, 403);
    assert_eq!(act(&browser, &page, "fly", ("client", "app")).await.status, 400);
    assert_eq!(site.events("consent.withdrawn"), 0);
}

#[tokio::test]
async fn a_sign_out_can_be_cancelled() {
    let site = Site::new().await;
    let browser = site.browser();
    account(&browser, "alice").await;
    for path in ["/oauth/logout", "/oauth/logout?client_id=app&state=s"] {
        let page = browser.get(path).await;
        assert!(
            page.text.contains("href=\"https://mcp.example/oauth/account\">Stay signed in</a>"),
            "{}",
            page.text
        );
    }
    assert!(browser.get(ACCOUNT).await.text.contains("Signed in as <strong>alice"));
    assert_eq!(site.events("logout"), 0);
}

#[tokio::test]
async fn approvals_that_wait_are_on_the_account_page() {
    let mut site = Site::new().await;
    let store = Arc::new(ApprovalStore::in_memory());
    let pages = ApprovalPages::new(&site.server, store.clone());
    site.router = site.router.clone().merge(pages.router());
    let browser = site.browser();
    assert!(account(&browser, "alice").await.text.contains("Nothing waits for you."));
    let now = site.now_s() * 1000;
    for n in 0..5 {
        let record = ApprovalRecord {
            id: format!("apr_{n:032x}"),
            nonce: 1,
            subject: if n == 4 { "user:bob" } else { "user:alice" }.to_owned(),
            client: None,
            object: RequestObject::Tool(format!("shop:refund_{n}")),
            digest: "00".repeat(32),
            arguments: Vec::new(),
            reason: "Refund over 1,000".to_owned(),
            policy: "large-refunds".to_owned(),
            run: None,
            step: None,
            may_stand: false,
            approvers: None,
            created_ms: now,
            expires_ms: now + 600_000,
            state: ApprovalState::Waiting,
            duration: ApprovalDuration::Once,
            by: None,
        };
        store.request(record, &Claimant::default(), 20).await.unwrap();
    }
    let page = browser.get(ACCOUNT).await;
    assert_eq!(page.text.matches("shop:refund_").count(), 3);
    assert!(
        page.text.contains("and 1 more") && page.text.contains("/oauth/account/approvals"),
        "{}",
        page.text
    );
    assert!(!page.text.contains("refund_4"), "of another user");
}

#[tokio::test]
async fn without_kept_sessions_there_is_no_account_page() {
    let site = Site::with(json!({"sessionMode": "stateless"})).await;
    let page = site.get(ACCOUNT).await;
    assert!(page.status == 404 && page.text.contains("sessionMode"), "{}", page.text);
    assert!(!site.get(&ask(&[])).await.text.contains(ACCOUNT), "no link to it");
}
