//! The `codecall` section of the configuration (contract: "Plugin configuration surface").

use std::time::Duration;

use gatewright_agentscript::{Adapter as PoolAdapter, Limits, PoolConfig, Preset};
use gatewright_core::{FreeMemory, InvalidField};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    EmbeddingConfig, Mode, ModeRule, ResultConfig, SearchConfig, ShapeLearning,
    call_log::{self, CallLog},
};

/// Code mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CodeCallConfig {
    /// `false` turns code mode off: every tool is listed and called directly. Default true.
    pub enabled: bool,
    /// Visibility of tools beside the meta-tools, and in code mode. Default `codecall_only`.
    pub mode: Mode,
    /// Access modes of single OAuth clients and of callers with a scope; the first rule that fits counts, and `?mode=` and the header
    /// `Gatewright-Mode` do not change it. Default: none, each client chooses.
    pub modes: Vec<ModeRule>,
    /// Limits and rights of one script.
    pub vm: VmConfig,
    /// Runtime of scripts.
    pub worker: WorkerConfig,
    /// Ranking of `codecall:search`.
    pub embedding: EmbeddingConfig,
    /// Index of `codecall:search`.
    pub search: SearchConfig,
    /// Parts of error messages that are removed.
    pub sanitization: SanitizationConfig,
    /// `on` (default) learns field names and types of results, never values, for tools without an output schema; `off` learns nothing.
    #[schemars(with = "crate::config_result::OnOff")]
    pub shapes: ShapeLearning,
    /// Results of `codecall:execute` and `codecall:invoke`.
    pub result: ResultConfig,
}

impl Default for CodeCallConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            mode: Mode::default(),
            modes: Vec::new(),
            vm: VmConfig::default(),
            worker: WorkerConfig::default(),
            embedding: EmbeddingConfig::default(),
            search: SearchConfig::default(),
            sanitization: SanitizationConfig::default(),
            shapes: ShapeLearning::default(),
            result: ResultConfig::default(),
        }
    }
}

/// Limits and rights of one script. Numbers left out come from the preset.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct VmConfig {
    /// `locked_down`, `secure` (default), `balanced` or `experimental`.
    #[schemars(with = "PresetName")]
    pub preset: Preset,
    /// Wall-clock time of a run in milliseconds, tool calls included: 1 to 600,000. Default by preset: 2,000, 3,500, 5,000, 10,000.
    pub timeout_ms: Option<u64>,
    /// Time for which a plan may wait for a person or a client, in milliseconds, while the client's request stays open: 1,000 to 86,400,000
    /// (a day). Default 3,600,000 (an hour). The time limit of the run does not count it.
    pub wait_ms: Option<u64>,
    /// `true` gives scripts `console`, whatever the preset. Default: off in `locked_down`, on otherwise.
    pub allow_console: Option<bool>,
    /// Turns of all loops of a run, callbacks of `map` and the like included: at least 1. Default by preset: 10,000 to 10,000,000.
    pub max_iterations: Option<u64>,
    /// Tool calls of a run: 0 to 100,000. Default by preset: 20, 100, 200, 1,000.
    pub max_tool_calls: Option<u32>,
    /// Memory of the gateway that one script may hold, in MiB: inputs of open calls, answers on their way, console lines, call records
    /// and the result. Images and other blocks of the reply take at most half of it. 1 to 4,096. Default by preset: 16, 32, 64, 128. More
    /// ends the run with a `HostLimitError`.
    pub host_memory_mib: Option<u64>,
    /// The whole reply to `codecall:execute` as JSON, in KiB: result, error, logs and calls together. A larger result is refused;
    /// logs and calls that no longer fit are left out and counted in `omitted`. 64 to 65,536. Default by preset: 256, 1,024,
    /// 4,096, 16,384.
    pub result_kib: Option<u64>,
    /// The calls of a script in its answer. `compact` (default): each tool once, with the number of calls, their time and the failures,
    /// or nothing when the script succeeds and each tool was called once, with success; `full`: every call; `off`: none when the script succeeds. `true` is `full`, `false` is `off`.
    #[schemars(with = "call_log::Written")]
    pub call_log: CallLog,
}

/// The presets, for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum PresetName {
    LockedDown,
    Secure,
    Balanced,
    Experimental,
}

impl VmConfig {
    /// The limits of a run.
    pub fn limits(&self) -> Limits {
        let mut limits = Limits::preset(self.preset);
        limits.timeout = self.timeout_ms.map_or(limits.timeout, Duration::from_millis);
        limits.max_iterations = self.max_iterations.unwrap_or(limits.max_iterations);
        limits.max_tool_calls = self.max_tool_calls.unwrap_or(limits.max_tool_calls);
        limits.host_bytes =
            self.host_memory_mib.map_or(limits.host_bytes, |mib| mib.saturating_mul(1024 * 1024));
        limits.result_bytes = self.result_kib.map_or(limits.result_bytes, |kib| kib.saturating_mul(1024));
        limits
    }

    /// Longest time that the client of a run is waited for.
    pub fn wait(&self) -> Duration {
        Duration::from_millis(self.wait_ms.unwrap_or(3_600_000))
    }

    /// Returns `true` if scripts see `console`.
    pub fn console(&self) -> bool {
        self.allow_console.unwrap_or(self.preset != Preset::LockedDown)
    }
}

/// Runtime of scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Adapter {
    /// In sandboxed processes with a hard time limit. The default.
    #[default]
    WorkerThreads,
    /// On a thread of this process: for tests and trusted scripts. A script can stall its thread.
    InProcess,
}

