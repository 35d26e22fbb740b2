//! The token endpoint (checklist C and E).

use std::time::Duration;

use axum::body::Body;
use http::{Method, Request, header};
use serde_json::{Value, json};

use crate::support::site::{RESOURCE, SECRET, Site, VERIFIER, basic, claims, form, part, post};

fn refused(answer: &crate::support::site::Answer, status: u16, code: &str) {
    assert_eq!((answer.status.as_u16(), answer.error().as_str()), (status, code), "{}", answer.text);
    assert_eq!(answer.header("cache-control"), "no-store");
    assert!(answer.text.is_ascii());
}

#[tokio::test]
async fn c01_a_code_is_redeemed_once() {
    let site = Site::new().await;
    let code = site.code(&[]).await;
    assert_eq!(site.redeem(&code).await.status, 200);
    refused(&site.redeem(&code).await, 400, "invalid_grant");
}

#[tokio::test]
async fn c02_a_replayed_code_ends_every_token_that_came_of_it() {
    let site = Site::new().await;
    let code = site.code(&[]).await;
    let tokens = site.redeem(&code).await.json();
    let access = tokens["access_token"].as_str().unwrap();
    assert_eq!(site.introspect(access).await["active"], true);
    site.redeem(&code).await;
    assert_eq!(site.introspect(access).await, json!({"active": false}));
    refused(&site.refresh(tokens["refresh_token"].as_str().unwrap(), &[]).await, 400, "invalid_grant");
    assert_eq!(site.events("code.reuse_detected"), 1);
}

#[tokio::test]
async fn c04_a_code_of_another_client_is_refused_and_burnt() {
    let site = Site::new().await;
    let code = site.code(&[]).await;
    refused(&site.redeem_with(&code, &[("client_id", "other")]).await, 400, "invalid_grant");
    refused(&site.redeem(&code).await, 400, "invalid_grant");
}

#[tokio::test]
async fn c05_redirect_uri_may_be_left_out_and_must_match_when_sent() {
    let site = Site::new().await;
    let code = site.code(&[]).await;
    assert_eq!(site.redeem_with(&code, &[("redirect_uri", "https://c.example/cb")]).await.status, 200);
    let code = site.code(&[]).await;
    refused(
        &site.redeem_with(&code, &[("redirect_uri", "https://c.example/other")]).await,
        400,
        "invalid_grant",
    );
}

#[tokio::test]
async fn c06_c07_and_c08_a_verifier_must_fit_and_a_wrong_one_burns_the_code() {
    let site = Site::new().await;
    let code = site.code(&[]).await;
    for bad in ["", &"x".repeat(42), &"x".repeat(129), &format!("{}!", "x".repeat(43))] {
        refused(&site.redeem_with(&code, &[("code_verifier", bad)]).await, 400, "invalid_request");
    }
    refused(&site.redeem_with(&code, &[("code_verifier", &"x".repeat(43))]).await, 400, "invalid_grant");
    refused(&site.redeem_with(&code, &[("code_verifier", VERIFIER)]).await, 400, "invalid_grant");
}

#[tokio::test]
async fn c09_a_code_lives_a_minute() {
    let site = Site::new().await;
    let code = site.code(&[]).await;
    site.clock.advance(Duration::from_secs(61));
    refused(&site.redeem(&code).await, 400, "invalid_grant");
}

#[tokio::test]
async fn c10_a_resource_outside_the_grant_is_refused() {
    let site = Site::new().await;
    let code = site.code(&[]).await;
    refused(&site.redeem_with(&code, &[("resource", "https://other.example/")]).await, 400, "invalid_target");
    let code = site.code(&[]).await;
    assert_eq!(site.redeem_with(&code, &[("resource", RESOURCE)]).await.status, 200);
}

#[tokio::test]
async fn c11_and_c12_responses_are_json_nobody_keeps() {
    let site = Site::new().await;
    let answer = site.redeem(&site.code(&[]).await).await;
    assert_eq!((answer.header("cache-control"), answer.header("pragma")), ("no-store", "no-cache"));
    assert_eq!(answer.header("content-type"), "application/json");
    let body = answer.json();
    assert_eq!(
        (&body["token_type"], &body["expires_in"], &body["scope"]),
        (&json!("Bearer"), &json!(900), &json!("read"))
    );
    refused(&site.redeem("junk").await, 400, "invalid_grant");
}

