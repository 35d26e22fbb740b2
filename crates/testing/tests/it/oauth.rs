//! The mock authorization server, used as a client would.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use gatewright_testing::{
    Algorithm, Endpoint, Fault, MockCimdClientOptions, MockCimdServer, MockCimdServerOptions,
    MockOAuthClient, MockOAuthServer, MockOAuthServerOptions, MockTestUser, TokenFactory,
    TokenFactoryOptions,
};
use reqwest::{Response, StatusCode, redirect::Policy};
use serde_json::{Value, json};

const BACK: &str = "http://127.0.0.1:9/callback";
const VERIFIER: &str = "a-verifier-that-is-long-enough-for-everybody-1234567";

fn challenge() -> String {
    URL_SAFE_NO_PAD.encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, VERIFIER.as_bytes()))
}

pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
}

impl Client {
    async fn authorize(&self, more: &[(&str, &str)]) -> Response {
        let challenge = challenge();
        let mut query = vec![
            ("client_id", "app"),
            ("redirect_uri", BACK),
            ("response_type", "code"),
            ("state", "s"),
            ("scope", "read write"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        query.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
        query.extend(more.iter().filter(|(_, value)| !value.is_empty()));
        let url = reqwest::Url::parse_with_params(&format!("{}/oauth/authorize", self.base), query).unwrap();
        self.http.get(url).send().await.unwrap()
    }

    /// The query of the redirect.
    async fn answer(&self, more: &[(&str, &str)]) -> std::collections::HashMap<String, String> {
        let response = self.authorize(more).await;
        assert!(response.status().is_redirection(), "{}", response.text().await.unwrap());
        let to = reqwest::Url::parse(response.headers()["location"].to_str().unwrap()).unwrap();
        to.query_pairs().into_owned().collect()
    }

    async fn token(&self, fields: &[(&str, &str)]) -> (StatusCode, Value) {
        let body = reqwest::Url::parse_with_params("http://x/", fields).unwrap().query().unwrap().to_owned();
        let request = self.http.post(format!("{}/oauth/token", self.base)).body(body);
        let response =
            request.header("content-type", "application/x-www-form-urlencoded").send().await.unwrap();
        assert_eq!(response.headers()["cache-control"], "no-store");
        (response.status(), response.json().await.unwrap())
    }

    async fn redeem(&self, code: &str, more: &[(&str, &str)]) -> (StatusCode, Value) {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", "app"),
            ("redirect_uri", BACK),
            ("code_verifier", VERIFIER),
        ];
        fields.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
        fields.extend(more.iter().filter(|(_, value)| !value.is_empty()));
        self.token(&fields).await
    }

    async fn json(&self, path: &str) -> Value {
        self.http.get(format!("{}{path}", self.base)).send().await.unwrap().json().await.unwrap()
    }
}

async fn started(options: MockOAuthServerOptions) -> (MockOAuthServer, Client) {
    let mut server = MockOAuthServer::new(TokenFactory::default(), options);
    let base = server.start().await.unwrap().base_url;
    let http = reqwest::Client::builder().no_proxy().redirect(Policy::none()).build().unwrap();
    (server, Client { http, base })
}

/// A server that knows the clients `app` and `other`.
fn approving() -> MockOAuthServerOptions {
    let client = |id: &str| MockOAuthClient {
        client_id: id.into(),
        redirect_uris: vec![BACK.into(), "http://127.0.0.1:9/other".into()],
        ..MockOAuthClient::default()
    };
    MockOAuthServerOptions {
        auto_approve: true,
        clients: vec![client("app"), client("other")],
        ..Default::default()
    }
}

fn claims(body: &Value) -> Value {
    let part = body["access_token"].as_str().unwrap().split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

#[tokio::test]
async fn a_code_is_issued_redeemed_and_refreshed() {
    let (server, client) = started(approving()).await;
    let mut user = MockTestUser::new("ada");
    user.email = Some("ada@example.com".into());
    server.set_test_user(user);
    let answer = client.answer(&[("resource", "https://mcp.example/")]).await;
    assert_eq!((answer["state"].as_str(), &answer["iss"]), ("s", &server.info().issuer));
    let (status, body) = client.redeem(&answer["code"], &[]).await;
    assert_eq!(status, 200);
    let claims_now = claims(&body);
    assert_eq!((&claims_now["sub"], &claims_now["aud"]), (&json!("ada"), &json!("https://mcp.example/")));
    assert_eq!(
        (&claims_now["scope"], &claims_now["iss"]),
        (&json!("read write"), &json!(server.info().issuer))
    );

    let me = client
        .http
        .get(format!("{}/userinfo", client.base))
        .bearer_auth(body["access_token"].as_str().unwrap());
    let me: Value = me.send().await.unwrap().json().await.unwrap();
    assert_eq!(me, json!({"sub": "ada", "email": "ada@example.com"}));

    let refresh = body["refresh_token"].as_str().unwrap();
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh),
        ("client_id", "app"),
        ("scope", "read"),
    ];
    let (status, next) = client.token(&fields).await;
    assert_eq!((status, claims(&next)["scope"].as_str()), (StatusCode::OK, Some("read")));
    let (status, again) = client.token(&fields).await;
    assert_eq!((status, again["error"].as_str()), (StatusCode::BAD_REQUEST, Some("invalid_grant")));
    server.clear_stored_tokens();
    let gone = [
        ("grant_type", "refresh_token"),
        ("refresh_token", next["refresh_token"].as_str().unwrap()),
        ("client_id", "app"),
    ];
    assert_eq!(client.token(&gone).await.0, 400);
}

