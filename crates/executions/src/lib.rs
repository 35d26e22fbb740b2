//! Executions: journals of scripts that can be continued, by this instance or another.
//!
//! A journal is a list of chunks that only grows; their contents are opaque here. Beside it an execution has a [`Head`]: its owner, its state
//! and what it waits for. An ordinary run is a [`Draft`], which costs next to nothing; it becomes durable when it waits or runs without its client.
//! From then on a [`Lease`] lets one instance alone write the journal.
//!
//! [`Executions`] are kept in memory or in [`SharedRecords`](gatewright_core::SharedRecords), sealed, bounded in time, count and bytes.
#![forbid(unsafe_code)]

mod clock;
mod config;
mod draft;
mod error;
mod executions;
mod head;
mod id;
mod journal;
mod lease;
mod memory;
mod reading;
mod shared;

pub use config::{ExecutionStore, ExecutionsConfig};
pub use draft::Draft;
pub use error::ExecutionError;
pub use executions::Executions;
pub use head::{
    ABORTED, CallCounts, Ending, Head, LONGEST_TEXT, MOST_WAITING, NewExecution, State, Terms, WaitKind,
    WaitingFor,
};
pub use id::ExecutionId;
pub use lease::Lease;
pub use reading::{Execution, Listed, Reader};
