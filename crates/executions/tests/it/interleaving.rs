//! Any interleaving of two instances at one execution.

use std::{sync::Mutex, time::Duration};

use gatewright_core::RecordsFuture;
use gatewright_executions::{
    CallCounts, Ending, ExecutionError, Executions, ExecutionsConfig, Lease, Reader,
};
use proptest::prelude::*;

use crate::{
    records::{Through, Way},
    support::{Clock, TestRecords, detached, principal},
};

/// A step of one instance.
#[derive(Debug, Clone, Copy)]
enum Step {
    Acquire,
    Append,
    /// Gives up after the store has been asked.
    Abort,
    Wait,
    Drop,
    /// Time passes in which no timer of this process runs.
    Stall,
    End,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Append),
        4 => Just(Step::Acquire),
        2 => Just(Step::Stall),
        1 => Just(Step::Abort),
        1 => Just(Step::Wait),
        1 => Just(Step::Drop),
    ];
    (prop::collection::vec(step, 0..12), prop::bool::weighted(0.2)).prop_map(|(mut steps, ends)| {
        steps.extend(ends.then_some(Step::End));
        steps
    })
}

/// Answers take different times.
struct Delays(Mutex<std::iter::Cycle<std::vec::IntoIter<u8>>>);

impl Way for Delays {
    fn pass<'a, T: Send + 'a>(&'a self, step: RecordsFuture<'a, T>) -> RecordsFuture<'a, T> {
        Box::pin(async move {
            let turns = self.0.lock().unwrap().next().unwrap_or_default();
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            let answer = step.await;
            for _ in 0..turns / 2 {
                tokio::task::yield_now().await;
            }
            answer
        })
    }
}

/// Runs the steps of one instance. Returns the chunks that it wrote for certain, and those that it gave up on.
async fn instance(
    executions: Executions,
    clock: Clock,
    id: String,
    name: &str,
    steps: Vec<Step>,
) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (mut lease, mut written, mut given_up) = (None::<Lease>, Vec::new(), Vec::new());
    for (number, step) in steps.into_iter().enumerate() {
        let chunk = format!("{name}{number}").into_bytes();
        match (step, lease.take()) {
            (Step::Acquire, None) => {
                lease = executions.acquire(&id, Reader::Operator).await.ok().map(|(lease, _)| lease);
            }
            (Step::Append, Some(held)) => {
                match held.append(&chunk).await {
                    Ok(()) => written.push(chunk),
                    Err(error) => assert_eq!(error, ExecutionError::LeaseLost),
                }
                lease = Some(held);
            }
            (Step::Abort, Some(held)) => {
                let _ = futures::FutureExt::now_or_never(held.append(&chunk));
                given_up.push(chunk);
                lease = Some(held);
            }
            (Step::Wait, Some(held)) => drop(held.wait(&[], CallCounts::default()).await),
            (Step::End, Some(held)) => drop(held.end(&Ending::new("ok"), CallCounts::default()).await),
            (Step::Stall, held) => {
                clock.advance(Duration::from_secs(20));
                lease = held;
            }
            (Step::Drop, _) => {}
            (_, held) => lease = held,
        }
    }
    (written, given_up)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn every_chunk_that_was_written_is_in_the_journal_once_and_in_order(
        a in steps(),
        b in steps(),
        delays in prop::collection::vec(0..6_u8, 1..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let clock = Clock::default();
            let delays = Delays(Mutex::new(delays.into_iter().cycle()));
            let records = Through::to(TestRecords::new(&clock), delays);
            let [first, second] = [0, 1].map(|_| clock.shared(ExecutionsConfig::default(), records.clone()));
            let lease = first.create(&principal("ada", None), detached(), b"start").await.unwrap();
            let id = lease.id().to_string();
            lease.wait(&[], CallCounts::default()).await.unwrap();
            let ((of_a, doubtful_a), (of_b, doubtful_b)) = tokio::join!(
                instance(first.clone(), clock.clone(), id.clone(), "a", a),
                instance(second, clock.clone(), id.clone(), "b", b),
            );
            let journal = first.open(&id, Reader::Operator).await.unwrap().chunks;
            assert_eq!(journal[0], b"start");
            for (name, written, given_up) in [(b'a', of_a, doubtful_a), (b'b', of_b, doubtful_b)] {
                let own: Vec<&Vec<u8>> = journal[1..].iter().filter(|chunk| chunk[0] == name).collect();
                let certain: Vec<&Vec<u8>> = own.iter().copied().filter(|chunk| !given_up.contains(chunk)).collect();
                assert_eq!(certain, written.iter().collect::<Vec<_>>());
            }
        });
    }
}