#[tokio::test]
async fn pkce_is_enforced_at_both_endpoints() {
    let (_server, client) = started(approving()).await;
    assert_eq!(client.answer(&[("code_challenge", "")]).await["error"], "invalid_request");
    assert_eq!(client.answer(&[("code_challenge_method", "plain")]).await["error"], "invalid_request");
    let code = &client.answer(&[]).await["code"];
    for (verifier, error) in [
        ("", "invalid_request"),
        ("short", "invalid_request"),
        ("another-verifier-that-is-long-enough-for-everybody-123", "invalid_grant"),
    ] {
        let (status, body) = client.redeem(code, &[("code_verifier", verifier)]).await;
        assert_eq!((status, body["error"].as_str()), (StatusCode::BAD_REQUEST, Some(error)), "{verifier}");
    }
    let (status, _) = client.redeem(code, &[]).await;
    assert_eq!(status, 400, "a code is used up by a wrong verifier");
}

#[tokio::test]
async fn a_code_is_bound_to_client_redirect_and_resource() {
    let (_server, client) = started(approving()).await;
    for (more, error) in [
        ([("client_id", "other")], "invalid_grant"),
        ([("redirect_uri", "http://127.0.0.1:9/other")], "invalid_grant"),
        ([("resource", "https://other.example/")], "invalid_target"),
    ] {
        let code = &client.answer(&[("resource", "https://mcp.example/")]).await["code"];
        assert_eq!(client.redeem(code, &more).await.1["error"], error);
    }
    assert_eq!(client.answer(&[("resource", "https://a/#b")]).await["error"], "invalid_target");
}

#[tokio::test]
async fn tokens_are_for_the_resources_the_metadata_lists() {
    let mut options = approving();
    options.protected_resources = vec!["https://mcp.example/".into()];
    let (_server, client) = started(options).await;
    let metadata = client.json("/.well-known/oauth-authorization-server").await;
    assert_eq!(metadata["protected_resources"], json!(["https://mcp.example/"]));
    assert_eq!(client.answer(&[("resource", "https://other.example/")]).await["error"], "invalid_target");
    assert!(client.answer(&[("resource", "https://mcp.example/")]).await.contains_key("code"));
}

