//! Running it: a store that is down, limits, proofs, client documents, logs and audit (checklist C30, H, K, L, M).

use gatewright_core::Authenticator as _;
use std::{
    io::Write,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::body::Body;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use gatewright_auth::{
    ManualClock,
    keys::{Algorithm, Jwk, SigningKey},
    store::{RedisStore, Store},
};
use http::Request;
use serde_json::{Value, json};

use crate::support::{
    redis_server::RedisServer,
    site::{Answer, ISSUER, PASSWORD, SECRET, Site, VERIFIER, ask, basic, form, merge, post},
    web::{Reply, Web},
};

async fn on_redis(server: &RedisServer, over: Value) -> Site {
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

/// A proof of possession for `method` and `url`.
pub(crate) fn proof(key: &Jwk, now: u64, changes: Value, header: Value) -> String {
    let mut head = json!({"typ": "dpop+jwt", "alg": "ES256", "jwk": key.public()});
    merge(&mut head, header);
    let mut claims = json!({"jti": gatewright_auth::store::FamilyId::mint(&gatewright_auth::SystemEntropy).as_str(), "htm": "POST", "htu": format!("{ISSUER}/oauth/token"), "iat": now});
    merge(&mut claims, changes);
    let signed = format!("{}.{}", B64.encode(head.to_string()), B64.encode(claims.to_string()));
    let signature = SigningKey::from_jwk(key).unwrap().sign(signed.as_bytes());
    format!("{signed}.{}", B64.encode(signature))
}

pub(crate) async fn with_proof(site: &Site, pairs: &[(&str, &str)], proof: &str) -> Answer {
    let mut request = post("/oauth/token", pairs);
    request.headers_mut().insert("dpop", proof.parse().unwrap());
    site.send(request).await
}

pub(crate) fn ath(token: &str) -> String {
    B64.encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, token.as_bytes()))
}

#[tokio::test]
async fn m01_and_f24_a_proof_fits_its_request_and_a_bound_token_needs_one() {
    let site = Site::new().await;
    let (key, other) = (Jwk::generate(Algorithm::ES256).unwrap(), Jwk::generate(Algorithm::ES256).unwrap());
    let now = site.now_s();
    let code = site.code(&[]).await;
    let pairs = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("client_id", "app"),
        ("code_verifier", VERIFIER),
    ];
    for (changes, header) in [
        (json!({"htm": "GET"}), json!({})),
        (json!({"htu": "https://other.example/oauth/token"}), json!({})),
        (json!({"iat": now - 61}), json!({})),
        (json!({"iat": now + 61}), json!({})),
        (json!({"jti": ""}), json!({})),
        (json!({}), json!({"typ": "jwt"})),
        (json!({}), json!({"alg": "none"})),
        (json!({}), json!({"alg": "HS256"})),
        (json!({}), json!({"jwk": other.public()})),
        (json!({}), json!({"jwk": {"kty": "oct", "k": "AAAA"}})),
        (json!({}), json!({"jwk": {"d": "AAAA"}})),
    ] {
        let answer = with_proof(&site, &pairs, &proof(&key, now, changes.clone(), header.clone())).await;
        assert_eq!(
            (answer.status.as_u16(), answer.error().as_str()),
            (400, "invalid_dpop_proof"),
            "{changes} {header}"
        );
    }
    let good = proof(&key, now, json!({}), json!({}));
    let tokens = with_proof(&site, &pairs, &good).await.json();
    assert_eq!(tokens["token_type"], "DPoP");
    assert_eq!(with_proof(&site, &pairs, &good).await.error(), "invalid_dpop_proof", "used before");
    let token = tokens["access_token"].as_str().unwrap();
    assert_eq!(crate::support::site::claims(token)["cnf"]["jkt"], key.thumbprint());
    let guard = site.resource_server();
    let call = |scheme: &str, proof: Option<String>| {
        let mut request = Request::post("/mcp").header("authorization", format!("{scheme} {token}"));
        if let Some(proof) = proof {
            request = request.header("dpop", proof);
        }
        let parts = request.body(()).unwrap().into_parts().0;
        let guard = guard.clone();
        async move { guard.authenticate(&parts).await.is_ok() }
    };
    let at_resource = |key: &Jwk, over: Value| {
        let mut changes = json!({"htu": "https://mcp.example/mcp", "ath": ath(token)});
        merge(&mut changes, over);
        Some(proof(key, now, changes, json!({})))
    };
    assert!(call("DPoP", at_resource(&key, json!({}))).await);
    assert!(!call("Bearer", at_resource(&key, json!({}))).await, "as a bearer token");
    assert!(!call("Bearer", None).await);
    assert!(!call("DPoP", None).await);
    assert!(!call("DPoP", at_resource(&other, json!({}))).await, "another key");
    assert!(!call("DPoP", at_resource(&key, json!({"ath": "x"}))).await, "another token");
    assert!(!call("DPoP", at_resource(&key, json!({"htm": "GET"}))).await);
}

