//! Tokens and logins of an external provider: transparent mode (F12 to F23) and remote login (B22 to B26).

use std::{sync::Arc, time::Duration};

use gatewright_auth::{
    AuthConfig, Clock as _, Deployment, ManualClock, ResourceServer, Transparent,
    keys::{Algorithm, Jwk, SigningKey, sign},
};
use gatewright_core::{Authenticator as _, Principal};
use http::Request;
use serde_json::{Value, json};

use crate::support::{
    site::{Browser, Site, ask, merge},
    web::{Reply, Web},
};

pub(crate) struct Idp {
    pub(crate) web: Web,
    pub(crate) key: Jwk,
    pub(crate) clock: Arc<ManualClock>,
}

const AUDIENCE: &str = "https://mcp.example/mcp";

impl Idp {
    pub(crate) async fn start() -> Self {
        let web = Web::start().await;
        let idp = Self {
            key: Jwk::generate(Algorithm::ES256).unwrap(),
            clock: Arc::new(ManualClock::from_system()),
            web,
        };
        let at = |path: &str| idp.web.url(path);
        idp.web.on(
            "/.well-known/openid-configuration",
            Reply::json(json!({"issuer": at(""), "jwks_uri": at("/jwks"), "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token"),
                "authorization_response_iss_parameter_supported": true})),
        );
        idp.publish(&[&idp.key]);
        idp
    }

    pub(crate) fn publish(&self, keys: &[&Jwk]) {
        let keys: Vec<Jwk> = keys.iter().map(|key| key.public()).collect();
        self.web.on("/jwks", Reply::json(json!({"keys": keys})));
    }

    fn token(&self, key: &Jwk, changes: Value) -> String {
        let now = self.clock.now_s();
        let mut claims = json!({"iss": self.web.url(""), "aud": AUDIENCE, "sub": "u1", "iat": now, "exp": now + 100_000, "scope": "read", "azp": "client-1"});
        merge(&mut claims, changes);
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        sign(&SigningKey::from_jwk(key).unwrap(), "at+jwt", claims.as_object().unwrap())
    }

    fn guard(&self, over: Value) -> ResourceServer {
        let mut value = json!({"mode": "transparent", "expectedAudience": AUDIENCE, "provider": {"url": self.web.url(""), "allowPrivate": true}});
        merge(&mut value, over);
        let config: AuthConfig = serde_json::from_value(value).unwrap();
        let deployment = Deployment::new("https://mcp.example", "/mcp", "Notes");
        ResourceServer::transparent(Transparent::new(config, &deployment, self.clock.clone()).unwrap())
    }
}

async fn check(guard: &ResourceServer, token: &str) -> Result<Principal, u16> {
    let parts = Request::post("/mcp")
        .header("authorization", format!("Bearer {token}"))
        .body(())
        .unwrap()
        .into_parts()
        .0;
    guard.authenticate(&parts).await.map_err(|response| response.status().as_u16())
}

#[tokio::test]
async fn f10_f11_and_f12_tokens_of_the_provider_are_for_us_from_it_and_the_pinned_client() {
    let idp = Idp::start().await;
    let guard = idp.guard(json!({"provider": {"pinnedClient": "client-1"}}));
    let who = check(&guard, &idp.token(&idp.key, json!({}))).await.unwrap();
    assert_eq!((&*who.subject, who.client_id.as_deref()), ("u1", Some("client-1")));
    let slash = idp.web.url("/");
    for bad in [
        json!({"aud": "https://other.example"}),
        json!({"aud": null}),
        json!({"iss": slash}),
        json!({"azp": "client-2"}),
        json!({"azp": null}),
        json!({"sub": null}),
        json!({"sub": ""}),
        json!({"exp": 1}),
    ] {
        assert_eq!(check(&guard, &idp.token(&idp.key, bad.clone())).await, Err(401), "{bad}");
    }
}

#[tokio::test]
async fn f15_unknown_key_names_cause_one_fetch_in_thirty_seconds() {
    let idp = Idp::start().await;
    let guard = idp.guard(json!({}));
    check(&guard, &idp.token(&idp.key, json!({}))).await.unwrap();
    let stranger = || Jwk::generate(Algorithm::EdDSA).unwrap();
    for _ in 0..1000 {
        let mut key = idp.key.clone();
        key.kid = Some(format!("k{}", idp.web.count("/jwks")) + &stranger().kid.unwrap());
        assert_eq!(check(&guard, &idp.token(&key, json!({}))).await, Err(401));
    }
    assert_eq!(idp.web.count("/jwks"), 2, "the first fetch, and one for all of them");
    idp.clock.advance(Duration::from_secs(31));
    assert_eq!(check(&guard, &idp.token(&stranger(), json!({}))).await, Err(401));
    assert_eq!(idp.web.count("/jwks"), 3);
}

