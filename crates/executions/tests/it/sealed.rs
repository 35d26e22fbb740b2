//! Contents of shared stores.

use std::sync::Arc;

use gatewright_core::SealKey;
use gatewright_executions::{
    CallCounts, Ending, ExecutionError, Executions, ExecutionsConfig, NewExecution, Reader, WaitKind,
    WaitingFor,
};

use crate::{
    stores::{Redis, Sqlite},
    support::{Clock, TestRecords, principal},
};

const CANARY: &str = "canary-7f3a9";

/// Writes the canary wherever a caller can put a text.
async fn write_canaries(executions: &Executions) {
    let owner = principal(&format!("user:{CANARY}"), Some(CANARY));
    let about = NewExecution {
        detached: true,
        title: Some(CANARY.into()),
        plan: Some(CANARY.into()),
        ..Default::default()
    };
    let lease = executions.create(&owner, about.clone(), CANARY.as_bytes()).await.unwrap();
    lease.append(CANARY.as_bytes()).await.unwrap();
    let waiting = WaitingFor::new(WaitKind::Elicitation, CANARY).tool(CANARY);
    lease.wait(&[waiting], CallCounts::default()).await.unwrap();
    let lease = executions.create(&owner, about.clone(), CANARY.as_bytes()).await.unwrap();
    lease.end(&Ending::new(CANARY).code(CANARY), CallCounts::default()).await.unwrap();
    let mut draft = executions.draft(&owner, about);
    draft.append(CANARY.as_bytes()).unwrap();
    draft.end(&Ending::new(CANARY), CallCounts::default());
    executions.close().await;
    let listed = executions.list(Reader::Owner(&owner), None, 10).await.unwrap();
    assert_eq!(listed.len(), 3);
    assert!(listed.iter().all(|one| one.head.about.title.as_deref() == Some(CANARY)));
    let shown =
        format!("{listed:?} {:?}", executions.open(&listed[0].head.id.to_string(), Reader::Operator).await);
    assert!(!shown.contains(CANARY), "{shown}");
}

fn has_canary(bytes: &[u8]) -> bool {
    bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes())
}

#[tokio::test]
async fn a_sqlite_file_holds_no_plain_text() {
    let sqlite = Sqlite::new(&ExecutionsConfig::default());
    write_canaries(&sqlite.instances[0]).await;
    let contents = sqlite.contents();
    assert!(contents.len() > 4_096 && sqlite.path().exists());
    assert!(!has_canary(&contents));
}

#[tokio::test]
async fn a_redis_holds_no_plain_text() {
    let redis = Redis::start();
    let [executions, _] = redis.instances(&ExecutionsConfig::default()).await;
    write_canaries(&executions).await;
    let contents = redis.contents();
    assert!(contents.len() > 6);
    assert!(!contents.iter().any(|(name, _, value)| has_canary(name.as_bytes()) || has_canary(value)));
}

#[tokio::test]
async fn records_that_were_moved_changed_or_sealed_with_another_key_are_not_read() {
    let clock = Clock::default();
    let records = TestRecords::new(&clock);
    let executions = clock.shared(ExecutionsConfig::default(), records.clone());
    let ada = principal("ada", None);
    let mut ids = Vec::new();
    for _ in 0..2 {
        let lease = executions.create(&ada, NewExecution::default(), b"one").await.unwrap();
        lease.append(b"two").await.unwrap();
        ids.push(lease.id().to_string());
        lease.wait(&[], CallCounts::default()).await.unwrap();
    }
    let [first, second] = [&ids[0], &ids[1]];
    let swap = |a: &str, b: &str| {
        let mut all = records.all.lock().unwrap();
        let (left, right) = (all[a].clone(), all[b].clone());
        all.insert(a.to_owned(), right);
        all.insert(b.to_owned(), left);
    };
    for (a, b, error) in [
        (format!("chunk {first} 0"), format!("chunk {second} 0"), ExecutionError::Unreadable),
        (format!("chunk {first} 0"), format!("chunk {first} 1"), ExecutionError::Unreadable),
        (format!("head {first}"), format!("head {second}"), ExecutionError::NotFound),
        (format!("head {first}"), format!("chunk {first} 0"), ExecutionError::NotFound),
    ] {
        swap(&a, &b);
        assert_eq!(executions.open(first, Reader::Operator).await.unwrap_err(), error, "{a} and {b}");
        assert_eq!(executions.acquire(first, Reader::Owner(&ada)).await.unwrap_err(), error, "{a} and {b}");
        swap(&a, &b);
        assert_eq!(executions.open(first, Reader::Operator).await.unwrap().chunks, [b"one", b"two"]);
    }
    let other = Executions::shared_at(
        ExecutionsConfig::default(),
        records.clone(),
        &SealKey::derived(b"another"),
        "other",
        move || clock.now(),
    );
    assert_eq!(other.open(first, Reader::Operator).await.unwrap_err(), ExecutionError::NotFound);
    assert!(other.list(Reader::Operator, None, 10).await.unwrap().is_empty());
    let name = format!("chunk {first} 1");
    records.all.lock().unwrap().get_mut(&name).unwrap().0[0] ^= 1;
    assert_eq!(executions.open(first, Reader::Operator).await.unwrap_err(), ExecutionError::Unreadable);
    assert!(Arc::strong_count(&records) > 1);
}
