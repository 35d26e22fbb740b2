//! The same requests to this server and to the mock of the test kit, so that tests with the mock show what a real server does.

use axum::body::Body;
use gatewright_testing::{MockOAuthClient, MockOAuthServer, MockOAuthServerOptions, TokenFactory};
use http::{HeaderMap, Request};
use serde_json::Value;

use crate::support::site::{REDIRECT, RESOURCE, SECRET, Site, VERIFIER, ask, basic, form};

/// A server under comparison.
enum Peer {
    Real(Box<Site>),
    Mock(MockOAuthServer, reqwest::Client),
}

/// What is compared of an answer: the status, with all redirects alike, the error, and the scheme of the challenge.
#[derive(Debug, PartialEq)]
struct Seen {
    status: u16,
    error: String,
    challenge: String,
}

struct Reply {
    status: u16,
    headers: HeaderMap,
    text: String,
}

impl Reply {
    fn location(&self, name: &str) -> Option<String> {
        let url = url::Url::parse(self.headers.get("location")?.to_str().ok()?).ok()?;
        url.query_pairs().find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    fn seen(&self) -> Seen {
        let in_body = || self.json()["error"].as_str().map(str::to_owned);
        let challenge = self.headers.get("www-authenticate").and_then(|value| value.to_str().ok());
        Seen {
            status: if (300..400).contains(&self.status) { 302 } else { self.status },
            error: self.location("error").or_else(in_body).unwrap_or_default(),
            challenge: challenge.and_then(|value| value.split(' ').next()).unwrap_or_default().to_owned(),
        }
    }
}

impl Peer {
    async fn both() -> [Self; 2] {
        let client = |id: &str,
                      secret: Option<&str>,
                      method: Option<&str>,
                      redirects: &[&str],
                      grants: Option<&[&str]>| {
            MockOAuthClient {
                client_id: id.into(),
                client_secret: secret.map(str::to_owned),
                token_endpoint_auth_method: method.map(str::to_owned),
                redirect_uris: redirects.iter().map(|one| (*one).to_owned()).collect(),
                grant_types: grants.map(|grants| grants.iter().map(|one| (*one).to_owned()).collect()),
                ..MockOAuthClient::default()
            }
        };
        // As in the configuration of `Site`.
        let service: &[&str] = &["client_credentials", "authorization_code", "refresh_token"];
        let clients = vec![
            client("app", None, None, &[REDIRECT, "http://127.0.0.1:1111/cb"], None),
            client("other", None, None, &["https://other.example/cb"], None),
            client("service", Some(SECRET), None, &["https://service.example/cb"], Some(service)),
            client("rs", Some(SECRET), None, &[], Some(&[])),
            client("poster", Some(SECRET), Some("client_secret_post"), &[], Some(&["client_credentials"])),
        ];
        let options = MockOAuthServerOptions {
            auto_approve: true,
            clients,
            protected_resources: vec![RESOURCE.into()],
            ..MockOAuthServerOptions::default()
        };
        let mut mock = MockOAuthServer::new(TokenFactory::default(), options);
        mock.start().await.unwrap();
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        [Self::Real(Box::new(Site::new().await)), Self::Mock(mock, http.build().unwrap())]
    }

    async fn send(&self, request: Request<String>) -> Reply {
        match self {
            Self::Real(site) => {
                let answer = site.send(request.map(Body::from)).await;
                Reply { status: answer.status.as_u16(), headers: answer.headers, text: answer.text }
            }
            Self::Mock(mock, http) => {
                let url = format!("{}{}", mock.info().base_url, request.uri());
                let (parts, body) = request.into_parts();
                let sent = http.request(parts.method, url).headers(parts.headers).body(body);
                let response = sent.send().await.unwrap();
                let (status, headers) = (response.status().as_u16(), response.headers().clone());
                Reply { status, headers, text: response.text().await.unwrap() }
            }
        }
    }

    async fn post(&self, path: &str, pairs: &[(&str, &str)], secret: Option<(&str, &str)>) -> Reply {
        let mut request = Request::post(path).header("content-type", "application/x-www-form-urlencoded");
        if let Some((id, secret)) = secret {
            request = request.header("authorization", basic(id, secret));
        }
        self.send(request.body(form(pairs)).unwrap()).await
    }

    /// A code for `app`.
    async fn code(&self) -> String {
        match self {
            Self::Real(site) => site.code(&[]).await,
            Self::Mock(..) => {
                let reply = self.send(Request::get(ask(&[])).body(String::new()).unwrap()).await;
                reply.location("code").unwrap_or_else(|| panic!("a code: {}", reply.text))
            }
        }
    }

