//! A tool as the gateway knows it: the wire form, the app behind it, and what its author or the operator said.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool};
use serde_json::Value;

use crate::{AppEntry, InputSchema, ToolMeta};

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
