//! Everything in front of and beside a gateway: authentication, rate limits, the audit file, metrics, traces and the console.
//!
//! One file per part. The apps and the gateway itself are in `builder`.

mod admin;
mod audit_log;
mod auth;
mod cluster;
mod config;
mod error;
mod limits;
mod records;
mod server;
mod user_tokens;

use std::sync::Arc;

use futures::future::BoxFuture;
use gatewright_console::ConfigurationView;
use gatewright_core::{ApprovalListener, Observer};
use gatewright_operator::{limits::Limits, telemetry::Traces};
use gatewright_server::axum::Router;
use serde_json::Value;

use crate::Builder;
use admin::AdminListener;
pub use audit_log::{Audit, AuditConfig};
pub use cluster::redis_endpoint;
pub use config::{GuardConfig, deployment};
pub use error::GuardError;
pub use records::executions_are_stored;
pub use server::GuardedServer;
pub use user_tokens::UserTokens;

type MetricsText = Box<dyn Fn() -> String + Send + Sync>;
type ReadConfiguration = Arc<dyn Fn() -> ConfigurationView + Send + Sync>;
type ReadyDetail = Box<dyn Fn() -> Value + Send + Sync>;

/// Authentication, rate limits, audit, metrics, traces and console of one server.
pub struct Guard {
    config: GuardConfig,
    limits: Arc<Limits>,
    audit: Option<Arc<Audit>>,
    admin: Option<AdminListener>,
    user_tokens: UserTokens,
    metrics: Vec<MetricsText>,
    configuration: Option<ReadConfiguration>,
    ready: Vec<(&'static str, ReadyDetail)>,
    routes: Router,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("name", &self.config.name).finish_non_exhaustive()
    }
}

impl Guard {
    /// Opens the audit file, the stores and the exporter of traces. Returns the builder of the gateway too, which has the observers and rate
    /// limits already: add the apps to it.
    ///
    /// # Errors
    /// A section of the configuration, a file or a store cannot be used.
    pub fn open(config: GuardConfig) -> BoxFuture<'static, Result<(Self, Builder), GuardError>> {
        Box::pin(async move {
            config.check()?;
            let listener = |admin| AdminListener::new(admin, config.audit.include_arguments);
            let admin = config.admin.clone().map(listener).transpose()?;
            let limits = limits::open(&config).await?;
            let audit = config.audit.open()?;
            let mut builder = Builder::new(&config.name, &config.version)
                .rate_limiter(limits.clone())
                .endpoints(config.endpoints.clone());
            for observer in admin.iter().flat_map(AdminListener::observers) {
                builder = builder.observer(observer);
            }
            if let Some(audit) = audit.clone() {
                builder = builder.observer(audit as Arc<dyn Observer>);
            }
            if let Some(otlp) = &config.otlp {
                let (traces, sending) =
                    Traces::start(otlp, &config.version).map_err(|error| GuardError::Traces(error.into()))?;
                builder = builder.observer(Arc::new(traces)).sending(sending);
            }
            builder = builder.executions(records::executions(&config).await?);
            let approvals = records::approvals(&config).await;
            if let Some(audit) = audit.clone() {
                approvals.notify(audit as Arc<dyn ApprovalListener>);
            }
            builder = builder.approvals(approvals).guarded();
            if let Some(key) = config.seal_key() {
                builder = builder.seal_key(key);
            }
            let guard = Self {
                config,
                limits,
                audit,
                admin,
                user_tokens: UserTokens::default(),
                metrics: Vec::new(),
                configuration: None,
                ready: Vec::new(),
                routes: Router::new(),
            };
            Ok((guard, builder))
        })
    }

    /// The rate limits, whose rules can be replaced while the server runs.
    pub fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    /// The audit file, if there is one.
    pub fn audit(&self) -> Option<&Arc<Audit>> {
        self.audit.as_ref()
    }

    /// Tokens of users at upstream servers, for apps that need them
    /// ([`PerCallerApp`](gatewright_upstream::PerCallerApp)).
    pub fn user_tokens(&self) -> &UserTokens {
        &self.user_tokens
    }

    /// Adds the result of `render`, in the text format of Prometheus, to `/metrics` of the admin listener.
    #[must_use]
    pub fn metrics(mut self, render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.metrics.push(Box::new(render));
        self
    }

    /// Shows the configuration that `read` returns on the console: it must have no secrets.
    #[must_use]
    pub fn configuration(mut self, read: impl Fn() -> ConfigurationView + Send + Sync + 'static) -> Self {
        self.configuration = Some(Arc::new(read));
        self
    }

    /// Adds the result of `value` to the public `/readyz`, under `key`.
    #[must_use]
    pub fn ready_detail(
        mut self,
        key: &'static str,
        value: impl Fn() -> Value + Send + Sync + 'static,
    ) -> Self {
        self.ready.push((key, Box::new(value)));
        self
    }

    /// Serves more routes beside the server's own, without authentication.
    #[must_use]
    pub fn routes(mut self, routes: Router) -> Self {
        self.routes = self.routes.merge(routes);
        self
    }
}
