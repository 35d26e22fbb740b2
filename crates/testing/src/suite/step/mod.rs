//! Running a step, and checking its outcome.

mod act;
mod expected;
mod http_calls;
mod mocks;
mod outcome;

use expected::Expected;
use outcome::Outcome;

use super::{environment::Environment, file::Suite, format::Step, variables::Variables};
use crate::{
    client::{Mcp, Subscription},
    matchers::apply,
};

/// Runs steps with one client.
pub(super) struct StepRunner<'a> {
    pub(super) suite: &'a Suite,
    pub(super) environment: &'a Environment,
    pub(super) mcp: Mcp,
    pub(super) variables: Variables,
    pub(super) subscriptions: Vec<Subscription>,
}

impl StepRunner<'_> {
    /// Runs a step and checks its expectations; the error is the first that was not met.
    pub(super) async fn run(&mut self, step: &Step) -> Result<(), String> {
        let outcome = self.act(step).await?;
        let subject = outcome.subject();
        let expected: Vec<_> =
            step.expect.iter().map(|one| self.expected(&one.0)).collect::<Result<_, _>>()?;
        // A test of a raw response expects that it may be an error.
        let failure_expected = match step.raw {
            Some(_) => !expected.is_empty(),
            None => expected.iter().any(Expected::is_failure),
        };
        // Other expectations have nothing to check.
        if let (Outcome::Failed(_) | Outcome::Refused(_), Some(failure)) = (&outcome, outcome.failure())
            && step.raw.is_none()
            && !failure_expected
        {
            let meant = if matches!(outcome, Outcome::Refused(_)) { "toBeRefused" } else { "toBeError" };
            return Err(format!("{failure}\nexpect it with `{meant}` when it is meant"));
        }
        for Expected { name, negated, matcher } in &expected {
            apply(&**matcher, *negated, &subject).map_err(|mismatch| {
                let not = if *negated { "not " } else { "" };
                format!("{not}{name}\n{mismatch}")
            })?;
        }
        // An unexpected failure must not pass because the step has no expectations.
        if let (Some(failure), false) = (outcome.failure(), failure_expected) {
            return Err(format!("{failure}\nexpect it with `toBeError` when it is meant"));
        }
        let json = subject.json();
        for (name, pointer) in &step.save {
            let value = json
                .pointer(pointer)
                .ok_or_else(|| format!("`save`: there is nothing at `{pointer}` in {subject}"))?;
            self.variables.known.insert(name.clone(), value.clone());
        }
        Ok(())
    }
}
