//! Counts that an operator watches: failures, refreshes, key-set errors, store errors and how long issuing takes.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Issuing slower than this is counted apart.
const SLOW: Duration = Duration::from_millis(500);

/// Counters of one server; cheap to read at any time.
#[derive(Debug, Default)]
pub struct Metrics {
    auth_failures: AtomicU64,
    issued: AtomicU64,
    refreshed: AtomicU64,
    jwks_errors: AtomicU64,
    store_errors: AtomicU64,
    issue_us: AtomicU64,
    issue_slow: AtomicU64,
    passwords: AtomicU64,
}

impl Metrics {
    pub(crate) fn auth_failed(&self) {
        self.auth_failures.fetch_add(1, Relaxed);
    }

    pub(crate) fn jwks_failed(&self) {
        self.jwks_errors.fetch_add(1, Relaxed);
    }

    pub(crate) fn store_failed(&self) {
        self.store_errors.fetch_add(1, Relaxed);
    }

    pub(crate) fn password_hashed(&self) {
        self.passwords.fetch_add(1, Relaxed);
    }

    pub(crate) fn told(&self, event: &str) {
        match event {
            "token.issued" => self.issued.fetch_add(1, Relaxed),
            "token.refreshed" => self.refreshed.fetch_add(1, Relaxed),
            "login.failed" => self.auth_failures.fetch_add(1, Relaxed),
            _ => return,
        };
    }

    pub(crate) fn took(&self, time: Duration) {
        self.issue_us.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
        if time > SLOW {
            self.issue_slow.fetch_add(1, Relaxed);
        }
    }

    /// The counters in Prometheus text form. No label holds anything of a caller.
    pub fn prometheus(&self) -> String {
        let mut out = String::new();
        let seconds = self.issue_us.load(Relaxed) as f64 / 1e6;
        let _ = writeln!(
            out,
            "# TYPE gatewright_auth_issue_seconds_sum counter\ngatewright_auth_issue_seconds_sum {seconds}"
        );
        for (name, value) in [
            ("failures", &self.auth_failures),
            ("tokens_issued", &self.issued),
            ("tokens_refreshed", &self.refreshed),
            ("jwks_errors", &self.jwks_errors),
            ("store_errors", &self.store_errors),
            ("issue_over_500ms", &self.issue_slow),
            ("passwords_hashed", &self.passwords),
        ] {
            let name = format!("gatewright_auth_{name}_total");
            let _ = writeln!(out, "# TYPE {name} counter\n{name} {}", value.load(Relaxed));
        }
        out
    }
}
