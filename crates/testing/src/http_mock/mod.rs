//! HTTP calls of the server under test, answered by the test, in whatever language the server is written.
//!
//! [`interceptor`] starts a proxy on the loopback interface that terminates TLS with a private authority. A server gets both
//! through its environment ([`ServerBuilder::http_mock`](crate::ServerBuilder::http_mock)); code in this process uses
//! [`HttpMock::client`]. One proxy per test: it sees the calls of that test only.
//!
//! Mocks are tried in the order they were added; the first one that matches and has uses left responds. An unmatched request
//! gets status 599 with a text that names it and the nearest mock, and [`HttpMock::assert_done`] panics.
//!
//! Calls to this machine itself bypass the proxy (`NO_PROXY`) unless a mock that was added before the server started names it, or
//! [`HttpMock::mock_localhost`] asks for it; those that no mock matches are passed on.
//!
//! Not covered: HTTP/2, WebSockets, clients with built-in root certificates (Rust's `webpki-roots`), and clients that know no proxy:
//! Python's `http.client` and a bare `urllib3.PoolManager`, Go for calls to this machine.

mod call;
mod child_env;
mod expectation;
mod forward;
mod matching;
mod mock;
mod near_miss;
mod proxy;
mod recorder;
mod recording;
mod response;
mod scope;

pub use call::HttpCall;
pub use expectation::{HttpMockHandle, HttpMockOptions};
pub use matching::{TextMatcher, UrlMatcher};
pub use mock::{HttpMock, UnmetExpectations, interceptor};
pub use response::{HttpResponse, NetworkFailure, http_response};
pub use scope::HttpMockScope;
