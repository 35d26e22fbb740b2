//! A tool as the gateway knows it: the wire form, the app behind it, and what its author or the operator said.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AppEntry, InputSchema};

/// An AgentScript example of a tool's use (contract: `usageExamples`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageExample {
    /// What the example does.
    pub description: String,
    /// AgentScript code.
    pub code: String,
}

/// What a tool's author says about it under `_meta.gatewright`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolMeta {
    /// Examples, best first. At most 5 are shown.
    pub examples: Vec<UsageExample>,
    /// Scopes a caller needs, all of them.
    pub scopes: Vec<String>,
    /// Whether code mode reaches the tool. Default: as the visibility mode says.
    pub enabled_in_code_call: Option<bool>,
    /// Whether `tools/list` shows the tool. Default: as the visibility mode says.
    pub visible_in_list_tools: Option<bool>,
}

/// What the operator says about a tool; it wins over the author's word. Scopes are added, never taken away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ToolOverride {
    /// Scopes a caller needs besides the author's.
    pub scopes: Vec<String>,
    /// Whether code mode reaches the tool.
    pub enabled_in_code_call: Option<bool>,
    /// Whether `tools/list` shows the tool.
    pub visible_in_list_tools: Option<bool>,
    /// `true` removes the tool altogether. Default false.
    pub disabled: bool,
}

const META_KEY: &str = "gatewright";

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
        self.enabled_in_code_call = over.enabled_in_code_call.or(self.enabled_in_code_call);
        self.visible_in_list_tools = over.visible_in_list_tools.or(self.visible_in_list_tools);
        self
    }
}

/// One tool of the registry.
pub struct ToolEntry {
    /// Public name in the colon form: `<app>:<tool>`.
    pub name: Arc<str>,
    /// The app's own name for it.
    pub local_name: Arc<str>,
    /// The app's id.
    pub app_id: Arc<str>,
    /// Wire form as listed: public name, without `_meta.gatewright`.
    pub tool: Tool,
    /// Author's and operator's word; its scopes include those of the app.
    pub meta: ToolMeta,
    /// Input schema, compiled at first use.
    pub schema: InputSchema,
    /// Tells tools of one name apart that differ from caller to caller; none for a tool that is the same for everybody.
    pub variant: Option<[u8; 16]>,
    pub(crate) owner: AppEntry,
}

impl std::fmt::Debug for ToolEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolEntry").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ToolEntry {
    /// The description, or an empty text.
    pub fn description(&self) -> &str {
        self.tool.description.as_deref().unwrap_or_default()
    }

    /// Input schema as listed.
    pub fn input_schema(&self) -> &Arc<JsonObject> {
        &self.tool.input_schema
    }

    /// Output schema, when the tool has one.
    pub fn output_schema(&self) -> Option<Value> {
        self.tool.output_schema.as_ref().map(|schema| Value::Object((**schema).clone()))
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
