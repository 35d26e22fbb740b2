//! Proofs of possession at the mock authorization server (RFC 9449).

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use gatewright_testing::{MockOAuthClient, MockOAuthServer, MockOAuthServerOptions, TokenFactory};
use reqwest::Response;
use serde_json::{Value, json};

fn digest(text: &str) -> String {
    B64.encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes()))
}

struct Key(EcdsaKeyPair);

impl Key {
    fn new() -> Self {
        Self(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    fn proof(&self, changes: Value) -> String {
        let point = &self.0.public_key().as_ref()[1..];
        let jwk = json!({"kty": "EC", "crv": "P-256", "x": B64.encode(&point[..32]), "y": B64.encode(&point[32..])});
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let jti = B64.encode(rand());
        let mut claims = json!({"jti": jti, "htm": "POST", "iat": now});
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let header = json!({"typ": "dpop+jwt", "alg": "ES256", "jwk": jwk});
        let signed = format!("{}.{}", B64.encode(header.to_string()), B64.encode(claims.to_string()));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", B64.encode(signature.as_ref()))
    }
}

fn rand() -> [u8; 8] {
    let mut bytes = [0; 8];
    aws_lc_rs::rand::fill(&mut bytes).unwrap();
    bytes
}

struct Site {
    _server: MockOAuthServer,
    base: String,
    http: reqwest::Client,
}

impl Site {
    async fn new(nonce: Option<&str>) -> Self {
        let service = MockOAuthClient {
            client_id: "service".into(),
            client_secret: Some("s3cret".into()),
            token_endpoint_auth_method: Some("client_secret_post".into()),
            ..MockOAuthClient::default()
        };
        let options = MockOAuthServerOptions {
            clients: vec![service],
            dpop_nonce: nonce.map(str::to_owned),
            ..Default::default()
        };
        let mut server = MockOAuthServer::new(TokenFactory::default(), options);
        let base = server.start().await.unwrap().base_url;
        Self { _server: server, base, http: reqwest::Client::builder().no_proxy().build().unwrap() }
    }

    async fn token(&self, proof: &str) -> Response {
        let request = self.http.post(format!("{}/oauth/token", self.base)).header("dpop", proof);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        request
            .body("grant_type=client_credentials&client_id=service&client_secret=s3cret")
            .send()
            .await
            .unwrap()
    }

    fn htu(&self) -> Value {
        json!(format!("{}/oauth/token", self.base))
    }
}

#[tokio::test]
async fn a_proof_binds_the_token_and_is_used_once() {
    let (site, key) = (Site::new(None).await, Key::new());
    let good = key.proof(json!({"htu": site.htu()}));
    let body: Value = site.token(&good).await.json().await.unwrap();
    assert_eq!(body["token_type"], "DPoP");
    let token = body["access_token"].as_str().unwrap();
    assert!(TokenFactory::unverified_claims(token)["cnf"]["jkt"].is_string());
    for bad in [
        good.clone(),
        key.proof(json!({"htu": "http://other.example/oauth/token"})),
        key.proof(json!({"htu": site.htu(), "htm": "GET"})),
        key.proof(json!({"htu": site.htu(), "iat": 7})),
        key.proof(json!({"htu": site.htu(), "jti": ""})),
        format!("{}x", key.proof(json!({"htu": site.htu()}))),
    ] {
        let response = site.token(&bad).await;
        assert_eq!(response.status(), 400);
        assert_eq!(response.json::<Value>().await.unwrap()["error"], "invalid_dpop_proof");
    }
    let userinfo = format!("{}/userinfo", site.base);
    let ask = async |scheme: &str, proof: Option<String>| {
        let mut request = site.http.get(&userinfo).header("authorization", format!("{scheme} {token}"));
        if let Some(proof) = proof {
            request = request.header("dpop", proof);
        }
        let response = request.send().await.unwrap();
        let challenge =
            response.headers().get("www-authenticate").map(|one| one.to_str().unwrap().to_owned());
        (response.status().as_u16(), challenge.unwrap_or_default())
    };
    let proof = |key: &Key| key.proof(json!({"htu": userinfo, "htm": "GET", "ath": digest(token)}));
    assert_eq!(ask("DPoP", Some(proof(&key))).await.0, 200);
    for (scheme, proof) in [
        ("Bearer", None),
        ("DPoP", None),
        ("DPoP", Some(proof(&Key::new()))),
        ("DPoP", Some(key.proof(json!({"htu": userinfo, "htm": "GET", "ath": digest("another")})))),
    ] {
        let (status, challenge) = ask(scheme, proof).await;
        assert_eq!(status, 401);
        assert!(challenge.starts_with("DPoP error="), "{challenge}");
    }
}

#[tokio::test]
async fn a_nonce_is_demanded_and_then_accepted() {
    let (site, key) = (Site::new(Some("n-1")).await, Key::new());
    let response = site.token(&key.proof(json!({"htu": site.htu()}))).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["dpop-nonce"]),
        (400, &"n-1".parse().unwrap())
    );
    assert_eq!(response.json::<Value>().await.unwrap()["error"], "use_dpop_nonce");
    assert_eq!(site.token(&key.proof(json!({"htu": site.htu(), "nonce": "n-1"}))).await.status(), 200);
}
