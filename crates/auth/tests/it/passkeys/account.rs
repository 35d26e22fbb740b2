//! The account page: passkeys are added, renamed and removed there.

use std::time::Duration;

use http::header;
use serde_json::json;

use super::{ACCOUNT, account, act, add, log_in, passkey, site};
use crate::support::{
    authenticator::{Authenticator, PRESENT, b64, options},
    site::{PASSWORD, Site, post},
};

#[tokio::test]
async fn a_registration_that_is_not_in_order_adds_nothing() {
    type Bend = fn(&mut Authenticator);
    let bends: [(&str, Bend); 6] = [
        ("another origin", |key| key.origin = "https://evil.example".into()),
        ("another relying party", |key| key.rp_id = "evil.example".into()),
        ("no user verification", |key| key.flags = PRESENT),
        ("a login", |key| key.kind = Some("webauthn.get")),
        ("another challenge", |key| key.challenge = Some(b64([7; 16]))),
        ("a frame of another site", |key| key.cross_origin = true),
    ];
    let site = site().await;
    let browser = site.browser();
    account(&browser, "alice").await;
    for (what, bend) in bends {
        let (page, mut key) = (browser.get(ACCOUNT).await, Authenticator::new());
        bend(&mut key);
        let answer = add(&browser, &page, &mut key, "x").await;
        assert_eq!(answer.status, 400, "{what}");
        assert!(answer.text.contains("could not be checked") && answer.text.contains("none yet"), "{what}");
    }
    assert_eq!(site.events("passkey.added"), 0);
}

#[tokio::test]
async fn the_account_page_wants_a_recent_login_our_form_and_our_origin() {
    let site = site().await;
    let browser = site.browser();
    let page = account(&browser, "alice").await;
    let credential = Authenticator::new().create(&options(&page));
    let (csrf, ceremony) = (page.field("csrf"), page.field("ceremony"));
    let pairs = |csrf| {
        [("action", "add"), ("csrf", csrf), ("ceremony", ceremony.as_str()), ("credential", &credential)]
    };
    for wrong in ["", "x", &csrf[1..]] {
        assert_eq!(browser.post(ACCOUNT, &pairs(wrong)).await.status, 403);
    }
    let mut foreign = post(ACCOUNT, &pairs(&csrf));
    foreign.headers_mut().insert(header::ORIGIN, "https://evil.example".parse().unwrap());
    assert_eq!(browser.send(foreign).await.status, 403);
    let bob = site.browser();
    account(&bob, "bob").await;
    assert_eq!(bob.post(ACCOUNT, &pairs(&csrf)).await.status, 403, "a form shown to another session");
    assert_eq!(site.browser().post(ACCOUNT, &pairs(&csrf)).await.status, 403, "no session");
    site.clock.advance(Duration::from_secs(601));
    assert_eq!(browser.post(ACCOUNT, &pairs(&csrf)).await.status, 403, "too long ago");
    let page = browser.get(ACCOUNT).await;
    assert!(!page.text.contains("data-options") && page.text.contains("Sign in again to change passkeys"));
    let again = browser.get("/oauth/account?again=yes").await;
    assert!(again.text.contains("name=\"password\""), "the page asks for the login again");
    let back = browser.log_in(&again, "alice", PASSWORD).await;
    let page = browser.follow(&browser.follow(&back).await).await;
    assert!(page.text.contains("data-options"), "{}", page.text);
    assert!(browser.get("/oauth/account?again=yes").await.text.contains("data-options"), "recent enough");
    assert_eq!(site.events("passkey.added"), 0);
}

