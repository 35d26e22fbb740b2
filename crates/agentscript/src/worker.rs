//! The worker process: waits for runs on a socket and serves them one after another.
//!
//! `harden` takes the process's capabilities away by the settings of `sandbox` and the `rules` of the kernel, `heap` is the engine's memory, `link` moves frames. `engine` runs the scripts.

pub(crate) mod harden;
pub(crate) mod heap;
mod link;
#[cfg(target_os = "linux")]
mod rules;
pub(crate) mod sandbox;
mod serve;

pub(crate) use link::Link;
pub use sandbox::SandboxReport;
pub use serve::worker_main;
pub(crate) use serve::{WORKER_STACK, serve};
