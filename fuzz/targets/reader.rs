//! Any bytes as a script to read, on a thread with the stack that validation asks for.
#![no_main]

use std::thread;

use gatewright_agentscript::{VALIDATE_STACK, fuzz};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    thread::scope(|scope| {
        let read = || fuzz::validator(bytes);
        let thread = thread::Builder::new().stack_size(VALIDATE_STACK).spawn_scoped(scope, read);
        thread.expect("a thread").join().expect("no panic");
    });
});
