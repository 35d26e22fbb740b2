//! JSON-RPC messages and MCP records, as a test sends and receives them.
//!
//! Records have the fields of the specification, keep the wire form as `raw`, and serialize with sorted keys.

mod definitions;
mod error;
mod notification;
mod prompt;
mod record;
mod request;
mod resource;
mod response;
mod tool_result;

pub use definitions::{Prompt, PromptArgument, Resource, ResourceTemplate, Tool};
pub use error::ClientError;
pub use notification::Notification;
pub use prompt::{PromptMessage, PromptResult};
pub use record::RecordError;
pub use request::RpcRequest;
pub use resource::ResourceContent;
pub use response::{RpcError, RpcResponse};
pub use tool_result::{Image, ToolResult};
