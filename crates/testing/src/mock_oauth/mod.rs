//! Mock servers for OAuth: an authorization server with faults on demand, and one for client ID metadata documents.
//!
//! The authorization server is strict where a real one is (PKCE is enforced, codes are redeemed once, redirect URIs are compared)
//! and lenient where tests do not care (every client is known unless `client_id` is set). Not for production: anyone can log in.

mod authorize;
mod cimd;
mod fault;
mod metadata;
mod options;
mod register;
mod response;
mod routes;
mod server;
mod state;
mod token_endpoint;

pub use cimd::{MockCimdClientOptions, MockCimdServer, MockCimdServerInfo, MockCimdServerOptions};
pub use fault::{Endpoint, Fault};
pub use options::{MockOAuthServerInfo, MockOAuthServerOptions, MockTestUser};
pub use server::MockOAuthServer;
