//! Result shapes of tools, as scripts see results after unwrapping.

use std::sync::Arc;

use gatewright_core::{Caller, ToolEntry, rmcp::model::JsonObject};

use crate::{CodeCall, shapes::declared};

/// The shape of a tool's results. The value described is the one that `callTool` returns.
#[derive(Debug, Clone, PartialEq)]
#[allow(dead_code, reason = "read by describe and the checks of plans")]
pub(crate) struct ResultShape {
    /// A JSON Schema.
    pub(crate) schema: Arc<JsonObject>,
    /// Number of answers it was learned from; `None` for a schema that the tool declares.
    pub(crate) observed: Option<u64>,
}

#[allow(dead_code, reason = "called by describe and the checks of plans")]
impl CodeCall {
    /// The shape of the results of `tool`, as far as `caller` may know it: the declared output schema, unless it says nothing.
    pub(crate) fn result_shape(&self, tool: &ToolEntry, _caller: &Caller) -> Option<ResultShape> {
        declared(tool)
    }
}

/// The shape that the tool declares, unless it says nothing.
pub(crate) fn declared(tool: &ToolEntry) -> Option<ResultShape> {
    let declared = tool.tool.output_schema.as_ref().and_then(declared::as_scripts_see_it);
    declared.map(|schema| ResultShape { schema, observed: None })
}
