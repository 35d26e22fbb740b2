//! A running server on which the steps of `setup` have run, for all tests of a suite or for one.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::suite::{
    environment::Environment,
    failure::Failure,
    file::Suite,
    format::{Step, TestEntry},
    options::RunOptions,
    step::StepRunner,
    variables::Variables,
};

/// Time limit of each thing that follows an interruption.
pub(super) const INTERRUPTED_LIMIT: Duration = Duration::from_secs(2);

/// A running server and the variables that `setup` saved.
pub(super) struct Process<'a> {
    suite: &'a Suite,
    pub(super) environment: Environment,
    /// Variables without those of the server.
    base: &'a Variables,
    /// Variables of the process that runs now.
    variables: Mutex<Variables>,
}

impl<'a> Process<'a> {
    /// Starts the server and runs `setup`.
    pub(super) async fn begin(
        suite: &'a Suite,
        options: &RunOptions,
        base: &'a Variables,
        own: Option<&TestEntry>,
    ) -> Result<Self, Failure> {
        let environment = Environment::start(suite, options, base, own).await?;
        let process = Self { suite, environment, base, variables: Mutex::new(base.clone()) };
        match process.prepare().await {
            Ok(variables) => *process.variables.lock().await = variables,
            Err(failure) => {
                process.environment.server.stop().await;
                return Err(failure);
            }
        }
        Ok(process)
    }

    /// The variables of the server and those that `setup` saved. A process over standard input and output that has ended is replaced by
    /// another one, on which `setup` runs again.
    pub(super) async fn variables(&self) -> Result<Variables, Failure> {
        let mut variables = self.variables.lock().await;
        if !self.environment.server.is_shared_open().await {
            *variables = self.prepare().await?;
        }
        Ok(variables.clone())
    }

    async fn prepare(&self) -> Result<Variables, Failure> {
        self.environment.open(self.suite, self.base).await?;
        let mut variables = self.base.clone();
        variables.known.extend(self.environment.variables());
        let saved = self.steps("setup", &self.suite.file.setup, variables).await;
        saved.map_err(|failure| failure.within("setup: "))
    }

    /// Runs `teardown` and stops the server. Returns the failures by name, and notes on the cassette. Required mocks count only if all
    /// tests ran (`complete`); the cassette is written only if they `passed`. After an interruption
    /// (`stop`), `teardown` has little time.
    pub(super) async fn end(
        &self,
        complete: bool,
        passed: bool,
        stop: &CancellationToken,
    ) -> (Vec<(&'static str, Failure, Instant)>, Vec<String>) {
        let started = Instant::now();
        let variables = self.variables.lock().await.clone();
        let steps = match self.suite.file.teardown.is_empty() {
            true => Ok(variables),
            false => tokio::select! {
                done = self.steps("teardown", &self.suite.file.teardown, variables) => done,
                () = too_late(stop) => Err("the run was interrupted".to_owned().into()),
            },
        };
        self.environment.server.stop().await;
        let mocks = self.environment.mock_problems(complete).map(Failure::from);
        let output = self.environment.server.get_logs();
        let leak = self.environment.secrets.problem_in_output(&output).map(Failure::from);
        let passed = passed && steps.is_ok() && mocks.is_none() && leak.is_none();
        let http = self.environment.http.as_ref();
        let cassette = http.map_or(Ok(Vec::new()), |http| http.finish_cassette(passed, complete));
        let (notes, cassette) = match cassette {
            Ok(notes) => (notes, None),
            Err(problem) => (Vec::new(), Some(Failure::from(problem))),
        };
        let all = [("teardown", steps.err()), ("mocks", mocks), ("secrets", leak), ("recordHttp", cassette)];
        let failed = all.into_iter().filter_map(|(name, failure)| Some((name, failure?, started)));
        (failed.collect(), notes)
    }

    /// Runs steps outside of tests, with their own client. Returns the variables with those that they saved.
    async fn steps(&self, name: &str, steps: &[Step], variables: Variables) -> Result<Variables, Failure> {
        if steps.is_empty() {
            return Ok(variables);
        }
        let user = self.suite.file.user.as_ref();
        let mut runner = StepRunner::connect(self.suite, &self.environment, user, variables, None).await?;
        let outcome = runner.answer(None).map_err(Failure::from);
        let outcome = match outcome {
            Ok(()) => runner.run_all(&format!("/{name}"), steps).await,
            failed => failed,
        };
        runner.disconnect().await;
        outcome.map(|()| runner.variables)
    }
}

/// Waits until an interruption has lasted too long.
async fn too_late(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(INTERRUPTED_LIMIT).await;
}
