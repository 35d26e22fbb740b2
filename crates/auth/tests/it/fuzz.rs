//! Body of the fuzz target `oauth`: requests of strangers to the authorization server, and what they never get.

use gatewright_core::Authenticator as _;
use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap, HashSet},
    sync::Mutex,
};

use axum::body::Body;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use gatewright_auth::keys::{Algorithm, Jwk, SigningKey};
use http::{HeaderMap, Request, header, request::Parts};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use url::{Url, form_urlencoded};

use crate::support::site::{Answer, Browser, ISSUER, PASSWORD, SECRET, Site, VERIFIER, ask, config};

#[path = "../../../../fuzz/src/requests.rs"]
mod requests;

#[cfg(test)]
#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;

/// Inputs that one server answers: a password hash for each would take longer than all the rest.
const INPUTS: usize = 200;
/// Markup that a request may hold and no page may repeat as such.
const MARKUP: &str = "<i-fuzz";
/// Addresses that the configured clients registered.
const REGISTERED: [&str; 5] = [
    "https://c.example/cb",
    "http://127.0.0.1:1111/cb",
    "https://c.example/bye",
    "https://other.example/cb",
    "https://service.example/cb",
];

thread_local! {
    static STAGE: RefCell<Option<(Runtime, Stage, usize)>> = const { RefCell::new(None) };
}

/// Sends the requests that `bytes` hold, one after the other.
///
/// In the text, `$code` is an authorization code of `alice` for `app`, `$access`, `$refresh` and `$identity` are tokens got for one,
/// `$pending` and `$csrf` belong to a login page and `$cookies` to the browser that shows it and is signed in; `$now` is the time,
/// `$jwk` a public key that `$jws(header|claims)` signs with: that of the server, and of the client `keyed`.
pub(crate) fn check(bytes: &[u8]) {
    STAGE.with_borrow_mut(|held| {
        // Taken out: what panicked half-way is not used again.
        let (runtime, mut stage, uses) =
            held.take().filter(|(.., uses)| *uses < INPUTS).unwrap_or_else(|| {
                let mut runtime = tokio::runtime::Builder::new_current_thread();
                let runtime = runtime.enable_all().start_paused(true).build().unwrap();
                let stage = runtime.block_on(Stage::new());
                (runtime, stage, 0)
            });
        if runtime.block_on(stage.send_all(&String::from_utf8_lossy(bytes))).is_some() {
            *held = Some((runtime, stage, uses + 1));
        }
    });
}

#[cfg(test)]
thread_local! {
    /// Every path and its status, for the test to see that what is checked does happen.
    static SEEN: RefCell<HashSet<(String, u16)>> = RefCell::default();
}

/// A server, and what it has handed out.
struct Stage {
    site: Site,
    cookies: BTreeMap<String, String>,
    key: Jwk,
    signing: SigningKey,
    /// Codes that were not redeemed yet, and whether [`VERIFIER`] is theirs.
    codes: HashMap<String, bool>,
    tokens: HashSet<String>,
    /// Redirect targets of clients that registered themselves.
    registered: Vec<String>,
}

impl Stage {
    async fn new() -> Self {
        let key = Jwk::generate(Algorithm::ES256).unwrap();
        let mut clients = config()["clients"].clone();
        clients.as_array_mut().unwrap().push(json!({
            "clientId": "keyed", "jwks": {"keys": [key.public()]}, "redirectUris": ["https://c.example/cb"],
            "grantTypes": ["client_credentials", "authorization_code", "refresh_token"],
        }));
        let over = json!({
            "clients": clients, "local": {"signKey": key}, "cimd": {"enabled": false},
            "dcrEnabled": true, "dcr": {"mostPerDay": 1_000_000},
        });
        let site = Site::with(over).await;
        let signing = SigningKey::from_jwk(&key).unwrap();
        let (codes, tokens) = (HashMap::new(), HashSet::new());
        Self { site, cookies: BTreeMap::new(), key, signing, codes, tokens, registered: Vec::new() }
    }

    /// `None` when what the text asks for cannot be had any more, such as after a sign-out.
    async fn send_all(&mut self, text: &str) -> Option<()> {
        for piece in requests::pieces(text) {
            let piece = self.filled_in(piece).await?;
            let Some(request) = requests::parse(&piece) else { continue };
            let (parts, body) = request.into_parts();
            if parts.uri.path() == "/mcp" {
                if self.site.resource_server().authenticate(&parts).await.is_ok() {
                    assert!(
                        self.tokens.contains(credential(&parts.headers)),
                        "a caller got in with {parts:?}"
                    );
                }
                continue;
            }
            let answer = self.site.send(Request::from_parts(parts.clone(), Body::from(body.clone()))).await;
            self.answered(&parts, &body, &answer);
        }
        Some(())
    }

