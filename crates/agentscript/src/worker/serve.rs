//! The worker's loop: one run at a time, each in a realm whose memory was restored to its first state.

use std::{cell::RefCell, io, os::unix::net::UnixStream, process::ExitCode, rc::Rc, thread};

use super::{Link, SandboxReport, harden, sandbox::Plan};
use crate::{
    engine::{Compiler, Realm},
    messages::RunSettings,
    outcome::RunError,
    protocol::MessageKind,
    source::ScriptSource,
    validate::VALIDATE_STACK,
};

/// Stack of the thread that validates and runs scripts, in bytes. Deeply nested text is parsed by recursion; the pages are
/// only used when touched.
pub(crate) const WORKER_STACK: usize = VALIDATE_STACK + 16 * 1024 * 1024;
/// Longest frame a worker accepts: the largest message of any preset with room to spare.
const MAX_FRAME: usize = 64 * 1024 * 1024;

/// Runs the `worker` subcommand: takes the socket on standard input, gives up every capability and serves runs until the
/// socket closes. `args` are the arguments after `worker`, written by the pool.
///
/// The exit code is 0 when the pool closed the socket, 2 when the process could not start to serve.
pub fn worker_main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let Some(mut plan) = Plan::from_args(args) else {
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
    link.borrow_mut().send(MessageKind::Ready, 0, 0, &report, &[])?;
    loop {
        let (run, settings, body) = {
            let mut link = link.borrow_mut();
            let Some(frame) = link.next()? else { return Ok(()) };
            match frame.kind {
                MessageKind::Run => {
                    let settings: RunSettings = serde_json::from_str(frame.head)?;
                    (frame.run, settings, frame.body.to_owned())
                }
                // For a run that is over.
                MessageKind::Answer | MessageKind::Failure | MessageKind::Stop | MessageKind::Ping => {
                    continue;
                }
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        };
        let (script, context) =
            body.split_at_checked(settings.script_len).ok_or(io::ErrorKind::InvalidData)?;
        let validated = ScriptSource::new(script).validate(&settings.policy, &settings.limits);
        let ran = validated.is_ok();
        let result = match validated {
            Ok(script) => {
                if let Some(facts) = script.plan().to_json() {
                    // It goes out with the first call, or with the result.
                    link.borrow_mut().queue(MessageKind::Plan, run, 0, "", &[&facts])?;
                }
                realm.run(run, &script, context, &settings, &compiler)
            }
            Err(rejection) => Err(rejection.into()),
        };
        let (head, body) = match result {
            Ok(value) => (Ok(()), value),
            Err(error) => (Err(error.cut()), String::new()),
        };
        let head = serde_json::to_string::<Result<(), RunError>>(&head)?;
        link.borrow_mut().send(MessageKind::Done, run, 0, &head, &[&body])?;
        // The answer is on its way: what follows costs nobody any time.
        if ran {
            realm.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::{Limits, ScriptPolicy, protocol};

    #[test]
    fn messages_for_a_run_that_is_over_are_left_out() {
        let (pool, worker) = UnixStream::pair().unwrap();
        let serving = thread::Builder::new().stack_size(WORKER_STACK);
        let serving = serving.spawn(|| serve(worker, SandboxReport::default())).unwrap();
        let settings = RunSettings {
            limits: Limits::default(),
            policy: ScriptPolicy::default(),
            seed: 0,
            now_ms: 0.0,
            script_len: 8,
        };
        let settings = serde_json::to_string(&settings).unwrap();
        let mut sent = Vec::new();
        for late in [MessageKind::Answer, MessageKind::Failure, MessageKind::Stop, MessageKind::Ping] {
            protocol::put(&mut sent, late, 1, 1, "0", &["null"]);
        }
        protocol::put(&mut sent, MessageKind::Run, 2, 0, &settings, &["return 1", "{}"]);
        (&pool).write_all(&sent).unwrap();
        let mut link = Link::new(pool, MAX_FRAME);
        let done = loop {
            let frame = link.next().unwrap().expect("the worker goes on");
            if frame.kind == MessageKind::Done {
                break (frame.run, frame.body.to_owned());
            }
        };
        assert_eq!(done, (2, "1".to_owned()));
        drop(link);
        serving.join().unwrap().unwrap();
    }
}
