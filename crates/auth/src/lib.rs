//! An OAuth 2.1 authorization server and resource server.
//!
//! [`AuthorizationServer`] signs users in, asks for consent and issues tokens; [`ResourceServer`] authenticates the callers of the MCP
//! endpoint. Both are made from [`AuthConfig`], the `auth` section of a configuration. Records are kept in a [`store`]: in memory, in a
//! SQLite file or in Redis, where every redemption and rotation is one atomic step. Signing [`keys`] rotate.
#![forbid(unsafe_code)]

mod accounts;
mod api_keys;
mod approvals;
mod audience;
mod audit;
mod authorizations;
mod ceiling;
mod clients;
mod clock;
pub mod config;
mod connections;
mod consent_tools;
mod consents;
mod context;
mod credentials;
mod crypto;
mod dpop;
mod endpoint;
mod error;
mod error_codes;
mod fetch;
mod first_user;
mod grant_refusal;
mod grants;
mod groups;
mod hashing;
mod json;
pub mod keys;
mod lockout;
mod metrics;
mod net;
mod pages;
mod password;
mod provider;
mod question_form;
mod questions;
mod quota;
mod records;
mod redirect_uri;
mod relying_party;
mod resource;
mod scopes;
mod sealing;
mod server;
mod sessions;
pub mod store;
mod store_clock;
mod token_cache;
mod tokens;
mod transparent;
mod tuning;
mod upstream_oauth;
mod users;
mod web;
mod work_grant;

pub use approvals::ApprovalPages;
pub use audit::{AuditEvent, AuditSink, LogAudit};
pub use clock::{Clock, Entropy, ManualClock, SystemClock, SystemEntropy};
pub use config::{AuthConfig, Deployment, Finding, Problem};
pub use consent_tools::{ConsentTool, ConsentTools};
pub use crypto::Sealer;
pub use error_codes::{ERRORS, ErrorCode};
pub use first_user::FirstUser;
pub use grant_refusal::GrantRefusal;
pub use metrics::Metrics;
pub use password::hash_password;
pub use questions::QuestionPages;
pub use resource::ResourceServer;
pub use server::{
    ApiKeyError, ApiKeyInfo, AuthorizationServer, ClientInfo, ConsentInfo, EnrolError, Enrolment, NewApiKey,
    OPENAPI, OpenError, RemovedClient, RevokedApiKey, RevokedToken, ServerParts, open_peers, open_store,
};
pub use transparent::Transparent;
pub use tuning::RECHECK;
pub use upstream_oauth::{OauthEndpoints, UpstreamProvider, UpstreamVault};
