//! Servers that tests in different processes share: `cargo nextest` runs each test in its own.
//!
//! Tests with the same server (see `identity`) find its state in a directory of the build. The first starts it, each holds a lease on
//! it, and a keeper ends it a few seconds after the last lease is gone, however the holders ended. At standard input and output they take
//! turns.

mod identity;
mod lease;
pub(super) mod leased_process;
mod state;
mod tail;
mod turn;

use std::{
    fs::File,
    path::{Path, PathBuf},
    time::Duration,
};

use lease::Lease;
use leased_process::LeasedProcess;
use state::StateFile;
use turn::{Pipes, Turn};

use super::{
    builder::{ServerBuilder, Transport},
    error::StartError,
    log_ring::LogRing,
    process::{Output, Process, spawn_advice},
    program,
    running::Server,
    state::ServerInfo,
};
use crate::base::lock;

/// Directories of runs that ended longer ago are removed.
const OLDEST: Duration = Duration::from_secs(24 * 60 * 60);

impl ServerBuilder {
    /// Starts the server, or uses the one that another test of this run has started: with the same program, arguments, environment and
    /// options, whose files have not changed since. It ends a few seconds after the last test that uses it. `stop` gives it back.
    ///
    /// Over standard input and output one test has the server at a time, until it gives it back, and another call waits for that; all
    /// have one handshake. If a test is killed meanwhile, the next one gets a new process.
    ///
    /// # Errors
    /// As [`ServerBuilder::start`]; or the server cannot be shared, since it runs already, or has an HTTP mock of one test.
    pub async fn start_shared(self) -> Result<Server, StartError> {
        self.check_shared()?;
        let identity = identity::of(&self);
        let place = identity::directory().join(identity);
        let failed = |error: std::io::Error| {
            let problem = format!("its directory {} cannot be used: {error}", place.display());
            StartError { advice: "make it writable".into(), ..self.failure(0, problem, &LogRing::default()) }
        };
        loop {
            // While it is locked, only this process looks for the server or starts it.
            let locked = place.clone();
            let locked = tokio::task::spawn_blocking(move || lock_directory(&locked))
                .await
                .unwrap_or_else(|error| Err(std::io::Error::other(error)))
                .map_err(failed)?;
            let running = self.running(&place).await;
            let is_new = running.is_none();
            let server = match running {
                Some(server) => server,
                None => self.clone().start_in(&place).await?,
            };
            if self.transport != Transport::Stdio {
                return Ok(server);
            }
            // Others may start a server while this process waits.
            let state = StateFile::read(&place);
            drop(locked);
            if let Some(state) = state
                && server.take_turn(&state, is_new).await.map_err(failed)?
            {
                return Ok(server);
            }
        }
    }

    fn check_shared(&self) -> Result<(), StartError> {
        let failure = |problem: &str, advice: &str| {
            let failure = self.failure(self.port.unwrap_or(0), problem.into(), &LogRing::default());
            Err(StartError { advice: advice.into(), ..failure })
        };
        #[cfg(feature = "http-mock")]
        if self.http_mock.is_some() {
            return failure(
                "a server with an HTTP mock cannot be shared: the mock belongs to one test",
                "leave `shared` out, for this test or this module",
            );
        }
        if self.base_url.is_some() {
            return failure("a server with `base_url` runs already", "leave `shared` out");
        }
        if let Some((problem, advice)) = program::missing_script(&self.server, self.current_dir.as_deref()) {
            return failure(&problem, &advice);
        }
        Ok(())
    }

    /// The server that runs already, with a lease on it. Ends what is left of one that does not answer.
    async fn running(&self, place: &Path) -> Option<Server> {
        let state = StateFile::read(place)?;
        let lease = Lease::acquire(&state.lease);
        if lease.is_some() && state.is_alive() {
            let server = Server::leased(self.clone());
            *lock(&server.state.info) =
                ServerInfo { base_url: state.base_url.clone(), port: state.port, pid: state.pid };
            let answers = match self.transport {
                Transport::Stdio => Pipes::of(state.directory()).are_open(),
                _ => server.answers(state.port).await,
            };
            if answers {
                let log = tail::Tail::from_end(&state.log, server.state.log.clone());
                *lock(&server.state.leased) = lease.map(|lease| LeasedProcess::new(lease, log));
                return Some(server);
            }
        }
        state.kill();
        None
    }

