//! Leases that run out, and instances that go on with the executions of others.

use std::time::Duration;

use gatewright_executions::{
    CallCounts, Ending, ExecutionError, Executions, ExecutionsConfig, NewExecution, Reader,
};

use crate::{
    records::{Fault, Faulty, Silent},
    support::{Clock, TestRecords, detached, principal},
};

const LEASE: Duration = Duration::from_secs(15);

/// Advances the test's clock together with the timers.
async fn pass(clock: &Clock, time: Duration) {
    let mut left = time;
    while !left.is_zero() {
        let step = left.min(Duration::from_secs(1));
        clock.advance(step);
        tokio::time::sleep(step).await;
        left -= step;
    }
}

async fn ids(executions: &Executions) -> Vec<String> {
    executions.abandoned().await.unwrap().into_iter().map(|head| head.id.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_held_lease_is_renewed_and_a_dropped_one_runs_out() {
    let clock = Clock::default();
    let records = TestRecords::new(&clock);
    let shared = || clock.shared(ExecutionsConfig::default(), records.clone());
    for [a, b] in [[shared(), shared()], {
        let memory = clock.in_memory(ExecutionsConfig::default());
        [memory.clone(), memory]
    }] {
        let ada = principal("ada", None);
        let lease = a.create(&ada, detached(), b"start").await.unwrap();
        let attached = a.create(&ada, NewExecution::default(), b"start").await.unwrap();
        let id = lease.id().to_string();
        pass(&clock, 4 * LEASE).await;
        assert!(ids(&b).await.is_empty(), "it is held");
        assert!(!lease.lost().is_cancelled());
        drop((lease, attached));
        pass(&clock, LEASE / 2).await;
        assert!(ids(&b).await.is_empty(), "the lease has not run out");
        assert_eq!(b.acquire(&id, Reader::Operator).await.unwrap_err(), ExecutionError::Busy);
        pass(&clock, LEASE / 2 + Duration::from_secs(1)).await;
        assert_eq!(ids(&b).await, [id.as_str()], "only detached ones are taken over");
        let (lease, found) = b.acquire(&id, Reader::Operator).await.unwrap();
        assert_eq!((found.chunks, found.head.resumed), (vec![b"start".to_vec()], 1));
        assert!(ids(&a).await.is_empty());
        lease.wait(&[], CallCounts::default()).await.unwrap();
        assert_eq!(lease.append(b"late").await.unwrap_err(), ExecutionError::LeaseLost);
        pass(&clock, 2 * LEASE).await;
        assert!(ids(&a).await.is_empty(), "it waits");
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_was_stalled_cannot_write_after_another_took_over() {
    let clock = Clock::default();
    let records = TestRecords::new(&clock);
    let [a, b] = [0, 1].map(|_| clock.shared(ExecutionsConfig::default(), records.clone()));
    let ada = principal("ada", None);
    let stalled = a.create(&ada, detached(), b"start").await.unwrap();
    let id = stalled.id().to_string();
    stalled.append(b"one").await.unwrap();
    stalled.append(&[7; 100_000]).await.unwrap();
    // The process stands still: its timers do not run.
    clock.advance(LEASE);
    let abandoned = b.abandoned().await.unwrap();
    assert_eq!(abandoned.iter().map(|head| head.id.to_string()).collect::<Vec<_>>(), [id.as_str()]);
    assert!(abandoned[0].bytes >= 100_000, "{}", abandoned[0].bytes);
    let (lease, found) = b.acquire(&id, Reader::Operator).await.unwrap();
    assert_eq!(found.chunks, [b"start".to_vec(), b"one".to_vec(), vec![7; 100_000]]);
    assert_eq!(stalled.append(b"two").await.unwrap_err(), ExecutionError::LeaseLost);
    assert!(stalled.lost().is_cancelled());
    assert_eq!(
        stalled.end(&Ending::new("ok"), CallCounts::default()).await.unwrap_err(),
        ExecutionError::LeaseLost
    );
    lease.append(b"other two").await.unwrap();
    lease.end(&Ending::new("ok"), CallCounts::default()).await.unwrap();
    let found = b.open(&id, Reader::Operator).await.unwrap();
    assert_eq!(found.chunks, [&b"start"[..], b"one", &[7; 100_000], b"other two"]);
}

#[tokio::test(start_paused = true)]
async fn a_holder_notices_by_itself_that_the_lease_is_lost() {
    let clock = Clock::default();
    let records = TestRecords::new(&clock);
    let [a, b] = [0, 1].map(|_| clock.shared(ExecutionsConfig::default(), records.clone()));
    let ada = principal("ada", None);
    let lease = a.create(&ada, detached(), b"start").await.unwrap();
    b.cancel(&lease.id().to_string(), Reader::Owner(&ada), &Ending::new("cancelled")).await.unwrap();
    let lost = lease.lost();
    tokio::time::timeout(LEASE / 3 + Duration::from_secs(1), lost.cancelled()).await.unwrap();
    // A store that does not answer any more.
    let faulty = Faulty::new(records, Fault::Unreachable, 8);
    let c = clock.shared(ExecutionsConfig::default(), faulty.clone());
    let lease = c.create(&ada, detached(), b"start").await.unwrap();
    let lost = lease.lost();
    tokio::time::timeout(60 * LEASE, lost.cancelled()).await.unwrap();
    assert!(faulty.has_happened());
    assert_eq!(lease.append(b"one").await.unwrap_err(), ExecutionError::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn a_holder_waits_while_the_store_is_silent_and_goes_on_with_the_lease_that_ran_out() {
    let clock = Clock::default();
    let records = TestRecords::new(&clock);
    let ada = principal("ada", None);
    let silent = Silent::new(records.clone());
    let a = clock.shared(ExecutionsConfig::default(), silent.clone());
    let b = clock.shared(ExecutionsConfig::default(), records.clone());
    // Nobody took it meanwhile.
    let lease = a.create(&ada, detached(), b"start").await.unwrap();
    silent.turn(true);
    let back = async {
        pass(&clock, 3 * LEASE).await;
        assert_eq!(ids(&b).await, [lease.id().to_string()], "the lease has run out");
        silent.turn(false);
        pass(&clock, LEASE / 2).await;
        assert!(ids(&b).await.is_empty(), "its holder has it again");
    };
    let (added, ()) = tokio::join!(lease.append(b"one"), back);
    added.unwrap();
    assert!(!lease.lost().is_cancelled());
    lease.append(b"two").await.unwrap();
    silent.turn(true);
    let back = async {
        pass(&clock, 2 * LEASE).await;
        silent.turn(false);
    };
    let ok = Ending::new("ok");
    let (ended, ()) = tokio::join!(lease.end(&ok, CallCounts::default()), back);
    ended.unwrap();
    let found = b.open(&lease.id().to_string(), Reader::Operator).await.unwrap();
    assert_eq!(found.chunks, [&b"start"[..], b"one", b"two"]);

    // Another instance was faster.
    let lease = a.create(&ada, detached(), b"start").await.unwrap();
    silent.turn(true);
    let taken = async {
        pass(&clock, 3 * LEASE).await;
        let taken = b.acquire(&lease.id().to_string(), Reader::Operator).await.unwrap();
        silent.turn(false);
        taken
    };
    let (late, (other, _)) = tokio::join!(lease.append(b"one"), taken);
    assert_eq!(late.unwrap_err(), ExecutionError::LeaseLost);
    other.append(b"other one").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ran_out_is_not_taken_again_once_another_instance_went_on_and_gave_it_back() {
    for waits in [true, false] {
        let clock = Clock::default();
        let records = TestRecords::new(&clock);
        let ada = principal("ada", None);
        let silent = Silent::new(records.clone());
        let a = clock.shared(ExecutionsConfig::default(), silent.clone());
        let b = clock.shared(ExecutionsConfig::default(), records.clone());
        let stalled = a.create(&ada, detached(), b"start").await.unwrap();
        silent.turn(true);
        pass(&clock, 3 * LEASE).await;
        let (other, _) = b.acquire(&stalled.id().to_string(), Reader::Operator).await.unwrap();
        other.append(b"other one").await.unwrap();
        match waits {
            true => other.wait(&[], CallCounts::default()).await.unwrap(),
            false => other.give_back().await.unwrap(),
        }
        silent.turn(false);
        // Its timer comes before it writes anything.
        pass(&clock, LEASE).await;
        assert!(stalled.lost().is_cancelled(), "{waits}");
        assert_eq!(stalled.append(b"one").await.unwrap_err(), ExecutionError::LeaseLost);
    }
}

#[tokio::test]
async fn a_chunk_whose_caller_gave_up_is_written_before_the_next() {
    let clock = Clock::default();
    let records = TestRecords::new(&clock);
    let a = clock.shared(ExecutionsConfig::default(), records);
    let ada = principal("ada", None);
    let lease = a.create(&ada, detached(), b"start").await.unwrap();
    for chunk in [b"one", b"two"] {
        // Polled once: the store is asked, and its answer not awaited.
        let given_up = futures::FutureExt::now_or_never(lease.append(chunk));
        assert!(given_up.is_none());
    }
    lease.append(b"three").await.unwrap();
    let found = a.open(&lease.id().to_string(), Reader::Operator).await.unwrap();
    assert_eq!(found.chunks, [&b"start"[..], b"one", b"three"]);
}
