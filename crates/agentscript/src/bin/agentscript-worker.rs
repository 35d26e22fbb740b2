//! The worker program of this crate's own tests and benches, and of embedders without a program of their own.
//!
//! With `--misbehave MODE` in front it does what a broken or captured worker would do, so that tests can cause every error of
//! the pool. It still gives up nothing: a process that harms only itself.

use std::{
    fs,
    io::{self, Read, Write},
    os::{fd::AsFd, unix::net::UnixStream},
    process::ExitCode,
};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    if args.next_if(|arg| arg == "--misbehave").is_some() {
        let mode = args.next().unwrap_or_default();
        if let Some(when) = mode.strip_prefix("killed-") {
            let first = args.next().is_some_and(|marker| fs::File::create_new(marker).is_ok());
            if first {
                return killed(when).map_or(ExitCode::FAILURE, |never| match never {});
            }
            return gatewright_agentscript::worker_main(args);
        }
        return match misbehave(&mode) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    gatewright_agentscript::worker_main(args)
}

/// Dies of a signal from outside: when it starts, or once it was given a run.
fn killed(when: &str) -> io::Result<std::convert::Infallible> {
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    if when == "at-its-first-run" {
        socket.write_all(&frame(READY, 0, 0, REPORT, ""))?;
        socket.read_exact(&mut [0; 64])?;
    }
    let kill = format!("kill -9 {}", std::process::id());
    std::process::Command::new("/bin/sh").args(["-c", &kill]).status()?;
    loop {
        std::thread::park();
    }
}

const REPORT: &str = r#"{"seccomp":false,"landlock":false,"rlimits":false,"missing":["misbehaves"]}"#;

const READY: u8 = 1;
const CALL: u8 = 2;
const GET_TOOL: u8 = 3;
const LOG: u8 = 4;
const DONE: u8 = 5;

fn frame(kind: u8, run: u32, id: u32, head: &str, body: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&((13 + head.len() + body.len()) as u32).to_le_bytes());
    bytes.push(kind);
    bytes.extend_from_slice(&run.to_le_bytes());
    bytes.extend_from_slice(&id.to_le_bytes());
    bytes.extend_from_slice(&(head.len() as u32).to_le_bytes());
    bytes.extend_from_slice(head.as_bytes());
    bytes.extend_from_slice(body.as_bytes());
    bytes
}

fn misbehave(mode: &str) -> io::Result<()> {
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    match mode {
        "exit-at-start" => return Ok(()),
        "silent-at-start" => return wait_for_end(&mut socket),
        "garbage-at-start" => {
            socket.write_all(&frame(READY, 0, 0, "{}", ""))?;
            return wait_for_end(&mut socket);
        }
        _ => socket.write_all(&frame(READY, 0, 0, REPORT, ""))?,
    }
    let mut request = [0; 64];
    socket.read_exact(&mut request)?;
    let run = 1;
    let done = |head: &str, body: &str| frame(DONE, run, 0, head, body);
    let answer = match mode {
        "noise" => vec![0x2a; 64],
        "unknown-kind" => frame(99, run, 0, "", ""),
        "wrong-run" => frame(DONE, 77, 0, r#"{"Ok":null}"#, "1"),
        "wrong-id" => frame(CALL, run, 5, "echo", "{}"),
        "not-json-input" => frame(CALL, run, 0, "echo", "{"),
        "not-json-result" => done(r#"{"Ok":null}"#, "{"),
        "unknown-ending" => done("{\"Escaped\":{}}", ""),
        "error-of-the-pool" => done(r#"{"Err":{"Worker":"Disposed"}}"#, ""),
        "answer-to-itself" => frame(17, run, 0, "", "{}"),
        "declares-4-gib" => vec![0xff; 8],
        "result-too-large" => done(r#"{"Ok":null}"#, &format!("\"{}\"", "x".repeat(2 << 20))),
        "flood-of-calls" => (0..5_000).flat_map(|id| frame(GET_TOOL, run, id, "echo", "")).collect(),
        "flood-of-logs" => (0..5_000).flat_map(|_| frame(LOG, run, 0, "", "x")).collect(),
        "too-many-open" => (0..100).flat_map(|id| frame(CALL, run, id, "never", "{}")).collect(),
        "done-and-more" => [done(r#"{"Ok":null}"#, "1"), frame(LOG, run, 0, "", "more")].concat(),
        "abort" => std::process::abort(),
        _ => return wait_for_end(&mut socket),
    };
    socket.write_all(&answer)?;
    wait_for_end(&mut socket)
}

fn wait_for_end(socket: &mut UnixStream) -> io::Result<()> {
    io::copy(socket, &mut io::sink()).map(|_| ())
}
