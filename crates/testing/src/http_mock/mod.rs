//! HTTP calls of the server under test, answered by the test, in whatever language the server is written.
//!
//! [`interceptor`] starts a proxy on the loopback interface that terminates TLS with a private authority. A server gets both
//! through its environment ([`ServerBuilder::http_mock`](crate::ServerBuilder::http_mock)); code in this process uses
//! [`HttpMock::client`]. One proxy per test: it sees the calls of that test only.
//!
//! Mocks are tried in the order they were added; the first one that matches and has uses left responds. An unmatched request
//! gets status 599 with a text that names it, and [`HttpMock::assert_done`] panics.
//!
//! Not covered: HTTP/2, WebSockets, clients with built-in root certificates (Rust's `webpki-roots`) and calls to this machine
//! itself, which bypass the proxy (`NO_PROXY`).

mod call;
mod child_env;
mod expectation;
mod forward;
mod matching;
mod mock;
mod proxy;
mod recorder;
mod recording;
mod response;
#[cfg(feature = "suites")]
mod scope;

pub use call::HttpCall;
pub use expectation::{HttpMockHandle, HttpMockOptions};
pub use matching::{TextMatcher, UrlMatcher};
pub use mock::{HttpMock, UnmetExpectations, interceptor};
pub use response::{HttpResponse, http_response};
#[cfg(feature = "suites")]
pub(crate) use scope::HttpMockScope;