#[tokio::test]
async fn redirects_go_only_to_valid_uris() {
    let mut options = approving();
    options.clients.clear();
    options.client_id = Some("app".into());
    options.valid_redirect_uris = vec!["https://*.example.com/cb".into()];
    let (server, client) = started(options).await;
    assert_eq!(client.authorize(&[]).await.status(), 400);
    assert_eq!(
        client.authorize(&[("redirect_uri", "https://evil.com/x.example.com/cb")]).await.status(),
        400
    );
    assert!(client.answer(&[("redirect_uri", "https://a.example.com/cb")]).await.contains_key("code"));
    server.add_valid_redirect_uri(BACK);
    assert!(client.answer(&[]).await.contains_key("code"));
    assert_eq!(client.authorize(&[("client_id", "stranger")]).await.status(), 400);
}

#[tokio::test]
async fn a_configured_secret_is_required() {
    let mut options = approving();
    options.clients.clear();
    (options.client_id, options.client_secret) = (Some("app".into()), Some("s3cret".into()));
    let (_server, client) = started(options).await;
    let code = &client.answer(&[]).await["code"];
    assert_eq!(client.redeem(code, &[]).await.0, 401);
    let code = &client.answer(&[]).await["code"];
    assert_eq!(client.redeem(code, &[("client_secret", "s3cret")]).await.0, 200);
}

#[tokio::test]
async fn the_login_page_logs_in_or_denies() {
    let (_server, client) = started(MockOAuthServerOptions { auto_approve: false, ..approving() }).await;
    let page = client.authorize(&[]).await;
    assert_eq!(page.status(), 200);
    assert!(page.text().await.unwrap().contains("action=\"/oauth/authorize/submit\""));
    for (decision, wanted) in [("approve", "code"), ("deny", "error")] {
        let challenge = challenge();
        let fields = [
            ("client_id", "app"),
            ("redirect_uri", BACK),
            ("response_type", "code"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("sub", "grace"),
            ("decision", decision),
        ];
        let body = reqwest::Url::parse_with_params("http://x/", fields).unwrap().query().unwrap().to_owned();
        let request = client.http.post(format!("{}/oauth/authorize/submit", client.base)).body(body);
        let response =
            request.header("content-type", "application/x-www-form-urlencoded").send().await.unwrap();
        let to = response.headers()["location"].to_str().unwrap().to_owned();
        let to = reqwest::Url::parse(&to).unwrap();
        let (_, value) = to.query_pairs().find(|(name, _)| name == wanted).unwrap();
        if wanted == "code" {
            assert_eq!(claims(&client.redeem(&value, &[]).await.1)["sub"], "grace");
        } else {
            assert_eq!(value, "access_denied");
        }
    }
}

#[tokio::test]
async fn metadata_keys_and_anonymous_tokens() {
    let (server, client) = started(MockOAuthServerOptions::default()).await;
    for path in ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"] {
        let metadata = client.json(path).await;
        assert_eq!(metadata["issuer"], json!(server.info().issuer));
        assert_eq!(metadata["jwks_uri"], json!(server.info().jwks_url));
        assert_eq!(metadata["code_challenge_methods_supported"], json!(["S256"]));
    }
    assert_eq!(client.json("/.well-known/jwks.json").await, server.get_token_factory().get_public_jwks());
    let (status, body) = client.token(&[("grant_type", "anonymous")]).await;
    assert_eq!((status, claims(&body)["sub"].as_str()), (StatusCode::OK, Some("anonymous")));
    let (_, body) = client.token(&[("grant_type", "password"), ("client_id", "app")]).await;
    assert_eq!(body["error"], "unsupported_grant_type");
}

