//! Result shapes of tools, as scripts see results after unwrapping.

use gatewright_core::{Caller, ToolEntry};

use crate::CodeCall;
pub(crate) use crate::shapes::ResultShape;

impl CodeCall {
    /// The shape of the results of `tool`, as far as `caller` may know it: the declared output schema, or what was learned from
    /// answers where that says nothing.
    pub(crate) fn result_shape(&self, tool: &ToolEntry, caller: &Caller) -> Option<ResultShape> {
        self.shapes.result_shape(tool, caller)
    }
}
