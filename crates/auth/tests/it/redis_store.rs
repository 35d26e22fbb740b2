//! Tests of the Redis store beyond the contract of all stores.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use gatewright_auth::{
    AuthConfig, ManualClock, SystemEntropy, open_store,
    store::{CodeLife, Digest, FamilyId, Key, Redeemed, RedisEndpoint, RedisStore, Rotated, Rotation, Store},
};
use secrecy::SecretString;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::support::{redis_server::RedisServer, site::Site};

const LIFE: CodeLife = CodeLife {
    code: Duration::from_secs(60),
    family: Duration::from_secs(7200),
    refresh: Some(Duration::from_secs(3600)),
};

fn keys(server: &RedisServer) -> BTreeSet<String> {
    server.command(&["KEYS", "*"])
}

fn ttl(server: &RedisServer, key: &str) -> i64 {
    server.command(&["PTTL", key])
}

#[tokio::test]
async fn k01_and_k03_keys_have_the_contracts_names_and_lifetimes_and_hold_no_secret() {
    let server = RedisServer::start();
    let store = RedisStore::connect(&server.endpoint("gw:")).await.unwrap();
    let store: &dyn Store = &store;
    let (code, refresh) = (Digest::of("plain-code"), Digest::of("plain-refresh"));
    store.put(&Key::secret("pending", "plain-id"), b"p", Duration::from_secs(600)).await.unwrap();
    store.put_code(&code, b"{}", LIFE, &[]).await.unwrap();
    let near = |key: &str, seconds: i64| {
        let left = ttl(&server, key);
        assert!(left <= seconds * 1000 && left > seconds * 1000 - 1000, "{key} lives {left} ms");
    };
    near(&format!("gw:code:{}", code.as_str()), 60);
    near(&format!("gw:{}", Key::secret("pending", "plain-id").as_str()), 600);
    let family = FamilyId::mint(&SystemEntropy);
    store.redeem(&code, &family, &refresh).await.unwrap();
    near(&format!("gw:refresh:{}", refresh.as_str()), 3600);
    for key in keys(&server) {
        let value: String = server.command(&["GET", &key]);
        assert!(
            key.starts_with("gw:") && !key.contains("plain") && !value.contains("plain"),
            "{key}={value}"
        );
    }
}

#[tokio::test]
async fn k02_two_prefixes_do_not_see_each_other() {
    let server = RedisServer::start();
    let one = RedisStore::connect(&server.endpoint("one:")).await.unwrap();
    let two = RedisStore::connect(&server.endpoint("two:*")).await.unwrap();
    let (one, two): (&dyn Store, &dyn Store) = (&one, &two);
    let code = Digest::of("c");
    one.put_code(&code, b"g", LIFE, &[]).await.unwrap();
    let family = FamilyId::mint(&SystemEntropy);
    assert_eq!(two.redeem(&code, &family, &code).await.unwrap(), Redeemed::Unknown);
    assert_eq!(one.redeem(&code, &family, &code).await.unwrap(), Redeemed::Fresh(b"g".to_vec()));
}

#[tokio::test]
async fn k05_tls_is_refused_to_a_plain_server_and_to_a_certificate_nobody_vouches_for() {
    let plain = RedisServer::start();
    let endpoint = RedisEndpoint { tls: true, ..plain.endpoint("") };
    assert!(RedisStore::connect(&endpoint).await.is_err(), "a plain port");
    let tls = RedisServer::with_tls();
    let endpoint = RedisEndpoint { ca_file: None, ..tls.endpoint("") };
    assert!(RedisStore::connect(&endpoint).await.is_err(), "an unknown authority");
    let endpoint = RedisEndpoint { tls: false, ca_file: None, ..tls.endpoint("") };
    assert!(RedisStore::connect(&endpoint).await.is_err(), "plain text to a TLS port");
    assert!(RedisStore::connect(&tls.endpoint("")).await.is_ok());
}

#[tokio::test]
async fn an_acl_user_with_a_password_may_connect_and_others_may_not() {
    let server =
        RedisServer::with(&["--user", "gw", "on", ">pass", "~gw:*", "+@all", "--user", "default", "off"]);
    let login = |user: &str, password: &str| RedisEndpoint {
        username: Some(user.to_owned()),
        password: Some(SecretString::from(password)),
        ..server.endpoint("gw:")
    };
    let store = RedisStore::connect(&login("gw", "pass")).await.unwrap();
    let store: &dyn Store = &store;
    assert!(store.put_new(&Key::single("x"), b"1", Duration::from_secs(5)).await.unwrap());
    assert!(RedisStore::connect(&login("gw", "wrong")).await.is_err());
    assert!(RedisStore::connect(&server.endpoint("gw:")).await.is_err());
}

