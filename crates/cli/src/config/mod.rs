//! The configuration: one file per section that belongs to the command, and the sections of the other crates.
//!
//! `load` reads a file, `sections` deserializes it, and `check` finds what the JSON Schema cannot.

mod app;
mod check;
mod cluster;
pub mod env_file;
mod exposure;
mod file;
#[cfg(test)]
mod growth;
mod info;
mod interpolate;
mod load;
mod logging;
mod mcp_file;
mod pin_file;
mod place;
mod policies;
mod production;
mod removed;
pub mod schema;
mod secret_command;
mod sections;
mod shown;
mod source;
mod telemetry;

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

pub use app::{AppConfig, AppKind, Builtin};
pub use file::{format_of, value as value_of};
use gatewright::{AuditConfig, GuardConfig};
use gatewright_auth::{AuthConfig, Deployment};
use gatewright_codecall::CodeCallConfig;
use gatewright_core::{Approvals, EndpointConfig, Endpoints, ToolNames};
use gatewright_executions::ExecutionsConfig;
use gatewright_operator::{admin::AdminConfig, limits::RateLimitRule, telemetry::OtlpConfig};
use gatewright_server::HttpConfig;
use indexmap::IndexMap;
use info::Info;
pub use interpolate::{Surroundings, missing_variables};
pub use logging::{Level, LoggingConfig};
pub use mcp_file::{places_of_editors, try_filling};
pub use pin_file::PinFile;
pub use policies::{PolicyFiles, policy_finding};
use schemars::JsonSchema;
use serde::Serialize;
pub use source::Source;
use telemetry::TelemetryConfig;

/// Configuration of Gatewright.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Name and version that clients see.
    pub info: Info,
    /// The HTTP server.
    pub http: HttpConfig,
    /// Apps by id. Tools are called `<id>:<tool>`.
    pub apps: IndexMap<String, AppConfig>,
    /// Endpoints beside the main one, by name: 1 to 64 lower-case letters, digits and `-`. Each is served at `<http.path>/<name>`, with a part of the
    /// apps and tools.
    pub endpoints: BTreeMap<String, EndpointConfig>,
    /// Code mode.
    pub codecall: CodeCallConfig,
    /// Journals of scripts.
    pub executions: ExecutionsConfig,
    /// Limits on the calls of each caller. A call counts against every rule that matches its tool.
    pub rate_limits: Vec<RateLimitRule>,
    /// Files with policies in Cedar, relative to this file; `*` stands for any part of a file's name, as in `policies/*.cedar`. With policies,
    /// only what one of them permits is permitted. Default none: what scopes allow is permitted.
    pub policies: Vec<String>,
    /// Approvals that calls of tools need, by what the tools may do.
    #[schemars(with = "ApprovalsShape")]
    pub approvals: Approvals,
    /// The content of the files of `policies`.
    #[serde(skip)]
    pub policy_files: PolicyFiles,
    /// Approved definitions of pinned tools.
    #[serde(skip)]
    pub pin_file: PinFile,
    /// The listener for operators: metrics and the console.
    #[serde(skip_serializing)]
    pub admin: Option<AdminConfig>,
    /// Export of traces.
    #[serde(skip_serializing)]
    pub telemetry: TelemetryConfig,
    /// Log output.
    pub logging: LoggingConfig,
    /// The audit file.
    pub audit: AuditConfig,
    /// Authentication and authorization.
    #[serde(skip_serializing)]
    pub auth: AuthConfig,
    /// Form of tool names in lists: `colon` (`crm:users_list`, default) or `underscore` (`crm_users_list`).
    #[schemars(with = "ToolNamesName")]
    pub tool_names: ToolNames,
    /// Items on one page of a list: 1 to 10,000. Default 500.
    #[schemars(range(min = 1, max = 10_000))]
    pub page_size: Option<usize>,
}

/// Approvals by what tools may do, and how they are given. The `approval` of a tool comes first.
#[derive(Default, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct ApprovalsShape {
    /// Calls of tools that may destroy data: all that do not say otherwise in `readOnlyHint` or `destructiveHint`.
    destructive: Option<app::ApprovalName>,
    /// Calls of tools that may change something: all that do not say otherwise in `readOnlyHint`.
    writes: Option<app::ApprovalName>,
    /// The scope whose holders approve calls of others. Their own calls are approved by somebody else with the scope, or by an operator. Default: callers
    /// approve their own calls. `@approvers("scope")` of a policy comes first.
    approvers: Option<String>,
    /// Time after which an approval expires that nobody gave, or that was given and not used: 1 minute to 7 days. Default 1 h.
    expires_in: Option<String>,
    /// Approvals of one principal that wait at the same time: 1 to 100. Default 20.
    #[schemars(range(min = 1, max = 100))]
    max_per_principal: Option<u32>,
}

/// The spellings, for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum ToolNamesName {
    Colon,
    Underscore,
}

impl Config {
    /// The deployment when the server listens at `address`: reached at `http.publicUrl`, else at that address.
    pub fn deployment(&self, address: SocketAddr) -> Deployment {
        let deployment = gatewright::deployment(&self.http, &self.info.name, address);
        let endpoints = Arc::new(Endpoints::new(&self.endpoints));
        Deployment { redact: self.logging.redact.clone(), endpoints, ..deployment }
    }

    /// The sections about everything around the gateway. Traces are sent to `otlp`.
    pub fn guard(&self, otlp: Option<OtlpConfig>) -> GuardConfig {
        GuardConfig {
            name: self.info.name.clone(),
            version: self.info.version.clone(),
            http: self.http.clone(),
            endpoints: self.endpoints.clone(),
            auth: self.auth.clone(),
            rate_limits: self.rate_limits.clone(),
            executions: self.executions.clone(),
            audit: self.audit.clone(),
            admin: self.admin.clone(),
            otlp,
        }
    }
}
