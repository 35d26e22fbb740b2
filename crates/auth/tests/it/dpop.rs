//! Proofs of possession (RFC 9449): which are accepted, and what a bound token requires (checklist M, D18, F24).

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use gatewright_auth::keys::{Algorithm, Jwk, SigningKey};
use gatewright_core::Authenticator as _;
use http::Request;
use serde_json::{Value, json};

use crate::support::site::{Answer, ISSUER, SECRET, Site, VERIFIER, merge, post};

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
        (json!({"exp": now - 61}), json!({})),
        (json!({"exp": "soon"}), json!({})),
        (json!({"nbf": now + 61}), json!({})),
        (json!({}), json!({"b64": false})),
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
    let long = format!("{}.{}.AAAA", B64.encode(r#"{"typ":"dpop+jwt"}"#), "A".repeat(16 * 1024));
    assert!(with_proof(&site, &pairs, &long).await.text.contains("the proof is too long"));
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

#[tokio::test]
async fn a_client_that_registers_bound_tokens_gets_no_token_without_a_proof() {
    let site = Site::with(json!({"dcrEnabled": true})).await;
    let metadata = json!({"redirect_uris": ["https://n.example/cb"], "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"], "dpop_bound_access_tokens": true});
    let request = Request::post("/oauth/register").header("content-type", "application/json");
    let registered = site.send(request.body(axum::body::Body::from(metadata.to_string())).unwrap()).await;
    assert_eq!(registered.json()["dpop_bound_access_tokens"], true, "{}", registered.text);
    let id = registered.json()["client_id"].as_str().unwrap().to_owned();
    let asked = [("client_id", id.as_str()), ("redirect_uri", "https://n.example/cb")];
    let code = site.code(&asked).await;
    let pairs = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("client_id", id.as_str()),
        ("code_verifier", VERIFIER),
    ];
    let refused = site.send(post("/oauth/token", &pairs)).await;
    assert_eq!((refused.status.as_u16(), refused.error().as_str()), (400, "invalid_dpop_proof"));
    // The code is not used up by it.
    let key = Jwk::generate(Algorithm::ES256).unwrap();
    let tokens = with_proof(&site, &pairs, &proof(&key, site.now_s(), json!({}), json!({}))).await;
    assert_eq!(tokens.json()["token_type"], "DPoP", "{}", tokens.text);
}
