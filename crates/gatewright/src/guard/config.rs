//! The configuration of a guard: the sections of its parts.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use gatewright_auth::{AuditSink, AuthConfig, AuthorizationServer, Deployment};
use gatewright_core::{EndpointConfig, Endpoints, SealKey};
use gatewright_executions::ExecutionsConfig;
use gatewright_operator::{admin::AdminConfig, limits::RateLimitRule, telemetry::OtlpConfig};
use gatewright_server::HttpConfig;

use super::{AuditConfig, GuardError};

/// Configuration of a [`Guard`](super::Guard). Without changes the server is open to everyone on this machine.
#[derive(Debug, Clone)]
pub struct GuardConfig {
    /// Name of the server, for clients and on the pages of the authorization server.
    pub name: String,
    /// Version of the server, for clients and in traces.
    pub version: String,
    /// The listener for clients.
    pub http: HttpConfig,
    /// Endpoints beside the main one, by name. Default: none.
    pub endpoints: BTreeMap<String, EndpointConfig>,
    /// The built-in authorization server, or an external provider. Default: none.
    pub auth: AuthConfig,
    /// Limits on the calls of each caller, counted in the token store if that is Redis. Default: none.
    pub rate_limits: Vec<RateLimitRule>,
    /// Journals of scripts. Default: in the token store if that outlives the process, else in memory.
    pub executions: ExecutionsConfig,
    /// The audit file. Default: none.
    pub audit: AuditConfig,
    /// The listener for operators, with metrics and the console. Default: none.
    pub admin: Option<AdminConfig>,
    /// Collector that traces are sent to. Default: none.
    pub otlp: Option<OtlpConfig>,
}

impl Default for GuardConfig {
    /// A server called `gatewright`, in the version of this crate.
    fn default() -> Self {
        Self {
            name: "gatewright".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            http: HttpConfig::default(),
            endpoints: BTreeMap::new(),
            auth: AuthConfig::default(),
            rate_limits: Vec::new(),
            executions: ExecutionsConfig::default(),
            audit: AuditConfig::default(),
            admin: None,
            otlp: None,
        }
    }
}

/// The deployment of the server `name` that listens at `address`: reached at `http.publicUrl`, else at that address.
pub fn deployment(http: &HttpConfig, name: &str, address: SocketAddr) -> Deployment {
    let public = match &http.public_url {
        Some(url) => url.to_string(),
        None => http.origin_at(address),
    };
    Deployment::new(&public, &http.path, name).listening_on(address.ip())
}

impl GuardConfig {
    /// A server of this name and version, without authentication.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }

    /// Opens the authorization server of a server that listens at `address`, with its token store. It issues tokens for the main endpoint and for
    /// `endpoints`.
    ///
    /// # Errors
    /// The section `auth` cannot be used, or the token store does not answer.
    pub async fn authorization_server(
        &self,
        address: SocketAddr,
        endpoints: Arc<Endpoints>,
        audit: Option<Arc<dyn AuditSink>>,
    ) -> Result<AuthorizationServer, GuardError> {
        let deployment = self.deployment(address).with_endpoints(endpoints);
        Ok(AuthorizationServer::open_with(self.auth.clone(), deployment, audit).await?)
    }

    /// The key that opaque ids and executions are sealed with: that of the cluster, else one derived from the secret of `auth`.
    pub(super) fn seal_key(&self) -> Option<SealKey> {
        let cluster = self.http.cluster.as_ref().map(|cluster| cluster.key.seal_key());
        let auth = || self.auth.shared_secret().map(|secret| SealKey::derived(secret.as_bytes()));
        cluster.or_else(auth)
    }

    pub(super) fn deployment(&self, address: SocketAddr) -> Deployment {
        deployment(&self.http, &self.name, address)
    }

    /// Checks the sections that nothing else checks later.
    pub(super) fn check(&self) -> Result<(), GuardError> {
        let admin = self.admin.iter().flat_map(AdminConfig::problems);
        let admin = admin.map(|(field, problem)| format!("`admin.{field}` {problem}"));
        let rules = self.rate_limits.iter().filter_map(RateLimitRule::problem);
        let rules = rules.map(|(field, problem)| format!("`{field}` of a rule in `rateLimits` {problem}"));
        let otlp = self.otlp.iter().flat_map(OtlpConfig::problems);
        let otlp = otlp.map(|(field, problem)| format!("`telemetry.otlp.{field}` {problem}"));
        let executions = self.executions.problems().into_iter();
        let executions = executions.map(|field| format!("`executions.{}` {}", field.path, field.problem));
        let endpoints = self.endpoints.iter().flat_map(|(name, config)| {
            let section = format!("endpoints.{name}");
            config.problems(name).into_iter().map(move |field| field.below(&section).to_string())
        });
        match admin.chain(rules).chain(otlp).chain(executions).chain(endpoints).next() {
            Some(problem) => Err(GuardError::Config(problem)),
            None => Ok(()),
        }
    }
}
