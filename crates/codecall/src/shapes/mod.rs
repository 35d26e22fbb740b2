//! Shapes of results: what a tool's output schema says of the value that scripts get.

pub(crate) mod declared;
