//! Counts that an operator watches: failures, refreshes, key-set errors, store errors and how long issuing takes.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Upper bounds of the histogram of how long issuing takes, in seconds; 0.5 is the alert's.
const SECONDS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];
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
    /// Answers by the first bound they are within; the last is beyond all.
    issue_within: [AtomicU64; SECONDS.len() + 1],
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
        let within = SECONDS.partition_point(|bound| *bound < time.as_secs_f64());
        self.issue_within[within].fetch_add(1, Relaxed);
        if time > SLOW {
            self.issue_slow.fetch_add(1, Relaxed);
        }
    }

    /// The counters in Prometheus text form. No label holds anything of a caller.
    pub fn prometheus(&self) -> String {
        let mut out = String::new();
        self.issued_in(&mut out);
        for (name, help, value) in [
            ("failures", "Refused credentials and failed logins", &self.auth_failures),
            ("tokens_issued", "Tokens issued for a grant that was not a refresh", &self.issued),
            ("tokens_refreshed", "Tokens issued for a refresh token", &self.refreshed),
            ("jwks_errors", "Key sets that could not be fetched", &self.jwks_errors),
            ("store_errors", "Requests that the token store did not answer", &self.store_errors),
            (
                "issue_over_500ms",
                "Answers of the token endpoint that took longer than 500 ms",
                &self.issue_slow,
            ),
            ("passwords_hashed", "Logins that cost a hash", &self.passwords),
        ] {
            let (name, value) = (format!("gatewright_auth_{name}_total"), value.load(Relaxed));
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}");
        }
        out
    }

    /// The histogram of the token endpoint.
    fn issued_in(&self, out: &mut String) {
        const NAME: &str = "gatewright_auth_issue_seconds";
        let _ = writeln!(out, "# HELP {NAME} How long the token endpoint takes to issue tokens");
        let _ = writeln!(out, "# TYPE {NAME} histogram");
        let mut count = 0;
        let bounds = SECONDS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (bound, within) in bounds.zip(&self.issue_within) {
            count += within.load(Relaxed);
            let _ = writeln!(out, "{NAME}_bucket{{le=\"{bound}\"}} {count}");
        }
        let seconds = self.issue_us.load(Relaxed) as f64 / 1e6;
        let _ = writeln!(out, "{NAME}_sum {seconds}\n{NAME}_count {count}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_is_within_its_bound_and_those_above_it() {
        let metrics = Metrics::default();
        for ms in [1, 5, 6, 500, 501, 9_000] {
            metrics.took(Duration::from_millis(ms));
        }
        let text = metrics.prometheus();
        for line in [
            "gatewright_auth_issue_seconds_bucket{le=\"0.005\"} 2",
            "gatewright_auth_issue_seconds_bucket{le=\"0.01\"} 3",
            "gatewright_auth_issue_seconds_bucket{le=\"0.5\"} 4",
            "gatewright_auth_issue_seconds_bucket{le=\"1\"} 5",
            "gatewright_auth_issue_seconds_bucket{le=\"+Inf\"} 6",
            "gatewright_auth_issue_seconds_count 6",
            "gatewright_auth_issue_seconds_sum 10.013",
            "gatewright_auth_issue_over_500ms_total 2",
        ] {
            assert!(text.lines().any(|held| held == line), "{line}: {text}");
        }
    }
}
