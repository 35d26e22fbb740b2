//! Running a step, and checking its outcome.

mod act;
mod control;
mod expected;
mod http;
mod http_calls;
mod mocks;
mod outcome;
mod parallel;
mod place;
mod session;

use std::time::{Duration, Instant};

use outcome::Outcome;
pub(super) use place::Place;
use serde_json::Value;

use super::{
    answers::Answers,
    environment::{Environment, HttpMark},
    failure::Failure,
    file::Suite,
    format::Step,
    variables::Variables,
};
use crate::{
    client::{Mcp, Subscription, Tape},
    matchers::{Expectation, Recorded, Subject},
    shapes::Strict,
};

/// Runs steps with one client, and with further clients of steps that name a user.
pub(super) struct StepRunner<'a> {
    pub(super) suite: &'a Suite,
    pub(super) environment: &'a Environment,
    /// The client of the step that runs.
    pub(super) mcp: Mcp,
    /// The client of steps that name no user.
    main: Mcp,
    /// Clients of other users, by how the suite names them.
    others: Vec<(String, Mcp)>,
    pub(super) variables: Variables,
    subscriptions: Vec<Subscription>,
    answers: Answers,
    /// The step that runs, for reports.
    pub(super) at: Place,
    /// HTTP calls from before the test, which it does not see.
    pub(super) since: HttpMark,
    /// Time limit of a response, unless its step has its own.
    pub(super) response_limit: Duration,
    /// Rules for messages of the server, in place of those of the suite.
    strict: Option<Strict>,
    /// Durations of the repetitions of the step that runs, in milliseconds.
    durations_ms: Vec<f64>,
    /// True for a step of `parallel`, which shares its client with others at the same time.
    is_branch: bool,
    /// The cassette of the test.
    tape: Option<Tape>,
}

impl StepRunner<'_> {
    /// Runs a step once and checks its expectations; the error is the first that was not met. Returns the outcome as JSON.
    async fn attempt(&mut self, step: &Step) -> Result<Value, Failure> {
        let started = Instant::now();
        let outcome = match &step.parallel {
            Some(steps) => self.parallel(steps, !step.expect.is_empty()).await?,
            None => self.act(step).await?,
        };
        let duration_ms = started.elapsed().as_secs_f64() * 1e3;
        let subject = outcome.subject();
        // The server may send secrets to the services that it calls.
        if step.http_calls.is_none()
            && let Some(problem) = self.environment.secrets.problem_in_json("the outcome", &subject.json())
        {
            return Err(problem.into());
        }
        let expected = self.expected(&step.expect)?;
        // A test of a raw response expects that it may be an error.
        let failure_expected = match step.raw {
            Some(_) => !expected.is_empty(),
            None => expected.iter().any(Expectation::expects_failure),
        };
        // Other expectations have nothing to check.
        if let (Outcome::Failed(_) | Outcome::Refused(_), Some(failure)) = (&outcome, outcome.failure())
            && step.raw.is_none()
            && !failure_expected
        {
            let meant = if matches!(outcome, Outcome::Refused(_)) { "toBeRefused" } else { "toBeError" };
            return Err(format!("{failure}\nexpect it with `{meant}` when it is meant").into());
        }
        for one in expected.iter().filter(|one| !one.is_of_durations()) {
            one.check(&subject)
                .map_err(|mismatch| Failure::mismatch(format!("{one}\n{mismatch}"), &mismatch))?;
        }
        // An unexpected failure must not pass because the step has no expectations.
        if let (Some(failure), false) = (outcome.failure(), failure_expected) {
            return Err(format!("{failure}\nexpect it with `toBeError` when it is meant").into());
        }
        let json = subject.json();
        for (name, pointer) in &step.save {
            let value = json
                .pointer(pointer)
                .ok_or_else(|| format!("`save`: there is nothing at `{pointer}` in {subject}"))?;
            self.variables.known.insert(name.clone(), value.clone());
        }
        self.durations_ms.push(duration_ms);
        Ok(json)
    }

    /// Checks expectations of how long the step took, with all its repetitions.
    fn check_durations(&self, step: &Step) -> Result<(), Failure> {
        let recorded = Recorded { items: Vec::new(), durations_ms: self.durations_ms.clone() };
        let subject = Subject::Recorded(recorded);
        for one in self.expected(&step.expect)?.iter().filter(|one| one.is_of_durations()) {
            one.check(&subject)
                .map_err(|mismatch| Failure::mismatch(format!("{one}\n{mismatch}"), &mismatch))?;
        }
        Ok(())
    }
}
