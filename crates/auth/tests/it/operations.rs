//! Running it: a store that is down, restarts, several instances, lifetimes and limits (checklist C30, K, L).

use std::{sync::Arc, time::Duration};

use gatewright_auth::{
    ManualClock,
    keys::{Algorithm, Jwk},
    store::{RedisStore, Store},
};
use gatewright_core::Authenticator as _;
use http::Request;
use serde_json::{Value, json};

use crate::support::{
    redis_server::RedisServer,
    site::{PASSWORD, SECRET, Site, ask, basic, merge, post},
};

pub(crate) async fn on_redis(server: &RedisServer, over: Value) -> Site {
    let store: Arc<dyn Store> = Arc::new(RedisStore::connect(&server.endpoint("gw:")).await.unwrap());
    let mut all = json!({"tokenStorage": {"type": "redis", "config": {"host": "127.0.0.1"}}});
    merge(&mut all, over);
    Site::on(all, Arc::new(ManualClock::from_system()), store).await
}

#[tokio::test]
async fn c30_a_store_that_is_down_gives_503_and_no_token_and_comes_back_without_a_restart() {
    let mut server = RedisServer::start();
    let site = on_redis(&server, json!({})).await;
    let tokens = site.tokens().await;
    let (access, refresh) =
        (tokens["access_token"].as_str().unwrap(), tokens["refresh_token"].as_str().unwrap());
    let code = site.code(&[]).await;
    server.stop();
    let mut request = post("/oauth/token", &[("grant_type", "client_credentials")]);
    request.headers_mut().insert("authorization", basic("service", SECRET));
    for answer in [site.redeem(&code).await, site.refresh(refresh, &[]).await, site.send(request).await] {
        assert_eq!((answer.status.as_u16(), answer.error().as_str()), (503, "temporarily_unavailable"));
        assert!(!answer.header("retry-after").is_empty() && !answer.text.contains("access_token"));
    }
    assert_eq!(site.get(&ask(&[])).await.status, 503);
    let parts = Request::post("/mcp")
        .header("authorization", format!("Bearer {access}"))
        .body(())
        .unwrap()
        .into_parts()
        .0;
    assert_eq!(site.resource_server().authenticate(&parts).await.unwrap_err().status(), 503, "fails closed");
    server.again();
    let mut tries = 0;
    while site.get(&ask(&[])).await.status != 200 {
        tries += 1;
        assert!(tries < 200);
    }
    site.tokens().await;
}

#[tokio::test]
async fn k10_a_sign_in_goes_on_after_the_instance_was_restarted() {
    let server = RedisServer::start();
    let first = on_redis(&server, json!({})).await;
    let (browser, second) = (first.browser(), on_redis(&server, json!({})).await);
    let page = browser.to_consent(&[]).await;
    let moved = second.browser();
    *moved.cookies.lock().unwrap() = browser.cookies.lock().unwrap().clone();
    let code = moved.decide(&page, &["read"], "allow").await.location()["code"].clone();
    let tokens = first.redeem(&code).await.json();
    assert_eq!(second.refresh(tokens["refresh_token"].as_str().unwrap(), &[]).await.status, 200);
    assert_eq!(
        second.introspect(tokens["access_token"].as_str().unwrap()).await["active"],
        true,
        "one key for both"
    );
}

#[tokio::test]
async fn j07_a_configured_key_is_exchanged_by_way_of_a_set_and_nobody_is_signed_out() {
    let server = RedisServer::start();
    let (old, new) = (crate::support::rsa_jwk(), Jwk::generate(Algorithm::ES256).unwrap());
    let with = |keys: Value| json!({"local": {"signKey": keys}});
    let first = on_redis(&server, with(json!(old))).await;
    let tokens = first.tokens().await;
    let access = tokens["access_token"].as_str().unwrap();
    let second = on_redis(&server, with(json!({"keys": [new, old]}))).await;
    assert_eq!(second.introspect(access).await["active"], true);
    let refreshed = second.refresh(tokens["refresh_token"].as_str().unwrap(), &[]).await.json();
    let third = on_redis(&server, with(json!(new))).await;
    assert_eq!(
        third.introspect(access).await["active"],
        true,
        "the old public key is kept until its tokens are over"
    );
    assert_eq!(third.introspect(refreshed["access_token"].as_str().unwrap()).await["active"], true);
    let stranger = Jwk::generate(Algorithm::EdDSA).unwrap();
    let lost = on_redis(&server, with(json!(stranger))).await;
    assert_eq!(lost.introspect(access).await["active"], false, "without the old key its tokens are over");
    lost.tokens().await;
}

#[tokio::test]
async fn k01_sign_ins_codes_and_sessions_live_as_long_as_the_contract_says() {
    let server = RedisServer::start();
    let site = on_redis(&server, json!({})).await;
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    let life = |kind: &str| {
        let keys: Vec<String> = server.command(&["KEYS", &format!("gw:{kind}:*")]);
        assert_eq!(keys.len(), 1, "{kind}");
        server.command::<i64>(&["PTTL", &keys[0]]) as f64 / 1000.0
    };
    let near = |kind: &str, seconds: f64| {
        let left = life(kind);
        assert!(left <= seconds && left > seconds - 3.0, "{kind} lives {left} s");
    };
    near("pending", 600.0);
    let next = browser.log_in(&page, "alice", PASSWORD).await;
    near("session", 28_800.0);
    let consent = browser.follow(&next).await;
    let code = browser.decide(&consent, &["read"], "allow").await.location()["code"].clone();
    near("code", 60.0);
    site.redeem(&code).await;
    near("refresh", 604_800.0);
}

