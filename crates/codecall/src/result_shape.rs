//! Result shapes of tools, as scripts see results after unwrapping.

use std::sync::Arc;

use gatewright_core::{Caller, ToolEntry, rmcp::model::JsonObject};

use crate::CodeCall;
pub(crate) use crate::shapes::ResultShape;

impl CodeCall {
    /// The shape of the results of `tool`, as far as `caller` may know it: the declared output schema, or what was learned from
    /// answers where that says nothing.
    pub(crate) fn result_shape(&self, tool: &ToolEntry, caller: &Caller) -> Option<ResultShape> {
        self.shapes.result_shape(tool, caller)
    }

    /// The JSON Schema that was learned from answers of `tool`, with the names that `caller` may see, and the number of answers; `None` where
    /// the tool declares one or nothing was learned.
    pub fn observed_output(&self, tool: &ToolEntry, caller: &Caller) -> Option<(Arc<JsonObject>, u64)> {
        let shape = self.result_shape(tool, caller)?;
        Some((shape.schema, shape.observed?))
    }
}
