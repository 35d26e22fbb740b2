//! Shapes of results: what a tool's output schema says of the value that scripts get, and what is learned from answers.
//!
//! `declared` reads output schemas, `inputs` keeps the types of arguments, `reading` turns an answer into the value, `open_parts` finds and fills what schemas leave open, `learned` keeps the shapes of all tools, `slot` that of one, `text_kind` the formats of texts, and `sharing`
//! passes them between instances. The shapes
//! themselves are in `gatewright_shape`.

use std::sync::Arc;

use gatewright_core::rmcp::model::JsonObject;

pub(crate) mod declared;
mod inputs;
mod learned;
mod open_parts;
pub(crate) mod reading;
mod restore;
mod sharing;
mod slot;
pub(crate) mod text_kind;

pub(crate) use inputs::SentInput;
pub(crate) use learned::Shapes;
pub(crate) use restore::restore_numbers;
pub(crate) use sharing::SharedShapes;
pub(crate) use text_kind::TextKind;

/// The shape of a tool's results. The value described is the one that `callTool` returns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResultShape {
    /// A JSON Schema.
    pub(crate) schema: Arc<JsonObject>,
    /// Number of answers it was learned from; `None` for a schema that the tool declares.
    pub(crate) observed: Option<u64>,
    /// The format of a value that is text, as far as it was observed.
    pub(crate) text: Option<TextKind>,
}