#[tokio::test]
async fn k09_instances_whose_clocks_are_half_a_minute_apart_understand_each_other() {
    let server = RedisServer::start();
    let (early, late) = (on_redis(&server, json!({})).await, on_redis(&server, json!({})).await);
    late.clock.advance(Duration::from_secs(30));
    let token = late.tokens().await["access_token"].as_str().unwrap().to_owned();
    assert_eq!(early.introspect(&token).await["active"], true, "issued in the future by half a minute");
    let code = early.code(&[("prompt", "consent")]).await;
    assert_eq!(late.redeem(&code).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c03_eight_token_requests_at_two_instances_give_one_answer() {
    let server = RedisServer::start();
    let sites = [Arc::new(on_redis(&server, json!({})).await), Arc::new(on_redis(&server, json!({})).await)];
    let browser = sites[0].browser();
    for _ in 0..20 {
        let code = browser.code(&[]).await;
        let tries = (0..8).map(|n| {
            let (site, code) = (sites[n % 2].clone(), code.clone());
            tokio::spawn(async move { site.redeem(&code).await.status.as_u16() })
        });
        let got: Vec<u16> = futures::future::join_all(tries).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(got.iter().filter(|status| **status == 200).count(), 1, "{got:?}");
        assert!(got.iter().all(|status| [200, 400].contains(status)));
    }
}

#[tokio::test]
async fn d13_and_k03_nothing_in_redis_is_a_secret_that_was_handed_out() {
    let server = RedisServer::start();
    let site = on_redis(&server, json!({})).await;
    let browser = site.browser();
    let code = browser.code(&[]).await;
    let tokens = site.redeem(&code).await.json();
    let second = site.refresh(tokens["refresh_token"].as_str().unwrap(), &[]).await.json();
    let spare = browser.code(&[]).await;
    let mut dump = String::new();
    for key in server.command::<Vec<String>>(&["KEYS", "*"]) {
        let value: Vec<u8> = server.command(&["GET", &key]);
        dump += &format!("{key}={}\n", String::from_utf8_lossy(&value));
    }
    let mut secrets = vec![code, spare, SECRET.to_owned(), PASSWORD.to_owned()];
    for body in [&tokens, &second] {
        secrets.extend(["access_token", "refresh_token"].map(|name| body[name].as_str().unwrap().to_owned()));
    }
    secrets.extend(browser.cookies.lock().unwrap().values().cloned());
    for secret in secrets {
        assert!(!dump.contains(&secret), "{secret}");
        let tail = secret.rsplit('.').next().unwrap();
        assert!(!dump.contains(tail), "{tail}");
    }
}

#[tokio::test]
async fn l01_l02_and_l04_endpoints_are_limited_and_instances_share_the_count() {
    let server = RedisServer::start();
    let limits = json!({"limits": {"token": 4, "revoke": 2, "login": 2}});
    let sites = [on_redis(&server, limits.clone()).await, on_redis(&server, limits).await];
    for n in 0..4 {
        assert_eq!(sites[n % 2].redeem("junk").await.status, 400);
    }
    for site in &sites {
        let refused = site.redeem("junk").await;
        assert_eq!(refused.status, 429);
        assert!(!refused.header("retry-after").is_empty());
    }
    for expected in [200, 200, 429] {
        assert_eq!(
            sites[0].post("/oauth/revoke", &[("token", "x"), ("client_id", "app")]).await.status,
            expected
        );
    }
    let browser = sites[0].browser();
    let page = browser.get(&ask(&[])).await;
    for expected in [401, 401, 429] {
        assert_eq!(browser.log_in(&page, "nobody", "x").await.status, expected);
    }
}

#[tokio::test]
async fn l03_a_spoofed_address_does_not_escape_a_limit() {
    let site = Site::with(json!({"limits": {"token": 2}, "trustedProxies": ["10.0.0.0/8"]})).await;
    let send = |peer: &'static str, forwarded: String| {
        let site = &site;
        async move {
            let mut request = post("/oauth/token", &[("grant_type", "x")]);
            request.headers_mut().insert("x-forwarded-for", forwarded.parse().unwrap());
            site.send_from(peer, request).await.status.as_u16()
        }
    };
    for (n, expected) in [400, 400, 429].into_iter().enumerate() {
        assert_eq!(send("198.51.100.1", format!("203.0.113.{n}")).await, expected);
    }
    for (n, expected) in [400, 400, 400].into_iter().enumerate() {
        assert_eq!(send("10.0.0.1", format!("203.0.113.{n}")).await, expected, "a trusted proxy is believed");
    }
}

#[tokio::test]
async fn l10_a_failure_inside_shows_nothing_of_itself() {
    let mut server = RedisServer::start();
    let site = on_redis(&server, json!({})).await;
    server.stop();
    for answer in [
        site.get(&ask(&[])).await,
        site.redeem("AAAAAAAAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").await,
    ] {
        assert_eq!(answer.status, 503);
        for leak in ["redis", "Redis", "refused", "panicked", "src/", "127.0.0.1"] {
            assert!(!answer.text.contains(leak), "{leak}: {}", answer.text);
        }
    }
}
