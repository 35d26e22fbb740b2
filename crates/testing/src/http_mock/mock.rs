//! The HTTP mock: adding mocks, and inspecting the calls.

use std::sync::Arc;

use super::{
    call::HttpCall,
    child_env,
    expectation::{Expectation, HttpMockHandle, HttpMockOptions},
    matching::UrlMatcher,
    proxy::Proxy,
    response::HttpResponse,
};
use crate::{
    base::lock,
    cassette::{Cassette, CassetteError, RecordOptions},
};

/// A proxy that answers in place of external servers. Clones share it; it stops when the last one is dropped.
#[derive(Clone)]
pub struct HttpMock {
    proxy: Arc<Proxy>,
}

impl std::fmt::Debug for HttpMock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpMock").field("address", &self.proxy.address).finish_non_exhaustive()
    }
}

/// Starts an HTTP mock: a proxy with a private certificate authority. Must be called within a Tokio runtime.
///
/// # Errors
/// No port or no temporary directory is available.
pub fn interceptor() -> std::io::Result<HttpMock> {
    Ok(HttpMock { proxy: Proxy::start()? })
}

macro_rules! by_method {
    ($($(#[$doc:meta])* $name:ident $with:ident $method:expr;)+) => {$(
        $(#[$doc])*
        pub fn $name(&self, url: impl Into<UrlMatcher>, response: impl Into<HttpResponse>) -> HttpMockHandle {
            self.$with(url, response, |options| options)
        }

        $(#[$doc])*
        ///
        /// `options` adds further conditions and the number of uses.
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

    /// Adds a mock.
    pub fn mock(&self, options: HttpMockOptions) -> HttpMockHandle {
        self.add(options, None)
    }

    pub(super) fn add(&self, options: HttpMockOptions, scope: Option<u64>) -> HttpMockHandle {
        let expectation = Arc::new(Expectation::new(options, scope));
        lock(&self.proxy.recorder).add(expectation.clone());
        HttpMockHandle { expectation }
    }

    /// The id of a new scope, and the number of calls and of unmatched calls before it.
    pub(super) fn open_scope(&self) -> (u64, (usize, usize)) {
        let mut recorder = lock(&self.proxy.recorder);
        recorder.scopes += 1;
        recorder.open_scopes += 1;
        (recorder.scopes, (recorder.calls.len(), recorder.unmatched.len()))
    }

    pub(super) fn close_scope(&self, id: u64) {
        let mut recorder = lock(&self.proxy.recorder);
        recorder.open_scopes -= 1;
        recorder.expectations.retain(|one| one.scope != Some(id));
    }

    /// Directs calls to this machine itself to the mock, too; those that no mock matches are passed on. Must be called before the server
    /// starts. Not necessary if the URL of a mock that was added before names `localhost` or a loopback address.
    pub fn mock_localhost(&self) {
        lock(&self.proxy.recorder).localhost = true;
    }

    /// Passes unmatched requests on to the network. Default false.
    pub fn allow_passthrough(&self, allow: bool) {
        lock(&self.proxy.recorder).passthrough = allow;
    }

    /// Replaces the advice in answers to unmatched requests.
    #[cfg(feature = "suites")]
    pub(crate) fn advise(&self, advice: &'static str) {
        lock(&self.proxy.recorder).advice = Some(advice);
    }

    /// All requests so far, matched or not.
    pub fn calls(&self) -> Vec<HttpCall> {
        lock(&self.proxy.recorder).calls.clone()
    }

    /// Requests that no mock matched.
    pub fn unmatched(&self) -> Vec<HttpCall> {
        lock(&self.proxy.recorder).unmatched.iter().map(|(call, _)| call.clone()).collect()
    }

    /// Descriptions of the requests that no mock matched, each with the nearest mock and what differs.
    pub fn unmatched_with_nearest(&self) -> Vec<String> {
        let recorder = lock(&self.proxy.recorder);
        let lines = recorder.unmatched.iter().map(|(call, nearest)| match nearest {
            Some(nearest) => format!("{call}\n    {}", nearest.replace('\n', "\n    ")),
            None => call.to_string(),
        });
        lines.collect()
    }

    /// Requests that were passed on to the network and failed, each with the reason. They are not recorded.
    pub fn unreachable(&self) -> Vec<String> {
        lock(&self.proxy.recorder).unreachable.clone()
    }

    /// Mocks that were used less often than their `times`, or never.
    pub fn pending(&self) -> Vec<HttpMockHandle> {
        let all = lock(&self.proxy.recorder).expectations.clone();
        let pending = all.into_iter().filter(|expectation| expectation.is_pending());
        pending.map(|expectation| HttpMockHandle { expectation }).collect()
    }

    /// True if every mock with `times` was used that often.
    pub fn is_done(&self) -> bool {
        self.missing().is_empty()
    }

    fn missing(&self) -> Vec<String> {
        lock(&self.proxy.recorder).expectations.iter().filter_map(|one| one.missing()).collect()
    }

    /// Requires that every mock with `times` was used that often and that every request matched a mock.
    ///
    /// # Panics
    /// With the list of unused mocks and unmatched requests.
    #[track_caller]
    pub fn assert_done(&self) {
        if let Err(unmet) = self.check_done() {
            panic!("{unmet}");
        }
    }

    /// The same as [`HttpMock::assert_done`], without a panic.
    ///
    /// # Errors
    /// Lists unused mocks and unmatched requests.
    pub fn check_done(&self) -> Result<(), UnmetExpectations> {
        let unmet = UnmetExpectations {
            pending: self.missing(),
            unmatched: self.unmatched(),
            nearest: self.unmatched_with_nearest(),
        };
        if unmet.pending.is_empty() && unmet.unmatched.is_empty() { Ok(()) } else { Err(unmet) }
    }

    /// Removes all mocks and passes every request on to the network.
    pub fn restore(&self) {
        let mut recorder = lock(&self.proxy.recorder);
        recorder.expectations.clear();
        recorder.passthrough = true;
        if let Some(mut cassette) = recorder.cassette.take() {
            cassette.save_unmanaged();
        }
    }

    /// Removes all mocks and recorded calls.
    pub fn clear(&self) {
        let mut recorder = lock(&self.proxy.recorder);
        recorder.expectations.clear();
        recorder.calls.clear();
        recorder.unmatched.clear();
        recorder.unreachable.clear();
    }

    /// Replays the cassette `file` if it exists. Otherwise passes requests on to the network, records the responses, and writes
    /// them to `file` when the test has passed (outside of the test attribute: when the proxy stops, unless the thread panics);
    /// secrets are written as `[redacted]`.
    ///
    /// # Errors
    /// The file exists and is not a cassette.
    pub fn record(&self, file: impl Into<std::path::PathBuf>) -> Result<(), CassetteError> {
        self.record_with(file, RecordOptions::default())
    }

    /// As [`HttpMock::record`], with another mode or further places of secrets.
    ///
    /// # Errors
    /// The file exists and is not a cassette, or is missing in the mode [`RecordMode::None`](crate::RecordMode::None).
    pub fn record_with(
        &self,
        file: impl Into<std::path::PathBuf>,
        options: RecordOptions,
    ) -> Result<(), CassetteError> {
        let cassette = Cassette::open(file.into(), &options)?;
        lock(&self.proxy.recorder).cassette = Some(cassette);
        Ok(())
    }

    /// Leaves writing the cassette to [`HttpMock::finish_cassette`].
    #[cfg(feature = "suites")]
    pub(crate) fn manage_cassette(&self) {
        if let Some(cassette) = &mut lock(&self.proxy.recorder).cassette {
            cassette.manage();
        }
    }

    /// Writes the cassette of tests that passed, and returns notes for the report. `complete`: whether all tests of the cassette ran.
    pub(crate) fn finish_cassette(&self, passed: bool, complete: bool) -> Result<Vec<String>, String> {
        let mut recorder = lock(&self.proxy.recorder);
        recorder.cassette.as_mut().map_or(Ok(Vec::new()), |cassette| cassette.finish(passed, complete))
    }

    /// An HTTP client for code in this process that uses the proxy and trusts its authority.
    ///
    /// # Errors
    /// The TLS library rejects the certificate.
    pub fn client(&self) -> reqwest::Result<reqwest::Client> {
        let ca = reqwest::Certificate::from_pem(self.proxy.authority.pem().as_bytes())?;
        reqwest::Client::builder().proxy(reqwest::Proxy::all(self.proxy_url())?).tls_certs_only([ca]).build()
    }

    /// The URL of the proxy, such as `http://127.0.0.1:40123`.
    pub fn proxy_url(&self) -> String {
        format!("http://{}", self.proxy.address)
    }

    /// The certificate of the authority, as PEM.
    pub fn ca_pem(&self) -> &str {
        self.proxy.authority.pem()
    }

    /// Environment variables that direct the HTTP calls of a child process to the proxy.
    pub fn child_env(&self) -> Vec<(String, String)> {
        let local = lock(&self.proxy.recorder).local();
        child_env::variables(self.proxy.address, self.proxy.files.path(), local)
    }
}

/// Unused mocks and unmatched requests.
#[derive(Debug, Clone, PartialEq)]
pub struct UnmetExpectations {
    /// Descriptions of mocks that were used less often than their `times`.
    pub pending: Vec<String>,
    /// Requests that no mock matched.
    pub unmatched: Vec<HttpCall>,
    /// The same as descriptions, with the nearest mock of each.
    pub nearest: Vec<String>,
}

impl std::fmt::Display for UnmetExpectations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HTTP mocks and requests do not fit together")?;
        for pending in &self.pending {
            write!(f, "\n  not used: {pending}")?;
        }
        for call in &self.nearest {
            write!(f, "\n  no mock wants: {call}")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnmetExpectations {}
