//! The check of callers (checklist F).

use std::time::Duration;

use axum::body::Body;
use gatewright_auth::keys::{Algorithm, Jwk, SigningKey, sign};
use gatewright_core::{AuthRefusal, Authenticator as _, Principal, Scopes};
use http::{Request, request::Parts};
use serde_json::{Value, json};

use crate::support::site::{Site, merge};

fn parts(headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::post("/mcp?access_token=x");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn header<'a>(response: &'a AuthRefusal, name: &str) -> &'a str {
    response.headers().get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
}

async fn check(site: &Site, authorization: &str) -> Result<Principal, AuthRefusal> {
    site.resource_server().authenticate(&parts(&[("authorization", authorization)])).await
}

async fn refused(site: &Site, token: &str, what: &str) {
    let response = check(site, &format!("Bearer {token}")).await.expect_err(what);
    assert_eq!(response.status(), 401, "{what}");
    let challenge = header(&response, "www-authenticate");
    assert!(
        challenge.contains("error=\"invalid_token\"") && challenge.contains("resource_metadata="),
        "{what}: {challenge}"
    );
}

async fn access(site: &Site) -> String {
    site.tokens().await["access_token"].as_str().unwrap().to_owned()
}

/// A token like one of ours with `changes`, signed with the server's own (configured) key.
fn forge(site: &Site, key: &Jwk, typ: &str, like: &str, changes: Value) -> String {
    let mut claims = crate::support::site::claims(like);
    let _ = site;
    merge(&mut claims, changes);
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    sign(&SigningKey::from_jwk(key).unwrap(), typ, claims.as_object().unwrap())
}

async fn pinned() -> (Site, Jwk) {
    let key = Jwk::generate(Algorithm::ES256).unwrap();
    (Site::with(json!({"local": {"signKey": key}})).await, key)
}

#[tokio::test]
async fn f01_and_f03_without_a_token_the_challenge_names_the_metadata_and_no_error() {
    let site = Site::new().await;
    let response = site.resource_server().authenticate(&parts(&[])).await.unwrap_err();
    assert_eq!(response.status(), 401, "a token in the query is not looked at");
    let challenge = header(&response, "www-authenticate");
    assert!(
        challenge.starts_with(
            "Bearer resource_metadata=\"https://mcp.example/.well-known/oauth-protected-resource/mcp\""
        ),
        "{challenge}"
    );
    assert!(!challenge.contains("error="));
}

#[tokio::test]
async fn f02_malformed_headers_are_refused() {
    let site = Site::new().await;
    let token = access(&site).await;
    for bad in ["Bearer", "Bearer ", "Basic dXNlcjpwYXNz", &format!("Bearer {token} x"), &token] {
        let response = check(&site, bad).await.unwrap_err();
        assert_eq!(response.status(), 401);
        assert!(header(&response, "www-authenticate").contains("invalid_request"), "{bad}");
    }
    let twice = format!("Bearer {token}");
    let two = parts(&[("authorization", &twice), ("authorization", &twice)]);
    assert_eq!(site.resource_server().authenticate(&two).await.unwrap_err().status(), 401);
}

#[tokio::test]
async fn a_good_token_names_its_caller() {
    let site = Site::new().await;
    let principal = check(&site, &format!("bearer {}", access(&site).await)).await.unwrap();
    assert_eq!(&*principal.subject, "user:alice");
    assert_eq!(principal.client_id.as_deref(), Some("app"));
    assert_eq!(principal.scopes, Scopes::parse("read"));
}

#[tokio::test]
async fn f04_expired_and_early_tokens_are_refused_beyond_a_minute() {
    let (site, key) = pinned().await;
    let like = access(&site).await;
    let now = site.now_s();
    for bad in [
        json!({"exp": now - 61}),
        json!({"exp": null}),
        json!({"nbf": now + 62}),
        json!({"iat": now + 62}),
        json!({"exp": "soon"}),
    ] {
        refused(&site, &forge(&site, &key, "at+jwt", &like, bad.clone()), &bad.to_string()).await;
    }
    let good = forge(&site, &key, "at+jwt", &like, json!({"exp": now - 59, "nbf": now + 59}));
    assert!(check(&site, &format!("Bearer {good}")).await.is_ok());
    site.clock.advance(Duration::from_secs(962));
    refused(&site, &like, "time passed").await;
}

