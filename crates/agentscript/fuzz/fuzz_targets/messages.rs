//! Any bytes as what a worker sends.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| gatewright_agentscript::fuzz::messages(bytes));
