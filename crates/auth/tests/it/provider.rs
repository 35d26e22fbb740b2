//! Tokens of an external provider in transparent mode (checklist F10 to F23, G08).

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use gatewright_auth::{
    Clock as _, Deployment, NewApiKey, ResourceServer, SystemEntropy, Transparent,
    keys::{Algorithm, Jwk},
};
use gatewright_core::{Authenticator as _, Principal, Scopes, WorkTerms};
use http::{Request, request::Parts};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use crate::support::{
    idp::{AUDIENCE, Idp},
    scopes_now,
    web::Reply,
};

fn request(token: &str) -> Parts {
    let request = Request::post("/mcp").header("authorization", format!("Bearer {token}"));
    request.body(()).unwrap().into_parts().0
}

async fn check(guard: &ResourceServer, token: &str) -> Result<Principal, u16> {
    let parts = request(token);
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
        json!({"sub": "anonymous"}),
        json!({"exp": 1}),
    ] {
        assert_eq!(check(&guard, &idp.token(&idp.key, bad.clone())).await, Err(401), "{bad}");
    }
}

#[tokio::test]
async fn work_of_the_provider_s_users_goes_on_without_a_request_until_their_token_expires() {
    let idp = Idp::start().await;
    let uri = idp.web.url("/introspect");
    let guard =
        idp.guard(json!({"provider": {"introspectionUri": uri, "clientId": "rs", "clientSecret": "s"}}));
    let until = async |token: &str| guard.work_terms(&request(token)).await.until;
    let end = idp.clock.now_s() + 60;
    let at = |seconds| Some(UNIX_EPOCH + Duration::from_secs(seconds));
    assert_eq!(until(&idp.token(&idp.key, json!({"exp": end}))).await, at(end));
    let say = |exp: Value| {
        let answer = json!({"active": true, "sub": "u2", "aud": AUDIENCE, "exp": exp});
        idp.web.on("/introspect", Reply::json(answer));
    };
    say(json!(end));
    assert_eq!(until("opaque").await, at(end));
    say(Value::Null);
    assert_eq!(until("without-end").await, at(0), "nothing says how long it may go on");
    assert_eq!(until(&idp.token(&idp.key, json!({"exp": 1}))).await, at(0), "it cannot be verified");
    assert_eq!(guard.work_terms(&Request::new(()).into_parts().0).await, WorkTerms::default());
    // Who has no client in the token may go on, too.
    let since = UNIX_EPOCH + Duration::from_secs(idp.clock.now_s());
    let who = check(&guard, &idp.token(&idp.key, json!({"azp": null}))).await.unwrap();
    assert_eq!(scopes_now(&guard, &who, since).await, Ok(Some(Scopes::parse("read"))));
}

