//! What a configuration lacks for production: contract, "Production requirements".
//!
//! The items that concern tokens are those of `AuthConfig::check_production`; here they get their lines, and what only the whole
//! configuration shows is added.

use std::{net::SocketAddr, path::Path};

use anyhow::Context as _;
use gatewright_auth::config::Mode;
use gatewright_findings::{Finding, Lines, with_lines};

use super::{Config, file, pointer};

impl Config {
    /// Every item of the production requirements that the configuration, read from `path`, breaks: what is wrong, and the fix.
    ///
    /// # Errors
    /// When the file cannot be read any more.
    pub fn production(&self, path: &Path) -> anyhow::Result<Vec<Finding>> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("{} cannot be read again", path.display()))?;
        let lines = Lines::of(&text, file::format_of(path)?);
        let deployment = self.deployment(SocketAddr::new(self.http.host, self.http.port));
        let found = self.auth.check_production(&deployment).into_iter();
        let mut findings: Vec<Finding> = found
            .map(|found| Finding::new(&pointer(found.path), format!("{}; fix: {}", found.problem, found.fix)))
            .collect();
        if self.auth.mode == Mode::Orchestrated
            && deployment.is_https()
            && self.auth.trusted_proxies.is_empty()
        {
            let problem = "HTTPS ends at a proxy that is not trusted, so all callers share the limits of one address; fix: list the \
                           proxy's address or network";
            findings.push(Finding::new("/http/trustedProxies", problem));
        }
        Ok(with_lines(findings, &lines))
    }
}
