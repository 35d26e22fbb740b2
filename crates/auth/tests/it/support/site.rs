//! A server driven through its router, and a browser with cookies in front of it.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, OnceLock},
};

use axum::{Router, body::Body, extract::ConnectInfo};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gatewright_auth::{
    AuditEvent, AuditSink, AuthConfig, AuthorizationServer, Clock, Deployment, GrantRefusal, ManualClock,
    ResourceServer, ServerParts, SystemEntropy, hash_password,
    store::{MemoryStore, Store},
};
use gatewright_core::Endpoints;
use http::{HeaderMap, Method, Request, StatusCode, header};
use serde_json::{Value, json};
use tower::ServiceExt as _;

pub(crate) const ISSUER: &str = "https://mcp.example";
pub(crate) const RESOURCE: &str = "https://mcp.example/mcp";
pub(crate) const REDIRECT: &str = "https://c.example/cb";
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(crate) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
pub(crate) const PASSWORD: &str = "correct horse battery";
pub(crate) const SECRET: &str = "a-static-secret-of-a-client";

#[derive(Default)]
pub(crate) struct Heard(pub(crate) Mutex<Vec<AuditEvent>>);

impl AuditSink for Heard {
    fn record(&self, event: &AuditEvent) {
        self.0.lock().unwrap().push(event.clone());
    }
}

/// The hash of [`PASSWORD`], made once a process.
pub(crate) fn password_hash() -> &'static str {
    static HASH: OnceLock<String> = OnceLock::new();
    HASH.get_or_init(|| hash_password(&SystemEntropy, PASSWORD))
}

/// A configuration with two users, a public client `app`, a second one `other`, and a confidential `service`.
pub(crate) fn config() -> Value {
    json!({
        "mode": "orchestrated",
        "type": "local",
        "scopes": {"read": "Read your notes", "write": "Change your notes"},
        "local": {"users": [
            {"username": "alice", "passwordHash": password_hash(), "name": "Alice", "email": "alice@example.com"},
            {"username": "bob", "passwordHash": password_hash()},
        ]},
        "clients": [
            {"clientId": "app", "name": "The App", "redirectUris": [REDIRECT, "http://127.0.0.1:1111/cb"],
             "postLogoutRedirectUris": ["https://c.example/bye"]},
            {"clientId": "other", "redirectUris": ["https://other.example/cb"]},
            {"clientId": "service", "clientSecret": SECRET, "redirectUris": ["https://service.example/cb"],
             "grantTypes": ["client_credentials", "authorization_code", "refresh_token"]},
            {"clientId": "rs", "clientSecret": SECRET, "grantTypes": [], "introspects": RESOURCE},
            {"clientId": "poster", "clientSecret": SECRET, "tokenEndpointAuthMethod": "client_secret_post", "grantTypes": ["client_credentials"]},
        ],
        "limits": {"token": 100000, "authorize": 100000, "login": 100000, "register": 100000, "revoke": 100000},
    })
}

/// Merges `over` into `under`, objects member by member; `null` in place of an object or a text removes it.
pub(crate) fn merge(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (name, value) in over {
                if value.is_null() && under.get(&name).is_some_and(Value::is_string) {
                    under.shift_remove(&name);
                } else {
                    merge(under.entry(name).or_insert(Value::Null), value);
                }
            }
        }
        (under, over) => *under = over,
    }
}

pub(crate) struct Site {
    pub(crate) issuer: String,
    pub(crate) server: AuthorizationServer,
    pub(crate) router: Router,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) heard: Arc<Heard>,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    /// Reason of `invalid_grant`, which is not sent.
    pub(crate) refusal: Option<GrantRefusal>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("JSON: {} {}", self.status, self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// The parameters of the address a redirect leads to.
    pub(crate) fn location(&self) -> BTreeMap<String, String> {
        let url = url::Url::parse(self.header("location"))
            .unwrap_or_else(|_| panic!("a redirect: {} {}", self.status, self.text));
        url.query_pairs().into_owned().collect()
    }

    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_owned()
    }

    /// The value of a hidden field.
    pub(crate) fn field(&self, name: &str) -> String {
        let mark = format!("name=\"{name}\" value=\"");
        let at =
            self.text.find(&mark).unwrap_or_else(|| panic!("a field {name} in {}", self.text)) + mark.len();
        self.text[at..].split('"').next().unwrap().to_owned()
    }
}

