//! Logins with a passkey, and the rejection of every answer that is not in order.

use std::{sync::Arc, time::Duration};

use gatewright_auth::{ManualClock, store::MemoryStore};
use serde_json::{Value, json};

use super::{ACCOUNT, account, add, log_in, on, passkey, send, site};
use crate::support::{
    authenticator::{Authenticator, BACKED_UP, BACKUP_ELIGIBLE, PRESENT, VERIFIED, options},
    site::{PASSWORD, Site, ask, password_hash, post},
};

const LOCKED: Duration = Duration::from_secs(901);

#[tokio::test]
async fn a_user_adds_a_passkey_and_finishes_an_authorization_with_it_alone() {
    let site = site().await;
    let mut key = passkey(&site, "alice").await;
    assert_eq!(site.events("passkey.added"), 1);
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    let answer = key.get(&options(&page));
    let next = send(&browser, &page, &answer).await;
    assert_eq!(next.status, 303, "{}", next.text);
    let consent = browser.follow(&next).await;
    assert!(consent.text.contains("Signed in as <strong>alice"), "{}", consent.text);
    let code = browser.decide(&consent, &["read"], "allow").await.location()["code"].clone();
    let tokens = site.redeem(&code).await;
    assert_eq!(tokens.status, 200, "{}", tokens.text);
    assert_eq!((site.events("passkey.login"), site.events("login.failed")), (1, 0));
    let heard = site.heard.0.lock().unwrap();
    let login = heard.iter().find(|event| event.event == "passkey.login").unwrap();
    assert_eq!((login.actor.as_deref(), login.client.as_deref()), (Some("user:alice"), Some("app")));
}

#[tokio::test]
async fn a_passkey_leads_to_the_account_page_outside_an_authorization() {
    let site = site().await;
    let mut key = passkey(&site, "alice").await;
    let browser = site.browser();
    let page = browser.get(ACCOUNT).await;
    let answer = key.get(&options(&page));
    let next = send(&browser, &page, &answer).await;
    let back = browser.follow(&next).await;
    let page = browser.follow(&back).await;
    assert!(page.text.contains(">Laptop<") && page.text.contains("last used on"), "{}", page.text);
    assert!(!page.text.contains("synced"));
}

#[tokio::test]
async fn an_answer_that_is_not_in_order_signs_nobody_in() {
    type Bend = fn(&mut Authenticator);
    let bends: [(&str, Bend); 9] = [
        ("another origin", |key| key.origin = "https://evil.example".into()),
        ("another port", |key| key.origin = "https://mcp.example:8443".into()),
        ("plain http", |key| key.origin = "http://mcp.example".into()),
        ("another relying party", |key| key.rp_id = "evil.example".into()),
        ("no user verification", |key| key.flags = PRESENT),
        ("nobody present", |key| key.flags = VERIFIED),
        ("a wrong signature", |key| key.spoil_signature = true),
        ("a registration", |key| key.kind = Some("webauthn.create")),
        ("a frame of another site", |key| key.cross_origin = true),
    ];
    let site = Site::with(json!({
        "local": {"passkeys": {"enabled": true}}, "limits": {"wrongPasswords": 100}
    }))
    .await;
    for (tried, (what, bend)) in bends.into_iter().enumerate() {
        let mut key = passkey(&site, "alice").await;
        bend(&mut key);
        let answer = log_in(&site, &mut key).await;
        assert_eq!(answer.status, 401, "{what}");
        assert!(answer.text.contains("That passkey was not accepted."), "{what}");
        assert!(answer.header("set-cookie").is_empty(), "{what}: no session");
        assert_eq!(site.events("login.failed"), tried + 1, "{what}");
    }
    assert_eq!(site.events("passkey.login"), 0);
}

