//! Enrolment links for users without a password.

use std::{sync::Arc, time::Duration};

use gatewright_auth::{EnrolError, ManualClock, store::MemoryStore};
use http::header;
use serde_json::json;

use super::{enrol, finish, log_in, open, without_password};
use crate::support::{
    authenticator::Authenticator,
    site::{ISSUER, PASSWORD, Site, ask, password_hash, post},
};

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
