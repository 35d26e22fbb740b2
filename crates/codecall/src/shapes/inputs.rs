//! Shapes of inputs that tools accepted, where their input schemas leave the type open: examples have the same names and types, and no values.

use std::sync::Arc;

use gatewright_core::{Caller, ToolEntry, rmcp::model::JsonObject};
use gatewright_shape::Shape;

use super::{
    Shapes, declared,
    learned::witness,
    open_parts::{Required, complete},
    slot::Slot,
};

/// Parts of an input that are looked at.
const WORK: usize = 256;

/// The shape of an input whose call is under way.
pub(crate) struct SentInput {
    slot: Arc<Slot>,
    shape: Shape,
    to_share: bool,
}

impl SentInput {
    /// Keeps the shape: the tool took the input.
    pub(crate) fn accepted(self) {
        self.slot.lock().learn_input(self.shape, self.to_share);
    }
}

impl Shapes {
    /// The shape of `input`, if it is to be learned when `tool` accepts it.
    pub(crate) fn sent_input(
        &self,
        tool: &ToolEntry,
        caller: &Caller,
        input: &JsonObject,
    ) -> Option<SentInput> {
        if input.is_empty() || !self.is_on() || !declared::read(tool).is_input_open {
            return None;
        }
        let slot = self.slot_of(tool, caller);
        if !slot.looks_at_next_input() {
            return None;
        }
        let mut shape = Shape::default();
        shape.learn_members(input, witness(caller), WORK);
        Some(SentInput { slot, shape, to_share: self.is_shared() })
    }

    /// The input schema of `tool`, with the types of inputs that it accepted where it leaves them open and `caller` may know them; `None` if
    /// nothing was learned.
    pub(crate) fn observed_input(&self, tool: &ToolEntry, caller: &Caller) -> Option<JsonObject> {
        let observed = self.slot_if_known(tool, caller)?.lock().input_schema(witness(caller))?;
        let mut completed = (**tool.input_schema()).clone();
        complete(&mut completed, &observed, Required::AsObserved);
        Some(completed)
    }
}
