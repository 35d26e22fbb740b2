//! Put MCP tools behind a gate: serve the tools, resources and prompts of many apps as one MCP server, in code mode.
//!
//! ```no_run
//! use std::{error::Error, process::ExitCode, sync::Arc};
//!
//! use gatewright::{Builder, CodeCallConfig, HttpConfig, LocalApp, rmcp};
//! use rmcp::{ServerHandler, handler::server::wrapper::Parameters, tool, tool_handler, tool_router};
//!
//! #[derive(Clone, Default)]
//! struct Greeter;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Name {
//!     name: String,
//! }
//!
//! #[tool_router]
//! impl Greeter {
//!     #[tool(description = "Greets a person by name")]
//!     async fn greet(&self, Parameters(Name { name }): Parameters<Name>) -> String {
//!         format!("Hello, {name}!")
//!     }
//! }
//!
//! #[tool_handler]
//! impl ServerHandler for Greeter {}
//!
//! fn main() -> ExitCode {
//!     // Scripts run in sandboxed copies of this program: let them start before anything else.
//!     if gatewright::is_worker() {
//!         return gatewright::worker_main();
//!     }
//!     serve().expect("the server runs");
//!     ExitCode::SUCCESS
//! }
//!
//! #[tokio::main]
//! async fn serve() -> Result<(), Box<dyn Error>> {
//!     let running = Builder::new("hello", "1.0.0")
//!         .app("greeter", Arc::new(LocalApp::start(Greeter).await?))
//!         .code_mode(CodeCallConfig::default())
//!         .build()?;
//!     let server = running.http(HttpConfig::default()).bind().await?;
//!     println!("serving on http://{}/mcp", server.local_addr());
//!     server.run_until_ctrl_c().await?;
//!     running.stop().await;
//!     Ok(())
//! }
//! ```
//!
//! Features, none of them on by default:
//!
//! - `guard`: `Guard`, everything that the binary puts around a gateway: authorization server and external providers, rate limits, audit file,
//!   metrics, traces, console.
//! - `semantic`: `open_semantic_search`, search by meaning beside the lexical one.
#![forbid(unsafe_code)]

mod builder;
#[cfg(feature = "guard")]
mod guard;
#[cfg(feature = "semantic")]
mod semantic;
mod worker;

pub use builder::{Builder, Running};
pub use gatewright_agentscript::{PoolConfig, WorkerCommand, WorkerError, WorkerPool};
#[cfg(feature = "guard")]
pub use gatewright_auth::{self as auth, AuthConfig};
pub use gatewright_codecall::{self as codecall, CodeCall, CodeCallConfig, Mode};
#[cfg(feature = "guard")]
pub use gatewright_console::ConfigurationView;
pub use gatewright_core::{
    self as core, App, AppHealth, AppOptions, AuthRefusal, Authenticator, EndpointAudience, EndpointConfig,
    Gateway, GatewayConfig, Groups, Invoker, LocalApp, Observer, Plugin, Principal, RateLimiter, Registry,
    Scopes, ToolNames, rmcp,
};
pub use gatewright_executions::{self as executions, Executions, ExecutionsConfig};
pub use gatewright_openapi::{self as openapi, OpenapiApp, OpenapiConfig};
#[cfg(feature = "guard")]
pub use gatewright_operator::{self as operator, admin::AdminConfig, limits::RateLimitRule};
pub use gatewright_server::{self as server, HttpConfig, Server, serve_stdio};
pub use gatewright_upstream::{self as upstream, UpstreamApp, UpstreamConfig};
#[cfg(feature = "guard")]
pub use guard::{
    Audit, AuditConfig, Guard, GuardConfig, GuardError, GuardedServer, UserTokens, deployment,
    executions_are_stored, redis_endpoint,
};
#[cfg(feature = "semantic")]
pub use semantic::open_semantic_search;
pub use worker::{is_worker, worker_main};

/// The library's quickstart, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/quickstart/library.md")]
struct Quickstart;
