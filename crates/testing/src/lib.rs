//! Tests for any MCP server, in any language: a client, fixtures, mocks and matchers.
#![forbid(unsafe_code)]

mod cassette;
mod cimd;
mod client;
mod error;
mod expect;
mod fixture;
pub mod http_mock;
mod intercept;
mod mock;
pub mod mock_response;
mod oauth;
mod partial;
mod records;
mod serve;
mod server;
pub mod suite;
mod tls;
mod token;
mod wire;

pub use cassette::CassetteError;
pub use cimd::{MockCimdClientOptions, MockCimdServer, MockCimdServerInfo, MockCimdServerOptions};
pub use client::{
    Elicited, LogEntry, LogLevel, Logs, Mcp, McpBuilder, Notification, Notifications, Prompts, Raw,
    RequestTrace, Resources, ServerIdentity, ToolCall, Tools, Trace,
};
pub use error::ClientError;
pub use expect::{AsSubject, Expect, Mismatch, Subject, expect, json_diff, matchers};
pub use fixture::{AuthOptions, BoxError, Fixture, TestContext, TestOptions};
pub use gatewright_testing_macros::test;
pub use http_mock::{
    HttpCall, HttpMock, HttpMockHandle, HttpMockOptions, HttpResponse, UrlMatcher, http_response,
};
pub use intercept::{
    InterceptedRequest, InterceptedResponse, Interceptors, Remove, RequestAction, ResponseAction,
};
pub use mock::{MockHandle, MockOptions, Mocks, RpcRequest};
pub use oauth::{
    Endpoint, Fault, MockOAuthServer, MockOAuthServerInfo, MockOAuthServerOptions, MockTestUser,
};
pub use partial::is_subset;
pub use records::{
    Image, Missing, Prompt, PromptArgument, PromptMessage, PromptResult, Resource, ResourceContent,
    ResourceTemplate, RpcError, RpcResponse, Tool, ToolResult,
};

pub use server::{ClientOptions, Server, ServerBuilder, ServerInfo, StartError, Transport};

pub use token::{Auth, CreateTokenOptions, TokenFactory, TokenFactoryOptions, TokenOptions, Users};

pub use gatewright_core::rmcp;
pub use regex::Regex;

use serve::{serve, serve_tls};

/// For the code the attribute writes.
#[doc(hidden)]
pub mod __private {
    pub use crate::fixture::{Outcome, run};
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
