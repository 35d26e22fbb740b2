//! Faults at every step of an execution.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use gatewright_executions::{
    CallCounts, Ending, ExecutionError, Executions, ExecutionsConfig, Lease, Reader, State,
};

use crate::{
    records::{Fault, Faulty},
    support::{Clock, TestRecords, detached, principal},
};

const LEASE: Duration = Duration::from_secs(15);
/// Time after which what a dead instance left in an index is removed.
const REMNANT: Duration = Duration::from_secs(61);

/// The progress of an instance, as its callers know it.
#[derive(Default)]
struct Known {
    id: Option<String>,
    tried: Vec<Vec<u8>>,
    written: usize,
    has_ended: bool,
}

async fn append(lease: &Lease, known: &Mutex<Known>, chunk: &[u8]) -> Result<(), ExecutionError> {
    known.lock().unwrap().tried.push(chunk.to_vec());
    lease.append(chunk).await?;
    let mut known = known.lock().unwrap();
    known.written = known.tried.len();
    Ok(())
}

async fn run(executions: &Executions, known: &Mutex<Known>) -> Result<(), ExecutionError> {
    let ada = principal("ada", None);
    let mut draft = executions.draft(&ada, detached());
    known.lock().unwrap().tried.push(b"start".to_vec());
    draft.append(b"start")?;
    let id = draft.id().to_string();
    let lease = draft.persist().await?;
    {
        let mut known = known.lock().unwrap();
        (known.id, known.written) = (Some(id.clone()), 1);
    }
    append(&lease, known, b"one").await?;
    append(&lease, known, b"two").await?;
    lease.wait(&[], CallCounts::default()).await?;
    let (lease, _) = executions.acquire(&id, Reader::Owner(&ada)).await?;
    append(&lease, known, b"three").await?;
    lease.end(&Ending::new("ok"), CallCounts::default()).await?;
    known.lock().unwrap().has_ended = true;
    Ok(())
}

/// Another instance goes on after the fault.
async fn check(clock: &Clock, records: &Arc<TestRecords>, known: Known, place: &str) {
    let config = ExecutionsConfig { max_per_principal: 1, ..ExecutionsConfig::default() };
    let other = clock.shared(config, records.clone());
    let ada = principal("ada", None);
    let owner = Reader::Owner(&ada);
    clock.advance(LEASE);
    let listed = other.list(owner, None, 10).await.unwrap();
    assert!(listed.len() <= 1, "{place}");
    let id = listed.first().map(|one| one.head.id.to_string());
    // It may exist although its creator died before it knew.
    assert!(known.id.is_none() || known.id == id, "{place}");
    if let Some(id) = &id {
        let found = other.open(id, owner).await.unwrap();
        assert!(known.written <= found.chunks.len(), "{place}: a chunk that was written is missing");
        assert_eq!(found.chunks, known.tried[..found.chunks.len()], "{place}");
        if known.has_ended {
            assert_eq!(found.head.state, State::Ended, "{place}");
        }
        if found.head.state == State::Running {
            let abandoned = other.abandoned().await.unwrap();
            assert_eq!(abandoned.len(), 1, "{place}");
            assert_eq!(abandoned[0].id, found.head.id, "{place}");
        }
        if found.head.state != State::Ended {
            let (lease, again) = other.acquire(id, owner).await.unwrap();
            assert_eq!(again.chunks, found.chunks, "{place}");
            lease.append(b"other").await.unwrap();
            lease.end(&Ending::new("ok"), CallCounts::default()).await.unwrap();
            let ended = other.open(id, owner).await.unwrap();
            assert_eq!(ended.chunks.len(), found.chunks.len() + 1, "{place}");
        }
    }
    // Whatever was left behind, the principal's one place is free again.
    clock.advance(REMNANT);
    let lease = other.create(&ada, detached(), b"next").await;
    lease
        .unwrap_or_else(|error| panic!("{place}: {error}"))
        .end(&Ending::new("ok"), CallCounts::default())
        .await
        .unwrap();
    let listed = other.list(owner, None, 10).await.unwrap();
    assert!(listed.iter().all(|one| one.head.state == State::Ended), "{place}");
    clock.advance(ExecutionsConfig::default().retention + REMNANT);
    assert_eq!(records.names(), [""; 0], "{place}: nothing outlives the retention");
}

#[tokio::test(start_paused = true)]
async fn after_a_fault_at_any_step_another_instance_goes_on_and_no_chunk_is_lost() {
    for fault in [Fault::Killed, Fault::KilledAfter, Fault::AnswerLost, Fault::Unreachable] {
        for at in 0.. {
            let clock = Clock::default();
            let records = TestRecords::new(&clock);
            let faulty = Faulty::new(records.clone(), fault, at);
            let executions = clock.shared(ExecutionsConfig::default(), faulty.clone());
            let known = Mutex::default();
            let outcome = tokio::time::timeout(Duration::from_secs(3_600), run(&executions, &known)).await;
            check(&clock, &records, known.into_inner().unwrap(), &format!("{fault:?} at {at}")).await;
            if !faulty.has_happened() {
                outcome.unwrap().unwrap();
                assert!(at > 25, "a run has {at} steps");
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_end_a_run_that_has_begun() {
    let clock = Clock::default();
    let records = TestRecords::new(&clock);
    for at in 0..3 {
        let faulty = Faulty::new(records.clone(), Fault::AnswerLost, 6 + at);
        let executions = clock.shared(ExecutionsConfig::default(), faulty.clone());
        let lease = executions.create(&principal("ada", None), detached(), b"start").await.unwrap();
        for chunk in [b"1", b"2", b"3"] {
            lease.append(chunk).await.unwrap();
        }
        lease.wait(&[], CallCounts::default()).await.unwrap();
        assert!(faulty.has_happened());
        let found = executions.open(&lease_id(&executions).await, Reader::Operator).await.unwrap();
        assert_eq!(found.chunks, [&b"start"[..], b"1", b"2", b"3"]);
        executions.remove(&lease_id(&executions).await, Reader::Operator).await.unwrap();
    }
}

async fn lease_id(executions: &Executions) -> String {
    executions.list(Reader::Operator, None, 1).await.unwrap()[0].head.id.to_string()
}
