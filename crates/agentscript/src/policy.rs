//! The policy of a run: rules for the text of its script.

use serde::{Deserialize, Serialize};

use crate::limits::Preset;

/// Rules for the text of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptPolicy {
    /// Table of rules. Default `Preset::Secure`.
    pub preset: Preset,
    /// `console` exists. Default `true`, in `Preset::LockedDown` `false`.
    pub allow_console: bool,
    /// Starts of tool names that scripts may not call, such as `codecall:`. Compared without regard to ASCII case. Default none.
    pub reserved_tool_prefixes: Vec<String>,
}

impl ScriptPolicy {
    /// The policy that goes with `preset`: console where the preset has one, no reserved names.
    pub fn new(preset: Preset) -> Self {
        Self { preset, allow_console: preset != Preset::LockedDown, reserved_tool_prefixes: Vec::new() }
    }

    /// Turns `console` on or off.
    #[must_use]
    pub fn allow_console(mut self, allow: bool) -> Self {
        self.allow_console = allow;
        self
    }

    /// Names whose call is a self-reference.
    #[must_use]
    pub fn reserved_tool_prefixes<S: Into<String>>(mut self, prefixes: impl IntoIterator<Item = S>) -> Self {
        self.reserved_tool_prefixes = prefixes.into_iter().map(Into::into).collect();
        self
    }

    /// Returns true for the name of a tool that scripts may not call.
    pub(crate) fn is_reserved(&self, name: &str) -> bool {
        let name = name.trim().to_ascii_lowercase();
        self.reserved_tool_prefixes.iter().any(|prefix| name.starts_with(&prefix.to_ascii_lowercase()))
    }

    /// Returns true when `console` exists in the run.
    pub fn console_allowed(&self) -> bool {
        self.allow_console
    }

    /// Returns true when regular expressions, literal or built, exist in the run.
    pub fn regexp_allowed(&self) -> bool {
        self.preset != Preset::LockedDown
    }
}

impl Default for ScriptPolicy {
    fn default() -> Self {
        Self::new(Preset::default())
    }
}
