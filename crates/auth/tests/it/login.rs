//! Pending authorizations, login and consent (checklist B).

use std::time::Duration;

use http::{Method, header};
use serde_json::json;

use crate::support::site::{ISSUER, PASSWORD, Site, ask, post};

#[tokio::test]
async fn b01_a_sign_in_goes_on_only_in_the_browser_that_began_it() {
    let site = Site::new().await;
    let (a, b) = (site.browser(), site.browser());
    let page = a.get(&ask(&[])).await;
    b.get(&ask(&[])).await;
    let cookie = page.header("set-cookie");
    for part in ["__Host-gw-browser=", "HttpOnly", "Secure", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert_eq!(b.log_in(&page, "alice", PASSWORD).await.status, 400);
    let next = a.log_in(&page, "alice", PASSWORD).await;
    let consent = a.follow(&next).await;
    assert_eq!(b.follow(&next).await.status, 400);
    assert_eq!(b.decide(&consent, &["read"], "allow").await.status, 400);
    assert!(a.decide(&consent, &["read"], "allow").await.location().contains_key("code"));
}

#[tokio::test]
async fn whoever_knows_the_cookie_from_before_a_sign_in_does_not_go_on_with_it() {
    for mode in ["stateful", "stateless"] {
        let site = Site::with(json!({"sessionMode": mode})).await;
        let (victim, other) = (site.browser(), site.browser());
        let page = victim.get(&ask(&[])).await;
        *other.cookies.lock().unwrap() = victim.cookies.lock().unwrap().clone();
        let next = victim.log_in(&page, "alice", PASSWORD).await;
        assert_eq!(other.follow(&next).await.status, 400, "{mode}");
        let consent = victim.follow(&next).await;
        assert_eq!(other.decide(&consent, &["read"], "allow").await.status, 400, "{mode}");
        assert!(victim.decide(&consent, &["read"], "allow").await.location().contains_key("code"), "{mode}");
    }
}

#[tokio::test]
async fn two_requests_of_one_browser_go_on_side_by_side() {
    let site = Site::with(json!({"sessionMode": "stateless"})).await;
    let browser = site.browser();
    let (one, two) = (browser.get(&ask(&[])).await, browser.get(&ask(&[])).await);
    let (one, two) =
        (browser.log_in(&one, "alice", PASSWORD).await, browser.log_in(&two, "alice", PASSWORD).await);
    let pages = [browser.follow(&one).await, browser.follow(&two).await];
    for consent in pages {
        assert!(browser.decide(&consent, &["read"], "allow").await.location().contains_key("code"));
    }
}

#[tokio::test]
async fn b02_no_parameter_skips_a_step() {
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    let (pending, csrf) = (page.field("pending"), page.field("csrf"));
    let flags = [
        ("pending", pending.as_str()),
        ("csrf", &csrf),
        ("incremental", "true"),
        ("federated", "true"),
        ("consent_submitted", "1"),
        ("logged_in", "true"),
        ("decision", "allow"),
        ("grant_scope", "read"),
    ];
    assert_eq!(browser.post("/oauth/consent", &flags).await.status, 403, "the token is for the login step");
    let show = browser.get(&format!("/oauth/consent?pending={pending}&logged_in=true&decision=allow")).await;
    assert!(show.text.contains("name=\"password\""), "still at the login");
    assert_eq!(browser.get(&format!("/oauth/callback?state={pending}&code=x")).await.status, 400);
}

#[tokio::test]
async fn b03_passwords_and_decisions_come_by_post_only() {
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    let path = format!(
        "/oauth/login?pending={}&csrf={}&username=alice&password=x",
        page.field("pending"),
        page.field("csrf")
    );
    let answer = browser.get(&path).await;
    assert!(answer.text.contains("name=\"password\""), "a GET shows the page again and logs nobody in");
    assert_eq!(browser.request(Method::PUT, "/oauth/login").await.status, 405);
    assert_eq!(browser.request(Method::DELETE, "/oauth/consent").await.status, 405);
}

#[tokio::test]
async fn b04_a_form_needs_its_token_and_our_origin() {
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    let pending = page.field("pending");
    for csrf in ["", "x", &page.field("csrf")[1..]] {
        let pairs =
            [("pending", pending.as_str()), ("csrf", csrf), ("username", "alice"), ("password", PASSWORD)];
        assert_eq!(browser.post("/oauth/login", &pairs).await.status, 403);
    }
    let csrf = page.field("csrf");
    for (origin, status) in [("https://evil.example", 403), ("null", 403)] {
        let mut request = post(
            "/oauth/login",
            &[("pending", &pending), ("csrf", &csrf), ("username", "alice"), ("password", PASSWORD)],
        );
        request.headers_mut().insert(header::ORIGIN, origin.parse().unwrap());
        assert_eq!(browser.send(request).await.status, status, "{origin}");
    }
    // A browser does not name the origin of a `no-referrer` page; that the form is of our own page it says in `Sec-Fetch-Site`.
    for (origin, site, status) in [
        ("null", "cross-site", 403),
        ("null", "none", 403),
        ("https://evil.example", "same-origin", 403),
        ("null", "same-origin", 303),
    ] {
        let fields =
            [("pending", pending.as_str()), ("csrf", &csrf), ("username", "alice"), ("password", PASSWORD)];
        let mut request = post("/oauth/login", &fields);
        request.headers_mut().insert(header::ORIGIN, origin.parse().unwrap());
        request.headers_mut().insert("sec-fetch-site", site.parse().unwrap());
        assert_eq!(browser.send(request).await.status, status, "{origin} {site}");
    }
}

#[tokio::test]
async fn b04_a_form_that_names_our_origin_is_taken() {
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    let (pending, csrf) = (page.field("pending"), page.field("csrf"));
    let fields =
        [("pending", pending.as_str()), ("csrf", &csrf), ("username", "alice"), ("password", PASSWORD)];
    let mut request = post("/oauth/login", &fields);
    request.headers_mut().insert(header::ORIGIN, ISSUER.parse().unwrap());
    assert_eq!(browser.send(request).await.status, 303);
}

#[tokio::test]
async fn b08_the_consent_page_says_who_asks_and_where_it_leads() {
    let site = Site::new().await;
    let page = site.browser().to_consent(&[]).await;
    for part in ["The App", "c.example", "Read your notes", "alice", "Notes"] {
        assert!(page.text.contains(part), "{part}");
    }
    assert!(!page.text.contains("runs on this computer"));
    let local = site.browser().to_consent(&[("redirect_uri", "http://127.0.0.1:5555/cb")]).await;
    assert!(local.text.contains("runs on this computer") && local.text.contains("127.0.0.1"));
}

#[tokio::test]
async fn b09_and_b10_consent_is_per_client_and_asked_again_for_more_only() {
    let site = Site::new().await;
    let browser = site.browser();
    browser.code(&[("scope", "read")]).await;
    assert!(browser.get(&ask(&[("scope", "read")])).await.location().contains_key("code"), "remembered");
    let other =
        browser.get(&ask(&[("client_id", "other"), ("redirect_uri", "https://other.example/cb")])).await;
    assert!(other.text.contains("name=\"decision\""), "another client");
    let moved = browser.get(&ask(&[("redirect_uri", "http://127.0.0.1:1/cb")])).await;
    assert!(moved.text.contains("name=\"decision\""), "another address");
    let more = browser.get(&ask(&[("scope", "read write")])).await;
    assert!(more.text.contains("name=\"decision\""));
    assert_eq!(more.text.matches("class=\"new\"").count(), 1, "only the new one is marked");
    browser.decide(&more, &["read", "write"], "allow").await;
    assert!(browser.get(&ask(&[("scope", "read")])).await.location().contains_key("code"), "less");
    let fresh = site.browser().to_consent(&[("scope", "read write")]).await;
    assert!(fresh.status == 200 || fresh.location().contains_key("code"));
}

#[tokio::test]
async fn b11_a_refusal_goes_to_the_client_and_ends_the_sign_in() {
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.to_consent(&[]).await;
    let answer = browser.decide(&page, &["read"], "deny").await;
    let location = answer.location();
    assert_eq!(
        (location["error"].as_str(), location["state"].as_str(), location["iss"].as_str()),
        ("access_denied", "s-123", ISSUER)
    );
    assert_eq!(browser.decide(&page, &["read"], "allow").await.status, 400);
}

#[tokio::test]
async fn b12_only_what_was_offered_can_be_allowed() {
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.to_consent(&[]).await;
    assert_eq!(browser.decide(&page, &["read", "write"], "allow").await.status, 400);
    assert!(
        browser.decide(&page, &["read"], "allow").await.location().contains_key("code"),
        "the sign-in is kept"
    );
}

#[tokio::test]
async fn b13_and_b14_names_are_escaped_and_logos_never_shown() {
    let site = Site::with(json!({"dcrEnabled": true})).await;
    let request = http::Request::post("/oauth/register").header("content-type", "application/json");
    let body = json!({"client_name": "\"><script>x</script>\u{202e}", "logo_uri": "https://tracker.example/l.png", "redirect_uris": ["https://c.example/cb"], "token_endpoint_auth_method": "none"});
    let client = site.send(request.body(axum::body::Body::from(body.to_string())).unwrap()).await.json();
    let page = site.browser().to_consent(&[("client_id", client["client_id"].as_str().unwrap())]).await;
    assert!(
        page.text.contains("&lt;script&gt;")
            && !page.text.contains("<script")
            && !page.text.contains('\u{202e}')
    );
    assert!(!page.text.contains("tracker.example"));
}

#[tokio::test]
async fn b15_an_unknown_user_and_a_wrong_password_get_the_same_answer_after_the_same_work() {
    let site = Site::with(json!({"limits": {"wrongPasswords": 1000}})).await;
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    let hashed = || {
        let text = site.server.metrics().prometheus();
        let line = text.lines().find_map(|line| line.strip_prefix("gatewright_auth_passwords_hashed_total "));
        line.unwrap().parse::<u64>().unwrap()
    };
    let mut answers = Vec::new();
    for (already, name) in ["alice", "nobody"].into_iter().enumerate() {
        let answer = browser.log_in(&page, name, "wrong").await;
        assert_eq!(answer.status, 401);
        assert!(answer.text.contains("user name or password is wrong"));
        assert_eq!(hashed(), already as u64 + 1, "one hash for {name}");
        answers.push(answer.text.replace(name, "NAME"));
    }
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test]
async fn b16_the_sixth_wrong_password_is_429_and_the_right_one_works_after_the_window() {
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    for _ in 0..5 {
        assert_eq!(browser.log_in(&page, "alice", "wrong").await.status, 401);
    }
    site.clock.advance(Duration::from_secs(590));
    let locked = browser.log_in(&page, "alice", PASSWORD).await;
    assert_eq!(locked.status, 429);
    assert_eq!(locked.header("retry-after"), "310", "what is left of the window");
    assert!(locked.text.contains("Try again in 6 minutes."), "{}", locked.text);
    assert_eq!(browser.log_in(&page, "bob", PASSWORD).await.status, 303, "others are not locked out");
    site.clock.advance(Duration::from_secs(311));
    let page = browser.get(&ask(&[("prompt", "login")])).await;
    assert_eq!(browser.log_in(&page, "alice", PASSWORD).await.status, 303);
}

#[tokio::test]
async fn a_reload_after_a_failed_login_shows_the_failure_and_does_not_repeat_the_try() {
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    let fields = [
        ("pending", page.field("pending")),
        ("csrf", page.field("csrf")),
        ("username", "alice".into()),
        ("password", "wrong".into()),
    ];
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answer = browser.post("/oauth/login", &fields).await;
    assert_eq!(answer.status, 303, "a page that a form is answered with would be sent again");
    assert!(!answer.header("location").contains("wrong"), "{}", answer.header("location"));
    for _ in 0..10 {
        let shown = browser.follow(&answer).await;
        assert_eq!(shown.status, 401);
        assert!(
            shown.text.contains("user name or password is wrong") && shown.text.contains("name=\"password\"")
        );
    }
    assert_eq!(site.events("login.failed"), 1);
    let next = browser.log_in(&browser.follow(&answer).await, "alice", PASSWORD).await;
    assert!(browser.follow(&next).await.text.contains("name=\"decision\""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b17_only_a_few_passwords_are_checked_at_once() {
    let site = std::sync::Arc::new(Site::with(json!({"limits": {"wrongPasswords": 1000}})).await);
    let tries = (0..50).map(|_| {
        let site = site.clone();
        tokio::spawn(async move {
            let browser = site.browser();
            let page = browser.get(&ask(&[])).await;
            browser.log_in(&page, "alice", "wrong").await.status.as_u16()
        })
    });
    let got: Vec<u16> = futures::future::join_all(tries).await.into_iter().map(Result::unwrap).collect();
    assert!(got.contains(&401) && got.iter().all(|status| [401, 429].contains(status)), "{got:?}");
}

#[tokio::test]
async fn b18_a_login_gets_a_new_session_that_ends_idle_and_in_any_case() {
    let site = Site::new().await;
    let browser = site.browser();
    browser.cookies.lock().unwrap().insert("__Host-gw-session".into(), "fixed".into());
    browser.code(&[]).await;
    let id = browser.cookies.lock().unwrap()["__Host-gw-session"].clone();
    assert_ne!(id, "fixed");
    let signed_in = || async { browser.get(&ask(&[])).await.status == 302 };
    site.clock.advance(Duration::from_secs(28_000));
    assert!(signed_in().await);
    site.clock.advance(Duration::from_secs(28_801));
    assert!(!signed_in().await, "idle");
    browser.code(&[("prompt", "login")]).await;
    for _ in 0..4 {
        site.clock.advance(Duration::from_secs(21_000));
        assert!(signed_in().await);
    }
    site.clock.advance(Duration::from_secs(3_000));
    assert!(!signed_in().await, "over");
}

#[tokio::test]
async fn b20_a_sign_in_lives_ten_minutes_and_is_finished_once() {
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.to_consent(&[]).await;
    assert!(browser.decide(&page, &["read"], "allow").await.location().contains_key("code"));
    assert_eq!(browser.decide(&page, &["read"], "allow").await.status, 400);
    let page = site.browser();
    let late = page.get(&ask(&[])).await;
    site.clock.advance(Duration::from_secs(601));
    assert_eq!(page.log_in(&late, "alice", PASSWORD).await.status, 400);
}

#[tokio::test]
async fn b21_ids_are_unguessable() {
    let site = Site::new().await;
    let ids: std::collections::BTreeSet<String> =
        [site.browser().get(&ask(&[])).await, site.browser().get(&ask(&[])).await]
            .iter()
            .map(|page| page.field("pending"))
            .collect();
    assert_eq!(ids.len(), 2);
    assert!(ids.iter().all(|id| id.len() == 43), "256 bits");
}

#[tokio::test]
async fn b27_and_l02_authorizations_per_address_are_bounded() {
    let site = Site::with(json!({"limits": {"authorize": 20}})).await;
    for _ in 0..20 {
        assert_eq!(site.get(&ask(&[])).await.status, 200);
    }
    let refused = site.get(&ask(&[])).await;
    assert_eq!(refused.status, 429);
    assert!(!refused.header("retry-after").is_empty());
}

#[tokio::test]
async fn the_demo_login_lets_anyone_in_on_loopback_and_is_refused_elsewhere() {
    let config = |url: &str| {
        let config: gatewright_auth::AuthConfig =
            serde_json::from_value(json!({"mode": "orchestrated", "local": {"login": "demo"}})).unwrap();
        config.validate(&gatewright_auth::Deployment::new(url, "/mcp", "N"))
    };
    assert!(config("http://127.0.0.1:3000").is_empty());
    assert_eq!(config("https://mcp.example")[0].path, "auth.local.login");
}
