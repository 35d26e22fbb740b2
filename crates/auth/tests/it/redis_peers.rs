//! Messages between instances over Redis, in every layout and with a user who may do no more than is documented.

use std::{pin::Pin, time::Duration};

use futures::{Stream, StreamExt as _};
use gatewright_auth::store::{PeerEvent, RedisEndpoint, RedisPeers};
use secrecy::SecretString;
use tokio::time::timeout;

use crate::support::{
    redis_server::RedisServer,
    redis_sets::{Cluster, Watched, until},
};

const PATIENCE: Duration = Duration::from_secs(40);

type Ear = Pin<Box<dyn Stream<Item = PeerEvent> + Send>>;

async fn next(ear: &mut Ear) -> PeerEvent {
    timeout(PATIENCE, ear.next()).await.expect("something is heard").expect("the stream goes on")
}

async fn listening(peers: &RedisPeers, own: &str) -> Ear {
    let mut ear: Ear = Box::pin(peers.listen(own));
    while next(&mut ear).await != PeerEvent::Listening {}
    ear
}

/// Sends messages between two instances until one of them ends.
async fn messages_reach_the_one_they_are_for(endpoint: &RedisEndpoint) {
    let (here, there) =
        (RedisPeers::connect(endpoint).await.unwrap(), RedisPeers::connect(endpoint).await.unwrap());
    let (mut one, mut two) = (listening(&here, "one").await, listening(&there, "two").await);
    let long = vec![0xff; 40_000];
    for number in 0..200u32 {
        assert!(here.send("two", &[&long[..], &number.to_be_bytes()].concat()).await.unwrap());
    }
    assert!(there.send("one", b"back").await.unwrap());
    for number in 0..200u32 {
        let PeerEvent::Message(message) = next(&mut two).await else { panic!("only messages") };
        assert_eq!(message[40_000..], number.to_be_bytes(), "in order, each once");
    }
    assert_eq!(next(&mut one).await, PeerEvent::Message(b"back".to_vec()));
    drop(two);
    let gone = async {
        // The key of an instance that ended is seen for a second at most.
        while here.send("two", b"x").await.unwrap() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, gone).await.expect("it is known to be gone");
    assert!(!here.send("never there", b"x").await.unwrap());
}

#[tokio::test]
async fn one_server_passes_messages_on_and_knows_who_is_gone() {
    messages_reach_the_one_they_are_for(&RedisServer::start().endpoint("gw:")).await;
}

#[tokio::test]
async fn a_master_behind_sentinels_passes_messages_on_and_knows_who_is_gone() {
    messages_reach_the_one_they_are_for(&Watched::start().endpoint()).await;
}

#[tokio::test]
async fn a_cluster_passes_messages_on_and_knows_who_is_gone() {
    let cluster = Cluster::start();
    messages_reach_the_one_they_are_for(&cluster.endpoint()).await;
}

#[tokio::test]
async fn a_user_with_the_documented_permissions_is_enough() {
    let users = [
        "--user",
        "gw",
        "on",
        ">pass",
        "resetchannels",
        "&gw:instance:*",
        "+ping",
        "+subscribe",
        "+publish",
        "--user",
        "default",
        "on",
    ];
    let server = RedisServer::with(&users);
    let endpoint = RedisEndpoint {
        username: Some("gw".to_owned()),
        password: Some(SecretString::from("pass")),
        ..server.endpoint("gw:")
    };
    messages_reach_the_one_they_are_for(&endpoint).await;
}

#[tokio::test]
async fn a_server_that_went_away_is_told_and_listened_to_again_and_stores_nothing() {
    let mut server = RedisServer::start();
    let peers = RedisPeers::connect(&server.endpoint("gw:")).await.unwrap();
    let mut ear = listening(&peers, "one").await;
    assert!(peers.send("one", b"before").await.unwrap());
    assert_eq!(next(&mut ear).await, PeerEvent::Message(b"before".to_vec()));
    let keys: Vec<String> = server.command(&["KEYS", "*"]);
    assert!(keys.is_empty(), "{keys:?}");
    server.stop();
    while next(&mut ear).await != PeerEvent::Lost {}
    // Once it is known that no connection can be made, it is certain that nothing was sent.
    let certain = async { while peers.send("one", b"away").await.unwrap_err().perhaps {} };
    timeout(PATIENCE, certain).await.unwrap();
    server.again();
    while next(&mut ear).await != PeerEvent::Listening {}
    let back = async { while !peers.send("one", b"back").await.unwrap_or_default() {} };
    timeout(PATIENCE, back).await.unwrap();
    assert_eq!(next(&mut ear).await, PeerEvent::Message(b"back".to_vec()));
}

#[tokio::test]
async fn after_a_fail_over_messages_go_by_way_of_the_new_master() {
    let servers = Watched::start();
    let peers = RedisPeers::connect(&servers.endpoint()).await.unwrap();
    let mut ear = listening(&peers, "one").await;
    servers.fail_over();
    until("the replica is the master", || {
        crate::support::redis_sets::says(servers.replica.port, &["ROLE"], "master")
    });
    let through = async {
        loop {
            let _ = peers.send("one", b"after").await;
            if let Ok(Some(PeerEvent::Message(message))) =
                timeout(Duration::from_millis(100), ear.next()).await
            {
                return message;
            }
        }
    };
    assert_eq!(timeout(PATIENCE, through).await.unwrap(), b"after");
}
