//! A pool of workers that were started in advance and serve one run at a time, and the queue in front of them.
//!
//! `config` has the settings of a pool, `slots` the workers that wait, `line` the runs that wait for one, `shares` the part of the workers that each principal may have, `process` starts and ends workers, `drive` is one run seen from this side, `hold` the time for which it has its worker, and `record` checks and
//! counts the messages of its worker. `answers` has the calls at the host, which go on while a run is `parked` without a worker.

mod answers;
mod config;
mod drive;
mod given_up;
mod hold;
mod journaled;
mod line;
mod parked;
mod pause;
mod process;
mod record;
mod replay;
mod shares;
mod slots;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use futures::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

use answers::Calls;
pub use config::{Adapter, PoolConfig, WorkerCommand};
pub(crate) use drive::replay;
use line::{Claimed, Turn};
use parked::Parked;
use process::{Exit, Keeper, Worker};
pub use shares::MOST_LEVELS;
use shares::{Claim, Party, places};
use slots::{Slot, WorkerSlots};

use crate::{
    host::Host,
    journal::{Journal, Replay},
    limits::Limits,
    outcome::{IllegalKind, Inputs, Outcome, RunError, WorkerError},
    policy::ScriptPolicy,
    worker::SandboxReport,
};

/// One script to run.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The script, as the caller sent it.
    pub source: String,
    /// `codecallContext` as JSON text; `{}` when absent.
    pub context: Option<Box<RawValue>>,
    /// Rules for the text.
    pub policy: ScriptPolicy,
    /// Limits of the run.
    pub limits: Limits,
    /// Names of those whose shares of workers and of the queue it takes part of, such as a principal, or a network and those around it; the narrowest first.
    /// The number is that of callers that one may take as much as. The first one is the caller, also for [`PoolConfig::isolate_principals`]. Default: none: a
    /// run of many callers, which has no share.
    pub parties: Vec<(String, usize)>,
    /// No client waits for it: runs for which one does come first, and it has none of half of the workers.
    pub background: bool,
    /// It waits for a worker as long as it takes, without a place in the queue: a run that has begun does not end because workers are scarce.
    pub patient: bool,
    /// Number of runs that wait for this one: 0 for a run of its own, 1 for one that answers a call of its script. Up to [`MOST_LEVELS`] there are
    /// workers in reserve for each level, so that runs do not wait for each other in circles when every worker is taken: one for each caller, two at least and
    /// a quarter of the workers at most.
    pub level: usize,
    /// Time after which the run gives its worker back while it waits for calls and for nothing else, if its journal can be read
    /// ([`Journal::can_be_read`]); half a second where runs in the background of a principal with fewer wait for one, and two seconds after it got it if its calls are shorter. Default: it keeps its worker.
    pub park_after: Option<Duration>,
    /// Seed of `Math.random`. Default: a number of the system's generator, another for each run ([`Inputs::seed`]).
    ///
    /// Runs with the same script, context, seed, start and answers of the host have the same outcome.
    pub seed: Option<u64>,
    /// Time that `Date` shows when the run starts; it advances with the host's answers. Default: the current time.
    pub started_at: Option<SystemTime>,
    /// Keeps the journal of the run. Default: nobody does.
    pub journal: Option<Arc<dyn Journal>>,
    /// Once it is cancelled, the run makes no more host calls. When those under way are answered, and their answers are in the journal, it ends as one that
    /// is suspended.
    pub halt: CancellationToken,
    /// The journal of earlier parts of the run, with the same script, context, limits, seed and start: the run goes through it again, and on from
    /// where it ends.
    pub replay: Option<Arc<Replay>>,
}

impl RunRequest {
    /// A run of `source` under the default policy and limits, without context.
    pub fn new(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            context: None,
            policy: ScriptPolicy::default(),
            limits: Limits::default(),
            parties: Vec::new(),
            background: false,
            patient: false,
            level: 0,
            park_after: None,
            seed: None,
            started_at: None,
            journal: None,
            halt: CancellationToken::new(),
            replay: None,
        }
    }
}

/// Counters of a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Workers that wait for a run.
    pub idle: usize,
    /// Runs that wait for a worker.
    pub waiting: usize,
    /// Runs under way.
    pub running: usize,
    /// Runs that ended, successfully or not.
    pub finished: u64,
    /// Workers ended and replaced: killed, died, recycled or too large.
    pub replaced: u64,
}

