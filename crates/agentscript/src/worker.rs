//! The far end of the door: waits for runs on a socket and serves them one after another.
//!
//! `harden` takes the process's capabilities away and holds all unsafe code of the crate; `link` moves frames. What happens in
//! a run is in `engine`.

pub(crate) mod harden;
mod link;
mod serve;

pub use harden::SandboxReport;
pub(crate) use link::Link;
pub use serve::worker_main;
pub(crate) use serve::{WORKER_STACK, serve};
