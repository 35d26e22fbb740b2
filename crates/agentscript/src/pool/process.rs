//! Starts, kills and reaps workers, on one thread that lives as long as the pool.
//!
//! One thread, because the parent-death signal follows the *thread* that started a process, not the process.

use std::{
    io,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Weak, mpsc},
    thread,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{
    config::{Adapter, PoolConfig, WorkerCommand},
    slots::{Slot, WorkerSlots},
};
use crate::{
    outcome::WorkerError,
    protocol::MessageKind,
    worker::{self, Link, SandboxReport, sandbox::Plan},
};

/// A worker.
pub(super) struct Worker {
    pub(super) stream: UnixStream,
    child: Option<Child>,
    pub(super) runs: u32,
    /// `runs` when its memory was last measured.
    measured: u32,
    pub(super) principal: Option<String>,
    pub(super) report: SandboxReport,
}

impl Worker {
    /// Returns true when the worker died while it waited.
    pub(super) fn is_dead(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| child.try_wait().is_ok_and(|status| status.is_some()))
    }

    /// Returns true when the worker holds much more memory than one that has run nothing. Measures it once after each run.
    pub(super) fn is_large(&mut self) -> bool {
        if std::mem::replace(&mut self.measured, self.runs) == self.runs {
            return false;
        }
        self.pid().and_then(private_bytes).is_some_and(|bytes| bytes > LARGE)
    }

    /// The process's id, for a worker that is one.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }
}

/// Memory of an idle worker above which it is replaced, in bytes. Usual are 1 to 3 MiB.
const LARGE: u64 = 8 * 1024 * 1024;

/// Memory of a process that is not mapped from files, in bytes; `None` where the system does not tell.
fn private_bytes(pid: u32) -> Option<u64> {
    const PAGE: u64 = 4096;
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut pages = statm.split(' ').skip(1).map_while(|field| field.parse::<u64>().ok());
    let (resident, shared) = (pages.next()?, pages.next()?);
    Some(resident.saturating_sub(shared) * PAGE)
}

/// Exit status of a retired worker.
pub(super) type Exit = Option<ExitStatus>;

enum Job {
    /// Answered when every job before it is done.
    Barrier(oneshot::Sender<()>),
    Start(oneshot::Sender<Result<Worker, WorkerError>>),
    Retire {
        worker: Worker,
        replace: bool,
        ended: Option<oneshot::Sender<Exit>>,
    },
}

/// The reason why a worker could not be started.
enum NotStarted {
    /// It ended before it was ready, killed perhaps: another attempt may succeed.
    Died,
    /// Another attempt would fail too.
    Failed(String),
}

impl From<NotStarted> for WorkerError {
    fn from(why: NotStarted) -> Self {
        Self::StartupFailed(match why {
            NotStarted::Died => "it ended before it was ready".to_owned(),
            NotStarted::Failed(why) => why,
        })
    }
}

/// Handle of the thread that starts and ends workers.
#[derive(Clone)]
pub(super) struct Keeper {
    jobs: mpsc::Sender<Job>,
}

impl Keeper {
    /// Starts the thread. Replacements go to `pool`.
    pub(super) fn new(config: PoolConfig, pool: Weak<WorkerSlots>) -> io::Result<Self> {
        let (jobs, inbox) = mpsc::channel();
        thread::Builder::new()
            .name("agentscript-pool".to_owned())
            .spawn(move || keep(&inbox, &config, &pool))?;
        Ok(Self { jobs })
    }

    /// Starts a worker.
    pub(super) async fn start(&self) -> Result<Worker, WorkerError> {
        let (reply, started) = oneshot::channel();
        let gone = || WorkerError::StartupFailed("the pool's thread is gone".to_owned());
        self.jobs.send(Job::Start(reply)).map_err(|_| gone())?;
        started.await.map_err(|_| gone())?
    }

