//! Tests for any MCP server, in any language: a client that sees the raw wire, fixtures, tokens, mock servers, mocks of
//! outbound HTTP, matchers, cassettes, and suites in YAML.
//!
//! ```
//! use gatewright_testing::{Mcp, expect};
//!
//! # use gatewright_testing::__private::Example;
//! #[gatewright_testing::test(app = || Example)]
//! async fn lists_its_tools(mcp: Mcp) {
//!     expect(&mcp.tools().list().await.unwrap()).to_contain_tool("echo");
//! }
//! ```
//!
//! The guide is `docs/TESTING.md`; [`contract`] maps every name of the contract to its name here. Order of what happens to a
//! request: mocks on the request as the test made it ([`Mocks`]) → request interceptors → network → response interceptors
//! ([`Interceptors`]) → trace.
//!
//! Features, all on by default: `oauth` (`MockOAuthServer`, `MockCimdServer`, the option `auth`), `http-mock` (`HttpMock`),
//! `suites` (YAML; brings both). Without them: client, fixtures, servers, tokens, mocks of answers, matchers, cassettes of
//! sessions.
#![forbid(unsafe_code)]

mod cassette;
#[cfg(feature = "oauth")]
mod cimd;
mod client;
mod error;
mod example;
mod expect;
mod fixture;
#[cfg(feature = "http-mock")]
pub mod http_mock;
mod intercept;
mod mock;
pub mod mock_response;
#[cfg(feature = "oauth")]
mod oauth;
mod partial;
mod records;
#[cfg(feature = "oauth")]
mod serve;
mod server;
#[cfg(feature = "suites")]
pub mod suite;
#[cfg(any(feature = "oauth", feature = "http-mock"))]
mod tls;
mod token;
mod wire;

pub use cassette::CassetteError;
#[cfg(feature = "oauth")]
pub use cimd::{MockCimdClientOptions, MockCimdServer, MockCimdServerInfo, MockCimdServerOptions};
pub use client::{
    Elicited, LogEntry, LogLevel, Logs, Mcp, McpBuilder, Notification, Notifications, OpenCall, Prompts, Raw,
    RequestTrace, Resources, ServerIdentity, Subscription, ToolCall, Tools, Trace,
};
pub use error::ClientError;
pub use expect::{AsSubject, Expect, Mismatch, Subject, expect, json_diff, matchers};
#[cfg(feature = "oauth")]
pub use fixture::AuthOptions;
pub use fixture::{BoxError, Fixture, TestContext, TestOptions};
pub use gatewright_testing_macros::test;
#[cfg(feature = "http-mock")]
pub use http_mock::{
    HttpCall, HttpMock, HttpMockHandle, HttpMockOptions, HttpResponse, UrlMatcher, http_response,
};
pub use intercept::{
    InterceptedRequest, InterceptedResponse, Interceptors, Remove, RequestAction, ResponseAction,
};
pub use mock::{MockHandle, MockOptions, Mocks, RpcRequest};
#[cfg(feature = "oauth")]
pub use oauth::{
    Endpoint, Fault, MockOAuthServer, MockOAuthServerInfo, MockOAuthServerOptions, MockTestUser,
};
pub use partial::is_subset;
pub use records::{
    Image, Missing, Prompt, PromptArgument, PromptMessage, PromptResult, Resource, ResourceContent,
    ResourceTemplate, RpcError, RpcResponse, Tool, ToolResult,
};

pub use server::{ClientOptions, Server, ServerBuilder, ServerInfo, StartError, Transport};

pub use token::{
    Auth, CreateTokenOptions, KeyFileError, TokenFactory, TokenFactoryOptions, TokenOptions, Users,
};

pub use gatewright_core::rmcp;
pub use regex::Regex;
pub use serde_json::json;

#[cfg(feature = "oauth")]
use serve::{serve, serve_tls};

#[cfg(feature = "suites")]
#[doc = include_str!("contract.md")]
pub mod contract {}

/// For the code the attribute writes, and the examples of this documentation.
#[doc(hidden)]
pub mod __private {
    pub use crate::{
        example::{Example, example},
        fixture::{Outcome, run},
    };
}

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock that a panicking test does not spoil for the report.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first `most` characters, and how many are left out.
fn shorten(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… ({} more bytes)", &text[..at], text.len() - at),
    }
}

/// 128 random bits, as text.
fn random_text() -> String {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}
