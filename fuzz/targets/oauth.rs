//! Any text as requests to the authorization server.
#![no_main]
#![allow(dead_code, reason = "the helpers are those of all the crate's tests")]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/auth/tests/it/fuzz.rs"]
mod body;
#[path = "../../crates/auth/tests/it/support/site.rs"]
mod site;

mod support {
    pub(crate) use crate::site;
}

fuzz_target!(|bytes: &[u8]| body::check(bytes));
