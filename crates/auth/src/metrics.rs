//! Counters for operators: failures, refreshes, key-set errors, store errors, and the time to issue tokens.

use std::time::Duration;

use prometheus::{Error, Histogram, HistogramOpts, IntCounter, Registry, TextEncoder};

/// Upper bounds of the histogram of the time to issue tokens, in seconds. The alert uses 0.5.
const SECONDS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];
/// Issuing slower than this is counted apart.
const SLOW: Duration = Duration::from_millis(500);

/// Counters of one server; cheap to read at any time.
#[derive(Debug)]
pub struct Metrics {
    all: Registry,
    auth_failures: IntCounter,
    issued: IntCounter,
    refreshed: IntCounter,
    jwks_errors: IntCounter,
    store_errors: IntCounter,
    issue: Histogram,
    issue_slow: IntCounter,
    passwords: IntCounter,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new().expect("the names are valid and each is registered once")
    }
}

impl Metrics {
    fn new() -> Result<Self, Error> {
        let all = Registry::new();
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::new(format!("gatewright_auth_{name}_total"), help)?;
            all.register(Box::new(counter.clone()))?;
            Ok::<_, Error>(counter)
        };
        let opts = HistogramOpts::new(
            "gatewright_auth_issue_seconds",
            "Time that the token endpoint takes to issue tokens",
        );
        let issue = Histogram::with_opts(opts.buckets(SECONDS.to_vec()))?;
        all.register(Box::new(issue.clone()))?;
        Ok(Self {
            auth_failures: counter("failures", "Refused credentials and failed logins")?,
            issued: counter("tokens_issued", "Tokens issued for a grant that was not a refresh")?,
            refreshed: counter("tokens_refreshed", "Tokens issued for a refresh token")?,
            jwks_errors: counter("jwks_errors", "Key sets that could not be fetched")?,
            store_errors: counter("store_errors", "Requests that the token store did not answer")?,
            issue_slow: counter(
                "issue_over_500ms",
                "Answers of the token endpoint that took longer than 500 ms",
            )?,
            passwords: counter("passwords_hashed", "Logins that cost a hash")?,
            issue,
            all,
        })
    }

    pub(crate) fn auth_failed(&self) {
        self.auth_failures.inc();
    }

    pub(crate) fn jwks_failed(&self) {
        self.jwks_errors.inc();
    }

    pub(crate) fn store_failed(&self) {
        self.store_errors.inc();
    }

    pub(crate) fn password_hashed(&self) {
        self.passwords.inc();
    }

    pub(crate) fn count_event(&self, event: &str) {
        match event {
            "token.issued" => self.issued.inc(),
            "token.refreshed" => self.refreshed.inc(),
            "login.failed" => self.auth_failures.inc(),
            _ => {}
        }
    }

    pub(crate) fn token_issued(&self, time: Duration) {
        self.issue.observe(time.as_secs_f64());
        if time > SLOW {
            self.issue_slow.inc();
        }
    }

    /// Returns the counters in Prometheus text form. No label has a value of a caller.
    pub fn prometheus(&self) -> String {
        let text = TextEncoder::new().encode_to_string(&self.all.gather());
        text.unwrap_or_else(|error| format!("# metrics cannot be rendered: {error}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_is_within_its_bound_and_those_above_it() {
        let metrics = Metrics::default();
        for ms in [1, 5, 6, 500, 501, 9_000] {
            metrics.token_issued(Duration::from_millis(ms));
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
