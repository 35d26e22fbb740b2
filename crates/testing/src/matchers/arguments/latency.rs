//! Limits of durations.

use std::time::Duration;

use super::kept::Kept;

/// The percentiles that have limits, by name.
pub(in crate::matchers) const PERCENTILES: [(&str, f64); 6] =
    [("p50", 50.0), ("p75", 75.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0), ("max", 100.0)];

/// Limits of durations, in milliseconds. A plain number or [`Duration`] is the limit of every one.
///
/// A percentile is the smallest duration that at least this share of all does not exceed (nearest rank).
#[derive(Debug, Clone, Default)]
pub struct Latency {
    /// Name, percentage and limit.
    pub(in crate::matchers) limits: Vec<(&'static str, f64, f64)>,
    pub(in crate::matchers) baseline: Option<Kept>,
    pub(in crate::matchers) tolerance: Option<f64>,
}

macro_rules! limits {
    ($($name:ident: $what:literal),+) => {$(
        #[doc = concat!("Limits ", $what, ", in milliseconds.")]
        #[must_use]
        pub fn $name(self, ms: f64) -> Self {
            self.limit(stringify!($name), ms).unwrap_or_default()
        }
    )+};
}

impl Latency {
    limits! {
        p50: "the median", p75: "the 75th percentile", p90: "the 90th percentile", p95: "the 95th percentile",
        p99: "the 99th percentile", max: "every duration"
    }

    /// Compares the median and the 95th percentile with those in this file, at least 10 durations each. The file is written if the
    /// environment variable `GATEWRIGHT_UPDATE` is set.
    #[must_use]
    pub fn baseline(self, file: impl Into<std::path::PathBuf>) -> Self {
        self.baseline_in(Kept::file(file.into()))
    }

    /// Sets how much slower than the baseline is still good, in percent. Default 50. A difference below 5 ms is always good.
    #[must_use]
    pub fn tolerance(mut self, percent: f64) -> Self {
        self.tolerance = Some(percent);
        self
    }

    pub(in crate::matchers) fn baseline_in(mut self, kept: Kept) -> Self {
        self.baseline = Some(kept);
        self
    }

    /// Adds the limit of a percentile, by its name. `None` for an unknown one.
    pub(in crate::matchers) fn limit(mut self, name: &str, ms: f64) -> Option<Self> {
        let (name, percent) = PERCENTILES.into_iter().find(|(known, _)| *known == name)?;
        self.limits.push((name, percent, ms));
        Some(self)
    }
}

impl From<f64> for Latency {
    fn from(ms: f64) -> Self {
        Self::default().max(ms)
    }
}

impl From<Duration> for Latency {
    fn from(limit: Duration) -> Self {
        Self::default().max(limit.as_secs_f64() * 1e3)
    }
}
