//! A mock server of client ID metadata documents (draft-ietf-oauth-client-id-metadata-document), good and bad.

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

use crate::lock;

/// Options of a [`MockCimdServer`].
#[derive(Debug, Clone, Default)]
pub struct MockCimdServerOptions {
    /// Default: a free one.
    pub port: Option<u16>,
    /// Prints every request to standard error. Default false.
    pub debug: bool,
    /// Serves https with a certificate of its own authority: see [`MockCimdServer::ca_pem`]. Default false.
    pub https: bool,
}

/// Where a mock server is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct MockCimdServerInfo {
    /// Such as `http://127.0.0.1:40123`; with https `https://localhost:40123`.
    pub base_url: String,
    /// Its port.
    pub port: u16,
}

/// A client to be described. Read from JSON it has the contract's names, and only `name` is required.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MockCimdClientOptions {
    /// `client_name`; the path is derived from it.
    pub name: String,
    /// Default: `/clients/<name in lower case with dashes>/metadata.json`.
    pub path: Option<String>,
    /// Default: `http://localhost:3000/callback`.
    #[serde(default = "default_redirect_uris")]
    pub redirect_uris: Vec<String>,
    /// `none` (default), `client_secret_basic`, `client_secret_post` or `private_key_jwt`.
    #[serde(default = "default_auth_method")]
    pub token_endpoint_auth_method: String,
    /// Default: `authorization_code`.
    #[serde(default = "default_grant_types")]
    pub grant_types: Vec<String>,
    /// Default: `code`.
    #[serde(default = "default_response_types")]
    pub response_types: Vec<String>,
    /// Left out when absent, as are the next three.
    pub client_uri: Option<String>,
    /// URL of a picture.
    pub logo_uri: Option<String>,
    /// Scopes with spaces between.
    pub scope: Option<String>,
    /// Addresses of people.
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

/// What a path answers.
#[derive(Debug, Clone)]
enum Page {
    Document(String),
    Failure(u16, String),
    Redirect(String),
    Slow(Duration, String),
}

#[derive(Default)]
struct Pages {
    by_path: HashMap<String, Page>,
    ids: HashMap<String, (String, String)>,
    requests: Vec<String>,
    debug: bool,
}

/// A mock server of client metadata documents on the loopback interface. It ends when it is dropped.
pub struct MockCimdServer {
    options: MockCimdServerOptions,
    pages: Arc<Mutex<Pages>>,
    running: Option<(MockCimdServerInfo, Option<String>, DropGuard)>,
}

impl std::fmt::Debug for MockCimdServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MockCimdServer").field("options", &self.options).finish_non_exhaustive()
    }
}

impl MockCimdServer {
    /// A server that does not listen yet.
    pub fn new(options: MockCimdServerOptions) -> Self {
        let pages = Pages { debug: options.debug, ..Pages::default() };
        Self { options, pages: Arc::new(Mutex::new(pages)), running: None }
    }

    /// Starts to listen.
    ///
    /// # Errors
    /// The port cannot be had.
    pub async fn start(&mut self) -> std::io::Result<MockCimdServerInfo> {
        if let Some((info, ..)) = &self.running {
            return Ok(info.clone());
        }
        let listener = TcpListener::bind(("127.0.0.1", self.options.port.unwrap_or(0))).await?;
        let port = listener.local_addr()?.port();
        let routes = Router::new().fallback(serve).with_state(self.pages.clone());
        let stop = CancellationToken::new();
        let (base_url, ca) = if self.options.https {
            let ca = crate::tls::Authority::new();
            let pem = ca.pem().to_owned();
            crate::serve_tls(listener, routes, ca.acceptor("localhost"), stop.clone());
            (format!("https://localhost:{port}"), Some(pem))
        } else {
            crate::serve(listener, routes, stop.clone());
            (format!("http://127.0.0.1:{port}"), None)
        };
        let info = MockCimdServerInfo { base_url, port };
        self.running = Some((info.clone(), ca, stop.drop_guard()));
        Ok(info)
    }

    /// Stops to listen.
    pub fn stop(&mut self) {
        self.running = None;
    }