#[tokio::test]
async fn work_begun_with_an_api_key_ends_with_its_key_and_keeps_what_the_key_still_grants() {
    let idp = Idp::start().await;
    let hash = |key: &NewApiKey| key.hash.to_string();
    let key = NewApiKey::generate("ci", None, &SystemEntropy).unwrap();
    let entry = |scopes: Value| json!({"name": "ci", "hash": hash(&key), "scopes": scopes});
    let guard = idp.guard(json!({"apiKeys": [entry(json!(["read", "write"]))]}));
    let who = check(&guard, key.key.expose_secret()).await.unwrap();
    let now = async || scopes_now(&guard, &who, UNIX_EPOCH).await.unwrap();
    assert_eq!(now().await, Some(Scopes::parse("read write")));
    assert_eq!(
        guard.work_terms(&request(key.key.expose_secret())).await,
        WorkTerms::default(),
        "it has no end"
    );
    guard.replace_api_keys(&[serde_json::from_value(entry(json!(["read"]))).unwrap()]);
    assert_eq!(now().await, Some(Scopes::parse("read")));
    guard.replace_api_keys(&[]);
    assert_eq!(now().await, None);
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
async fn a_key_that_the_provider_publishes_with_its_private_part_verifies_nothing() {
    let idp = Idp::start().await;
    idp.web.on("/jwks", Reply::json(json!({"keys": [idp.key]})));
    assert!(idp.key.has_private_part());
    assert_eq!(check(&idp.guard(json!({})), &idp.token(&idp.key, json!({}))).await, Err(401));
    let config = json!({"mode": "transparent", "expectedAudience": AUDIENCE,
        "provider": {"url": "https://idp.example", "jwks": {"keys": [idp.key]}}});
    let config = serde_json::from_value(config).unwrap();
    let deployment = Deployment::new("https://mcp.example", "/mcp", "Notes");
    let problem = Transparent::new(config, &deployment, idp.clock.clone()).unwrap_err();
    assert!(problem.contains("provider.jwks"), "{problem}");
    let public = json!({"provider": {"jwks": {"keys": [idp.key.public()]}}});
    assert!(check(&idp.guard(public), &idp.token(&idp.key, json!({}))).await.is_ok());
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
    for (n, sub) in [None, Some("")].into_iter().enumerate() {
        let mut answer = json!({"active": true, "aud": AUDIENCE, "username": "u2", "client_id": "client-1"});
        if let Some(sub) = sub {
            answer["sub"] = json!(sub);
        }
        say(answer);
        let got = check(&guard, &format!("nobody{n}")).await;
        assert_eq!(got, Err(401), "an answer that names no subject: {sub:?}");
    }
    for (kind, fits) in
        [("Bearer", true), ("bearer", true), ("DPoP", true), ("refresh_token", false), ("", false)]
    {
        say(json!({"active": true, "sub": "u2", "aud": AUDIENCE, "token_type": kind}));
        assert_eq!(check(&guard, &format!("kind-{kind}")).await.is_ok(), fits, "{kind}");
    }
    let soon = idp.clock.now_s() + 61;
    say(json!({"active": true, "sub": "u2", "aud": AUDIENCE, "nbf": soon}));
    assert_eq!(check(&guard, "early").await, Err(401), "not valid yet");
    idp.clock.advance(Duration::from_secs(10));
    assert!(check(&guard, "early").await.is_ok(), "within the difference of clocks");
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

#[tokio::test]
async fn g08_resource_metadata_of_transparent_mode_names_the_provider() {
    use tower::ServiceExt as _;
    let idp = Idp::start().await;
    let value = json!({"mode": "transparent", "expectedAudience": AUDIENCE, "provider": {"url": idp.web.url(""), "allowPrivate": true}});
    let deployment = Deployment::new("https://mcp.example", "/mcp", "Notes");
    let validator =
        Transparent::new(serde_json::from_value(value).unwrap(), &deployment, idp.clock.clone()).unwrap();
    let validator = Arc::new(validator);
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
async fn an_introspection_that_is_too_long_is_no_answer_and_groups_are_kept_of_others() {
    let idp = Idp::start().await;
    let provider = json!({"introspectionUri": idp.web.url("/introspect"), "clientId": "rs", "clientSecret": "s",
        "groupsClaim": "teams"});
    let guard = idp.guard(json!({"provider": provider}));
    let say = |more: usize| {
        let answer = json!({"active": true, "sub": "u2", "aud": AUDIENCE, "scope": "read", "client_id": "c",
            "teams": ["ops"], "more": "x".repeat(more)});
        idp.web.on("/introspect", Reply::json(answer));
    };
    say(64 * 1024);
    assert_eq!(check(&guard, "long").await, Err(503));
    say(63 * 1024);
    for _ in 0..2 {
        let caller = check(&guard, "short").await.unwrap();
        assert_eq!((&*caller.subject, caller.client_id.as_deref()), ("u2", Some("c")));
        assert!(caller.scopes.allows("read") && caller.groups.names().eq(["ops"]), "{caller:?}");
    }
}
