//! Runs without a client: they go on when it leaves, and on another instance when theirs is gone.

use std::{
    convert::Infallible,
    sync::{Arc, Weak},
    time::Duration,
};

use gatewright_core::{
    AnsweredLater, Authenticator, Caller, Claimant, PlanFacts, rmcp::model::CallToolResult,
};
use gatewright_executions::{ExecutionError, ExecutionId, Head, Reader, State};
use serde_json::json;
use tokio::{sync::broadcast::error::RecvError, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    background::OwnerNow,
    flow::{Run, of_execution},
    refusal::Refusal,
};
use crate::{CodeCall, meta_tools::EXECUTE, tool_result::answer};

impl CodeCall {
    /// Allows runs in the background from now on, and goes on with those whose instance is gone or whose approvals are settled. `owners` says what those who
    /// began them may still do; without it, they may what they might then. Must be called within a Tokio runtime, once.
    pub fn run_in_background(self: &Arc<Self>, owners: Option<&Arc<dyn Authenticator>>) {
        if self.this.set(Arc::downgrade(self)).is_err() {
            return;
        }
        if let Some(owners) = owners {
            let _ = self.background.owners.set(Arc::downgrade(owners));
        }
        let (this, halt) = (Arc::downgrade(self), self.background.halt.clone());
        let (lease, approvals) = (self.executions.config().lease, self.invoker.approvals().clone());
        let pause = (lease / 2).min(LOOK);
        self.background.tasks.spawn(async move {
            let now = Instant::now();
            let (mut may_take, mut look, mut expire) = (now, now + pause, now);
            loop {
                let is_woken = tokio::select! {
                    () = tokio::time::sleep_until(look) => false,
                    () = approvals.woken() => true,
                    () = halt.cancelled() => return,
                };
                let Some(code_call) = this.upgrade() else { return };
                if !is_woken && Instant::now() >= expire {
                    let next = approvals.expire().await.ok().flatten();
                    expire = Instant::now() + next.map_or(EXPIRE, |next| next.min(EXPIRE));
                }
                if let Err(error) = code_call.take_up_settled().await {
                    tracing::debug!(%error, "it is not known which runs can go on");
                }
                if is_woken {
                    continue;
                }
                look = Instant::now() + pause;
                let abandoned = code_call.executions.abandoned().await;
                match abandoned {
                    Ok(abandoned) if Instant::now() >= may_take => code_call.take_over(abandoned).await,
                    Ok(_) => {}
                    // Leases ran out while the store did not answer: their holders come first.
                    Err(_) => may_take = Instant::now() + lease / 2,
                }
            }
        });
    }

    /// Returns `true` if runs in the background are allowed.
    pub(crate) fn runs_in_background(&self) -> bool {
        self.this.get().is_some()
    }

    /// Goes on with runs whose instance is gone.
    async fn take_over(self: &Arc<Self>, abandoned: Vec<Head>) {
        for head in abandoned {
            // Another instance may have been faster.
            if let Ok(true) = self.go_on_alone(&head).await {
                tracing::info!(execution.id = %head.id, "going on with an execution whose instance is gone");
            }
        }
    }

    /// Goes on with a run in the background that no instance has, without a client, as far as its owner may. One whose owner may not, or that cannot be read,
    /// ends. Returns `false` for one that waits for its owner, since nobody knows what that one may do by now.
    ///
    /// # Errors
    /// Another instance has it, it has ended, or a store does not answer. [`ExecutionError::Full`] if there is too little memory for its journal now.
    pub(super) async fn go_on_alone(self: &Arc<Self>, head: &Head) -> Result<bool, ExecutionError> {
        let owner = self.background.owner_now(head).await?;
        if matches!(owner, OwnerNow::Unknown) && head.state == State::Waiting {
            return Ok(false);
        }
        // Many may be there to go on with: those for which there is no room now come later.
        let mut room = self.background.journal_room(head).ok_or(ExecutionError::Full)?;
        let id = &head.id.to_string();
        let (lease, execution) = self.executions.acquire(id, Reader::Operator).await?;
        room.shrink_to(&execution.head);
        let Some(mut run) = Run::resume(self, lease, execution).await else {
            tracing::warn!(execution.id = id, "the journal of an execution cannot be read");
            let ending = ExecutionError::Unreadable.into();
            let _ = self.executions.cancel(id, Reader::Operator, &ending).await;
            return Err(ExecutionError::Unreadable);
        };
        run.room = Some(room);
        self.go_on_as(run, owner).await
    }

