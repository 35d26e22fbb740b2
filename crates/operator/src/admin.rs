//! The admin listener: `/metrics`, `/healthz`, `/readyz`, and pages for operators, away from the public port.
//!
//! It listens on loopback by default; any other address requires a token. Requests that name another host are refused, so
//! that a page on the web cannot reach it through a name of its own (DNS rebinding).

mod config;
mod connections;
mod guard;
mod server;

pub use config::AdminConfig;
pub use server::{Admin, AdminError};
