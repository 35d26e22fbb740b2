//! Any bytes as what a worker says to its pool, and a pool to its worker.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| gatewright_agentscript::fuzz::worker(bytes));
