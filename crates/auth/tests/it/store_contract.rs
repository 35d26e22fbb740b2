//! One set of checks that all three stores pass.

use std::{sync::Arc, time::Duration};

use gatewright_auth::{
    Clock, ManualClock, SystemEntropy,
    store::{
        CodeLife, Counters as _, Digest, Exchange, Exchanged, FamilyId, Key, MemoryStore, Records as _,
        Redeemed, RedisStore, Rotated, Rotation, SqliteStore, Store,
    },
};

use crate::support::redis_server::RedisServer;

const MINUTE: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(30);

fn life(refresh: bool) -> CodeLife {
    CodeLife { code: MINUTE, family: 60 * MINUTE, refresh: refresh.then_some(10 * MINUTE) }
}

struct Chain<'a> {
    store: &'a dyn Store,
    family: FamilyId,
}

impl<'a> Chain<'a> {
    /// A family whose first refresh token is `first`.
    async fn founded(store: &'a dyn Store, name: &str) -> Self {
        let family = FamilyId::mint(&SystemEntropy);
        let code = Digest::of(&format!("{name}-code"));
        store.put_code(&code, b"grant", life(true), &[]).await.unwrap();
        let first = Digest::of(&format!("{name}-0"));
        assert_eq!(store.redeem(&code, &family, &first).await.unwrap(), Redeemed::Fresh(b"grant".to_vec()));
        Self { store, family }
    }

    async fn rotate(&self, old: &str, new: &str, now_ms: u64) -> Rotated {
        let (old, new) = (Digest::of(old), Digest::of(new));
        let sealed = new.as_str().as_bytes();
        let rotation = Rotation {
            old: &old,
            family: &self.family,
            new: &new,
            sealed,
            ttl: 10 * MINUTE,
            now_ms,
            grace: GRACE,
        };
        self.store.rotate(rotation).await.unwrap()
    }

    async fn is_alive(&self) -> bool {
        self.store.family(&self.family).await.unwrap().is_some()
    }
}

async fn listing(store: &dyn Store) {
    for n in 0..3 {
        store.put(&Key::named("listed", &[&n.to_string()]), &[n], MINUTE).await.unwrap();
    }
    // A kind whose name begins alike is another one.
    store.put(&Key::named("listed-too", &["x"]), b"x", MINUTE).await.unwrap();
    let mut all = store.list("listed", 100).await.unwrap();
    all.sort();
    assert_eq!(all, [[0], [1], [2]]);
    assert_eq!(store.list("listed", 2).await.unwrap().len(), 2);
    assert_eq!(store.list("nothing", 100).await.unwrap(), Vec::<Vec<u8>>::new());
}

async fn records(store: &dyn Store) {
    let key = Key::secret("pending", "a\0*?[x]{y}");
    assert_eq!(store.get(&key).await.unwrap(), None);
    store.put(&key, b"1", MINUTE).await.unwrap();
    assert!(!store.put_new(&key, b"2", MINUTE).await.unwrap());
    assert!(!store.replace(&key, b"0", b"3", MINUTE).await.unwrap());
    assert!(store.replace(&key, b"1", b"\xff\0", MINUTE).await.unwrap());
    let other = Key::secret("pending", "b");
    assert_eq!(
        store.get_many(&[other.clone(), key.clone()]).await.unwrap(),
        [None, Some(b"\xff\0".to_vec())]
    );
    assert_eq!(store.take(&key).await.unwrap().as_deref(), Some(&b"\xff\0"[..]));
    assert_eq!(store.take(&key).await.unwrap(), None);
    assert!(store.put_new(&other, b"2", MINUTE).await.unwrap());
    store.remove(&other).await.unwrap();
    assert_eq!(store.get(&other).await.unwrap(), None);
}

async fn counters(store: &dyn Store) {
    let key = Key::named("rate", &["token", "192.0.2.1"]);
    for expected in 1..=3 {
        let hit = store.hit(&key, MINUTE).await.unwrap();
        assert_eq!(hit.count, expected);
        assert!(hit.resets_in <= MINUTE && hit.resets_in > MINUTE / 2);
    }
    assert_eq!(store.hit(&Key::named("rate", &["token192.0.2.1"]), MINUTE).await.unwrap().count, 1);
}

