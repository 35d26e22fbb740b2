//! Result shapes of tools, as scripts see results after unwrapping.

use std::sync::Arc;

use gatewright_core::{Caller, ToolEntry, rmcp::model::JsonObject};

use crate::CodeCall;
pub(crate) use crate::shapes::ResultShape;

impl CodeCall {
    /// The JSON Schema that was learned from answers of `tool`, with the names that `caller` may see, and the number of answers. Of a tool that declares one
    /// it is that, with what was learned where it leaves types open. `None` where it leaves none open, or nothing was learned.
    pub fn observed_output(&self, tool: &ToolEntry, caller: &Caller) -> Option<(Arc<JsonObject>, u64)> {
        let shape = self.shapes.shown_shape(tool, caller)?;
        Some((shape.schema, shape.observed?))
    }
}