    async fn tokens(&self) -> Value {
        let code = self.code().await;
        let pairs = [
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("client_id", "app"),
            ("code_verifier", VERIFIER),
        ];
        self.post("/oauth/token", &pairs, None).await.json()
    }
}

const WRONG_VERIFIER: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

/// A request to an endpoint that takes forms: its path, parameters and HTTP Basic. `CODE`, `ACCESS` and `REFRESH` stand for new ones.
type Case = (&'static str, &'static [(&'static str, &'static str)], Option<(&'static str, &'static str)>);

const CASES: &[Case] = &[
    (
        "/oauth/token",
        &[
            ("grant_type", "authorization_code"),
            ("code", "CODE"),
            ("client_id", "app"),
            ("code_verifier", VERIFIER),
        ],
        None,
    ),
    ("/oauth/token", &[("grant_type", "authorization_code"), ("code", "CODE"), ("client_id", "app")], None),
    (
        "/oauth/token",
        &[
            ("grant_type", "authorization_code"),
            ("code", "CODE"),
            ("client_id", "app"),
            ("code_verifier", "short"),
        ],
        None,
    ),
    (
        "/oauth/token",
        &[
            ("grant_type", "authorization_code"),
            ("code", "CODE"),
            ("client_id", "app"),
            ("code_verifier", WRONG_VERIFIER),
        ],
        None,
    ),
    (
        "/oauth/token",
        &[
            ("grant_type", "authorization_code"),
            ("code", "junk"),
            ("client_id", "app"),
            ("code_verifier", VERIFIER),
        ],
        None,
    ),
    (
        "/oauth/token",
        &[("grant_type", "authorization_code"), ("client_id", "app"), ("code_verifier", VERIFIER)],
        None,
    ),
    (
        "/oauth/token",
        &[
            ("grant_type", "authorization_code"),
            ("code", "CODE"),
            ("client_id", "other"),
            ("code_verifier", VERIFIER),
        ],
        None,
    ),
    (
        "/oauth/token",
        &[
            ("grant_type", "authorization_code"),
            ("code", "CODE"),
            ("client_id", "stranger"),
            ("code_verifier", VERIFIER),
        ],
        None,
    ),
    (
        "/oauth/token",
        &[
            ("grant_type", "authorization_code"),
            ("code", "CODE"),
            ("client_id", "app"),
            ("code_verifier", VERIFIER),
            ("redirect_uri", "https://c.example/other"),
        ],
        None,
    ),
    (
        "/oauth/token",
        &[
            ("grant_type", "authorization_code"),
            ("code", "CODE"),
            ("client_id", "app"),
            ("code_verifier", VERIFIER),
            ("redirect_uri", REDIRECT),
        ],
        None,
    ),
    ("/oauth/token", &[("client_id", "app")], None),
    ("/oauth/token", &[("grant_type", "password"), ("client_id", "app")], None),
    (
        "/oauth/token",
        &[("grant_type", "client_credentials"), ("grant_type", "refresh_token"), ("client_id", "app")],
        None,
    ),
    (
        "/oauth/token",
        &[("grant_type", "refresh_token"), ("refresh_token", "REFRESH"), ("client_id", "app")],
        None,
    ),
    (
        "/oauth/token",
        &[("grant_type", "refresh_token"), ("refresh_token", "REFRESH"), ("client_id", "other")],
        None,
    ),
    (
        "/oauth/token",
        &[("grant_type", "refresh_token"), ("refresh_token", "junk"), ("client_id", "app")],
        None,
    ),
    ("/oauth/token", &[("grant_type", "refresh_token"), ("client_id", "app")], None),
    (
        "/oauth/token",
        &[
            ("grant_type", "refresh_token"),
            ("refresh_token", "REFRESH"),
            ("client_id", "app"),
            ("scope", "read write"),
        ],
        None,
    ),
    ("/oauth/token", &[("grant_type", "client_credentials"), ("scope", "read")], Some(("service", SECRET))),
    ("/oauth/token", &[("grant_type", "client_credentials"), ("scope", "read")], Some(("service", "wrong"))),
    ("/oauth/token", &[("grant_type", "client_credentials"), ("scope", "read")], Some(("stranger", SECRET))),
    (
        "/oauth/token",
        &[("grant_type", "client_credentials"), ("client_id", "service"), ("client_secret", SECRET)],
        None,
    ),
    (
        "/oauth/token",
        &[("grant_type", "client_credentials"), ("client_id", "poster"), ("client_secret", SECRET)],
        None,
    ),
    (
        "/oauth/token",
        &[("grant_type", "client_credentials"), ("client_id", "poster"), ("client_secret", "wrong")],
        None,
    ),
    ("/oauth/token", &[("grant_type", "client_credentials")], Some(("poster", SECRET))),
    (
        "/oauth/token",
        &[("grant_type", "client_credentials"), ("client_id", "service"), ("client_secret", SECRET)],
        Some(("service", SECRET)),
    ),
    (
        "/oauth/token",
        &[("grant_type", "client_credentials"), ("client_id", "app")],
        Some(("service", SECRET)),
    ),
    ("/oauth/token", &[("grant_type", "client_credentials"), ("client_id", "app")], None),
    (
        "/oauth/token",
        &[("grant_type", "authorization_code"), ("code", "CODE"), ("code_verifier", VERIFIER)],
        Some(("rs", SECRET)),
    ),
    ("/oauth/revoke", &[("token", "REFRESH"), ("client_id", "app")], None),
    ("/oauth/revoke", &[("token", "REFRESH"), ("client_id", "other")], None),
    ("/oauth/revoke", &[("token", "junk"), ("client_id", "app")], None),
    ("/oauth/revoke", &[("client_id", "app")], None),
    ("/oauth/revoke", &[("token", "REFRESH")], None),
    ("/oauth/revoke", &[("token", "REFRESH")], Some(("service", "wrong"))),
    ("/oauth/introspect", &[("token", "ACCESS")], Some(("rs", SECRET))),
    ("/oauth/introspect", &[("token", "junk")], Some(("rs", SECRET))),
    ("/oauth/introspect", &[("token", "ACCESS")], Some(("rs", "wrong"))),
    ("/oauth/introspect", &[("token", "ACCESS"), ("client_id", "app")], None),
    ("/oauth/introspect", &[("token", "ACCESS")], None),
    ("/oauth/introspect", &[], Some(("rs", SECRET))),
];

#[tokio::test]
async fn the_mock_answers_forms_as_this_server_does() {
    let [real, mock] = Peer::both().await;
    for (path, pairs, secret) in CASES {
        let seen = async |peer: &Peer| {
            let tokens = match pairs.iter().any(|(_, value)| matches!(*value, "ACCESS" | "REFRESH")) {
                true => peer.tokens().await,
                false => Value::Null,
            };
            let code = match pairs.iter().any(|(_, value)| *value == "CODE") {
                true => peer.code().await,
                false => String::new(),
            };
            let filled: Vec<(&str, &str)> = pairs
                .iter()
                .map(|(name, value)| match *value {
                    "CODE" => (*name, code.as_str()),
                    "ACCESS" => (*name, tokens["access_token"].as_str().unwrap()),
                    "REFRESH" => (*name, tokens["refresh_token"].as_str().unwrap()),
                    value => (*name, value),
                })
                .collect();
            let reply = peer.post(path, &filled, *secret).await;
            let active = reply.json()["active"].clone();
            assert_eq!(reply.headers["cache-control"], "no-store", "{path} {pairs:?}");
            (reply.seen(), active)
        };
        assert_eq!(seen(&mock).await, seen(&real).await, "{path} {pairs:?} {secret:?}");
    }
}

#[tokio::test]
async fn a_second_use_ends_the_family_at_both() {
    for peer in Peer::both().await {
        let tokens = peer.tokens().await;
        let refresh = |token: String| {
            let peer = &peer;
            async move {
                let pairs = [
                    ("grant_type", "refresh_token"),
                    ("refresh_token", token.as_str()),
                    ("client_id", "app"),
                ];
                peer.post("/oauth/token", &pairs, None).await
            }
        };
        let first = tokens["refresh_token"].as_str().unwrap().to_owned();
        let second = refresh(first.clone()).await.json()["refresh_token"].as_str().unwrap().to_owned();
        // The answer with the second one has arrived: the first is not sent again because it was lost.
        let third = refresh(second).await.json()["refresh_token"].as_str().unwrap().to_owned();
        assert_eq!(refresh(first).await.seen().error, "invalid_grant");
        assert_eq!(refresh(third).await.seen().error, "invalid_grant");
    }
}

#[tokio::test]
async fn the_mock_refuses_authorization_requests_as_this_server_does() {
    let [real, mock] = Peer::both().await;
    let cases: &[&[(&str, &str)]] = &[
        &[("client_id", "stranger")],
        &[("client_id", "")],
        &[("redirect_uri", "https://c.example/other")],
        &[("redirect_uri", "https://evil.example/cb")],
        &[("redirect_uri", "http://127.0.0.1:1111/other")],
        &[("code_challenge", "")],
        &[("code_challenge", "short")],
        &[("code_challenge_method", "plain")],
        &[("response_type", "token")],
        &[("resource", "https://other.example/")],
        &[("resource", "https://mcp.example/mcp#part")],
    ];
    for changes in cases {
        let seen = async |peer: &Peer| {
            let reply = peer.send(Request::get(ask(changes)).body(String::new()).unwrap()).await;
            let mut seen = reply.seen();
            // A page for a person is HTML here, and JSON there.
            if seen.status == 400 {
                seen.error = String::new();
            }
            seen
        };
        assert_eq!(seen(&mock).await, seen(&real).await, "{changes:?}");
    }
}

#[tokio::test]
async fn both_let_scripts_of_other_origins_use_the_same_endpoints() {
    let [real, mock] = Peer::both().await;
    for path in [
        "/.well-known/oauth-authorization-server",
        "/.well-known/jwks.json",
        "/oauth/token",
        "/oauth/revoke",
        "/oauth/introspect",
        "/oauth/authorize",
    ] {
        let open = async |peer: &Peer| {
            let request = Request::options(path).header("origin", "https://app.example");
            let reply = peer.send(request.body(String::new()).unwrap()).await;
            reply.headers.contains_key("access-control-allow-origin")
        };
        assert_eq!(open(&mock).await, open(&real).await, "{path}");
    }
}
