//! What holds of the demo apps, seen from outside.

mod data;
mod failures;
mod mcp;
mod metadata;
mod outputs;
#[cfg(test)]
mod support;