#[tokio::test]
async fn a_key_that_comes_into_use_right_after_the_first_fetch_is_believed_and_the_next_one_after_a_pause() {
    let idp = Idp::start().await;
    let guard = idp.guard(json!({}));
    check(&guard, &idp.token(&idp.key, json!({}))).await.unwrap();
    let [second, third] = [(), ()].map(|()| Jwk::generate(Algorithm::EdDSA).unwrap());
    idp.publish(&[&second]);
    assert!(check(&guard, &idp.token(&second, json!({}))).await.is_ok());
    idp.publish(&[&third]);
    idp.clock.advance(Duration::from_secs(29));
    assert_eq!(check(&guard, &idp.token(&third, json!({}))).await, Err(401), "too early");
    idp.clock.advance(Duration::from_secs(1));
    assert!(check(&guard, &idp.token(&third, json!({}))).await.is_ok());
}

#[tokio::test]
async fn f16_keys_that_cannot_be_refreshed_are_used_for_a_bounded_time() {
    let idp = Idp::start().await;
    let guard = idp.guard(json!({"provider": {"jwksCacheSeconds": 600, "jwksStaleSeconds": 1000}}));
    let token = idp.token(&idp.key, json!({}));
    check(&guard, &token).await.unwrap();
    idp.web.off("/jwks");
    idp.clock.advance(Duration::from_secs(700));
    assert!(check(&guard, &token).await.is_ok(), "stale");
    idp.clock.advance(Duration::from_secs(901));
    assert_eq!(check(&guard, &token).await, Err(503), "closed");
    idp.publish(&[&idp.key]);
    idp.clock.advance(Duration::from_secs(1000));
    assert!(check(&guard, &token).await.is_ok(), "and open again");
}

#[tokio::test]
async fn f17_key_sets_are_small_public_and_not_behind_a_redirect() {
    let idp = Idp::start().await;
    let token = idp.token(&idp.key, json!({}));
    idp.web.on("/jwks", Reply::json(format!("{{\"keys\":[],\"x\":\"{}\"}}", "x".repeat(1 << 20))));
    assert_eq!(check(&idp.guard(json!({})), &token).await, Err(503), "too large");
    idp.web.on(
        "/jwks",
        Reply { status: 302, headers: vec![("location", idp.web.url("/other"))], body: String::new() },
    );
    idp.web.on("/other", Reply::json(json!({"keys": [idp.key.public()]})));
    assert_eq!(check(&idp.guard(json!({})), &token).await, Err(503), "a redirect");
    assert_eq!(idp.web.count("/other"), 0);
    let before = idp.web.count("/.well-known/openid-configuration");
    assert_eq!(
        check(&idp.guard(json!({"provider": {"allowPrivate": false}})), &token).await,
        Err(503),
        "a private address"
    );
    assert_eq!(idp.web.count("/.well-known/openid-configuration"), before, "no connection");
}

#[tokio::test]
async fn f18_a_new_key_is_taken_up_and_a_removed_one_dropped_after_the_cache_time() {
    let idp = Idp::start().await;
    let guard = idp.guard(json!({}));
    let old = idp.token(&idp.key, json!({}));
    check(&guard, &old).await.unwrap();
    let next = Jwk::generate(Algorithm::EdDSA).unwrap();
    idp.publish(&[&next]);
    idp.clock.advance(Duration::from_secs(31));
    assert!(check(&guard, &idp.token(&next, json!({}))).await.is_ok());
    idp.clock.advance(Duration::from_secs(601));
    assert_eq!(check(&guard, &old).await, Err(401));
}