#[tokio::test]
async fn d18_and_m03_codes_and_refresh_tokens_stay_with_their_key() {
    let site = Site::new().await;
    let (key, other) = (Jwk::generate(Algorithm::ES256).unwrap(), Jwk::generate(Algorithm::ES256).unwrap());
    let thumbprint = key.thumbprint();
    let fresh = |key: &Jwk| proof(key, site.now_s(), json!({}), json!({}));
    let bound = [("dpop_jkt", thumbprint.as_str())];
    let login = || site.code(&bound);
    let code = login().await;
    let pairs = |code: &str| {
        vec![
            ("grant_type".to_owned(), "authorization_code".to_owned()),
            ("code".to_owned(), code.to_owned()),
            ("client_id".to_owned(), "app".to_owned()),
            ("code_verifier".to_owned(), VERIFIER.to_owned()),
        ]
    };
    let redeem = |code: String, proof: String| {
        let (site, pairs) = (&site, pairs(&code));
        async move {
            let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            with_proof(site, &pairs, &proof).await
        }
    };
    assert_eq!(redeem(code, fresh(&other)).await.error(), "invalid_grant");
    assert_eq!(site.redeem(&login().await).await.error(), "invalid_grant", "no proof at all");
    let tokens = redeem(login().await, fresh(&key)).await.json();
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let pairs = [("grant_type", "refresh_token"), ("refresh_token", refresh), ("client_id", "app")];
    assert_eq!(with_proof(&site, &pairs, &fresh(&other)).await.error(), "invalid_dpop_proof");
    assert_eq!(site.refresh(refresh, &[]).await.error(), "invalid_dpop_proof");
    assert_eq!(with_proof(&site, &pairs, &fresh(&key)).await.status, 200);
}

#[tokio::test]
async fn m02_a_nonce_can_be_required_and_grows_stale() {
    let site = Site::with(json!({"requireDpopNonce": true, "clients": [{"clientId": "service", "clientSecret": SECRET, "tokenEndpointAuthMethod": "client_secret_post", "grantTypes": ["client_credentials"]}]})).await;
    let key = Jwk::generate(Algorithm::ES256).unwrap();
    let pairs = [("grant_type", "client_credentials"), ("client_id", "service"), ("client_secret", SECRET)];
    let without = with_proof(&site, &pairs, &proof(&key, site.now_s(), json!({}), json!({}))).await;
    assert_eq!((without.status.as_u16(), without.error().as_str()), (400, "use_dpop_nonce"));
    let nonce = without.header("dpop-nonce").to_owned();
    let send = |nonce: String| {
        let proof = proof(&key, site.now_s(), json!({"nonce": nonce}), json!({}));
        let (site, pairs) = (&site, &pairs);
        async move { with_proof(site, pairs, &proof).await }
    };
    assert_eq!(send(nonce.clone()).await.status, 200);
    assert_eq!(send("guessed".into()).await.error(), "use_dpop_nonce");
    site.clock.advance(Duration::from_secs(601));
    assert_eq!(send(nonce).await.error(), "use_dpop_nonce");
}

/// A server on loopback that takes client documents from loopback too.
async fn with_documents(web: &Web, over: Value) -> (Site, String) {
    let clock = Arc::new(ManualClock::from_system());
    let store = Arc::new(gatewright_auth::store::MemoryStore::new(clock.clone()));
    let mut all = json!({"cimd": {"allowPrivate": true}});
    merge(&mut all, over);
    let id = web.url("/client.json");
    web.on("/client.json", document(&id, json!({})));
    (Site::at("http://127.0.0.1:3000", all, clock, store).await, id)
}

fn document(id: &str, changes: Value) -> Reply {
    let mut body =
        json!({"client_id": id, "client_name": "Documented", "redirect_uris": ["https://c.example/cb"]});
    merge(&mut body, changes);
    Reply::json(body)
}

