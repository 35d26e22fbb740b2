//! Steps at the same time.

use futures::future::{BoxFuture, FutureExt as _, join_all};
use serde_json::json;

use super::{StepRunner, outcome::Outcome};
use crate::suite::{failure::Failure, format::Step};

impl<'a> StepRunner<'a> {
    /// Runs steps at the same time, each as often as its `copies` says. With `may_fail`, a step without expectations may fail.
    pub(super) fn parallel<'s>(
        &'s mut self,
        steps: &'s [Step],
        may_fail: bool,
    ) -> BoxFuture<'s, Result<Outcome, Failure>> {
        async move {
            let mut branches = Vec::new();
            for (number, step) in steps.iter().enumerate() {
                // Connected before the first step begins.
                self.client_of(step.user.as_ref()).await?;
                for copy in 1..=step.copies.unwrap_or(1) {
                    branches.push((number + 1, copy, step));
                }
            }
            let running = branches.into_iter().map(|(number, copy, step)| {
                let mut branch = self.branch();
                branch.variables.known.insert("copy".into(), copy.into());
                async move { (branch.run(step).await, branch, number, step) }
            });
            let ended = join_all(running.collect::<Vec<_>>()).await;
            let (mut results, mut succeeded) = (Vec::new(), 0);
            for (outcome, branch, number, step) in ended {
                match outcome {
                    Ok(outcome) => {
                        succeeded += 1;
                        results.push(json!({"succeeded": true, "outcome": outcome}));
                    }
                    Err(failure) if may_fail && step.expect.is_empty() => {
                        results.push(json!({"succeeded": false, "error": failure.text}));
                    }
                    Err(failure) => {
                        let action = step.actions().join(", ");
                        return Err(failure.within(&format!("parallel step {number} ({action}): ")));
                    }
                }
                for name in step.save.keys() {
                    if let Some(value) = branch.variables.known.get(name) {
                        self.variables.known.insert(name.clone(), value.clone());
                    }
                }
                self.subscriptions.extend(branch.subscriptions);
            }
            let failed = results.len() - succeeded;
            let whole = json!({"succeeded": succeeded, "failed": failed, "results": results});
            Ok(Outcome::json(whole))
        }
        .boxed()
    }

    fn branch(&self) -> StepRunner<'a> {
        StepRunner {
            suite: self.suite,
            environment: self.environment,
            mcp: self.main.clone(),
            main: self.main.clone(),
            others: self.others.clone(),
            variables: self.variables.clone(),
            subscriptions: Vec::new(),
            answers: self.answers.clone(),
            at: self.at.clone(),
            since: self.since,
            response_limit: self.response_limit,
            strict: self.strict.clone(),
            durations_ms: Vec::new(),
            is_branch: true,
            tape: None,
        }
    }
}
