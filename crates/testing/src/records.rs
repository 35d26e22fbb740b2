//! What the client hands out: records with the contract's fields, `Serialize` in a stable order, the wire kept as `raw`.

mod definitions;
mod prompt;
mod resource;
mod rpc;
mod stable;
mod tool_result;

pub use definitions::{Prompt, PromptArgument, Resource, ResourceTemplate, Tool};
pub use prompt::{PromptMessage, PromptResult};
pub use resource::ResourceContent;
pub use rpc::{RpcError, RpcResponse};
pub use tool_result::{Image, ToolResult};

/// A part of a record is not there, or not of the kind that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub(crate) String);