    /// The authority behind the https certificate, as PEM.
    pub fn ca_pem(&self) -> Option<&str> {
        self.running.as_ref().and_then(|(_, ca, _)| ca.as_deref())
    }

    fn url(&self, path: &str) -> String {
        let (info, ..) = self.running.as_ref().expect("the mock CIMD server was started");
        format!("{}{path}", info.base_url)
    }

    /// Serves a client's document and gives its `client_id`.
    ///
    /// # Panics
    /// The server was not started: the URL is part of the document.
    pub fn register_client(&self, client: &MockCimdClientOptions) -> String {
        let path = client.path();
        let id = self.url(&path);
        let mut pages = lock(&self.pages);
        pages.by_path.insert(path.clone(), Page::Document(client.document(&id).to_string()));
        pages.ids.insert(client.name.clone(), (id.clone(), path));
        id
    }

    /// The `client_id` of a registered client.
    pub fn get_client_id(&self, name: &str) -> Option<String> {
        lock(&self.pages).ids.get(name).map(|(id, _)| id.clone())
    }

    /// Takes a client away.
    pub fn remove_client(&self, name: &str) {
        let mut pages = lock(&self.pages);
        if let Some((_, path)) = pages.ids.remove(name) {
            pages.by_path.remove(&path);
        }
    }

    /// Takes everything away.
    pub fn clear(&self) {
        let mut pages = lock(&self.pages);
        pages.ids.clear();
        pages.by_path.clear();
    }

    fn page(&self, path: &str, page: Page) -> String {
        let path = format!("/{}", path.trim_start_matches('/'));
        let url = self.url(&path);
        lock(&self.pages).by_path.insert(path, page);
        url
    }

    /// Serves any document, JSON or not, as if it were a good one, and gives its URL.
    pub fn register_invalid_document(&self, path: &str, document: &Value) -> String {
        let text = document.as_str().map_or_else(|| document.to_string(), str::to_owned);
        self.page(path, Page::Document(text))
    }

    /// Serves an error and gives its URL.
    pub fn register_fetch_error(&self, path: &str, status: u16, body: Option<&str>) -> String {
        self.page(path, Page::Failure(status, body.unwrap_or_default().to_owned()))
    }

    /// Serves a redirect and gives its URL.
    pub fn register_redirect(&self, path: &str, to: &str) -> String {
        self.page(path, Page::Redirect(to.to_owned()))
    }

    /// Serves a document after a time and gives its URL.
    pub fn register_slow(&self, path: &str, delay: Duration, document: &Value) -> String {
        self.page(path, Page::Slow(delay, document.to_string()))
    }

    /// Serves a document of about `bytes` bytes and gives its URL.
    pub fn register_oversize(&self, path: &str, bytes: usize) -> String {
        let url = self.url(&format!("/{}", path.trim_start_matches('/')));
        let document = json!({"client_id": url, "client_name": "x".repeat(bytes), "redirect_uris": []});
        self.page(path, Page::Document(document.to_string()))
    }

    /// Requests so far, as `GET /clients/app/metadata.json`.
    pub fn requests(&self) -> Vec<String> {
        lock(&self.pages).requests.clone()
    }
}

async fn serve(State(pages): State<Arc<Mutex<Pages>>>, request: Request) -> Response {
    let page = {
        let mut pages = lock(&pages);
        let line = format!("{} {}", request.method(), request.uri().path());
        if pages.debug {
            eprintln!("[mock cimd] {line}");
        }
        pages.requests.push(line);
        pages.by_path.get(request.uri().path()).cloned()
    };
    let respond = |status: u16, headers: &[(header::HeaderName, &str)], body: String| {
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
    match page {
        Some(Page::Document(text)) => respond(200, &document, text),
        Some(Page::Slow(delay, text)) => {
            crate::oauth::pause(delay).await;
            respond(200, &document, text)
        }
        Some(Page::Failure(status, body)) => respond(status, &[], body),
        Some(Page::Redirect(to)) => respond(302, &[(header::LOCATION, &to)], String::new()),
        None => respond(404, &[], "no such document".into()),
    }
}
