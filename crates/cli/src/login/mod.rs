//! Signing in at a gateway from the command line (MCP, authorization), and the tokens of it.
//!
//! `session` signs in and out. `discovery` finds the authorization server, `client` our identity there, `device` and `browser` are the two
//! ways to ask the user, with what they share in `grant`; `http` sends their requests, and `store` keeps the tokens.

mod browser;
mod client;
mod device;
mod discovery;
mod grant;
mod http;
mod session;
mod store;

pub use grant::Wanted;
pub use session::{access_token, endpoint, sign_in, sign_out};
