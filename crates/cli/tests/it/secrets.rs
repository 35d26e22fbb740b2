//! No secret that was issued or shown is in anything that is written down: output, audit file, metrics, traces, pages.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gatewright::server::axum::{Router, body::Bytes, routing::post};
use gatewright_auth::keys::{Algorithm, Jwk, SigningKey};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;

use crate::{
    gate::{Answer, CALLBACK, CHALLENGE, Gate, PASSWORD, Person, Site, VERIFIER, config, parameter, secret},
    notes::{CLIENT_SECRET, Notes},
    support::gatewright,
};

const ENCRYPTION_KEY: &str = "an-encryption-key-of-the-test-0123456789";
const WRONG_PASSWORD: &str = "a-wrong-password-0123456789";
/// User name of a failed login. The audit file names it, so it is found there.
const PLANTED: &str = "planted-name-0123456789";

/// Secrets that were issued or shown, each with a name.
#[derive(Default)]
struct Secrets(Vec<(String, String)>);

impl Secrets {
    fn add(&mut self, what: &str, value: impl Into<String>) {
        let value = value.into();
        assert!(value.len() >= 16, "{what} is too short to be searched for");
        self.0.push((what.to_owned(), value));
    }

    /// A token, and of a JWT its signature: enough to use it, as the rest can be guessed.
    fn token(&mut self, what: &str, value: &str) {
        if let Some((_, signature)) = value.rsplit_once('.') {
            self.add(&format!("{what} (signature)"), signature);
        }
        self.add(what, value);
    }

    /// The names of those that `text` holds.
    fn within(&self, text: &str) -> Vec<&str> {
        self.0.iter().filter(|(_, value)| text.contains(value)).map(|(what, _)| what.as_str()).collect()
    }
}

/// Traces that the collector received.
async fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let got = Arc::new(Mutex::new(Vec::new()));
    let kept = got.clone();
    let take = move |body: Bytes| {
        kept.lock().unwrap().extend_from_slice(&body);
        std::future::ready(())
    };
    let router = Router::new().route("/v1/traces", post(take));
    tokio::spawn(async move { gatewright::server::axum::serve(listener, router).await });
    (address, got)
}

