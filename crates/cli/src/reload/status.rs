//! The status of reloading, for metrics and `/readyz`.

use gatewright_operator::telemetry::gauge;
use tokio::sync::watch::Receiver;

/// Result of the latest reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// 1 for the configuration that the server started with; one more for each that was applied.
    pub generation: u64,
    /// The file as it is now was rejected; the last good configuration stays in force.
    pub refused: bool,
    /// Paths that differ from the configuration at the start and need a restart.
    pub restart: Vec<String>,
    /// Number of names in the configuration of things that do not exist and the like, as far as the lists of apps are known.
    pub unknown_names: usize,
    /// The first of these findings, for people.
    pub notes: Vec<String>,
}

/// The latest status in the text format of Prometheus.
pub fn metrics(status: Receiver<Status>) -> impl Fn() -> String {
    move || {
        let status = status.borrow();
        [
            (
                "generation",
                "1 at the start, one more for each configuration that was applied",
                status.generation,
            ),
            (
                "refused",
                "1 while the file is invalid and the last valid configuration stays in force",
                u64::from(status.refused),
            ),
            ("restart_pending", "Changed keys that need a restart", status.restart.len() as u64),
            (
                "unknown_names",
                "Names in the configuration of apps, tools and the like that do not exist",
                status.unknown_names as u64,
            ),
        ]
        .into_iter()
        .map(|(name, help, value)| gauge(&format!("gatewright_config_{name}"), help, value as f64))
        .collect()
    }
}

/// The latest status for `/readyz`: nothing that is not public.
pub fn public_status(status: Receiver<Status>) -> impl Fn() -> serde_json::Value {
    move || {
        let status = status.borrow();
        serde_json::json!({
            "generation": status.generation,
            "refused": status.refused,
            "restartPending": !status.restart.is_empty(),
            "unknownNames": status.unknown_names,
        })
    }
}