#[tokio::test]
async fn c13_c14_c15_and_c16_only_a_form_by_post_is_read() {
    let site = Site::new().await;
    let answer = site.get("/oauth/token").await;
    assert_eq!((answer.status.as_u16(), answer.header("allow")), (405, "POST"));
    let code = site.code(&[]).await;
    let query = form(&[
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("client_id", "app"),
        ("code_verifier", VERIFIER),
    ]);
    refused(&site.post(&format!("/oauth/token?{query}"), &[]).await, 400, "invalid_request");
    let request = Request::post("/oauth/token")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from("{}"))
        .unwrap();
    refused(&site.send(request).await, 400, "invalid_request");
    let pairs = [("grant_type", "authorization_code"), ("grant_type", "refresh_token"), ("client_id", "app")];
    refused(&site.token(&pairs).await, 400, "invalid_request");
    assert_eq!(site.redeem(&code).await.status, 200, "none of it touched the code");
}

#[tokio::test]
async fn c17_and_c18_grants_must_be_supported_and_the_clients_own() {
    let site = Site::new().await;
    for grant in ["password", "implicit", "unknown", "anonymous"] {
        refused(
            &site.token(&[("grant_type", grant), ("client_id", "app")]).await,
            400,
            "unsupported_grant_type",
        );
    }
    let site = Site::with(json!({"clients": [{"clientId": "app", "redirectUris": ["https://c.example/cb"], "grantTypes": ["authorization_code"]}]})).await;
    refused(&site.refresh("x", &[]).await, 400, "unauthorized_client");
    assert_eq!(site.tokens().await.get("refresh_token"), None);
}

async fn as_service(
    site: &Site,
    authorization: Option<http::HeaderValue>,
    extra: &[(&str, &str)],
) -> crate::support::site::Answer {
    let mut pairs = vec![("grant_type", "client_credentials")];
    pairs.extend(extra);
    let mut request = post("/oauth/token", &pairs);
    if let Some(value) = authorization {
        request.headers_mut().insert(header::AUTHORIZATION, value);
    }
    site.send(request).await
}

#[tokio::test]
async fn c19_c20_and_c22_a_client_authenticates_in_its_one_way() {
    let site = Site::new().await;
    assert_eq!(as_service(&site, Some(basic("service", SECRET)), &[]).await.status, 200);
    let wrong = as_service(&site, Some(basic("service", "wrong")), &[]).await;
    refused(&wrong, 401, "invalid_client");
    assert!(wrong.header("www-authenticate").starts_with("Basic"));
    refused(
        &as_service(&site, Some(basic("service", SECRET)), &[("client_secret", SECRET)]).await,
        400,
        "invalid_request",
    );
    refused(
        &as_service(&site, None, &[("client_id", "service"), ("client_secret", SECRET)]).await,
        401,
        "invalid_client",
    );
    refused(&as_service(&site, Some(basic("poster", SECRET)), &[]).await, 401, "invalid_client");
    assert_eq!(
        as_service(&site, None, &[("client_id", "poster"), ("client_secret", SECRET)]).await.status,
        200
    );
    refused(
        &as_service(&site, None, &[("client_id", "app"), ("client_secret", "x")]).await,
        401,
        "invalid_client",
    );
    refused(&as_service(&site, None, &[("client_id", "service")]).await, 401, "invalid_client");
    refused(&as_service(&site, Some(basic("nobody", SECRET)), &[]).await, 401, "invalid_client");
}

#[tokio::test]
async fn c21_basic_credentials_are_form_decoded() {
    let odd = json!({"clients": [{"clientId": "a:b%c", "clientSecret": "s +&=%", "grantTypes": ["client_credentials"]}]});
    let site = Site::with(odd).await;
    let encode = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    assert_eq!(as_service(&site, Some(basic(&encode("a:b%c"), &encode("s +&=%"))), &[]).await.status, 200);
}

#[tokio::test]
async fn c23_and_h23_secrets_are_compared_and_kept_as_digests() {
    let site = Site::new().await;
    let debug = format!("{:?}", site.server);
    assert!(!debug.contains(SECRET));
    // Lookups go by SHA-256 (see k03) and comparisons are over digests in constant time (see `crypto::same`).
    refused(
        &as_service(&site, Some(basic("service", &SECRET[..SECRET.len() - 1])), &[]).await,
        401,
        "invalid_client",
    );
}