#[tokio::test]
async fn k05_an_address_with_an_acl_user_and_tls_is_enough() {
    let users = ["--user", "gw", "on", ">p@ss", "~gw:*", "+@all", "--user", "default", "off"];
    let server = RedisServer::with_tls_and(&users);
    let endpoint = server.endpoint("");
    let with = |login: &str| {
        let url = format!("rediss://{login}127.0.0.1:{}", server.port);
        let config =
            json!({"tokenStorage": {"type": "redis", "config": {"url": url, "caFile": endpoint.ca_file}}});
        serde_json::from_value::<AuthConfig>(config).unwrap()
    };
    let clock = Arc::new(ManualClock::from_system());
    let store = open_store(&with("gw:p%40ss@"), clock.clone()).await.unwrap();
    assert!(store.put_new(&Key::single("x"), b"1", Duration::from_secs(5)).await.unwrap());
    for login in ["", "gw:other@", "default:p%40ss@"] {
        assert!(open_store(&with(login), clock.clone()).await.is_err(), "{login}");
    }
}

#[tokio::test]
async fn k06_every_step_stays_in_one_slot_of_a_cluster() {
    let (server, _) = RedisServer::cluster_node();
    let _: String = server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    while !server.command::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok") {
        tokio::task::yield_now().await;
    }
    let store = RedisStore::connect(&server.endpoint("{gw}:")).await.unwrap();
    let store: &dyn Store = &store;
    let (code, first, second) = (Digest::of("c"), Digest::of("1"), Digest::of("2"));
    let family = FamilyId::mint(&SystemEntropy);
    store.put_code(&code, b"g", LIFE, &[]).await.unwrap();
    assert_eq!(store.redeem(&code, &family, &first).await.unwrap(), Redeemed::Fresh(b"g".to_vec()));
    let rotation = Rotation {
        old: &first,
        family: &family,
        new: &second,
        sealed: b"s",
        ttl: Duration::from_secs(60),
        now_ms: 1,
        grace: Duration::ZERO,
    };
    assert_eq!(store.rotate(rotation).await.unwrap(), Rotated::Fresh);
    assert!(store.find(&second, &family).await.unwrap().unwrap().current);
    store.hit(&Key::named("rate", &["a"]), Duration::from_secs(5)).await.unwrap();
}

#[tokio::test]
async fn k07_and_k10_a_server_that_went_away_gives_errors_and_is_found_again_without_a_restart() {
    let mut server = RedisServer::start();
    let store = RedisStore::connect(&server.endpoint("gw:")).await.unwrap();
    let store: &dyn Store = &store;
    let (code, family) = (Digest::of("c"), FamilyId::mint(&SystemEntropy));
    store.put_code(&code, b"g", LIFE, &[]).await.unwrap();
    server.stop();
    assert!(store.redeem(&code, &family, &code).await.is_err(), "no answer is not a success");
    assert!(store.get(&Key::single("x")).await.is_err());
    server.again();
    let mut tries = 0;
    while store.put(&Key::single("x"), b"1", Duration::from_secs(5)).await.is_err() {
        tries += 1;
        assert!(tries < 200, "the connection comes back");
    }
    assert_eq!(
        store.redeem(&code, &family, &code).await.unwrap(),
        Redeemed::Unknown,
        "the code went with the server"
    );
}

#[tokio::test]
async fn k11_an_evicted_family_or_token_is_dead_rather_than_unguarded() {
    let server = RedisServer::start();
    let store = RedisStore::connect(&server.endpoint("gw:")).await.unwrap();
    let store: &dyn Store = &store;
    let (code, first) = (Digest::of("c"), Digest::of("1"));
    let family = FamilyId::mint(&SystemEntropy);
    store.put_code(&code, b"g", LIFE, &[]).await.unwrap();
    store.redeem(&code, &family, &first).await.unwrap();
    let _: i64 = server.command(&["DEL", &format!("gw:family:{}", family.as_str())]);
    assert_eq!(store.find(&first, &family).await.unwrap(), None);
    let rotation = Rotation {
        old: &first,
        family: &family,
        new: &Digest::of("2"),
        sealed: b"s",
        ttl: Duration::from_secs(60),
        now_ms: 1,
        grace: Duration::from_secs(30),
    };
    assert_eq!(store.rotate(rotation).await.unwrap(), Rotated::Unknown);
    let _: i64 = server.command(&["DEL", &format!("gw:code:{}", code.as_str())]);
    assert_eq!(store.redeem(&code, &family, &first).await.unwrap(), Redeemed::Unknown);
}