    async fn filled_in(&mut self, text: &str) -> Option<String> {
        let mut text = text.to_owned();
        let put = |text: &mut String, name: &str, value: &str| *text = text.replace(name, value);
        let wants = |text: &str, names: &[&str]| names.iter().any(|name| text.contains(name));
        if wants(&text, &["$access", "$refresh", "$identity"]) {
            let code = self.code().await?;
            let tokens = self.site.redeem(&code).await;
            self.codes.remove(&code);
            let tokens: Value = serde_json::from_str(&tokens.text).ok()?;
            for (name, field) in
                [("$access", "access_token"), ("$refresh", "refresh_token"), ("$identity", "id_token")]
            {
                let token = tokens[field].as_str()?;
                self.tokens.insert(token.to_owned());
                put(&mut text, name, token);
            }
        }
        if text.contains("$code") {
            put(&mut text, "$code", &self.code().await?);
        }
        if wants(&text, &["$pending", "$csrf", "$cookies"]) {
            let page = self.browse(async |browser| browser.get(&ask(&[("prompt", "login")])).await).await;
            if page.status != 200 {
                return None;
            }
            put(&mut text, "$pending", &page.field("pending"));
            put(&mut text, "$csrf", &page.field("csrf"));
            let cookies: Vec<String> =
                self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            put(&mut text, "$cookies", &cookies.join("; "));
        }
        put(&mut text, "$now", &self.site.now_s().to_string());
        put(&mut text, "$jwk", &json!(self.key.public()).to_string());
        let mut signed = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("$jws(") {
            signed += before;
            let Some((inside, after)) = after.split_once(')') else { break };
            let (head, claims) = inside.split_once('|').unwrap_or((inside, ""));
            let message = format!("{}.{}", B64.encode(head), B64.encode(claims));
            signed += &format!("{message}.{}", B64.encode(self.signing.sign(message.as_bytes())));
            rest = after;
        }
        Some(signed + rest)
    }