#[tokio::test]
async fn f05_f06_f07_f08_and_f30_forged_headers_are_refused() {
    use aws_lc_rs::hmac;
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as B64};
    let site = Site::with(json!({"local": {"signKey": crate::support::rsa_jwk()}})).await;
    let like = access(&site).await;
    let (body, kid) = (like.split('.').nth(1).unwrap(), crate::support::site::part(&like, 0)["kid"].clone());
    let head = |value: Value| B64.encode(value.to_string());
    for alg in ["none", "None", "NONE", "nOnE", ""] {
        for signature in ["", "AAAA"] {
            refused(
                &site,
                &format!("{}.{body}.{signature}", head(json!({"alg": alg, "typ": "at+jwt", "kid": kid}))),
                alg,
            )
            .await;
        }
    }
    let jwks = site.get("/.well-known/jwks.json").await.text;
    let signed = format!("{}.{body}", head(json!({"alg": "HS256", "typ": "at+jwt", "kid": kid})));
    for secret in [jwks.as_bytes(), crate::support::rsa_jwk().n.unwrap().as_bytes()] {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
        refused(&site, &format!("{signed}.{}", B64.encode(tag)), "HS256").await;
    }
    let own = Jwk::generate(Algorithm::ES256).unwrap();
    let attacker = SigningKey::from_jwk(&own).unwrap();
    for extra in [
        json!({"jwk": own.public()}),
        json!({"jku": "https://evil.example/jwks"}),
        json!({"x5u": "https://evil.example/c"}),
        json!({"crit": ["x"], "x": 1}),
    ] {
        let mut header = json!({"alg": "ES256", "typ": "at+jwt", "kid": kid});
        merge(&mut header, extra.clone());
        let signed = format!("{}.{body}", head(header));
        let token = format!("{signed}.{}", B64.encode(attacker.sign(signed.as_bytes())));
        refused(&site, &token, &extra.to_string()).await;
    }
    refused(&site, "a.b.c.d.e", "five parts").await;
    refused(&site, &format!("{like}.x"), "four parts").await;
}

#[tokio::test]
async fn f08_crit_is_refused_even_when_the_signature_fits() {
    let (site, key) = pinned().await;
    let like = access(&site).await;
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as B64};
    let signer = SigningKey::from_jwk(&key).unwrap();
    let header = json!({"alg": "ES256", "typ": "at+jwt", "kid": signer.kid(), "crit": ["x"], "x": 1});
    let signed = format!("{}.{}", B64.encode(header.to_string()), like.split('.').nth(1).unwrap());
    refused(&site, &format!("{signed}.{}", B64.encode(signer.sign(signed.as_bytes()))), "crit").await;
}

#[tokio::test]
async fn f09_f10_and_f11_type_audience_and_issuer_are_exact() {
    let (site, key) = pinned().await;
    let like = access(&site).await;
    for typ in ["JWT", "at+jwtx", "", "dpop+jwt"] {
        refused(&site, &forge(&site, &key, typ, &like, json!({})), typ).await;
    }
    for typ in ["at+jwt", "application/at+jwt", "AT+JWT"] {
        let token = forge(&site, &key, typ, &like, json!({}));
        assert!(check(&site, &format!("Bearer {token}")).await.is_ok(), "{typ}");
    }
    for aud in [
        json!("https://other.example"),
        json!(null),
        json!(["https://other.example"]),
        json!([]),
        json!("https://mcp.example/mcp.evil"),
        json!("https://mcp.example.evil/mcp"),
        json!("https://mcp.example"),
        json!("app"),
        json!(7),
    ] {
        refused(&site, &forge(&site, &key, "at+jwt", &like, json!({"aud": aud})), &aud.to_string()).await;
    }
    for iss in [
        json!("https://mcp.example/"),
        json!("https://MCP.example"),
        json!("https://other.example"),
        json!(null),
    ] {
        refused(&site, &forge(&site, &key, "at+jwt", &like, json!({"iss": iss})), &iss.to_string()).await;
    }
}

#[tokio::test]
async fn f13_and_f14_a_lack_of_scopes_is_one_challenge_and_wide_scopes_cover() {
    let site = Site::new().await;
    let response = site
        .resource_server()
        .insufficient_scope(&gatewright_core::Principal::local(), &["read".into(), "write".into()]);
    assert_eq!(response.status(), 403);
    let challenge = header(&response, "www-authenticate");
    for part in [
        "error=\"insufficient_scope\"",
        "scope=\"read write\"",
        "resource_metadata=\"https://mcp.example/.well-known/oauth-protected-resource/mcp\"",
    ] {
        assert!(challenge.contains(part), "{challenge}");
    }
    assert!(Scopes::parse("crm:*").allows("crm:read"));
}

