//! A mock authorization server: metadata, login, codes with PKCE, refresh, anonymous tokens, and faults on demand.
//!
//! It is strict where a real one is (PKCE is enforced, codes are used once, redirect URIs are compared) and lenient where a
//! test has no use for it (any client is known unless `client_id` is set). Not for production: anybody may log in.

mod authorize;
mod endpoints;
mod fault;
mod grants;
mod register;

pub use fault::{Endpoint, Fault};

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Map, Value};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    lock,
    token::{TestKey, TokenFactory},
};

/// Who is logged in.
#[derive(Debug, Clone, PartialEq)]
pub struct MockTestUser {
    /// Subject.
    pub sub: String,
    /// Address.
    pub email: Option<String>,
    /// Name.
    pub name: Option<String>,
    /// URL of a picture.
    pub picture: Option<String>,
    /// Further claims of the token and of `/userinfo`.
    pub claims: Map<String, Value>,
}

impl MockTestUser {
    /// A user of this subject and nothing else.
    pub fn new(sub: impl Into<String>) -> Self {
        Self { sub: sub.into(), email: None, name: None, picture: None, claims: Map::new() }
    }

    fn claims(&self) -> Map<String, Value> {
        let mut claims = self.claims.clone();
        for (name, value) in [("email", &self.email), ("name", &self.name), ("picture", &self.picture)] {
            if let Some(value) = value {
                claims.insert(name.into(), value.as_str().into());
            }
        }
        claims
    }
}

/// Options of a [`MockOAuthServer`].
#[derive(Debug, Clone)]
pub struct MockOAuthServerOptions {
    /// Default: a free one.
    pub port: Option<u16>,
    /// Logs in `test_user` without a page. Default false.
    pub auto_approve: bool,
    /// Who is logged in. Default: nobody; the page asks for a subject.
    pub test_user: Option<MockTestUser>,
    /// The one client there is. Default: every client is known.
    pub client_id: Option<String>,
    /// Its secret. Default: none is asked for.
    pub client_secret: Option<String>,
    /// Where answers may go; `*` stands for any characters but `/`, `?` and `#`. Default: any http URL of this machine.
    pub valid_redirect_uris: Vec<String>,
    /// Resources tokens may be asked for (RFC 8707); the metadata lists them (RFC 9728 §4). Default: any.
    pub protected_resources: Vec<String>,
    /// Default 3600.
    pub access_token_ttl_seconds: i64,
    /// Default 2592000, 30 days.
    pub refresh_token_ttl_seconds: i64,
    /// Prints every request to standard error. Default false.
    pub debug: bool,
}

impl Default for MockOAuthServerOptions {
    fn default() -> Self {
        Self {
            port: None,
            auto_approve: false,
            test_user: None,
            client_id: None,
            client_secret: None,
            valid_redirect_uris: Vec::new(),
            protected_resources: Vec::new(),
            access_token_ttl_seconds: 3600,
            refresh_token_ttl_seconds: 2_592_000,
            debug: false,
        }
    }
}

/// Where a mock server is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct MockOAuthServerInfo {
    /// Such as `http://127.0.0.1:40123`.
    pub base_url: String,
    /// Its port.
    pub port: u16,
    /// The `iss` of its tokens: the base URL.
    pub issuer: String,
    /// Where its keys are.
    pub jwks_url: String,
}

/// What a code stands for.
#[derive(Debug, Clone)]
struct Code {
    client_id: String,
    redirect_uri: String,
    challenge: String,
    scopes: Vec<String>,
    resource: Option<String>,
    user: MockTestUser,
    login: Login,
    expires: i64,
}

/// What an ID token says of a login.
#[derive(Debug, Clone, Default)]
struct Login {
    at: i64,
    /// Of the request; a refreshed ID token has none (OpenID Connect Core §12.2).
    nonce: Option<String>,
}

/// What a refresh token stands for.
#[derive(Debug, Clone)]
struct Refresh {
    client_id: String,
    scopes: Vec<String>,
    resource: Option<String>,
    user: MockTestUser,
    login: Login,
    expires: i64,
}

struct State {
    options: MockOAuthServerOptions,
    factory: TokenFactory,
    codes: HashMap<String, Code>,
    refreshes: HashMap<String, Refresh>,
    faults: Vec<(Endpoint, Fault, Option<u32>)>,
    /// Keys `/jwks.json` shows. The factory signs with its own.
    published: Vec<Arc<TestKey>>,
    requests: Vec<String>,
}

