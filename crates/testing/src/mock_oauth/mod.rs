//! Mock servers for OAuth: an authorization server with faults on demand, and one for client ID metadata documents.
//!
//! The authorization server refuses what a real one refuses: unknown clients, wrong secrets, redirect URIs that are not registered, requests
//! without PKCE, codes and proofs that were used before. A test of `gatewright-auth` sends the same requests to it and to the real server.
//! Not for production: anyone can log in.

mod authorize;
mod cimd;
mod client_auth;
mod clients;
mod fault;
mod form;
mod metadata;
mod options;
mod proof;
mod register;
mod response;
mod routes;
mod server;
mod state;
mod token_endpoint;
mod token_state;

pub use cimd::{MockCimdClientOptions, MockCimdServer, MockCimdServerInfo, MockCimdServerOptions};
pub use clients::MockOAuthClient;
pub use fault::{Endpoint, Fault};
pub use options::{MockOAuthServerInfo, MockOAuthServerOptions, MockTestUser};
pub use server::MockOAuthServer;