#[tokio::test]
async fn f22_a_revoked_token_is_refused_at_once() {
    let site = Site::new().await;
    let guard = site.resource_server();
    let tokens = site.tokens().await;
    let value = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
    let request = parts(&[("authorization", &value)]);
    assert!(guard.authenticate(&request).await.is_ok());
    site.post("/oauth/revoke", &[("token", tokens["refresh_token"].as_str().unwrap()), ("client_id", "app")])
        .await;
    for guard in [guard, site.resource_server()] {
        assert_eq!(guard.authenticate(&request).await.unwrap_err().status(), 401);
    }
}

#[tokio::test]
async fn f25_a_principal_is_read_from_each_request_anew() {
    let site = Site::new().await;
    let guard = site.resource_server();
    let alice = format!("Bearer {}", access(&site).await);
    let browser = site.browser();
    let page = browser.get(&crate::support::site::ask(&[])).await;
    let next = browser.log_in(&page, "bob", crate::support::site::PASSWORD).await;
    let consent = browser.follow(&next).await;
    let code = browser.decide(&consent, &["read"], "allow").await.location()["code"].clone();
    let bob = format!("Bearer {}", site.redeem(&code).await.json()["access_token"].as_str().unwrap());
    for (value, name) in [(&alice, "user:alice"), (&bob, "user:bob"), (&alice, "user:alice")] {
        let request = parts(&[("authorization", value), ("mcp-session-id", "one")]);
        assert_eq!(&*guard.authenticate(&request).await.unwrap().subject, name);
    }
}

#[tokio::test]
async fn f26_forwarded_hosts_change_nothing() {
    let site = Site::new().await;
    let request = parts(&[
        ("host", "evil.example"),
        ("x-forwarded-host", "evil.example"),
        ("forwarded", "host=evil.example"),
    ]);
    let response = site.resource_server().authenticate(&request).await.unwrap_err();
    assert!(!header(&response, "www-authenticate").contains("evil"));
    let request = Request::get("/.well-known/oauth-authorization-server")
        .header("host", "evil.example")
        .header("x-forwarded-host", "evil.example");
    assert!(!site.send(request.body(Body::empty()).unwrap()).await.text.contains("evil"));
}

#[tokio::test]
async fn f27_a_bad_token_is_never_taken_for_none() {
    let site = Site::with(json!({"allowDefaultPublic": true, "anonymousScopes": ["read"]})).await;
    let guard = site.resource_server();
    let nobody = guard.authenticate(&parts(&[])).await.unwrap();
    assert_eq!((&*nobody.subject, nobody.scopes), ("anonymous", Scopes::parse("read")));
    refused(&site, "junk", "bad token").await;
    let site = Site::new().await;
    assert_eq!(site.resource_server().authenticate(&parts(&[])).await.unwrap_err().status(), 401, "f28: off");
}

#[tokio::test]
async fn f29_a_token_of_32_kb_is_refused() {
    let site = Site::new().await;
    refused(&site, &format!("{}.{}.{}", "a".repeat(10_000), "b".repeat(12_000), "c".repeat(10_000)), "long")
        .await;
}

#[tokio::test]
async fn f21_a_principal_carries_no_token_that_could_be_forwarded() {
    let site = Site::new().await;
    let token = access(&site).await;
    let printed = format!("{:?}", check(&site, &format!("Bearer {token}")).await.unwrap());
    assert!(token.split('.').all(|part| !printed.contains(part)), "{printed}");
}

#[tokio::test]
async fn f22_a_stream_ends_with_the_token_that_opened_it() {
    let site = Site::new().await;
    let guard = site.resource_server();
    let (revoked, expired) = (site.tokens().await, access(&site).await);
    let bearer = |token: &str| parts(&[("authorization", &format!("Bearer {token}"))]);
    tokio::time::pause();
    let (long, soon) = (Duration::from_secs(60), Duration::from_secs(2));
    let mut stream = guard.until_ended(&bearer(revoked["access_token"].as_str().unwrap()));
    assert!(tokio::time::timeout(long, &mut stream).await.is_err(), "the token is good");
    let token = [("token", revoked["refresh_token"].as_str().unwrap()), ("client_id", "app")];
    assert_eq!(site.post("/oauth/revoke", &token).await.status, 200);
    tokio::time::timeout(soon, stream).await.expect("revoked");
    let mut stream = guard.until_ended(&bearer(&expired));
    assert!(tokio::time::timeout(long, &mut stream).await.is_err(), "the token is good");
    site.clock.advance(Duration::from_secs(900 + 61));
    tokio::time::timeout(soon, stream).await.expect("expired");
    assert!(tokio::time::timeout(long, guard.until_ended(&parts(&[]))).await.is_err(), "no token to end");
}
