//! From the caller's text to what the engine compiles.

use serde::{Deserialize, Serialize};

use super::{Ending, Settings};

/// What a script's text may contain.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScriptPolicy {
    allow_console: bool,
}

impl Default for ScriptPolicy {
    fn default() -> Self {
        Self { allow_console: true }
    }
}

impl ScriptPolicy {
    pub(crate) fn console_allowed(&self) -> bool {
        self.allow_console
    }

    pub(crate) fn regexp_allowed(&self) -> bool {
        true
    }
}

/// Validates `source`; gives the text to run.
pub(crate) fn prepare(source: &str, _settings: &Settings) -> Result<String, Ending> {
    Ok(source.to_owned())
}
