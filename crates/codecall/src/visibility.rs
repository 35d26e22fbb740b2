//! Visibility: the tools that a client lists and calls directly, and those that code mode reaches.

use gatewright_core::{DirectAccess, ToolEntry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Visibility of tools in code mode and in direct access. Per tool, `enabledInCodeCall` and `visibleInListTools` win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// `tools/list` shows the meta-tools only, and everything is reached through them. The default.
    #[default]
    CodecallOnly,
    /// Every tool is listed; code mode reaches those that say `enabledInCodeCall: true`.
    CodecallOptIn,
    /// Every tool is listed and reached by code mode unless it says otherwise.
    MetadataDriven,
}

impl Mode {
    /// Returns `true` if code mode reaches `tool`.
    pub fn in_code(self, tool: &ToolEntry) -> bool {
        tool.meta.enabled_in_code_call.unwrap_or(self != Self::CodecallOptIn)
    }

    /// Direct access of clients to `tool`: what is not listed cannot be called directly.
    pub fn direct(self, tool: &ToolEntry) -> DirectAccess {
        match tool.meta.visible_in_list_tools.unwrap_or(self != Self::CodecallOnly) {
            true => DirectAccess::Listed,
            false => DirectAccess::Refused,
        }
    }
}