type Shared = Arc<Mutex<State>>;

/// A mock authorization server on the loopback interface. It ends when it is dropped.
pub struct MockOAuthServer {
    state: Shared,
    running: Option<(MockOAuthServerInfo, DropGuard)>,
}

impl std::fmt::Debug for MockOAuthServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MockOAuthServer").field("info", &self.running.as_ref().map(|(info, _)| info)).finish()
    }
}

impl MockOAuthServer {
    /// A server whose tokens `factory` makes, with its own URL as issuer.
    pub fn new(factory: TokenFactory, options: MockOAuthServerOptions) -> Self {
        let published = vec![factory.key().clone()];
        let state = State {
            options,
            factory,
            codes: HashMap::new(),
            refreshes: HashMap::new(),
            faults: Vec::new(),
            published,
            requests: Vec::new(),
        };
        Self { state: Arc::new(Mutex::new(state)), running: None }
    }

    /// Starts to listen.
    ///
    /// # Errors
    /// The port cannot be had.
    pub async fn start(&mut self) -> std::io::Result<MockOAuthServerInfo> {
        if let Some((info, _)) = &self.running {
            return Ok(info.clone());
        }
        let port = lock(&self.state).options.port.unwrap_or(0);
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let port = listener.local_addr()?.port();
        let base_url = format!("http://127.0.0.1:{port}");
        let info = MockOAuthServerInfo {
            issuer: base_url.clone(),
            jwks_url: format!("{base_url}/.well-known/jwks.json"),
            base_url,
            port,
        };
        {
            let mut state = lock(&self.state);
            state.factory = state.factory.with_issuer(&info.issuer);
        }
        let stop = CancellationToken::new();
        crate::serve(listener, endpoints::routes(self.state.clone()), stop.clone());
        self.running = Some((info.clone(), stop.drop_guard()));
        Ok(info)
    }

    /// Stops to listen.
    pub fn stop(&mut self) {
        self.running = None;
    }

    /// Where it is.
    ///
    /// # Panics
    /// It was not started.
    pub fn info(&self) -> &MockOAuthServerInfo {
        &self.running.as_ref().expect("the mock OAuth server was started").0
    }

    /// Logs in the test user without a page, or asks again.
    pub fn set_auto_approve(&self, auto_approve: bool) {
        lock(&self.state).options.auto_approve = auto_approve;
    }

    /// Who is logged in from now on.
    pub fn set_test_user(&self, user: MockTestUser) {
        lock(&self.state).options.test_user = Some(user);
    }

    /// One more place where answers may go.
    pub fn add_valid_redirect_uri(&self, uri: impl Into<String>) {
        lock(&self.state).options.valid_redirect_uris.push(uri.into());
    }

    /// Forgets all codes and refresh tokens.
    pub fn clear_stored_tokens(&self) {
        let mut state = lock(&self.state);
        state.codes.clear();
        state.refreshes.clear();
    }

    /// What makes its tokens; after the start with its URL as issuer.
    pub fn get_token_factory(&self) -> TokenFactory {
        lock(&self.state).factory.clone()
    }

    /// Breaks an endpoint, `times` times or for good. The last fault set for an endpoint counts first.
    pub fn inject_fault(&self, endpoint: Endpoint, fault: Fault, times: Option<u32>) {
        lock(&self.state).faults.push((endpoint, fault, times));
    }

    /// Repairs everything.
    pub fn clear_faults(&self) {
        lock(&self.state).faults.clear();
    }

    /// Signs with a new key from now on. `keep_old`: the key set shows the old one too, as a good rotation does.
    pub fn rotate_keys(&self, keep_old: bool) {
        let key = TestKey::generate();
        let mut state = lock(&self.state);
        if !keep_old {
            state.published.clear();
        }
        state.published.insert(0, key.clone());
        state.factory = state.factory.with_key(key);
    }

    /// Signs with a key that the key set does not show, as after a rotation whose new keys nobody published.
    pub fn sign_with_unpublished_key(&self) {
        let mut state = lock(&self.state);
        state.factory = state.factory.with_key(TestKey::stranger());
    }

    /// Requests so far, as `POST /oauth/token`.
    pub fn requests(&self) -> Vec<String> {
        lock(&self.state).requests.clone()
    }
}

/// A code lives this long, in seconds.
const CODE_SECONDS: i64 = 60;

/// A delay of a slow endpoint.
pub(crate) async fn pause(delay: Duration) {
    tokio::time::sleep(delay).await;
}