#[tokio::test]
async fn h12_h13_h14_h17_and_h18_a_document_must_be_right_small_and_direct() {
    let web = Web::start().await;
    let (site, id) = with_documents(&web, json!({})).await;
    let go = |id: &str| ask(&[("client_id", id)]);
    let page = site.get(&go(&id)).await;
    assert!(page.status == 200 && page.text.contains("Documented"));
    assert_eq!(
        site.get(&ask(&[("client_id", &id), ("redirect_uri", "https://evil.example/cb")])).await.status,
        400
    );
    for (n, reply) in [
        document("https://other.example/c", json!({})),
        document(&web.url("/bad1"), json!({"client_secret": "s"})),
        document(&web.url("/bad2"), json!({"token_endpoint_auth_method": "client_secret_post"})),
        Reply::json("[]"),
        Reply::json("\u{fffd}"),
        Reply::json(format!("{{\"x\":\"{}\"}}", "x".repeat(20_000))),
        Reply {
            status: 302,
            headers: vec![("location", "http://169.254.169.254/".into())],
            body: String::new(),
        },
        Reply { status: 500, headers: vec![], body: String::new() },
    ]
    .into_iter()
    .enumerate()
    {
        web.on(&format!("/bad{n}"), reply);
        let answer = site.get(&go(&web.url(&format!("/bad{n}")))).await;
        assert_eq!(answer.status, 400, "document {n}");
        assert!(answer.header("location").is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn h19_and_h21_documents_are_kept_as_they_say_and_fetched_once_for_all_who_wait() {
    let web = Web::start().await;
    let (site, id) = with_documents(&web, json!({})).await;
    let site = Arc::new(site);
    let tries = (0..100).map(|_| {
        let (site, path) = (site.clone(), ask(&[("client_id", &id)]));
        tokio::spawn(async move { site.get(&path).await.status.as_u16() })
    });
    let got = futures::future::join_all(tries).await;
    assert!(got.into_iter().all(|status| status.unwrap() == 200));
    assert_eq!(web.count("/client.json"), 1);
    web.on("/client.json", document(&id, json!({"redirect_uris": ["https://c.example/new"]})));
    assert_eq!(site.get(&ask(&[("client_id", &id)])).await.status, 200, "still kept");
    site.clock.advance(Duration::from_secs(301));
    assert_eq!(site.get(&ask(&[("client_id", &id)])).await.status, 400, "the old address is gone");
    web.off("/client.json");
    site.clock.advance(Duration::from_secs(301));
    assert_eq!(
        site.get(&ask(&[("client_id", &id), ("redirect_uri", "https://c.example/new")])).await.status,
        400
    );
    web.on("/client.json", document(&id, json!({})));
    assert_eq!(site.get(&ask(&[("client_id", &id)])).await.status, 200, "an error is not kept");
}

#[tokio::test]
async fn h22_fetches_for_strangers_are_limited_and_none_uses_up_those_of_a_host() {
    let web = Web::start().await;
    let (site, _) = with_documents(&web, json!({"limits": {"fetch": 9}})).await;
    let number = std::cell::Cell::new(0);
    let ask_from = async |ip: &str| {
        number.set(number.get() + 1);
        let path = ask(&[("client_id", &web.url(&format!("/none{}", number.get())))]);
        site.send_from(ip, Request::get(path).body(Body::empty()).unwrap()).await.status.as_u16()
    };
    for n in 0..20 {
        // All of one subscriber.
        let status = ask_from(&format!("2001:db8:1:2::{n:x}")).await;
        assert_eq!(status, if n < 3 { 400 } else { 429 }, "fetch {n} of one network");
    }
    assert_eq!(ask_from("192.0.2.1").await, 400, "another network still has its share");
    for n in 2..20 {
        ask_from(&format!("192.0.2.{n}")).await;
    }
    let fetches = (1..=number.get()).map(|n| web.count(&format!("/none{n}"))).sum::<usize>();
    assert_eq!(fetches, 9, "a host is asked no more often than that for all");
}

#[tokio::test]
async fn h19_a_document_serves_on_for_a_day_while_its_host_is_away_and_no_longer() {
    let web = Web::start().await;
    let (site, id) = with_documents(&web, json!({})).await;
    let go = async || site.get(&ask(&[("client_id", &id)])).await.status.as_u16();
    assert_eq!(go().await, 200);
    web.on("/client.json", Reply { status: 503, headers: vec![], body: String::new() });
    site.clock.advance(Duration::from_secs(301));
    for _ in 0..5 {
        assert_eq!(go().await, 200);
    }
    assert_eq!(web.count("/client.json"), 2, "a host that is away is left alone for a while");
    web.on("/client.json", document(&id, json!({"redirect_uris": ["https://c.example/new"]})));
    site.clock.advance(Duration::from_secs(31));
    assert_eq!(go().await, 400, "the host is back, and says something else");
    web.on("/client.json", document(&id, json!({})));
    site.clock.advance(Duration::from_secs(301));
    assert_eq!(go().await, 200);
    web.on("/client.json", Reply { status: 503, headers: vec![], body: String::new() });
    site.clock.advance(Duration::from_secs(301 + 86_400));
    assert_eq!(go().await, 400, "it was away for too long");
}

#[tokio::test]
async fn h15_a_private_address_as_client_is_a_page_and_no_connection() {
    let web = Web::start().await;
    let site = Site::new().await;
    for id in [
        format!("https://{}/c", web.addr),
        "https://169.254.169.254/c".into(),
        "https://[::1]/c".into(),
        "https://localhost/c".into(),
    ] {
        let answer = site.get(&ask(&[("client_id", &id)])).await;
        assert_eq!(answer.status, 400);
        assert!(answer.header("location").is_empty());
    }
    assert_eq!(web.count("/c"), 0);
}

#[tokio::test]
async fn l07_every_action_leaves_one_event() {
    let site = Site::with(json!({"dcrEnabled": true})).await;
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    browser.log_in(&page, "alice", "wrong").await;
    let code = browser.code(&[]).await;
    let tokens = site.redeem(&code).await.json();
    let next = site.refresh(tokens["refresh_token"].as_str().unwrap(), &[]).await.json();
    site.post("/oauth/revoke", &[("token", next["refresh_token"].as_str().unwrap()), ("client_id", "app")])
        .await;
    site.redeem(&code).await;
    let request = Request::post("/oauth/register")
        .body(Body::from(r#"{"redirect_uris":["https://n.example/cb"]}"#))
        .unwrap();
    site.send(request).await;
    site.server.rotate_keys().await.unwrap();
    site.server.revoke_user("user:bob").await.unwrap();
    for name in [
        "login.failed",
        "login.ok",
        "consent.given",
        "token.issued",
        "token.refreshed",
        "token.revoked",
        "code.reuse_detected",
        "client.registered",
        "keys.rotated",
        "admin.user_revoked",
    ] {
        assert_eq!(site.events(name), 1, "{name}");
    }
    let heard = site.heard.0.lock().unwrap();
    let issued = heard.iter().find(|event| event.event == "token.issued").unwrap();
    assert_eq!(
        (issued.actor.as_deref(), issued.client.as_deref(), issued.ip.as_deref()),
        (Some("user:alice"), Some("app"), Some("192.0.2.7"))
    );
    let jti = crate::support::site::claims(tokens["access_token"].as_str().unwrap())["jti"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(issued.jti.as_deref(), Some(jti.as_str()));
}

#[tokio::test]
async fn l09_counters_tell_failures_refreshes_and_store_errors() {
    let mut server = RedisServer::start();
    let site = on_redis(&server, json!({})).await;
    let tokens = site.tokens().await;
    site.refresh(tokens["refresh_token"].as_str().unwrap(), &[]).await;
    site.redeem("junk").await;
    let parts = Request::post("/mcp").header("authorization", "Bearer junk").body(()).unwrap().into_parts().0;
    let _ = site.resource_server().authenticate(&parts).await;
    server.stop();
    site.redeem("junk").await;
    let text = site.server.metrics().prometheus();
    for line in [
        "failures_total 2",
        "tokens_issued_total 1",
        "tokens_refreshed_total 1",
        "store_errors_total 1",
        "jwks_errors_total 0",
        "issue_over_500ms_total 0",
    ] {
        assert!(text.contains(&format!("gatewright_auth_{line}\n")), "{line} in {text}");
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn l05_and_l06_no_log_line_and_no_event_holds_a_secret() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let site = Site::new().await;
    let browser = site.browser();
    let page = browser.get(&ask(&[])).await;
    browser.log_in(&page, "alice", "a-wrong-password").await;
    let code = browser.code(&[]).await;
    let tokens = site.redeem(&code).await.json();
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let next = site.refresh(refresh, &[]).await.json();
    site.redeem(&code).await;
    site.refresh(refresh, &[]).await;
    site.refresh("junk-refresh-token", &[]).await;
    let parts = Request::post("/mcp")
        .header("authorization", "Bearer junk-access-token")
        .body(())
        .unwrap()
        .into_parts()
        .0;
    let _ = site.resource_server().authenticate(&parts).await;
    browser.get("/oauth/callback?code=callback-code&state=callback-state").await;
    let mut request = post("/oauth/token", &[("grant_type", "client_credentials")]);
    request.headers_mut().insert("authorization", basic("service", SECRET));
    site.send(request).await;
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap()
        + &serde_json::to_string(&*site.heard.0.lock().unwrap()).unwrap();
    assert!(text.contains("a token was refused"), "something was logged: {text}");
    let mut secrets: Vec<String> = [
        "a-wrong-password",
        PASSWORD,
        SECRET,
        VERIFIER,
        "junk-refresh-token",
        "junk-access-token",
        "callback-code",
        "callback-state",
    ]
    .map(str::to_owned)
    .to_vec();
    secrets.extend([code, page.field("pending"), page.field("csrf"), form(&[("x", SECRET)])]);
    secrets.extend([&tokens, &next].iter().flat_map(|body| {
        ["access_token", "refresh_token"].map(|name| body[name].as_str().unwrap().to_owned())
    }));
    secrets.extend(browser.cookies.lock().unwrap().values().cloned());
    for secret in secrets {
        assert!(!text.contains(&secret), "{secret}");
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
