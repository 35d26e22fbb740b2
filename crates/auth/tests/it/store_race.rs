//! Many redeem or rotate the same thing at once: exactly one succeeds.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use futures::future::join_all;
use gatewright_auth::{
    ManualClock, SystemEntropy,
    store::{
        CodeLife, CodeStore as _, Digest, FamilyId, MemoryStore, Redeemed, RedisStore,
        RefreshTokenStore as _, Rotated, Rotation, SqliteStore, Store,
    },
};

use crate::support::redis_server::RedisServer;

const LIFE: CodeLife = CodeLife {
    code: Duration::from_secs(60),
    family: Duration::from_secs(7200),
    refresh: Some(Duration::from_secs(3600)),
};

async fn redemptions(stores: &[Arc<dyn Store>], rounds: usize) {
    for round in 0..rounds {
        let (code, family) = (Digest::of(&format!("c{round}")), FamilyId::mint(&SystemEntropy));
        stores[0].put_code(&code, b"g", LIFE, &[]).await.unwrap();
        let tries = (0..8).map(|n| {
            let (store, code, family) = (stores[n % stores.len()].clone(), code.clone(), family.clone());
            tokio::spawn(
                async move { store.redeem(&code, &family, &Digest::of(&format!("r{n}"))).await.unwrap() },
            )
        });
        let outcomes: Vec<_> = join_all(tries).await.into_iter().map(Result::unwrap).collect();
        let fresh = outcomes.iter().filter(|o| matches!(o, Redeemed::Fresh(_))).count();
        assert_eq!(fresh, 1, "round {round}: {outcomes:?}");
        assert_eq!(stores[0].family(&family).await.unwrap(), None, "a replay ends the family");
    }
}

