//! Repeating steps: a number of times, or until their expectations are met.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::StepRunner;
use crate::suite::{
    failure::Failure,
    format::{RetrySection, Step},
};

/// Default time of attempts.
const RETRY_FOR: Duration = Duration::from_secs(5);
/// Default time between attempts.
const RETRY_EVERY: Duration = Duration::from_millis(100);

impl StepRunner<'_> {
    /// Runs a step as often as it says. Returns the last outcome as JSON.
    pub(super) async fn run(&mut self, step: &Step) -> Result<Value, Failure> {
        self.durations_ms.clear();
        let outcome = self.repeated(step).await?;
        self.check_durations(step)?;
        Ok(outcome)
    }

    async fn repeated(&mut self, step: &Step) -> Result<Value, Failure> {
        let Some(times) = step.repeat else { return self.until_met(step).await };
        let mut outcome = Value::Null;
        for number in 1..=times {
            self.variables.known.insert("repetition".into(), number.into());
            outcome = self
                .until_met(step)
                .await
                .map_err(|failure| failure.within(&format!("repetition {number} of {times}: ")))?;
        }
        Ok(outcome)
    }

    async fn until_met(&mut self, step: &Step) -> Result<Value, Failure> {
        let Some(RetrySection { timeout_ms, every_ms }) = step.retry else { return self.limited(step).await };
        let limit = timeout_ms.map_or(RETRY_FOR, Duration::from_millis);
        let every = every_ms.map_or(RETRY_EVERY, Duration::from_millis);
        let (deadline, mut attempts) = (Instant::now() + limit, 0);
        loop {
            attempts += 1;
            let failure = match self.limited(step).await {
                Ok(outcome) => return Ok(outcome),
                Err(failure) => failure,
            };
            if Instant::now() + every > deadline {
                return Err(failure.within(&format!("not met within {limit:?}, attempt {attempts}: ")));
            }
            tokio::time::sleep(every).await;
        }
    }

    /// Runs a step within its time limit.
    async fn limited(&mut self, step: &Step) -> Result<Value, Failure> {
        // An HTTP request of a user needs no client of the user.
        self.mcp = self.client_of(step.user.as_ref().filter(|_| step.http.is_none())).await?;
        let limit = step.timeout_ms.map(Duration::from_millis);
        // Steps of `parallel` share the client, and with it the time limit of its responses.
        if !self.is_branch {
            self.mcp.set_timeout(limit.unwrap_or(self.response_limit));
        }
        match limit.filter(|_| self.is_branch || step.parallel.is_some()) {
            None => self.attempt(step).await,
            Some(limit) => tokio::time::timeout(limit, self.attempt(step))
                .await
                .unwrap_or_else(|_| Err(format!("the step took longer than {limit:?}").into())),
        }
    }
}
