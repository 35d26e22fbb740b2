//! The page where users decide on approvals, and approvals that instances share in Redis.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use gatewright_auth::{
    ApprovalPages,
    store::{RedisStore, StoreRecords},
};
use gatewright_core::{
    ApprovalDuration, ApprovalRecord, ApprovalState, ApprovalStore, Approver, CannotDecide, Claimant,
    RequestObject, SealKey,
};
use http::{StatusCode, header};
use serde_json::json;

use crate::support::{
    redis_server::RedisServer,
    site::{Answer, Browser, ISSUER, PASSWORD, Site, post},
};

const PATH: &str = "/oauth/account/approvals";
const HOSTILE: &str = "\"><script>alert(1)</script>";

/// An approval of a call by `subject`, decided on by holders of `approvers`.
fn record(n: u8, subject: &str, approvers: Option<&str>) -> ApprovalRecord {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    ApprovalRecord {
        id: format!("apr_{n:032x}"),
        nonce: 1,
        subject: subject.to_owned(),
        client: Some("app".to_owned()),
        object: RequestObject::Tool("shop:refund".to_owned()),
        digest: "00".repeat(32),
        arguments: vec![format!("order: \"ord_{n}\""), HOSTILE.to_owned()],
        reason: "Refund over 1,000".to_owned(),
        policy: "large-refunds".to_owned(),
        run: Some("exe_1".to_owned()),
        step: Some(3),
        may_stand: true,
        approvers: approvers.map(str::to_owned),
        created_ms: now,
        expires_ms: now + 600_000,
        state: ApprovalState::Waiting,
        duration: ApprovalDuration::Once,
        by: None,
    }
}

async fn site(records: impl IntoIterator<Item = ApprovalRecord>) -> (Site, Arc<ApprovalStore>) {
    let users = json!({"local": {"users": [
        {"username": "alice", "passwordHash": crate::support::site::password_hash(), "scopes": ["read"]},
        {"username": "bob", "passwordHash": crate::support::site::password_hash(), "scopes": ["read", "write"]},
    ]}});
    let mut site = Site::with(users).await;
    let store = Arc::new(ApprovalStore::in_memory());
    for record in records {
        store.request(record, &Claimant::default(), 20).await.unwrap();
    }
    let pages = ApprovalPages::new(&site.server, store.clone());
    assert_eq!(pages.address(), format!("{ISSUER}{PATH}"));
    site.router = site.router.clone().merge(pages.router());
    (site, store)
}

/// Opens the page as `user`, who signs in first.
async fn open(browser: &Browser<'_>, user: &str) -> Answer {
    let login = browser.get(PATH).await;
    assert!(login.text.contains("password"), "{}", login.text);
    let mut next = browser.log_in(&login, user, PASSWORD).await;
    while next.header("location") != format!("{ISSUER}{PATH}") {
        next = browser.follow(&next).await;
    }
    browser.follow(&next).await
}

async fn decide(browser: &Browser<'_>, page: &Answer, id: &str, decision: &str) -> Answer {
    let csrf = page.field("csrf");
    let mut request = post(PATH, &[("csrf", &csrf), ("id", id), ("decision", decision), ("for", "hour")]);
    request.headers_mut().insert(header::ORIGIN, ISSUER.parse().unwrap());
    browser.send(request).await
}

