//! Callers who want to use everything up, and what is left for others.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use http::Request;
use serde_json::json;

use crate::support::site::{PASSWORD, Site, ask};

async fn begin(site: &Site, ip: &str, changes: &[(&str, &str)]) -> u16 {
    let request = Request::get(ask(changes)).body(Body::empty()).unwrap();
    site.send_from(ip, request).await.status.as_u16()
}

#[tokio::test]
async fn limits_count_ipv6_callers_by_their_network_and_the_audit_names_the_address() {
    let site = Site::with(json!({"limits": {"authorize": 5}})).await;
    for n in 0..8 {
        let status = begin(&site, &format!("2001:db8:1:2::{n:x}"), &[]).await;
        assert_eq!(status, if n < 5 { 200 } else { 429 }, "request {n}");
    }
    assert_eq!(begin(&site, "2001:db8:1:3::1", &[]).await, 200);
    for n in 0..8 {
        let ip = if n % 2 == 0 { "::ffff:192.0.2.1" } else { "192.0.2.1" };
        assert_eq!(begin(&site, ip, &[]).await, if n < 5 { 200 } else { 429 }, "request {n}");
    }
    let browser = site.browser_at("2001:db8:9:9::7");
    let page = browser.get(&ask(&[])).await;
    browser.log_in(&page, "alice", "wrong").await;
    let heard = site.heard.0.lock().unwrap();
    assert_eq!(heard.last().unwrap().ip.as_deref(), Some("2001:db8:9:9::7"));
}

#[tokio::test]
async fn authorizations_under_way_are_bounded_in_bytes_for_a_network_and_others_still_begin() {
    let site = Site::new().await;
    let state = "s".repeat(4096);
    let nonce = "n".repeat(1024);
    let long = [("state", state.as_str()), ("nonce", &nonce)];
    let mut begun = 0;
    while begin(&site, &format!("2001:db8:1:2::{begun:x}"), &long).await == 200 {
        begun += 1;
        assert!(begun < 10_000, "one network wrote more than {} bytes", begun * 5_000);
    }
    assert!(begun > 700, "{begun}");
    assert_eq!(begin(&site, "192.0.2.1", &long).await, 200, "another network");
    site.clock.advance(Duration::from_secs(601));
    assert_eq!(begin(&site, "2001:db8:1:2::1", &long).await, 200, "they are forgotten after ten minutes");
}

#[tokio::test]
async fn a_caller_of_many_ipv6_networks_has_limits_of_its_own() {
    let site = Site::with(json!({"limits": {"authorize": 5}})).await;
    let mut begun = [0, 0];
    for n in 0..60 {
        for (at, ip) in
            [format!("2001:db8:1:{n:x}::1"), format!("2001:db8:2:{:x}::1", n << 8)].iter().enumerate()
        {
            begun[at] += usize::from(begin(&site, ip, &[]).await == 200);
        }
    }
    assert_eq!(begun, [10, 20], "twice the limit for 56 bits, four times for 48");
    assert_eq!(begin(&site, "2001:db8:3::1", &[]).await, 200, "another network");
}

#[tokio::test]
async fn authorizations_under_way_leave_room_for_others_when_one_caller_has_many_ipv6_networks() {
    let site = Site::with(json!({"limits": {"authorize": 1_000_000}})).await;
    let state = "s".repeat(4096);
    let long = [("state", state.as_str())];
    let mut begun = 0;
    for n in 0..0x1_0000 {
        match begin(&site, &format!("2001:db8:1:{n:x}::1"), &long).await {
            200 => begun += 1,
            _ => break,
        }
    }
    assert!((1_000..4_500).contains(&begun), "{begun} of some 4,700 bytes: half of 24 MiB at most");
    assert_eq!(begin(&site, "2001:db8:2::1", &long).await, 200, "another network");
}

#[tokio::test]
async fn a_newcomer_still_begins_when_many_networks_have_taken_their_shares() {
    let site = Site::with(json!({"limits": {"authorize": 1_000_000}})).await;
    let state = "s".repeat(4096);
    let nonce = "n".repeat(1024);
    let long = [("state", state.as_str()), ("nonce", &nonce)];
    let mut last = 0;
    for n in 0..200 {
        let before = last;
        while last < before + 1_500
            && begin(&site, &format!("198.51.{}.{}", n / 100, n % 100), &long).await == 200
        {
            last += 1;
        }
        if last - before < 2 {
            break;
        }
    }
    assert!(last > 3_000, "{last}");
    for n in 0..100 {
        assert_eq!(begin(&site, &format!("203.0.113.{n}"), &long).await, 200, "newcomer {n}");
    }
}

