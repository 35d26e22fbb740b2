//! Any text as a configuration.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| gatewright_cli::fuzz::config(bytes));
