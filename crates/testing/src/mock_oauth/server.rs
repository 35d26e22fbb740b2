//! The mock authorization server: start, stop, and change while it runs.

use std::sync::{Arc, Mutex};

use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    clients::MockOAuthClient,
    fault::{Endpoint, Fault},
    options::{MockOAuthServerInfo, MockOAuthServerOptions, MockTestUser},
    routes::routes,
    state::{Issuer, SharedIssuer},
};
use crate::{
    base::{lock, serve::serve, tls::Authority},
    token::{TestKey, TokenFactory},
};

/// A mock authorization server on the loopback interface. Stops when it is dropped.
pub struct MockOAuthServer {
    issuer: SharedIssuer,
    running: Option<Running>,
}

struct Running {
    info: MockOAuthServerInfo,
    /// With https.
    ca: Option<String>,
    _stop: DropGuard,
}

impl std::fmt::Debug for MockOAuthServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MockOAuthServer")
            .field("info", &self.running.as_ref().map(|running| &running.info))
            .finish()
    }
}

impl MockOAuthServer {
    /// A server that signs with `factory`, with its own URL as issuer.
    pub fn new(factory: TokenFactory, options: MockOAuthServerOptions) -> Self {
        let issuer = Issuer::new(factory, options);
        Self { issuer: Arc::new(Mutex::new(issuer)), running: None }
    }

    /// Starts the server.
    ///
    /// # Errors
    /// The port cannot be bound.
    pub async fn start(&mut self) -> std::io::Result<MockOAuthServerInfo> {
        if let Some(running) = &self.running {
            return Ok(running.info.clone());
        }
        let (port, https) = {
            let options = &lock(&self.issuer).options;
            (options.port.unwrap_or(0), options.https)
        };
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let port = listener.local_addr()?.port();
        let ca = https.then(Authority::new);
        let base_url = match https {
            true => format!("https://localhost:{port}"),
            false => format!("http://127.0.0.1:{port}"),
        };
        let info = MockOAuthServerInfo {
            issuer: base_url.clone(),
            jwks_url: format!("{base_url}/.well-known/jwks.json"),
            base_url,
            port,
        };
        {
            let mut issuer = lock(&self.issuer);
            issuer.factory = issuer.factory.with_issuer(&info.issuer);
        }
        let stop = CancellationToken::new();
        let tls = ca.as_ref().map(|ca| ca.acceptor("localhost"));
        serve(listener, routes(self.issuer.clone()), tls, stop.clone());
        let ca = ca.map(|ca| ca.pem().to_owned());
        self.running = Some(Running { info: info.clone(), ca, _stop: stop.drop_guard() });
        Ok(info)
    }

    /// Stops the server.
    pub fn stop(&mut self) {
        self.running = None;
    }

    /// The address of the server.
    ///
    /// # Panics
    /// The server was not started.
    pub fn info(&self) -> &MockOAuthServerInfo {
        &self.running.as_ref().expect("the mock OAuth server was started").info
    }

    /// The certificate of the private authority, as PEM. Present with https.
    pub fn ca_pem(&self) -> Option<&str> {
        self.running.as_ref().and_then(|running| running.ca.as_deref())
    }

    /// Adds a client.
    pub fn add_client(&self, client: MockOAuthClient) {
        lock(&self.issuer).options.clients.push(client);
    }

    /// Logs in the test user without a login page, or with one.
    pub fn set_auto_approve(&self, auto_approve: bool) {
        lock(&self.issuer).options.auto_approve = auto_approve;
    }

    /// Sets the user to log in.
    pub fn set_test_user(&self, user: MockTestUser) {
        lock(&self.issuer).options.test_user = Some(user);
    }

    /// Adds a valid redirect URI.
    pub fn add_valid_redirect_uri(&self, uri: impl Into<String>) {
        lock(&self.issuer).options.valid_redirect_uris.push(uri.into());
    }

    /// Removes all authorization codes and refresh tokens.
    pub fn clear_stored_tokens(&self) {
        let mut issuer = lock(&self.issuer);
        issuer.codes.clear();
        issuer.refresh_tokens.clear();
    }

    /// The token factory; once started, with the URL of the server as issuer.
    pub fn get_token_factory(&self) -> TokenFactory {
        lock(&self.issuer).factory.clone()
    }

    /// Makes an endpoint fail, `times` times or always. The latest fault of an endpoint applies first.
    pub fn inject_fault(&self, endpoint: Endpoint, fault: Fault, times: Option<u32>) {
        lock(&self.issuer).faults.push((endpoint, fault, times));
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        lock(&self.issuer).faults.clear();
    }

    /// Signs with a new key from now on. With `keep_old` the key set keeps the old key, as a proper rotation does.
    pub fn rotate_keys(&self, keep_old: bool) {
        let mut issuer = lock(&self.issuer);
        let key = TestKey::generate(issuer.factory.key().algorithm());
        if !keep_old {
            issuer.published.clear();
        }
        issuer.published.insert(0, key.clone());
        issuer.factory = issuer.factory.with_key(key);
    }

    /// Signs with a key that is not in the key set, as after a rotation whose new key was not published.
    pub fn sign_with_unpublished_key(&self) {
        let mut issuer = lock(&self.issuer);
        issuer.factory = issuer.factory.with_key(issuer.factory.key().unpublished());
    }

    /// All requests so far, such as `POST /oauth/token`.
    pub fn requests(&self) -> Vec<String> {
        lock(&self.issuer).requests.clone()
    }
}
