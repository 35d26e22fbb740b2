//! Keys that tokens are bound to (RFC 9449): from the pushed request to the last refresh, at every instance.

use gatewright_core::Authenticator as _;
use std::sync::Arc;

use gatewright_auth::{
    ManualClock,
    keys::{Algorithm, Jwk},
    store::{MemoryStore, RedisStore, SqliteStore, Store},
};
use http::{Request, header};
use serde_json::{Value, json};

use crate::{
    dpop::{ath, proof, with_proof},
    support::{
        redis_server::RedisServer,
        site::{Answer, ISSUER, RESOURCE, SECRET, Site, VERIFIER, ask, form, post},
    },
};

fn key() -> Jwk {
    Jwk::generate(Algorithm::ES256).unwrap()
}

fn fresh(site: &Site, key: &Jwk) -> String {
    proof(key, site.now_s(), json!({}), json!({}))
}

async fn redeem(site: &Site, code: &str, proof: &str) -> Answer {
    let pairs = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("client_id", "app"),
        ("code_verifier", VERIFIER),
    ];
    with_proof(site, &pairs, proof).await
}

async fn refresh(site: &Site, token: &str, proof: &str) -> Answer {
    let pairs = [("grant_type", "refresh_token"), ("refresh_token", token), ("client_id", "app")];
    with_proof(site, &pairs, proof).await
}

fn text<'a>(body: &'a Value, name: &str) -> &'a str {
    body[name].as_str().unwrap_or_else(|| panic!("{name} in {body}"))
}

#[tokio::test]
async fn d18_the_refresh_tokens_of_a_public_client_stay_with_the_key_they_were_issued_to() {
    let site = Site::new().await;
    let (mine, other) = (key(), key());
    let first = redeem(&site, &site.code(&[]).await, &fresh(&site, &mine)).await.json();
    assert_eq!(first["token_type"], "DPoP");
    let token = text(&first, "refresh_token");
    assert_eq!(site.refresh(token, &[]).await.error(), "invalid_dpop_proof", "stolen, and no key at all");
    assert_eq!(refresh(&site, token, &fresh(&site, &other)).await.error(), "invalid_dpop_proof");
    let second = refresh(&site, token, &fresh(&site, &mine)).await.json();
    assert_eq!(second["token_type"], "DPoP", "{second}");
    assert_eq!(site.refresh(text(&second, "refresh_token"), &[]).await.error(), "invalid_dpop_proof");
    // A retry of the first one after a lost answer is bound, too.
    let again = refresh(&site, token, &fresh(&site, &mine)).await.json();
    assert_eq!(again["refresh_token"], second["refresh_token"]);
    assert_eq!(refresh(&site, text(&again, "refresh_token"), &fresh(&site, &mine)).await.status, 200);
}

#[tokio::test]
async fn d18_a_token_that_is_refreshed_with_a_proof_is_bound_from_then_on() {
    let site = Site::new().await;
    let mine = key();
    let plain = site.tokens().await;
    let bound = refresh(&site, text(&plain, "refresh_token"), &fresh(&site, &mine)).await.json();
    let token = text(&bound, "refresh_token");
    assert_eq!(site.refresh(token, &[]).await.error(), "invalid_dpop_proof");
    let next = refresh(&site, token, &fresh(&site, &mine)).await;
    assert_eq!(next.status, 200, "{}", next.text);
    // The family lives as long as it would have.
    site.clock.advance(std::time::Duration::from_secs(6 * 86_400));
    let next = refresh(&site, text(&next.json(), "refresh_token"), &fresh(&site, &mine)).await;
    assert_eq!(next.status, 200, "{}", next.text);
    assert_eq!(site.introspect(text(&next.json(), "access_token")).await["active"], true);
}

