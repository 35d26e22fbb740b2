//! The worker program of this crate's own tests and benches, and of embedders without a program of their own.
//!
//! With `--misbehave MODE` in front it does what a broken worker would do, so that tests can cause every error of the pool.

use std::process::ExitCode;

fn main() -> ExitCode {
    gatewright_agentscript::worker_main(std::env::args().skip(1))
}
