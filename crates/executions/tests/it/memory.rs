//! Tests of executions in memory.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use gatewright_core::{Principal, Scopes};
use gatewright_executions::{
    CallCounts, Ending, ExecutionError, Executions, ExecutionsConfig, NewExecution, Reader, State, WaitKind,
    WaitingFor,
};

/// A clock in seconds that moves only on request.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn advance(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    fn executions(&self, config: ExecutionsConfig) -> Executions {
        let clock = self.clone();
        Executions::in_memory_at(config, move || {
            UNIX_EPOCH + Duration::from_secs(1_000_000 + clock.0.load(Ordering::SeqCst))
        })
    }
}

fn principal(subject: &str, client: Option<&str>) -> Principal {
    Principal {
        subject: subject.into(),
        client_id: client.map(Into::into),
        scopes: Scopes::parse("crm:read"),
    }
}

fn detached() -> NewExecution {
    NewExecution { detached: true, title: Some("refund".to_owned()), ..NewExecution::default() }
}

#[tokio::test]
async fn a_run_waits_goes_on_and_ends_with_its_whole_journal() {
    let executions = Executions::in_memory(ExecutionsConfig::default());
    let ada = principal("ada", Some("desk"));
    let mut draft = executions.draft(&ada, NewExecution::default());
    let id = draft.id().to_string();
    draft.append(b"start").unwrap();
    assert_eq!(executions.open(&id, Reader::Operator).await.unwrap_err(), ExecutionError::NotFound);
    let lease = draft.persist().await.unwrap();
    draft.end(&Ending::new("ok"), CallCounts::default());
    assert_eq!(executions.acquire(&id, Reader::Owner(&ada)).await.unwrap_err(), ExecutionError::Busy);
    lease.append(b"asks").await.unwrap();
    let waiting = WaitingFor::new(WaitKind::Approval, "Refund 1,200?").tool("crm:refund");
    lease.wait(std::slice::from_ref(&waiting), CallCounts { made: 1, failed: 0 }).await.unwrap();
    let (lease, found) = executions.acquire(&id, Reader::Owner(&ada)).await.unwrap();
    assert_eq!(found.chunks, [b"start".to_vec(), b"asks".to_vec()]);
    assert_eq!((found.head.state, found.head.resumed, found.head.calls.made), (State::Running, 1, 1));
    lease.append(b"answer").await.unwrap();
    lease
        .end(&Ending::new("tool_error").code("RATE_LIMIT"), CallCounts { made: 2, failed: 1 })
        .await
        .unwrap();
    let ended = executions.open(&id, Reader::Owner(&ada)).await.unwrap();
    assert_eq!(ended.chunks, [b"start".to_vec(), b"asks".to_vec(), b"answer".to_vec()]);
    assert_eq!(ended.head.ending, Some(Ending::new("tool_error").code("RATE_LIMIT")));
    assert_eq!(executions.acquire(&id, Reader::Owner(&ada)).await.unwrap_err(), ExecutionError::Ended);
}

#[tokio::test]
async fn a_lease_that_was_dropped_runs_out_and_the_execution_is_abandoned() {
    let clock = Clock::default();
    let executions = clock.executions(ExecutionsConfig::default());
    let ada = principal("ada", None);
    let lease = executions.create(&ada, detached(), b"start").await.unwrap();
    let id = lease.id();
    clock.advance(1_000);
    assert!(executions.abandoned().await.unwrap().is_empty(), "it is held");
    drop(lease);
    clock.advance(14);
    assert!(executions.abandoned().await.unwrap().is_empty(), "the lease has not run out");
    clock.advance(1);
    assert_eq!(executions.abandoned().await.unwrap(), [id]);
    let (_lease, _) = executions.acquire(&id.to_string(), Reader::Operator).await.unwrap();
    assert!(executions.abandoned().await.unwrap().is_empty());
}
