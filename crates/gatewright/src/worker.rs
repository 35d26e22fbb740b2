//! The worker side of this program: what runs when it is started again to run scripts.

use std::process::ExitCode;

/// Returns `true` if this process was started to run scripts. Then call [`worker_main`], before anything else.
pub fn is_worker() -> bool {
    std::env::args_os().nth(1).is_some_and(|first| first == "worker")
}

/// Runs scripts until the program that started this process closes its socket. Never returns to other work.
pub fn worker_main() -> ExitCode {
    gatewright_agentscript::worker_main(std::env::args().skip(2))
}