/// A DPoP proof for a request (RFC 9449 §4.2).
fn proof(key: &Jwk, method: &str, url: &str, token: Option<&str>) -> String {
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let mut claims =
        json!({"jti": format!("{method}-{}", token.is_some()), "htm": method, "htu": url, "iat": now});
    if let Some(token) = token {
        claims["ath"] = json!(URL_SAFE_NO_PAD.encode(Sha256::digest(token)));
    }
    let header = json!({"typ": "dpop+jwt", "alg": "ES256", "jwk": key.public()});
    let signed = format!("{}.{}", encode(&header), encode(&claims));
    let signature = SigningKey::from_jwk(key).unwrap().sign(signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// Everything that a server does with secrets in hand; gives the secrets, and the pages that people saw.
async fn everything(site: &Site, notes: &Notes) -> (Secrets, Vec<String>) {
    let gate = site.gate();
    let mut secrets = Secrets::default();
    secrets.add("the password", PASSWORD);
    secrets.add("a wrong password", WRONG_PASSWORD);
    secrets.add("the verifier", VERIFIER);
    secrets.add("a client's secret", secret("robot"));
    secrets.add("our secret over there", CLIENT_SECRET);
    secrets.add("the encryption key", ENCRYPTION_KEY);

    let metadata = json!({"client_name": "N", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "client_secret_post",
        "grant_types": ["authorization_code", "refresh_token"]});
    let json = [("content-type", "application/json")];
    let registered = gate.send(Method::POST, "/oauth/register", &json, metadata.to_string()).await.json();
    for field in ["client_secret", "registration_access_token"] {
        secrets.add(field, registered[field].as_str().unwrap());
    }

    // A pushed request, a login, a code, tokens that are bound to a key, a refresh, a replay.
    let mut person = Person::default();
    let pushed = [
        ("response_type", "code"),
        ("client_id", "app"),
        ("redirect_uri", CALLBACK),
        ("scope", "crm:read openid"),
        ("state", "s"),
        ("nonce", "n"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
    ];
    let pushed = gate.post_form("/oauth/par", &[], &pushed).await.json();
    let handle = pushed["request_uri"].as_str().unwrap();
    secrets.add("a pushed request", handle.rsplit(':').next().unwrap());
    let ask = format!("{}/oauth/authorize?client_id=app&request_uri={handle}", gate.public);
    let callback = person.authorize(&gate, &ask).await;
    let code = parameter(&callback, "code");
    secrets.add("a code", code.as_str());
    let key = Jwk::generate(Algorithm::ES256).unwrap();
    let endpoint = format!("{}/oauth/token", gate.public);
    let shown = proof(&key, "POST", &endpoint, None);
    secrets.token("a DPoP proof", &shown);
    let fields = [
        ("grant_type", "authorization_code"),
        ("client_id", "app"),
        ("redirect_uri", CALLBACK),
        ("code_verifier", VERIFIER),
        ("code", code.as_str()),
    ];
    let tokens = gate.post_form("/oauth/token", &[("dpop", &shown)], &fields).await.json();
    assert_eq!(tokens["token_type"], "DPoP", "{tokens}");
    for name in ["access_token", "refresh_token", "id_token"] {
        secrets.token(name, tokens[name].as_str().unwrap_or_else(|| panic!("{tokens}")));
    }
    let bound = tokens["access_token"].as_str().unwrap();
    let shown = proof(&key, "POST", &gate.resource(), Some(bound));
    secrets.token("another DPoP proof", &shown);
    let headers = [
        ("authorization", format!("DPoP {bound}")),
        ("dpop", shown),
        ("content-type", "application/json".into()),
    ];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    gate.send(Method::POST, "/mcp", &headers, "{}".into()).await;
    assert_eq!(gate.redeem("app", CALLBACK, &code).await.json()["error"], "invalid_grant", "a replay");

    let tokens = bearer_tokens(&gate, &mut person, &mut secrets).await;
    let (access, refresh) =
        (tokens["access_token"].as_str().unwrap(), tokens["refresh_token"].as_str().unwrap());
    // A server behind us: its tokens, got with a code and refreshed after it refused one.
    let ask = json!({"name": "notes:authorize", "arguments": {}});
    let told = gate.mcp(Some(access), "tools/call", ask).await.json();
    let link = told["result"]["_meta"]["url"].as_str().unwrap_or_else(|| panic!("{told}"));
    secrets.add("an address to connect at", link.rsplit('=').next().unwrap());
    notes.connect(&gate, &mut person, link, "ada-over-there").await;
    let script = "return (await callTool('notes:whoami', {})).sub";
    gate.call(Some(access), "notes:authorize", json!({})).await;
    for _ in 0..2 {
        let ran = gate.call(Some(access), "codecall:execute", json!({"script": script})).await;
        assert_eq!(ran["result"], "ada-over-there", "{ran}");
        notes.revoke();
    }
    for token in notes.tokens() {
        secrets.token("a token of the server behind us", &token);
    }

    // What fails with secrets in hand.
    let machine = gate.machine_token("robot", "crm:read").await;
    secrets.token("a client's own token", &machine);
    assert_eq!(gate.mcp(Some(&format!("{access}x")), "tools/list", json!({})).await.status, 401);
    assert_eq!(gate.mcp(Some(refresh), "tools/list", json!({})).await.status, 401);
    let (bearer, robot) = (format!("Bearer {access}"), secret("robot"));
    gate.send(Method::GET, "/oauth/userinfo", &[("authorization", &bearer)], String::new()).await;
    let robot = [("client_id", "robot"), ("client_secret", robot.as_str()), ("token", access)];
    gate.post_form("/oauth/introspect", &[], &robot).await;
    gate.post_form("/oauth/token", &[], &[("grant_type", "password"), ("password", WRONG_PASSWORD)]).await;
    let garbled = format!("/oauth/authorize?client_id=app&code={code}&access_token={access}");
    gate.get(&garbled).await;
    gate.post_form("/oauth/revoke", &[], &[("client_id", "app"), ("token", access)]).await;

    let mut stranger = Person { name: Some(PLANTED), password: Some(WRONG_PASSWORD), ..Person::default() };
    let page = stranger.open(&gate, &gate.ask("app", CALLBACK, "crm:read")).await;
    assert!(page.body.contains("name=\"password\""), "{}", page.body);
    let wrong: Answer = stranger.submit(&gate, &page.body).await;
    let shown = stranger.open(&gate, wrong.header("location")).await;
    assert_eq!((wrong.status, shown.status), (303, 401), "{}", shown.body);
    for person in [&person, &stranger] {
        for (name, value) in &person.cookies {
            secrets.add(&format!("the cookie {name}"), value.as_str());
        }
    }
    let pages = [person.pages, stranger.pages].concat();
    (secrets, pages)
}

async fn bearer_tokens(gate: &Gate, person: &mut Person, secrets: &mut Secrets) -> Value {
    let callback = person.authorize(gate, &gate.ask("app", CALLBACK, "crm:read openid")).await;
    let code = parameter(&callback, "code");
    secrets.add("another code", code.as_str());
    let first = gate.redeem("app", CALLBACK, &code).await.json();
    let refresh = first["refresh_token"].as_str().unwrap();
    let second = gate.token(&[("grant_type", "refresh_token"), ("refresh_token", refresh)]).await.json();
    for tokens in [&first, &second] {
        for name in ["access_token", "refresh_token", "id_token"] {
            secrets.token(name, tokens[name].as_str().unwrap_or_else(|| panic!("{tokens}")));
        }
    }
    second
}

#[tokio::test]
async fn no_secret_is_in_anything_that_is_written_down_even_when_everything_is_traced() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit.jsonl");
    let notes = Notes::start().await;
    let (traces, sent) = collector().await;
    let key = std::process::Command::new(gatewright()).args(["key", "generate"]).output().unwrap();
    let key: Value = serde_json::from_slice(&key.stdout).unwrap();
    let mut all = config(json!({"dcrEnabled": true, "encryptionKey": ENCRYPTION_KEY}));
    all["audit"] = json!({"file": audit});
    all["auth"]["local"]["signKey"] = key.clone();
    all["apps"]["notes"] = notes.app();
    all["admin"] = json!({"port": 0});
    let variables = [("RUST_LOG", "trace".to_owned()), ("OTEL_EXPORTER_OTLP_ENDPOINT", traces)];
    let site = Site::launch("json", &all.to_string(), &variables, &[]);
    let admin = site.log.wait_for("for operators on http://").unwrap();
    let admin = admin.split("http://").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();

    let (mut secrets, pages) = everything(&site, &notes).await;
    for part in ["d", "p", "q"] {
        secrets.add(&format!("`{part}` of the signing key"), key[part].as_str().unwrap());
    }
    assert!(secrets.0.len() > 40, "{}", secrets.0.len());

    let metrics = reqwest::get(format!("http://{admin}/metrics")).await.unwrap();
    assert_eq!(metrics.status(), 200);
    let metrics = metrics.text().await.unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let traced = || String::from_utf8_lossy(&sent.lock().unwrap()).into_owned();
    while !traced().contains("notes:whoami") {
        assert!(std::time::Instant::now() < deadline, "no trace came");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let places = [
        // Each with a word that the same search must find there: one that is never said would prove nothing.
        ("output", site.log.text(), "TRACE"),
        ("audit file", std::fs::read_to_string(&audit).unwrap(), PLANTED),
        ("metrics", metrics, "gatewright_auth_failures_total"),
        ("traces", traced(), "notes:whoami"),
        ("pages", pages.join("\n"), "Allow An app?"),
        ("requests to the server behind us", without_its_own(&notes), "tools/call"),
    ];
    for (place, text, word) in &places {
        let mut planted = Secrets::default();
        planted.0.push(("planted".to_owned(), (*word).to_owned()));
        assert_eq!(planted.within(text), ["planted"], "{place}: {word}");
        assert_eq!(secrets.within(text), Vec::<&str>::new(), "the {place}");
    }
}

/// Data that the upstream server received, without the tokens meant for it.
fn without_its_own(notes: &Notes) -> String {
    let mut text = notes.requests();
    for token in notes.tokens() {
        text = text.replace(&token, "");
    }
    text
}
