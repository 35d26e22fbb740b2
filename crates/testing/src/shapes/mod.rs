//! Shapes of a server's messages: every answer, notification and request is checked against MCP's own schema of the negotiated revision,
//! and against rules that the schema cannot express.
//!
//! `checker` has the state of one client; the other files have one rule or a few of them each. Nothing here sends anything.

mod base64;
mod capabilities;
mod checker;
mod lists;
mod messages;
mod revision;
mod rule;
mod strict;
mod tools;
mod uris;
mod violation;

pub(crate) use checker::Checker;
pub use rule::Rule;
pub use strict::Strict;
pub use violation::Violation;