#[tokio::test]
async fn a_code_is_exchanged_in_one_round_trip() {
    let server = RedisServer::start();
    let store: Arc<dyn Store> = Arc::new(RedisStore::connect(&server.endpoint("gw:")).await.unwrap());
    let site = Site::on(json!({}), Arc::new(ManualClock::from_system()), store).await;
    site.tokens().await;
    let code = site.code(&[]).await;
    let calls = || -> u64 {
        let all: String = server.command(&["INFO", "commandstats"]);
        let of = |line: &str| line.split("calls=").nth(1)?.split(',').next()?.parse::<u64>().ok();
        all.lines().find(|line| line.starts_with("cmdstat_evalsha")).and_then(of).unwrap()
    };
    // Every command but those that only look or connect.
    let all = || -> u64 {
        let all: String = server.command(&["INFO", "commandstats"]);
        let of = |line: &str| line.split("calls=").nth(1)?.split(',').next()?.parse::<u64>().ok();
        let looks = ["cmdstat_info", "cmdstat_client", "cmdstat_hello", "cmdstat_ping", "cmdstat_select"];
        let counted =
            |line: &&str| line.starts_with("cmdstat_") && !looks.iter().any(|l| line.starts_with(l));
        all.lines().filter(counted).filter_map(of).sum()
    };
    let inside = 2 + 1 + 3 + 1;
    let (scripts, commands) = (calls(), all());
    assert_eq!(site.redeem(&code).await.status, 200);
    assert_eq!(calls() - scripts, 1, "one script");
    assert_eq!(all() - commands, 1 + inside, "and nothing beside what it does itself");
}

#[tokio::test]
async fn d12_a_code_is_worth_nothing_once_its_user_was_revoked() {
    let server = RedisServer::start();
    let store: Arc<dyn Store> = Arc::new(RedisStore::connect(&server.endpoint("{gw}:")).await.unwrap());
    let site = Site::on(json!({}), Arc::new(ManualClock::from_system()), store).await;
    let code = site.code(&[]).await;
    site.server.revoke_user("user:alice").await.unwrap();
    let answer = site.redeem(&code).await;
    assert_eq!((answer.status.as_u16(), answer.error().as_str()), (400, "invalid_grant"));
    assert_eq!(keys(&server).iter().filter(|key| key.contains("family")).count(), 0, "nothing came of it");
    site.clock.advance(Duration::from_secs(1));
    site.tokens().await;
}

/// A fault of a proxy, at the next connection over which an answer comes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// It sends something that is no Redis protocol, once.
    Garbles,
    /// It forgets the connection, and closes it at neither end.
    Forgets,
}

/// Passes everything on to the server on `port`, but for the faults that are named.
async fn proxy(port: u16, faults: Arc<Mutex<Option<Fault>>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let faults = faults.clone();
            tokio::spawn(async move {
                let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
                let mut answer = vec![0; 64 * 1024];
                let mut forgotten = false;
                while let Ok(read @ 1..) = from_server.read(&mut answer).await {
                    let fault = faults.lock().unwrap().take();
                    forgotten |= fault == Some(Fault::Forgets);
                    let sent: &[u8] = match fault {
                        _ if forgotten => continue,
                        Some(Fault::Garbles) => b"HTTP/1.1 502 Bad Gateway\r\n\r\n<html>",
                        _ => &answer[..read],
                    };
                    if to_client.write_all(sent).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    own
}

/// Returns once a store is used again whose connection met `fault`.
async fn recovers(fault: Fault) {
    let server = RedisServer::start();
    let faults = Arc::new(Mutex::new(None));
    let mut endpoint = server.endpoint("gw:");
    endpoint.port = proxy(endpoint.port, faults.clone()).await;
    let store = RedisStore::connect(&endpoint).await.unwrap();
    let store: &dyn Store = &store;
    let key = Key::secret("pending", "id");
    store.put(&key, b"p", LIFE.code).await.unwrap();
    *faults.lock().unwrap() = Some(fault);
    assert!(store.get_many(std::slice::from_ref(&key)).await.is_err());
    let began = std::time::Instant::now();
    loop {
        match store.get_many(std::slice::from_ref(&key)).await {
            Ok(found) => break assert_eq!(found, [Some(b"p".to_vec())]),
            Err(error) => assert!(began.elapsed() < Duration::from_secs(30), "{error}"),
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_connection_over_which_something_else_than_redis_answered_is_made_anew() {
    recovers(Fault::Garbles).await;
}

#[tokio::test]
async fn a_connection_that_somebody_between_forgot_is_made_anew() {
    recovers(Fault::Forgets).await;
}
