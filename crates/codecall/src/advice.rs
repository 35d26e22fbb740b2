//! The limits of this server for those who write scripts: as one sentence, and behind the message of a limit that was reached.

use gatewright_agentscript::{IllegalKind, Limits, RunError, WorkerError};

/// The limits of a script, in a sentence.
pub(crate) fn sentence(limits: &Limits) -> String {
    format!(
        "Limits: {} s, {} calls, {} loop turns, {} of result.",
        limits.timeout.as_secs_f64(),
        limits.max_tool_calls,
        limits.max_iterations,
        size(limits.result_bytes)
    )
}

fn size(bytes: u64) -> String {
    if bytes.is_multiple_of(1024 * 1024) {
        format!("{} MiB", bytes / (1024 * 1024))
    } else {
        format!("{} KiB", bytes / 1024)
    }
}

/// The key of the limit that ended a run, and what to do about it.
pub(crate) fn of(error: &RunError) -> Option<&'static str> {
    Some(match error {
        RunError::Timeout { .. } | RunError::Worker(WorkerError::Timeout(_)) => {
            "codecall.vm.timeoutMs: split the plan, run independent calls with __safe_parallel, or call a slow tool with codecall:invoke"
        }
        RunError::RuntimeError { name, .. } => match name.as_str() {
            "IterationLimitError" => {
                "codecall.vm.maxIterations: let tools filter and sort, look values up in a Map, or split the plan"
            }
            "ToolCallLimitError" => {
                "codecall.vm.maxToolCalls: use a tool that takes or gives a list, or split the plan"
            }
            "HostLimitError" => "codecall.vm.hostMemoryMib: ask for fewer rows and fields, or split the plan",
            "ResultSizeError" => {
                "codecall.vm.resultKib: return only the fields you need, or a part of the list"
            }
            _ => return None,
        },
        RunError::IllegalAccess { kind: IllegalKind::ScriptTooLarge, .. } => {
            "codecall.vm.preset: pass data as `context`, or split the plan"
        }
        RunError::Worker(WorkerError::MemoryExceeded(_)) => {
            "codecall.vm.preset: work on a page at a time and keep only the fields you need"
        }
        RunError::Worker(WorkerError::MessageTooLarge(_)) => "ask a tool for less at once, or send it less",
        RunError::Worker(WorkerError::QueueFull(_)) => "codecall.worker.queue, codecall.worker.maxWorkers",
        RunError::Worker(WorkerError::QueueTimeout(_)) => {
            "codecall.worker.queueTimeout, codecall.worker.maxWorkers"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CodeCallConfig;

    #[test]
    fn the_sentence_has_the_limits_of_the_configuration() {
        let mut config = CodeCallConfig::default();
        assert_eq!(
            sentence(&config.vm.limits()),
            "Limits: 3.5 s, 100 calls, 100000 loop turns, 1 MiB of result."
        );
        config.vm.timeout_ms = Some(20_000);
        config.vm.result_kib = Some(100);
        assert_eq!(
            sentence(&config.vm.limits()),
            "Limits: 20 s, 100 calls, 100000 loop turns, 100 KiB of result."
        );
    }

    #[test]
    fn a_limit_that_was_reached_names_its_key() {
        let error = |name: &str| RunError::RuntimeError {
            name: name.to_owned(),
            message: String::new(),
            location: None,
        };
        for (name, key) in [
            ("IterationLimitError", "maxIterations"),
            ("ToolCallLimitError", "maxToolCalls"),
            ("HostLimitError", "hostMemoryMib"),
            ("ResultSizeError", "resultKib"),
        ] {
            assert!(of(&error(name)).is_some_and(|advice| advice.contains(key)), "{name}");
        }
        assert!(of(&RunError::Timeout { message: String::new() }).is_some_and(|a| a.contains("timeoutMs")));
        assert_eq!(of(&error("TypeError")), None);
    }
}