#[tokio::test]
async fn d02_a_token_that_was_used_with_another_key_or_none_before_ends_its_family() {
    let thief = key();
    for (first, second) in [(Some(&thief), None), (None, Some(&thief))] {
        let site = Site::new().await;
        let plain = site.tokens().await;
        let token = text(&plain, "refresh_token");
        let use_it = async |token: &str, key: Option<&Jwk>| match key {
            Some(key) => refresh(&site, token, &fresh(&site, key)).await,
            None => site.refresh(token, &[]).await,
        };
        let next = use_it(token, first).await.json();
        // Within the time in which a lost answer may be asked for again.
        assert_eq!(use_it(token, second).await.error(), "invalid_grant");
        assert_eq!(use_it(text(&next, "refresh_token"), first).await.error(), "invalid_grant");
        assert_eq!(site.introspect(text(&next, "access_token")).await["active"], false);
    }
}

#[tokio::test]
async fn d18_a_client_that_proves_itself_may_change_its_key() {
    let site = Site::new().await;
    let (one, two) = (key(), key());
    let redirect = "https://service.example/cb";
    let code = site.code(&[("client_id", "service"), ("redirect_uri", redirect)]).await;
    let as_service = async |pairs: &[(&str, &str)], proof: &str| {
        let mut request = post("/oauth/token", pairs);
        request.headers_mut().insert("dpop", proof.parse().unwrap());
        let basic = crate::support::site::basic("service", SECRET);
        request.headers_mut().insert(header::AUTHORIZATION, basic);
        site.send(request).await
    };
    let pairs = [("grant_type", "authorization_code"), ("code", code.as_str()), ("code_verifier", VERIFIER)];
    let tokens = as_service(&pairs, &fresh(&site, &one)).await.json();
    let pairs = [("grant_type", "refresh_token"), ("refresh_token", text(&tokens, "refresh_token"))];
    let answer = as_service(&pairs, &fresh(&site, &two)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

fn pushed_pairs(changes: &[(&str, &str)]) -> Vec<(String, String)> {
    let query = ask(changes);
    url::form_urlencoded::parse(query.split_once('?').unwrap().1.as_bytes()).into_owned().collect()
}

async fn push(site: &Site, changes: &[(&str, &str)], proofs: &[&str]) -> Answer {
    let pairs = pushed_pairs(changes);
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let mut request = post("/oauth/par", &pairs);
    for proof in proofs {
        request.headers_mut().append("dpop", proof.parse().unwrap());
    }
    site.send(request).await
}

#[tokio::test]
async fn m03_a_pushed_request_is_bound_to_the_key_it_proves() {
    let site = Site::new().await;
    let (mine, other) = (key(), key());
    let at_par =
        |key: &Jwk| proof(key, site.now_s(), json!({"htu": format!("{ISSUER}/oauth/par")}), json!({}));
    let (named, same) = (other.thumbprint(), mine.thumbprint());
    let refused = push(&site, &[("dpop_jkt", &named)], &[&at_par(&mine)]).await;
    assert_eq!((refused.status.as_u16(), refused.error().as_str()), (400, "invalid_dpop_proof"));
    let refused = push(&site, &[], &[&fresh(&site, &mine)]).await;
    assert_eq!(refused.error(), "invalid_dpop_proof", "a proof for another address");
    assert_eq!(push(&site, &[("dpop_jkt", &same)], &[&at_par(&mine)]).await.status, 201);
    for (presented, status) in [(None, 400), (Some(&other), 400), (Some(&mine), 200)] {
        let answer = push(&site, &[("prompt", "consent")], &[&at_par(&mine)]).await.json();
        let go = form(&[("client_id", "app"), ("request_uri", text(&answer, "request_uri"))]);
        let browser = site.browser();
        let page = browser.get(&format!("/oauth/authorize?{go}")).await;
        let next = browser.log_in(&page, "alice", crate::support::site::PASSWORD).await;
        let page = browser.follow(&next).await;
        let code = browser.decide(&page, &["read"], "allow").await.location()["code"].clone();
        let answer = match presented {
            Some(key) => redeem(&site, &code, &fresh(&site, key)).await,
            None => site.redeem(&code).await,
        };
        assert_eq!(answer.status, status, "{}", answer.text);
    }
}

#[tokio::test]
async fn m01_two_proofs_in_one_request_are_refused_everywhere() {
    let site = Site::new().await;
    let mine = key();
    let tokens = redeem(&site, &site.code(&[("scope", "read openid")]).await, &fresh(&site, &mine)).await;
    let token = text(&tokens.json(), "access_token").to_owned();
    let shown = |url: String| proof(&mine, site.now_s(), json!({"htu": url, "ath": ath(&token)}), json!({}));
    let twice = |url: String| {
        let mut request = Request::post("/x").header(header::AUTHORIZATION, format!("DPoP {token}"));
        for _ in 0..2 {
            request = request.header("dpop", shown(url.clone()));
        }
        request
    };
    let parts = twice(RESOURCE.to_owned()).body(()).unwrap().into_parts().0;
    let refused = site.resource_server().authenticate(&parts).await.unwrap_err();
    assert_eq!(refused.status(), 401);
    let challenge = refused.headers()["www-authenticate"].to_str().unwrap();
    assert!(challenge.contains("invalid_dpop_proof"), "{challenge}");
    let userinfo = twice(format!("{ISSUER}/oauth/userinfo")).uri("/oauth/userinfo");
    assert_eq!(site.send(userinfo.body(axum::body::Body::empty()).unwrap()).await.status, 401);
    let at_par = || proof(&mine, site.now_s(), json!({"htu": format!("{ISSUER}/oauth/par")}), json!({}));
    assert_eq!(push(&site, &[], &[&at_par(), &at_par()]).await.error(), "invalid_dpop_proof");
    let (code, plain) = (site.code(&[]).await, site.tokens().await);
    for pairs in [
        vec![
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("client_id", "app"),
            ("code_verifier", VERIFIER),
        ],
        vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", text(&plain, "refresh_token")),
            ("client_id", "app"),
        ],
        vec![("grant_type", "client_credentials"), ("client_id", "poster"), ("client_secret", SECRET)],
    ] {
        let send = async |proofs: usize| {
            let mut request = post("/oauth/token", &pairs);
            for _ in 0..proofs {
                request.headers_mut().append("dpop", fresh(&site, &mine).parse().unwrap());
            }
            site.send(request).await
        };
        let refused = send(2).await;
        assert_eq!((refused.status.as_u16(), &*refused.error()), (400, "invalid_dpop_proof"), "{pairs:?}");
        let answer = send(1).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["token_type"]),
            (200, &json!("DPoP")),
            "{pairs:?}"
        );
    }
}

