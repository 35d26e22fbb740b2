//! Windows, epochs and silence, without HTTP.

use std::{sync::Weak, time::Duration};

use bytes::Bytes;
use http::{Method, Request, StatusCode};

use super::{
    exchange::WINDOW,
    message::{CHUNK, Part, Reason},
    *,
};
use hub::Hub;

#[path = "../../tests/it/hub.rs"]
#[expect(dead_code, reason = "the integration tests use all of it")]
mod hub;

/// An instance that serves nothing: what it receives is for the test to deal with.
async fn instance(hub: &Hub) -> (Arc<Relay>, Running) {
    let key: ClusterKey = serde_json::from_value("k".repeat(32).into()).unwrap();
    let relay = Relay::new(&key, BootId::random().unwrap(), Arc::new(hub.clone()));
    let running = relay.start(Weak::<crate::mcp::Endpoint>::new()).await;
    (relay, running)
}

/// Both ends of an exchange between two instances.
fn joined(a: &Arc<Relay>, b: &Arc<Relay>) -> (Exchange, Exchange) {
    let id = ExchangeId([7; 16]);
    let (here, entry) = Exchange::new(a.clone(), id, b.own);
    a.table().open(id, entry, None);
    let (there, entry) = Exchange::new(b.clone(), id, a.own);
    b.table().open(id, entry, None);
    (here, there)
}

#[tokio::test]
async fn a_reader_that_takes_nothing_has_its_writer_wait_after_a_window() {
    let hub = Hub::default();
    let ((a, _a), (b, _b)) = (instance(&hub).await, instance(&hub).await);
    let (mut here, mut there) = joined(&a, &b);
    let body = Bytes::from(vec![b'x'; 3 * WINDOW * CHUNK]);
    let sending = tokio::spawn(async move { here.send_all(None, body, true).await.map(|_| here.over()) });
    let parts = || hub.sent().iter().filter(|(_, message)| message.len() > CHUNK).count();
    while parts() < WINDOW {
        tokio::task::yield_now().await;
    }
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(parts(), WINDOW);
    let mut length = 0;
    loop {
        let Part { data, end, .. } = there.receive().await.unwrap();
        assert!(data.len() <= CHUNK);
        length += data.len();
        if end {
            break;
        }
    }
    there.over();
    assert_eq!(length, 3 * WINDOW * CHUNK);
    sending.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_instance_that_subscribed_anew_ends_what_was_under_way_at_both() {
    let hub = Hub::default();
    let ((a, _a), (b, _b)) = (instance(&hub).await, instance(&hub).await);
    let (mut here, mut there) = joined(&a, &b);
    there.send(None, Bytes::new(), false).await.unwrap();
    here.receive().await.unwrap();
    hub.inject(&b.own.to_string(), FromPeers::Listening);
    assert_eq!(there.receive().await, Err(Reason::Broken));
    there.over();
    // Its next message of whatever kind says so, when the end itself was lost.
    b.send(a.own, ExchangeId::NONE, &Message::Beat).await.unwrap();
    assert_eq!(here.receive().await, Err(Reason::Broken));
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_falls_silent_ends_what_was_under_way() {
    let hub = Hub::default();
    let ((a, _a), (b, _b)) = (instance(&hub).await, instance(&hub).await);
    let (mut here, _there) = joined(&a, &b);
    // It does not live any more, and Redis has not noticed: messages go nowhere, none come.
    hub.fate(|_| hub::Then::Lost);
    let began = Instant::now();
    assert_eq!(here.receive().await, Err(Reason::Broken));
    assert!(began.elapsed() > SILENCE && began.elapsed() < SILENCE + 2 * BEAT, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_confirms_breaks_off_after_five_seconds() {
    let hub = Hub::default();
    let ((a, _a), (b, _b)) = (instance(&hub).await, instance(&hub).await);
    hub.fate(|_| hub::Then::Lost);
    let (parts, ()) = Request::builder().method(Method::POST).body(()).unwrap().into_parts();
    let began = Instant::now();
    let response = a.pass_on(b.own, &parts, Bytes::from_static(b"{}")).await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[tokio::test]
async fn a_request_is_remembered_only_as_long_as_a_copy_could_be_accepted() {
    tokio::time::pause();
    let mut table = Table::default();
    let (one, other) = (ExchangeId([1; 16]), ExchangeId([2; 16]));
    assert!(table.is_new(one) && !table.is_new(one) && table.is_new(other));
    tokio::time::advance(Duration::from_secs(60)).await;
    assert!(!table.is_new(one));
    tokio::time::advance(Duration::from_secs(6)).await;
    assert!(table.is_new(one) && table.remembered.len() == 1);
}
