//! Passkeys, and what a browser does with them. One file per capability.

mod account;
mod audit;
mod enrolment;
mod login;
mod pages;

use serde_json::{Value, json};

use crate::support::{
    account::{ACCOUNT, account},
    authenticator::{Authenticator, options},
    site::{Answer, Browser, ISSUER, Site, ask},
};

fn on() -> Value {
    json!({"local": {"passkeys": {"enabled": true}}})
}

async fn site() -> Site {
    Site::with(on()).await
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
    let answer = browser.post("/oauth/login/passkey", &pairs).await;
    browser.after_failure(answer).await
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
