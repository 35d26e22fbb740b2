//! Any bytes as a script to read, on a thread with the stack that validation asks for.
#![no_main]

use std::{
    sync::{
        LazyLock, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use gatewright_agentscript::{VALIDATE_STACK, fuzz};
use libfuzzer_sys::fuzz_target;

type Reader = (Sender<Vec<u8>>, Receiver<()>);

/// One thread for all inputs: it keeps an engine to compile with.
static READER: LazyLock<Mutex<Reader>> = LazyLock::new(|| {
    let (input, inputs) = channel::<Vec<u8>>();
    let (tell, done) = channel();
    let read = move || inputs.iter().try_for_each(|bytes| tell.send(fuzz::validator(&bytes)));
    thread::Builder::new().stack_size(VALIDATE_STACK).spawn(read).expect("a thread");
    Mutex::new((input, done))
});

fuzz_target!(|bytes: &[u8]| {
    let reader = READER.lock().expect("no panic");
    reader.0.send(bytes.to_vec()).expect("a thread that reads");
    reader.1.recv().expect("no panic");
});
