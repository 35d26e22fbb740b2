//! Passkeys: added on the account page, used at the login, refused when anything about them is not in order.

use std::{sync::Arc, time::Duration};

use gatewright_auth::{AuthConfig, Deployment, EnrolError, ManualClock, store::MemoryStore};
use http::header;
use serde_json::{Value, json};

use crate::support::{
    authenticator::{Authenticator, BACKED_UP, BACKUP_ELIGIBLE, PRESENT, VERIFIED, b64, options},
    site::{Answer, Browser, ISSUER, PASSWORD, Site, ask, password_hash, post},
};

const ACCOUNT: &str = "/oauth/account";
const LOCKED: Duration = Duration::from_secs(901);

fn on() -> Value {
    json!({"local": {"passkeys": {"enabled": true}}})
}

async fn site() -> Site {
    Site::with(on()).await
}

/// The account page of a user who signs in with the password.
async fn account(browser: &Browser<'_>, name: &str) -> Answer {
    let page = browser.get(ACCOUNT).await;
    let next = browser.log_in(&page, name, PASSWORD).await;
    let back = browser.follow(&next).await;
    let page = browser.follow(&back).await;
    assert!(page.text.contains("Your account at Notes"), "{}", page.text);
    page
}

async fn add(browser: &Browser<'_>, page: &Answer, key: &mut Authenticator, name: &str) -> Answer {
    let answer = key.create(&options(page));
    let (csrf, ceremony) = (page.field("csrf"), page.field("ceremony"));
    let pairs = [
        ("action", "add"),
        ("csrf", csrf.as_str()),
        ("ceremony", &ceremony),
        ("credential", &answer),
        ("name", name),
    ];
    browser.post(ACCOUNT, &pairs).await
}

/// A passkey of `name`.
async fn passkey(site: &Site, name: &str) -> Authenticator {
    let (browser, mut key) = (site.browser(), Authenticator::new());
    let page = account(&browser, name).await;
    let added = add(&browser, &page, &mut key, "Laptop").await;
    assert_eq!(added.status, 303, "{}", added.text);
    key
}

async fn send(browser: &Browser<'_>, page: &Answer, answer: &str) -> Answer {
    let (pending, csrf, ceremony) = (page.field("pending"), page.field("csrf"), page.field("ceremony"));
    let pairs =
        [("pending", pending.as_str()), ("csrf", &csrf), ("ceremony", &ceremony), ("credential", answer)];
    browser.post("/oauth/login/passkey", &pairs).await
}

/// A login with `key` in the middle of an authorization.
async fn log_in(site: &Site, key: &mut Authenticator) -> Answer {
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    let answer = key.get(&options(&page));
    send(&browser, &page, &answer).await
}

/// An element of the list, by the form that removes it.
async fn act(browser: &Browser<'_>, page: &Answer, pairs: &[(&str, &str)]) -> Answer {
    let (csrf, id) = (page.field("csrf"), page.field("id"));
    let mut all = vec![("csrf", csrf.as_str()), ("id", &id)];
    all.extend(pairs);
    browser.post(ACCOUNT, &all).await
}

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
}

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
    assert_eq!(locked.status, 429);
    assert!(!locked.header("retry-after").is_empty());
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
    let again = browser.get(ACCOUNT).await;
    assert!(again.text.contains("name=\"password\""), "the page asks for the login again");
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

fn without_password() -> Value {
    json!({"local": {"passkeys": {"enabled": true}, "users": [{"username": "carol"}, {"username": "dave smith"}]}})
}

/// The page with the passkey button: what the browser asks for is the link up to its `#`, and the script sends the rest.
async fn open(browser: &Browser<'_>, link: &str) -> Answer {
    let (path, code) = link.strip_prefix(ISSUER).unwrap().split_once('#').unwrap();
    let page = browser.get(path).await;
    assert_eq!(page.status, 200, "{}", page.text);
    browser.post(path, &[("csrf", &page.field("csrf")), ("token", code)]).await
}

async fn enrol(browser: &Browser<'_>, link: &str, key: &mut Authenticator) -> Answer {
    let page = open(browser, link).await;
    if page.status != 200 {
        return page;
    }
    finish(browser, &page, key).await
}