pub(crate) fn form(pairs: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Parameters of a good authorization request, with `changes` made: an empty value removes one.
pub(crate) fn ask(changes: &[(&str, &str)]) -> String {
    let mut pairs = vec![
        ("response_type", "code"),
        ("client_id", "app"),
        ("redirect_uri", REDIRECT),
        ("state", "s-123"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("scope", "read"),
    ];
    for (name, value) in changes {
        pairs.retain(|(held, _)| held != name);
        if !value.is_empty() {
            pairs.push((name, value));
        }
    }
    format!("/oauth/authorize?{}", form(&pairs))
}

impl Site {
    pub(crate) async fn new() -> Self {
        Self::with(json!({})).await
    }

    pub(crate) async fn with(over: Value) -> Self {
        let clock = Arc::new(ManualClock::from_system());
        let store = Arc::new(MemoryStore::new(clock.clone()));
        Self::on(over, clock, store).await
    }

    pub(crate) async fn on(over: Value, clock: Arc<ManualClock>, store: Arc<dyn Store>) -> Self {
        Self::at(ISSUER, over, clock, store).await
    }

    /// A site with endpoints beside the main one.
    pub(crate) async fn with_endpoints(over: Value, endpoints: Value) -> Self {
        let clock = Arc::new(ManualClock::from_system());
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let endpoints = Arc::new(Endpoints::new(&serde_json::from_value(endpoints).unwrap()));
        Self::deployed(ISSUER, endpoints, over, clock, store).await
    }

    pub(crate) async fn at(
        issuer: &str,
        over: Value,
        clock: Arc<ManualClock>,
        store: Arc<dyn Store>,
    ) -> Self {
        Self::deployed(issuer, Arc::default(), over, clock, store).await
    }

    async fn deployed(
        issuer: &str,
        endpoints: Arc<Endpoints>,
        over: Value,
        clock: Arc<ManualClock>,
        store: Arc<dyn Store>,
    ) -> Self {
        let mut value = config();
        // The only resource that may be introspected is that of the server.
        value["clients"][3]["introspects"] = json!(format!("{issuer}/mcp"));
        merge(&mut value, over);
        let config: AuthConfig = serde_json::from_value(value).unwrap();
        let heard = Arc::new(Heard::default());
        let parts = ServerParts {
            store: store.clone(),
            clock: clock.clone(),
            entropy: Arc::new(SystemEntropy),
            audit: heard.clone(),
        };
        let deployment = Deployment::new(issuer, "/mcp", "Notes").with_endpoints(endpoints);
        let server = AuthorizationServer::with_parts(config, deployment, parts).await.unwrap();
        Self { issuer: issuer.to_owned(), router: server.router(), server, clock, store, heard }
    }

    pub(crate) fn resource_server(&self) -> ResourceServer {
        self.server.resource_server()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        self.send_from("192.0.2.7", request).await
    }

    pub(crate) async fn send_from(&self, ip: &str, mut request: Request<Body>) -> Answer {
        let addr = SocketAddr::new(ip.parse().unwrap(), 1000);
        request.extensions_mut().insert(ConnectInfo(addr));
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        Answer {
            status: parts.status,
            refusal: parts.extensions.get().copied(),
            headers: parts.headers,
            // Where lines may break does not count.
            text: String::from_utf8(bytes.to_vec()).unwrap().replace("<wbr>", ""),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, pairs: &[(&str, &str)]) -> Answer {
        self.send(post(path, pairs)).await
    }

    pub(crate) async fn token(&self, pairs: &[(&str, &str)]) -> Answer {
        self.post("/oauth/token", pairs).await
    }

    pub(crate) fn browser(&self) -> Browser<'_> {
        self.browser_at("192.0.2.7")
    }

    pub(crate) fn browser_at(&self, ip: &str) -> Browser<'_> {
        Browser { site: self, cookies: Mutex::default(), ip: ip.to_owned() }
    }

    /// A code of alice for `app`.
    pub(crate) async fn code(&self, changes: &[(&str, &str)]) -> String {
        self.browser().code(changes).await
    }

    pub(crate) async fn redeem(&self, code: &str) -> Answer {
        self.redeem_with(code, &[]).await
    }

    pub(crate) async fn redeem_with(&self, code: &str, changes: &[(&str, &str)]) -> Answer {
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", "app"),
            ("code_verifier", VERIFIER),
        ];
        for (name, value) in changes {
            pairs.retain(|(held, _)| held != name);
            if !value.is_empty() {
                pairs.push((name, value));
            }
        }
        self.token(&pairs).await
    }

    /// The token response of a whole login of alice at `app`.
    pub(crate) async fn tokens(&self) -> Value {
        let answer = self.redeem(&self.code(&[]).await).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    pub(crate) async fn refresh(&self, token: &str, extra: &[(&str, &str)]) -> Answer {
        let mut pairs = vec![("grant_type", "refresh_token"), ("refresh_token", token)];
        if !extra.iter().any(|(name, _)| *name == "client_id") {
            pairs.push(("client_id", "app"));
        }
        pairs.extend(extra.iter().filter(|(_, value)| !value.is_empty()));
        self.token(&pairs).await
    }

    pub(crate) async fn introspect(&self, token: &str) -> Value {
        let mut request = post("/oauth/introspect", &[("token", token)]);
        request.headers_mut().insert(header::AUTHORIZATION, basic("rs", SECRET));
        self.send(request).await.json()
    }

    pub(crate) fn events(&self, name: &str) -> usize {
        self.heard.0.lock().unwrap().iter().filter(|event| event.event == name).count()
    }

    pub(crate) fn now_s(&self) -> u64 {
        self.clock.now_s()
    }
}

pub(crate) fn basic(id: &str, secret: &str) -> http::HeaderValue {
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{id}:{secret}"));
    format!("Basic {encoded}").parse().unwrap()
}

pub(crate) fn post(path: &str, pairs: &[(&str, &str)]) -> Request<Body> {
    Request::post(path)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(form(pairs)))
        .unwrap()
}

