//! Any bytes as a script to validate, on a thread with the stack that validation asks for.
#![no_main]

use std::thread;

use gatewright_agentscript::{VALIDATE_STACK, fuzz};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(VALIDATE_STACK).spawn_scoped(scope, || fuzz::validator(bytes));
        thread.expect("a thread").join().expect("no panic");
    });
});
