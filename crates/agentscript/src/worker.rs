//! The far end of the door: waits for runs on a socket and serves them one after another.
//!
//! `harden` takes the process's capabilities away, `heap` is the engine's memory (no other file has unsafe code); `link` moves frames. What happens in
//! a run is in `engine`.

pub(crate) mod harden;
pub(crate) mod heap;
mod link;
mod serve;

pub use harden::SandboxReport;
pub(crate) use link::Link;
pub use serve::worker_main;
pub(crate) use serve::{WORKER_STACK, serve};