/// Runs scripts in workers.
///
/// Dropping the pool ends its workers; [`WorkerPool::shutdown`] lets runs finish first.
pub struct WorkerPool {
    config: PoolConfig,
    shared: Arc<WorkerSlots>,
    keeper: Keeper,
    running: TaskTracker,
    /// Places for runs without a worker.
    parking: Arc<Semaphore>,
    /// Cancelled by [`WorkerPool::dispose`].
    disposed: CancellationToken,
    finished: AtomicU64,
    report: SandboxReport,
}

impl std::fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerPool").field("config", &self.config).field("stats", &self.stats()).finish()
    }
}

impl WorkerPool {
    /// Starts the workers and waits until each is ready.
    ///
    /// # Errors
    /// A worker does not start, or the sandbox is incomplete and [`PoolConfig::require_sandbox`] is set.
    pub fn new(config: PoolConfig) -> Result<Arc<Self>, WorkerError> {
        let shared = Arc::new(WorkerSlots::new(config.max_workers));
        let keeper = Keeper::new(config.clone(), Arc::downgrade(&shared))
            .map_err(|error| WorkerError::StartupFailed(error.kind().to_string()))?;
        let mut report = SandboxReport::default();
        for _ in 0..config.workers {
            let worker = keeper.start_blocking().inspect_err(|_| {
                // Those that did start are reaped, not forgotten.
                for slot in shared.slots().drain(..) {
                    if let Slot::Ready(worker) = slot {
                        keeper.retire(worker, false, None);
                    }
                }
            })?;
            report = worker.report.clone();
            shared.put(Slot::Ready(worker));
        }
        for _ in config.workers..places(config.max_workers) {
            shared.put(Slot::Empty);
        }
        if config.adapter == Adapter::Processes && !report.is_complete() {
            tracing::warn!(missing = %report.missing.join("; "), "the sandbox around scripts is incomplete");
        }
        let parking = Arc::new(Semaphore::new(config.most_parked));
        Ok(Arc::new(Self {
            config,
            shared,
            keeper,
            running: TaskTracker::new(),
            parking,
            disposed: CancellationToken::new(),
            finished: AtomicU64::new(0),
            report,
        }))
    }

    /// Returns the sandbox measures that are in force around the workers.
    pub fn sandbox_report(&self) -> &SandboxReport {
        &self.report
    }