#[tokio::test]
async fn a_passkey_is_renamed_and_its_name_is_cleaned() {
    let site = site().await;
    let browser = site.browser();
    let (page, mut key) = (account(&browser, "alice").await, Authenticator::new());
    add(&browser, &page, &mut key, "<b>\u{202e}x</b>").await;
    let page = browser.get(ACCOUNT).await;
    assert!(page.text.contains("&lt;b&gt;x&lt;/b&gt;") && !page.text.contains('\u{202e}'), "{}", page.text);
    assert_eq!(act(&browser, &page, &[("action", "rename"), ("name", "Desk")]).await.status, 303);
    let page = browser.get(ACCOUNT).await;
    assert!(page.text.contains(">Desk</h3>"));
    assert_eq!(act(&browser, &page, &[("action", "fly")]).await.status, 400);
    assert_eq!(site.events("passkey.renamed"), 1);
    let bob = site.browser();
    let (theirs, id) = (account(&bob, "bob").await, page.field("id"));
    for action in ["rename", "remove"] {
        let csrf = theirs.field("csrf");
        let pairs = [("csrf", csrf.as_str()), ("id", &id), ("action", action), ("name", "Mine")];
        let answer = bob.post(ACCOUNT, &pairs).await;
        assert!(answer.status == 400 && answer.text.contains("not there"), "{action} of another's passkey");
    }
    assert_eq!(log_in(&site, &mut key).await.status, 303);
}

#[tokio::test]
async fn a_removed_passkey_signs_nobody_in() {
    let site = site().await;
    let mut key = passkey(&site, "alice").await;
    let browser = site.browser();
    let page = account(&browser, "alice").await;
    assert_eq!(act(&browser, &page, &[("action", "remove")]).await.status, 303);
    assert_eq!(site.events("passkey.removed"), 1);
    assert_eq!(log_in(&site, &mut key).await.status, 401);
    let page = browser.get(ACCOUNT).await;
    assert!(page.text.contains("none yet"), "the session that removed it goes on");
    assert_eq!(add(&browser, &page, &mut key, "Again").await.status, 303);
    assert_eq!(log_in(&site, &mut key).await.status, 303);
}

#[tokio::test]
async fn removing_a_passkey_can_end_every_session_and_grant_with_it() {
    let site = site().await;
    passkey(&site, "alice").await;
    let tokens = site.tokens().await;
    let (browser, thief) = (site.browser(), site.browser());
    account(&thief, "alice").await;
    let page = account(&browser, "alice").await;
    let pairs = [("action", "remove"), ("everywhere", "yes")];
    assert_eq!(act(&browser, &page, &pairs).await.status, 303);
    for session in [&thief, &browser] {
        assert!(session.get(ACCOUNT).await.text.contains("name=\"password\""), "signed out");
    }
    let refreshed = site.refresh(tokens["refresh_token"].as_str().unwrap(), &[]).await;
    assert_eq!(refreshed.error(), "invalid_grant");
}

#[tokio::test]
async fn a_user_has_so_many_passkeys_and_each_once() {
    let over = json!({"local": {"passkeys": {"enabled": true, "mostPerUser": 2}}});
    let site = Site::with(over).await;
    let (browser, mut key) = (site.browser(), Authenticator::new());
    let first = account(&browser, "alice").await;
    let second = browser.get(ACCOUNT).await;
    add(&browser, &first, &mut key, "One").await;
    let raced = add(&browser, &second, &mut Authenticator::new(), "Raced").await;
    assert!(raced.text.contains("at the same moment"), "two first passkeys had two handles: {}", raced.text);
    let page = browser.get(ACCOUNT).await;
    assert_eq!(options(&page)["excludeCredentials"][0]["id"], b64(&key.id));
    let twice = add(&browser, &page, &mut key, "Twice").await;
    assert!(twice.status == 400 && twice.text.contains("known already"));
    let spare = browser.get(ACCOUNT).await;
    let page = browser.get(ACCOUNT).await;
    assert_eq!(add(&browser, &page, &mut Authenticator::new(), "Two").await.status, 303);
    let full = add(&browser, &spare, &mut Authenticator::new(), "Three").await;
    assert!(full.status == 400 && full.text.contains("as many passkeys"));
    assert!(!browser.get(ACCOUNT).await.text.contains("data-options"), "no button");
    let bob = site.browser();
    let page = account(&bob, "bob").await;
    assert!(add(&bob, &page, &mut key, "Taken").await.text.contains("known already"), "of another user");
}
