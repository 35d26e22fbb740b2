//! The same requests to this server and to the mock of the test kit, so that tests with the mock show what a real server does.

use std::sync::Arc;

use axum::body::Body;
use gatewright_auth::{
    ManualClock,
    keys::{Algorithm, Jwk},
    store::MemoryStore,
};
use gatewright_testing::{MockOAuthClient, MockOAuthServer, MockOAuthServerOptions, TokenFactory};
use http::{HeaderMap, Request};
use serde_json::{Value, json};

use crate::{
    dpop::proof,
    support::{
        site::{REDIRECT, SECRET, Site, VERIFIER, ask, basic, form, merge},
        web::{Reply as Page, Web},
    },
};

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
        Self::both_with(Site::new().await, MockOAuthServerOptions::default()).await
    }

    /// This server, and a mock with `options` and the clients of `Site`.
    async fn both_with(site: Site, options: MockOAuthServerOptions) -> [Self; 2] {
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
            protected_resources: vec![format!("{}/mcp", site.issuer)],
            ..options
        };
        let mut mock = MockOAuthServer::new(TokenFactory::default(), options);
        mock.start().await.unwrap();
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        [Self::Real(Box::new(site)), Self::Mock(mock, http.build().unwrap())]
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

    fn issuer(&self) -> &str {
        match self {
            Self::Real(site) => &site.issuer,
            Self::Mock(mock, _) => &mock.info().issuer,
        }
    }

    async fn register(&self, body: &str) -> Reply {
        let request = Request::post("/oauth/register").header("content-type", "application/json");
        self.send(request.body(body.to_owned()).unwrap()).await
    }

    /// A code for `app`.
    async fn code(&self) -> String {
        self.code_with(&[]).await
    }

    /// A code for an authorization request with these changes.
    async fn code_with(&self, changes: &[(&str, &str)]) -> String {
        match self {
            Self::Real(site) => site.code(changes).await,
            Self::Mock(..) => {
                let reply = self.send(Request::get(ask(changes)).body(String::new()).unwrap()).await;
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

/// Compares what the peers show of each case, and names every one that differs.
async fn same<C: std::fmt::Debug, S: PartialEq + std::fmt::Debug>(
    peers: &[Peer; 2],
    cases: impl IntoIterator<Item = C>,
    seen: impl AsyncFn(&Peer, &C) -> S,
) {
    let mut differ = Vec::new();
    for case in cases {
        let (real, mock) = (seen(&peers[0], &case).await, seen(&peers[1], &case).await);
        if real != mock {
            differ.push(format!("{case:?}\n  here: {real:?}\n  mock: {mock:?}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// The metadata of a client, valid at both, with changes.
fn metadata(changes: Value) -> Value {
    let mut all =
        json!({"redirect_uris": ["http://127.0.0.1:1111/cb"], "token_endpoint_auth_method": "none"});
    merge(&mut all, changes);
    all
}

#[tokio::test]
async fn the_mock_registers_clients_as_this_server_does() {
    let site = Site::with(json!({"dcrEnabled": true})).await;
    let peers = Peer::both_with(site, MockOAuthServerOptions::default()).await;
    let key = serde_json::to_value(Jwk::generate(Algorithm::ES256).unwrap().public()).unwrap();
    let mut bodies: Vec<String> = ["", "[]", "{", "7", "{}"].map(str::to_owned).to_vec();
    bodies.push(
        r#"{"redirect_uris": ["http://127.0.0.1:1111/cb"], "redirect_uris": ["http://127.0.0.1:2222/cb"]}"#
            .into(),
    );
    bodies.push(json!({"redirect_uris": ["http://127.0.0.1:1111/cb"]}).to_string());
    let cases = [
        json!({}),
        json!({"token_endpoint_auth_method": "client_secret_basic"}),
        json!({"token_endpoint_auth_method": "client_secret_post", "client_name": "A", "scope": "read"}),
        json!({"token_endpoint_auth_method": "private_key_jwt", "jwks": {"keys": [key]}}),
        json!({"token_endpoint_auth_method": "private_key_jwt"}),
        json!({"token_endpoint_auth_method": "private_key_jwt", "jwks": {"keys": []}}),
        json!({"token_endpoint_auth_method": "magic"}),
        json!({"token_endpoint_auth_method": 7}),
        json!({"redirect_uris": []}),
        json!({"redirect_uris": [1]}),
        json!({"redirect_uris": "http://127.0.0.1:1111/cb"}),
        json!({"redirect_uris": ["http://127.0.0.1:1111/cb#part"]}),
        json!({"redirect_uris": ["/cb"]}),
        json!({"grant_types": ["authorization_code", "refresh_token"]}),
        json!({"grant_types": ["client_credentials"]}),
        json!({"grant_types": ["client_credentials"], "token_endpoint_auth_method": "client_secret_basic"}),
        json!({"grant_types": ["password"]}),
        json!({"grant_types": "authorization_code"}),
        json!({"grant_types": [1]}),
        json!({"response_types": ["code"]}),
        json!({"response_types": ["token"]}),
        json!({"response_types": "code"}),
        json!({"dpop_bound_access_tokens": true}),
        json!({"dpop_bound_access_tokens": "yes"}),
        json!({"client_name": 7}),
    ];
    bodies.extend(cases.into_iter().map(|changes| metadata(changes).to_string()));
    same(&peers, bodies, async |peer, body: &String| {
        let reply = peer.register(body).await;
        let json = reply.json();
        let names = [
            "redirect_uris",
            "token_endpoint_auth_method",
            "grant_types",
            "response_types",
            "dpop_bound_access_tokens",
        ];
        let stated = names.map(|name| json[name].clone());
        (reply.seen(), stated, json["client_id"].is_string(), json["client_secret"].is_string())
    })
    .await;
    // Sent as something else than JSON.
    same(&peers, ["text/plain", "application/x-www-form-urlencoded"], async |peer, kind| {
        let request = Request::post("/oauth/register").header("content-type", *kind);
        peer.send(request.body(metadata(json!({})).to_string()).unwrap()).await.seen()
    })
    .await;
}

#[tokio::test]
async fn a_registered_client_may_do_the_same_at_the_mock_as_at_this_server() {
    let site = Site::with(json!({"dcrEnabled": true})).await;
    let peers = Peer::both_with(site, MockOAuthServerOptions::default()).await;
    let cases = [
        (json!({}), "right"),
        (json!({}), "another redirect"),
        (json!({"grant_types": ["authorization_code", "refresh_token"]}), "refreshes"),
        (json!({}), "refreshes"),
        (json!({"token_endpoint_auth_method": "client_secret_post"}), "right"),
        (json!({"token_endpoint_auth_method": "client_secret_post"}), "wrong secret"),
        (json!({"token_endpoint_auth_method": "client_secret_basic"}), "in the form"),
        (json!({"dpop_bound_access_tokens": true}), "right"),
    ];
    same(&peers, cases, async |peer, (changes, what)| {
        let client = peer.register(&metadata(changes.clone()).to_string()).await.json();
        let id = client["client_id"].as_str().unwrap();
        let secret = client["client_secret"].as_str().map(str::to_owned);
        let redirect = if *what == "another redirect" {
            "http://127.0.0.1:1111/other"
        } else {
            "http://127.0.0.1:2222/cb"
        };
        let asked = [("client_id", id), ("redirect_uri", redirect)];
        if *what == "another redirect" {
            let reply = peer.send(Request::get(ask(&asked)).body(String::new()).unwrap()).await;
            return (reply.status, String::new(), false);
        }
        let code = peer.code_with(&asked).await;
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("client_id", id),
            ("redirect_uri", redirect),
            ("code_verifier", VERIFIER),
        ];
        let secret = if *what == "wrong secret" { Some("wrong".to_owned()) } else { secret };
        pairs.extend(secret.iter().map(|secret| ("client_secret", secret.as_str())));
        let reply = peer.post("/oauth/token", &pairs, None).await;
        let refresh = reply.json()["refresh_token"].as_str().map(str::to_owned);
        let refreshed = match &refresh {
            Some(token) => {
                let pairs = [("grant_type", "refresh_token"), ("refresh_token", token), ("client_id", id)];
                peer.post("/oauth/token", &pairs, None).await.status == 200
            }
            None => false,
        };
        let seen = reply.seen();
        (seen.status, seen.error, refreshed)
    })
    .await;
}

#[tokio::test]
async fn the_mock_takes_client_metadata_documents_as_this_server_does() {
    let web = Web::start().await;
    let clock = Arc::new(ManualClock::from_system());
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let site = Site::at(
        "http://127.0.0.1:3000",
        json!({"cimd": {"allowPrivate": true}, "limits": {"fetch": 100_000}}),
        clock,
        store,
    )
    .await;
    let peers = Peer::both_with(site, MockOAuthServerOptions::default()).await;
    let document = |path: &str, changes: Value| {
        let mut all = metadata(json!({"client_id": web.url(path), "client_name": "Documented"}));
        merge(&mut all, changes);
        Page::json(all)
    };
    let pages = [
        document("/0", json!({})),
        document("/1", json!({"token_endpoint_auth_method": null})),
        document("/2", json!({"client_id": "https://other.example/c"})),
        document("/3", json!({"client_id": 7})),
        document("/4", json!({"client_secret": "s"})),
        document("/5", json!({"token_endpoint_auth_method": "client_secret_post"})),
        document("/6", json!({"token_endpoint_auth_method": "magic"})),
        document("/7", json!({"redirect_uris": []})),
        document("/8", json!({"redirect_uris": ["https://c.example/cb"]})),
        document("/9", json!({"grant_types": ["client_credentials"]})),
        document("/10", json!({"redirect_uris": "http://127.0.0.1:1111/cb"})),
        document("/11", json!({"token_endpoint_auth_method": "private_key_jwt"})),
        document("/12", json!({"response_types": ["token"]})),
        document("/13", json!({"x": "y".repeat(20_000)})),
        document("/14", json!({"client_name": 7})),
        Page::json("[]"),
        Page::json("no JSON"),
        Page { status: 404, headers: Vec::new(), body: String::new() },
        Page { status: 302, headers: vec![("location", web.url("/0"))], body: String::new() },
        Page { headers: vec![("content-type", "text/html".into())], ..document("/19", json!({})) },
        Page { headers: Vec::new(), ..document("/20", json!({})) },
    ];
    let paths: Vec<String> = (0..pages.len()).map(|n| format!("/{n}")).collect();
    for (path, page) in paths.iter().zip(pages) {
        web.on(path, page);
    }
    let mut ids: Vec<String> = paths.iter().map(|path| web.url(path)).collect();
    ids.extend([
        web.url("/"),
        web.url("/0#part"),
        web.url("/x/../0"),
        web.url("/0").replace("http://", "http://user:secret@"),
    ]);
    same(&peers, ids, async |peer, id: &String| {
        let asked = [("client_id", id.as_str()), ("redirect_uri", "http://127.0.0.1:2222/cb")];
        let reply = peer.send(Request::get(ask(&asked)).body(String::new()).unwrap()).await;
        if reply.status == 400 {
            return (false, 0);
        }
        let code = peer.code_with(&asked).await;
        let pairs = [
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("client_id", id.as_str()),
            ("redirect_uri", "http://127.0.0.1:2222/cb"),
            ("code_verifier", VERIFIER),
        ];
        (true, peer.post("/oauth/token", &pairs, None).await.status)
    })
    .await;
}

#[tokio::test]
async fn the_mock_checks_proofs_of_possession_as_this_server_does() {
    let peers = Peer::both().await;
    let keys = [(); 2].map(|()| Jwk::generate(Algorithm::ES256).unwrap());
    let other = keys[1].public();
    let now = match &peers[0] {
        Peer::Real(site) => site.now_s(),
        Peer::Mock(..) => unreachable!("the first is this server"),
    };
    let made = |peer: &Peer, changes: &Value, header: &Value| {
        let mut all = json!({"htu": format!("{}/oauth/token", peer.issuer())});
        merge(&mut all, changes.clone());
        proof(&keys[0], now, all, header.clone())
    };
    let post = async |peer: &Peer, pairs: &[(&str, &str)], proofs: &[String]| {
        let mut request =
            Request::post("/oauth/token").header("content-type", "application/x-www-form-urlencoded");
        for proof in proofs {
            request = request.header("dpop", proof);
        }
        peer.send(request.body(form(pairs)).unwrap()).await
    };
    let redeem = async |peer: &Peer, code: &str, proofs: &[String]| {
        let pairs = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", "app"),
            ("code_verifier", VERIFIER),
        ];
        post(peer, &pairs, proofs).await
    };
    let cases = [
        (json!({}), json!({})),
        (json!({"htu": "HTTP://x"}), json!({})),
        (json!({"htm": "GET"}), json!({})),
        (json!({"htm": "post"}), json!({})),
        (json!({"iat": now - 1000}), json!({})),
        (json!({"iat": now + 1000}), json!({})),
        (json!({"iat": "now"}), json!({})),
        (json!({"exp": now - 1000}), json!({})),
        (json!({"exp": "soon"}), json!({})),
        (json!({"nbf": now + 1000}), json!({})),
        (json!({"jti": ""}), json!({})),
        (json!({"jti": 7}), json!({})),
        (json!({}), json!({"typ": "jwt"})),
        (json!({}), json!({"alg": "none"})),
        (json!({}), json!({"alg": "HS256"})),
        (json!({}), json!({"crit": ["b64"]})),
        (json!({}), json!({"b64": false})),
        (json!({}), json!({"jwk": other})),
        (json!({}), json!({"jwk": {"kty": "oct", "k": "AAAA"}})),
        (json!({}), json!({"jwk": {"d": "AAAA"}})),
    ];
    same(&peers, cases, async |peer, (changes, header)| {
        let reply = redeem(peer, &peer.code().await, &[made(peer, changes, header)]).await;
        (reply.seen(), reply.json()["token_type"].clone())
    })
    .await;
    let cases = [
        "no proof",
        "junk",
        "two proofs",
        "used before",
        "another key",
        "no proof afterwards",
        "same key",
        "bound code",
        "bound code, no proof",
        "bound code, another key",
    ];
    same(&peers, cases, async |peer, case| {
        let good = made(peer, &json!({}), &json!({}));
        let of_other =
            proof(&keys[1], now, json!({"htu": format!("{}/oauth/token", peer.issuer())}), json!({}));
        let thumbprint = keys[0].thumbprint();
        let bound =
            if case.starts_with("bound") { vec![("dpop_jkt", thumbprint.as_str())] } else { Vec::new() };
        let code = peer.code_with(&bound).await;
        let proofs = match *case {
            "no proof" | "bound code, no proof" => vec![],
            "junk" => vec!["junk".to_owned()],
            "two proofs" => vec![good.clone(), of_other.clone()],
            "bound code, another key" => vec![of_other.clone()],
            _ => vec![good.clone()],
        };
        let first = redeem(peer, &code, &proofs).await;
        let refresh = first.json()["refresh_token"].as_str().unwrap_or_default().to_owned();
        let proofs = match *case {
            "used before" => vec![good],
            "another key" => vec![of_other],
            "same key" => vec![made(peer, &json!({}), &json!({}))],
            "no proof afterwards" => vec![],
            _ => return (first.seen(), first.json()["token_type"].clone(), None),
        };
        let pairs =
            [("grant_type", "refresh_token"), ("refresh_token", refresh.as_str()), ("client_id", "app")];
        let again = post(peer, &pairs, &proofs).await;
        (first.seen(), again.json()["token_type"].clone(), Some(again.seen()))
    })
    .await;
}

#[tokio::test]
async fn both_demand_a_nonce_of_proofs_and_accept_it() {
    let options =
        MockOAuthServerOptions { dpop_nonce: Some("n-1".into()), ..MockOAuthServerOptions::default() };
    for peer in Peer::both_with(Site::with(json!({"requireDpopNonce": true})).await, options).await {
        let key = Jwk::generate(Algorithm::ES256).unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let send = async |changes: Value| {
            let mut all = json!({"htu": format!("{}/oauth/token", peer.issuer())});
            merge(&mut all, changes);
            let pairs = [("grant_type", "client_credentials"), ("scope", "read")];
            let request = Request::post("/oauth/token")
                .header("content-type", "application/x-www-form-urlencoded")
                .header("authorization", basic("service", SECRET))
                .header("dpop", proof(&key, now, all, json!({})));
            peer.send(request.body(form(&pairs)).unwrap()).await
        };
        let without = send(json!({})).await;
        assert_eq!((without.status, without.seen().error.as_str()), (400, "use_dpop_nonce"));
        let nonce = without.headers["dpop-nonce"].to_str().unwrap();
        assert_eq!(send(json!({"nonce": "guessed"})).await.seen().error, "use_dpop_nonce");
        let reply = send(json!({"nonce": nonce})).await;
        assert_eq!((reply.status, &reply.json()["token_type"]), (200, &json!("DPoP")));
    }
}