    async fn start_in(self, place: &Path) -> Result<Server, StartError> {
        let problem = |options: &Self, error: &std::io::Error| {
            options.failure(0, format!("it cannot be shared: {error}"), &LogRing::default())
        };
        let own = tempfile::Builder::new().prefix("server-").tempdir_in(place);
        // The keeper removes it.
        let own = own.map_err(|error| problem(&self, &error))?.keep();
        let log = own.join("log");
        let mut options = self;
        options.log_file = Some(log.clone());
        let server = Server::leased(options);
        let tail = tail::Tail::from_start(&log, server.state.log.clone());
        match server.state.options.transport {
            Transport::Stdio => server.start_on_pipes(&own, &log).await?,
            _ => server.start_child().await?,
        }
        let info = server.info();
        let stop_timeout = server.state.options.stop_timeout;
        let kill = server.state.process.lock().await.as_ref().map(Process::kill_command).unwrap_or_default();
        let lease = lease::keep(&own, info.pid, &kill, stop_timeout).await;
        let lease = lease.map_err(|error| problem(&server.state.options, &error))?;
        let state = StateFile::new(&info, lease.path(), &log);
        state.write(place).map_err(|error| problem(&server.state.options, &error))?;
        if let Some(process) = server.state.process.lock().await.as_mut() {
            process.leave_running();
        }
        *lock(&server.state.leased) = Some(LeasedProcess::new(lease, tail));
        Ok(server)
    }
}

impl Server {
    /// Starts the process with named pipes as its standard input and output.
    async fn start_on_pipes(&self, own: &Path, errors: &Path) -> Result<(), StartError> {
        let (options, log) = (&self.state.options, &self.state.log);
        let failed = |error: std::io::Error| StartError {
            advice: spawn_advice(&error),
            ..options.failure(0, format!("it cannot be run: {error}"), log)
        };
        let pipes = Pipes::make(own).await.map_err(failed)?;
        let output = Output::Named { input: &pipes.input, output: &pipes.output, errors };
        let spawned =
            Process::spawn(options.command(0), output, log, options.stop_timeout, &self.state.last_exit);
        let (process, _) = spawned.map_err(failed)?;
        lock(&self.state.info).pid = process.pid();
        *self.state.process.lock().await = Some(process);
        Ok(())
    }

    /// Waits for the turn at standard input and output. False if the server has to be replaced; one that `is_new` is taken even if it has
    /// ended, so that a client says why.
    async fn take_turn(&self, state: &StateFile, is_new: bool) -> std::io::Result<bool> {
        let dir = state.directory();
        let turn = Turn::wait(dir).await?;
        let Some(turn) = turn.filter(|_| is_new || Pipes::of(dir).are_open()) else {
            state.kill();
            return Ok(false);
        };
        if let Some(process) = lock(&self.state.leased).as_mut() {
            process.has_turn(turn);
        }
        Ok(true)
    }
}

/// Creates and locks the directory of a server, and removes those of earlier runs.
fn lock_directory(place: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(place)?;
    if let Some(all) = place.parent() {
        remove_old(all, place);
    }
    let file = File::options().create(true).truncate(false).write(true).open(place.join("lock"))?;
    file.lock()?;
    Ok(file)
}

fn remove_old(all: &Path, place: &Path) {
    let is_old = |path: &PathBuf| {
        let modified = std::fs::metadata(path).and_then(|data| data.modified());
        modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > OLDEST))
    };
    let others = std::fs::read_dir(all).into_iter().flatten().flatten().map(|entry| entry.path());
    for old in others.filter(|other| other != place).filter(is_old) {
        // A server that runs still is found by its state, which is kept.
        if StateFile::read(&old).is_none_or(|state| !state.is_alive()) {
            let _ = std::fs::remove_dir_all(old);
        }
    }
}
