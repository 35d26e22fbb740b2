//! HTTP calls of the server under test, answered by the test, whatever language the server is written in.
//!
//! [`interceptor`] starts a proxy on the loopback interface that ends TLS with an authority of its own. The child gets both
//! through its environment ([`ServerBuilder::http_mock`](crate::ServerBuilder::http_mock)); code in this process uses
//! [`HttpMock::client`]. One proxy for each test: what it sees belongs to that test.
//!
//! Mocks are asked in the order they were added; the first that matches and has uses left answers. A request no mock wants is
//! answered with status 599 and a text that names it, and [`HttpMock::assert_done`] fails.
//!
//! Not covered: HTTP/2, WebSockets, clients with fixed roots (Rust's `webpki-roots`) and calls to this machine itself, which
//! go past the proxy (`NO_PROXY`).

mod child_env;
mod mocks;
mod proxy;
mod response;

pub use mocks::{HttpCall, HttpMockHandle, HttpMockOptions, NotDone, TextMatcher, UrlMatcher};
pub use response::{HttpResponse, http_response};

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, OnceLock},
};

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{cassette::Cassette, lock, tls::Authority};
use mocks::Entry;

pub(crate) struct Inner {
    address: SocketAddr,
    authority: Arc<Authority>,
    state: Mutex<State>,
    /// Made when something is let through.
    network: OnceLock<reqwest::Client>,
    files: tempfile::TempDir,
    _stop: DropGuard,
}

#[derive(Default)]
struct State {
    entries: Vec<Arc<Entry>>,
    passthrough: bool,
    calls: Vec<HttpCall>,
    unmatched: Vec<HttpCall>,
    /// Requests that were let through and found nobody, in words.
    unreachable: Vec<String>,
    cassette: Option<Cassette>,
}

/// A proxy that answers for the outside world. Clones are the same proxy; it ends with the last one.
#[derive(Clone)]
pub struct HttpMock {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for HttpMock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpMock").field("address", &self.inner.address).finish_non_exhaustive()
    }
}

/// Starts a proxy with an authority of its own. Called in a Tokio runtime.
///
/// # Errors
/// No port or no temporary directory can be had.
pub fn interceptor() -> std::io::Result<HttpMock> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let authority = Authority::new();
    let files = tempfile::Builder::new().prefix("gatewright-http-mock").tempdir()?;
    child_env::write_files(files.path(), authority.pem())?;
    let stop = CancellationToken::new();
    let inner = Arc::new(Inner {
        address,
        authority,
        state: Mutex::default(),
        network: OnceLock::new(),
        files,
        _stop: stop.clone().drop_guard(),
    });
    proxy::serve(listener, &inner, stop);
    Ok(HttpMock { inner })
}