#[tokio::test]
async fn f19_and_f20_weak_and_symmetric_keys_verify_nothing() {
    let idp = Idp::start().await;
    let weak =
        Jwk { n: Some("g".repeat(171)), kid: Some("weak".into()), ..crate::support::rsa_jwk().public() };
    let oct = json!({"kty": "oct", "k": "c2VjcmV0", "kid": "oct", "alg": "HS256"});
    idp.web.on("/jwks", Reply::json(json!({"keys": [weak, oct, idp.key.public()]})));
    let guard = idp.guard(json!({}));
    check(&guard, &idp.token(&idp.key, json!({}))).await.unwrap();
    use aws_lc_rs::hmac;
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as B64};
    let good = idp.token(&idp.key, json!({}));
    let signed = format!(
        "{}.{}",
        B64.encode(r#"{"alg":"HS256","typ":"at+jwt","kid":"oct"}"#),
        good.split('.').nth(1).unwrap()
    );
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"secret"), signed.as_bytes());
    assert_eq!(check(&guard, &format!("{signed}.{}", B64.encode(tag))).await, Err(401));
    let rsa = Jwk { kid: Some("weak".into()), ..crate::support::rsa_jwk() };
    assert_eq!(check(&guard, &idp.token(&rsa, json!({}))).await, Err(401));
}

#[tokio::test]
async fn f23_opaque_tokens_are_introspected_and_the_answer_kept_briefly() {
    let idp = Idp::start().await;
    let uri = idp.web.url("/introspect");
    let guard =
        idp.guard(json!({"provider": {"introspectionUri": uri, "clientId": "rs", "clientSecret": "s"}}));
    let say = |value: Value| idp.web.on("/introspect", Reply::json(value));
    say(json!({"active": true, "sub": "u2", "aud": AUDIENCE, "scope": "read write"}));
    assert_eq!(&*check(&guard, "opaque").await.unwrap().subject, "u2");
    say(json!({"active": false}));
    assert!(check(&guard, "opaque").await.is_ok(), "kept");
    assert_eq!(check(&guard, "another").await, Err(401), "inactive");
    idp.clock.advance(Duration::from_secs(31));
    assert_eq!(check(&guard, "opaque").await, Err(401), "not for long");
    say(json!({"active": true, "sub": "u2", "aud": "https://other.example"}));
    assert_eq!(check(&guard, "third").await, Err(401), "another audience");
    idp.web.off("/introspect");
    assert_eq!(check(&guard, "fourth").await, Err(503));
}

