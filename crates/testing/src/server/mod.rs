//! The server under test: started, watched, restarted and stopped.

mod builder;
mod error;
mod leased;
mod log_ring;
mod marked;
mod port;
mod process;
mod program;
mod ready;
mod running;
#[cfg(feature = "suites")]
mod shared;
mod state;
mod stdio;

pub use builder::{ServerBuilder, Transport};
pub use error::StartError;
pub use running::{ClientOptions, Server};
pub use state::ServerInfo;