async fn counted_codes(store: &dyn Store) {
    let (code, family, refresh) =
        (Digest::of("counted"), FamilyId::mint(&SystemEntropy), Digest::of("counted-0"));
    let (ends, other) = (Key::named("cutoff", &["user", "u"]), Key::named("cutoff", &["client", "c"]));
    store.put_code(&code, b"grant", life(true), &[other, ends.clone()]).await.unwrap();
    store.put(&ends, b"77", MINUTE).await.unwrap();
    let (wide, narrow) = (Key::named("rate", &["wide"]), Key::named("rate", &["narrow"]));
    let exchange = |counts: &'static str| {
        let counts: Vec<(Key, u64)> = match counts {
            "none left" => vec![(wide.clone(), 100), (narrow.clone(), 0)],
            _ => vec![(wide.clone(), 100), (narrow.clone(), 2)],
        };
        let (code, family, refresh) = (code.clone(), family.clone(), refresh.clone());
        async move {
            let exchange =
                Exchange { counts: &counts, window: MINUTE, code: &code, family: &family, refresh: &refresh };
            store.exchange(exchange).await.unwrap()
        }
    };
    let Exchanged::Limited(left) = exchange("none left").await else { panic!("more than the most") };
    assert!(left <= MINUTE && left > MINUTE / 2);
    match exchange("enough").await {
        Exchanged::Redeemed { code: Redeemed::Fresh(grant), revocations } => {
            assert_eq!(grant, b"grant", "a limited exchange leaves the code as it was");
            assert!(
                revocations.is_none_or(|held| held == [b"77".to_vec()]),
                "what is there of the records named"
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(store.find(&refresh, &family).await.unwrap().is_some());
    assert!(matches!(exchange("enough").await, Exchanged::Limited(_)), "every use counts");
    assert!(store.find(&refresh, &family).await.unwrap().is_some(), "no replay was noticed above the limit");
    assert_eq!(store.hit(&wide, MINUTE).await.unwrap().count, 4);
}

async fn codes(store: &dyn Store) {
    let (code, family) = (Digest::of("once"), FamilyId::mint(&SystemEntropy));
    let refresh = Digest::of("first");
    assert_eq!(store.redeem(&code, &family, &refresh).await.unwrap(), Redeemed::Unknown);
    store.put_code(&code, b"grant;with,marks", life(true), &[]).await.unwrap();
    let fresh = store.redeem(&code, &family, &refresh).await.unwrap();
    assert_eq!(fresh, Redeemed::Fresh(b"grant;with,marks".to_vec()));
    let found = store.find(&refresh, &family).await.unwrap().unwrap();
    assert!(found.current && found.grant == b"grant;with,marks");
    assert_eq!(store.redeem(&code, &family, &Digest::of("second")).await.unwrap(), Redeemed::Replayed);
    assert_eq!(store.find(&refresh, &family).await.unwrap(), None, "a replay ends the family");
    assert_eq!(store.redeem(&code, &family, &refresh).await.unwrap(), Redeemed::Replayed);

    let plain = Digest::of("without refresh");
    store.put_code(&plain, b"g", life(false), &[]).await.unwrap();
    let (family, refresh) = (FamilyId::mint(&SystemEntropy), Digest::of("unused"));
    assert_eq!(store.redeem(&plain, &family, &refresh).await.unwrap(), Redeemed::Fresh(b"g".to_vec()));
    assert_eq!(store.find(&refresh, &family).await.unwrap(), None);
    assert_eq!(store.family(&family).await.unwrap().as_deref(), Some(&b"g"[..]));
}

async fn rotation(store: &dyn Store, now: u64) {
    let chain = Chain::founded(store, "r").await;
    assert_eq!(chain.rotate("r-unknown", "x", now).await, Rotated::Unknown);
    assert!(chain.is_alive().await, "a token nobody issued harms nobody");
    assert_eq!(chain.rotate("r-0", "r-1", now).await, Rotated::Fresh);
    let successor = Digest::of("r-1").as_str().as_bytes().to_vec();
    assert_eq!(
        chain.rotate("r-0", "r-1b", now + 30_000).await,
        Rotated::Retried(successor),
        "the lost answer"
    );
    assert_eq!(chain.rotate("r-1", "r-2", now + 31_000).await, Rotated::Fresh);
    assert_eq!(chain.rotate("r-0", "r-3", now + 31_000).await, Rotated::Replayed, "its successor was used");
    assert!(!chain.is_alive().await);
    assert_eq!(chain.rotate("r-2", "r-4", now + 31_000).await, Rotated::Unknown, "the newest died too");

    let late = Chain::founded(store, "late").await;
    assert_eq!(late.rotate("late-0", "late-1", now).await, Rotated::Fresh);
    assert_eq!(late.rotate("late-0", "late-1b", now + 30_001).await, Rotated::Replayed, "grace is over");
    assert!(!late.is_alive().await);

    let ended = Chain::founded(store, "ended").await;
    store.end_family(&ended.family).await.unwrap();
    assert_eq!(ended.rotate("ended-0", "ended-1", now).await, Rotated::Unknown);
}

async fn everything(store: &dyn Store, now: u64) {
    records(store).await;
    listing(store).await;
    counters(store).await;
    codes(store).await;
    counted_codes(store).await;
    rotation(store, now).await;
    crate::store_passkeys::passkeys(store).await;
}

#[tokio::test]
async fn k08_the_memory_store_keeps_the_contract() {
    let clock = Arc::new(ManualClock::from_system());
    everything(&MemoryStore::new(clock.clone()), clock.now_ms()).await;
}

#[tokio::test]
async fn the_sqlite_store_keeps_the_contract() {
    let clock = Arc::new(ManualClock::from_system());
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("t.db"), "gw:", clock.clone()).unwrap();
    everything(&store, clock.now_ms()).await;
}

#[tokio::test]
async fn the_redis_store_keeps_the_contract() {
    let server = RedisServer::start();
    let store = RedisStore::connect(&server.endpoint("gw:")).await.unwrap();
    everything(&store, ManualClock::from_system().now_ms()).await;
}

#[tokio::test]
async fn the_redis_store_keeps_the_contract_over_tls() {
    let server = RedisServer::with_tls();
    let store = RedisStore::connect(&server.endpoint("gw:")).await.unwrap();
    everything(&store, ManualClock::from_system().now_ms()).await;
}

#[tokio::test]
async fn records_of_local_stores_are_forgotten_in_time() {
    let clock = Arc::new(ManualClock::from_system());
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(&folder.path().join("t.db"), "", clock.clone()).unwrap();
    let memory = MemoryStore::new(clock.clone());
    let stores: [&dyn Store; 2] = [&memory, &sqlite];
    for store in stores {
        let key = Key::secret("pending", "x");
        store.put(&key, b"v", MINUTE).await.unwrap();
        let code = Digest::of("c");
        store.put_code(&code, b"g", life(true), &[]).await.unwrap();
        clock.advance(MINUTE);
        assert_eq!(store.get(&key).await.unwrap(), None);
        let family = FamilyId::mint(&SystemEntropy);
        assert_eq!(store.redeem(&code, &family, &code).await.unwrap(), Redeemed::Unknown);
        let counter = Key::named("rate", &["x"]);
        assert_eq!(store.hit(&counter, MINUTE).await.unwrap().count, 1);
        assert_eq!(store.hit(&counter, MINUTE).await.unwrap().count, 2);
        clock.advance(MINUTE);
        assert_eq!(store.hit(&counter, MINUTE).await.unwrap().count, 1, "a new window");
    }
}

#[tokio::test]
async fn k08_the_memory_store_is_bounded_and_sweeps_what_expired() {
    let clock = Arc::new(ManualClock::from_system());
    let store = MemoryStore::with_room_for(clock.clone(), 1000);
    let store: &dyn Store = &store;
    for n in 0..1000 {
        store.put(&Key::named("x", &[&n.to_string()]), b"v", MINUTE).await.unwrap();
    }
    let extra = Key::named("x", &["one more"]);
    assert!(store.put(&extra, b"v", MINUTE).await.is_err(), "full, and says so");
    clock.advance(MINUTE);
    store.put(&extra, b"v", MINUTE).await.unwrap();
}

#[test]
fn a_pipe_is_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let opened = SqliteStore::open(&pipe, "gw:", Arc::new(ManualClock::from_system()));
    assert!(format!("{:?}", opened.err()).contains("not a regular file"));
}

