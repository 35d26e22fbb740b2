//! Names of errors of the engine, the pool and the limits: no error of a script is reported under one.

use crate::outcome::WorkerError;

pub(crate) const ITERATIONS: &str = "IterationLimitError";
pub(crate) const TOOL_CALLS: &str = "ToolCallLimitError";
/// Code of a failure with which the host ends a run under the name of [`TOOL_CALLS`].
pub(crate) const SHARED_CALLS: &str = "TOOL_CALL_LIMIT";
pub(crate) const DEADLOCK: &str = "DeadlockError";
pub(crate) const RESULT_SIZE: &str = "ResultSizeError";
pub(crate) const RESULT_UNREADABLE: &str = "ResultUnreadableError";
pub(crate) const HOST: &str = "HostError";
pub(crate) const HOST_LIMIT: &str = "HostLimitError";
/// No error has these names, but readers would take them for limits.
const MEMORY: &str = "MemoryLimitError";
const LOG: &str = "LogLimitError";

const OWN: [&str; 9] =
    [ITERATIONS, TOOL_CALLS, LOG, DEADLOCK, RESULT_SIZE, RESULT_UNREADABLE, HOST, HOST_LIMIT, MEMORY];

/// Returns true when an error of this name means that the engine, the pool or a limit ended a run.
pub(crate) fn is_own(name: &str) -> bool {
    OWN.contains(&name) || WorkerError::CLASSES.contains(&name)
}
