//! A mock server for client ID metadata documents (draft-ietf-oauth-client-id-metadata-document), valid and invalid.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
    response::Response,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::base::{lock, serve::serve, tls::Authority};

/// Options of a [`MockCimdServer`].
#[derive(Debug, Clone, Default)]
pub struct MockCimdServerOptions {
    /// The port. Default: a free one.
    pub port: Option<u16>,
    /// Prints every request to standard error. Default false.
    pub debug: bool,
    /// Serves https with a certificate of a private authority: see [`MockCimdServer::ca_pem`]. Default false.
    pub https: bool,
}

/// The address of a running [`MockCimdServer`].
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct MockCimdServerInfo {
    /// The base URL, such as `http://127.0.0.1:40123`; with https `https://localhost:40123`.
    pub base_url: String,
    /// The port.
    pub port: u16,
}

/// The metadata of a client. In JSON the keys are in camel case, and only `name` is required.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MockCimdClientOptions {
    /// `client_name`. The default path is derived from it.
    pub name: String,
    /// The path. Default: `/clients/<name in lower case with dashes>/metadata.json`.
    pub path: Option<String>,
    /// Redirect URIs. Default: `http://localhost:3000/callback`.
    #[serde(default = "default_redirect_uris")]
    pub redirect_uris: Vec<String>,
    /// Client authentication: `none` (default), `client_secret_basic`, `client_secret_post` or `private_key_jwt`.
    #[serde(default = "default_auth_method")]
    pub token_endpoint_auth_method: String,
    /// Grant types. Default: `authorization_code`.
    #[serde(default = "default_grant_types")]
    pub grant_types: Vec<String>,
    /// Response types. Default: `code`.
    #[serde(default = "default_response_types")]
    pub response_types: Vec<String>,
    /// URL of the client's home page. Omitted if absent, like the next three.
    pub client_uri: Option<String>,
    /// URL of a logo.
    pub logo_uri: Option<String>,
    /// Scopes, separated by spaces.
    pub scope: Option<String>,
    /// Contact addresses.
    #[serde(default)]
    pub contacts: Vec<String>,
}

fn default_redirect_uris() -> Vec<String> {
    vec!["http://localhost:3000/callback".into()]
}

fn default_auth_method() -> String {
    "none".into()
}

fn default_grant_types() -> Vec<String> {
    vec!["authorization_code".into()]
}

fn default_response_types() -> Vec<String> {
    vec!["code".into()]
}

impl MockCimdClientOptions {
    /// A public client with the defaults.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            path: None,
            redirect_uris: default_redirect_uris(),
            token_endpoint_auth_method: default_auth_method(),
            grant_types: default_grant_types(),
            response_types: default_response_types(),
            client_uri: None,
            logo_uri: None,
            scope: None,
            contacts: Vec::new(),
        }
    }

    fn path(&self) -> String {
        let slug = || {
            let words = self.name.to_lowercase();
            let words: Vec<&str> =
                words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
            format!("/clients/{}/metadata.json", words.join("-"))
        };
        self.path.clone().map_or_else(slug, |path| format!("/{}", path.trim_start_matches('/')))
    }

    fn document(&self, client_id: &str) -> Value {
        let mut document = json!({
            "client_id": client_id,
            "client_name": self.name,
            "redirect_uris": self.redirect_uris,
            "token_endpoint_auth_method": self.token_endpoint_auth_method,
            "grant_types": self.grant_types,
            "response_types": self.response_types,
        });
        for (name, value) in
            [("client_uri", &self.client_uri), ("logo_uri", &self.logo_uri), ("scope", &self.scope)]
        {
            if let Some(value) = value {
                document[name] = value.as_str().into();
            }
        }
        if !self.contacts.is_empty() {
            document["contacts"] = json!(self.contacts);
        }
        document
    }
}

/// The response of a path.
#[derive(Debug, Clone)]
enum CannedResponse {
    Document(String),
    Failure(u16, String),
    Redirect(String),
    Slow(Duration, String),
}

#[derive(Default)]
struct Site {
    by_path: HashMap<String, CannedResponse>,
    ids: HashMap<String, (String, String)>,
    requests: Vec<String>,
    debug: bool,
}

/// A mock server for client ID metadata documents on the loopback interface. Stops when it is dropped.
pub struct MockCimdServer {
    options: MockCimdServerOptions,
    site: Arc<Mutex<Site>>,
    running: Option<(MockCimdServerInfo, Option<String>, DropGuard)>,
}

impl std::fmt::Debug for MockCimdServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MockCimdServer").field("options", &self.options).finish_non_exhaustive()
    }
}

impl MockCimdServer {
    /// A server that is not started yet.
    pub fn new(options: MockCimdServerOptions) -> Self {
        let site = Site { debug: options.debug, ..Site::default() };
        Self { options, site: Arc::new(Mutex::new(site)), running: None }
    }