#[tokio::test]
async fn what_is_no_answer_at_all_is_refused_like_a_wrong_one() {
    let site = site().await;
    let browser = site.browser();
    for text in ["", "{}", "[]", "null", "\u{0}", "{\"id\":\"AAAA\"}"] {
        let page = browser.get(&ask(&[])).await;
        assert_eq!(send(&browser, &page, text).await.status, 401, "{text}");
    }
    let mut key = passkey(&site, "alice").await;
    for handle in [json!(null), json!(7), json!([])] {
        let page = browser.get(&ask(&[])).await;
        let mut answer: Value = serde_json::from_str(&key.get(&options(&page))).unwrap();
        answer["userHandle"] = handle;
        assert_eq!(send(&browser, &page, &answer.to_string()).await.status, 401, "{answer}");
    }
}

#[tokio::test]
async fn a_challenge_is_used_once_and_only_where_it_was_shown() {
    let site = site().await;
    let mut key = passkey(&site, "alice").await;
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    key.spoil_signature = true;
    let wrong = key.get(&options(&page));
    assert_eq!(send(&browser, &page, &wrong).await.status, 401);
    key.spoil_signature = false;
    let good = key.get(&options(&page));
    let again = send(&browser, &page, &good).await;
    assert!(again.status == 401 && again.text.contains("used already"), "a challenge that failed is used up");
    assert_eq!(send(&browser, &again, &good).await.status, 401, "an answer to another challenge");
    // A challenge of another browser, of another sign-in of the same browser, and of another step.
    let other = site.browser();
    let (mine, theirs) = (browser.get(&ask(&[])).await, other.get(&ask(&[])).await);
    let (second, adding) = (browser.get(&ask(&[])).await, account(&site.browser(), "bob").await);
    for (what, from) in [("browser", &theirs), ("sign-in", &second), ("step", &adding)] {
        let answer = key.get(&options(from));
        let (pending, csrf, ceremony) = (mine.field("pending"), mine.field("csrf"), from.field("ceremony"));
        let pairs = [
            ("pending", pending.as_str()),
            ("csrf", &csrf),
            ("ceremony", &ceremony),
            ("credential", &answer),
        ];
        let answer = browser.post("/oauth/login/passkey", &pairs).await;
        let answer = browser.after_failure(answer).await;
        assert!(answer.status == 401 && answer.text.contains("used already"), "another {what}");
    }
    let answer = key.get(&options(&mine));
    assert_eq!(send(&browser, &mine, &answer).await.status, 303, "its own");
}

#[tokio::test]
async fn one_answer_sent_many_times_at_once_signs_in_once() {
    let site = site().await;
    let mut key = passkey(&site, "alice").await;
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    let answer = key.get(&options(&page));
    let all = futures::future::join_all((0..8).map(|_| send(&browser, &page, &answer))).await;
    assert_eq!(all.iter().filter(|answer| answer.status == 303).count(), 1);
    assert_eq!(site.events("passkey.login"), 1);
}

#[tokio::test]
async fn a_passkey_signs_in_its_own_user_only() {
    let site = site().await;
    let (mut alice, bob) = (passkey(&site, "alice").await, passkey(&site, "bob").await);
    alice.handle = bob.handle.clone();
    assert_eq!(log_in(&site, &mut alice).await.status, 401, "alice's key under bob's handle");
    let mut stranger = Authenticator::new();
    (stranger.handle, stranger.id) = (bob.handle.clone(), bob.id.clone());
    assert_eq!(log_in(&site, &mut stranger).await.status, 401, "bob's id with another key");
    let mut unknown = Authenticator::new();
    unknown.handle = bob.handle.clone();
    assert_eq!(log_in(&site, &mut unknown).await.status, 401, "a key that was never added");
    assert_eq!(site.events("login.ok"), 2, "the two who added");
}

#[tokio::test]
async fn a_counter_that_does_not_grow_is_taken_for_a_copy() {
    let site = site().await;
    let mut key = passkey(&site, "alice").await;
    for _ in 0..2 {
        assert_eq!(log_in(&site, &mut key).await.status, 303, "an authenticator that does not count");
    }
    key.counter = 5;
    assert_eq!(log_in(&site, &mut key).await.status, 303);
    for counter in [5, 4, 0] {
        key.counter = counter;
        assert_eq!(log_in(&site, &mut key).await.status, 401, "{counter} after 5");
    }
    assert_eq!(site.events("passkey.clone_suspected"), 3);
    key.counter = 6;
    assert_eq!(log_in(&site, &mut key).await.status, 303);
}

