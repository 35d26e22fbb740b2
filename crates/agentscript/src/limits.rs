//! Limits of a run, by preset.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A named set of limits and rules. `Secure` is the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// Untrusted text: 2 s, 20 calls, `for…of` and bounded `for` only, no console, no regular expressions.
    LockedDown,
    /// The default: 3.5 s, 100 calls.
    #[default]
    Secure,
    /// 5 s, 200 calls.
    Balanced,
    /// 10 s, 1,000 calls.
    Experimental,
}

/// Limits of one run. Every field is a hard limit; "unlimited" does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall-clock time of the run, tool calls included; with `wait`, without them.
    pub timeout: Duration,
    /// Time for which the run may wait for answers to its calls, in all; beyond it the run times out. Default: none of its own, `timeout` counts it.
    pub wait: Option<Duration>,
    /// Turns of all loops of a run, callbacks of native functions (`map`, `sort`, …) included.
    pub max_iterations: u64,
    /// Calls of `callTool` in one run.
    pub max_tool_calls: u32,
    /// Calls of `callTool` that may be open at the same time.
    pub max_pending_calls: u32,
    /// Heap of the JavaScript engine, in bytes. The host's memory for a run counts against `host_bytes`.
    pub memory_bytes: u64,
    /// Memory of the host for one run, in bytes: messages on their way in or out, inputs of open calls, call records,
    /// console lines and the result, each JSON value counted with what it takes once it is read. Default by preset: that of
    /// `memory_bytes`. One byte more ends the run with a `HostLimitError`.
    pub host_bytes: u64,
    /// Stack of the JavaScript engine, in bytes.
    pub stack_bytes: u64,
    /// Text of the script, in bytes.
    pub script_bytes: u64,
    /// Length of the returned value as JSON text, in bytes. The embedder limits its whole reply to the same number.
    pub result_bytes: u64,
    /// All console lines of a run together, in bytes. The line that goes beyond is shortened, later ones are left out and counted.
    pub log_bytes: u64,
    /// Console lines of a run. Later ones are left out and counted.
    pub log_lines: u32,
    /// One message between the run and its host, in bytes.
    pub message_bytes: u64,
    /// Host calls (`callTool`, `getTool`) a run may send in one second; console lines have limits of their own.
    pub messages_per_second: u32,
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

impl Limits {
    /// Returns the limits of `preset`.
    pub fn preset(preset: Preset) -> Self {
        let (timeout_ms, max_iterations, max_tool_calls, memory_mib, script_kib, result_kib) = match preset {
            Preset::LockedDown => (2_000, 10_000, 20, 16, 16, 256),
            Preset::Secure => (3_500, 100_000, 100, 32, 64, 1_024),
            Preset::Balanced => (5_000, 1_000_000, 200, 64, 128, 4_096),
            Preset::Experimental => (10_000, 10_000_000, 1_000, 128, 256, 16_384),
        };
        Self {
            timeout: Duration::from_millis(timeout_ms),
            wait: None,
            max_iterations,
            max_tool_calls,
            max_pending_calls: 64,
            memory_bytes: memory_mib * MIB,
            host_bytes: memory_mib * MIB,
            stack_bytes: 512 * KIB,
            script_bytes: script_kib * KIB,
            result_bytes: result_kib * KIB,
            log_bytes: 256 * KIB,
            log_lines: 1_000,
            message_bytes: 8 * MIB,
            messages_per_second: 2_000,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::preset(Preset::default())
    }
}