    /// Starts the server.
    ///
    /// # Errors
    /// The port cannot be bound.
    pub async fn start(&mut self) -> std::io::Result<MockCimdServerInfo> {
        if let Some((info, ..)) = &self.running {
            return Ok(info.clone());
        }
        let listener = TcpListener::bind(("127.0.0.1", self.options.port.unwrap_or(0))).await?;
        let port = listener.local_addr()?.port();
        let routes = Router::new().fallback(respond).with_state(self.site.clone());
        let stop = CancellationToken::new();
        let (base_url, ca) = if self.options.https {
            let ca = Authority::new();
            serve(listener, routes, Some(ca.acceptor("localhost")), stop.clone());
            (format!("https://localhost:{port}"), Some(ca.pem().to_owned()))
        } else {
            serve(listener, routes, None, stop.clone());
            (format!("http://127.0.0.1:{port}"), None)
        };
        let info = MockCimdServerInfo { base_url, port };
        self.running = Some((info.clone(), ca, stop.drop_guard()));
        Ok(info)
    }

    /// Stops the server.
    pub fn stop(&mut self) {
        self.running = None;
    }

    /// The certificate of the private authority, as PEM. Present with https.
    pub fn ca_pem(&self) -> Option<&str> {
        self.running.as_ref().and_then(|(_, ca, _)| ca.as_deref())
    }

    fn url(&self, path: &str) -> String {
        let (info, ..) = self.running.as_ref().expect("the mock CIMD server was started");
        format!("{}{path}", info.base_url)
    }

    /// Serves the document of a client and returns its `client_id`.
    ///
    /// # Panics
    /// The server was not started: the URL is part of the document.
    pub fn register_client(&self, client: &MockCimdClientOptions) -> String {
        let path = client.path();
        let id = self.url(&path);
        let mut site = lock(&self.site);
        site.by_path.insert(path.clone(), CannedResponse::Document(client.document(&id).to_string()));
        site.ids.insert(client.name.clone(), (id.clone(), path));
        id
    }

    /// The `client_id` of a registered client.
    pub fn get_client_id(&self, name: &str) -> Option<String> {
        lock(&self.site).ids.get(name).map(|(id, _)| id.clone())
    }

    /// Removes a client.
    pub fn remove_client(&self, name: &str) {
        let mut site = lock(&self.site);
        if let Some((_, path)) = site.ids.remove(name) {
            site.by_path.remove(&path);
        }
    }

    /// Removes all clients and documents.
    pub fn clear(&self) {
        let mut site = lock(&self.site);
        site.ids.clear();
        site.by_path.clear();
    }

    fn serve_at(&self, path: &str, response: CannedResponse) -> String {
        let path = format!("/{}", path.trim_start_matches('/'));
        let url = self.url(&path);
        lock(&self.site).by_path.insert(path, response);
        url
    }

    /// Serves any document, JSON or not, as if it were valid, and returns its URL.
    pub fn register_invalid_document(&self, path: &str, document: &Value) -> String {
        let text = document.as_str().map_or_else(|| document.to_string(), str::to_owned);
        self.serve_at(path, CannedResponse::Document(text))
    }

    /// Serves an error and returns its URL.
    pub fn register_fetch_error(&self, path: &str, status: u16, body: Option<&str>) -> String {
        self.serve_at(path, CannedResponse::Failure(status, body.unwrap_or_default().to_owned()))
    }

    /// Serves a redirect and returns its URL.
    pub fn register_redirect(&self, path: &str, to: &str) -> String {
        self.serve_at(path, CannedResponse::Redirect(to.to_owned()))
    }

    /// Serves a document after a delay and returns its URL.
    pub fn register_slow(&self, path: &str, delay: Duration, document: &Value) -> String {
        self.serve_at(path, CannedResponse::Slow(delay, document.to_string()))
    }

    /// Serves a document of about `bytes` bytes and returns its URL.
    pub fn register_oversize(&self, path: &str, bytes: usize) -> String {
        let url = self.url(&format!("/{}", path.trim_start_matches('/')));
        let document = json!({"client_id": url, "client_name": "x".repeat(bytes), "redirect_uris": []});
        self.serve_at(path, CannedResponse::Document(document.to_string()))
    }

    /// All requests so far, such as `GET /clients/app/metadata.json`.
    pub fn requests(&self) -> Vec<String> {
        lock(&self.site).requests.clone()
    }
}

async fn respond(State(site): State<Arc<Mutex<Site>>>, request: Request) -> Response {
    let response = {
        let mut site = lock(&site);
        let line = format!("{} {}", request.method(), request.uri().path());
        if site.debug {
            eprintln!("[mock cimd] {line}");
        }
        site.requests.push(line);
        site.by_path.get(request.uri().path()).cloned()
    };
    let build = |status: u16, headers: &[(header::HeaderName, &str)], body: String| {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        for (name, value) in headers {
            if let Ok(value) = header::HeaderValue::from_str(value) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    };
    let document = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "max-age=3600")];
    match response {
        Some(CannedResponse::Document(text)) => build(200, &document, text),
        Some(CannedResponse::Slow(delay, text)) => {
            tokio::time::sleep(delay).await;
            build(200, &document, text)
        }
        Some(CannedResponse::Failure(status, body)) => build(status, &[], body),
        Some(CannedResponse::Redirect(to)) => build(302, &[(header::LOCATION, &to)], String::new()),
        None => build(404, &[], "no such document".into()),
    }
}