#[tokio::test]
async fn k10_a_sqlite_file_outlives_its_process() {
    let clock = Arc::new(ManualClock::from_system());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let (code, family) = (Digest::of("c"), FamilyId::mint(&SystemEntropy));
    let first = SqliteStore::open(&path, "gw:", clock.clone()).unwrap();
    let store: &dyn Store = &first;
    store.put_code(&code, b"g", life(true), &[]).await.unwrap();
    drop(first);
    let second = SqliteStore::open(&path, "gw:", clock).unwrap();
    let store: &dyn Store = &second;
    assert_eq!(store.redeem(&code, &family, &code).await.unwrap(), Redeemed::Fresh(b"g".to_vec()));
}

#[tokio::test]
async fn a_memory_store_full_of_records_counts_and_one_full_of_counters_stores() {
    let clock = Arc::new(ManualClock::from_system());
    let store = MemoryStore::with_room_for(clock.clone(), 100);
    let put = async |n: usize| store.put(&Key::named("x", &[&n.to_string()]), b"v", MINUTE).await;
    let counter = |n: usize| Key::named("rate", &[&n.to_string()]);
    let kept = counter(usize::MAX);
    for n in 0..100 {
        put(n).await.unwrap();
    }
    assert!(put(100).await.is_err());
    assert_eq!(store.hit(&kept, 60 * MINUTE).await.unwrap().count, 1);
    for n in 0..1000 {
        assert_eq!(store.hit(&counter(n), MINUTE).await.unwrap().count, 1, "counter {n}");
    }
    assert_eq!(store.hit(&kept, MINUTE).await.unwrap().count, 2, "those that end the soonest made room");
    assert_eq!(store.get(&kept).await.unwrap().as_deref(), Some(&b"2"[..]), "a counter can be read");
    assert!(store.len() <= 200, "{}", store.len());
    store.remove(&Key::named("x", &["7"])).await.unwrap();
    put(100).await.unwrap();
    store.remove(&kept).await.unwrap();
    assert_eq!(store.hit(&kept, MINUTE).await.unwrap().count, 1);
}