async fn rotations(stores: &[Arc<dyn Store>], rounds: usize) {
    for round in 0..rounds {
        let (code, family) = (Digest::of(&format!("rc{round}")), FamilyId::mint(&SystemEntropy));
        let old = Digest::of(&format!("old{round}"));
        stores[0].put_code(&code, b"g", LIFE, &[]).await.unwrap();
        stores[0].redeem(&code, &family, &old).await.unwrap();
        let tries = (0..8).map(|n| {
            let (store, old, family) = (stores[n % stores.len()].clone(), old.clone(), family.clone());
            tokio::spawn(async move {
                let new = Digest::of(&format!("new{round}-{n}"));
                let rotation = Rotation {
                    old: &old,
                    family: &family,
                    new: &new,
                    sealed: new.as_str().as_bytes(),
                    ttl: Duration::from_secs(60),
                    now_ms: 1_000,
                    grace: Duration::from_secs(30),
                };
                (new.clone(), store.rotate(rotation).await.unwrap())
            })
        });
        let outcomes: Vec<_> = join_all(tries).await.into_iter().map(Result::unwrap).collect();
        let winner = outcomes.iter().find(|(_, outcome)| *outcome == Rotated::Fresh).unwrap().0.clone();
        let retried = Rotated::Retried(winner.as_str().as_bytes().to_vec());
        let same = outcomes.iter().filter(|(_, outcome)| *outcome == retried).count();
        assert_eq!(same, 7, "everyone else gets the same successor: {outcomes:?}");
        assert!(stores[0].find(&winner, &family).await.unwrap().unwrap().current);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c03_and_d05_one_of_eight_wins_in_memory() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(ManualClock::from_system())));
    redemptions(std::slice::from_ref(&store), 100).await;
    rotations(&[store], 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c03_and_d05_one_of_eight_wins_in_sqlite_through_two_connections() {
    let (clock, folder) = (Arc::new(ManualClock::from_system()), tempfile::tempdir().unwrap());
    let open = || -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&folder.path().join("t.db"), "", clock.clone()).unwrap())
    };
    let stores = [open(), open()];
    redemptions(&stores, 100).await;
    rotations(&stores, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c03_and_d05_one_of_eight_wins_in_redis_through_two_connections() {
    let server = RedisServer::start();
    let endpoint = server.endpoint("gw:");
    let one: Arc<dyn Store> = Arc::new(RedisStore::connect(&endpoint).await.unwrap());
    let two: Arc<dyn Store> = Arc::new(RedisStore::connect(&endpoint).await.unwrap());
    redemptions(&[one.clone(), two.clone()], 100).await;
    rotations(&[one, two], 100).await;
}

/// Not a test of its own: the second process of the test below. Reads the port, then a family a line, and redeems the code of that
/// name eight times at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "started by c03_one_of_eight_wins_between_two_processes"]
async fn redeems_what_it_is_told() {
    let mut lines = std::io::stdin().lock().lines().map_while(Result::ok);
    let port: u16 = lines.next().unwrap().parse().unwrap();
    let store = RedisStore::connect(&gatewright_auth::store::RedisEndpoint::new("127.0.0.1", port)).await;
    let store: Arc<dyn Store> = Arc::new(store.unwrap());
    println!("\nready");
    for line in lines {
        println!("\nfresh={}", redeem_four_times(&store, &line).await);
    }
}

async fn redeem_four_times(store: &Arc<dyn Store>, family: &str) -> usize {
    let family = FamilyId::parse(family).unwrap();
    let code = Digest::of(family.as_str());
    let outcomes = join_all((0..4).map(|_| {
        let (store, code, family) = (store.clone(), code.clone(), family.clone());
        tokio::spawn(async move { store.redeem(&code, &family, &Digest::of("r")).await.unwrap() })
    }));
    outcomes.await.into_iter().filter(|outcome| matches!(outcome, Ok(Redeemed::Fresh(_)))).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c03_one_of_eight_wins_between_two_processes() {
    let server = RedisServer::start();
    let store: Arc<dyn Store> = Arc::new(RedisStore::connect(&server.endpoint("")).await.unwrap());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store_race::redeems_what_it_is_told", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut tell = child.stdin.take().unwrap();
    let mut hear = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    writeln!(tell, "{}", server.port).unwrap();
    assert!(hear.by_ref().any(|line| line.contains("ready")));
    for round in 0..100 {
        let family = FamilyId::mint(&SystemEntropy);
        store.put_code(&Digest::of(family.as_str()), b"g", LIFE, &[]).await.unwrap();
        writeln!(tell, "{}", family.as_str()).unwrap();
        let mine = redeem_four_times(&store, family.as_str()).await;
        let line = hear.by_ref().find(|line| line.contains("fresh=")).unwrap();
        let theirs: usize = line.rsplit('=').next().unwrap().parse().unwrap();
        assert_eq!(mine + theirs, 1, "round {round}");
    }
    drop(tell);
    child.wait().unwrap();
}

/// Not a test of its own: the second process of the test below. Opens and closes the store at the path that it reads.
#[tokio::test]
#[ignore = "started by another_process_that_closes_the_file_leaves_the_journal_of_a_running_one"]
async fn opens_and_closes_what_it_is_told() {
    let path = std::io::stdin().lock().lines().map_while(Result::ok).next().unwrap();
    let store = SqliteStore::open(path.as_ref(), "", Arc::new(ManualClock::from_system())).unwrap();
    assert_eq!(store.family(&FamilyId::mint(&SystemEntropy)).await.unwrap(), None);
}

#[tokio::test]
async fn another_process_that_closes_the_file_leaves_the_journal_of_a_running_one() {
    let (clock, folder) = (Arc::new(ManualClock::from_system()), tempfile::tempdir().unwrap());
    let path = folder.path().join("t.db");
    let open = || SqliteStore::open(&path, "", clock.clone()).unwrap();
    // A reload opens the file again while it is in use.
    let stores = [open(), open()];
    let (code, family) = (Digest::of("c"), FamilyId::mint(&SystemEntropy));
    stores[0].put_code(&code, b"g", LIFE, &[]).await.unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store_race::opens_and_closes_what_it_is_told", "--ignored"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{}", path.display()).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(folder.path().join("t.db-wal").exists(), "the journal in use was removed");
    // What this process writes is there for others.
    let redeemed = stores[1].redeem(&code, &family, &Digest::of("r")).await.unwrap();
    assert!(matches!(redeemed, Redeemed::Fresh(_)), "{redeemed:?}");
    drop(stores);
    assert!(open().family(&family).await.unwrap().is_some());
}