#[tokio::test]
async fn faults_affect_only_their_endpoint() {
    let (server, client) = started(approving()).await;
    server.inject_fault(Endpoint::Jwks, Fault::Status(503), Some(1));
    let jwks = || client.http.get(&server.info().jwks_url).timeout(Duration::from_millis(300)).send();
    assert_eq!(jwks().await.unwrap().status(), 503);
    assert_eq!(jwks().await.unwrap().status(), 200);
    server.inject_fault(Endpoint::Jwks, Fault::Slow(Duration::from_secs(60)), None);
    assert!(jwks().await.unwrap_err().is_timeout());
    server.inject_fault(Endpoint::Metadata, Fault::WrongIssuer("https://evil.example".into()), None);
    assert_eq!(client.json("/.well-known/openid-configuration").await["issuer"], "https://evil.example");
    server.clear_faults();
    assert_eq!(jwks().await.unwrap().status(), 200);
    server.inject_fault(Endpoint::Token, Fault::ExpiredTokens, None);
    let (_, body) = client.token(&[("grant_type", "anonymous")]).await;
    let claims = claims(&body);
    assert!(claims["exp"].as_i64().unwrap() < claims["iat"].as_i64().unwrap() + 3600);
    server.clear_faults();
    server.inject_fault(Endpoint::Token, Fault::UnpublishedKey, None);
    let (_, body) = client.token(&[("grant_type", "anonymous")]).await;
    let refused = server.get_token_factory().verify(body["access_token"].as_str().unwrap());
    assert_eq!(refused.unwrap_err(), "the signature is not the issuer's");
}

#[tokio::test]
async fn each_of_the_eight_endpoints_fails_as_injected_and_no_other_does() {
    let (server, client) = started(approving()).await;
    let authorize = reqwest::Url::parse_with_params(
        "http://x/oauth/authorize",
        [
            ("client_id", "app"),
            ("redirect_uri", BACK),
            ("response_type", "code"),
            ("code_challenge", &challenge()),
            ("code_challenge_method", "S256"),
        ],
    )
    .unwrap();
    let authorize = format!("/oauth/authorize?{}", authorize.query().unwrap());
    let endpoints = [
        (Endpoint::Metadata, "GET /.well-known/openid-configuration".to_owned()),
        (Endpoint::Metadata, "GET /.well-known/oauth-authorization-server".to_owned()),
        (Endpoint::Jwks, "GET /.well-known/jwks.json".to_owned()),
        (Endpoint::Register, "POST /oauth/register".to_owned()),
        (Endpoint::Authorize, format!("GET {authorize}")),
        (Endpoint::Token, "POST /oauth/token".to_owned()),
        (Endpoint::Revoke, "POST /oauth/revoke".to_owned()),
        (Endpoint::Introspect, "POST /oauth/introspect".to_owned()),
        (Endpoint::Userinfo, "GET /userinfo".to_owned()),
    ];
    // The status, the error in the body or in the redirect, and true if the body is JSON; `None` if there is no answer in time.
    let send = async |request: &str, limit: Duration| {
        let (method, path) = request.split_once(' ').unwrap();
        let sent =
            client.http.request(method.parse().unwrap(), format!("{}{path}", client.base)).timeout(limit);
        let response = match sent.send().await {
            Ok(response) => response,
            Err(error) => {
                assert!(error.is_timeout(), "{error}");
                return None;
            }
        };
        let status = response.status().as_u16();
        let location = response.headers().get("location").map(|to| to.to_str().unwrap().to_owned());
        let body: Option<Value> = serde_json::from_str(&response.text().await.unwrap()).ok();
        let of_redirect = location.and_then(|to| {
            let to = reqwest::Url::parse(&to).unwrap();
            to.query_pairs().find(|(name, _)| name == "error").map(|(_, value)| value.into_owned())
        });
        let in_body = body.as_ref().and_then(|body| Some(body["error"].as_str()?.to_owned()));
        Some((status, of_redirect.or(in_body).unwrap_or_default(), body.is_some()))
    };
    let (long, short) = (Duration::from_secs(60), Duration::from_millis(200));
    let mut usual = Vec::new();
    for (_, request) in &endpoints {
        usual.push(send(request, long).await.unwrap());
    }
    let temporarily = "temporarily_unavailable";
    for endpoint in endpoints.iter().map(|(endpoint, _)| *endpoint).chain([Endpoint::All]) {
        for fault in
            [Fault::Status(503), Fault::Garbage, Fault::Error(temporarily.into()), Fault::Slow(long * 60)]
        {
            server.inject_fault(endpoint, fault.clone(), None);
            for ((of, request), usual) in endpoints.iter().zip(&usual) {
                let broken = *of == endpoint || endpoint == Endpoint::All;
                let found =
                    send(request, if broken && matches!(fault, Fault::Slow(_)) { short } else { long }).await;
                let at_redirect = if *of == Endpoint::Authorize { (303, false) } else { (400, true) };
                let wanted = match &fault {
                    _ if !broken => Some(usual.clone()),
                    Fault::Status(status) => Some((*status, "server_error".to_owned(), true)),
                    Fault::Error(error) => Some((at_redirect.0, error.clone(), at_redirect.1)),
                    Fault::Garbage => Some((200, String::new(), false)),
                    _ => None,
                };
                assert_eq!(found, wanted, "{endpoint:?} {fault:?} {request}");
            }
            server.clear_faults();
        }
    }
}