    /// Goes on with a run in the background as far as its owner may. One whose owner may not ends. Returns `false` for one that waits for its owner.
    ///
    /// # Errors
    /// The lease is lost, or the store does not answer.
    pub(super) async fn go_on_as(
        self: &Arc<Self>,
        run: Run,
        owner: OwnerNow,
    ) -> Result<bool, ExecutionError> {
        let id = run.id();
        match owner {
            OwnerNow::May(owner) => self.spawn(run, Caller::new(owner)).await,
            OwnerNow::Ended => {
                tracing::warn!(execution.id = %id, "the access of whoever began an execution has ended");
                run.refuse(ExecutionError::AccessEnded).await;
            }
            OwnerNow::Unknown => {
                tracing::info!(
                    execution.id = %id,
                    "an execution waits for its owner, whose token has expired"
                );
                run.wait_for_owner().await?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs in the background from here on, and says so.
    pub(crate) async fn detach(&self, run: Run, caller: &Caller) -> Result<CallToolResult, Refusal> {
        let this = self.this.get().and_then(Weak::upgrade);
        let this =
            this.ok_or_else(|| Refusal::new("NOT_AVAILABLE", "this server has no runs in the background"))?;
        let id = run.id();
        run.persist().await?;
        run.journal.settle().await?;
        this.spawn(run, caller.clone()).await;
        Ok(running(id, None))
    }

    async fn spawn(self: &Arc<Self>, run: Run, caller: Caller) {
        let Ok(mut context) = self.background.context(caller.principal()).await else { return };
        context.extensions.insert(AnsweredLater { address: run.address });
        let (this, stop, id) = (self.clone(), self.background.stop.clone(), run.id());
        let about = PlanFacts {
            id: &id.to_string(),
            tool: EXECUTE,
            script: &run.start.script,
            earlier: run.untold_calls(),
            address: run.address,
        };
        let watch = self.invoker.watch_plan(about, caller.principal(), &mut context);
        let claimant = Claimant::of(caller.principal(), run.address);
        let caller = Caller::new(caller.principal().clone()).claiming(Some(claimant.into()));
        let until_over = self.clone().until_over(id, run.journal.lost().unwrap_or_default());
        self.background.tasks.spawn(async move {
            let journal = run.journal.clone();
            let ended = tokio::select! {
                answer = this.drive(run, caller, context) => Some(answer),
                () = stop.cancelled() => None,
                // The run ends as one whose lease is lost.
                never = until_over => match never {},
            };
            match ended {
                Some(answer) => watch.end(answer),
                None => {
                    drop(watch);
                    // Another instance goes on, or this one when it is back.
                    journal.give_back().await;
                }
            }
        });
    }

    /// Ends the run `id` once it is cancelled, or the access of its owner has ended, with `lost`: a plan within it would go on until its lease is renewed.
    fn until_over(
        self: Arc<Self>,
        id: ExecutionId,
        lost: CancellationToken,
    ) -> impl Future<Output = Infallible> + Send {
        let mut cancelled = self.background.cancelled.subscribe();
        async move {
            loop {
                // Others may cancel it, too.
                let recheck = tokio::time::sleep(RECHECK);
                let told = async {
                    loop {
                        match cancelled.recv().await {
                            Ok(other) if other != id => {}
                            Ok(_) | Err(RecvError::Lagged(_)) => return,
                            Err(RecvError::Closed) => std::future::pending().await,
                        }
                    }
                };
                tokio::select! {
                    () = recheck => {}
                    () = told => {}
                }
                let text = id.to_string();
                let Ok(head) = self.executions.head(&text, Reader::Operator).await else { continue };
                if head.state != State::Ended {
                    let Ok(OwnerNow::Ended) = self.background.owner_now(&head).await else { continue };
                    tracing::warn!(execution.id = text, "the access of whoever began an execution has ended");
                    let ending = ExecutionError::AccessEnded.into();
                    let _ = self.executions.cancel(&text, Reader::Operator, &ending).await;
                }
                lost.cancel();
                return std::future::pending().await;
            }
        }
    }

    /// Has runs in the background make no new calls, and waits until those under way are answered: other instances go on with the runs.
    pub(crate) async fn halt_background(&self) {
        self.background.halt.cancel();
        self.background.tasks.close();
        self.background.tasks.wait().await;
    }

    /// Stops the runs in the background where they are.
    pub(crate) async fn close_background(&self) {
        self.background.halt.cancel();
        self.background.stop.cancel();
        self.background.tasks.close();
        let _ = tokio::time::timeout(LAST, self.background.tasks.wait()).await;
    }
}

/// Time after which a run in the background is looked at again for whether its owner still has access.
const RECHECK: Duration = Duration::from_secs(1);

/// Longest time after which runs are looked for that no instance has.
const LOOK: Duration = Duration::from_secs(2);

/// Longest time between two searches for approvals that have expired.
const EXPIRE: Duration = Duration::from_secs(30);

/// Longest time that runs in the background are waited for when the gateway stops.
const LAST: Duration = Duration::from_secs(2);

/// The answer about a run that is under way.
pub(crate) fn running(id: ExecutionId, calls: Option<u64>) -> CallToolResult {
    let hint = format!("codecall:execute {{\"resume\": \"{id}\"}} gives the result once it is there");
    let mut body = json!({"status": "running", "executionId": id.to_string(), "hint": hint});
    if let Some(calls) = calls {
        body["callsAnswered"] = calls.into();
    }
    of_execution(answer(body), id)
}
