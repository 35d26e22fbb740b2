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
//! The guide is `docs/TESTING.md`; [`contract`] maps every name of the contract to its name here. A request passes request
//! interceptors ([`Interceptors`]), mocks ([`Mocks`]), the network, response interceptors and the trace, in this order.
//!
//! Features, all on by default: `oauth` (`MockOAuthServer`, `MockCimdServer`, the option `auth`), `http-mock` (`HttpMock`),
//! `suites` (YAML; enables both). Without them: client, fixtures, servers, tokens, mocked responses, matchers, cassettes of
//! sessions.
//!
//! # Modules
//!
//! Each module uses only modules below it; `tests/it/layers.rs` checks that.
//!
//! ```text
//! probe        a probe of a stranger's server, with grades
//! fuzz         calls of tools with inputs from their schemas
//! suite        suites in YAML: format, validation, runs, reports
//! example      the server of the examples in this documentation
//! fixture      test attribute, options, hooks, failure reports
//! server       the server under test: start, stop, logs
//! client       the MCP client: transports, mocks, interceptors, logs
//! http_mock    HTTP calls of the server under test
//! mock_oauth   authorization server, client ID metadata documents
//! matchers     `expect` and the matchers
//! token        signed tokens
//! cassette     recorded responses in a file
//! shapes       rules for the messages of a server
//! protocol     requests, responses, records, errors
//! tool_server  an MCP server made of a list of tools and one function
//! base         text, time, JSON comparison, sockets
//! ```
#![forbid(unsafe_code)]

mod base;
mod cassette;
mod client;
mod example;
mod fixture;
#[cfg(feature = "suites")]
pub mod fuzz;
#[cfg(feature = "http-mock")]
pub mod http_mock;
pub mod matchers;
#[cfg(feature = "oauth")]
mod mock_oauth;
#[cfg(feature = "suites")]
pub mod probe;
mod protocol;
mod server;
mod shapes;
#[cfg(feature = "suites")]
pub mod suite;
mod token;
mod tool_server;

pub use base::json::is_subset;
pub use cassette::{CassetteError, RecordMode, RecordOptions, Redaction};
pub use client::{
    ElicitResult, InterceptedRequest, InterceptedResponse, InterceptorHandle, Interceptors, LogEntry,
    LogLevel, Logs, Mcp, McpBuilder, MockHandle, MockOptions, Mocks, Notifications, PendingCall, Prompts,
    Raw, RequestAction, RequestTrace, Resources, ResponseAction, ServerIdentity, Subscription, ToolCall,
    Tools, Trace, mock_response,
};
#[cfg(feature = "oauth")]
pub use fixture::AuthOptions;
pub use fixture::{BoxError, Fixture, TestContext, TestOptions};
pub use gatewright_testing_macros::{after_all, after_each, before_all, before_each, test};
#[cfg(feature = "http-mock")]
pub use http_mock::{
    HttpCall, HttpMock, HttpMockHandle, HttpMockOptions, HttpMockScope, HttpResponse, NetworkFailure,
    UrlMatcher, http_response,
};
pub use matchers::{
    AsSubject, Expect, Latency, LogMessage, Match, Message, Mismatch, NumberRange, Recorded, Snapshot,
    Subject, expect, json_diff,
};
#[cfg(feature = "oauth")]
pub use mock_oauth::{
    Endpoint, Fault, MockCimdClientOptions, MockCimdServer, MockCimdServerInfo, MockCimdServerOptions,
    MockOAuthClient, MockOAuthServer, MockOAuthServerInfo, MockOAuthServerOptions, MockTestUser,
};
pub use protocol::{
    ClientError, Image, Notification, Prompt, PromptArgument, PromptMessage, PromptResult, RecordError,
    Resource, ResourceContent, ResourceTemplate, RpcError, RpcRequest, RpcResponse, Tool, ToolResult,
};
pub use server::{ClientOptions, Server, ServerBuilder, ServerInfo, StartError, Transport};
pub use shapes::{Rule, Strict, Violation};
pub use token::{
    Algorithm, Auth, CreateTokenOptions, Defect, KeyFileError, TokenFactory, TokenFactoryOptions,
    TokenOptions, Users,
};
pub use tool_server::ToolServer;

pub use gatewright_core::rmcp;
pub use regex::Regex;
pub use serde_json::json;

#[cfg(feature = "suites")]
#[doc = include_str!("contract.md")]
pub mod contract {}

/// For the code of the test attribute, and for the examples of this documentation.
#[doc(hidden)]
pub mod __private {
    pub use crate::{
        example::{Example, example},
        fixture::{MARKS, Mark, MarkKind, Outcome, When, run, run_cases},
    };
    pub use linkme;
}