/// The claims of a token, unverified.
pub(crate) fn claims(token: &str) -> Value {
    part(token, 1)
}

pub(crate) fn part(token: &str, at: usize) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(at).unwrap()).unwrap()).unwrap()
}

pub(crate) struct Browser<'a> {
    pub(crate) site: &'a Site,
    pub(crate) cookies: Mutex<BTreeMap<String, String>>,
    pub(crate) ip: String,
}

impl Browser<'_> {
    pub(crate) async fn send(&self, mut request: Request<Body>) -> Answer {
        let line = self
            .cookies
            .lock()
            .unwrap()
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect::<Vec<_>>()
            .join("; ");
        if !line.is_empty() {
            request.headers_mut().insert(header::COOKIE, line.parse().unwrap());
        }
        let answer = self.site.send_from(&self.ip, request).await;
        for value in answer.headers.get_all(header::SET_COOKIE) {
            let pair = value.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.lock().unwrap().insert(name.to_owned(), value.to_owned());
        }
        answer
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, pairs: &[(&str, &str)]) -> Answer {
        self.send(post(path, pairs)).await
    }

    pub(crate) async fn follow(&self, answer: &Answer) -> Answer {
        let path = answer
            .header("location")
            .strip_prefix(self.site.issuer.as_str())
            .unwrap_or_else(|| panic!("{}", answer.text))
            .to_owned();
        self.get(&path).await
    }

    /// Fills the login page in. After a failure: the login page that the browser is sent to.
    pub(crate) async fn log_in(&self, page: &Answer, name: &str, password: &str) -> Answer {
        let (pending, csrf) = (page.field("pending"), page.field("csrf"));
        let pairs =
            [("pending", pending.as_str()), ("csrf", &csrf), ("username", name), ("password", password)];
        let answer = self.post("/oauth/login", &pairs).await;
        self.after_failure(answer).await
    }

    /// The login page that a failed login leads to; any other answer as it is.
    pub(crate) async fn after_failure(&self, answer: Answer) -> Answer {
        match answer.header("location").split_once("/oauth/login?") {
            Some((_, query)) => self.get(&format!("/oauth/login?{query}")).await,
            None => answer,
        }
    }

    /// Goes to the consent page.
    pub(crate) async fn to_consent(&self, changes: &[(&str, &str)]) -> Answer {
        let page = self.get(&ask(changes)).await;
        if page.status != 200 || page.text.contains("name=\"decision\"") {
            return page;
        }
        let next = self.log_in(&page, "alice", PASSWORD).await;
        assert_eq!(next.status, 303, "{}", next.text);
        self.follow(&next).await
    }

    pub(crate) async fn decide(&self, page: &Answer, scopes: &[&str], decision: &str) -> Answer {
        let (pending, csrf) = (page.field("pending"), page.field("csrf"));
        let mut pairs = vec![("pending", pending.as_str()), ("csrf", &csrf), ("decision", decision)];
        pairs.extend(scopes.iter().map(|scope| ("grant_scope", *scope)));
        self.post("/oauth/consent", &pairs).await
    }

    pub(crate) async fn code(&self, changes: &[(&str, &str)]) -> String {
        let page = self.to_consent(changes).await;
        let answer = if page.status == 200 {
            let scopes: Vec<&str> = ["read", "write", "openid", "profile", "email", "offline_access"]
                .into_iter()
                .filter(|s| page.text.contains(&format!("value=\"{s}\"")))
                .collect();
            self.decide(&page, &scopes, "allow").await
        } else {
            page
        };
        answer.location().get("code").unwrap_or_else(|| panic!("a code: {:?}", answer.headers)).clone()
    }

    pub(crate) async fn request(&self, method: Method, path: &str) -> Answer {
        self.send(Request::builder().method(method).uri(path).body(Body::empty()).unwrap()).await
    }
}