    async fn browse(&mut self, act: impl AsyncFnOnce(&Browser<'_>) -> Answer) -> Answer {
        let cookies = Mutex::new(std::mem::take(&mut self.cookies));
        let browser = Browser { site: &self.site, cookies, ip: "192.0.2.7".to_owned() };
        let answer = act(&browser).await;
        self.cookies = browser.cookies.into_inner().unwrap();
        answer
    }

    /// A code of `alice` for `app`.
    async fn code(&mut self) -> Option<String> {
        let mut page = self
            .browse(async |browser| browser.to_consent(&[("scope", "read openid offline_access")]).await)
            .await;
        if page.status == 200 {
            let scopes = ["read", "openid", "offline_access"];
            page = self.browse(async |browser| browser.decide(&page, &scopes, "allow").await).await;
        }
        let code = Url::parse(page.header("location"))
            .ok()?
            .query_pairs()
            .find(|(name, _)| name == "code")?
            .1
            .into_owned();
        self.codes.insert(code.clone(), true);
        Some(code)
    }

    /// Checks one answer.
    fn answered(&mut self, request: &Parts, body: &str, answer: &Answer) {
        let status = answer.status.as_u16();
        let told = || {
            format!(
                "{} {} {:?} {body:?}: {status} {}",
                request.method, request.uri, request.headers, answer.text
            )
        };
        assert!(status < 500 || (status == 503 && !answer.header("retry-after").is_empty()), "{}", told());
        for secret in [SECRET, PASSWORD] {
            assert!(body.contains(secret) || !answer.text.contains(secret), "a secret in {}", told());
        }
        if answer.header("content-type").starts_with("text/html") {
            assert!(!answer.text.contains(MARKUP), "markup of the request in {}", told());
            assert!(
                answer.header("content-security-policy").contains("frame-ancestors 'none'"),
                "{}",
                told()
            );
        }
        if !answer.header("location").is_empty() {
            self.redirected(answer.header("location"), &told());
        }
        let json: Value = serde_json::from_str(&answer.text).unwrap_or_default();
        let path = request.uri.path();
        #[cfg(test)]
        SEEN.with_borrow_mut(|seen| seen.insert((path.to_owned(), status)));
        match path {
            "/oauth/token" if status == 200 => self.issued(request, body, answer, &json, &told()),
            "/oauth/introspect" if json["active"] == true => {
                let token = value(body, "token").unwrap_or_default();
                assert!(self.tokens.contains(&token), "a token that was never issued is active: {}", told());
            }
            "/oauth/userinfo" if status == 200 => {
                assert!(self.tokens.contains(credential(&request.headers)), "{}", told());
            }
            "/oauth/token" | "/oauth/introspect" | "/oauth/par" | "/oauth/revoke"
                if status >= 400 && status != 405 =>
            {
                assert!(json["error"].is_string(), "{}", told());
            }
            _ if path.starts_with("/oauth/register") && status < 300 => {
                let uris = json["redirect_uris"].as_array().into_iter().flatten();
                self.registered.extend(uris.filter_map(|uri| uri.as_str().map(str::to_owned)));
            }
            _ => {}
        }
    }

    /// Checks a redirect: to a page of the server, or to an address that a client registered.
    fn redirected(&mut self, location: &str, told: &str) {
        let url = Url::parse(location).unwrap_or_else(|_| panic!("no address: {told}"));
        if url.origin() == Url::parse(ISSUER).unwrap().origin() {
            return;
        }
        let targets = REGISTERED.into_iter().chain(self.registered.iter().map(String::as_str));
        assert!(
            targets.into_iter().any(|target| leads_to(target, &url)),
            "nobody registered {location}: {told}"
        );
        if let Some((_, code)) = url.query_pairs().find(|(name, _)| name == "code") {
            self.codes.entry(code.into_owned()).or_insert(false);
        }
    }

    /// Checks a successful answer of the token endpoint: something entitled to it, and nothing twice.
    fn issued(&mut self, request: &Parts, body: &str, answer: &Answer, json: &Value, told: &str) {
        assert_eq!(answer.header("cache-control"), "no-store", "{told}");
        match value(body, "grant_type").as_deref() {
            Some("authorization_code") => {
                let own = self.codes.remove(&value(body, "code").unwrap_or_default());
                let own = own.unwrap_or_else(|| panic!("tokens without a code: {told}"));
                assert!(!own || value(body, "code_verifier").as_deref() == Some(VERIFIER), "{told}");
            }
            Some("refresh_token") => {
                let token = value(body, "refresh_token").unwrap_or_default();
                assert!(self.tokens.contains(&token), "tokens without a refresh token: {told}");
            }
            Some("client_credentials") => {
                let shown = value(body, "client_secret").is_some_and(|secret| secret == SECRET)
                    || value(body, "client_assertion").is_some()
                    || texts(&request.headers, header::AUTHORIZATION).any(|text| {
                        let decoded = text.split_once(' ').and_then(|(_, encoded)| {
                            base64::engine::general_purpose::STANDARD.decode(encoded.trim()).ok()
                        });
                        decoded.is_some_and(|pair| pair.ends_with(format!(":{SECRET}").as_bytes()))
                    });
                assert!(
                    shown || body.contains("gwc_") || !self.registered.is_empty(),
                    "tokens without a secret: {told}"
                );
            }
            other => panic!("tokens for {other:?}: {told}"),
        }
        for field in ["access_token", "refresh_token"] {
            self.tokens.extend(json[field].as_str().map(str::to_owned));
        }
    }
}

/// Returns whether `url` is `target` with parameters added; the port of a loopback address may differ (RFC 8252 §7.3).
fn leads_to(target: &str, url: &Url) -> bool {
    let Ok(mut target) = Url::parse(target) else { return false };
    let mut url = url.clone();
    if target.scheme() == "http" {
        let _ = (target.set_port(None), url.set_port(None));
    }
    let rest = url.as_str().strip_prefix(target.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['?', '&', '#']))
}

fn value(form: &str, name: &str) -> Option<String> {
    form_urlencoded::parse(form.as_bytes())
        .find(|(held, _)| held == name)
        .map(|(_, value)| value.into_owned())
}

fn texts(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = &str> {
    headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
}

/// The token of the `Authorization` header.
fn credential(headers: &HeaderMap) -> &str {
    let text = texts(headers, header::AUTHORIZATION).next().unwrap_or_default();
    text.split_once(' ').map_or("", |(_, token)| token.trim())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_request_of_the_corpus_gets_what_it_is_owed() {
        for (name, bytes) in super::corpus::of("oauth") {
            println!("{name}");
            super::check(&bytes);
        }
        super::SEEN.with_borrow(|seen| {
            for (path, status) in [
                ("authorize", 302),
                ("authorize", 200),
                ("login", 303),
                ("token", 200),
                ("token", 400),
                ("par", 201),
                ("register", 201),
                ("revoke", 200),
                ("introspect", 200),
                ("userinfo", 200),
                ("logout", 303),
            ] {
                assert!(
                    seen.contains(&(format!("/oauth/{path}"), status)),
                    "no {status} of {path}: {seen:?}"
                );
            }
        });
    }
}
