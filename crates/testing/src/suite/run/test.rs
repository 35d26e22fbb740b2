//! Running one test within its time limit, and what belongs to it afterwards.

use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::{
    Ended, INTERRUPTED, SuiteRun,
    process::{INTERRUPTED_LIMIT, Process},
};
use crate::{
    base::text::random_text,
    http_mock::{HttpMockHandle, HttpMockScope},
    suite::{
        cases::Instance, environment::Environment, failure::Failure, format::TestEntry, step::StepRunner,
        summary::summarized, variables::Variables,
    },
};

/// Default time limit of a test.
const TEST_LIMIT: Duration = Duration::from_secs(60);

impl SuiteRun<'_> {
    /// Runs a test on a server of its own, with `setup` and `teardown`.
    pub(super) async fn on_own_process(
        &self,
        instance: &Instance,
        base: &Variables,
        notes: &mut Vec<String>,
    ) -> Ended {
        let test = &self.suite.file.tests[instance.test];
        let limit = self.limit(test);
        let begin = async {
            let mut variables = base.clone();
            instance.add_to(&mut variables)?;
            let variables = variables;
            let process = Process::begin(self.suite, self.options, &variables, Some(test)).await?;
            let ended = self.on_process(instance, &process, notes).await;
            let (failures, _) = process.end(false, matches!(ended, Ended::Passed), &self.options.stop).await;
            Ok(match (ended, failures.into_iter().next()) {
                (Ended::Passed, Some((name, failure, _))) => {
                    Ended::Failed(failure.within(&format!("{name}: ")))
                }
                (ended, _) => ended,
            })
        };
        // The test has its own limit; what surrounds it has as long again.
        let begun = tokio::select! {
            begun = timeout(limit * 3, begin) => begun,
            () = self.options.stop.cancelled() => return Ended::Failed(INTERRUPTED.to_owned().into()),
        };
        match begun {
            Ok(Ok(ended)) => ended,
            Ok(Err(failure)) => Ended::Failed(failure),
            Err(_) => Ended::Failed(
                format!(
                    "the server of the test, its `setup` and `teardown` took longer than {:?}",
                    limit * 3
                )
                .into(),
            ),
        }
    }

    /// Runs a test on a server, as often as it says.
    pub(super) async fn on_process(
        &self,
        instance: &Instance,
        process: &Process<'_>,
        notes: &mut Vec<String>,
    ) -> Ended {
        let times = self.suite.file.tests[instance.test].repeat.unwrap_or(1);
        for number in 1..=times {
            let outcome = self.once(instance, process, notes).await;
            if let Err(failure) = outcome {
                let place =
                    if times > 1 { format!("repetition {number} of {times}: ") } else { String::new() };
                return Ended::Failed(failure.within(&place));
            }
            if number < times && self.options.stop.is_cancelled() {
                return Ended::Failed(INTERRUPTED.to_owned().into());
            }
        }
        Ended::Passed
    }

    fn limit(&self, test: &TestEntry) -> Duration {
        test.timeout_ms.or(self.suite.file.timeout_ms).map_or(TEST_LIMIT, Duration::from_millis)
    }

    /// Connects the client of a test, runs its steps within the limit, and `afterEach` in any case.
    async fn once(
        &self,
        instance: &Instance,
        process: &Process<'_>,
        notes: &mut Vec<String>,
    ) -> Result<(), Failure> {
        let (suite, environment) = (self.suite, &process.environment);
        let test = &suite.file.tests[instance.test];
        let limit = self.limit(test);
        let too_long = || {
            Failure::from(format!(
                "the test took longer than {limit:?}; raise its `timeoutMs` when that is right"
            ))
        };
        let deadline = Instant::now() + limit;
        let connect = async {
            let mut variables = process.variables().await?;
            variables.known.insert("random".into(), random_text().into());
            instance.add_to(&mut variables)?;
            variables.add_own(&test.variables)?;
            let mocks = TestMocks::add(environment, test, &variables)?;
            let user = test.user.as_ref().or(suite.file.user.as_ref());
            let runner = StepRunner::connect(suite, environment, user, variables, Some(test)).await?;
            Ok::<_, Failure>((runner, mocks))
        };
        let (mut runner, mocks) = tokio::select! {
            connected = timeout_at(deadline, connect) => match connected {
                Ok(connected) => connected?,
                Err(_) => {
                    let none = std::iter::empty();
                    let seen = crate::suite::observations::observations(environment, environment.http_mark(), none).await;
                    return Err(Failure::from(format!("while it connected: {}{seen}", too_long().text)));
                }
            },
            () = self.options.stop.cancelled() => return Err(INTERRUPTED.to_owned().into()),
        };
        if let Some(ms) = test.timeout_ms.or(suite.file.timeout_ms) {
            // The test ends first, and says so.
            runner.response_limit = Duration::from_millis(ms) + Duration::from_secs(1);
        }
        let mut interrupted = false;
        let outcome = tokio::select! {
            outcome = timeout_at(deadline, steps(&mut runner, test, instance.test)) => Some(outcome),
            () = self.options.stop.cancelled() => None,
        };
        let outcome = match outcome {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) => Err(runner.report(too_long()).await),
            None => {
                interrupted = true;
                Err(runner.report(INTERRUPTED.to_owned().into()).await)
            }
        };
        let limit = if interrupted { INTERRUPTED_LIMIT } else { limit };
        let after = timeout(limit, runner.run_all("/afterEach", &suite.file.after_each)).await;
        let after = match after {
            Ok(after) => after,
            Err(_) => Err(runner.report(format!("`afterEach` took longer than {limit:?}").into()).await),
        };
        runner.disconnect().await;
        let mut violations = environment.take_notes();
        violations.extend(runner.violations());
        let untold = || runner.untold_violations().map_or(Ok(()), |error| Err(error.to_string().into()));
        let outcome =
            outcome.and(after).and_then(|()| untold()).and_then(|()| mocks.check(environment, &runner));
        let outcome = outcome.and_then(|()| runner.leak().map_or(Ok(()), Err));
        let finished = runner.finish_cassette(outcome.is_ok());
        let outcome = outcome.and_then(|()| finished.map_err(Failure::from));
        let outcome = outcome.map(|stale| violations.extend(stale));
        if outcome.is_ok() {
            notes.extend(violations);
            *notes = summarized(std::mem::take(notes));
        }
        outcome
    }
}

