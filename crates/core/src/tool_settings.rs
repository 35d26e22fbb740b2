//! Settings of a tool by its author and by the operator.

use rmcp::model::{JsonObject, Tool};
use serde::{Deserialize, Serialize};

use crate::Approval;

/// An AgentScript example of a tool's use (contract: `usageExamples`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageExample {
    /// Description of the example.
    pub description: String,
    /// AgentScript code.
    pub code: String,
}

/// Settings by a tool's author, under `_meta.gatewright`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolMeta {
    /// Examples, best first. At most 5 are used.
    pub examples: Vec<UsageExample>,
    /// Scopes a caller needs, all of them.
    pub scopes: Vec<String>,
    /// `true` lets code mode reach the tool. Default: as the visibility mode says.
    pub enabled_in_code_call: Option<bool>,
    /// `true` shows the tool in `tools/list`. Default: as the visibility mode says.
    pub visible_in_list_tools: Option<bool>,
}

/// Settings by the operator; they win over the author's. Scopes are added, never removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ToolOverride {
    /// Scopes a caller needs besides the author's.
    pub scopes: Vec<String>,
    /// `true` lets code mode reach the tool.
    pub enabled_in_code_call: Option<bool>,
    /// `true` shows the tool in `tools/list`.
    pub visible_in_list_tools: Option<bool>,
    /// The approval that calls of the tool need. Default: as `approvals` says.
    pub approval: Option<Approval>,
    /// `true` removes the tool altogether. Default false.
    pub disabled: bool,
    /// The name under which it is offered in place of its own.
    #[serde(rename = "as")]
    pub name: Option<String>,
    /// The title in place of its own.
    pub title: Option<String>,
    /// The description in place of its own.
    pub description: Option<String>,
    /// Arguments of calls that leave them out, by parameter.
    pub defaults: JsonObject,
    /// Parameters that callers neither see nor send.
    pub hide: Vec<String>,
    /// `true` holds the definition to the approved one. Default: as the app says.
    pub pin: Option<bool>,
}

impl ToolOverride {
    /// Returns `true` if the tool is shown other than its server defines it.
    pub fn reshapes(&self) -> bool {
        self.name.is_some()
            || self.title.is_some()
            || self.description.is_some()
            || !self.defaults.is_empty()
            || !self.hide.is_empty()
    }
}

pub(crate) const META_KEY: &str = "gatewright";

impl ToolMeta {
    /// Reads `_meta.gatewright`. Parts that do not parse are left out: an author's slip hides no tool.
    pub fn of(tool: &Tool) -> Self {
        let Some(value) = tool.meta.as_ref().and_then(|meta| meta.0.get(META_KEY)) else {
            return Self::default();
        };
        serde_json::from_value(value.clone()).unwrap_or_else(|error| {
            tracing::warn!(tool.name = %tool.name, %error, "`_meta.gatewright` of a tool does not parse and is ignored");
            Self::default()
        })
    }

    /// The author's word with the operator's on top.
    #[must_use]
    pub fn with(mut self, over: &ToolOverride) -> Self {
        self.scopes.extend(over.scopes.iter().cloned());
        // Examples of the author use the author's names.
        if over.name.is_some() || !over.hide.is_empty() {
            self.examples.clear();
        }
        self.enabled_in_code_call = over.enabled_in_code_call.or(self.enabled_in_code_call);
        self.visible_in_list_tools = over.visible_in_list_tools.or(self.visible_in_list_tools);
        self
    }
}

/// `tool` under its public name, without what only the gateway reads.
pub(crate) fn listed(mut tool: Tool, public_name: String) -> Tool {
    tool.name = public_name.into();
    if let Some(meta) = tool.meta.as_mut() {
        meta.0.shift_remove(META_KEY);
        if meta.0.is_empty() {
            tool.meta = None;
        }
    }
    tool
}
