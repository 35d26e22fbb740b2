//! Any text as requests to the server in front of MCP.
#![no_main]
#![allow(dead_code, reason = "the helpers are those of all the crate's tests")]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/server/tests/it/fuzz.rs"]
mod body;
#[path = "../../crates/server/tests/it/support.rs"]
mod support;

fuzz_target!(|bytes: &[u8]| body::check(bytes));