#[tokio::test]
async fn callers_see_and_decide_on_their_own_calls_only() {
    let (alices, bobs) = (record(1, "user:alice", None), record(2, "user:bob", None));
    let (site, store) = site([alices.clone(), bobs.clone()]).await;
    let browser = site.browser();
    let page = open(&browser, "alice").await;
    for shown in
        ["shop:refund", "Refund over 1,000", "ord_1", "as call 3 of the script exe_1", "Requested for you"]
    {
        assert!(page.text.contains(shown), "{shown}: {}", page.text);
    }
    assert!(!page.text.contains("ord_2") && !page.text.contains("<script"), "{}", page.text);
    let refused = decide(&browser, &page, &bobs.decision_id(), "approve").await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert!(refused.text.contains("does not wait for you"), "{}", refused.text);
    assert_eq!(
        decide(&browser, &page, &alices.decision_id(), "perhaps").await.status,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(decide(&browser, &page, &alices.decision_id(), "approve").await.status, StatusCode::SEE_OTHER);
    assert!(browser.get(PATH).await.text.contains("Nothing waits for you"));
    let left = store.list(Approver::Operator("ops")).await.unwrap();
    assert_eq!(left.iter().map(|one| &one.id).collect::<Vec<_>>(), [&bobs.id]);
}

#[tokio::test]
async fn with_approvers_holders_of_the_scope_decide_and_never_on_their_own_calls() {
    let (alices, bobs) = (record(1, "user:alice", Some("write")), record(2, "user:bob", Some("write")));
    let (site, store) = site([alices.clone(), bobs.clone()]).await;
    let (alice, bob) = (site.browser(), site.browser());
    assert!(open(&alice, "alice").await.text.contains("Nothing waits for you"), "she lacks the scope");
    let page = open(&bob, "bob").await;
    assert!(page.text.contains("user:alice") && !page.text.contains("ord_2"), "{}", page.text);
    assert_eq!(decide(&bob, &page, &bobs.decision_id(), "approve").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(decide(&bob, &page, &alices.decision_id(), "deny").await.status, StatusCode::SEE_OTHER);
    assert_eq!(store.list(Approver::Operator("ops")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_form_of_another_site_or_without_its_token_or_a_session_decides_nothing() {
    let own = record(1, "user:alice", None);
    let (site, store) = site([own.clone()]).await;
    let browser = site.browser();
    let page = open(&browser, "alice").await;
    let csrf = page.field("csrf");
    let fields =
        |csrf: &str| post(PATH, &[("csrf", csrf), ("id", &own.decision_id()), ("decision", "approve")]);
    let mut foreign = fields(&csrf);
    foreign.headers_mut().insert(header::ORIGIN, "https://evil.example".parse().unwrap());
    let mut forged = fields("x");
    forged.headers_mut().insert(header::ORIGIN, ISSUER.parse().unwrap());
    let mut unknown = fields(&csrf);
    unknown.headers_mut().insert(header::ORIGIN, ISSUER.parse().unwrap());
    assert!(browser.send(foreign).await.status.is_client_error());
    assert!(browser.send(forged).await.status.is_client_error());
    assert_eq!(site.browser().send(unknown).await.status, StatusCode::FORBIDDEN);
    assert_eq!(store.list(Approver::Operator("ops")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn of_two_instances_on_redis_one_decides_and_both_know() {
    let server = RedisServer::start();
    let instance = async || {
        let store = Arc::new(RedisStore::connect(&server.endpoint("gw:")).await.unwrap());
        ApprovalStore::new(Arc::new(StoreRecords::new(store, "approval")), SealKey::derived(b"shared"))
    };
    let (one, other) = (instance().await, instance().await);
    let own = record(1, "user:alice", None);
    let caller = Claimant::default();
    let (first, second) =
        tokio::join!(one.request(own.clone(), &caller, 20), other.request(own.clone(), &caller, 20));
    assert_eq!(first.unwrap(), second.unwrap(), "the same call waits once");
    let alice = Approver::User { subject: "user:alice", holds: &|_| false };
    let ops = Approver::Operator("ops");
    let (yes, no) = tokio::join!(
        one.decide(&own.id, Some(ApprovalDuration::Once), alice),
        other.decide(&own.id, None, ops)
    );
    let decided: Vec<_> = [yes, no].into_iter().filter_map(Result::ok).collect();
    assert_eq!(decided.len(), 1, "{decided:?}");
    for store in [&one, &other] {
        assert!(store.list(ops).await.unwrap().is_empty());
        assert_eq!(store.decide(&own.id, None, ops).await, Err(CannotDecide::NotFound));
    }
    let keys: Vec<String> = server.command(&["KEYS", "*approval*"]);
    assert!(!keys.is_empty());
    for key in keys {
        let value: Vec<u8> = server.command(&["GET", &key]);
        assert!(!value.windows(6).any(|part| part == b"refund"), "{key} is sealed");
    }
}