    /// As [`Keeper::start`], for callers outside a runtime.
    pub(super) fn start_blocking(&self) -> Result<Worker, WorkerError> {
        let (reply, mut started) = oneshot::channel();
        let gone = || WorkerError::StartupFailed("the pool's thread is gone".to_owned());
        self.jobs.send(Job::Start(reply)).map_err(|_| gone())?;
        // Not `blocking_recv`, which refuses to run inside a runtime: start-up is short and happens once.
        loop {
            match started.try_recv() {
                Ok(worker) => return worker,
                Err(oneshot::error::TryRecvError::Empty) => thread::park_timeout(Duration::from_micros(100)),
                Err(oneshot::error::TryRecvError::Closed) => return Err(gone()),
            }
        }
    }

    /// Waits until every worker retired so far has ended.
    pub(super) async fn settle(&self) {
        let (reply, settled) = oneshot::channel();
        if self.jobs.send(Job::Barrier(reply)).is_ok() {
            let _ = settled.await;
        }
    }

    /// Ends a worker and, unless the pool is closing, puts a new one in its place.
    pub(super) fn retire(&self, worker: Worker, replace: bool, ended: Option<oneshot::Sender<Exit>>) {
        // When the thread is gone so is the pool, and with it every worker: they die with their socket's other end.
        let _ = self.jobs.send(Job::Retire { worker, replace, ended });
    }
}

fn keep(inbox: &mpsc::Receiver<Job>, config: &PoolConfig, pool: &Weak<WorkerSlots>) {
    let mut look_at = Instant::now() + LOOK_AFTER;
    let mut surplus_at = Instant::now() + config.idle_timeout;
    loop {
        let job = match inbox.recv_timeout(look_at.saturating_duration_since(Instant::now())) {
            Ok(job) => job,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                look_at = Instant::now() + LOOK_AFTER;
                let Some(pool) = pool.upgrade() else { continue };
                replace_faulty(config, &pool);
                if Instant::now() >= surplus_at {
                    surplus_at = Instant::now() + config.idle_timeout;
                    for worker in pool.take_surplus(config.workers) {
                        end(worker);
                    }
                }
                continue;
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        };
        match job {
            Job::Barrier(reply) => {
                let _ = reply.send(());
            }
            // Whoever needed it has left.
            Job::Start(reply) if reply.is_closed() => {}
            Job::Start(reply) => {
                if let Err(Ok(unwanted)) = reply.send(start(config)) {
                    end(unwanted);
                }
            }
            Job::Retire { worker, replace, ended } => {
                let status = end(worker);
                if let Some(ended) = ended {
                    let _ = ended.send(status);
                }
                if replace && let Some(pool) = pool.upgrade() {
                    let slot = match start(config) {
                        Ok(worker) => Slot::Ready(worker),
                        Err(error) => {
                            tracing::warn!(error = %error, "a worker could not be replaced; the next run tries again");
                            Slot::Empty
                        }
                    };
                    if let Some(Slot::Ready(unwanted)) = pool.put(slot) {
                        end(unwanted);
                    }
                }
            }
        }
    }
}

/// Interval of the checks for workers that were killed while they waited, or hold too much memory.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Ends workers that died while they waited or hold too much memory, and starts others where fewer are left than the pool began with.
fn replace_faulty(config: &PoolConfig, pool: &WorkerSlots) {
    for faulty in pool.take_faulty() {
        end(faulty);
        if pool.idle() >= config.workers {
            continue;
        }
        match start(config) {
            Ok(worker) => {
                if let Some(unwanted) = pool.fill(worker) {
                    end(unwanted);
                }
            }
            Err(error) => {
                tracing::warn!(error = %error, "a worker could not be replaced; the next run tries again");
            }
        }
    }
}

/// Kills a worker and waits for it, so that it leaves no zombie.
fn end(worker: Worker) -> Exit {
    let _ = worker.stream.shutdown(std::net::Shutdown::Both);
    let mut child = worker.child?;
    // A process that is dead already keeps the status it died with.
    let _ = child.kill();
    child.wait().ok()
}

/// Most attempts to start one worker, when earlier ones were killed.
const MOST_STARTS: u32 = 4;