/// Tries wrong passwords of alice until the answer is another than 401.
async fn guess(site: &Site, ip: &str) -> (usize, u16) {
    let browser = site.browser_at(ip);
    let page = browser.get(&ask(&[])).await;
    for tries in 0..1_000 {
        let status = browser.log_in(&page, "alice", "wrong").await.status.as_u16();
        if status != 401 {
            return (tries, status);
        }
    }
    panic!("nobody stops it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn guesses_that_wait_in_line_together_are_not_all_let_try() {
    let site = Arc::new(Site::new().await);
    let pages = (0..40).map(|_| async {
        let browser = site.browser_at("198.51.100.1");
        let page = browser.get(&ask(&[])).await;
        let cookies = browser.cookies.into_inner().unwrap();
        (page.field("pending"), page.field("csrf"), cookies)
    });
    let pages = futures::future::join_all(pages).await;
    let tries = pages.into_iter().map(|(pending, csrf, cookies)| {
        let site = site.clone();
        tokio::spawn(async move {
            let browser = site.browser_at("198.51.100.1");
            *browser.cookies.lock().unwrap() = cookies;
            let fields = [
                ("pending", pending.as_str()),
                ("csrf", &csrf),
                ("username", "alice"),
                ("password", "wrong"),
            ];
            browser.post("/oauth/login", &fields).await.status.as_u16()
        })
    });
    let got = futures::future::join_all(tries).await;
    assert!(got.into_iter().all(|status| status.unwrap() == 303), "all see the login page again");
    assert_eq!(site.events("login.failed"), 5, "those that are checked at the same time count");
}

async fn sign_in(site: &Site, ip: &str) -> u16 {
    let browser = site.browser_at(ip);
    let page = browser.get(&ask(&[])).await;
    browser.log_in(&page, "alice", PASSWORD).await.status.as_u16()
}

#[tokio::test]
async fn wrong_passwords_from_elsewhere_do_not_lock_a_user_out() {
    let site = Site::new().await;
    assert_eq!(guess(&site, "2001:db8:bad::1").await, (5, 429));
    assert_eq!(guess(&site, "2001:db8:bad::2").await, (0, 429), "the same network");
    assert_eq!(sign_in(&site, "192.0.2.7").await, 303);
}

#[tokio::test]
async fn guesses_at_many_accounts_from_many_ipv6_networks_of_one_caller_end() {
    let site = Site::with(json!({"limits": {"wrongPasswords": 1}})).await;
    let mut guesses = 0;
    for n in 0..60 {
        let browser = site.browser_at(&format!("2001:db8:1:{n:x}00::1"));
        let page = browser.get(&ask(&[])).await;
        guesses += usize::from(browser.log_in(&page, &format!("user{n}"), "wrong").await.status == 401);
    }
    assert_eq!(guesses, 40, "four times what one network may try at all accounts");
    assert_eq!(sign_in(&site, "192.0.2.7").await, 303);
}

#[tokio::test]
async fn an_account_that_many_networks_guess_at_takes_passwords_where_its_user_signed_in_before() {
    let site = Site::with(json!({"limits": {"wrongPasswords": 2}})).await;
    assert_eq!(sign_in(&site, "192.0.2.7").await, 303);
    let mut guesses = 0;
    for n in 0..100 {
        guesses += guess(&site, &format!("198.51.100.{n}")).await.0;
    }
    assert_eq!(guesses, 40, "twenty times what one network may try");
    assert_eq!(sign_in(&site, "203.0.113.1").await, 429, "a network never seen");
    assert_eq!(sign_in(&site, "192.0.2.7").await, 303, "one the user signed in from");
    site.clock.advance(Duration::from_secs(901));
    assert_eq!(sign_in(&site, "203.0.113.1").await, 303);
}

#[tokio::test]
async fn logins_for_the_account_page_count_as_authorizations_under_way() {
    let site = Site::new().await;
    let visit = async |ip: &str| {
        let request = Request::get("/oauth/account").body(Body::empty()).unwrap();
        site.send_from(ip, request).await.status.as_u16()
    };
    let mut begun = 0;
    while visit("192.0.2.1").await == 200 {
        begun += 1;
        assert!(begun < 20_000, "one network fills the store");
    }
    assert!(begun > 700, "{begun}");
    assert_eq!((visit("192.0.2.1").await, visit("192.0.2.2").await), (429, 200));
}