async fn finish(browser: &Browser<'_>, page: &Answer, key: &mut Authenticator) -> Answer {
    let answer = key.create(&options(page));
    let (csrf, ceremony, token) = (page.field("csrf"), page.field("ceremony"), page.field("token"));
    let pairs = [
        ("csrf", csrf.as_str()),
        ("ceremony", &ceremony),
        ("token", &token),
        ("credential", &answer),
        ("name", "First"),
    ];
    browser.post("/oauth/enrol", &pairs).await
}

#[tokio::test]
async fn a_user_without_a_password_begins_with_a_link_that_works_once() {
    let site = Site::with(without_password()).await;
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    for password in ["", "wrong", PASSWORD] {
        assert_eq!(browser.log_in(&page, "carol", password).await.status, 401, "{password}");
    }
    for name in ["carol", "dave smith"] {
        let made = site.server.enrol(name, Duration::from_secs(3600)).await.unwrap();
        let (link, mut key) = (made.expose_link().to_owned(), Authenticator::new());
        let code = link.split_once('#').unwrap().1;
        assert!(!format!("{made:?}").contains(code), "a secret");
        let (browser, late) = (site.browser(), site.browser());
        let page = open(&late, &link).await;
        let done = enrol(&browser, &link, &mut key).await;
        assert_eq!(done.status, 303, "{}", done.text);
        assert!(browser.follow(&done).await.text.contains(">First</h3>"), "signed in");
        let second = finish(&late, &page, &mut Authenticator::new()).await;
        assert_eq!(second.status, 400, "opened before, sent after");
        assert_eq!(enrol(&site.browser(), &link, &mut Authenticator::new()).await.status, 400, "used");
        assert_eq!(log_in(&site, &mut key).await.status, 303);
    }
    assert_eq!((site.events("passkey.invited"), site.events("passkey.added")), (2, 2));
}

#[tokio::test]
async fn an_enrolment_link_ends_with_its_time_and_with_a_new_password_and_is_bound_to_a_browser() {
    let clock = Arc::new(ManualClock::from_system());
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let site = Site::on(without_password(), clock.clone(), store.clone()).await;
    let link = async || {
        let made = site.server.enrol("carol", Duration::from_secs(3600)).await.unwrap();
        made.expose_link().to_owned()
    };
    let opened = link().await;
    let browser = site.browser();
    let page = open(&browser, &opened).await;
    assert_eq!(
        finish(&site.browser(), &page, &mut Authenticator::new()).await.status,
        403,
        "another browser"
    );
    clock.advance(Duration::from_secs(601));
    let late = finish(&browser, &page, &mut Authenticator::new()).await;
    assert!(late.status == 400 && late.text.contains("open too long"), "the challenge is over");
    assert_eq!(finish(&browser, &late, &mut Authenticator::new()).await.status, 303, "a new one was shown");
    let over = link().await;
    clock.advance(Duration::from_secs(3601));
    assert_eq!(enrol(&browser, &over, &mut Authenticator::new()).await.status, 400);
    let stale = link().await;
    let with_password = json!({"local": {"passkeys": {"enabled": true},
        "users": [{"username": "carol", "passwordHash": password_hash()}]}});
    let changed = Site::on(with_password, clock, store).await;
    assert_eq!(enrol(&changed.browser(), &stale, &mut Authenticator::new()).await.status, 400);
    let nobody = site.server.enrol("nobody", Duration::from_secs(60)).await;
    assert!(matches!(nobody, Err(EnrolError::UnknownUser(_))));
    let off = Site::new().await.server.enrol("alice", Duration::from_secs(60)).await;
    assert!(matches!(off, Err(EnrolError::Off)));
}