    /// Runs a script. Every failure is reported in [`Outcome::result`].
    ///
    /// Host calls run inside this future. Dropping it, or cancelling `cancel`, ends the run at once: open calls are dropped, and the script is told to
    /// end. A worker whose script takes more than 100 ms for that is killed and replaced.
    pub fn run(
        &self,
        request: RunRequest,
        host: Arc<dyn Host>,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            let started = Instant::now();
            let outcome = self.run_inner(request, host, &cancel, started).await;
            self.finished.fetch_add(1, Ordering::Relaxed);
            outcome
        })
    }

    async fn run_inner(
        &self,
        mut request: RunRequest,
        host: Arc<dyn Host>,
        cancel: &CancellationToken,
        started: Instant,
    ) -> Outcome {
        let failed = |error| Outcome {
            result: Err(error),
            logs: Vec::new(),
            logs_omitted: 0,
            progress: Vec::new(),
            calls: Vec::new(),
            warnings: Vec::new(),
            duration: started.elapsed(),
            inputs: None,
        };
        let limits = &request.limits;
        if request.source.len() as u64 > limits.script_bytes {
            return failed(RunError::IllegalAccess {
                kind: IllegalKind::ScriptTooLarge,
                message: format!(
                    "the script is {} bytes; at most {} are allowed",
                    request.source.len(),
                    limits.script_bytes
                ),
                location: None,
            });
        }
        let context_len = request.context.as_ref().map_or(0, |context| context.get().len());
        if context_len as u64 > limits.message_bytes {
            return failed(RunError::Worker(WorkerError::MessageTooLarge(limits.message_bytes)));
        }
        let Some(seed) = request.seed.or_else(|| getrandom::u64().ok()) else {
            let why = "the system gives no random numbers".to_owned();
            return failed(RunError::Worker(WorkerError::StartupFailed(why)));
        };
        let inputs = Inputs { seed, started_at: request.started_at.unwrap_or_else(SystemTime::now) };
        let (mut tries, mut calls, mut resumed) = (1, Calls::default(), None);
        loop {
            let lease = match resumed.take() {
                Some(lease) => Ok(lease),
                None if !(self.config.has_memory)(self.runs_needed(&request)) => {
                    Err(WorkerError::NoMemory.into())
                }
                None => tokio::select! {
                    biased;
                    () = cancel.cancelled() => Err(WorkerError::Aborted.into()),
                    () = request.halt.cancelled() => Err(RunError::Suspended),
                    lease = self.lease(&request) => lease.map_err(RunError::from),
                },
            };
            let mut lease = match lease {
                Ok(lease) => lease,
                Err(error) => return failed(error),
            };
            let attempt = drive::drive(&mut lease, &request, inputs, &host, &mut calls, cancel).await;
            if let Some(elapsed) = attempt.parked {
                drop(lease);
                let since = tokio::time::Instant::now();
                let parked =
                    Parked { pool: self, request: &request, calls: &mut calls, cancel, elapsed, since };
                match parked.resume().await {
                    Ok((lease, replay)) => {
                        request.replay = Some(replay);
                        calls.place = None;
                        (resumed, tries) = (Some(lease), 1);
                        continue;
                    }
                    Err(error) => return Outcome { result: Err(error), ..attempt.outcome },
                }
            }
            if !attempt.may_retry || tries == MAX_TRIES {
                return attempt.outcome;
            }
            tries += 1;
        }
    }

    /// The number of runs for which there has to be memory before this one begins.
    fn runs_needed(&self, request: &RunRequest) -> u64 {
        let caller = request.parties.first().filter(|_| request.level == 0);
        let own = caller.map_or(0, |(name, _)| self.shared.line.running(name));
        1 + own.min(MOST_LEFT) as u64
    }

    /// Waits for a worker.
    async fn lease(&self, request: &RunRequest) -> Result<Lease<'_>, WorkerError> {
        let (token, principal) =
            (self.running.token(), request.parties.first().map(|(name, _)| name.as_str()));
        let mut turn = self.turn(request).await?;
        let slot = match turn.is_of_pool() {
            true => {
                turn.took_slot();
                self.shared.take()
            }
            false => None,
        };
        let mut lease = Lease {
            pool: self,
            worker: None,
            turn: Some(turn),
            settled: false,
            is_between: AtomicBool::new(false),
            running: Some(token),
        };
        let fresh = match slot {
            Some(Slot::Ready(mut worker)) => {
                let other = self.config.isolate_principals
                    && worker.runs > 0
                    && worker.principal.as_deref() != principal;
                // One that was killed while it waited must not take a run along that has not begun.
                if other || worker.is_dead() {
                    self.shared.count_replaced(1);
                    self.keeper.retire(worker, false, None);
                    None
                } else {
                    Some(worker)
                }
            }
            Some(Slot::Empty) | None => None,
        };
        let mut worker = match fresh {
            Some(worker) => worker,
            None => self.keeper.start().await?,
        };
        worker.principal = principal.map(str::to_owned);
        lease.worker = Some(worker);
        Ok(lease)
    }

    /// Waits for its turn. Runs that others wait for have no place in the queue: their number is limited by the calls of those others.
    async fn turn(&self, request: &RunRequest) -> Result<Turn, WorkerError> {
        let party = |(name, times): &(String, usize)| Party { name: name.as_str().into(), times: *times };
        let claim = Claim::new(request.parties.iter().map(party), request.level, request.background);
        let queue = (request.level == 0 && !request.patient).then_some(self.config.queue);
        let waits = match self.shared.line.claim(claim, queue)? {
            Claimed::Turn(turn) => return Ok(turn),
            Claimed::Waits(waits) => waits,
        };
        if request.patient {
            return waits.await;
        }
        let wait = self.config.queue_timeout;
        tokio::time::timeout(wait, waits).await.map_err(|_| WorkerError::QueueTimeout(wait))?
    }

    /// Accepts no more runs, rejects those that wait, lets those under way finish, then ends the workers. Returns when they are gone.
    pub async fn shutdown(&self) {
        self.close();
        self.running.close();
        self.running.wait().await;
        self.keeper.settle().await;
    }

    /// Ends everything now: runs under way end with [`WorkerError::Disposed`].
    pub fn dispose(&self) {
        self.disposed.cancel();
        self.close();
    }

    fn close(&self) {
        let slots: Vec<Slot> = {
            let mut slots = self.shared.slots();
            self.shared.close();
            slots.drain(..).collect()
        };
        for slot in slots {
            if let Slot::Ready(worker) = slot {
                self.keeper.retire(worker, false, None);
            }
        }
    }

    /// Returns the pool's counters.
    pub fn stats(&self) -> PoolStats {
        PoolStats {
            idle: self.shared.idle(),
            waiting: self.shared.line.waiting(),
            running: self.running.len().saturating_sub(self.shared.line.waiting()),
            finished: self.finished.load(Ordering::Relaxed),
            replaced: self.shared.replaced(),
        }
    }

    /// Process ids of the idle workers: for tests that kill one and for memory accounting.
    pub fn idle_pids(&self) -> Vec<u32> {
        let slots = self.shared.slots();
        slots
            .iter()
            .filter_map(|slot| match slot {
                Slot::Ready(worker) => worker.pid(),
                Slot::Empty => None,
            })
            .collect()
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.close();
    }
}

