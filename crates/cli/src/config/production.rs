//! Production requirements (contract, "Production requirements") that a configuration does not meet.
//!
//! Items about tokens come from `AuthConfig::check_production`. This module adds their lines, and the items that concern other
//! sections.

use std::{net::SocketAddr, path::Path, time::Duration};

use gatewright_auth::{
    Deployment,
    config::{Mode, is_guessable},
};
use gatewright_findings::{Finding, escape};
use gatewright_upstream::UpstreamAuth;
use secrecy::ExposeSecret as _;

use super::{AppKind, Config, check::auth_finding, exposure};

impl Config {
    /// Every item of the production requirements that the configuration, read from `path`, does not meet, each with its fix.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn production(&self, path: &Path) -> anyhow::Result<Vec<Finding>> {
        let deployment = self.deployment(SocketAddr::new(self.http.host, self.http.port));
        let found = self.auth.check_production(&deployment).into_iter();
        let mut findings: Vec<Finding> = found
            .map(|found| auth_finding(&found.path, format!("{}; fix: {}", found.problem, found.fix)))
            .collect();
        self.check_http(&deployment, &mut findings);
        self.check_apps(&mut findings);
        findings.extend(exposure::findings(self));
        self.check_secrets(&mut findings);
        self.check_scopes(&mut findings);
        Self::with_lines_of(path, findings)
    }

    fn check_http(&self, deployment: &Deployment, findings: &mut Vec<Finding>) {
        let http = &self.http;
        report(
            findings,
            self.auth.mode != Mode::Public
                && deployment.is_https()
                && http.tls.is_none()
                && self.auth.trusted_proxies.is_empty(),
            "/http/trustedProxies",
            "HTTPS ends at a proxy that is not trusted: every request counts as plain HTTP and is refused, and all callers share the limits of \
             one address",
            "list the proxy's address or network, or set `http.tls`",
        );
        report(
            findings,
            http.allowed_hosts.iter().any(|host| host == "*"),
            "/http/allowedHosts",
            "every Host is allowed, which gives up the protection against DNS rebinding",
            "name the hosts that clients use",
        );
        report(
            findings,
            http.allowed_origins.iter().any(|origin| origin == "*"),
            "/http/allowedOrigins",
            "pages of every origin may use the server",
            "name the origins of your own pages",
        );
        report(
            findings,
            !(1 << 10..=16 << 20).contains(&http.max_body_bytes),
            "/http/maxBodyBytes",
            "the limit on request bodies is outside any useful range",
            "set a value from 1024 to 16777216",
        );
        for (field, time, most) in [
            ("headerReadTimeout", http.header_read_timeout, 120),
            ("bodyReadTimeout", http.body_read_timeout, 600),
            ("writeTimeout", http.write_timeout, 600),
            ("connectionIdle", http.connection_idle, 3_600),
        ] {
            report(
                findings,
                !(Duration::from_secs(1)..=Duration::from_secs(most)).contains(&time),
                &format!("/http/{field}"),
                "the timeout is outside any useful range",
                &format!("set a value from 1s to {most}s"),
            );
        }
    }

    fn check_apps(&self, findings: &mut Vec<Finding>) {
        for (id, app) in &self.apps {
            let pointer = |field: &str| format!("/apps/{}/{field}", escape(id));
            let timeout = match &app.kind {
                AppKind::Upstream(upstream) => upstream.timeout,
                AppKind::Openapi(openapi) => openapi.timeout,
                AppKind::Builtin(_) | AppKind::Plans(_) => continue,
            };
            report(
                findings,
                timeout > Duration::from_secs(3_600),
                &pointer("timeout"),
                "a call may take longer than an hour",
                "set 1h or less",
            );
            let AppKind::Upstream(upstream) = &app.kind else { continue };
            let is_private =
                matches!(&upstream.auth, Some(UpstreamAuth::Oauth(oauth)) if oauth.allow_private);
            report(
                findings,
                is_private,
                &pointer("auth/allowPrivate"),
                "the authorization server may be on a private address, over plain HTTP",
                "set it to false",
            );
        }
    }

    fn check_secrets(&self, findings: &mut Vec<Finding>) {
        let token = self.admin.as_ref().and_then(|admin| admin.token.as_ref());
        let key = self.http.cluster.as_ref().map(|cluster| cluster.key.expose());
        for (path, secret) in
            [("/admin/token", token.map(|token| token.expose_secret())), ("/http/cluster/key", key)]
        {
            report(
                findings,
                secret.is_some_and(is_guessable),
                path,
                "the secret is short or monotonous enough to be guessed",
                "use 32 random characters or more, such as `openssl rand -base64 32` makes",
            );
        }
    }

    fn check_scopes(&self, findings: &mut Vec<Finding>) {
        for (id, app) in &self.apps {
            report(
                findings,
                self.auth.mode != Mode::Public && !app.has_scopes(),
                &format!("/apps/{}", escape(id)),
                "any token can use the whole app, because nothing in it requires a scope",
                "set `scopes` of the app, or of its `tools`, `resources` and `prompts`",
            );
        }
    }
}

/// Adds a finding if a requirement is `broken`.
fn report(findings: &mut Vec<Finding>, broken: bool, path: &str, problem: &str, fix: &str) {
    if broken {
        findings.push(Finding::new(path, format!("{problem}; fix: {fix}")));
    }
}