#[tokio::test]
async fn the_code_of_an_enrolment_link_is_taken_from_a_form_of_ours_only() {
    let site = Site::with(without_password()).await;
    let made = site.server.enrol("carol", Duration::from_secs(60)).await.unwrap();
    let (path, code) = made.expose_link().strip_prefix(ISSUER).unwrap().split_once('#').unwrap();
    assert!(path == "/oauth/enrol" && code.len() == 43, "nothing of the code is in what a browser sends");
    let browser = site.browser();
    let page = browser.get(&format!("{path}?token={code}")).await;
    assert!(
        !page.text.contains(code) && !page.text.contains("data-passkey=\"create\""),
        "not from the address"
    );
    for csrf in ["", "x", &site.browser().get(path).await.field("csrf")] {
        assert_eq!(browser.post(path, &[("csrf", csrf), ("token", code)]).await.status, 403, "{csrf}");
    }
    let csrf = page.field("csrf");
    let mut request = post(path, &[("csrf", &csrf), ("token", code)]);
    request.headers_mut().insert(header::ORIGIN, "https://evil.example".parse().unwrap());
    assert_eq!(browser.send(request).await.status, 403, "a form of another site");
    for wrong in ["", "x", &code[1..]] {
        assert_eq!(browser.post(path, &[("csrf", &csrf), ("token", wrong)]).await.status, 400, "{wrong}");
    }
    let shown = browser.post(path, &[("csrf", &csrf), ("token", code)]).await;
    assert!(shown.text.contains("You will sign in as <strong>carol"), "{}", shown.text);
}

/// Keeps audit events as lines of JSON.
#[derive(Default)]
struct Lines(std::sync::Mutex<String>);

impl gatewright_auth::AuditSink for Lines {
    fn record(&self, event: &gatewright_auth::AuditEvent) {
        *self.0.lock().unwrap() += &(serde_json::to_string(event).unwrap() + "\n");
    }
}

#[tokio::test]
async fn what_happens_to_passkeys_is_in_the_audit_and_no_secret_is() {
    let audit = Arc::new(Lines::default());
    let mut config = crate::support::site::config();
    crate::support::site::merge(&mut config, without_password());
    let config: AuthConfig = serde_json::from_value(config).unwrap();
    let clock = Arc::new(ManualClock::from_system());
    let parts = gatewright_auth::ServerParts {
        store: Arc::new(MemoryStore::new(clock.clone())),
        clock: clock.clone(),
        entropy: Arc::new(gatewright_auth::SystemEntropy),
        audit: audit.clone(),
    };
    let mut site = Site::with(without_password()).await;
    let server = gatewright_auth::AuthorizationServer::with_parts(
        config,
        Deployment::new(ISSUER, "/mcp", "Notes"),
        parts,
    );
    site.server = server.await.unwrap();
    site.router = site.server.router();

    let made = site.server.enrol("carol", Duration::from_secs(60)).await.unwrap();
    let link = made.expose_link().to_owned();
    let (browser, mut key) = (site.browser(), Authenticator::new());
    let shown = open(&browser, &link).await;
    let done = finish(&browser, &shown, &mut key).await;
    let mut page = browser.follow(&done).await;
    act(&browser, &page, &[("action", "rename"), ("name", "Renamed")]).await;
    let login = site.browser().get(&ask(&[])).await;
    let again = site.browser();
    let asked = again.get(&ask(&[])).await;
    let signed = key.get(&options(&asked));
    assert_eq!(send(&again, &asked, &signed).await.status, 303);
    page = browser.get(ACCOUNT).await;
    act(&browser, &page, &[("action", "remove"), ("everywhere", "yes")]).await;

    let text = audit.0.lock().unwrap().clone();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    for name in [
        "passkey.invited",
        "passkey.added",
        "passkey.renamed",
        "passkey.login",
        "passkey.removed",
        "passkey.ended_everything",
    ] {
        assert_eq!(told(name), 1, "{name}: {text}");
    }
    let login_event = events.iter().find(|event| event["event"] == "passkey.login").unwrap();
    assert_eq!(login_event["actor"], "user:carol");
    let mut secrets = vec![link.split_once('#').unwrap().1.to_owned()];
    for page in [&shown, &page, &login, &asked] {
        secrets.extend(["csrf", "ceremony"].map(|name| page.field(name)));
    }
    secrets.push(asked.field("pending"));
    for browser in [&browser, &again] {
        secrets.extend(browser.cookies.lock().unwrap().values().cloned());
    }
    let answer: Value = serde_json::from_str(&signed).unwrap();
    secrets.extend(
        ["signature", "authenticatorData", "clientDataJSON"]
            .map(|name| answer[name].as_str().unwrap().to_owned()),
    );
    secrets.retain(|secret| !secret.is_empty());
    assert!(secrets.len() > 12, "{}", secrets.len());
    for secret in secrets {
        assert!(!text.contains(&secret), "{secret} in {text}");
    }
}

