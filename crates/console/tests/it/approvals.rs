//! Approvals that the operator gives.

use gatewright_core::{
    Approval, ApprovalDuration, ApprovalRecord, ApprovalState, Approvals, Approver, Claimant, Policies,
    RequestObject,
};
use http::StatusCode;

use crate::support::{HOSTILE, Site, assert_clean, site};

fn record(subject: &str, approvers: Option<&str>) -> ApprovalRecord {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    ApprovalRecord {
        id: format!("apr_{:0>32}", "1"),
        nonce: 1,
        subject: subject.to_owned(),
        client: Some(HOSTILE.to_owned()),
        object: RequestObject::Tool(HOSTILE.to_owned()),
        digest: String::new(),
        arguments: vec![HOSTILE.to_owned()],
        reason: HOSTILE.to_owned(),
        policy: HOSTILE.to_owned(),
        run: Some(HOSTILE.to_owned()),
        step: None,
        may_stand: true,
        approvers: approvers.map(str::to_owned),
        created_ms: now,
        expires_ms: now + 600_000,
        state: ApprovalState::Waiting,
        duration: ApprovalDuration::Once,
        by: None,
    }
}

async fn waiting(site: &Site) -> usize {
    let store = site.running.gateway().invoker().approvals();
    store.list(Approver::Operator("somebody")).await.unwrap().len()
}

#[tokio::test]
async fn the_operator_decides_on_calls_of_others_and_hostile_texts_stay_text() {
    for (decision, word) in [("approve", "Approved."), ("deny", "Denied.")] {
        let site = site().await;
        let store = site.running.gateway().invoker().approvals();
        let record = record(HOSTILE, Some(HOSTILE));
        store.request(record.clone(), &Claimant::default(), 20).await.unwrap();
        let page = site.get("/console/approvals").await;
        assert_eq!(page.status, StatusCode::OK);
        assert_clean(&page);
        assert!(page.text.contains("&lt;img src=x"), "{}", page.text);
        let unclear = site.post("/console/approvals", &[("id", &record.decision_id())]).await;
        assert_eq!((unclear.status, waiting(&site).await), (StatusCode::UNPROCESSABLE_ENTITY, 1));
        let fields = [("id", &*record.decision_id()), ("decision", decision), ("for", "hour")];
        let done = site.post("/console/approvals", &fields).await;
        assert_clean(&done);
        assert!(done.status == StatusCode::OK && done.text.contains(word), "{}", done.text);
        assert_eq!(waiting(&site).await, 0);
    }
}

#[tokio::test]
async fn where_others_approve_the_operator_does_not_approve_an_own_call() {
    let site = site().await;
    let approvals =
        Approvals { writes: Some(Approval::Ask), approvers: Some("boss".to_owned()), ..Approvals::default() };
    site.running.gateway().registry().set_policies(Some(Policies { engine: None, approvals }));
    let called = site.post("/console/tool?name=evil:rows", &[("f.n", "1")]).await;
    assert!(called.text.contains("APPROVAL_REQUIRED"), "{}", called.text);
    assert_eq!(waiting(&site).await, 1);
    assert!(site.get("/console/approvals").await.text.contains("No request waits for an approval."));
}