/// Runs `beforeEach` and the steps of a test.
async fn steps(runner: &mut StepRunner<'_>, test: &TestEntry, index: usize) -> Result<(), Failure> {
    runner.mock(&test.mocks)?;
    runner.answer(Some(test))?;
    let before_each = &runner.suite.file.before_each;
    runner.run_all("/beforeEach", before_each).await?;
    runner.run_all(&format!("/tests/{index}/steps"), &test.steps).await?;
    if test.steps.is_empty() && !runner.is_connected() {
        return Err("the server refused the client".to_owned().into());
    }
    Ok(())
}

/// HTTP mocks of one test.
struct TestMocks {
    _scope: Option<HttpMockScope>,
    /// Mocks that must be used, with the required number of uses.
    required: Vec<(HttpMockHandle, usize)>,
}

impl TestMocks {
    fn add(environment: &Environment, test: &TestEntry, variables: &Variables) -> Result<Self, String> {
        let (Some(http), false) = (&environment.http, test.http_mocks.is_empty()) else {
            return Ok(Self { _scope: None, required: Vec::new() });
        };
        let mocks = test.http_mocks.iter().map(|entry| entry.options(variables));
        let scope = http.scope(mocks.collect::<Result<Vec<_>, _>>()?);
        let all = scope.handles().into_iter().zip(&test.http_mocks);
        let required = all.filter(|(_, entry)| entry.required);
        let required = required.map(|(handle, entry)| (handle, entry.times.unwrap_or(1) as usize)).collect();
        Ok(Self { _scope: Some(scope), required })
    }

    /// Required mocks that were not used, and calls that no mock matched while the test ran.
    fn check(&self, environment: &Environment, runner: &StepRunner<'_>) -> Result<(), Failure> {
        if self._scope.is_none() {
            return Ok(());
        }
        let mut lines: Vec<String> = self
            .required
            .iter()
            .filter(|(handle, times)| handle.call_count() < *times)
            .map(|(handle, times)| {
                format!("not used: {handle} (used {} of {times} times)", handle.call_count())
            })
            .collect();
        lines.extend(environment.tell_unmatched(runner.since.unmatched));
        if lines.is_empty() { Ok(()) } else { Err(lines.join("\n").into()) }
    }
}