/// Runs of others for which a caller leaves memory, at most: one for each that it has under way.
const MOST_LEFT: usize = 2;

/// Most workers to try for one run, when earlier ones were killed from outside before the script did anything.
const MAX_TRIES: u32 = 3;

/// A worker taken from the pool. It is returned or replaced, whatever happens to the run.
struct Lease<'a> {
    pool: &'a WorkerPool,
    worker: Option<Worker>,
    turn: Option<Turn>,
    /// The slot was returned to the pool.
    settled: bool,
    /// No message between the pool and the worker is half sent or half read.
    is_between: AtomicBool,
    running: Option<TaskTrackerToken>,
}

impl Lease<'_> {
    fn is_of_pool(&self) -> bool {
        self.turn.as_ref().is_some_and(Turn::is_of_pool)
    }

    /// Returns the worker to the pool, or replaces it when it has served enough runs.
    fn give_back(&mut self) {
        let Some(mut worker) = self.worker.take() else { return };
        worker.runs += 1;
        if worker.runs >= self.pool.config.recycle_after || !self.is_of_pool() {
            self.replace(worker, None);
            return;
        }
        self.settled = true;
        if let Some(Slot::Ready(worker)) = self.pool.shared.put(Slot::Ready(worker)) {
            self.pool.keeper.retire(worker, false, None);
        }
    }

    /// Ends the run of the worker, whose outcome nobody waits for: without the process, where that takes only a moment.
    fn give_up(&mut self) {
        let Some(worker) = self.worker.take() else { return };
        let may_stay = worker.runs + 1 < self.pool.config.recycle_after
            && self.is_of_pool()
            && self.is_between.load(Ordering::Relaxed);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if may_stay => {
                self.settled = true;
                let (shared, keeper) = (self.pool.shared.clone(), self.pool.keeper.clone());
                let holds = (self.turn.take(), self.running.take());
                runtime.spawn(async move {
                    given_up::wind_down(worker, &shared, &keeper).await;
                    drop(holds);
                });
            }
            _ => self.replace(worker, None),
        }
    }

    /// Ends the worker and has it replaced.
    fn replace(&mut self, worker: Worker, ended: Option<oneshot::Sender<Exit>>) {
        self.settled = true;
        let replace = self.is_of_pool();
        if replace {
            self.pool.shared.count_replaced(1);
        }
        self.pool.keeper.retire(worker, replace, ended);
    }

    /// Ends a worker that died or misbehaved. Returns the exit status of its process, if it had one.
    async fn end_worker(&mut self) -> Exit {
        let worker = self.worker.take()?;
        let (reply, ended) = oneshot::channel();
        self.replace(worker, Some(reply));
        ended.await.ok().flatten()
    }

    /// Returns `true` if other principals wait for a worker that this run could leave to them.
    fn others_wait(&self) -> bool {
        self.turn.as_ref().is_some_and(Turn::others_wait)
    }

    fn watchdog_extra(&self) -> Duration {
        self.pool.config.watchdog_extra
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.give_up();
        if !self.settled && self.is_of_pool() {
            self.pool.shared.put(Slot::Empty);
        }
    }
}