macro_rules! by_method {
    ($($(#[$doc:meta])* $name:ident $with:ident $method:expr;)+) => {$(
        $(#[$doc])*
        pub fn $name(&self, url: impl Into<UrlMatcher>, response: impl Into<HttpResponse>) -> HttpMockHandle {
            self.$with(url, response, |options| options)
        }

        $(#[$doc])*
        ///
        /// `options` adds to what the mock wants, and says how often it answers.
        pub fn $with(
            &self,
            url: impl Into<UrlMatcher>,
            response: impl Into<HttpResponse>,
            options: impl FnOnce(HttpMockOptions) -> HttpMockOptions,
        ) -> HttpMockHandle {
            let method: Option<&str> = $method;
            let mock = HttpMockOptions::new(url, response);
            self.mock(options(match method {
                Some(method) => mock.method(method),
                None => mock,
            }))
        }
    )+};
}

impl HttpMock {
    by_method! {
        /// Answers GET requests of this URL.
        get get_with Some("GET");
        /// Answers POST requests of this URL.
        post post_with Some("POST");
        /// Answers PUT requests of this URL.
        put put_with Some("PUT");
        /// Answers PATCH requests of this URL.
        patch patch_with Some("PATCH");
        /// Answers DELETE requests of this URL.
        delete delete_with Some("DELETE");
        /// Answers requests of this URL with any method.
        any any_with None;
    }

    /// Answers what `options` describe.
    pub fn mock(&self, options: HttpMockOptions) -> HttpMockHandle {
        let entry = Arc::new(Entry::new(options));
        lock(&self.inner.state).entries.push(entry.clone());
        HttpMockHandle { entry }
    }

    /// Lets requests no mock wants reach the network. Default false.
    pub fn allow_passthrough(&self, allow: bool) {
        lock(&self.inner.state).passthrough = allow;
    }

    /// Every request so far, answered or not.
    pub fn calls(&self) -> Vec<HttpCall> {
        lock(&self.inner.state).calls.clone()
    }

    /// Requests no mock wanted.
    pub fn unmatched(&self) -> Vec<HttpCall> {
        lock(&self.inner.state).unmatched.clone()
    }

    /// Requests that were let through, or recorded, and found nobody, each with the reason. They are not recorded.
    pub fn unreachable(&self) -> Vec<String> {
        lock(&self.inner.state).unreachable.clone()
    }

    /// Mocks that were not used: never, or less often than their `times`.
    pub fn pending(&self) -> Vec<HttpMockHandle> {
        let entries = lock(&self.inner.state).entries.clone();
        entries.into_iter().filter(|entry| entry.is_pending()).map(|entry| HttpMockHandle { entry }).collect()
    }

    /// Whether every mock with `times` was used that often.
    pub fn is_done(&self) -> bool {
        self.missing().is_empty()
    }

    fn missing(&self) -> Vec<String> {
        lock(&self.inner.state).entries.iter().filter_map(|entry| entry.missing()).collect()
    }

    /// Checks that every mock with `times` was used that often and that every request found a mock.
    ///
    /// # Errors
    /// Lists what is missing and what came unasked.
    pub fn assert_done(&self) -> Result<(), NotDone> {
        let not_done = NotDone { pending: self.missing(), unmatched: self.unmatched() };
        if not_done.pending.is_empty() && not_done.unmatched.is_empty() { Ok(()) } else { Err(not_done) }
    }

    /// Takes all mocks away and lets every request reach the network.
    pub fn restore(&self) {
        let mut state = lock(&self.inner.state);
        state.entries.clear();
        state.passthrough = true;
        state.cassette = None;
    }

    /// Takes all mocks away and forgets all calls.
    pub fn clear(&self) {
        let mut state = lock(&self.inner.state);
        state.entries.clear();
        state.calls.clear();
        state.unmatched.clear();
        state.unreachable.clear();
    }

    /// Replays the cassette `file` when it is there. When it is not, lets requests reach the network, keeps the answers, and
    /// writes them to `file` once the proxy ends; secrets are written as `[redacted]`.
    ///
    /// # Errors
    /// The file is there and is no cassette.
    pub fn record(&self, file: impl Into<std::path::PathBuf>) -> Result<(), crate::CassetteError> {
        let cassette = Cassette::open(file.into(), crate::cassette::Kind::Http)?;
        lock(&self.inner.state).cassette = Some(cassette);
        Ok(())
    }

    /// Writes what a cassette recorded so far.
    pub(crate) fn save_cassette(&self) {
        if let Some(cassette) = &mut lock(&self.inner.state).cassette {
            cassette.save();
        }
    }

    /// A client for code in this process: through the proxy, trusting its authority.
    ///
    /// # Errors
    /// The TLS library refuses.
    pub fn client(&self) -> reqwest::Result<reqwest::Client> {
        let ca = reqwest::Certificate::from_pem(self.inner.authority.pem().as_bytes())?;
        reqwest::Client::builder().proxy(reqwest::Proxy::all(self.proxy_url())?).tls_certs_only([ca]).build()
    }

    /// The proxy, as `http://127.0.0.1:40123`.
    pub fn proxy_url(&self) -> String {
        format!("http://{}", self.inner.address)
    }

    /// The authority's certificate, as PEM.
    pub fn ca_pem(&self) -> &str {
        self.inner.authority.pem()
    }

    /// What a child's environment must hold for its HTTP calls to come here.
    pub fn child_env(&self) -> Vec<(String, String)> {
        child_env::variables(self.inner.address, self.inner.files.path())
    }
}
