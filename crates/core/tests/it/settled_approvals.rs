//! Scripts that wait for an approval are noted when it is settled, at whichever step of the decision its process ends.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gatewright_core::{
    ApprovalRecord, ApprovalStore, Approver, Claimant, MemoryRecords, NewRecord, RecordsError, RecordsFuture,
    SealKey, SharedRecords, Standing,
};
use serde_json::json;

const OPS: Approver<'_> = Approver::Operator("ops");

/// The approval of a call that the script `run` makes, for `life`.
fn approval(id: &str, run: &str, life: Duration) -> ApprovalRecord {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap();
    serde_json::from_value(json!({
        "id": id, "subject": "ada", "tool": "shop:pay", "digest": "d", "arguments": [], "reason": "large", "policy": "p",
        "run": run, "mayStand": false, "createdMs": ms(now), "expiresMs": ms(now + life), "state": "waiting",
    }))
    .unwrap()
}

fn id(n: u8) -> String {
    format!("apr_{}", format!("{n:02x}").repeat(16))
}

/// A connection that is gone after `left` steps.
struct Ends {
    records: Arc<MemoryRecords>,
    left: AtomicUsize,
}

impl Ends {
    fn step<'a, T: Send + 'a>(&'a self, step: RecordsFuture<'a, T>) -> RecordsFuture<'a, T> {
        Box::pin(async move {
            let is_there =
                self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if is_there.is_ok() { step.await } else { Err(RecordsError::Unavailable) }
        })
    }
}

impl SharedRecords for Ends {
    fn get_many<'a>(&'a self, keys: &'a [String]) -> RecordsFuture<'a, Vec<Option<Vec<u8>>>> {
        self.step(self.records.get_many(keys))
    }

    fn put_many<'a>(&'a self, records: &'a [NewRecord]) -> RecordsFuture<'a, ()> {
        self.step(self.records.put_many(records))
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        before: Option<&'a [u8]>,
        after: &'a [u8],
        ttl: Duration,
    ) -> RecordsFuture<'a, bool> {
        self.step(self.records.replace(key, before, after, ttl))
    }

    fn remove_many<'a>(&'a self, keys: &'a [String]) -> RecordsFuture<'a, ()> {
        self.step(self.records.remove_many(keys))
    }
}

async fn runs(store: &ApprovalStore) -> Vec<String> {
    store.settled().await.unwrap().into_iter().map(|one| one.run).collect()
}

#[tokio::test]
async fn a_decision_whose_process_ends_at_any_step_leaves_its_script_noted() {
    let mut decided = 0;
    for left in 0..20 {
        let (records, key) = (Arc::<MemoryRecords>::default(), SealKey::random());
        let store = ApprovalStore::new(records.clone(), key.clone());
        store
            .request(approval(&id(1), "exe_1", Duration::from_secs(600)), &Claimant::default(), 20)
            .await
            .unwrap();
        assert_eq!(runs(&store).await, [""; 0]);
        let ends = Arc::new(Ends { records, left: left.into() });
        let _ = ApprovalStore::new(ends, key).decide(&id(1), Some(Standing::Once), OPS).await;
        if !store.waits(&id(1)).await.unwrap() {
            decided += 1;
            assert_eq!(runs(&store).await, ["exe_1"], "it ended after {left} steps");
        }
    }
    assert!(decided > 5, "{decided}");
}

#[tokio::test]
async fn all_scripts_that_make_a_call_are_noted_and_a_later_note_is_not_removed_with_an_earlier_one() {
    let store = ApprovalStore::in_memory();
    for run in ["exe_1", "exe_2", "exe_1"] {
        store
            .request(approval(&id(1), run, Duration::from_secs(600)), &Claimant::default(), 20)
            .await
            .unwrap();
    }
    let eve = Approver::User { subject: "eve", holds: &|_| false };
    assert!(store.decide(&id(1), None, eve).await.is_err());
    assert_eq!(runs(&store).await, [""; 0], "whoever may not decide wakes nobody");
    store.decide(&id(1), None, OPS).await.unwrap();
    let before = store.settled().await.unwrap();
    assert_eq!(runs(&store).await, ["exe_1", "exe_2"]);
    store.settle(&["exe_2".to_owned()]).await.unwrap();
    store.unsettle(&before).await.unwrap();
    assert_eq!(runs(&store).await, ["exe_2"]);
    store.unsettle(&store.settled().await.unwrap()).await.unwrap();
    assert_eq!(runs(&store).await, [""; 0]);
}

#[tokio::test]
async fn the_script_of_an_approval_that_expired_is_noted() {
    let store = ApprovalStore::in_memory();
    store.request(approval(&id(1), "exe_1", Duration::ZERO), &Claimant::default(), 20).await.unwrap();
    let next = {
        store
            .request(approval(&id(2), "exe_2", Duration::from_secs(600)), &Claimant::default(), 20)
            .await
            .unwrap();
        store.expire().await.unwrap().unwrap()
    };
    assert!(next > Duration::from_secs(500) && next <= Duration::from_secs(600), "{next:?}");
    assert_eq!(runs(&store).await, ["exe_1"]);
}
