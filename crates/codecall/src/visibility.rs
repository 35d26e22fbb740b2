//! Which tools a client lists and calls directly, and which code mode reaches.

use gatewright_core::{DirectAccess, ToolEntry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How code mode and direct access share the tools. Per tool, `enabledInCodeCall` and `visibleInListTools` win.
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
    /// Whether code mode reaches `tool`.
    pub fn in_code(self, tool: &ToolEntry) -> bool {
        tool.meta.enabled_in_code_call.unwrap_or(self != Self::CodecallOptIn)
    }

    /// How a client reaches `tool` without code mode: what is not listed cannot be called directly.
    pub fn direct(self, tool: &ToolEntry) -> DirectAccess {
        match tool.meta.visible_in_list_tools.unwrap_or(self != Self::CodecallOnly) {
            true => DirectAccess::Listed,
            false => DirectAccess::Refused,
        }
    }
}
