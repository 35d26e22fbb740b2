//! An OAuth 2.1 authorization server and resource server.
//!
//! [`AuthorizationServer`] logs users in, asks for consent and issues tokens; [`ResourceServer`] checks the callers of the MCP
//! endpoint. [`AuthConfig`] is the `auth` section that both are made from. What must be remembered is in a [`store`]: in memory, in a
//! SQLite file or in Redis, where every redemption and rotation is one atomic step. Signing [`keys`] rotate.
#![forbid(unsafe_code)]

mod audit;
mod ceiling;
mod cimd;
mod client_metadata;
mod clients;
mod clock;
pub mod config;
mod connect;
mod covered;
mod crypto;
mod dpop;
mod fetch;
mod hashing;
mod json;
pub mod keys;
mod lockout;
mod metrics;
mod net;
mod operator;
mod pages;
mod password;
mod records;
mod remote;
mod resource;
mod server;
pub mod store;
mod transparent;
mod under_way;

pub use audit::{AuditEvent, AuditSink, LogAudit};
pub use clock::{Clock, Entropy, ManualClock, SystemClock, SystemEntropy};
pub use config::{AuthConfig, Deployment, Finding, Problem};
pub use connect::{UpstreamProvider, UpstreamVault};
pub use covered::{CoveredTool, CoveredTools};
pub use crypto::Sealer;
pub use metrics::Metrics;
pub use operator::{ClientInfo, ConsentInfo, RemovedClient, RevokedToken};
pub use password::hash_password;
pub use resource::{RECHECK, ResourceServer};
pub use server::{
    AuthorizationServer, ERRORS, EnrolError, Enrolment, ErrorCode, FirstUser, OPENAPI, OpenError,
    ServerParts, open_peers, open_store,
};
pub use transparent::Transparent;