/// Starts a worker, and another one when it was killed before it was ready.
fn start(config: &PoolConfig) -> Result<Worker, WorkerError> {
    let mut starts = 1;
    loop {
        match start_one(config) {
            Err(NotStarted::Died) if starts < MOST_STARTS => starts += 1,
            Ok(worker) => return Ok(worker),
            Err(why) => return Err(why.into()),
        }
    }
}

fn start_one(config: &PoolConfig) -> Result<Worker, NotStarted> {
    let failed = |error: io::Error| NotStarted::Failed(plain(&error));
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let child = match config.adapter {
        Adapter::Processes => Some(spawn(config, theirs).map_err(failed)?),
        Adapter::InProcess => {
            let report = SandboxReport {
                missing: vec!["runs in this process".to_owned()],
                ..SandboxReport::default()
            };
            thread::Builder::new()
                .name("agentscript-run".to_owned())
                .stack_size(worker::WORKER_STACK)
                .spawn(move || worker::serve(theirs, report))
                .map_err(failed)?;
            None
        }
    };
    let worker = Worker {
        stream: ours,
        child,
        runs: 0,
        measured: 0,
        principal: None,
        report: SandboxReport::default(),
    };
    match greet(&worker.stream, config) {
        Ok(report) => Ok(Worker { report, ..worker }),
        Err(error) => {
            end(worker);
            Err(error)
        }
    }
}

/// Returns the operating system's message, without its number or any path.
fn plain(error: &io::Error) -> String {
    error.kind().to_string()
}

/// Settings of mimalloc, for programs that allocate with it: a worker may map too little to reserve a gigabyte in one piece, needs too
/// little for huge pages, and may not ask which NUMA node it is on.
const ALLOCATOR: [(&str, &str); 3] =
    [("MIMALLOC_ARENA_RESERVE", "64MiB"), ("MIMALLOC_ALLOW_THP", "0"), ("MIMALLOC_USE_NUMA_NODES", "1")];

/// The program that runs: on Linux also when another file was put in its place since it started.
fn own_program() -> io::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if cfg!(target_os = "linux") && running.exists() { Ok(running.into()) } else { std::env::current_exe() }
}

fn spawn(config: &PoolConfig, socket: UnixStream) -> io::Result<Child> {
    let own;
    let command = match &config.command {
        Some(command) => command,
        None => {
            own = WorkerCommand { program: own_program()?, args: vec!["worker".into()] };
            &own
        }
    };
    let mut worker = Command::new(&command.program);
    if config.command.is_none() {
        // What lists of processes show.
        worker.arg0(std::env::args_os().next().unwrap_or_default());
    }
    worker
        .args(&command.args)
        .args(Plan::to_args(std::process::id(), config.address_space))
        .env_clear()
        .envs(ALLOCATOR)
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(socket)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Longest first message of a worker.
const MAX_GREETING: usize = 64 * 1024;

/// Waits for the worker's first message.
fn greet(stream: &UnixStream, config: &PoolConfig) -> Result<SandboxReport, NotStarted> {
    let silent = |_| NotStarted::Failed("it did not report that it is ready".to_owned());
    stream.set_read_timeout(Some(config.startup_timeout)).map_err(silent)?;
    let mut link = Link::new(stream.try_clone().map_err(silent)?, MAX_GREETING);
    let ended = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
    };
    let first = link.next().map_err(|error| if ended(&error) { NotStarted::Died } else { silent(error) })?;
    let report = match first {
        Some(frame) if frame.kind == MessageKind::Ready => serde_json::from_str::<SandboxReport>(frame.head)
            .map_err(|_| NotStarted::Failed("its first message is malformed".to_owned()))?,
        Some(_) => return Err(NotStarted::Failed("its first message is malformed".to_owned())),
        None => return Err(NotStarted::Died),
    };
    if config.require_sandbox && !report.is_complete() {
        return Err(NotStarted::Failed(format!(
            "the sandbox is incomplete and required: {}",
            report.missing.join("; ")
        )));
    }
    stream.set_read_timeout(None).map_err(silent)?;
    stream.set_nonblocking(true).map_err(silent)?;
    Ok(report)
}
