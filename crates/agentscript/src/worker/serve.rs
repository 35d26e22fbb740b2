//! The worker's loop: one run at a time, each in a realm that was put back to a fresh one's memory before it.

use std::{cell::RefCell, io, os::unix::net::UnixStream, process::ExitCode, rc::Rc, thread};

use super::{Link, SandboxReport, harden};
use crate::{
    engine::{Compiler, Ending, Realm, Settings},
    protocol::Kind,
    script::VALIDATE_STACK,
};

/// Stack of the thread that validates and runs scripts, in bytes. Deeply nested text is parsed by recursion; the pages are
/// only used when touched.
pub(crate) const WORKER_STACK: usize = VALIDATE_STACK + 16 * 1024 * 1024;
/// Longest frame a worker accepts: the largest message of any preset with room to spare.
const MAX_FRAME: usize = 64 * 1024 * 1024;

/// What the `worker` subcommand calls: takes the socket on standard input, gives up every capability, serves runs until the
/// socket closes. `args` are the arguments after `worker`, written by the pool.
///
/// The exit code is 0 when the pool closed the socket, 2 when the process could not start to serve.
pub fn worker_main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let Some(mut plan) = harden::Plan::from_args(args) else {
        return ExitCode::from(2);
    };
    let Ok(stream) = harden::enter(&mut plan) else {
        return ExitCode::from(2);
    };
    let serve = move || {
        let report = harden::lock(&plan);
        serve(stream, report)
    };
    let thread = thread::Builder::new().stack_size(WORKER_STACK).spawn(serve);
    match thread.map(thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        _ => ExitCode::from(2),
    }
}

/// Serves runs on `stream` until the other end closes it.
///
/// # Errors
/// The socket failed, or a frame was not one.
pub(crate) fn serve(stream: UnixStream, report: SandboxReport) -> io::Result<()> {
    let link = Rc::new(RefCell::new(Link::new(stream, MAX_FRAME)));
    let broken = |_| io::Error::other("the engine could not build a realm");
    let compiler = Compiler::new().map_err(broken)?;
    let mut realm = Realm::new(Rc::clone(&link), &compiler).map_err(broken)?;
    let report = serde_json::to_string(&report)?;
    link.borrow_mut().send(Kind::Ready, 0, 0, &report, &[])?;
    loop {
        let (run, settings, body) = {
            let mut link = link.borrow_mut();
            let Some(frame) = link.next()? else { return Ok(()) };
            match frame.kind {
                Kind::Run => {
                    let settings: Settings = serde_json::from_str(frame.head)?;
                    (frame.run, settings, frame.body.to_owned())
                }
                // Answers of a run that is over.
                Kind::Answer | Kind::Failure | Kind::Stop => continue,
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        };
        let (script, context) =
            body.split_at_checked(settings.script_len).ok_or(io::ErrorKind::InvalidData)?;
        let prepared = crate::engine::prepare(script, &settings);
        let ran = prepared.is_ok();
        let (ending, result) = match prepared {
            Ok(script) => realm.run(run, &script, context, &settings, &compiler),
            Err(ending) => (ending, String::new()),
        };
        let head = serde_json::to_string::<Ending>(&ending.cut())?;
        link.borrow_mut().send(Kind::Done, run, 0, &head, &[&result])?;
        // The answer is on its way: what follows costs nobody any time.
        if ran {
            realm.reset();
        }
    }
}
