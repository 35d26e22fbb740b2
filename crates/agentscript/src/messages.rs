//! Heads of the frames between the pool and its workers, as JSON.

use serde::{Deserialize, Serialize};

use crate::{limits::Limits, policy::ScriptPolicy};

/// Head of `MessageKind::Run`; the body holds the script and its context.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunSettings {
    pub(crate) limits: Limits,
    pub(crate) policy: ScriptPolicy,
    /// Seed of `Math.random`.
    pub(crate) seed: u64,
    /// Milliseconds since the Unix epoch at the start of the run.
    pub(crate) now_ms: f64,
    /// Bytes of the script at the start of the body; the rest is the context.
    pub(crate) script_len: usize,
}
