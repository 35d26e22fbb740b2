//! Settings of a pool.

use std::{ffi::OsString, path::PathBuf, time::Duration};

/// The place where scripts run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Adapter {
    /// One sandboxed process per worker: the only adapter for text you do not trust.
    #[default]
    Processes,
    /// One thread per worker, for tests and trusted scripts: a native loop that ignores the engine's interrupts cannot be
    /// killed and keeps its thread until it ends.
    InProcess,
}

/// The program of a worker process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    /// The executable.
    pub program: PathBuf,
    /// Arguments in front of those the pool adds for [`worker_main`](crate::worker_main).
    pub args: Vec<OsString>,
}

/// Most workers by default.
const MOST_WORKERS: usize = 256;
/// Bytes of memory for each worker by default: for what its script keeps in it and in the host, and as much for everything else.
const BYTES_PER_WORKER: u64 = 128 << 20;
/// Workers by default where memory is short.
const LEAST_MAX_WORKERS: usize = 4;

/// Settings of a [`WorkerPool`](super::WorkerPool).
#[derive(Debug, Clone)]
pub struct PoolConfig {
    pub(super) adapter: Adapter,
    pub(super) workers: usize,
    pub(super) max_workers: usize,
    pub(super) most_parked: usize,
    pub(super) queue: usize,
    pub(super) queue_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) watchdog_extra: Duration,
    pub(super) recycle_after: u32,
    pub(super) startup_timeout: Duration,
    pub(super) require_sandbox: bool,
    pub(super) isolate_principals: bool,
    pub(super) address_space: u64,
    pub(super) command: Option<WorkerCommand>,
    pub(super) has_memory: fn(u64) -> bool,
}

impl Default for PoolConfig {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from).min(MOST_WORKERS);
        Self {
            adapter: Adapter::default(),
            workers: cores,
            // A worker is busy while its script waits for a tool, which is most of the time.
            max_workers: (8 * cores).clamp(16, MOST_WORKERS),
            most_parked: 256,
            queue: 64,
            queue_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(60),
            watchdog_extra: Duration::from_millis(500),
            recycle_after: 1_000,
            // One that dies is noticed at once; on a busy machine one may take long.
            startup_timeout: Duration::from_secs(30),
            require_sandbox: false,
            isolate_principals: false,
            address_space: 640 * 1024 * 1024,
            command: None,
            has_memory: |_| true,
        }
    }
}

impl PoolConfig {
    /// Runs scripts in processes or in this one. Default: [`Adapter::Processes`].
    #[must_use]
    pub fn adapter(mut self, adapter: Adapter) -> Self {
        self.adapter = adapter;
        self
    }

    /// Number of workers at the start, each serving one run at a time; at least 1. Default: one per core. Sets
    /// [`PoolConfig::max_workers`] to the same number.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self.max_workers = self.workers;
        self
    }

    /// Most workers, at least 1: beyond [`PoolConfig::workers`], one is started for a run that would have to wait, and ends
    /// after [`PoolConfig::idle_timeout`]. Below four, runs in the background have up to two beside them, so that those of one principal leave a
    /// worker to others.
    /// Lowers `workers` where that is more. Default: eight per core, but 16 at least and 256 at most.
    #[must_use]
    pub fn max_workers(mut self, workers: usize) -> Self {
        self.max_workers = workers.max(1);
        self.workers = self.workers.min(self.max_workers);
        self
    }

    /// Lowers [`PoolConfig::max_workers`] to one for each 128 MiB of `memory`, in bytes, but not below four: a script may take 64 MiB.
    #[must_use]
    pub fn fit_memory(self, memory: u64) -> Self {
        let fitting = usize::try_from(memory / BYTES_PER_WORKER).unwrap_or(usize::MAX).max(LEAST_MAX_WORKERS);
        let most = self.max_workers.min(fitting);
        self.max_workers(most)
    }

    /// Asked before each run begins, and before one is tried again, whether there is memory for so many runs: a run for which there is none is refused
    /// ([`WorkerError::NoMemory`](crate::WorkerError::NoMemory)). A caller leaves memory for a run of others for each that it has
    /// under way, two at most.
    /// Default: there is.
    #[must_use]
    pub fn has_memory(mut self, has_memory: fn(u64) -> bool) -> Self {
        self.has_memory = has_memory;
        self
    }

    /// Runs that may be without a worker while their calls are under way ([`RunRequest::park_after`](super::RunRequest::park_after)); others keep
    /// theirs, so that calls under way are bounded. Default 256.
    #[must_use]
    pub fn most_parked(mut self, runs: usize) -> Self {
        self.most_parked = runs;
        self
    }

    /// Runs that may wait for a worker; one more is refused. Default 64.
    #[must_use]
    pub fn queue(mut self, queue: usize) -> Self {
        self.queue = queue;
        self
    }

    /// Longest wait for a worker. Default 5 s.
    #[must_use]
    pub fn queue_timeout(mut self, timeout: Duration) -> Self {
        self.queue_timeout = timeout;
        self
    }

    /// Time after which workers beyond [`PoolConfig::workers`] end when no run needed them. Default 60 s.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Time after the limit of a run at which its worker is killed, when it has not ended the run itself. Default 500 ms.
    #[must_use]
    pub fn watchdog_extra(mut self, extra: Duration) -> Self {
        self.watchdog_extra = extra;
        self
    }

    /// Runs after which a worker is replaced; at least 1. Default 1,000.
    #[must_use]
    pub fn recycle_after(mut self, runs: u32) -> Self {
        self.recycle_after = runs.max(1);
        self
    }

    /// Longest wait for a new worker to report that it is ready. Default 30 s.
    #[must_use]
    pub fn startup_timeout(mut self, timeout: Duration) -> Self {
        self.startup_timeout = timeout;
        self
    }

    /// Refuses to start when a measure of the sandbox is missing. Default `false`: missing measures are reported.
    #[must_use]
    pub fn require_sandbox(mut self, require: bool) -> Self {
        self.require_sandbox = require;
        self
    }

    /// Replaces a worker before it serves another principal. Default `false`: a realm never survives its
    /// run, so only a script that broke the engine itself could reach over. Runs without a principal count as one.
    #[must_use]
    pub fn isolate_principals(mut self, isolate: bool) -> Self {
        self.isolate_principals = isolate;
        self
    }

    /// Address space of a worker process, in bytes, at least 256 MiB; a hard limit behind the engine's own. Default 640 MiB, of
    /// which 48 MiB are the stack.
    #[must_use]
    pub fn address_space_bytes(mut self, bytes: u64) -> Self {
        self.address_space = bytes.max(256 * 1024 * 1024);
        self
    }

    /// The worker program. Default: this executable with the argument `worker`.
    #[must_use]
    pub fn command(mut self, command: WorkerCommand) -> Self {
        self.command = Some(command);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_machine_has_fewer_workers() {
        let fitting = |mib: u64| PoolConfig::default().workers(2).max_workers(16).fit_memory(mib << 20);
        for (mib, most) in [(64, 4), (512, 4), (1024, 8), (2048, 16), (65_536, 16)] {
            let config = fitting(mib);
            assert_eq!((config.workers, config.max_workers), (2, most), "{mib} MiB");
        }
        let many = PoolConfig::default().workers(8).fit_memory(1 << 30);
        assert_eq!((many.workers, many.max_workers), (8, 8));
        assert_eq!(PoolConfig::default().workers(8).fit_memory(1 << 29).workers, 4);
    }
}
