//! Scripts that wait for an approval are noted when it is settled, at whichever step of the decision its process ends.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gatewright_core::{
    ApprovalDuration, ApprovalRecord, ApprovalStore, Approver, Claimant, MemoryRecords, SealKey,
};
use serde_json::json;

use super::records::{Fault, Faulty};

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
        let ends = Faulty::new(records, Fault::Unreachable, left);
        let _ = ApprovalStore::new(ends, key).decide(&id(1), Some(ApprovalDuration::Once), OPS).await;
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