#[tokio::test]
async fn c24_a_client_assertion_is_for_us_short_and_used_once() {
    use gatewright_auth::keys::{Algorithm, Jwk, SigningKey, sign};
    let key = Jwk::generate(Algorithm::ES256).unwrap();
    let client = json!({"clients": [{"clientId": "signer", "jwks": {"keys": [key.public()]}, "grantTypes": ["client_credentials"]}]});
    let site = Site::with(client).await;
    let now = site.now_s();
    let make_of = |typ: &str, changes: Value| {
        let mut claims = json!({"iss": "signer", "sub": "signer", "aud": "https://mcp.example", "exp": now + 60, "iat": now, "jti": "1"});
        crate::support::site::merge(&mut claims, changes);
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        sign(&SigningKey::from_jwk(&key).unwrap(), typ, claims.as_object().unwrap())
    };
    let make = |changes: Value| make_of("JWT", changes);
    let send = |token: String| {
        let site = &site;
        async move {
            let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
            as_service(site, None, &[("client_assertion_type", kind), ("client_assertion", &token)]).await
        }
    };
    let good = make(json!({}));
    assert_eq!(send(good.clone()).await.status, 200);
    refused(&send(good).await, 401, "invalid_client");
    for bad in [
        json!({"aud": "https://other.example", "jti": "2"}),
        json!({"aud": ["https://mcp.example", "https://other.example"], "jti": "2"}),
        json!({"iss": "app", "jti": "2"}),
        json!({"exp": now + 10_000, "jti": "2"}),
        json!({"exp": (now + 10_000) as f64, "jti": "2"}),
        json!({"exp": now - 61, "jti": "2"}),
        json!({"jti": null}),
    ] {
        refused(&send(make(bad)).await, 401, "invalid_client");
    }
    for typ in ["at+jwt", "application/at+jwt", "dpop+jwt"] {
        refused(&send(make_of(typ, json!({"jti": "4"}))).await, 401, "invalid_client");
    }
    assert_eq!(send(make_of("client-authentication+jwt", json!({"jti": "4"}))).await.status, 200);
    let header = |alg: &str| {
        use base64::Engine as _;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"{alg}"}}"#))
    };
    let body = make(json!({"jti": "3"})).split('.').nth(1).unwrap().to_owned();
    for alg in ["none", "HS256"] {
        refused(&send(format!("{}.{body}.AAAA", header(alg))).await, 401, "invalid_client");
    }
}

#[tokio::test]
async fn a_resource_of_another_server_does_not_use_up_a_code() {
    let site = Site::new().await;
    let code = site.code(&[]).await;
    let wrong = site.redeem_with(&code, &[("resource", "https://other.example/mcp")]).await;
    refused(&wrong, 400, "invalid_target");
    assert_eq!(site.redeem(&code).await.status, 200);
}

#[tokio::test]
async fn c26_errors_echo_nothing() {
    let site = Site::new().await;
    let answer = site.redeem_with("secret-code-value", &[("code_verifier", &"v".repeat(43))]).await;
    assert!(!answer.text.contains("secret-code-value") && !answer.text.contains("vvv"));
}

#[tokio::test]
async fn c27_a_body_of_10_mb_is_refused() {
    let site = Site::new().await;
    let mut request = post("/oauth/token", &[]);
    *request.body_mut() = Body::from(vec![b'a'; 10 << 20]);
    assert_eq!(site.send(request).await.status, 413);
}

#[tokio::test(start_paused = true)]
async fn c27_a_body_that_never_ends_is_given_up() {
    let site = Site::new().await;
    let mut request = post("/oauth/token", &[]);
    *request.body_mut() =
        Body::from_stream(futures::stream::pending::<Result<bytes::Bytes, std::io::Error>>());
    assert_eq!(site.send(request).await.status, 408);
}

#[tokio::test]
async fn c28_random_bodies_never_give_a_5xx() {
    use gatewright_auth::{Entropy as _, SystemEntropy};
    let site = Site::new().await;
    for path in [
        "/oauth/token",
        "/oauth/revoke",
        "/oauth/introspect",
        "/oauth/par",
        "/oauth/login",
        "/oauth/consent",
        "/oauth/authorize",
        "/oauth/logout",
    ] {
        for round in 0..40_usize {
            let mut bytes = vec![0; round * 5];
            SystemEntropy.fill(&mut bytes);
            let mut body = b"grant_type=authorization_code&client_id=app&code=".to_vec();
            body.truncate(if round % 2 == 0 { 0 } else { body.len() });
            body.extend(bytes);
            let mut request = post(path, &[]);
            *request.body_mut() = Body::from(body);
            let answer = site.send(request).await;
            assert!(answer.status.as_u16() < 500, "{path}: {}", answer.status);
        }
    }
}