#[tokio::test]
async fn pages_run_the_one_script_named_by_its_hash_and_none_where_passkeys_are_off() {
    let site = site().await;
    let browser = site.browser();
    let login = browser.get(&ask(&[])).await;
    let made = site.server.enrol("alice", Duration::from_secs(60)).await.unwrap();
    let (link, code) = (browser.get("/oauth/enrol").await, open(&browser, made.expose_link()).await);
    for page in [login, account(&browser, "alice").await, link, code] {
        let script = page.text.split("<script>").nth(1).unwrap().split("</script>").next().unwrap();
        let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, script.as_bytes());
        let hash = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, hash);
        let policy = page.header("content-security-policy");
        assert!(
            policy
                .starts_with(&format!("default-src 'none'; script-src 'sha256-{hash}'; style-src 'sha256-"))
        );
        assert!(!policy.contains("unsafe") && !policy.contains("script-src 'self'"), "{policy}");
        assert_eq!(page.text.matches("<script").count(), 1);
        assert!(!page.text.contains("onclick") && !page.text.contains("src="));
        assert_eq!(
            (page.header("cache-control"), page.header("referrer-policy")),
            ("no-store", "no-referrer")
        );
    }
    let consent = browser.get(&ask(&[])).await;
    assert!(consent.text.contains("name=\"decision\"") && consent.text.contains("/oauth/account"));
    assert!(!consent.text.contains("<script"), "no button, no script");
    let off = Site::new().await;
    let page = off.get(&ask(&[])).await;
    assert!(!page.text.contains("<script") && !page.text.contains("/oauth/account"));
    assert!(!page.header("content-security-policy").contains("script-src"));
    for path in [ACCOUNT, "/oauth/enrol"] {
        assert_eq!(off.get(path).await.status, 404);
    }
    assert_eq!(off.post(ACCOUNT, &[("action", "add")]).await.status, 404);
}

#[test]
fn what_passkeys_cannot_work_with_is_told_when_the_configuration_is_read() {
    let problems = |url: &str, over: Value| -> Vec<String> {
        let mut value = json!({"mode": "orchestrated", "local": {"passkeys": {"enabled": true}}});
        crate::support::site::merge(&mut value, over);
        let config: AuthConfig = serde_json::from_value(value).unwrap();
        let found = config.validate(&Deployment::new(url, "/mcp", "N"));
        found.iter().map(ToString::to_string).collect()
    };
    for url in ["https://mcp.example", "http://localhost:3000", "https://mcp.example/below"] {
        assert_eq!(problems(url, json!({})), [""; 0], "{url}");
    }
    for url in ["http://127.0.0.1:3000", "http://[::1]:3000", "https://192.0.2.1"] {
        let told = problems(url, json!({}));
        assert!(told.len() == 1 && told[0].contains("http://localhost with the port"), "{told:?}");
    }
    for (over, word) in [
        (json!({"local": {"login": "demo"}}), "`local.login` must be `password`"),
        (json!({"sessionMode": "stateless"}), "sessionMode: stateful"),
        (json!({"local": {"passkeys": {"mostPerUser": 0}}}), "must be 1 to 100"),
        (
            json!({"type": "remote", "provider": {"url": "https://idp.example", "clientId": "x"}}),
            "type: local",
        ),
    ] {
        let told = problems("http://localhost:1", over);
        assert!(told.len() == 1 && told[0].contains(word), "{told:?}");
    }
    let without = json!({"local": {"passkeys": {"enabled": false}, "users": [{"username": "carol"}]}});
    let told = problems("https://mcp.example", without);
    assert!(told.len() == 1 && told[0].contains("gatewright user enrol"), "{told:?}");
}