#[tokio::test]
async fn keys_rotate_with_and_without_the_old_one() {
    let (server, client) = started(approving()).await;
    let count = || async { client.json("/.well-known/jwks.json").await["keys"].as_array().unwrap().len() };
    server.rotate_keys(true);
    assert_eq!(count().await, 2);
    server.rotate_keys(false);
    assert_eq!(count().await, 1);
    server.sign_with_unpublished_key();
    let (_, body) = client.token(&[("grant_type", "anonymous")]).await;
    let me = client
        .http
        .get(format!("{}/userinfo", client.base))
        .bearer_auth(body["access_token"].as_str().unwrap());
    assert_eq!(me.send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn valid_and_invalid_client_documents_are_served() {
    let mut server = MockCimdServer::new(MockCimdServerOptions::default());
    let info = server.start().await.unwrap();
    let http = reqwest::Client::builder().no_proxy().redirect(Policy::none()).build().unwrap();
    let id = server.register_client(&MockCimdClientOptions::new("My Test App!"));
    assert_eq!(id, format!("{}/clients/my-test-app/metadata.json", info.base_url));
    assert_eq!(server.get_client_id("My Test App!"), Some(id.clone()));
    let response = http.get(&id).send().await.unwrap();
    assert_eq!(response.headers()["cache-control"], "max-age=3600");
    let document: Value = response.json().await.unwrap();
    assert_eq!(document["client_id"], json!(id));
    assert_eq!(document["redirect_uris"], json!(["http://localhost:3000/callback"]));
    assert_eq!(document["token_endpoint_auth_method"], "none");
    let status = |url: String| {
        let http = http.clone();
        async move { http.get(url).send().await.unwrap().status().as_u16() }
    };
    let invalid = server.register_invalid_document("/bad.json", &json!("{oops"));
    assert_eq!(http.get(invalid).send().await.unwrap().text().await.unwrap(), "{oops");
    assert_eq!(status(server.register_fetch_error("gone", 410, Some("gone"))).await, 410);
    assert_eq!(status(server.register_redirect("/r", "http://127.0.0.1:1/")).await, 302);
    let big = http.get(server.register_oversize("/big", 100_000)).send().await.unwrap();
    assert!(big.bytes().await.unwrap().len() > 100_000);
    server.remove_client("My Test App!");
    assert_eq!(status(id).await, 404);
    server.clear();
    assert_eq!(status(format!("{}/gone", info.base_url)).await, 404);
    assert_eq!(server.get_client_id("My Test App!"), None);
}

#[tokio::test]
async fn client_documents_are_served_over_https_by_a_private_authority() {
    let mut server = MockCimdServer::new(MockCimdServerOptions { https: true, ..Default::default() });
    server.start().await.unwrap();
    let id = server.register_client(&MockCimdClientOptions::new("app"));
    assert!(id.starts_with("https://localhost:"), "{id}");
    let ca = reqwest::Certificate::from_pem(server.ca_pem().unwrap().as_bytes()).unwrap();
    let http = reqwest::Client::builder().no_proxy().tls_certs_only([ca]).build().unwrap();
    let document: Value = http.get(&id).send().await.unwrap().json().await.unwrap();
    assert_eq!(document["client_id"], json!(id));
}

#[tokio::test]
async fn a_client_that_registers_itself_gets_tokens() {
    let (server, client) = started(approving()).await;
    let register = async |body: Value| {
        let url = format!("{}/oauth/register", client.base);
        let request = client.http.post(url).header("content-type", "application/json").body(body.to_string());
        let response = request.send().await.unwrap();
        (response.status(), response.json::<Value>().await.unwrap())
    };
    let metadata = client.http.get(format!("{}/.well-known/oauth-authorization-server", client.base));
    let metadata: Value = metadata.send().await.unwrap().json().await.unwrap();
    assert_eq!(metadata["registration_endpoint"], format!("{}/oauth/register", client.base));

    let (status, known) = register(json!({"redirect_uris": [BACK], "client_name": "mine"})).await;
    assert_eq!((status, &known["client_name"]), (StatusCode::CREATED, &json!("mine")));
    assert!(known["client_secret"].is_string() && known["client_id_issued_at"].is_i64(), "{known}");
    let id = known["client_id"].as_str().unwrap();
    let secret = known["client_secret"].as_str().unwrap();
    let code = async || client.answer(&[("client_id", id)]).await["code"].clone();
    for (how, wanted) in [(Some("wrong"), 401), (Some(secret), 200)] {
        let fields =
            [("grant_type", "authorization_code"), ("code", &code().await), ("code_verifier", VERIFIER)];
        let request = client.http.post(format!("{}/oauth/token", client.base)).basic_auth(id, how);
        let body = reqwest::Url::parse_with_params("http://x/", fields).unwrap().query().unwrap().to_owned();
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), wanted);
        let challenge = response.headers().get("www-authenticate").map(|one| one.to_str().unwrap());
        assert_eq!(challenge.is_some_and(|one| one.starts_with("Basic ")), wanted == 401, "{challenge:?}");
    }
    let (status, error) = client.redeem(&code().await, &[("client_id", id)]).await;
    assert_eq!((status, &error["error"]), (StatusCode::UNAUTHORIZED, &json!("invalid_client")), "no secret");
    let elsewhere = client.authorize(&[("client_id", id), ("redirect_uri", "http://127.0.0.1:9/else")]).await;
    assert_eq!(elsewhere.status(), 400, "another redirect URI than the registered one");

    let (_, public) = register(json!({"redirect_uris": [BACK], "token_endpoint_auth_method": "none"})).await;
    assert!(public.get("client_secret").is_none() && public["client_id"] != known["client_id"], "{public}");
    let (status, error) = register(json!({"redirect_uris": ["https://elsewhere.example/"]})).await;
    assert_eq!((status, &error["error"]), (StatusCode::BAD_REQUEST, &json!("invalid_redirect_uri")));
    server.inject_fault(Endpoint::Register, Fault::Status(503), Some(1));
    assert_eq!(register(json!({"redirect_uris": [BACK]})).await.0, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn unknown_clients_and_wrong_secrets_are_refused() {
    let mut options = approving();
    let service = MockOAuthClient {
        client_id: "service".into(),
        client_secret: Some("s3cret".into()),
        ..MockOAuthClient::default()
    };
    options.clients.push(service);
    let (_server, client) = started(options).await;
    assert_eq!(client.authorize(&[("client_id", "stranger")]).await.status(), 400);
    let body = client.authorize(&[("redirect_uri", "https://elsewhere.example/")]).await;
    assert_eq!(body.status(), 400);
    let fields = |id, secret| {
        [
            ("grant_type", "client_credentials"),
            ("client_id", id),
            ("client_secret", secret),
            ("scope", "read"),
        ]
    };
    for (id, secret) in [("stranger", "x"), ("service", "s3cret"), ("service", "wrong"), ("service", "")] {
        let (status, body) = client.token(&fields(id, secret)).await;
        // `service` is registered for HTTP Basic.
        assert_eq!((status.as_u16(), &body["error"]), (401, &json!("invalid_client")), "{id} {secret}");
    }
    let request =
        client.http.post(format!("{}/oauth/token", client.base)).basic_auth("service", Some("s3cret"));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let response = request.body("grant_type=client_credentials&scope=read").send().await.unwrap();
    let body: Value = response.json().await.unwrap();
    assert_eq!(claims(&body)["sub"], "service");
    assert!(body.get("refresh_token").is_none(), "{body}");
    let (status, body) = client.token(&[("grant_type", "client_credentials"), ("client_id", "app")]).await;
    assert_eq!((status, &body["error"]), (StatusCode::BAD_REQUEST, &json!("unauthorized_client")));
    let (_server, lenient) =
        started(MockOAuthServerOptions { accept_any_client: true, auto_approve: true, ..Default::default() })
            .await;
    assert!(lenient.answer(&[("client_id", "stranger")]).await.contains_key("code"));
}

#[tokio::test]
async fn a_client_metadata_document_is_fetched_and_checked() {
    let mut documents = MockCimdServer::new(MockCimdServerOptions { https: true, ..Default::default() });
    documents.start().await.unwrap();
    let mut app = MockCimdClientOptions::new("app");
    app.redirect_uris = vec![BACK.into()];
    let good = documents.register_client(&app);
    let trusted = documents.ca_pem().unwrap().to_owned();
    let (_server, client) =
        started(MockOAuthServerOptions { trusted_ca_pem: vec![trusted], ..approving() }).await;
    let code = &client.answer(&[("client_id", &good)]).await["code"];
    assert_eq!(client.redeem(code, &[("client_id", &good)]).await.0, 200);
    assert!(documents.requests().iter().any(|one| one == "GET /clients/app/metadata.json"));
    let back = client.authorize(&[("client_id", &good), ("redirect_uri", "http://127.0.0.1:9/x")]).await;
    assert_eq!(back.status(), 400, "not in the document");
    let bad = [
        documents
            .register_invalid_document("/other.json", &json!({"client_id": good, "redirect_uris": [BACK]})),
        documents.register_invalid_document("/text.json", &json!("{oops")),
        documents.register_fetch_error("/gone.json", 404, None),
        documents.register_redirect("/moved.json", &good),
        documents.register_oversize("/big.json", 100_000),
        format!("{}#x", good),
    ];
    for id in bad {
        let response = client.authorize(&[("client_id", &id)]).await;
        assert_eq!(response.status(), 400, "{id}");
        assert!(response.text().await.unwrap().contains("client metadata document"), "{id}");
    }
    let (_server, wary) = started(approving()).await;
    assert_eq!(wary.authorize(&[("client_id", &good)]).await.status(), 400, "an authority it does not trust");
}

async fn post(client: &Client, path: &str, body: String, basic: Option<(&str, &str)>) -> (StatusCode, Value) {
    let mut request = client.http.post(format!("{}{path}", client.base)).body(body);
    if let Some((id, secret)) = basic {
        request = request.basic_auth(id, Some(secret));
    }
    let response = request.header("content-type", "application/x-www-form-urlencoded").send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

#[tokio::test]
async fn tokens_are_introspected_and_revoked() {
    let mut options = approving();
    let api = MockOAuthClient {
        client_id: "api".into(),
        client_secret: Some("s3cret".into()),
        ..MockOAuthClient::default()
    };
    options.clients.push(api);
    let (server, client) = started(options).await;
    let code = &client.answer(&[]).await["code"];
    let (_, tokens) = client.redeem(code, &[]).await;
    let (access, refresh) =
        (tokens["access_token"].as_str().unwrap(), tokens["refresh_token"].as_str().unwrap());
    let active = async |token: &str| {
        let (status, body) =
            post(&client, "/oauth/introspect", format!("token={token}"), Some(("api", "s3cret"))).await;
        assert_eq!(status, 200, "{body}");
        body
    };
    let body = active(access).await;
    assert_eq!(
        (&body["active"], &body["sub"], &body["client_id"]),
        (&json!(true), &json!("test-user"), &json!("app"))
    );
    assert_eq!(active("nonsense").await, json!({"active": false}));
    assert_eq!(post(&client, "/oauth/introspect", format!("token={access}"), None).await.0, 401);
    assert_eq!(
        post(&client, "/oauth/introspect", format!("token={access}&client_id=app"), None).await.0,
        401,
        "a public client"
    );
    let revoke = async |token: &str, id: &str| {
        post(&client, "/oauth/revoke", format!("token={token}&client_id={id}"), None).await.0
    };
    assert_eq!(revoke(refresh, "other").await, 200, "of another client: the answer does not tell");
    assert_eq!(active(access).await["active"], true);
    assert_eq!(revoke("nonsense", "app").await, 200);
    assert_eq!(revoke(refresh, "app").await, 200);
    assert_eq!(active(access).await, json!({"active": false}), "the access token of a revoked refresh token");
    let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh), ("client_id", "app")];
    assert_eq!(client.token(&fields).await.0, 400);
    server.inject_fault(Endpoint::Introspect, Fault::Status(503), Some(1));
    assert_eq!(post(&client, "/oauth/introspect", String::new(), None).await.0, 503);
    server.inject_fault(Endpoint::Revoke, Fault::Error("server_error".into()), Some(1));
    assert_eq!(post(&client, "/oauth/revoke", String::new(), None).await.1["error"], "server_error");
    server.inject_fault(Endpoint::Authorize, Fault::Error("temporarily_unavailable".into()), Some(1));
    assert_eq!(client.answer(&[]).await["error"], "temporarily_unavailable");
}

#[tokio::test]
async fn a_code_or_refresh_token_that_is_used_again_ends_what_it_got() {
    let (_server, client) = started(approving()).await;
    let code = &client.answer(&[]).await["code"];
    let (_, tokens) = client.redeem(code, &[]).await;
    assert_eq!(client.redeem(code, &[]).await.0, 400);
    let me = client.http.get(format!("{}/userinfo", client.base));
    let me = me.bearer_auth(tokens["access_token"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(me.status(), 401);
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
        ("client_id", "app"),
    ];
    assert_eq!(client.token(&fields).await.0, 400);
}

#[tokio::test]
async fn scripts_of_any_origin_may_use_the_endpoints_without_cookies() {
    let (_server, client) = started(approving()).await;
    for (path, open) in [
        ("/.well-known/oauth-authorization-server", true),
        ("/.well-known/jwks.json", true),
        ("/oauth/token", true),
        ("/oauth/register", true),
        ("/oauth/revoke", true),
        ("/oauth/authorize", false),
    ] {
        let request = client.http.request(reqwest::Method::OPTIONS, format!("{}{path}", client.base));
        let request =
            request.header("origin", "https://app.example").header("access-control-request-method", "POST");
        let response = request.send().await.unwrap();
        assert_eq!(response.headers().get("access-control-allow-origin").is_some(), open, "{path}");
        assert_eq!(response.status() == 204, open, "{path}");
    }
}

#[tokio::test]
async fn an_https_issuer_has_a_certificate_of_its_own_authority() {
    let options = MockOAuthServerOptions { https: true, ..approving() };
    let mut server = MockOAuthServer::new(
        TokenFactory::new(TokenFactoryOptions::default()).algorithm(Algorithm::ES256),
        options,
    );
    let info = server.start().await.unwrap();
    assert!(info.issuer.starts_with("https://localhost:"), "{info:?}");
    let ca = reqwest::Certificate::from_pem(server.ca_pem().unwrap().as_bytes()).unwrap();
    let http = reqwest::Client::builder().no_proxy().tls_certs_only([ca]).build().unwrap();
    let metadata: Value = http
        .get(format!("{}/.well-known/oauth-authorization-server", info.base_url))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(metadata["issuer"], info.issuer);
    let keys: Value = http.get(&info.jwks_url).send().await.unwrap().json().await.unwrap();
    assert_eq!(keys["keys"][0]["alg"], "ES256");
}