/// One proof, shown at the same moment to two instances that share a store.
async fn one_of_two_takes_a_proof(here: Arc<dyn Store>, there: Arc<dyn Store>, clock: Arc<ManualClock>) {
    let here = Site::on(json!({}), clock.clone(), here).await;
    let there = Site::on(json!({}), clock, there).await;
    let mine = key();
    for _ in 0..5 {
        let code = here.code(&[]).await;
        let tokens = redeem(&here, &code, &fresh(&here, &mine)).await.json();
        let token = text(&tokens, "access_token");
        let shown = proof(&mine, here.now_s(), json!({"htu": RESOURCE, "ath": ath(token)}), json!({}));
        let request = Request::post("/mcp")
            .header(header::AUTHORIZATION, format!("DPoP {token}"))
            .header("dpop", shown);
        let parts = request.body(()).unwrap().into_parts().0;
        let (one, two) = (here.resource_server(), there.resource_server());
        let (one, two) = tokio::join!(one.authenticate(&parts), two.authenticate(&parts));
        assert_eq!(usize::from(one.is_ok()) + usize::from(two.is_ok()), 1, "a proof is spent once");
        assert!(one.or(two).is_ok());
    }
}

#[tokio::test]
async fn m01_a_proof_is_spent_once_at_all_instances_together() {
    let clock = Arc::new(ManualClock::from_system());
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
    one_of_two_takes_a_proof(memory.clone(), memory, clock.clone()).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("auth.db");
    let open = || Arc::new(SqliteStore::open(&path, "gw:", clock.clone()).unwrap());
    one_of_two_takes_a_proof(open(), open(), clock.clone()).await;
    let server = RedisServer::start();
    let endpoint = server.endpoint("gw:");
    let open = || async { Arc::new(RedisStore::connect(&endpoint).await.unwrap()) };
    one_of_two_takes_a_proof(open().await, open().await, clock).await;
}
