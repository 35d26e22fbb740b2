//! Bounds in time, count and bytes.

use std::time::Duration;

use gatewright_core::Principal;
use gatewright_executions::{
    CallCounts, Ending, ExecutionError, Executions, ExecutionsConfig, NewExecution, Reader, State,
};

use crate::support::{Clock, TestRecords, detached, principal};

const KIB: u64 = 1024;

/// Executions in memory and in records, with their clock.
fn both(config: &ExecutionsConfig) -> [(Executions, Clock); 2] {
    let (first, second) = (Clock::default(), Clock::default());
    let shared = second.shared(config.clone(), TestRecords::new(&second));
    [(first.in_memory(config.clone()), first), (shared, second)]
}

fn ok() -> Ending {
    Ending::new("ok")
}

fn end(executions: &Executions, chunk: &[u8]) {
    let mut draft = executions.draft(&principal("ada", None), NewExecution::default());
    let _ = draft.append(chunk);
    draft.end(&ok(), CallCounts::default());
}

#[tokio::test]
async fn executions_are_forgotten_when_their_time_is_over_whatever_their_state() {
    let config = ExecutionsConfig { retention: Duration::from_secs(600), ..ExecutionsConfig::default() };
    for (executions, clock) in both(&config) {
        let ada = principal("ada", None);
        let waits = executions.create(&ada, detached(), b"1").await.unwrap();
        let waits = (waits.id().to_string(), waits.wait(&[], CallCounts::default()).await.unwrap()).0;
        let runs = executions.create(&ada, detached(), b"2").await.unwrap();
        clock.advance(Duration::from_secs(300));
        runs.append(b"more").await.unwrap();
        clock.advance(Duration::from_secs(299));
        assert_eq!(executions.list(Reader::Operator, None, 10).await.unwrap().len(), 2);
        assert!(executions.open(&waits, Reader::Owner(&ada)).await.is_ok());
        clock.advance(Duration::from_secs(1));
        for reader in [Reader::Owner(&ada), Reader::Operator] {
            assert_eq!(executions.open(&waits, reader).await.unwrap_err(), ExecutionError::NotFound);
            assert_eq!(executions.acquire(&waits, reader).await.unwrap_err(), ExecutionError::NotFound);
            assert!(executions.list(reader, None, 10).await.unwrap().is_empty());
        }
        assert_eq!(runs.append(b"late").await.unwrap_err(), ExecutionError::LeaseLost);
        assert!(executions.abandoned().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_principal_has_a_number_of_open_executions_and_others_are_not_affected() {
    let config = ExecutionsConfig { max_per_principal: 3, ..ExecutionsConfig::default() };
    for (executions, clock) in both(&config) {
        let (ada, bob) = (principal("ada", None), principal("bob", None));
        let mut leases = Vec::new();
        for _ in 0..3 {
            leases.push(executions.create(&ada, detached(), b"x").await.unwrap());
        }
        let mut draft = executions.draft(&ada, detached());
        draft.append(b"kept").unwrap();
        assert_eq!(draft.persist().await.unwrap_err(), ExecutionError::TooMany);
        executions.create(&bob, detached(), b"x").await.unwrap();
        leases.pop().unwrap().end(&ok(), CallCounts::default()).await.unwrap();
        let lease = draft.persist().await.unwrap();
        let found = executions.open(&lease.id().to_string(), Reader::Operator).await.unwrap();
        assert_eq!(found.chunks, [b"kept"], "a draft that found no room stays as it was");
        assert_eq!(executions.create(&ada, detached(), b"x").await.unwrap_err(), ExecutionError::TooMany);
        clock.advance(config.retention);
        executions.create(&ada, detached(), b"x").await.unwrap();
    }
}

#[tokio::test]
async fn a_principal_takes_a_part_of_what_is_free_and_the_first_of_a_newcomer_needs_room_only() {
    let config = ExecutionsConfig {
        max_bytes: KIB * KIB,
        max_journal_bytes: 120 * KIB,
        max_executions: 40,
        ..ExecutionsConfig::default()
    };
    for (executions, _) in both(&config) {
        let fill = async |subject: &str, bytes: usize| {
            let (principal, mut leases) = (principal(subject, None), Vec::new());
            loop {
                match executions.create(&principal, detached(), &vec![0; bytes]).await {
                    Ok(lease) => leases.push(lease),
                    Err(error) => return (leases, error),
                }
            }
        };
        let mut held = Vec::new();
        for (subject, most) in
            [("a", 2), ("b", 2), ("c", 1), ("d", 1), ("e", 1), ("f", 1), ("g", 1), ("h", 1)]
        {
            let (leases, error) = fill(subject, 80 * 1024).await;
            assert_eq!((leases.len(), error), (most, ExecutionError::TooMany), "{subject}");
            held.push(leases);
        }
        let (small, _) = fill("small", 1).await;
        assert!(!small.is_empty() && small.len() < 10, "{}", small.len());
        assert!(executions.create(&principal("newcomer", None), detached(), b"x").await.is_ok());
        let last = vec![0; 118 * 1024];
        let _late = executions.create(&principal("late", None), detached(), &last).await.unwrap();
        let full = executions.create(&principal("later", None), detached(), &last).await;
        assert_eq!(full.err(), Some(ExecutionError::Full));
    }
}

#[tokio::test]
async fn an_execution_that_was_begun_adds_a_little_although_others_have_taken_all_room() {
    let config = ExecutionsConfig { max_bytes: 1 << 20, ..ExecutionsConfig::default() };
    let executions = Executions::in_memory(config);
    let lease = executions.create(&principal("small", None), detached(), b"x").await.unwrap();
    let mut held = Vec::new();
    for (number, bytes) in
        (0..40).flat_map(|number| [64 << 10, 8 << 10, 1 << 10, 1].map(|bytes| (number, bytes)))
    {
        let other = principal(&format!("other {number}"), None);
        while let Ok(lease) = executions.create(&other, detached(), &vec![0; bytes]).await {
            held.push(lease);
        }
    }
    for _ in 0..4 {
        lease.append(&[7; 1 << 10]).await.unwrap();
    }
    assert_eq!(lease.append(&[7; 8 << 10]).await, Err(ExecutionError::Full));
    lease.append(b"a short result").await.unwrap();
    lease.end(&ok(), CallCounts::default()).await.unwrap();
}

#[tokio::test]
async fn seven_principals_leave_places_and_bytes_for_others() {
    let config = ExecutionsConfig { max_executions: 60, ..ExecutionsConfig::default() };
    for (executions, _) in both(&config) {
        for subject in 0..7 {
            let principal = principal(&format!("user:{subject}"), Some(&format!("client {subject}")));
            while let Ok(lease) = executions.create(&principal, detached(), &vec![0; 3 << 20]).await {
                lease.wait(&[], CallCounts::default()).await.unwrap();
            }
            while let Ok(lease) = executions.create(&principal, detached(), b"x").await {
                lease.wait(&[], CallCounts::default()).await.unwrap();
            }
        }
        for newcomer in 0..3 {
            let other = principal(&format!("other:{newcomer}"), None);
            executions.create(&other, detached(), &vec![0; 64 * 1024]).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_subject_has_one_share_with_all_its_clients_and_anonymous_callers_have_one_for_each_network() {
    let config = ExecutionsConfig { max_per_principal: 8, ..ExecutionsConfig::default() };
    for (executions, _) in both(&config) {
        let create = async |principal: &Principal, address: &str| {
            let about = NewExecution { address: address.parse().ok(), ..detached() };
            let lease = executions.create(principal, about, b"x").await?;
            lease.wait(&[], CallCounts::default()).await
        };
        for n in 0..8 {
            create(&principal("ada", Some(&format!("client {n}"))), "192.0.2.1").await.unwrap();
        }
        let other = principal("ada", Some("one more"));
        assert_eq!(create(&other, "192.0.2.2").await, Err(ExecutionError::TooMany));
        create(&principal("bob", None), "192.0.2.1").await.unwrap();

        let anyone = Principal::local();
        for _ in 0..8 {
            create(&anyone, "203.0.113.7").await.unwrap();
        }
        assert_eq!(create(&anyone, "203.0.113.7").await, Err(ExecutionError::TooMany));
        create(&anyone, "198.51.100.9").await.unwrap();
        let mut of_48 = 0;
        while create(&anyone, &format!("2001:db8:1:{:x}::1", of_48)).await.is_ok() {
            of_48 += 1;
        }
        assert_eq!(of_48, 16, "256 networks of one /56 have two shares");
        create(&anyone, "2001:db8:2::1").await.unwrap();
        for _ in 0..20 {
            create(&anyone, "127.0.0.1").await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_journal_that_grows_while_it_runs_takes_its_room_from_the_share_too() {
    let config =
        ExecutionsConfig { max_bytes: 4 * KIB * KIB, max_journal_bytes: 2 * KIB * KIB, ..Default::default() };
    for (executions, _) in both(&config) {
        let ada = principal("ada", None);
        let mut leases = Vec::new();
        for _ in 0..10 {
            leases.push(executions.create(&ada, detached(), b"x").await.unwrap());
        }
        let mut grown = 0;
        for lease in leases.iter().cycle().take(1_000) {
            match lease.append(&[0; 40 * 1024]).await {
                Ok(()) => grown += 40 * 1024,
                Err(error) => assert_eq!(error, ExecutionError::TooMany),
            }
            assert!(!lease.lost().is_cancelled());
        }
        assert!((200_000..1_000_000).contains(&grown), "{grown}");
        let bob = executions.create(&principal("bob", None), detached(), &vec![0; 1 << 20]).await.unwrap();
        bob.append(b"more").await.unwrap();
    }
}

#[tokio::test]
async fn a_journal_has_a_largest_size_before_and_after_it_is_durable() {
    let config = ExecutionsConfig { max_journal_bytes: 64 * KIB, ..ExecutionsConfig::default() };
    for (executions, _) in both(&config) {
        let ada = principal("ada", None);
        let mut draft = executions.draft(&ada, NewExecution::default());
        let id = draft.id().to_string();
        draft.append(&[0; 60 * 1024]).unwrap();
        assert_eq!(draft.append(&[0; 4 * 1024]).unwrap_err(), ExecutionError::TooLarge);
        assert_eq!(draft.append(b"x").unwrap_err(), ExecutionError::TooLarge);
        assert_eq!(draft.persist().await.unwrap_err(), ExecutionError::TooLarge);
        draft.end(&ok(), CallCounts { made: 7, failed: 1 });
        let found = executions.open(&id, Reader::Owner(&ada)).await.unwrap();
        assert_eq!((found.chunks.len(), found.head.complete, found.head.calls.made), (0, false, 7));
        let lease = executions.create(&ada, detached(), &[0; 60 * 1024]).await.unwrap();
        assert_eq!(lease.append(&[0; 4 * 1024]).await.unwrap_err(), ExecutionError::TooLarge);
        assert!(!lease.lost().is_cancelled());
        lease.append(b"x").await.unwrap();
        let id = lease.id().to_string();
        lease.wait(&[], CallCounts::default()).await.unwrap();
        let (lease, found) = executions.acquire(&id, Reader::Owner(&ada)).await.unwrap();
        assert_eq!(found.chunks.len(), 2);
        assert_eq!(
            lease.append(&[0; 4 * 1024]).await.unwrap_err(),
            ExecutionError::TooLarge,
            "after a resume too"
        );
        lease.append(b"x").await.unwrap();
    }
}

#[tokio::test]
async fn the_oldest_that_ended_make_room_for_new_ones() {
    let config = ExecutionsConfig { max_executions: 160, ..ExecutionsConfig::default() };
    for (executions, clock) in both(&config) {
        for n in 0..1_000_u32 {
            end(&executions, &n.to_be_bytes());
            clock.advance(Duration::from_millis(1));
        }
        let open = executions.create(&principal("ada", None), detached(), b"open").await.unwrap();
        executions.close().await;
        let ended = executions.list(Reader::Operator, Some(State::Ended), 10_000).await.unwrap();
        assert!((100..=160).contains(&ended.len()), "{}", ended.len());
        assert!(ended.is_sorted_by_key(|one| std::cmp::Reverse(one.head.created_ms)));
        let newest = executions.open(&ended[0].head.id.to_string(), Reader::Operator).await.unwrap();
        assert_eq!(newest.chunks, [999_u32.to_be_bytes()]);
        assert!(executions.open(&open.id().to_string(), Reader::Operator).await.is_ok());
    }
}

#[tokio::test]
async fn journals_that_ended_take_bounded_room_in_records_too() {
    let config =
        ExecutionsConfig { max_bytes: KIB * KIB, max_journal_bytes: 64 * KIB, ..ExecutionsConfig::default() };
    let clock = Clock::default();
    let records = TestRecords::new(&clock);
    let executions = clock.shared(config.clone(), records.clone());
    for round in 0..10 {
        for _ in 0..100 {
            end(&executions, &[round; 20 * 1024]);
        }
        // The next instance goes on where this one stopped.
        executions.close().await;
        let executions = clock.shared(config.clone(), records.clone());
        let listed = executions.list(Reader::Operator, None, 10_000).await.unwrap();
        let all = records.all.lock().unwrap();
        let bytes: usize = all.values().map(|(value, _)| value.len()).sum();
        assert!(bytes <= 2 * 1024 * 1024, "{bytes} bytes");
        assert!(all.len() <= 2 * listed.len() + 32, "{} records of {} executions", all.len(), listed.len());
    }
}

#[tokio::test]
async fn a_waiting_execution_in_memory_costs_little() {
    let executions = Executions::in_memory(ExecutionsConfig::default());
    let config = ExecutionsConfig::default();
    for n in 0..config.max_executions {
        let ada = principal(&format!("user:{n}"), None);
        let lease = executions.create(&ada, detached(), &n.to_be_bytes()).await.unwrap();
        lease.wait(&[], CallCounts::default()).await.unwrap();
    }
    assert_eq!(
        executions.create(&principal("other", None), detached(), b"x").await.unwrap_err(),
        ExecutionError::Full
    );
    let listed = executions.list(Reader::Operator, Some(State::Waiting), 20_000).await.unwrap();
    assert_eq!(listed.len(), config.max_executions as usize);
}

#[tokio::test]
async fn ended_executions_of_one_principal_do_not_take_the_place_of_those_of_others() {
    let config = ExecutionsConfig {
        max_bytes: 4 << 20,
        max_journal_bytes: 2 << 20,
        max_executions: 200,
        ..ExecutionsConfig::default()
    };
    for (executions, _) in both(&config) {
        let (ann, bob) = (principal("ann", None), principal("bob", None));
        let mut receipts = Vec::new();
        for n in 0..3 {
            let lease = executions.create(&bob, detached(), format!("receipt {n}").as_bytes()).await.unwrap();
            receipts.push(lease.id().to_string());
            lease.end(&ok(), CallCounts::default()).await.unwrap();
        }
        let long = vec![7; 240 << 10];
        let mut last = String::new();
        for _ in 0..60 {
            let lease = executions.create(&ann, detached(), &long).await.unwrap();
            last = lease.id().to_string();
            lease.end(&ok(), CallCounts::default()).await.unwrap();
            assert!(executions.open(&last, Reader::Owner(&ann)).await.is_ok(), "the newest one finds room");
        }
        for _ in 0..400 {
            let lease = executions.create(&ann, detached(), b"short").await.unwrap();
            lease.end(&ok(), CallCounts::default()).await.unwrap();
        }
        for receipt in &receipts {
            assert!(executions.open(receipt, Reader::Owner(&bob)).await.is_ok());
        }
        let all = executions.list(Reader::Operator, None, 1_000).await.unwrap();
        let bytes: u64 = all.iter().map(|listed| listed.head.bytes).sum();
        assert!(all.len() <= 208 && bytes <= 5 << 20, "{} of {bytes} bytes", all.len());
        assert!(executions.open(&last, Reader::Operator).await.is_err(), "her own old ones made room");
    }
}

#[tokio::test]
async fn results_are_kept_as_long_as_all_together_have_room_whatever_their_ids() {
    for (executions, _) in both(&ExecutionsConfig::default()) {
        let mut kept = Vec::new();
        for n in 0..20 {
            let owner = principal(&format!("caller {n}"), None);
            let lease = executions.create(&owner, detached(), &vec![0; 3 << 20]).await.unwrap();
            lease.end(&ok(), CallCounts::default()).await.unwrap();
            kept.push((owner, lease.id().to_string()));
        }
        for (owner, id) in &kept {
            assert!(executions.open(id, Reader::Owner(owner)).await.is_ok(), "{id}");
        }
    }
}