#[tokio::test]
async fn f23_a_refusal_is_kept_for_ten_seconds_and_one_question_serves_all_who_show_a_token() {
    let idp = Idp::start().await;
    let uri = idp.web.url("/introspect");
    let guard =
        idp.guard(json!({"provider": {"introspectionUri": uri, "clientId": "rs", "clientSecret": "s"}}));
    idp.web.on("/introspect", Reply::json(json!({"active": false})));
    for _ in 0..100 {
        assert_eq!(check(&guard, "bad").await, Err(401));
    }
    assert_eq!(idp.web.count("/introspect"), 1);
    idp.clock.advance(Duration::from_secs(10));
    assert_eq!(check(&guard, "bad").await, Err(401));
    assert_eq!(idp.web.count("/introspect"), 2);
    idp.web.on("/introspect", Reply::json(json!({"active": true, "sub": "u2", "aud": AUDIENCE})));
    let all = futures::future::join_all((0..100).map(|_| check(&guard, "good"))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(idp.web.count("/introspect"), 3);
    assert_eq!(check(&guard, &"x".repeat(20_000)).await, Err(401));
    assert_eq!(idp.web.count("/introspect"), 3, "a token that is too long is not asked about");
}

#[tokio::test]
async fn one_network_does_not_use_up_the_questions_to_the_provider() {
    let idp = Idp::start().await;
    let uri = idp.web.url("/introspect");
    let guard =
        idp.guard(json!({"provider": {"introspectionUri": uri, "clientId": "rs", "clientSecret": "s"}}));
    let from = async |ip: &str, token: String| {
        let mut parts = Request::get("/mcp")
            .header("authorization", format!("Bearer {token}"))
            .body(())
            .unwrap()
            .into_parts()
            .0;
        parts.extensions.insert(gatewright_core::CallerAddress(ip.parse().unwrap()));
        guard.authenticate(&parts).await.map_err(|response| response.status().as_u16())
    };
    idp.web.on("/introspect", Reply::json(json!({"active": true, "sub": "u2", "aud": AUDIENCE})));
    let gate = idp.web.hold("/introspect");
    let flood = futures::future::join_all((0..200).map(|n| from("2001:db8:1:2::1", format!("bad{n}"))));
    let other = async {
        while idp.web.count("/introspect") < 12 {
            tokio::task::yield_now().await;
        }
        let answer = from("192.0.2.1", "good".to_owned());
        let release = async {
            while !idp.web.seen().iter().any(|(_, body)| body.contains("good")) {
                tokio::task::yield_now().await;
            }
            gate.add_permits(1_000);
        };
        futures::future::join(answer, release).await.0
    };
    let (flood, other) = futures::future::join(flood, other).await;
    assert!(other.is_ok());
    assert!(flood.iter().filter(|answer| **answer == Err(503)).count() > 150, "most of the flood is refused");
}

#[tokio::test]
async fn a_token_that_is_not_for_us_has_no_keys_fetched() {
    let idp = Idp::start().await;
    let guard = idp.guard(json!({"provider": {"pinnedClient": "client-1"}}));
    for bad in
        [json!({"iss": "https://other.example"}), json!({"aud": "x"}), json!({"exp": 1}), json!({"azp": "x"})]
    {
        assert_eq!(check(&guard, &idp.token(&idp.key, bad)).await, Err(401));
    }
    assert_eq!(idp.web.count("/.well-known/openid-configuration") + idp.web.count("/jwks"), 0);
}

#[tokio::test]
async fn keys_that_are_fetched_again_keep_nobody_waiting_who_has_a_good_one() {
    let idp = Idp::start().await;
    let guard = idp.guard(json!({}));
    let token = idp.token(&idp.key, json!({}));
    let all = futures::future::join_all((0..50).map(|_| check(&guard, &token))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(idp.web.count("/jwks"), 1, "one fetch serves all who wait");

    idp.clock.advance(Duration::from_secs(601));
    let gate = idp.web.hold("/jwks");
    let asks = check(&guard, &token);
    let others = async {
        while idp.web.count("/jwks") < 2 {
            tokio::task::yield_now().await;
        }
        for _ in 0..10 {
            assert!(check(&guard, &token).await.is_ok(), "the keys that are held can be used");
        }
        gate.add_permits(1);
    };
    let (asked, ()) = futures::future::join(asks, others).await;
    assert!(asked.is_ok());
    assert_eq!(idp.web.count("/jwks"), 2);
}

#[tokio::test]
async fn whoever_leaves_while_the_keys_are_fetched_leaves_the_answer_to_others() {
    let idp = Idp::start().await;
    let guard = idp.guard(json!({}));
    let token = idp.token(&idp.key, json!({}));
    let gate = idp.web.hold("/jwks");
    let begun = async {
        while idp.web.count("/jwks") < 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = check(&guard, &token) => panic!("the keys are not there yet"),
        () = begun => {}
    }
    gate.add_permits(1);
    assert!(check(&guard, &token).await.is_ok());
    assert_eq!(idp.web.count("/jwks"), 1);
}

#[tokio::test]
async fn an_inline_key_set_is_never_fetched() {
    let idp = Idp::start().await;
    let guard = idp.guard(json!({"provider": {"jwks": {"keys": [idp.key.public()]}}}));
    assert!(check(&guard, &idp.token(&idp.key, json!({}))).await.is_ok());
    assert_eq!(idp.web.count("/jwks") + idp.web.count("/.well-known/openid-configuration"), 0);
}

pub(crate) async fn remote(idp: &Idp) -> Site {
    remote_on(idp, Arc::new(gatewright_auth::store::MemoryStore::new(idp.clock.clone()))).await
}

async fn remote_on(idp: &Idp, store: Arc<dyn gatewright_auth::store::Store>) -> Site {
    let provider = json!({"type": "remote", "provider": {"url": idp.web.url(""), "clientId": "gw", "clientSecret": "idp-secret", "allowPrivate": true}});
    Site::on(provider, idp.clock.clone(), store).await
}

#[tokio::test]
async fn a_login_that_began_at_another_provider_is_not_finished_at_the_one_configured_now() {
    let (before, after) = (Idp::start().await, Idp::start().await);
    let first = remote(&before).await;
    let browser = first.browser();
    let asked = begin(&browser).await;
    let second = remote_on(&after, first.store.clone()).await;
    let cookies = std::sync::Mutex::new(browser.cookies.lock().unwrap().clone());
    let browser = Browser { site: &second, cookies, ip: "192.0.2.7".to_owned() };
    assert_eq!(browser.get(&back(&after, &asked["state"])).await.status, 400);
    assert_eq!(after.web.count("/token"), 0, "the code of one provider is not shown to the other");
}

/// Begins a login and returns what the provider was asked.
pub(crate) async fn begin(browser: &Browser<'_>) -> std::collections::BTreeMap<String, String> {
    let answer = browser.get(&ask(&[])).await;
    assert_eq!(answer.status, 302, "{}", answer.text);
    answer.location()
}

pub(crate) fn identity(
    idp: &Idp,
    key: &Jwk,
    asked: &std::collections::BTreeMap<String, String>,
    changes: Value,
) -> String {
    let mut over =
        json!({"aud": "gw", "azp": null, "nonce": asked["nonce"], "name": "Una", "email": "una@example.com"});
    merge(&mut over, changes);
    let now = idp.clock.now_s();
    let mut claims = json!({"iss": idp.web.url(""), "sub": "u1", "iat": now, "exp": now + 300});
    merge(&mut claims, over);
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    sign(&SigningKey::from_jwk(key).unwrap(), "JWT", claims.as_object().unwrap())
}

pub(crate) fn back(idp: &Idp, state: &str) -> String {
    format!(
        "/oauth/callback?{}",
        crate::support::site::form(&[("code", "idp-code"), ("state", state), ("iss", &idp.web.url(""))])
    )
}

#[tokio::test]
async fn b22_and_b25_a_login_at_the_provider_goes_through_once_in_its_browser() {
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    let browser = site.browser();
    let asked = begin(&browser).await;
    assert_eq!((asked["client_id"].as_str(), asked["code_challenge_method"].as_str()), ("gw", "S256"));
    assert_eq!(asked["redirect_uri"], "https://mcp.example/oauth/callback");
    let id_token = identity(&idp, &idp.key, &asked, json!({}));
    idp.web.on(
        "/token",
        Reply::json(
            json!({"access_token": "idp-access", "refresh_token": "idp-refresh", "id_token": id_token}),
        ),
    );
    let path = back(&idp, &asked["state"]);
    let next = browser.get(&path).await;
    assert_eq!(next.status, 303, "{}", next.text);
    assert!(idp.web.last_body("/token").contains("code_verifier="));
    assert_eq!(browser.get(&path).await.status, 400, "a replay");
    let page = browser.follow(&next).await;
    let code = browser.decide(&page, &["read"], "allow").await.location()["code"].clone();
    let body = site.redeem(&code).await.json();
    let claims = crate::support::site::claims(body["access_token"].as_str().unwrap());
    assert_eq!(
        claims["sub"],
        format!("idp:{}#u1", idp.web.url("")),
        "the issuer and its subject, no mail address"
    );
    let other = site.browser();
    let asked = begin(&other).await;
    assert_eq!(browser.get(&back(&idp, &asked["state"])).await.status, 400, "another browser");
    assert_eq!(browser.get(&back(&idp, "guessed")).await.status, 400);
}

#[tokio::test]
async fn b23_b24_and_b26_an_answer_that_does_not_prove_the_user_gives_nothing() {
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    let stranger = Jwk::generate(Algorithm::ES256).unwrap();
    for bad in [
        json!({"aud": "other"}),
        json!({"iss": "https://evil.example"}),
        json!({"nonce": "other"}),
        json!({"exp": 1}),
        json!({"sub": null}),
        json!({"aud": ["gw", "x"]}),
        json!({"azp": "x"}),
    ] {
        let browser = site.browser();
        let asked = begin(&browser).await;
        idp.web.on(
            "/token",
            Reply::json(
                json!({"access_token": "a", "id_token": identity(&idp, &idp.key, &asked, bad.clone())}),
            ),
        );
        assert_eq!(browser.get(&back(&idp, &asked["state"])).await.status, 400, "{bad}");
    }
    let attempt = |make: fn(&Idp, &Jwk, &std::collections::BTreeMap<String, String>) -> Value| {
        let (idp, site, stranger) = (&idp, &site, &stranger);
        async move {
            let browser = site.browser();
            let asked = begin(&browser).await;
            idp.web.on("/token", Reply::json(make(idp, stranger, &asked)));
            browser.get(&back(idp, &asked["state"])).await.status.as_u16()
        }
    };
    assert_eq!(attempt(|idp, stranger, asked| json!({"access_token": "a", "id_token": identity(idp, stranger, asked, json!({}))})).await, 400, "another key");
    assert_eq!(
        attempt(|idp, _, asked| json!({"id_token": identity(idp, &idp.key, asked, json!({}))})).await,
        400,
        "no access token"
    );
    assert_eq!(attempt(|_, _, _| json!({"access_token": "a"})).await, 400, "no identity");
    let none = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1MSJ9.";
    assert_eq!(
        attempt(|_, _, _| json!({"access_token": "a", "id_token": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1MSJ9."}))
            .await,
        400,
        "{none}"
    );
    let browser = site.browser();
    let asked = begin(&browser).await;
    for iss in ["&iss=https://evil.example", ""] {
        let path = format!("/oauth/callback?code=x&state={}{iss}", asked["state"]);
        assert_eq!(browser.get(&path).await.status, 400, "wrong issuer");
    }
}

#[tokio::test]
async fn k04_the_providers_tokens_lie_encrypted_in_the_vault() {
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    let browser = site.browser();
    let asked = begin(&browser).await;
    let id_token = identity(&idp, &idp.key, &asked, json!({}));
    idp.web.on("/token", Reply::json(json!({"access_token": "idp-access-token", "id_token": id_token})));
    browser.get(&back(&idp, &asked["state"])).await;
    let session = browser.cookies.lock().unwrap()["__Host-gw-session"].clone();
    let held =
        site.store.get(&gatewright_auth::store::Key::secret("vault", &session)).await.unwrap().unwrap();
    assert!(!String::from_utf8_lossy(&held).contains("idp-access-token"));
}

#[tokio::test]
async fn g08_resource_metadata_of_transparent_mode_names_the_provider() {
    use tower::ServiceExt as _;
    let idp = Idp::start().await;
    let value = json!({"mode": "transparent", "expectedAudience": AUDIENCE, "provider": {"url": idp.web.url(""), "allowPrivate": true}});
    let deployment = Deployment::new("https://mcp.example", "/mcp", "Notes");
    let validator =
        Transparent::new(serde_json::from_value(value).unwrap(), &deployment, idp.clock.clone()).unwrap();
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let request = Request::get(path).body(axum::body::Body::empty()).unwrap();
        let response = validator.router().oneshot(request).await.unwrap();
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            (&body["resource"], &body["authorization_servers"][0]),
            (&json!(AUDIENCE), &json!(idp.web.url("")))
        );
    }
}

#[tokio::test]
async fn what_a_client_asks_of_a_login_reaches_the_provider_and_is_checked() {
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    // What the client asks, what the provider tells of the login, and what comes of it.
    let now = idp.clock.now_s();
    let cases = [
        (vec![("max_age", "600")], json!({"auth_time": now - 500}), None),
        (vec![("max_age", "600")], json!({"auth_time": now - 800}), Some("login_required")),
        (vec![("max_age", "600")], json!({}), Some("login_required")),
        (vec![("prompt", "login")], json!({"auth_time": now - 500}), Some("login_required")),
        (vec![("prompt", "login")], json!({"auth_time": now}), None),
        (vec![("prompt", "login")], json!({}), None),
        (vec![], json!({"auth_time": now - 800}), None),
    ];
    for (wish, told, error) in cases {
        let browser = site.browser();
        let changes =
            [wish.as_slice(), &[("login_hint", "una@example.com"), ("scope", "openid profile email")]];
        let asked = browser.get(&ask(&changes.concat())).await.location();
        for (name, value) in &wish {
            assert_eq!(asked[*name], *value);
        }
        assert_eq!(asked["login_hint"], "una@example.com");
        let id_token = identity(&idp, &idp.key, &asked, told.clone());
        idp.web.on("/token", Reply::json(json!({"access_token": "idp-access", "id_token": id_token})));
        let next = browser.get(&back(&idp, &asked["state"])).await;
        if let Some(error) = error {
            assert_eq!(next.location()["error"], error, "{wish:?} {told}");
            continue;
        }
        let page = browser.follow(&next).await;
        // The first time; later the consent is remembered.
        let answer = if page.status == 200 {
            browser.decide(&page, &["openid", "profile", "email"], "allow").await
        } else {
            page
        };
        let body = site.redeem(&answer.location()["code"]).await.json();
        let about = crate::support::site::claims(body["id_token"].as_str().unwrap());
        assert_eq!(about["auth_time"], told.get("auth_time").unwrap_or(&json!(now)).clone());
        let request = Request::get("/oauth/userinfo")
            .header("authorization", format!("Bearer {}", body["access_token"].as_str().unwrap()));
        let person = site.send(request.body(axum::body::Body::empty()).unwrap()).await.json();
        assert_eq!((&person["name"], &person["email"]), (&json!("Una"), &json!("una@example.com")));
        assert_eq!(person["sub"], about["sub"]);
    }
}
