//! Choice of executions by app, tool, caller, status and time.

use std::time::{Duration, SystemTime};

use gatewright_core::{Ending, Execution};
use serde::Deserialize;

use crate::advice::REFUSALS;

/// Stretches of time that the form offers: value, words, and seconds.
pub(crate) const TIMES: [(&str, &str, u64); 4] = [
    ("5m", "Last 5 minutes", 300),
    ("1h", "Last hour", 3_600),
    ("6h", "Last 6 hours", 6 * 3_600),
    ("24h", "Last 24 hours", 24 * 3_600),
];

/// A choice of executions, as the form sends it. Empty fields fit all.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Filter {
    /// Id of an app that was called.
    pub(crate) app: String,
    /// Part of the name of the tool, or of one that was called.
    pub(crate) tool: String,
    /// Part of the caller's subject or client.
    pub(crate) caller: String,
    /// `ok`, `failed`, `refused`, or a status or code.
    pub(crate) status: String,
    /// One of [`TIMES`].
    pub(crate) within: String,
    /// Ids below this one.
    pub(crate) before: String,
}

impl Filter {
    /// Returns `true` if every execution fits.
    pub(crate) fn is_empty(&self) -> bool {
        [&self.app, &self.tool, &self.caller, &self.status, &self.within].into_iter().all(String::is_empty)
    }

    /// The id that those of a further page are below.
    pub(crate) fn before(&self) -> Option<u64> {
        self.before.parse().ok()
    }

    /// Returns `true` for an execution that was chosen.
    pub(crate) fn fits(&self, execution: &Execution, now: SystemTime) -> bool {
        self.fits_time(execution, now)
            && self.fits_status(execution)
            && (self.app.is_empty()
                || execution.calls.iter().any(|call| *call.app == *self.app)
                || execution.tool.split_once(':').is_some_and(|(app, _)| app == self.app))
            && (self.tool.is_empty()
                || has(&execution.tool, &self.tool)
                || execution.calls.iter().any(|call| has(&call.tool, &self.tool)))
            && (self.caller.is_empty()
                || has(&execution.principal.subject, &self.caller)
                || execution.principal.client_id.as_deref().is_some_and(|client| has(client, &self.caller)))
    }

    fn fits_time(&self, execution: &Execution, now: SystemTime) -> bool {
        let Some((.., seconds)) = TIMES.iter().find(|(value, ..)| *value == self.within) else { return true };
        execution.started + Duration::from_secs(*seconds) >= now
    }

    fn fits_status(&self, execution: &Execution) -> bool {
        let any = |test: &dyn Fn(&Ending) -> bool| {
            test(&execution.ending) || execution.calls.iter().any(|call| test(&call.ending))
        };
        match self.status.as_str() {
            "" => true,
            "ok" => execution.ending.is_ok(),
            "failed" => !execution.ending.is_ok(),
            "refused" => any(&|ending| REFUSALS.contains(&ending.status())),
            code => any(&|ending| ending.status() == code),
        }
    }

    /// The query of a link to the same choice, without its page.
    pub(crate) fn query(&self) -> String {
        let fields = [
            ("app", &self.app),
            ("tool", &self.tool),
            ("caller", &self.caller),
            ("status", &self.status),
            ("within", &self.within),
        ];
        let fields = fields.iter().filter(|(_, value)| !value.is_empty());
        let fields: Vec<String> =
            fields.map(|(name, value)| format!("{name}={}", crate::pages::encode(value))).collect();
        fields.join("&")
    }
}

/// Returns `true` if `text` has `part`, in either case.
fn has(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.trim().to_lowercase())
}
