//! Errors of runs that spent a limit or reached for something that scripts may not have. A script cannot catch any of them.

use super::names;
use crate::{
    limits::Limits,
    outcome::{IllegalKind, Location, RunError, WorkerError},
};

/// The time limit; the pool, which knows the open calls, writes the message.
pub(super) fn timeout(_: &Limits) -> RunError {
    RunError::Timeout { message: String::new() }
}

pub(super) fn iterations(limits: &Limits) -> RunError {
    let message =
        format!("iteration limit reached: the script's loops may turn {} times", limits.max_iterations);
    RunError::runtime(names::ITERATIONS, message)
}

pub(super) fn tool_calls(limits: &Limits) -> RunError {
    let message =
        format!("tool call limit reached: the script may make {} tool calls", limits.max_tool_calls);
    RunError::runtime(names::TOOL_CALLS, message)
}

pub(super) fn memory(limits: &Limits) -> RunError {
    WorkerError::MemoryExceeded(limits.memory_bytes).into()
}

pub(super) fn pending_calls(limits: &Limits) -> RunError {
    WorkerError::TooManyPendingCalls(limits.max_pending_calls).into()
}

pub(super) fn message_too_large(limits: &Limits) -> RunError {
    WorkerError::MessageTooLarge(limits.message_bytes).into()
}

pub(super) fn result_size(bytes: usize, most: u64) -> RunError {
    let message = format!("the result is {bytes} bytes of JSON; at most {most} are allowed");
    RunError::runtime(names::RESULT_SIZE, message)
}

/// Access at run time to `name`, which leads out of the language subset.
pub(super) fn illegal_access(name: &str, location: Option<Location>) -> RunError {
    RunError::IllegalAccess {
        kind: IllegalKind::IllegalPrototypeAccess,
        message: format!("access to '{name}' is not allowed; for data with such a key use a Map"),
        location,
    }
}

/// A call of `name`, which leads back to the host.
pub(super) fn self_reference(name: &str) -> RunError {
    blocked(format!("a script cannot call `{name}`; call the tools of apps"))
}

fn blocked(message: String) -> RunError {
    RunError::IllegalAccess { kind: IllegalKind::SelfReferenceBlocked, message, location: None }
}

/// A failure with which the host ends the run: a limit on calls that runs share, or a call that leads back to the host.
pub(crate) fn by_host(code: &str, message: String) -> RunError {
    if code == names::SHARED_CALLS {
        return RunError::runtime(names::TOOL_CALLS, message);
    }
    blocked(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_script_can_give_an_error_a_name_that_the_engine_or_the_pool_gives() {
        let limits = Limits::default();
        let all = [timeout, iterations, tool_calls, memory, pending_calls, message_too_large];
        for error in all.map(|error| error(&limits)) {
            if let RunError::RuntimeError { name, .. } = error {
                assert!(names::is_own(&name), "{name}");
            }
        }
        for name in [names::DEADLOCK, names::HOST, names::RESULT_SIZE, names::RESULT_UNREADABLE] {
            assert!(names::is_own(name), "{name}");
        }
        assert!(!names::is_own("RateLimitError") && !names::is_own("TypeError"));
    }
}
