//! AgentScript: run JavaScript plans written by a language model without trusting them.
//!
//! A [`ScriptSource`] becomes a [`Script`] only through the validator, and only a `Script` can run. A run talks to the
//! outside through one [`Host`] and ends in one [`Outcome`]. Nothing here knows MCP.

mod engine;
pub mod excerpt;
mod facts;
#[doc(hidden)]
pub mod fuzz;
mod host;
mod journal;
mod limits;
mod messages;
mod outcome;
mod plan;
mod policy;
mod pool;
mod protocol;
mod rejection;
mod sanitize;
mod script;
mod source;
mod validate;
mod worker;

pub use host::{ContentRequest, Host, HostFuture, ToolAnswer, ToolCall, ToolFailure};
pub use journal::{HostFunction, Journal, JournalEntry, JournalError, Replay, Resumed};
pub use limits::{Limits, Preset};
pub use outcome::{
    CallRecord, CallStatus, IllegalKind, Inputs, Location, Outcome, PROGRESS_BYTES, PROGRESS_VALUES,
    RunError, RunResult, Warning, WorkerError,
};
pub use plan::{
    CallSite, Member, Mistake, Note, Origin, Part, Partial, PlanFacts, PlanRefusal, PlanVerdict, PlanWarning,
    ResultUse,
};
pub use policy::ScriptPolicy;
pub use pool::{Adapter, MOST_LEVELS, PoolConfig, PoolStats, RunRequest, WorkerCommand, WorkerPool};
pub use rejection::Rejection;
pub use sanitize::Sanitizer;
pub use script::Script;
pub use source::ScriptSource;
pub use validate::VALIDATE_STACK;
pub use worker::{SandboxReport, worker_main};
