//! Builds what runs from a configuration: apps, the gateway, the authorization server, the admin listener.
//!
//! One file per part. Nothing here reads a file of the configuration (`config`) or decides when to read it again (`reload`).

pub mod admin;
pub mod apps;
pub mod audit;
pub mod auth;
pub mod auth_store;
pub mod cluster;
pub mod embedding;
pub mod gateway;
pub mod http;
pub mod limits;
mod own_paths;
pub mod shapes;
pub mod traces;
pub mod user_tokens;