/// The pool of workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WorkerConfig {
    /// Runtime of scripts. Default `worker_threads`: sandboxed processes.
    pub adapter: Adapter,
    /// Refuse to start when the kernel lacks Landlock or seccomp. Default false: start-up says so once.
    pub require_sandbox: bool,
    /// Workers ready from the start: 1 to 256. Default: the number of cores, or `maxWorkers` when that is less.
    pub workers: Option<usize>,
    /// Workers at most: `workers` to 256. Default: eight per core, but at least 16 and at most 256, and not more than one for each 128 MiB of
    /// the container's or machine's memory, or four; `workers` when only that is set. A
    /// worker is held while its script waits for tools; beyond `workers`, one is started when a script would have to wait, and
    /// ends when no script needed it for a minute. Saved plans that scripts wait for may get up to three more, and below four, plans in the
    /// background up to two.
    pub max_workers: Option<usize>,
    /// Runs that may wait for a worker: 0 to 100,000; those of one principal take half of the places. Default 64.
    pub queue: usize,
    /// Longest wait for a worker. Default 5 s.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub queue_timeout: Duration,
    /// Runs after which a worker is replaced: at least 1. Default 1,000.
    pub recycle_after: u32,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            adapter: Adapter::default(),
            require_sandbox: false,
            workers: None,
            max_workers: None,
            queue: 64,
            queue_timeout: Duration::from_secs(5),
            recycle_after: 1_000,
        }
    }
}

/// Bytes that a run needs at least, in its worker and beside it.
const RUN_BYTES: u64 = 8 << 20;

impl WorkerConfig {
    /// The pool these settings describe.
    pub fn pool(&self) -> PoolConfig {
        let mut config = PoolConfig::default()
            .adapter(match self.adapter {
                Adapter::WorkerThreads => PoolAdapter::Processes,
                Adapter::InProcess => PoolAdapter::InProcess,
            })
            .require_sandbox(self.require_sandbox)
            .queue(self.queue)
            .queue_timeout(self.queue_timeout)
            .has_memory(|runs| FreeMemory::of_system().has(runs * RUN_BYTES))
            .recycle_after(self.recycle_after);
        if let Some(workers) = self.workers {
            config = config.workers(workers);
        }
        match (self.max_workers, self.workers, FreeMemory::of_system().total()) {
            (Some(most), ..) => config.max_workers(most),
            (None, None, Some(memory)) => config.fit_memory(memory),
            _ => config,
        }
    }
}

/// Parts of error messages that are removed before they leave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SanitizationConfig {
    /// Stack traces. Default true.
    pub remove_stack_traces: bool,
    /// File paths. Default true.
    pub remove_file_paths: bool,
}

impl Default for SanitizationConfig {
    fn default() -> Self {
        Self { remove_stack_traces: true, remove_file_paths: true }
    }
}

impl CodeCallConfig {
    /// Every field that is out of range.
    pub fn problems(&self) -> Vec<InvalidField> {
        let mut problems = Vec::new();
        let mut check = |path: &'static str, fits: bool, problem: &str| {
            if !fits {
                problems.push(InvalidField::new(path, problem));
            }
        };
        let vm = &self.vm;
        check(
            "vm.timeoutMs",
            vm.timeout_ms.is_none_or(|ms| (1..=600_000).contains(&ms)),
            "must be 1 to 600000",
        );
        check(
            "vm.waitMs",
            vm.wait_ms.is_none_or(|ms| (1_000..=86_400_000).contains(&ms)),
            "must be 1000 to 86400000",
        );
        check("vm.maxIterations", vm.max_iterations != Some(0), "must be at least 1");
        check("vm.maxToolCalls", vm.max_tool_calls.is_none_or(|n| n <= 100_000), "must be at most 100000");
        check(
            "vm.hostMemoryMib",
            vm.host_memory_mib.is_none_or(|mib| (1..=4_096).contains(&mib)),
            "must be 1 to 4096",
        );
        check(
            "vm.resultKib",
            vm.result_kib.is_none_or(|kib| (64..=65_536).contains(&kib)),
            "must be 64 to 65536",
        );
        let worker = &self.worker;
        check("worker.workers", worker.workers.is_none_or(|n| (1..=256).contains(&n)), "must be 1 to 256");
        check(
            "worker.maxWorkers",
            worker.max_workers.is_none_or(|n| (worker.workers.unwrap_or(1)..=256).contains(&n)),
            "must be 1 to 256, and not below `workers`",
        );
        check("worker.queue", worker.queue <= 100_000, "must be at most 100000");
        check("worker.recycleAfter", worker.recycle_after > 0, "must be at least 1");
        for (at, rule) in self.modes.iter().enumerate() {
            if rule.client.is_none() && rule.scope.is_none() {
                let problem = "needs `client` or `scope`; for all callers set `codecall.mode`";
                problems.push(InvalidField::new(format!("modes[{at}]"), problem));
            }
        }
        problems.extend(self.embedding.problems());
        problems.extend(self.result.problems());
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_out_of_range_is_named_with_its_path() {
        let config: CodeCallConfig =
            serde_json::from_str(r#"{"vm": {"timeoutMs": 0}, "embedding": {"similarityThreshold": 2}}"#)
                .unwrap();
        let paths: Vec<_> = config.problems().into_iter().map(|problem| problem.path).collect();
        assert_eq!(paths, ["vm.timeoutMs", "embedding.similarityThreshold"]);
        assert!(CodeCallConfig::default().problems().is_empty());
    }

    #[test]
    fn a_number_of_the_operator_replaces_the_presets() {
        let vm: VmConfig = serde_json::from_str(r#"{"preset": "locked_down", "timeoutMs": 9000}"#).unwrap();
        assert_eq!(vm.limits().timeout, Duration::from_secs(9));
        assert_eq!(vm.limits().max_tool_calls, 20);
        assert!(!vm.console());
    }
}