#[tokio::test]
async fn the_backup_state_is_kept_and_a_key_that_could_not_be_backed_up_stays_so() {
    let site = site().await;
    let browser = site.browser();
    let (page, mut key) = (account(&browser, "alice").await, Authenticator::new());
    key.flags |= BACKUP_ELIGIBLE;
    assert_eq!(add(&browser, &page, &mut key, "Phone").await.status, 303);
    assert!(!browser.get(ACCOUNT).await.text.contains("synced"));
    key.flags |= BACKED_UP;
    assert_eq!(log_in(&site, &mut key).await.status, 303);
    assert!(browser.get(ACCOUNT).await.text.contains("synced to your other devices"));
    let mut fixed = passkey(&site, "bob").await;
    fixed.flags |= BACKUP_ELIGIBLE | BACKED_UP;
    assert_eq!(log_in(&site, &mut fixed).await.status, 401);
}

#[tokio::test]
async fn wrong_passkeys_lock_an_account_s_passkeys_and_not_its_password() {
    let site = site().await;
    let mut key = passkey(&site, "alice").await;
    key.spoil_signature = true;
    for _ in 0..5 {
        assert_eq!(log_in(&site, &mut key).await.status, 401);
    }
    key.spoil_signature = false;
    let locked = log_in(&site, &mut key).await;
    assert_eq!((locked.status.as_u16(), locked.header("retry-after")), (429, "900"));
    assert!(locked.text.contains("Try again in 15 minutes."), "{}", locked.text);
    let mut other = passkey(&site, "bob").await;
    assert_eq!(log_in(&site, &mut other).await.status, 303, "others are not locked out");
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    assert_eq!(browser.log_in(&page, "alice", PASSWORD).await.status, 303);
    site.clock.advance(LOCKED);
    assert_eq!(log_in(&site, &mut key).await.status, 303);
}

#[tokio::test]
async fn wrong_passwords_do_not_lock_a_passkey_out() {
    let site = site().await;
    let mut key = passkey(&site, "alice").await;
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    for _ in 0..5 {
        browser.log_in(&page, "alice", "wrong").await;
    }
    assert_eq!(browser.log_in(&page, "alice", PASSWORD).await.status, 429);
    assert_eq!(log_in(&site, &mut key).await.status, 303);
}

#[tokio::test]
async fn failures_and_tries_of_one_address_are_bounded() {
    let over = json!({"local": {"passkeys": {"enabled": true}}, "limits": {"wrongPasswords": 1}});
    let site = Site::with(over).await;
    let mut unknown = Authenticator::new();
    unknown.handle = vec![1; 64];
    let mut got = Vec::new();
    for _ in 0..11 {
        got.push(log_in(&site, &mut unknown).await.status.as_u16());
    }
    assert_eq!((&got[..10], got[10]), (&[401; 10][..], 429));
    let over = json!({"local": {"passkeys": {"enabled": true}}, "limits": {"login": 3}});
    let site = Site::with(over).await;
    let answers = [(); 4].map(|()| post("/oauth/login/passkey", &[("pending", "x")]));
    let mut got = Vec::new();
    for request in answers {
        got.push(site.send(request).await.status.as_u16());
    }
    assert_eq!(got, [400, 400, 400, 429]);
}

#[tokio::test]
async fn a_user_who_is_locked_out_or_gone_has_no_login_with_a_passkey() {
    let clock = Arc::new(ManualClock::from_system());
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let before = Site::on(on(), clock.clone(), store.clone()).await;
    let mut key = passkey(&before, "alice").await;
    for users in [
        json!([{"username": "alice", "passwordHash": password_hash(), "disabled": true}]),
        json!([{"username": "bob", "passwordHash": password_hash()}]),
    ] {
        let over = json!({"local": {"passkeys": {"enabled": true}, "users": users}});
        let site = Site::on(over, clock.clone(), store.clone()).await;
        assert_eq!(log_in(&site, &mut key).await.status, 401, "{users}");
    }
    assert_eq!(log_in(&before, &mut key).await.status, 303);
}