#[tokio::test]
async fn c29_and_m07_client_credentials_are_for_confidential_clients_and_give_no_refresh_token() {
    let site = Site::with(json!({"clients": [
        {"clientId": "app", "redirectUris": ["https://c.example/cb"], "grantTypes": ["client_credentials"]},
        {"clientId": "service", "clientSecret": SECRET, "grantTypes": ["client_credentials"]},
    ]}))
    .await;
    refused(&as_service(&site, None, &[("client_id", "app")]).await, 400, "unauthorized_client");
    let body = as_service(&site, Some(basic("service", SECRET)), &[("scope", "read")]).await.json();
    assert_eq!(body.get("refresh_token"), None);
    let claims = claims(body["access_token"].as_str().unwrap());
    assert_eq!(
        (&claims["sub"], &claims["aud"], &claims["scope"]),
        (&json!("service"), &json!(RESOURCE), &json!("read"))
    );
}

#[tokio::test]
async fn e01_e02_e04_e05_and_e07_an_access_token_says_what_it_must_and_no_more() {
    let site = Site::new().await;
    let tokens = site.tokens().await;
    let token = tokens["access_token"].as_str().unwrap();
    let header = part(token, 0);
    assert_eq!((&header["typ"], &header["alg"]), (&json!("at+jwt"), &json!("ES256")));
    assert_eq!(header["kid"], site.server.keys().snapshot().await.signing().kid());
    let claims = claims(token);
    for name in ["iss", "sub", "aud", "exp", "iat", "jti", "client_id"] {
        assert!(claims.get(name).is_some(), "{name}");
    }
    assert_eq!(claims["sub"], "user:alice", "never the form of a client id");
    assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 900);
    assert!(claims.get("email").is_none() && claims.get("name").is_none());
    let reserved =
        json!({"clients": [{"clientId": "user:alice", "redirectUris": []}], "mode": "orchestrated"});
    let config: gatewright_auth::AuthConfig = serde_json::from_value(reserved).unwrap();
    assert!(
        !config.validate(&gatewright_auth::Deployment::new("https://mcp.example", "/mcp", "N")).is_empty()
    );
}

#[tokio::test]
async fn e06_nothing_a_client_sends_becomes_a_claim() {
    let site = Site::new().await;
    let code = site.code(&[]).await;
    let extra =
        [("iss", "evil"), ("aud", "evil"), ("sub", "user:bob"), ("exp", "9999999999"), ("scope", "write")];
    let body = site.redeem_with(&code, &extra).await.json();
    let claims = claims(body["access_token"].as_str().unwrap());
    assert_eq!(
        (&claims["iss"], &claims["sub"], &claims["scope"]),
        (&json!("https://mcp.example"), &json!("user:alice"), &json!("read"))
    );
}

#[tokio::test]
async fn e10_and_e11_rsa_and_edwards_keys_sign_and_stay_private() {
    for key in [
        crate::support::rsa_jwk(),
        gatewright_auth::keys::Jwk::generate(gatewright_auth::keys::Algorithm::EdDSA).unwrap(),
    ] {
        let site = Site::with(json!({"local": {"signKey": key}})).await;
        let token = site.tokens().await["access_token"].as_str().unwrap().to_owned();
        assert_eq!(site.introspect(&token).await["active"], true);
        let jwks = site.get("/.well-known/jwks.json").await.text;
        let d = key.d.unwrap();
        assert!(!jwks.contains(&d) && !jwks.contains("\"d\""));
        assert!(!format!("{:?}", site.server.keys()).contains(&d));
    }
}

#[tokio::test]
async fn f28_the_anonymous_grant_works_only_when_it_is_on() {
    let site = Site::with(json!({"allowDefaultPublic": true, "anonymousScopes": ["read"]})).await;
    let body = site.token(&[("grant_type", "anonymous")]).await.json();
    let token = claims(body["access_token"].as_str().unwrap());
    assert_eq!((&token["sub"], &token["scope"]), (&json!("anonymous"), &json!("read")));
    let site = Site::new().await;
    refused(&site.token(&[("grant_type", "anonymous")]).await, 400, "unsupported_grant_type");
}

#[tokio::test]
async fn g12_other_methods_are_405_with_allow() {
    let site = Site::new().await;
    for path in [
        "/oauth/token",
        "/oauth/revoke",
        "/.well-known/jwks.json",
        "/oauth/login",
        "/oauth/introspect",
        "/oauth/par",
    ] {
        let answer = site.browser().request(Method::PATCH, path).await;
        assert_eq!(answer.status, 405, "{path}");
        assert!(!answer.header("allow").is_empty(), "{path}");
    }
}
